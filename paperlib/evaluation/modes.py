"""Modes that annealing from the base rates may have missed, and AIS that starts at them.

AIS and RAISE can agree and both be wrong: if most of Z lies in a mode that is far from all images, AIS's chains do not find it, and
neither do RAISE's, which start at test images. The proven bound on ln Z detects a mode that holds by far the largest part of Z.
Where the mode and the rest share Z more evenly, the bound is too loose.

But AIS's weights say more than Z alone: if x is the final state, E[w 1(x in R)] is the mass of the region R, wherever the chains start.
A second run therefore starts at a mode that a search found, and both runs estimate the mass of the region that belongs to it. If
the second run finds much more mass there, the first missed the mode. The search is that of the proven bound, mean field from many points,
with more points: hidden units that together hold a mode have weights that point the same way, and such units are switched on together.
Gibbs chains then explore the mode, and their pixel means are the base rates of the new start.

That comparison needs effective chains. From a weak mode there may be none: a few chains leave it for a mode of much larger weight, which
everybody knows, and outweigh all others. What they say about the known mode does not matter, and what the others say about states that
nobody has met is known all the better. `most_unmet` looks at these alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from paperlib.annealing import BaseRatePath, PottsPath
from paperlib.datasets import base_rate_bias, site_frequency_bias
from paperlib.estimators import PartitionEstimate
from paperlib.kernels import bernoulli, draw_categories
from paperlib.models import RBM, PottsRBM
from paperlib.models.bounds import mean_field_optima, search_points

_CHAINS, _GIBBS_STEPS = 100, 50
_MET_STARTS = 64
# Visible means that differ by less than this on average belong to the same mode.
_SAME = 0.05
_SMALLEST = 1e-30
# Units whose weights have at least this cosine point the same way; only units with large weights can hold a mode.
_ALIKE = 0.5
_MOST_UNITS = 256
#: With fewer effective chains, a comparison of masses could not have shown a missed mode.
FEWEST_EFFECTIVE = 10


@dataclass(frozen=True)
class ModeCheck:
    """What AIS from a mode of the model says about AIS from the base rates.

    Attributes
    ----------
    missed : float
        How many nats ln Z rises if the mode's region is given the mass that the chains from the mode find in it.
    significant : bool
        Whether they find more there than the chains from the base rates do, by more than three standard errors.
    effective_chains : float
        Effective number of chains from the mode that the check rests on; ignored in comparisons.
    most_unmet : float
        How many nats ln Z could rise by states that nobody has met, see the function `most_unmet`; infinite if that was not looked at.
    """

    missed: float
    significant: bool
    effective_chains: float = field(default=math.inf, compare=False)
    most_unmet: float = field(default=math.inf, compare=False)


def check_mode(
    base: PartitionEstimate,
    base_path: BaseRatePath | PottsPath,
    at_mode: PartitionEstimate,
    at_mode_path: BaseRatePath | PottsPath,
) -> ModeCheck:
    """Compare two AIS runs on one model by the mass of the region that is more probable under the second run's start."""
    # the first run's Z, and all weights, in units of the largest weight
    largest = torch.cat([base.log_weights, at_mode.log_weights]).max().item()
    log_z = base.log_z - largest
    masses, variances = [], []
    for run in (base, at_mode):
        inside = at_mode_path.log_start(run.final_states) > base_path.log_start(run.final_states)
        weights = torch.exp(run.log_weights - largest) * inside
        masses.append(weights.mean().item())
        variances.append(weights.var().item() / len(weights))
    more = masses[1] - masses[0]
    effective = at_mode.effective_sample_size
    if more <= 0:
        return ModeCheck(0.0, significant=False, effective_chains=effective)
    raised = float(np.logaddexp(log_z, math.log(more)))
    return ModeCheck(raised - log_z, more > 3 * math.sqrt(sum(variances)), effective)


def most_unmet(
    rbm: RBM | PottsRBM, draws: Tensor, log_z: float, at_mode: PartitionEstimate
) -> float:
    """How many nats ln Z would rise if all chains weighed as much as the heaviest that ended where none of the draws is.

    A state is where a draw is if mean field climbs from both to the same mode. If each draw has a mode of its own, as in large models,
    hardly any state is.

    Parameters
    ----------
    rbm : RBM or PottsRBM
        The model.
    draws : Tensor, shape [N, D]
        Its draws.
    log_z : float
        ln Z according to them, in nats.
    at_mode : PartitionEstimate
        AIS that started at a mode.

    Returns
    -------
    float
        Zero if every chain ended where a draw is.

    Examples
    --------
    >>> two_modes = RBM([[9.0], [9.0]], [-4.5, -4.5], [-9.0])  # nearly all off, or nearly all on
    >>> draws, ends = torch.zeros(5, 2), torch.tensor([[0.0, 0.0], [1.0, 1.0]])
    >>> at_mode = PartitionEstimate(torch.tensor([3.0, 1.0]).double(), ends)
    >>> round(most_unmet(two_modes, draws, 1.0, at_mode), 3)  # the chain that weighs e is unmet
    0.693
    """
    met = _climbed(rbm, draws)
    unmet = _distance(rbm, _climbed(rbm, at_mode.final_states), met) > _SAME
    if not unmet.any():
        return 0.0
    return float(np.logaddexp(log_z, at_mode.log_weights[unmet].max().item())) - log_z


def mode_starts(
    rbm: RBM | PottsRBM, final_states: Tensor, generator: torch.Generator
) -> list[Tensor]:
    """Biases of starts at the model's strongest mode and, if it is another, at the strongest in which no chain ended.

    Parameters
    ----------
    rbm : RBM or PottsRBM
        The model.
    final_states : Tensor, shape [N, D]
        Final states of AIS's chains; at most the first 64 are used.
    generator : torch.Generator
        Source of randomness, on the model's device.

    Returns
    -------
    list of Tensor, shape [D]
        One or two, for `BaseRatePath`.
    """
    model = rbm.to(dtype=torch.float64)
    near = model.hidden_probs(final_states[:_MET_STARTS].double())
    starts = torch.cat([near, search_points(model), _units_alike(model)])
    means, bounds = mean_field_optima(model, starts)
    visible = model.visible_probs(means)
    distance = _distance(model, visible, visible[: len(near)])
    best = bounds.argmax()
    found = [visible[best]]
    if distance.max() > _SAME and distance[best] <= _SAME:
        found.append(visible[bounds.masked_fill(distance <= _SAME, -torch.inf).argmax()])
    return [_explored(rbm, mode, generator) for mode in found]


def _units_alike(model: RBM | PottsRBM) -> Tensor:
    """Hidden states from which to look for modes: a unit is on, and with it all units whose weights point the same way; [units, M]."""
    weights = model.weights.flatten(0, -2)
    lengths = weights.norm(dim=0)
    directions = weights / lengths.clamp(min=_SMALLEST)
    strongest = lengths.argsort(descending=True, stable=True)[:_MOST_UNITS]
    alike = directions[:, strongest].T @ directions >= _ALIKE
    return alike.unique(dim=0).to(weights)


def _climbed(rbm: RBM | PottsRBM, states: Tensor) -> Tensor:
    """Visible means of the modes to which mean field climbs from the states, [N, D]."""
    return rbm.visible_probs(mean_field_optima(rbm, rbm.hidden_probs(states))[0])


def _distance(rbm: RBM | PottsRBM, visible: Tensor, known: Tensor) -> Tensor:
    """How far each row of visible means is from the nearest known one: the mean difference of a unit or site, from 0 to 1."""
    nearest = torch.cdist(visible, known, p=1).amin(1)
    # A site whose state differs changes two bits.
    return nearest / (2 * rbm.num_sites if isinstance(rbm, PottsRBM) else rbm.num_visible)


def _explored(rbm: RBM | PottsRBM, visible_means: Tensor, generator: torch.Generator) -> Tensor:
    """Biases from the frequencies of Gibbs chains that began at a mode."""
    means = visible_means.to(rbm.dtype).expand(_CHAINS, -1)
    if isinstance(rbm, PottsRBM):
        v = draw_categories(means.clamp(min=_SMALLEST).log(), rbm.num_states, generator)
        v = v.to(rbm.dtype)
    else:
        v = bernoulli(means, generator)
    kept = []
    for step in range(2 * _GIBBS_STEPS):
        v = rbm.gibbs_step(v, generator)
        if step >= _GIBBS_STEPS:
            kept.append(v)
    found = torch.cat(kept)
    if isinstance(rbm, PottsRBM):
        return site_frequency_bias(rbm.sequences(found), rbm.num_states).flatten()
    return base_rate_bias(found, pseudo_off=0.05)
