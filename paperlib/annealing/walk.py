"""The walk through a schedule of betas that AIS, RAISE and its heating chain share.

They differ in their step only: AIS adds to the weights and then moves the chains, RAISE moves them
first (`walk_moving_first`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing.path import AnnealingPath, State
from paperlib.errors import InputError
from paperlib.kernels import Beta, can_replay, replayed
from paperlib.threads import OnStep, walk_side_by_side

# From a state, the log-weights so far, which it adds to in place, the betas from which and to which
# it goes, and a generator, to the next state.
Step = Callable[[State, Tensor, Beta, Beta, torch.Generator], State]


def walk(
    path: AnnealingPath[State],
    step: Step[State],
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
            return step(state, log_weights, low, high, generator)

        chains = len(log_weights)
        return replayed(
            recorded_step, state, log_weights, betas, generator, lambda: on_step(chains)
        )
    threads = torch.get_num_threads()
    parts = path.divide(state, threads) if threads > 1 and len(betas) > 1 else []
    if not parts:
        return _loop(step, state, log_weights, betas, generator, on_step)

    walks = []
    generators = []
    weights_of_parts = []
    for index, part in parts:
        part_generator = generator.clone_state()
        part_weights = log_weights[index]
        generators.append(part_generator)
        weights_of_parts.append(part_weights)
        walks.append(partial(_loop, step, part, part_weights, betas, part_generator))
    states = walk_side_by_side(walks, on_step)
    # All copies are now in the same state.
    generator.set_state(generators[0].get_state())
    indices = [index for index, _ in parts]
    for index, part_weights in zip(indices, weights_of_parts, strict=True):
        log_weights[index] = part_weights
    return path.join(list(zip(indices, states, strict=True)))


def walk_moving_first(
    path: AnnealingPath[State],
    transition: Callable[[State, Beta, torch.Generator], State],
    state: State,
    log_weights: Tensor,
    betas: Sequence[float],
    generator: torch.Generator,
    on_step: OnStep,
) -> State:
    """A walk in which a transition at each beta comes before the weight of the step to the next.

    The log-weight of a chain grows by ln f at the next beta minus ln f at this one.
    """

    def step(
        state: State,
        log_weights: Tensor,
        beta_from: Beta,
        beta_to: Beta,
        generator: torch.Generator,
    ) -> State:
        state = transition(state, beta_from, generator)
        log_weights += path.log_ratio(state, beta_from, beta_to)
        return state

    return walk(path, step, state, log_weights, betas, generator, on_step)


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


def _loop(
    step: Step[State],
    state: State,
    log_weights: Tensor,
    betas: Sequence[float],
    generator: torch.Generator,
    on_step: OnStep,
) -> State:
    for beta_from, beta_to in pairwise(betas):
        state = step(state, log_weights, beta_from, beta_to, generator)
        on_step(len(log_weights))
    return state
