"""Populations of chains that are resampled on the way, and the error of their mean estimate.

A population's estimate of Z is the product of its mean weights between resamplings, and is unbiased for a fixed schedule (Del Moral,
Doucet & Jasra 2006). Its chains depend on each other, so estimating the error takes several populations. For large populations,
ln Z-hat is close to normal, with a mean that is below ln Z by half its variance (Berard, Del Moral & Doucet 2014); the error stated
here is that of the logarithm of a mean of log-normal numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing import AnnealingPath, check_betas
from paperlib.errors import InputError
from paperlib.estimators.ais import begin_forward
from paperlib.estimators.blocks import walk_in_blocks
from paperlib.estimators.estimate import Number, StudentEstimate, require_finite_log_weights
from paperlib.numerics import log_mean_exp
from paperlib.threads import OnStep
from paperlib.validation import is_number, require_count, require_fraction

# The pilot may spend one part in this many of the budget.
_PILOT_SHARE = 4


@dataclass(frozen=True, repr=False)
class PopulationsEstimate(StudentEstimate[Number]):
    """What populations of chains estimate: the attributes that `SMCEstimate` and `TrajectoryEstimate` share.

    Attributes
    ----------
    log_weights : Tensor, shape [R, ...]
        ln of each population's estimate of Z, float64, in nats; for a fixed schedule the estimates are unbiased.
    betas : Tensor, shape [K + 1]
        The schedule that all populations walked.
    chain_steps : int
        Transitions of single chains that were spent, including the pilot's.
    families : Tensor, shape [R]
        Effective number of a population's initial chains with descendants at its end: (sum f)^2 / sum f^2 over the weights f of these.
    ancestors : Tensor, shape [R]
        How many of a population's N initial chains have descendants at its end.
    resampled : Tensor, shape [R]
        How often each population was resampled.
    final_states : Tensor, shape [R, N, n]
        The units that the path moves, at the end of each chain: draws from the target if weighted with `chain_log_weights`.
    chain_log_weights : Tensor, shape [R, N]
        ln of each chain's own weight. The mean weight of a population is its estimate of Z.
    warnings : tuple of str
        Reasons not to believe the estimate; empty if none was found, which proves nothing.
    """

    log_weights: Tensor
    betas: Tensor
    chain_steps: int
    families: Tensor
    ancestors: Tensor
    resampled: Tensor
    final_states: Tensor
    chain_log_weights: Tensor
    warnings: tuple[str, ...] = ()

    @property
    def degrees_of_freedom(self) -> int:
        """The number of populations minus one; those of the standard error."""
        return len(self.log_weights) - 1


@dataclass
class SMCOptions:
    """How populations walk: the options that `smc` and `log_z_along_training` take besides the path, checked."""

    num_chains: int
    num_populations: int = 10
    betas: Any = None
    chain_steps: int | None = None
    cess: float = 0.9
    threshold: float = 0.5

    def __post_init__(self) -> None:
        self.num_chains = require_count("num_chains", self.num_chains)
        self.num_populations = require_count("num_populations", self.num_populations)
        require_fraction("cess", self.cess)
        if not is_number(self.threshold) or not 0 <= self.threshold <= 1:
            raise InputError(f"threshold: expected a number from 0 to 1, got {self.threshold!r}")
        if self.betas is not None:
            if self.chain_steps is not None:
                raise InputError("chain_steps: expected none beside given betas, got both")
            self.betas = check_betas(self.betas).tolist()
        elif self.chain_steps is not None:
            least = 2 * self.num_chains * self.num_populations
            self.chain_steps = require_count("chain_steps", self.chain_steps, least)

    @property
    def pilot_steps(self) -> int | None:
        """How many steps the pilot may take; None if it may take as many as it needs."""
        if self.chain_steps is None:
            return None
        return max(1, self.chain_steps // (_PILOT_SHARE * self.num_chains))


def walk_populations(
    path: AnnealingPath[Any],
    schedule: Sequence[float],
    options: SMCOptions,
    generator: torch.Generator,
    on_step: OnStep,
    marks: Sequence[float] = (),
) -> dict[str, Tensor]:
    """Walk independent populations through a schedule, and resample those whose weights have become uneven.

    Returns what a `PopulationsEstimate` holds of them, by name, and as `marked` [R, T] ln of their estimates of Z at the `marks`.
    """
    walk_block = partial(_walk, path, schedule, options, marks)
    size = max(1, path.chains_per_block // options.num_chains)
    blocks = walk_in_blocks(walk_block, options.num_populations, path, generator, on_step, size)
    whole = {name: torch.cat([block[name] for block in blocks]) for name in blocks[0]}
    require_finite_log_weights(whole["chain_log_weights"])
    return whole


def _walk(
    path: AnnealingPath[Any],
    schedule: Sequence[float],
    options: SMCOptions,
    marks: Sequence[float],
    block: slice,
    generator: torch.Generator,
    on_step: OnStep,
) -> dict[str, Tensor]:
    """A block of populations that walk together."""
    populations, num_chains = block.stop - block.start, options.num_chains
    shape, device = (populations, num_chains), path.device
    state, log_weights = begin_forward(path, populations * num_chains, generator)
    log_weights = log_weights.view(shape)
    # the part of ln Z that resampling has taken out of the weights
    log_z = torch.zeros(populations, dtype=torch.float64, device=device)
    first = torch.arange(num_chains, device=device).repeat(populations, 1)
    resampled = torch.zeros(populations, dtype=torch.int64, device=device)
    marked = []
    for beta_from, beta_to in pairwise(schedule):
        log_weights += _by_population(path.log_ratio(state, beta_from, beta_to), shape)
        if beta_to == 1:
            log_weights += _by_population(path.end_correction(state, 1), shape)
        if beta_to in marks:
            marked.append(log_z + log_mean_exp(log_weights, 1))
        uneven = effective_part(log_weights) < options.threshold
        # At the end, resampling would only add noise.
        if beta_to < 1 and bool(uneven.any()):
            index = systematic(log_weights, uneven, generator)
            log_z += torch.where(uneven, log_mean_exp(log_weights, 1), 0.0)
            log_weights = log_weights.where(~uneven[:, None], 0.0)
            resampled += uneven
            first = first.gather(1, index)
            offset = num_chains * torch.arange(populations, device=device)[:, None]
            state = path.select(state, (index + offset).flatten())
        state = path.transition(state, beta_to, generator)
        on_step(populations * num_chains)
    log_weights = log_weights + log_z[:, None]
    shares = log_weights.softmax(1)
    family = torch.zeros_like(shares).scatter_add_(1, first, shares)
    alive = torch.zeros_like(shares).scatter_(1, first, 1.0).sum(1).long()
    units = path.units(state)
    return {
        "marked": torch.stack(marked, 1) if marked else log_z.new_zeros(populations, 0),
        "families": 1 / family.square().sum(1),
        "ancestors": alive,
        "resampled": resampled,
        "final_states": units.reshape(*shape, units.shape[-1]),
        "chain_log_weights": log_weights,
    }


def _by_population(values: Tensor | float, shape: tuple[int, int]) -> Tensor | float:
    """Values of all chains, reshaped to [R, N]; a single number stays as it is."""
    return values.view(shape) if isinstance(values, Tensor) and values.ndim else values


def effective_part(log_weights: Tensor) -> Tensor:
    """The effective sample size of each population as a fraction of its size, from log-weights [R, N]; between 1 / N and 1, [R]."""
    return 1 / (log_weights.softmax(1).square().sum(1) * log_weights.shape[1])


def systematic(log_weights: Tensor, uneven: Tensor, generator: torch.Generator) -> Tensor:
    """Systematic resampling of the `uneven` [R] populations: for each new chain, the number of the chain in its population that it continues.

    Each chain is continued as often as its share of the weights, float64 `log_weights` [R, N], demands, up to rounding.
    """
    populations, chains = log_weights.shape
    device = log_weights.device
    # One random number per population: of all schemes that need no sorting, this one adds the least noise in practice.
    start = torch.rand(populations, 1, dtype=torch.float64, device=device, generator=generator)
    stay = torch.arange(chains, device=device)
    places = (stay + start) / chains
    found = torch.searchsorted(log_weights.softmax(1).cumsum(1), places)
    return torch.where(uneven[:, None], found.clamp_(max=chains - 1), stay)


def log_z_std_error(log_z: Tensor) -> Tensor:
    """Standard error of the logarithm of the mean of R independent estimates of Z, from their logarithms [R, ...]; infinite for a single one.

    With s^2 the variance of the logarithms, it is sqrt(s^2 / R + s^4 / (2 (R - 1))). The second term comes from s^2 / 2, the
    distance in logarithms by which the mean of log-normal numbers lies above their median.
    """
    count = len(log_z)
    if count < 2:
        return torch.full_like(log_z[0], math.inf)
    variance = log_z.var(0)
    return (variance / count + variance.square() / (2 * (count - 1))).sqrt()
