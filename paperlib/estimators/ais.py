"""Annealed importance sampling (AIS), Neal (2001), as in Salakhutdinov & Murray (2008), section 3.1.

A chain starts at an exact draw of f_0. At every step its weight takes the factor f_{beta_k}(x) / f_{beta_{k-1}}(x), and
then the state moves by a transition that leaves p_{beta_k} invariant. The mean weight estimates Z_1 / Z_0 without bias
for any number of steps; its logarithm is too small on average (Jensen), and a log-probability computed with it is too
large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from paperlib.annealing import AnnealingPath, check_betas
from paperlib.annealing.path import State
from paperlib.annealing.walk import walk
from paperlib.estimators.blocks import count_blocks, step_bar, walk_in_blocks
from paperlib.estimators.bounds import log_z_lower_bound
from paperlib.estimators.estimate import (
    PartitionEstimate,
    find_warnings,
    require_finite_log_weights,
)
from paperlib.numerics import Beta, resolve_generator
from paperlib.validation import require_count


def ais(
    path: AnnealingPath,
    betas: object,
    num_chains: int,
    generator: torch.Generator | None = None,
    progress: bool | None = None,
) -> PartitionEstimate:
    """Estimate ln Z of the path's target, or ln(Z_B / Z_A) along a path between two models.

    Parameters
    ----------
    path : AnnealingPath
        For example `BaseRatePath(rbm, base_rate_bias(train))`.
    betas : sequence of K + 1 numbers
        0 = beta_0 < ... < beta_K = 1.
    num_chains : int
        Independent runs M; the error falls as 1 / sqrt(M K).
    generator : torch.Generator, optional
        On the path's device; None: a fresh one from system entropy.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal and it takes more than two seconds.

    Returns
    -------
    PartitionEstimate
        With M log-weights, the chains' final states and `warnings`, which should be read.

    Raises
    ------
    ValueError
        If the schedule does not run from 0 to 1, there is less than one chain, or the log-weights overflow.

    Notes
    -----
    Chains run in blocks: on a CPU of at most 500, side by side in torch's number of threads, on a GPU of 20,000. Memory beyond the
    result is that of the states of the blocks in flight. The result does not depend on the number of threads.
    """
    schedule = check_betas(betas).tolist()
    num_chains = require_count("num_chains", num_chains)
    generator = resolve_generator(generator, path.device)
    total = count_blocks(num_chains, path.num_visible, path.device) * (len(schedule) - 1)
    with step_bar(total, f"AIS, {num_chains} chains", progress) as bar:
        result = run_all_chains(path, schedule, num_chains, generator, bar.update)
    return summarize(path, *result)


def run_all_chains(
    path: AnnealingPath,
    schedule: Sequence[float],
    num_chains: int,
    generator: torch.Generator,
    on_step: Callable[[], object],
) -> tuple[Tensor, Tensor]:
    """`run_chains` for any number of chains, in blocks; `on_step` is called at every step of each block."""

    def walk(
        chains: slice, generator: torch.Generator, on_step: Callable[[], object]
    ) -> tuple[Tensor, Tensor]:
        return run_chains(path, schedule, chains.stop - chains.start, generator, on_step)

    blocks = walk_in_blocks(walk, num_chains, path.num_visible, generator, on_step)
    log_weights, final_visible = zip(*blocks, strict=True)
    return torch.cat(log_weights), torch.cat(final_visible)


def run_chains(
    path: AnnealingPath,
    schedule: Sequence[float],
    num_chains: int,
    generator: torch.Generator,
    on_step: Callable[[], object],
) -> tuple[Tensor, Tensor]:
    """Walk one block of chains; returns their log-weights, float64 [num_chains], and final visible units."""
    state = path.sample_start(num_chains, generator)
    # The first and the last distribution are the models' own, whatever is rounded on the way between them.
    log_weights = path.log_z_start - path.log_rounding(state, 0.0)

    def step(state: State, log_weights: Tensor, beta_from: Beta, beta_to: Beta) -> State:
        log_weights += path.log_ratio(state, beta_from, beta_to)
        return path.transition(state, beta_to, generator)

    state = walk(step, state, log_weights, schedule[:-1], generator, on_step)
    rounding = path.log_rounding(state, 1.0)
    state = step(state, log_weights, schedule[-2], 1.0)
    log_weights += rounding
    on_step()
    return log_weights, path.visible(state)


def summarize(path: AnnealingPath, log_weights: Tensor, final_visible: Tensor) -> PartitionEstimate:
    """The estimate that finished chains give, checked against what is known of the path's target.

    Raises
    ------
    ValueError
        If the log-weights overflowed.
    """
    require_finite_log_weights(log_weights)
    bound = None if path.target is None else log_z_lower_bound(path.target, final_visible)
    estimate = PartitionEstimate(log_weights, final_visible, bound)
    warnings = find_warnings(estimate, uniform_start=path.uniform_start)
    return replace(estimate, warnings=warnings)
