"""Modes that parallel tempering may have missed, and runs that start at them.

AIS, RAISE and parallel tempering can agree and all be wrong: if most of Z lies in a mode that is far from all images, chains that come from
the base rates do not find it, and neither do RAISE's, which start at test images. The proven bound on ln Z detects a mode that holds by far
the largest part of Z. Where the mode and the rest share Z more evenly, the bound is too loose.

But parallel tempering says more than Z alone: Z times the share of its draws that lie in a region R is the mass of R, wherever its chains
start. A second run of parallel tempering therefore starts at a mode that a search found, and both estimate the mass of the region that
belongs to it. If the second finds much more mass there, the first missed the mode. Where the two modes do not mix, each run knows the mass
of its own, and that is all that is needed. Parallel tempering answers with far fewer steps than AIS from the mode, whose few heaviest
chains decide everything.

The search is that of the proven bound, mean field from many points, with more points: hidden units that together hold a mode have weights
that point the same way, and such units are switched on together. Gibbs chains then explore the mode, and their pixel means are the base
rates of the new start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from paperlib.annealing import BaseRatePath, start_bias
from paperlib.estimators import TemperingEstimate
from paperlib.kernels import bernoulli
from paperlib.mcmc.series import mean_error
from paperlib.models import RBM
from paperlib.models.bounds import mean_field_optima, search_points
from paperlib.uncertain import Uncertain

_CHAINS, _GIBBS_STEPS = 100, 50
_MET_STARTS = 64
# Visible means that differ by less than this on average belong to the same mode.
_SAME = 0.05
_SMALLEST = 1e-30
# Units whose weights have at least this cosine point the same way; only units with large weights can hold a mode.
_ALIKE = 0.5
_MOST_UNITS = 256
# Standard errors by which a mass exceeds another one for certain, and up to which it might.
_SURELY, _PERHAPS = 3.0, 2.0
# Beyond this error of ln Z, e to its power is no longer of interest.
_LARGEST_ERROR = 50.0
# With fewer round trips or a warning, ln Z of a short run of parallel tempering from a mode may be wrong by so many nats, whatever error it
# states.
_FEWEST_TRIPS, _UNSURE = 50, 2.0


@dataclass(frozen=True)
class ModeCheck:
    """How many nats ln Z rises, at least and at most, if a mode has the mass that a run from it finds; and the part of that which was known."""

    missed: float
    # `missed` for a mass that is smaller by three standard errors, or larger by two.
    least: float
    most: float
    met: float = 1.0

    @property
    def significant(self) -> bool:
        """Whether the run from the mode finds more there for certain."""
        return self.least > 0


def check_mode(
    base: TemperingEstimate,
    base_path: BaseRatePath,
    at_mode: TemperingEstimate,
    at_mode_path: BaseRatePath,
) -> ModeCheck:
    """Compare two runs of parallel tempering for one model by the mass of the region that is more probable under the second one's start."""
    # Masses are in units of the larger Z.
    unit = max(base.log_z, at_mode.log_z)
    sure = at_mode.round_trips >= _FEWEST_TRIPS and not at_mode.warnings
    of_mode = max(at_mode.std_error, 0.0 if sure else _UNSURE)
    inside, inside_at_mode = (
        at_mode_path.log_start(run.samples) > base_path.log_start(run.samples)
        for run in (base, at_mode)
    )
    less = _mass(base, base.std_error, inside, unit)
    more = _mass(at_mode, of_mode, inside_at_mode, unit)
    gain = more - less
    missed, least, most = (
        _rise(base.log_z - unit, gain.value + number * gain.std_error)
        for number in (0.0, -_SURELY, _PERHAPS)
    )
    met = less.value / more.value if more.value > 0 else 1.0
    return ModeCheck(missed, least, most, met)


def _mass(tempering: TemperingEstimate, std_error: float, inside: Tensor, unit: float) -> Uncertain:
    """The mass of a region according to a run with this error of ln Z, in units of e^unit."""
    inside = inside.double()[:, None].cpu()
    share, (error, _) = inside.mean().item(), mean_error(inside)
    of_log_z = math.expm1(min(std_error, _LARGEST_ERROR))
    scale = math.exp(tempering.log_z - unit)
    return Uncertain(scale * share, scale * math.hypot(share * of_log_z, error))


def _rise(log_z: float, more: float) -> float:
    """How many nats ln Z rises if Z grows by this much."""
    return float(np.logaddexp(log_z, math.log(more))) - log_z if more > 0 else 0.0


def mode_starts(rbm: RBM, draws: Tensor, generator: torch.Generator) -> list[Tensor]:
    """Biases [D] of starts at the model's strongest mode and, if it is another, at the strongest in which no draw [N, D] of the run is."""
    model = rbm.to(dtype=torch.float64)
    spread = torch.linspace(0, len(draws) - 1, min(len(draws), _MET_STARTS)).long()
    near = model.hidden_probs(draws[spread.to(draws.device)].double())
    starts = torch.cat([near, search_points(model), _units_alike(model)])
    means, bounds, *_ = mean_field_optima(model, starts)
    visible = model.visible_probs(means)
    distance = _distance(visible, visible[: len(near)])
    best = bounds.argmax()
    found = [visible[best]]
    if distance.max() > _SAME and distance[best] <= _SAME:
        found.append(visible[bounds.masked_fill(distance <= _SAME, -torch.inf).argmax()])
    return [_explored(rbm, mode, generator) for mode in found]


def _units_alike(model: RBM) -> Tensor:
    """Hidden states from which to look for modes: a unit is on, and with it all units whose weights point the same way; [units, M]."""
    lengths = model.weights.norm(dim=0)
    directions = model.weights / lengths.clamp(min=_SMALLEST)
    strongest = lengths.argsort(descending=True, stable=True)[:_MOST_UNITS]
    alike = directions[:, strongest].T @ directions >= _ALIKE
    return alike.unique(dim=0).to(model.weights)


def _distance(visible: Tensor, known: Tensor) -> Tensor:
    """How far each row of visible means is from the nearest known one: the mean difference of a unit, from 0 to 1."""
    return torch.cdist(visible, known, p=1).amin(1) / visible.shape[1]


def _explored(rbm: RBM, visible_means: Tensor, generator: torch.Generator) -> Tensor:
    """Biases from the frequencies of Gibbs chains that began at a mode."""
    v = bernoulli(visible_means.to(rbm.dtype).expand(_CHAINS, -1), generator)
    kept = []
    for step in range(2 * _GIBBS_STEPS):
        v = rbm.gibbs_step(v, generator)
        if step >= _GIBBS_STEPS:
            kept.append(v)
    return start_bias(rbm, torch.cat(kept), generator)
