"""ln Z at every checkpoint of training, from chains that walk through all of them.

Populations of chains walk a `TrajectoryPath` as in sequential Monte Carlo (`paperlib.estimators.smc.smc`). At the knot of a checkpoint, a
population's weight so far is an unbiased estimate of that checkpoint's Z, for a fixed schedule. Every estimate thus covers the whole
way from the start, and is not a sum of links whose errors would have to be added. Estimates at two checkpoints share their chains and
are correlated. The error of a difference is therefore computed from the differences of the populations, and is usually smaller than
the error of either estimate.

Desjardins, Courville & Bengio (2011) follow ln Z along training, and Bereux, Decelle, Furtlehner & Seoane (2025, 2026) sample along it;
neither program gives an error of ln Z.

A trajectory is longer than the direct way from base rates to the last checkpoint. Where the direct way has no jump, it is better for
ln Z of the last checkpoint: for an RBM of 64 x 8 units, six checkpoints and 60,000 chain-steps, the standard error was 0.16 nats along
training, and 0.014 along `BaseRatePath`. Nor does a trajectory protect against a wrong mode: where training itself jumps from one
checkpoint to the next, chains stay behind. The warnings are those of `smc`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.annealing import TrajectoryPath
from paperlib.errors import InputError
from paperlib.estimators.estimate import format_estimate, summary
from paperlib.estimators.smc.populations import (
    PopulationsEstimate,
    PopulationWalk,
    log_z_std_error,
)
from paperlib.numerics import log_mean_exp
from paperlib.threads import OnStep
from paperlib.validation import ArrayLike, require_count


@dataclass(frozen=True, repr=False)
class TrajectoryEstimate(PopulationsEstimate[Tensor]):
    """Estimates of ln Z at the T checkpoints of a path, from R populations of N chains that walk through all of them.

    Attributes
    ----------
    log_weights, betas, chain_steps, families, final_states, chain_log_weights, warnings, ancestors, resampled
        See `PopulationsEstimate`; `log_weights` has the shape [R, T], and `betas` includes all knots. States and weights of chains are
        those at the last checkpoint.

    Examples
    --------
    >>> log_weights = torch.tensor([[1.0, 2.0], [1.2, 2.3], [1.1, 2.1]], dtype=torch.float64)
    >>> nothing = torch.zeros(3, 1)
    >>> estimate = TrajectoryEstimate(
    ...     log_weights, torch.tensor([0.0, 0.5, 1.0]), 6, nothing, nothing, nothing, ancestors=nothing, resampled=nothing
    ... )
    >>> estimate
    TrajectoryEstimate(2 checkpoints, log_z = 2.141 +- 0.089 nats at the last)
    >>> change, error = estimate.difference(0, 1)
    >>> print(f"{change:.2f} +- {error:.2f}")
    1.04 +- 0.04
    """

    @property
    def log_z(self) -> Tensor:
        """ln of the mean estimate at each checkpoint, float64 [T], in nats."""
        return log_mean_exp(self.log_weights, 0)

    @property
    def std_error(self) -> Tensor:
        """Standard error of each `log_z`, float64 [T], including all errors since the start; infinite for one population.

        The level of `interval` holds for each checkpoint by itself.
        """
        return log_z_std_error(self.log_weights)

    def difference(self, first: int, second: int) -> tuple[float, float]:
        """ln Z of checkpoint `second` minus that of `first`, numbered from 0, and its standard error, in nats.

        The error is that of ln Z-hat_second - ln Z-hat_first from a jackknife over populations, so that errors which both share
        cancel. It is infinite for one population.

        Raises
        ------
        InputError
            If there is no such checkpoint.
        """
        count = self.log_weights.shape[1]
        for name, number in (("first", first), ("second", second)):
            if require_count(name, number, 0) >= count:
                raise InputError(f"{name}: expected a number from 0 to {count - 1}, got {number}")
        pair = self.log_weights[:, [first, second]]
        change = log_mean_exp(pair, 0).diff().item()
        populations = len(pair)
        if populations < 2:
            return change, float("inf")
        others = ~torch.eye(populations, dtype=torch.bool, device=pair.device)
        without = torch.stack([log_mean_exp(pair[rest], 0).diff() for rest in others])
        deviations = without - without.mean()
        variance = deviations.square().sum() * (populations - 1) / populations
        return change, variance.sqrt().item()

    def __repr__(self) -> str:
        last = format_estimate(self.log_z[-1].item(), self.std_error[-1].item())
        count = self.log_weights.shape[1]
        line = f"TrajectoryEstimate({count} checkpoints, log_z = {last} at the last)"
        return summary(line, self.warnings)


def log_z_along_training(
    path: TrajectoryPath,
    num_chains: int,
    generator: torch.Generator | None = None,
    progress: bool | None = None,
    *,
    betas: ArrayLike | None = None,
    chain_steps: int | None = None,
    num_populations: int = 10,
    cess: float = 0.9,
    threshold: float = 0.5,
    on_step: OnStep | None = None,
) -> TrajectoryEstimate:
    """Estimate ln Z at every checkpoint of a trajectory in one walk.

    Parameters
    ----------
    path : TrajectoryPath
        The path through T checkpoints.
    num_chains : int
        N, in each population; a hundred or more.
    generator : torch.Generator, optional
        On the path's device; None: a fresh one from system entropy.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal and the run takes more than two seconds.
    betas : sequence of K + 1 numbers, optional
        0 = beta_0 < ... < beta_K = 1. Missing knots are added. None: a pilot population finds betas.
    chain_steps : int, optional
        The budget, see `smc`: at least 2 (T + 1) steps of all chains.
    num_populations, cess, threshold
        See `smc`. With a threshold of 0 this is AIS, and each weight is that of a chain since the start.
    on_step : callable, optional
        Called with the number of chains that have taken a step, in place of the progress bar.

    Returns
    -------
    TrajectoryEstimate
        With an estimate and an error for each checkpoint, and `warnings`, which should be read.

    Raises
    ------
    InputError
        If `path` is not a `TrajectoryPath`, an option is out of range, both `betas` and `chain_steps` are given, the budget is too
        small, or the log-weights overflow.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> early = RBM([[0.1, -0.2], [0.5, 0.0]], [0.0, 0.0], [0.0, 0.0])
    >>> late = RBM([[1.0, -2.0], [0.5, 0.0]], [0.0, 0.0], [0.0, 0.0])
    >>> path = TrajectoryPath([early, late], visible_bias=[0.1, -0.1])
    >>> estimate = log_z_along_training(path, 100, torch.Generator().manual_seed(0))
    >>> from paperlib.estimators import exact_log_z
    >>> low, high = estimate.interval(0.99)
    >>> [bool(low[t] < exact_log_z(rbm) < high[t]) for t, rbm in enumerate([early, late])]
    [True, True]
    """
    if not isinstance(path, TrajectoryPath):
        raise InputError(f"path: expected a TrajectoryPath, got {type(path).__name__}")
    walk = PopulationWalk(path, num_chains, num_populations, betas, chain_steps, cess, threshold)
    knots = path.knots[1:].tolist()
    if walk.chain_steps is not None:
        least = 2 * (len(knots) + 1) * walk.num_chains * walk.num_populations
        require_count("chain_steps", walk.chain_steps, least)
    title = f"ln Z at {len(knots)} checkpoints"
    at_knots, found = walk.run(title, generator, progress, on_step, knots)
    return TrajectoryEstimate(at_knots, **found)
