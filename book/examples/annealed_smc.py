"""A new estimator: AIS whose chains are resampled on the way.

This is a sequential Monte Carlo sampler (Del Moral et al. 2006). Whenever the
weights have become too uneven, the chains are redrawn in proportion to them
and go on with equal weights. The estimate of Z is unbiased all the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing import AnnealingPath, check_betas
from paperlib.errors import InputError
from paperlib.estimators.ais import require_path
from paperlib.estimators.estimate import Estimate
from paperlib.numerics import log_mean_exp, resolve_generator
from paperlib.validation import require_count


@dataclass(frozen=True, repr=False)
class PopulationEstimate(Estimate):
    """Estimates of ln Z by independent populations of chains.

    Attributes
    ----------
    log_weights : Tensor, shape [R]
        ln of each population's estimate of Z, in nats; the estimates are
        unbiased.
    resampled : int
        How often a population was resampled, in all.
    """

    log_weights: Tensor
    resampled: int

    @property
    def log_z(self) -> float:
        """ln of the mean estimate."""
        return log_mean_exp(self.log_weights).item()

    @property
    def std_error(self) -> float:
        """Of `log_z`, in nats, from the spread between populations."""
        count = len(self.log_weights)
        if count < 2:
            return math.inf
        estimates = torch.exp(self.log_weights - self.log_weights.max())
        return (estimates.std() / estimates.mean()).item() / math.sqrt(count)


def annealed_smc(
    path: AnnealingPath[Any],
    betas: object,
    num_chains: int,
    num_populations: int = 10,
    generator: torch.Generator | None = None,
    threshold: float = 0.5,
) -> PopulationEstimate:
    """Estimate ln Z as `ais` does, by annealing with resampling.

    Parameters
    ----------
    path : AnnealingPath
        Any: only its states, weights, transitions and `select` are used.
    betas : sequence of K + 1 numbers
        0 = beta_0 < ... < beta_K = 1.
    num_chains, num_populations : int
        Chains of a population, and how many populations there are, R; the
        error follows from their spread.
    generator : torch.Generator, optional
        On the path's device; None: a fresh one from system entropy.
    threshold : float
        Resample when fewer effective chains than this part of all are left,
        from 0 (never) to 1.

    Raises
    ------
    InputError
        If the schedule does not run from 0 to 1, a number is less than 1, or
        `threshold` is outside [0, 1].

    Examples
    --------
    >>> from paperlib.annealing import BaseRatePath
    >>> from paperlib.models import RBM
    >>> path = BaseRatePath(RBM([[0.0]], [0.0], [0.0]))  # four states, alike
    >>> round(math.exp(annealed_smc(path, [0, 0.5, 1], 10).log_z), 6)
    4.0
    """
    require_path(path)
    schedule = check_betas(betas).tolist()
    num_chains = require_count("num_chains", num_chains)
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold: expected 0 to 1, got {threshold}")
    generator = resolve_generator(generator, path.device)
    runs = [
        _population(path, schedule, num_chains, generator, threshold)
        for _ in range(require_count("num_populations", num_populations))
    ]
    log_z, resampled = zip(*runs, strict=True)
    return PopulationEstimate(torch.stack(log_z), sum(resampled))


def _population(
    path: AnnealingPath[Any],
    schedule: list[float],
    num_chains: int,
    generator: torch.Generator,
    threshold: float,
) -> tuple[Tensor, int]:
    """ln of one population's estimate, and how often it was resampled."""
    state = path.sample_start(num_chains, generator)
    log_weights = torch.zeros(num_chains, device=path.device).double()
    # Fast products round a model's weights; the ends are the models' own.
    log_weights -= path.end_correction(state, 0)
    log_z = torch.zeros_like(log_weights[0]) + (path.log_z_start or 0.0)
    resampled = 0
    for beta_from, beta_to in pairwise(schedule):
        log_weights += path.log_ratio(state, beta_from, beta_to)
        if beta_to == 1:
            log_weights += path.end_correction(state, 1)
        shares = log_weights.softmax(0)
        if 1 / shares.square().sum() < threshold * num_chains:
            log_z = log_z + log_mean_exp(log_weights)
            state = path.select(state, _systematic(shares, generator))
            log_weights.zero_()
            resampled += 1
        state = path.transition(state, beta_to, generator)
    return log_z + log_mean_exp(log_weights), resampled


def _systematic(shares: Tensor, generator: torch.Generator) -> Tensor:
    """Indices of chains, each as often as its share demands, up to rounding."""
    count = len(shares)
    start = torch.rand(
        1, dtype=shares.dtype, device=shares.device, generator=generator
    )
    places = (torch.arange(count, device=shares.device) + start) / count
    return torch.searchsorted(shares.cumsum(0), places).clamp(max=count - 1)
