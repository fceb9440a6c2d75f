"""Sequential Monte Carlo samplers (SMC), Del Moral, Doucet & Jasra (2006): AIS whose chains are resampled on the way.

When the weights of a population have become uneven, its chains are redrawn in proportion to them and go on with equal weights, so
that the work goes to the states that make up Z. For a fixed schedule a population's estimate of Z is unbiased, as in AIS, which is
the case without resampling.

The betas are given, or are found by a pilot population (`paperlib.estimators.smc.pilot`), whose steps count towards the budget but not
in the estimate. The chains of a population depend on each other, so the error comes from several independent populations.

Resampling does not bring back modes that no chain has met. A population whose chains all descend from a few ancestors has seen
little more than those few, and gets a warning.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing import AnnealingPath
from paperlib.estimators.estimate import StudentEstimate, below_bound
from paperlib.estimators.smc.populations import PopulationWalk, log_z_std_error
from paperlib.numerics import log_mean_exp
from paperlib.validation import ArrayLike


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
    walk = PopulationWalk(path, num_chains, num_populations, betas, chain_steps)
    title = f"SMC, {walk.num_populations} populations"
    estimate = SMCEstimate(**walk.run(title, generator, progress))
    bound = path.log_z_lower_bound(estimate.final_states.flatten(0, 1))
    impossible = below_bound(estimate.log_z, estimate.interval(0.997)[1], bound)
    return replace(estimate, lower_bound=bound, warnings=(*impossible, *estimate.warnings))
