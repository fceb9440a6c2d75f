"""A short walk in which every compiled function has a part, for `paperlib.kernels.capability`.

A few steps of AIS, of RAISE and of parallel tempering in two models, whose layers are so wide that
products are made in all the ways that `paperlib.kernels.products` knows. The lower eight bits of
all weights but one are the smallest number, -128: two neighbours are too much for 16 bits, in which
processors without instructions for such products add them.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from paperlib.kernels.draws import draw_bits, draw_units, sum_where
from paperlib.kernels.matlab import MatlabUniform
from paperlib.kernels.products import Memory
from paperlib.kernels.sampler import BipartiteSampler
from paperlib.kernels.tempering import Ladder, tempering_steps

# Visible and hidden units.
_SIZES = (128, 32), (32, 128)
# The betas of AIS.
_SCHEDULE = (0.0, 0.5, 1.0)
# The betas of parallel tempering, so close that some swaps are accepted and some are not.
_TEMPERATURES = (0.9, 0.95, 1.0)
_REPLICAS = 10
_CHAINS = _REPLICAS * len(_TEMPERATURES)
_STEPS = 2
# One with which no draw depends on the last digits of its probability.
_SEED = 1

# Visible units, their inputs to the hidden ones, and the sums of the biases of those that are on.
_State = tuple[Tensor, Tensor, Tensor]


def short_walk() -> list[Tensor]:
    """Draws, inputs and log-ratios, in float64, with the functions that `compiled` gives."""
    generator = torch.Generator("cpu").manual_seed(_SEED)
    results = [draw_units(torch.linspace(0, 1, 101, dtype=torch.float32), generator)]
    results.append(torch.from_numpy(MatlabUniform(_SEED).draw(100)))
    for visible, hidden in _SIZES:
        sampler = BipartiteSampler(_weights(visible, hidden), _biases(hidden), [slice(None)])
        results += _anneal(sampler, _biases(visible), generator)
        results += _anneal_back(sampler, _biases(visible), generator)
        results += _temper(sampler, _biases(visible), generator)
    return [result.double() for result in results]


def _weights(visible: int, hidden: int) -> Tensor:
    """Of both signs; the largest one sets the scale of the integers."""
    upper = torch.arange(visible * hidden).view(visible, hidden) * 37 % 201 - 100
    integers = 256 * upper - 128
    integers[0, 0] = 127 * 256 + 127
    return 0.5 * integers.float() / integers.max()


def _biases(units: int) -> Tensor:
    """Most units are on most of the time, so that few of them change in a step."""
    return torch.linspace(-1, 4, units, dtype=torch.float32)


def _anneal(sampler: BipartiteSampler, bias: Tensor, generator: torch.Generator) -> list[Tensor]:
    """Steps of AIS by separate calls, with visible biases that are the same at all temperatures."""
    v = draw_bits(torch.sigmoid(bias).expand(_CHAINS, -1), generator)
    memory = Memory()
    results = []
    for beta_from, beta_to in pairwise(_SCHEDULE):
        hidden_input = sampler.hidden_input(v, memory)
        log_ratios = sampler.increment(hidden_input, [beta_from], [beta_to])
        v = sampler.draw_visible(hidden_input, [beta_to], bias, generator, memory)
        results += [hidden_input, log_ratios, v, sum_where(v, bias)]
    return results


def _anneal_back(
    sampler: BipartiteSampler, bias: Tensor, generator: torch.Generator
) -> list[Tensor]:
    """Steps of RAISE: at once, or by separate calls where that is not possible."""
    betas = torch.tensor(_SCHEDULE[::-1], dtype=torch.float64)
    v = draw_bits(torch.full((_CHAINS, len(bias)), 0.5, dtype=torch.float32), generator)
    memory = Memory()
    hidden_input = sampler.hidden_input(v, memory)
    bias_sums = sum_where(v, bias)
    log_weights = torch.zeros(_CHAINS, dtype=torch.float64)
    if sampler.steps_at_once:
        state = sampler.anneal(
            hidden_input,
            bias_sums,
            log_weights,
            betas,
            True,
            betas[:-1].float()[:, None] * bias,
            bias,
            generator,
            memory,
            0,
        )
        return [*state, log_weights]
    for beta_from, beta_to in pairwise(_SCHEDULE[::-1]):
        v = sampler.draw_visible(hidden_input, [beta_from], beta_from * bias, generator, memory)
        hidden_input = sampler.hidden_input(v, memory)
        bias_sums = sum_where(v, bias)
        log_weights += sampler.increment(hidden_input, [beta_from], [beta_to])
        log_weights += bias_sums * (beta_to - beta_from)
    return [v, hidden_input, bias_sums, log_weights]


def _temper(sampler: BipartiteSampler, bias: Tensor, generator: torch.Generator) -> list[Tensor]:
    """Steps of parallel tempering: at once, or by separate calls where that is not possible."""
    temperatures = torch.tensor(_TEMPERATURES, dtype=torch.float64)
    ladder = Ladder(temperatures, _REPLICAS, torch.device("cpu"))
    biases = ladder.betas.float()[:, None] * bias
    memory = Memory()

    def state_at(v: Tensor) -> _State:
        return v, sampler.hidden_input(v, memory), sum_where(v, bias)

    def transition(state: _State, betas: Tensor, generator: torch.Generator) -> _State:
        _, hidden_input, _ = state
        bias_of_each = biases[ladder.temperature_of()]
        return state_at(
            sampler.draw_visible(hidden_input, [betas], bias_of_each, generator, memory)
        )

    def log_ratio(state: _State, beta_from: Tensor, beta_to: Tensor) -> Tensor:
        _, hidden_input, bias_sums = state
        change = beta_to - beta_from
        return sampler.increment(hidden_input, [beta_from], [beta_to]) + bias_sums * change

    v = draw_bits(torch.full((_CHAINS, len(bias)), 0.5, dtype=torch.float32), generator)
    hidden_input = sampler.hidden_input(v, memory)
    if sampler.steps_at_once:
        take = sampler.temper(ladder, biases, bias)
        return list(take(hidden_input, generator, memory, _STEPS))
    take_by_calls = tempering_steps(ladder, transition, log_ratio)
    state, ratios, ends = take_by_calls(state_at(v), generator, _STEPS)
    return [*state, ratios, ends]
