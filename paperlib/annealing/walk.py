"""The walk through a schedule of betas that AIS, RAISE and its heating chain share."""

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

# From a state, log-weights, the betas from which and to which it goes, and a generator.
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
    """The last state after a step from each beta to the next, which adds to `log_weights` [chains] in place.

    The path determines whether a GPU may replay a step, and whether the chains can walk in parts,
    side by side in as many threads as torch has. The result does not depend on their number.
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

    copies = [generator.clone_state() for _ in parts]
    weights = [log_weights[index] for index, _ in parts]
    walks = [
        partial(_loop, step, part, own, betas, copy)
        for (_, part), own, copy in zip(parts, weights, copies, strict=True)
    ]
    states = walk_side_by_side(walks, on_step)
    # All copies are now in the same state.
    generator.set_state(copies[0].get_state())
    indices = [index for index, _ in parts]
    for index, own in zip(indices, weights, strict=True):
        log_weights[index] = own
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
    """At each beta, take a transition, then add ln of f at the next beta over f at this one to the log-weights."""

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
    """Raise an InputError unless the path has a finite log-ratio for each chain at the first step of a walk.

    A path may be a user's own. A `log_f` that sums over all chains would be added to every
    log-weight without a word.
    """
    ratios = path.log_ratio(state, beta_from, beta_to)
    require_one_for_each_chain(path, "log_f", ratios, chains)
    if not bool(torch.isfinite(ratios).all()):
        raise InputError(
            f"path: expected finite log-weights, got NaN or infinite ones at the first step; is log_f of {type(path).__name__} "
            "defined wherever its start can be, or are parameters too large for their floating-point type?"
        )


def require_one_for_each_chain(
    path: AnnealingPath[Any], member: str, values: object, chains: int
) -> None:
    """Raise an InputError unless a member of the path gave one number for each chain."""
    shape = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
    if shape != [chains]:
        raise InputError(
            f"path: expected one number for each of {chains} chains from {member} of {type(path).__name__}, a tensor of shape "
            f"[{chains}], got shape {shape}; a sum over the units of each chain is values.sum(1)"
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
