"""A new estimator: AIS whose chains are resampled on the way.

This is a sequential Monte Carlo sampler (Del Moral, Doucet & Jasra 2006).
When the weights of a population have become too uneven, its chains are redrawn
in proportion to them and go on with equal weights. The estimate of Z is
unbiased all the same. Resampling does not bring back modes that no chain has
met: a population that descends from a few chains has seen little more than
those few, and gets a warning.

Used in chapters: which-estimator-tells-the-truth, tempering-and-bennetts-ratio.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing import AnnealingPath, check_betas
from paperlib.errors import InputError
from paperlib.estimators.ais import begin_forward, require_path
from paperlib.estimators.blocks import walk_in_blocks
from paperlib.estimators.estimate import (
    UNIFORM_START,
    StudentEstimate,
    below_bound,
    require_finite_log_weights,
)
from paperlib.estimators.resampling import systematic
from paperlib.numerics import (
    effective_sample_size,
    log_mean_exp,
    resolve_generator,
)
from paperlib.threads import OnStep
from paperlib.validation import ArrayLike, require_count

# The relative variance of a population's estimate is about one over its number
# of families (after Lee & Whiteley 2018), here a fifth.
_FEWEST_FAMILIES = 5
# If estimates spread by more nats, ten of them do not show the largest.
_WIDEST_SPREAD = 1.0


@dataclass(frozen=True, repr=False)
class PopulationEstimate(StudentEstimate):
    """An estimate of ln Z by R independent populations of chains.

    Attributes
    ----------
    log_weights : Tensor, shape [R]
        ln of each population's estimate of Z, in nats; the estimates are
        unbiased.
    families : Tensor, shape [R]
        Effective number of a population's initial chains that have descendants
        at its end: (sum f)^2 / sum f^2 over the weights f of these.
    resampled : Tensor, shape [R]
        How often each population was resampled.
    warnings : tuple of str
        Reasons not to believe the estimate; empty if none was found, which
        proves nothing.
    """

    log_weights: Tensor
    families: Tensor
    resampled: Tensor
    warnings: tuple[str, ...] = ()

    @property
    def log_z(self) -> float:
        """ln of the mean estimate."""
        return log_mean_exp(self.log_weights).item()

    @property
    def std_error(self) -> float:
        """Of `log_z`, in nats, from the spread s between populations.

        The estimates are close to log-normal (Berard, Del Moral & Doucet 2014),
        and the logarithm of their mean has the variance
        s^2 / R + s^4 / (2 (R - 1)). The second term comes from s^2 / 2, by
        which the logarithm of the mean lies above the mean logarithm.
        """
        count = len(self.log_weights)
        if count < 2:
            return math.inf
        variance = self.log_weights.var()
        second_order = variance.square() / (2 * (count - 1))
        log_mean_variance = variance / count + second_order
        return log_mean_variance.sqrt().item()

    @property
    def degrees_of_freedom(self) -> int:
        """Of the standard error."""
        return len(self.log_weights) - 1


def annealed_smc(
    path: AnnealingPath[Any],
    betas: ArrayLike,
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
        If the schedule does not run from 0 to 1, a number is less than 1,
        `threshold` is outside [0, 1], or the log-weights overflow.

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
    num_populations = require_count("num_populations", num_populations)
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold: expected 0 to 1, got {threshold}")
    generator = resolve_generator(generator, path.device)
    walk = partial(_walk, path, schedule, num_chains, threshold)
    # Whole populations, as many as may walk together.
    size = max(1, path.chains_per_block // num_chains)
    blocks = walk_in_blocks(
        walk,
        num_populations,
        path,
        generator,
        on_step=lambda chains: None,
        size=size,
    )
    log_weights, families, resampled, units = (
        torch.cat(parts) for parts in zip(*blocks, strict=True)
    )
    require_finite_log_weights(log_weights)
    estimate = PopulationEstimate(log_weights, families, resampled)
    return replace(estimate, warnings=_find_warnings(estimate, path, units))


def _walk(
    path: AnnealingPath[Any],
    schedule: list[float],
    num_chains: int,
    threshold: float,
    populations: slice,
    generator: torch.Generator,
    on_step: OnStep,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Walk a block of populations.

    Returns the log-weight of each, its families, how often it was resampled,
    and the final units of all chains.
    """
    count = populations.stop - populations.start
    all_chains = count * num_chains
    state, log_weights = begin_forward(path, all_chains, generator)
    # the same numbers in memory, a row for each population
    rows = log_weights.view(count, num_chains)
    chains = torch.arange(all_chains, device=path.device)
    chains = chains.view(count, num_chains)
    ancestors = chains
    resampled = torch.zeros(count, dtype=torch.int64, device=path.device)
    # the part of ln Z that resampling has taken out of the weights
    log_z = torch.zeros(count, dtype=torch.float64, device=path.device)
    for beta_from, beta_to in pairwise(schedule):
        log_weights += path.log_ratio(state, beta_from, beta_to)
        if beta_to == 1:
            # Fast products round a model's weights; the end is the model's own.
            log_weights += path.end_correction(state, 1)
        uneven = effective_sample_size(rows) < threshold * num_chains
        # At the end, resampling would only add noise.
        if beta_to < 1 and bool(uneven.any()):
            log_z += torch.where(uneven, log_mean_exp(rows), 0.0)
            redrawn = systematic(rows, generator) + chains[:, :1]
            index = torch.where(uneven[:, None], redrawn, chains)
            state = path.select(state, index.flatten())
            ancestors = ancestors.flatten()[index]
            rows.masked_fill_(uneven[:, None], 0.0)
            resampled += uneven
        state = path.transition(state, beta_to, generator)
        on_step(all_chains)
    rows = rows + log_z[:, None]
    family = torch.zeros_like(log_weights)
    family.index_add_(0, ancestors.flatten(), rows.softmax(1).flatten())
    families = 1 / family.view_as(rows).square().sum(1)
    return log_mean_exp(rows), families, resampled, path.units(state)


def _find_warnings(
    estimate: PopulationEstimate, path: AnnealingPath[Any], units: Tensor
) -> tuple[str, ...]:
    """Reasons not to believe the estimate: what was seen, and what to do."""
    bound = path.log_z_lower_bound(units)
    warnings = below_bound(estimate.log_z, estimate.interval(0.997)[1], bound)
    populations = len(estimate.log_weights)
    families = estimate.families.median().item()
    if bool(estimate.resampled.any()) and families < _FEWEST_FAMILIES:
        warnings.append(
            f"The {len(units) // populations} chains of a population descend "
            f"from {families:.1f} effective ancestors (median): what the "
            "others might have met is lost; use more chains in each "
            "population, or more betas."
        )
    spread = estimate.log_weights.std().item() if populations > 1 else 0.0
    if populations < 2:
        warnings.append("One population gives no error estimate; run ten.")
    elif spread > _WIDEST_SPREAD:
        warnings.append(
            f"The populations' estimates spread by {spread:.1f} nats; ln Z is "
            "probably too low; use more betas, or more chains in each "
            "population."
        )
    if path.uniform_start:
        warnings.append(UNIFORM_START)
    return tuple(warnings)
