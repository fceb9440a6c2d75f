"""Modes that parallel tempering may have missed, and runs that start at them.

AIS, RAISE and parallel tempering can agree and all be wrong: if most of Z lies in a mode that is
far from all images, chains that come from the base rates do not find it, and neither do RAISE's,
which start at test images. The proven bound on ln Z detects a mode that holds by far the largest
part of Z. Where the mode and the rest share Z more evenly, the bound is too loose.

But parallel tempering says more than Z alone: Z times the share of its draws that lie in a region R
is the mass of R, wherever its chains start. A second run of parallel tempering therefore starts at
a mode that a search found, and both estimate the mass of the region that belongs to it. If the
second finds much more mass there, the first missed the mode. Where the two modes do not mix, each
run knows the mass of its own, and that is all that is needed. Parallel tempering answers with far
fewer steps than AIS from the mode, whose few heaviest chains decide everything.

The search is that of the proven bound, mean field from many points, with more points: hidden units
that together hold a mode have weights that point the same way, and such units are switched on
together. Test and training images are points to search from as well, and the modes to which they
lead are compared with those of the first run's draws: where more images lie than draws, a run
starts, too, and first of all where images lie that RAISE hardly reaches. Gibbs chains then explore
the mode, and their pixel means are the base rates of the new start.

What no search finds and no image shows stays unseen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from paperlib.annealing import BaseRatePath, start_bias
from paperlib.estimators import TemperingEstimate
from paperlib.kernels import bernoulli
from paperlib.mcmc.series import mean_error
from paperlib.memory import parts, small_parts
from paperlib.models import RBM
from paperlib.models.bounds import far_apart, mean_field_optima, search_points
from paperlib.models.rbm import in_double
from paperlib.numerics import softplus
from paperlib.uncertain import Uncertain

_CHAINS = 100
_GIBBS_STEPS = 50
_MET_STARTS = 64
# Two modes are the same if their visible means differ by at most `_SAME` pixels, or by at most this
# quantile of the distances from the mode of each draw to the nearest mode of another draw.
_SAME = 1.0
_USUAL = 0.75
# Two phases are modes that differ in more than this part of the pixels.
_PHASE_DISTANCE = 0.05
_SMALLEST = 1e-30
# Units whose weights have at least this cosine point the same way.
_ALIKE = 0.5
# Only units with large weights can hold a mode: this many are looked at.
_MOST_UNITS = 256
# By this many standard errors a mass exceeds another one for certain; by this many it may do so.
_SURELY = 3.0
_PERHAPS = 2.0
# Beyond this error of ln Z, e to its power is no longer of interest.
_LARGEST_ERROR = 50.0
# With fewer round trips than `_FEWEST_TRIPS`, or with a warning, ln Z of a short run from a mode
# may be wrong by `_UNSURE` nats, whatever error it states, unless the first run knows at least this
# part of the mode.
_FEWEST_TRIPS = 50
_UNSURE = 2.0
_WELL_MET = 0.5


@dataclass(frozen=True)
class ModeCheck:
    """What a run from a mode says about the first run, by the mass that each finds there.

    Attributes
    ----------
    missed : float
        How many nats ln Z rises if the mode has the mass that the run from it finds.
    least, most : float
        `missed` if that mass is smaller by three standard errors, and if it is larger by two.
    met : float
        The share of that mass which the first run knows.
    less : float
        By how many nats a long enough run from the mode finds less there, for certain.
    promised : float
        How many nats ln Z rises by this and the weaker modes that were not met, if bounds are
        equally far below all masses.
    """

    missed: float
    least: float
    most: float
    met: float = 1.0
    less: float = 0.0
    promised: float = 0.0

    @property
    def significant(self) -> bool:
        """Whether the run from the mode finds more there for certain."""
        return self.least > 0


def check_mode(
    base: TemperingEstimate,
    base_path: BaseRatePath,
    at_mode: TemperingEstimate,
    at_mode_path: BaseRatePath,
    promised: float = 0.0,
) -> ModeCheck:
    """Compare two runs of parallel tempering by the mass of the region of the second one's mode.

    It is the region that is more probable under the start of the second run, `at_mode`.
    """
    # Masses are in units of the larger Z.
    unit = max(base.log_z, at_mode.log_z)
    base_inside = _nearer(at_mode_path, base_path, base.samples)
    mode_inside = _nearer(at_mode_path, base_path, at_mode.samples)
    base_mass = _mass(base, base.std_error, base_inside, unit)
    mode_mass = _mass(at_mode, at_mode.std_error, mode_inside, unit)
    met = 1.0 if base_mass.value > 0 else 0.0
    if mode_mass.value > 0:
        met = base_mass.value / mode_mass.value
    sure = at_mode.round_trips >= _FEWEST_TRIPS and not at_mode.warnings
    if met < _WELL_MET and not sure:
        mode_mass = _mass(at_mode, max(at_mode.std_error, _UNSURE), mode_inside, unit)
    gain = mode_mass - base_mass

    def rise(std_errors: float) -> float:
        """By how much ln Z rises if the gain is larger by this many standard errors."""
        return _rise(base.log_z - unit, gain.value + std_errors * gain.std_error)

    finds_less = sure and mode_mass.value > 0 and gain.value + _SURELY * gain.std_error < 0
    return ModeCheck(
        missed=rise(0.0),
        least=rise(-_SURELY),
        most=rise(_PERHAPS),
        met=met,
        less=math.log(met) if finds_less else 0.0,
        promised=promised,
    )


def _nearer(path: BaseRatePath, other: BaseRatePath, samples: Tensor) -> Tensor:
    """Which of the samples [n, D] are more probable under this path's start than another's."""
    return path.log_start(samples) > other.log_start(samples)


def _mass(tempering: TemperingEstimate, std_error: float, inside: Tensor, unit: float) -> Uncertain:
    """The mass of a region according to a run with this error of ln Z, in units of e^unit."""
    inside = inside.double()[:, None].cpu()
    share = inside.mean().item()
    (share_error, _) = mean_error(inside)
    z_error = math.expm1(min(std_error, _LARGEST_ERROR))
    scale = math.exp(tempering.log_z - unit)
    return Uncertain(scale * share, scale * math.hypot(share * z_error, share_error))


def _rise(log_z: float, more: float) -> float:
    """How many nats ln Z rises if Z grows by this much."""
    return float(np.logaddexp(log_z, math.log(more))) - log_z if more > 0 else 0.0


@dataclass(frozen=True)
class Optimum:
    """The visible means [D] of a mode, and what is `promised` as for a `ModeCheck`."""

    visible: Tensor
    promised: float = 0.0


class _Modes:
    """Optima of mean field, from groups of means of the hidden units [n, M].

    The means of the visible units are made of these part by part when they are needed, since for
    all modes of a model with few hidden units they take more memory than the model.
    """

    def __init__(self, model: RBM, *means: Tensor) -> None:
        self._model = model
        size = model.weights.element_size() * model.num_visible
        self._parts = [part for group in means for part in parts(group, size)]

    def __add__(self, others: _Modes) -> _Modes:
        return _Modes(self._model, *self._parts, *others._parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def visible(self, place: int) -> Tensor:
        """The visible means of one of the modes, [D]."""
        for part in self._parts:
            if place < len(part):
                return self._model.visible_probs(part)[place].clone()
            place -= len(part)
        raise IndexError(place)

    def distances(self, others: _Modes | Tensor, power: float = 1.0) -> Tensor:
        """By how many pixels the visible means of each mode differ from each of the others.

        The others are modes, or visible means [k, D].
        """
        rows = []
        for visible in self._visible_parts():
            columns = [others] if isinstance(others, Tensor) else others._visible_parts()
            rows.append(torch.cat([torch.cdist(visible, each, p=power) for each in columns], 1))
        return torch.cat(rows)

    def _visible_parts(self) -> Iterator[Tensor]:
        return map(self._model.visible_probs, self._parts)

    @cached_property
    def apart(self) -> Tensor:
        """The largest difference of any pixel between each two modes, [n, n]."""
        return self.distances(self, torch.inf)


class ModeSearch:
    """Modes of an RBM where a run of parallel tempering with draws [N, D] may not have been.

    The modes are optima of mean field. Two of them are the same if they differ by at most a pixel,
    or by at most the 75 % quantile of the distances from the mode of each draw to the nearest mode
    of another draw: where draws lie in few modes, near ones are told apart. The strongest mode, and
    the strongest of those far from it, are the model's two phases.
    """

    def __init__(self, rbm: RBM, draws: Tensor) -> None:
        self._rbm = rbm
        self._model = in_double(rbm)
        starts = evenly_spread(draws, _MET_STARTS).to(rbm.device)
        self._draws, self._bounds = self._optima(self._hidden_means(starts))
        between = self._draws.distances(self._draws).fill_diagonal_(torch.inf)
        usual = between.amin(1).quantile(_USUAL).item() if len(starts) > 1 else 0.0
        self._same = max(usual, _SAME)

    def of_model(self) -> list[Optimum]:
        """The strongest mode and, if it is another one, the strongest that contains no draw.

        If there is no such other mode, the second phase takes its place.
        """
        modes, bounds = self._everywhere
        unmet = modes.distances(self._draws).amin(1) > self._same
        best = int(bounds.argmax())
        first = self._mode(best, modes, bounds, unmet)
        if unmet[best] or not unmet.any():
            return [first, *self.phases()[1:]]
        return [first, self._mode(_largest(bounds, unmet), modes, bounds, unmet)]

    def phases(self) -> list[Optimum]:
        """The strongest mode, and the strongest that differs from it in many pixels, if any."""
        modes, bounds = self._everywhere
        phases = [Optimum(modes.visible(int(bounds.argmax())))]
        distances = modes.distances(phases[0].visible[None])[:, 0]
        others = distances > _PHASE_DISTANCE * self._model.num_visible
        if others.any():
            phases.append(Optimum(modes.visible(_largest(bounds, others))))
        return phases

    def of_images(self, images: Tensor, hard: Tensor, known: Sequence[Optimum]) -> list[Optimum]:
        """Up to two modes that images show and that are not known.

        The first is the strongest that contains no draw. The second is the one that contains the
        most images compared with draws: its share of the images (of the hard ones alone, if there
        are any) exceeds its share of the draws most, and by more than chance explains. Images and
        hard ones are units of the RBM, [n, D].
        """
        states = torch.cat([images, hard]) if len(hard) > 0 else images
        optima, bounds = self._optima(self._hidden_means(states.to(self._rbm.device)))
        modes = optima + self._draws
        bounds = torch.cat([bounds, self._bounds])
        distances = modes.distances(modes)
        from_draws = distances[:, len(states) :]
        unmet = from_draws.amin(1) > self._same
        chosen: list[Optimum] = []
        candidates = unmet & self._others(modes, known)
        if candidates.any():
            chosen.append(self._mode(_largest(bounds, candidates), modes, bounds, unmet))
        # The modes of hard images alone, if there are any, or of all images.
        of_images = torch.zeros(len(modes), dtype=torch.bool, device=bounds.device)
        of_images[len(images) if len(hard) > 0 else 0 : len(states)] = True
        excess, by_chance = self._excess(distances[:, of_images], from_draws)
        candidates = self._others(modes, [*known, *chosen]) & of_images
        candidates = candidates & (excess > _SURELY * by_chance)
        if candidates.any():
            chosen.append(self._mode(_largest(excess, candidates), modes, bounds, unmet))
        return chosen

    def _excess(self, from_images: Tensor, from_draws: Tensor) -> tuple[Tensor, Tensor]:
        """How far the images' share in each mode is above the draws', and its standard error.

        Given are the distances of the modes from those of images, [n, images], and of draws.
        """
        image_count = from_images.shape[1]
        draw_count = from_draws.shape[1]
        image_shares = self._shares(from_images)
        draw_shares = self._shares(from_draws)
        joint = image_count * image_shares + draw_count * draw_shares
        joint = joint / (image_count + draw_count)
        by_chance = (joint * (1 - joint) * (1 / image_count + 1 / draw_count)).sqrt()
        return image_shares - draw_shares, by_chance

    @cached_property
    def _everywhere(self) -> tuple[_Modes, Tensor]:
        """All modes to which the draws and points of the model's own lead, and their bounds."""
        starts = torch.cat([search_points(self._model), _units_alike(self._model)])
        modes, bounds = self._optima(starts)
        return self._draws + modes, torch.cat([self._bounds, bounds])

    def _hidden_means(self, v: Tensor) -> Tensor:
        """The hidden means from which the search near visible states [n, D] begins, [n, M]."""
        size = self._model.visible_bias.element_size() * self._model.num_visible
        return torch.cat([self._model.hidden_probs(part.double()) for part in parts(v, size)])

    def _optima(self, hidden_means: Tensor) -> tuple[_Modes, Tensor]:
        """The modes to which mean field leads from these hidden means, and their bounds."""
        means, bounds, *_ = mean_field_optima(self._model, hidden_means)
        return _Modes(self._model, means), bounds

    def _mode(self, place: int, modes: _Modes, bounds: Tensor, unmet: Tensor) -> Optimum:
        """One of these modes, and what it promises."""
        visible = modes.visible(place)
        if not unmet[place]:
            return Optimum(visible)
        weaker = _joint_bound(modes, bounds, unmet & (bounds <= bounds[place]))
        met = _joint_bound(modes, bounds, ~unmet)
        return Optimum(visible, softplus(weaker - met).item())

    def _others(self, modes: _Modes, known: Sequence[Optimum]) -> Tensor:
        """Which of the modes are none of the known ones."""
        visible = torch.stack([mode.visible for mode in known])
        return modes.distances(visible).amin(1) > self._same

    def _shares(self, distances: Tensor) -> Tensor:
        """The share of the others that is in each of the modes, from the distances [n, others]."""
        return (distances <= self._same).double().mean(1)


def start_bias_near(rbm: RBM, mode: Optimum, generator: torch.Generator) -> Tensor:
    """Biases from the frequencies of Gibbs chains that begin at a mode of an RBM."""
    v = bernoulli(mode.visible.to(rbm.dtype).expand(_CHAINS, -1), generator)
    # Whole numbers, so that their sum is exact in any order.
    counts = torch.zeros(rbm.num_visible, dtype=torch.float64, device=rbm.device)
    for step in range(2 * _GIBBS_STEPS):
        v = rbm.gibbs_step(v, generator)
        if step >= _GIBBS_STEPS:
            counts += v.sum(0)
    frequencies = counts / (_GIBBS_STEPS * _CHAINS)
    # As of a single image of these intensities.
    return start_bias(rbm, frequencies[None], generator)


def evenly_spread(rows: Tensor, most: int) -> Tensor:
    """At most this many of the rows, at equal distances."""
    places = torch.linspace(0, len(rows) - 1, min(len(rows), most)).long()
    return rows[places.to(rows.device)]


def mode_starts(rbm: RBM, draws: Tensor, generator: torch.Generator) -> list[Tensor]:
    """Biases [D] of starts at the modes of `ModeSearch.of_model` for these draws [N, D]."""
    search = ModeSearch(rbm, draws)
    return [start_bias_near(rbm, mode, generator) for mode in search.of_model()]


def _joint_bound(modes: _Modes, bounds: Tensor, chosen: Tensor) -> Tensor:
    """The bound on ln of the mass of the chosen modes together, of which near ones count once."""
    chosen_bounds = bounds[chosen]
    return chosen_bounds[far_apart(modes.apart[chosen][:, chosen], chosen_bounds)].logsumexp(0)


def _largest(values: Tensor, among: Tensor) -> int:
    """Where the largest of these values is."""
    return int(values.masked_fill(~among, -torch.inf).argmax())


def _units_alike(model: RBM) -> Tensor:
    """Hidden states [units, M] from which to look for modes.

    In each, a unit is on, and with it all units whose weights point the same way.
    """
    lengths = model.weights.norm(dim=0)
    sizes = lengths.clamp(min=_SMALLEST)
    strongest = lengths.argsort(descending=True, stable=True)[:_MOST_UNITS]
    directions = model.weights[:, strongest] / sizes[strongest]
    columns = small_parts(model.weights.T)
    column_sizes = sizes.split([len(part) for part in columns])
    alike = [
        directions.T @ (part.T / part_sizes) >= _ALIKE
        for part, part_sizes in zip(columns, column_sizes, strict=True)
    ]
    return torch.cat(alike, 1).unique(dim=0).to(model.weights)
