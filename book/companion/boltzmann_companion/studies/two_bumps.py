"""Two bumps on a line: an annealing path so small that its particles can be plotted and its ln Z can be enumerated.

The states are places 0, ..., G - 1. The start is one wide bump, the target two narrow ones of
unequal mass with hardly anything between them. A transition is a number of Metropolis steps, each
to one of the two neighbours. Particles therefore cross from one bump to the other only at small
beta, as those of a trained RBM do.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor

from paperlib.annealing import AnnealingPath
from paperlib.annealing.path import require_beta
from paperlib.errors import InputError
from paperlib.kernels import Beta
from paperlib.validation import ArrayLike, as_tensor, require_count, require_shape

_PLACES = 61
# Places and widths of the bumps, as fractions of the line, and the log-odds of the target's first
# bump.
_START = (0.5, 0.16)
_TARGET = ((0.25, 0.035), (0.72, 0.06))
_LOG_ODDS = 1.0


class TwoBumpPath(AnnealingPath[Tensor]):
    """A path from one wide bump to two narrow ones; a state is the place of each chain, int64 [chains].

    Parameters
    ----------
    moves : int
        Metropolis steps in a transition.

    Attributes
    ----------
    log_z : float
        Exact ln Z of the target.

    Raises
    ------
    InputError
        If `moves` is not a whole number of at least one.

    Examples
    --------
    >>> from paperlib.annealing import uniform_betas
    >>> from paperlib.estimators import ais
    >>> path = TwoBumpPath(moves=5)
    >>> estimate = ais(path, uniform_betas(50), 2_000, torch.Generator().manual_seed(0))
    >>> abs(estimate.log_z - path.log_z) < 0.1
    True
    """

    reversible: ClassVar[bool] = True

    def __init__(self, moves: int) -> None:
        self._moves = require_count("moves", moves)
        line = torch.linspace(0, 1, _PLACES, dtype=torch.float64)
        centre, width = _START
        self._start = -((line - centre) ** 2) / (2 * width**2)
        bumps = [-((line - centre) ** 2) / (2 * width**2) for centre, width in _TARGET]
        bumps[0] = bumps[0] + _LOG_ODDS
        # The floor keeps every place possible.
        floor = torch.full_like(line, -12.0)
        self._target = torch.logsumexp(torch.stack([*bumps, floor]), 0)
        self.log_z_start = self.log_z_at(0.0)
        self.log_z = self.log_z_at(1.0)

    @property
    def num_visible(self) -> int:
        """The number of visible units, always one."""
        return 1

    def log_density(self, beta: float) -> Tensor:
        """ln p_beta of every place, float64 [G]."""
        return torch.lerp(self._start, self._target, beta).log_softmax(0)

    def log_z_at(self, beta: float) -> float:
        """ln Z_beta, in nats."""
        return torch.lerp(self._start, self._target, beta).logsumexp(0).item()

    def state_at(self, v: ArrayLike) -> Tensor:
        """Chains at given places `v` [chains, 1].

        Raises
        ------
        InputError
            If a place is not on the line.
        """
        places = as_tensor("v", v)
        require_shape("v", places, [None, 1])
        if not bool(((places >= 0) & (places < _PLACES) & (places == places.round())).all()):
            raise InputError(f"v: expected places from 0 to {_PLACES - 1}, got another number")
        return places[:, 0].long()

    def sample_start(self, num_chains: int, generator: torch.Generator) -> Tensor:
        """Independent draws from the wide bump."""
        return torch.multinomial(
            self._start.softmax(0), num_chains, replacement=True, generator=generator
        )

    def log_f(self, state: Tensor, beta: Beta) -> Tensor:
        """ln f_beta of each chain, in nats; float64 [chains]."""
        require_beta(beta, len(state))
        return self._start[state] * (1 - beta) + self._target[state] * beta

    def transition(self, state: Tensor, beta: Beta, generator: torch.Generator) -> Tensor:
        """Metropolis steps, each to the left or to the right neighbour; every proposal beyond the line is rejected."""
        for _ in range(self._moves):
            draws = torch.rand(2, len(state), dtype=torch.float64, generator=generator)
            proposed = state + 1 - 2 * (draws[0] < 0.5).long()
            inside = (proposed >= 0) & (proposed < _PLACES)
            proposed = torch.where(inside, proposed, state)
            ratio = self.log_f(proposed, beta) - self.log_f(state, beta)
            state = torch.where(draws[1].log() < ratio, proposed, state)
        return state


@dataclass(frozen=True)
class Particles:
    """Particles on their way along a path, with their weights so far.

    Attributes
    ----------
    betas : list of float
        The betas at T + 1 moments.
    places : Tensor, shape [T + 1, N]
        Places of the particles, int64.
    log_weights : Tensor, shape [T + 1, N]
        float64. For annealing, the mean of the weights estimates Z_beta / Z_0 at every moment. For
        melting, the mean at the last moment estimates p_ann of the place where the chains began.
    """

    betas: list[float]
    places: Tensor
    log_weights: Tensor


def anneal(path: AnnealingPath[Any], betas: list[float], number: int, seed: int) -> Particles:
    """Runs of AIS: from the start to the target (Salakhutdinov & Murray 2008, section 3).

    Parameters
    ----------
    path : AnnealingPath
        A path whose states are places.
    betas : list of float
        From 0 to 1.
    number : int
        Number of particles.
    seed : int
        Seed of all draws.
    """
    generator = torch.Generator().manual_seed(seed)
    state = path.sample_start(number, generator)
    places = [state]
    weights = [torch.zeros(number, dtype=torch.float64)]
    for beta, following in pairwise(betas):
        weights.append(weights[-1] + path.log_ratio(state, beta, following))
        state = path.transition(state, following, generator)
        places.append(state)
    return Particles(betas, torch.stack(places), torch.stack(weights))


def melt(
    path: AnnealingPath[Any], betas: list[float], place: int, number: int, seed: int
) -> Particles:
    """Chains of RAISE: from a test point back to the start (Burda et al. 2015, eq. 12).

    Parameters
    ----------
    path : AnnealingPath
        A path whose states are places.
    betas : list of float
        From 0 to 1; they are walked backwards.
    place : int
        Where all chains begin.
    number : int
        Number of chains.
    seed : int
        Seed of all draws.
    """
    generator = torch.Generator().manual_seed(seed)
    state = path.state_at(torch.full((number, 1), place))
    assert path.log_z_start is not None
    places = [state]
    weights = [path.log_f(state, 1.0) - path.log_z_start]
    downwards = betas[::-1]
    for beta, following in pairwise(downwards):
        state = path.reverse_transition(state, beta, generator)
        weights.append(weights[-1] + path.log_ratio(state, beta, following))
        places.append(state)
    return Particles(downwards, torch.stack(places), torch.stack(weights))
