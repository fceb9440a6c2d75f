"""The walk through a schedule of betas that AIS, RAISE and its heating chain share.

They differ in their steps only: AIS adds to the weights and then moves the chains
(`AnnealingPath.forward_steps`), RAISE moves them first (`AnnealingPath.reverse_steps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing.path import AnnealingPath, State, Steps
from paperlib.errors import InputError
from paperlib.kernels import Beta, can_replay, replayed, steps_at_a_time
from paperlib.threads import OnStep, one_thread, walk_side_by_side


def walk(
    path: AnnealingPath[State],
    take_steps: Steps[State],
    state: State,
    log_weights: Tensor,
    betas: Sequence[float],
    generator: torch.Generator,
    on_step: OnStep,
) -> State:
    """Take a step from each beta to the next, and return the last state.

    Steps add to `log_weights` [chains] in place. The path determines whether a GPU may replay a
    step, and whether the chains can walk in parts, side by side in as many threads as torch has.
    The result does not depend on the number of threads.
    """
    if path.replayable and can_replay(log_weights.device) and len(betas) > 1:

        def recorded_step(state: State, log_weights: Tensor, low: Beta, high: Beta) -> State:
            return take_steps(state, log_weights, (low, high), generator)

        chains = len(log_weights)
        return replayed(
            recorded_step, state, log_weights, betas, generator, lambda: on_step(chains)
        )
    most = steps_at_a_time(len(log_weights), path.num_visible)
    threads = torch.get_num_threads()
    parts = path.divide(state, threads) if threads > 1 and len(betas) > 1 else []
    if not parts:
        # Threads of torch would wait for each other at each small product.
        with one_thread():
            return _walk(take_steps, most, state, log_weights, betas, generator, on_step)

    walks = []
    generators = []
    weights_of_parts = []
    for index, part in parts:
        part_generator = generator.clone_state()
        part_weights = log_weights[index]
        generators.append(part_generator)
        weights_of_parts.append(part_weights)
        walks.append(partial(_walk, take_steps, most, part, part_weights, betas, part_generator))
    states = walk_side_by_side(walks, on_step)
    # All copies are now in the same state.
    generator.set_state(generators[0].get_state())
    indices = [index for index, _ in parts]
    for index, part_weights in zip(indices, weights_of_parts, strict=True):
        log_weights[index] = part_weights
    return path.join(list(zip(indices, states, strict=True)))


def _walk(
    take_steps: Steps[State],
    most: int,
    state: State,
    log_weights: Tensor,
    betas: Sequence[float],
    generator: torch.Generator,
    on_step: OnStep,
) -> State:
    """Take the steps, at most so many at a time, and report them."""
    for begin in range(0, len(betas) - 1, most):
        some = betas[begin : begin + most + 1]
        state = take_steps(state, log_weights, some, generator)
        on_step((len(some) - 1) * len(log_weights))
    return state


def require_ratios(
    path: AnnealingPath[State], state: State, chains: int, beta_from: float, beta_to: float
) -> None:
    """Raise an InputError unless each chain has a finite log-ratio at the first step of a walk.

    A path may be a user's own. A `log_f` that sums over all chains would be added to every
    log-weight without a word.
    """
    ratios = path.log_ratio(state, beta_from, beta_to)
    require_one_for_each_chain(path, "log_f", ratios, chains)
    if not bool(torch.isfinite(ratios).all()):
        raise InputError(
            "path: expected finite log-weights, got NaN or infinite ones at the first step; "
            f"is log_f of {type(path).__name__} defined wherever its start can be, "
            "or are parameters too large for their floating-point type?"
        )


def require_one_for_each_chain(
    path: AnnealingPath[Any], member: str, values: object, chains: int
) -> None:
    """Raise an InputError unless a member of the path gave one number for each chain."""
    shape = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
    if shape != [chains]:
        raise InputError(
            f"path: expected one number for each of {chains} chains "
            f"from {member} of {type(path).__name__}, a tensor of shape [{chains}], "
            f"got shape {shape}; a sum over the units of each chain is values.sum(1)"
        )
