"""Sequential Monte Carlo samplers (SMC), Del Moral, Doucet & Jasra (2006): AIS whose chains are resampled on the way.

When the weights of a population have become uneven, its chains are redrawn in proportion to them and go on with equal weights, so
that the work goes to the states that make up Z. For a fixed schedule a population's estimate of Z is unbiased, as in AIS, which is
the case without resampling.

The betas are given, or are found by a pilot population (`paperlib.estimators.smc.pilot`), whose steps count towards the budget but not
in the estimate. The chains of a population depend on each other, so the error comes from several independent populations. For large
populations, ln Z-hat is close to normal, with a mean that is below ln Z by half its variance (Berard, Del Moral & Doucet 2014); the
error stated here is that of the logarithm of a mean of log-normal numbers.

Resampling does not bring back modes that no chain has met. A population whose chains all descend from a few ancestors has seen
little more than those few, and gets a warning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
from paperlib.estimators.smc.pilot import pilot_schedule
from paperlib.estimators.smc.resampling import effective_part, systematic
from paperlib.numerics import log_mean_exp, resolve_generator
from paperlib.threads import OnStep, step_bar
from paperlib.validation import ArrayLike, require_count

#: The fraction of the chains to which the conditional effective sample size falls in a step of the pilot.
CESS = 0.9
#: A population is resampled when its effective part falls below this.
THRESHOLD = 0.5
# The pilot may spend one part in this many of the budget.
_PILOT_SHARE = 4
# The relative variance of a population's estimate is about one over its number of families (after Lee & Whiteley 2018), here a fifth.
_FEWEST_FAMILIES = 5
# If populations' estimates spread by more nats than this, ten of them do not show the largest.
_WIDEST_SPREAD = 1.0


@dataclass(frozen=True, repr=False)
class SMCEstimate(StudentEstimate):
    """An estimate of ln Z, or of ln(Z_1 / Z_0), from R independent populations of N chains.

    Attributes
    ----------
    log_weights : Tensor, shape [R]
        ln of each population's estimate of Z, float64, in nats; for a fixed schedule the estimates are unbiased.
    betas : Tensor, shape [K + 1]
        The schedule that all populations walked.
    chain_steps : int
        Transitions of single chains that were spent, including the pilot's.
    families : Tensor, shape [R]
        Effective number of a population's initial chains with descendants at its end: (sum f)^2 / sum f^2 over the weights f of these.
    final_states : Tensor, shape [R, N, n]
        The units that the path moves, at the end of each chain: draws from the target if weighted with `chain_log_weights`.
    chain_log_weights : Tensor, shape [R, N]
        ln of each chain's own weight. The mean weight of a population is its estimate of Z.
    warnings : tuple of str
        Reasons not to believe the estimate; empty if none was found, which proves nothing.
    ancestors : Tensor, shape [R]
        How many of a population's N initial chains have descendants at its end.
    resampled : Tensor, shape [R]
        How often each population was resampled.
    lower_bound : float or None
        A proven lower bound on the same ln Z, where one is known.

    Examples
    --------
    >>> ones = torch.ones(3, dtype=torch.int64)
    >>> log_weights = torch.tensor([1.0, 1.2, 1.1], dtype=torch.float64)
    >>> estimate = SMCEstimate(
    ...     log_weights, torch.tensor([0.0, 1.0]), 3, ones, torch.zeros(3, 1, 2), log_weights[:, None],
    ...     ancestors=ones, resampled=0 * ones,
    ... )
    >>> estimate
    SMCEstimate(log_z = 1.103 +- 0.058 nats, 3 populations of 1 chains, 3 chain-steps)
    >>> print(", ".join(f"{end:.2f}" for end in estimate.interval(0.95)))
    0.85, 1.35
    """

    log_weights: Tensor
    betas: Tensor
    chain_steps: int
    families: Tensor
    final_states: Tensor
    chain_log_weights: Tensor
    warnings: tuple[str, ...] = ()
    ancestors: Tensor = field(kw_only=True)
    resampled: Tensor = field(kw_only=True)
    lower_bound: float | None = field(default=None, kw_only=True)

    @property
    def degrees_of_freedom(self) -> int:
        """The number of populations minus one; those of the standard error."""
        return len(self.log_weights) - 1

    @property
    def log_z(self) -> float:
        """ln of the mean estimate, in nats."""
        return log_mean_exp(self.log_weights).item()

    @property
    def std_error(self) -> float:
        """Standard error of `log_z`, in nats, from the spread between populations; infinite for one population."""
        return log_z_std_error(self.log_weights).item()

    def _details(self) -> str:
        populations, chains = self.chain_log_weights.shape
        return f", {populations} populations of {chains} chains, {self.chain_steps:,} chain-steps"


def smc(
    path: AnnealingPath[Any],
    num_chains: int,
    generator: torch.Generator | None = None,
    progress: bool | None = None,
    *,
    betas: ArrayLike | None = None,
    chain_steps: int | None = None,
    num_populations: int = 10,
) -> SMCEstimate:
    """Estimate ln Z of the path's target, or ln(Z_1 / Z_0) where the start has no known partition function.

    Parameters
    ----------
    path : AnnealingPath
        For example `BaseRatePath(rbm, base_rate_bias(train))`.
    num_chains : int
        N, in each population; a hundred or more.
    generator : torch.Generator, optional
        On the path's device; None: a fresh one from system entropy.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal and the run takes more than two seconds.
    betas : sequence of K + 1 numbers, optional
        0 = beta_0 < ... < beta_K = 1. None: a pilot population of N chains finds them.
    chain_steps : int, optional
        The budget: at most this many transitions of single chains, including the pilot's. As many steps as it allows are then spread
        over the distance that the pilot has measured. None: they are as long as the pilot's.
    num_populations : int
        Independent populations R, from whose spread the error follows.

    Returns
    -------
    SMCEstimate
        With one log-weight for each population, and `warnings`, which should be read.

    Raises
    ------
    InputError
        If `path` is not a path, an option is out of range, both `betas` and `chain_steps` are given, the budget is less than two steps
        of all chains, ln f is not continuous along the path, or the log-weights overflow.

    Notes
    -----
    As many whole populations as fit into `path.chains_per_block` chains walk together in a block. For models with wide layers on a
    CPU, the blocks run in parallel, in as many threads as torch uses. The result does not depend on the number of threads.

    Examples
    --------
    >>> from paperlib.annealing import BaseRatePath
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))  # 2^5 states, all alike
    >>> estimate = smc(BaseRatePath(rbm), num_chains=20)
    >>> round(estimate.log_z / torch.tensor(2.0).log().item(), 6)
    5.0
    >>> estimate.betas.tolist()  # nothing changes along this path
    [0.0, 1.0]
    """
    require_path(path)
    num_chains = require_count("num_chains", num_chains)
    num_populations = require_count("num_populations", num_populations)
    everyone = num_chains * num_populations
    schedule, paid, notes = None, 0, []
    if betas is not None:
        if chain_steps is not None:
            raise InputError("chain_steps: expected none beside given betas, got both")
        schedule = check_betas(betas).tolist()
    elif chain_steps is not None:
        chain_steps = require_count("chain_steps", chain_steps, 2 * everyone)
    generator = resolve_generator(generator, path.device)
    with step_bar(chain_steps or 0, f"SMC, {num_populations} populations", progress) as bar:
        if schedule is None:
            most = None
            if chain_steps is not None:
                most = max(1, chain_steps // (_PILOT_SHARE * num_chains))
            pilot = pilot_schedule(path, num_chains, CESS, THRESHOLD, generator, bar.update, most)
            schedule, paid = pilot.betas, pilot.chain_steps
            if chain_steps is not None:
                schedule = pilot.spread(max(1, (chain_steps - paid) // everyone))
            if not pilot.complete:
                notes.append(
                    f"The pilot came to beta = {pilot.betas[-1]:.2g} with its share of the budget, and the betas beyond are guessed; "
                    "raise chain_steps."
                )
        paid += everyone * (len(schedule) - 1)
        bar.total = paid
        walk_block = partial(_walk_block, path, num_chains, schedule)
        size = max(1, path.chains_per_block // num_chains)
        blocks = walk_in_blocks(walk_block, num_populations, path, generator, bar.update, size)
    found: dict[str, Any] = {
        name: torch.cat([block[name] for block in blocks]) for name in blocks[0]
    }
    require_finite_log_weights(found["chain_log_weights"])
    estimate = SMCEstimate(
        log_mean_exp(found["chain_log_weights"], 1),
        torch.tensor(schedule, dtype=torch.float64),
        paid,
        **found,
    )
    bound = path.log_z_lower_bound(estimate.final_states.flatten(0, 1))
    impossible = below_bound(estimate.log_z, estimate.interval(0.997)[1], bound)
    warnings = (*impossible, *notes, *_population_warnings(estimate, path.uniform_start))
    return replace(estimate, lower_bound=bound, warnings=warnings)


def _walk_block(
    path: AnnealingPath[Any],
    num_chains: int,
    schedule: Sequence[float],
    block: slice,
    generator: torch.Generator,
    on_step: OnStep,
) -> dict[str, Tensor]:
    """A block of populations that walk together."""
    populations = block.stop - block.start
    shape, device = (populations, num_chains), path.device
    state, log_weights = begin_forward(path, populations * num_chains, generator)
    log_weights = log_weights.view(shape)
    # the part of ln Z that resampling has taken out of the weights
    log_z = torch.zeros(populations, dtype=torch.float64, device=device)
    first = torch.arange(num_chains, device=device).repeat(populations, 1)
    resampled = torch.zeros(populations, dtype=torch.int64, device=device)
    for beta_from, beta_to in pairwise(schedule):
        log_weights += _by_population(path.log_ratio(state, beta_from, beta_to), shape)
        if beta_to == 1:
            log_weights += _by_population(path.end_correction(state, 1), shape)
        uneven = effective_part(log_weights) < THRESHOLD
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
        "families": 1 / family.square().sum(1),
        "ancestors": alive,
        "resampled": resampled,
        "final_states": units.reshape(*shape, units.shape[-1]),
        "chain_log_weights": log_weights,
    }


def _population_warnings(found: SMCEstimate, uniform_start: bool) -> list[str]:
    """Reasons not to believe the populations' joint estimate, each a sentence that says what was seen and what to do."""
    warnings = []
    families, chains = found.families.median().item(), found.chain_log_weights.shape[1]
    if bool((found.resampled > 0).any()) and families < _FEWEST_FAMILIES:
        warnings.append(
            f"The {chains} chains of a population descend from {families:.1f} effective ancestors (median): what the others might "
            "have met is lost; use more chains in each population, or more betas."
        )
    if len(found.log_weights) < 2:
        warnings.append("One population gives no error estimate; run ten.")
    elif (spread := found.log_weights.std().item()) > _WIDEST_SPREAD:
        warnings.append(
            f"The populations' estimates spread by {spread:.1f} nats; ln Z is probably too low; use more betas, or more chains in "
            "each population."
        )
    if uniform_start:
        warnings.append(UNIFORM_START)
    return warnings


def _by_population(values: Tensor | float, shape: tuple[int, int]) -> Tensor | float:
    """Values of all chains, reshaped to [R, N]; a single number stays as it is."""
    return values.view(shape) if isinstance(values, Tensor) and values.ndim else values


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
