"""Annealed importance sampling (AIS): Neal (2001); Salakhutdinov & Murray (2008), section 3.1.

A chain starts at an exact draw from f_0. At every step its weight is multiplied by f_{beta_k}(x) /
f_{beta_{k-1}}(x), and then a transition that leaves p_{beta_k} invariant moves the state. The mean
weight estimates Z_1 / Z_0 without bias for any number of steps; its logarithm is too small on
average (Jensen), and a log-probability computed with it is too large.

If unsure: 100 chains and 10,000 equal steps, from the base rates of the training images. When the
weights vary too much, more steps help more than more chains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing import AnnealingPath, check_betas
from paperlib.annealing.path import State
from paperlib.annealing.walk import require_ratios, walk
from paperlib.errors import InputError
from paperlib.estimators.blocks import walk_in_blocks
from paperlib.estimators.estimate import (
    MORE_STEPS,
    PartitionEstimate,
    find_warnings,
    require_finite_log_weights,
)
from paperlib.numerics import resolve_generator
from paperlib.threads import OnStep, one_thread, step_bar
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, require_count


@plain_torch(gradients=False)
def ais(
    path: AnnealingPath[Any],
    betas: ArrayLike,
    num_chains: int,
    generator: torch.Generator | int | None = None,
    progress: bool | None = None,
    *,
    check: bool = True,
    on_step: OnStep | None = None,
) -> PartitionEstimate:
    """Estimate ln Z of the path's target by annealed importance sampling.

    Along a path whose start has no known partition function the estimate is of ln(Z_1 / Z_0).

    Parameters
    ----------
    path : AnnealingPath
        For example `BaseRatePath(rbm, base_rate_bias(train))`, with `base_rate_bias` from
        `paperlib.datasets`.
    betas : sequence of K + 1 numbers, or int
        0 = beta_0 < ... < beta_K = 1; a number K stands for `uniform_betas(K)`, K equal steps.
    num_chains : int
        Independent runs M; the error falls as 1 / sqrt(M K).
    generator : torch.Generator or int, optional
        On the path's device, or a seed; None: a fresh one from system entropy.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal and the run takes more than
        two seconds.
    check : bool
        Look for reasons not to believe the estimate, including a proven bound on ln Z, which costs
        as much for one step as for thousands. If False, there are no `warnings`.
    on_step : callable, optional
        Called with the number of chains that have taken a step (K times `num_chains` in total), in
        place of the progress bar.

    Returns
    -------
    PartitionEstimate
        With M log-weights, the chains' final states and `warnings`, which should be read.

    Raises
    ------
    InputError
        If the schedule does not run from 0 to 1, `num_chains` is less than 1, or the log-weights
        overflow.

    Notes
    -----
    Chains run in blocks of `path.chains_per_block`. For models with wide layers on a CPU, the
    blocks run in parallel, in as many threads as torch uses. Memory holds the result, twice while
    its parts are joined, and the states of the blocks in progress. The result does not depend on
    the number of threads.

    Examples
    --------
    >>> import torch
    >>> from paperlib.annealing import BaseRatePath
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))  # 2^5 states, all alike
    >>> estimate = ais(BaseRatePath(rbm), 10, num_chains=5)
    >>> round(estimate.log_z / torch.tensor(2.0).log().item(), 6)
    5.0

    From the base rates of training images, in the steps of Salakhutdinov & Murray (2008), and with
    a seed:

    >>> from paperlib.annealing import salakhutdinov_murray_betas
    >>> from paperlib.datasets import base_rate_bias
    >>> path = BaseRatePath(rbm, base_rate_bias([[1, 1, 0], [1, 0, 0], [0, 1, 0]]))
    >>> estimate = ais(path, salakhutdinov_murray_betas(0.01), num_chains=5, generator=0)
    >>> len(estimate.log_weights)
    5
    """
    require_path(path)
    schedule = check_betas(betas).tolist()
    num_chains = require_count("num_chains", num_chains)
    generator = resolve_generator(generator, path.device)
    total = num_chains * (len(schedule) - 1)
    with step_bar(total, f"AIS, {num_chains} chains", False if on_step else progress) as bar:
        report = bar.update if on_step is None else on_step

        def walk_block(
            chains: slice, generator: torch.Generator, on_step: OnStep
        ) -> tuple[Tensor, Tensor]:
            return run_chains(path, schedule, chains.stop - chains.start, generator, on_step)

        blocks = walk_in_blocks(walk_block, num_chains, path, generator, report)
    log_weights = torch.cat([weights for weights, _ in blocks])
    final_states = torch.cat([units for _, units in blocks])
    return summarize(path, log_weights, final_states, check)


def require_path(path: object) -> AnnealingPath[Any]:
    """The path, or an InputError unless it is one."""
    if not isinstance(path, AnnealingPath):
        raise InputError(
            f"path: expected an AnnealingPath, such as BaseRatePath(rbm), got {type(path).__name__}"
        )
    return path


def run_chains(
    path: AnnealingPath[State],
    schedule: Sequence[float],
    num_chains: int,
    generator: torch.Generator,
    on_step: OnStep,
) -> tuple[Tensor, Tensor]:
    """The log-weights, float64 [num_chains], and the final units of one block of chains."""
    state, log_weights = begin_forward(path, num_chains, generator)
    require_ratios(path, state, num_chains, *schedule[:2])

    steps = path.forward_steps
    state = walk(path, steps, state, log_weights, schedule[:-1], generator, on_step)
    with one_thread():
        # The last weight is that of the state before its last transition: so is its correction.
        correction = path.end_correction(state, 1)
        state = steps(state, log_weights, schedule[-2:], generator)
        log_weights += correction
    on_step(num_chains)
    return log_weights, path.units(state)


def begin_forward(
    path: AnnealingPath[State], num_chains: int, generator: torch.Generator
) -> tuple[State, Tensor]:
    """Draws from the start, and their log-weights so far, float64 [num_chains].

    The first and last distributions are exactly those of the models, even if the path rounds the
    ones in between.
    """
    state = path.sample_start(num_chains, generator)
    start = path.log_z_start or 0.0
    log_weights = torch.full((num_chains,), start, dtype=torch.float64, device=path.device)
    with one_thread():
        log_weights -= path.end_correction(state, 0)
    return state, log_weights


def summarize(
    path: AnnealingPath[Any],
    log_weights: Tensor,
    final_states: Tensor,
    check: bool = True,
    advice: str = MORE_STEPS,
) -> PartitionEstimate:
    """The estimate from finished chains, with warnings unless `check` is False.

    `advice` says what to do about weights that vary too much.
    """
    require_finite_log_weights(log_weights)
    if not check:
        return PartitionEstimate(log_weights, final_states)
    bound = path.log_z_lower_bound(final_states)
    estimate = PartitionEstimate(log_weights, final_states, bound)
    warnings = find_warnings(estimate, path.uniform_start, advice)
    return replace(estimate, warnings=warnings)
