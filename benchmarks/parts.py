"""The parts of a step of AIS, each alone and on states of a real run, and of an update of CD-1: where the library's time goes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice

import torch
from torch import Tensor

from benchmarks.work import Work
from paperlib.annealing import BaseRatePath
from paperlib.kernels import draw_bits_of_logits, draw_units, softplus_increment, sum_where
from paperlib.kernels.products import BinaryProduct, binary_product
from paperlib.numerics import seeded_generator

# Consecutive states of the chains, so that as many units change from one product to the next as in a run.
_STATES = 20
_BETA, _NEXT_BETA = 0.5, 0.51


def _repeat(part: Callable[[], object], work: Work) -> Callable[[], None]:
    """The part as often as the work has steps or updates."""

    def run() -> None:
        for _ in range(work.steps):
            part()

    return run


class _Walk:
    """Consecutive states of the chains of a run, and the products between the layers."""

    def __init__(self, work: Work, device: str) -> None:
        self.rbm, self.steps = work.model(device), work.steps
        self.generator = seeded_generator(1, device)
        largest = self.rbm.weights.abs().max()
        self.to_hidden = binary_product(self.rbm.weights, largest)
        self.to_visible = binary_product(self.rbm.weights.T.contiguous(), largest)
        path = BaseRatePath(self.rbm, self.rbm.visible_bias)
        state = path.sample_start(work.chains, self.generator)
        self.v, self.h = [], []
        for _ in range(_STATES):
            state = path.transition(state, _BETA, self.generator)
            self.v.append(state.v)
            self.h.append(draw_bits_of_logits(state.hidden_input, self.generator, _BETA))
        self.hidden_input = state.hidden_input
        self.visible_input = self.to_visible(self.h[-1], _BETA, self.rbm.visible_bias)

    def products(
        self, product: BinaryProduct, states: list[Tensor], offset: Tensor
    ) -> Callable[[], None]:
        """As many products, of states that follow upon each other."""

        def run() -> None:
            memory = {}
            for state in islice(cycle(states + states[-2:0:-1]), self.steps):
                product(state, _BETA, offset, memory)

        return run


def prepare_hidden_draws(work: Work, device: str) -> Callable[[], None]:
    """draw_bits_of_logits(inputs of h, generator, beta)."""
    walk = _Walk(work, device)
    return _repeat(lambda: draw_bits_of_logits(walk.hidden_input, walk.generator, _BETA), work)


def prepare_visible_products(work: Work, device: str) -> Callable[[], None]:
    """binary_product(W.T)(h, beta, b, memory)."""
    walk = _Walk(work, device)
    return walk.products(walk.to_visible, walk.h, walk.rbm.visible_bias)


def prepare_visible_draws(work: Work, device: str) -> Callable[[], None]:
    """draw_bits_of_logits(inputs of v, generator)."""
    walk = _Walk(work, device)
    return _repeat(lambda: draw_bits_of_logits(walk.visible_input, walk.generator), work)


def prepare_hidden_products(work: Work, device: str) -> Callable[[], None]:
    """binary_product(W)(v, beta, a, memory)."""
    walk = _Walk(work, device)
    return walk.products(walk.to_hidden, walk.v, walk.rbm.hidden_bias)


def prepare_weights(work: Work, device: str) -> Callable[[], None]:
    """softplus_increment(inputs of h, beta, next beta) and sum_where(v, differences of biases)."""
    walk = _Walk(work, device)

    def part() -> None:
        softplus_increment(walk.hidden_input, _BETA, _NEXT_BETA)
        sum_where(walk.v[0], walk.rbm.visible_bias)

    return _repeat(part, work)


class _Update:
    """Layers of a minibatch, half of them on, and weights with their velocity."""

    def __init__(self, work: Work, device: str) -> None:
        self.generator = seeded_generator(1, device)
        self.v = torch.full((work.chains, work.visible), 0.5, device=device)
        self.h = torch.full((work.chains, work.hidden), 0.5, device=device)
        self.weights = work.initial(device).weights
        self.velocity = torch.zeros_like(self.weights)


def prepare_update_draws(work: Work, device: str) -> Callable[[], None]:
    """draw_units(probabilities, generator) of h and of v."""
    update = _Update(work, device)

    def part() -> None:
        draw_units(update.h, update.generator)
        draw_units(update.v, update.generator)

    return _repeat(part, work)


def prepare_update_logistics(work: Work, device: str) -> Callable[[], None]:
    """torch.sigmoid of the inputs of h, of v and of h again."""
    update = _Update(work, device)

    def part() -> None:
        for layer in (update.h, update.v, update.h):
            torch.sigmoid(layer)

    return _repeat(part, work)


def prepare_update_weights(work: Work, device: str) -> Callable[[], None]:
    """weights.add_(velocity)."""
    update = _Update(work, device)
    return _repeat(lambda: update.weights.add_(update.velocity), work)
