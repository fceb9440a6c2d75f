"""A step of parallel tempering over the visible units of an RBM: compiled functions around the two products.

It comes to the same bits as the three calls of `paperlib.annealing.path.AnnealingPath.tempering_step`. Those take some forty small
operations, whose overhead is most of the time with narrow layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.kernels.capability import compiled
from paperlib.kernels.draws import draw_keys
from paperlib.kernels.products import IntegerProduct, Memory, NarrowIntegerProduct
from paperlib.kernels.tempering import Ladder

_FUNCTIONS = ("draw_visible", "draw_hidden_at", "draw_visible_at", "exchange")


def compiled_exchange() -> list[Callable[..., Any]]:
    """The functions, or an empty list if plain torch takes the place of any."""
    functions = [function for name in _FUNCTIONS if (function := compiled(name)) is not None]
    return functions if len(functions) == len(_FUNCTIONS) else []


class Exchange:
    """A Gibbs step of each chain at its temperature, then swaps of the even and of the odd pairs.

    Parameters
    ----------
    ladder : Ladder
        The temperatures, and which chain is at which.
    to_hidden, to_visible : IntegerProduct
        Products with the weights, and with their transpose.
    hidden_bias : Tensor, shape [M]
        Biases of the hidden units.
    visible_biases : Tensor, shape [N, D]
        Biases of the visible units at each temperature.
    bias_difference : Tensor, shape [D]
        Those at beta = 1 minus those at beta = 0.
    """

    def __init__(
        self,
        ladder: Ladder,
        to_hidden: IntegerProduct,
        to_visible: IntegerProduct,
        hidden_bias: Tensor,
        visible_biases: Tensor,
        bias_difference: Tensor,
    ) -> None:
        self._ladder, self._to_hidden, self._to_visible = ladder, to_hidden, to_visible
        given = (hidden_bias, visible_biases, bias_difference, ladder.betas)
        arrays = [tensor.contiguous().numpy() for tensor in given]
        self._hidden_bias, self._visible_biases, self._bias_difference, self._betas = arrays
        self._functions = compiled_exchange()

    def __call__(
        self, hidden_input: Tensor, generator: torch.Generator, memory: Memory
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Take a step from the inputs to the hidden units, [chains, M]; `memory` is that of the chains.

        Returns the visible units, bool [chains, D], the inputs to the hidden units, the sums of `bias_difference` over the units that are
        on, float64 [chains], and the log-ratios, float64 [2, R, N].
        """
        ladder, betas, to_hidden = self._ladder, self._betas, self._to_hidden
        chain_at, place, scale = ladder.chain_at.numpy(), ladder.place, to_hidden.scale
        shape = chain_at.size, self._hidden_bias.size
        if hidden_input.shape != shape:
            raise InputError(
                f"state: expected inputs of shape {list(shape)}, got {list(hidden_input.shape)}"
            )
        draw_at_once, draw_hidden, draw_visible, exchange = self._functions
        keys, uniform = draw_keys(generator, 2), ladder.uniform(generator).numpy()
        inputs, biases = hidden_input.contiguous().numpy(), self._visible_biases
        v = np.empty((shape[0], biases.shape[1]), bool)
        if isinstance(to_hidden, NarrowIntegerProduct):
            at_once = keys, to_hidden.columns, scale, biases, *place
            draw_at_once(inputs, betas, chain_at, *at_once, v)
        else:
            h = np.empty(shape, bool)
            draw_hidden(inputs, betas, chain_at, keys[0], keys[1], *place, h)
            sums = self._to_visible.sums(h, memory)
            draw_visible(sums, scale, betas, biases, chain_at, keys[2], keys[3], *place, v)
        sums, inputs = to_hidden.sums(v, memory), np.empty(shape, np.float32)
        bias_sums, ratios = np.empty(shape[0]), np.empty((2, *chain_at.shape))
        exchange(
            sums,
            scale,
            self._hidden_bias,
            v,
            self._bias_difference,
            betas,
            uniform,
            chain_at,
            *place,
            inputs,
            bias_sums,
            ratios,
        )
        new = torch.from_numpy
        return new(v), new(inputs), new(bias_sums), new(ratios)
