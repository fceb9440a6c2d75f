"""What annealing needs at every step of binary visible units connected to binary hidden ones.

Other types of units are added here: a path between models with other units needs a class like this
one, and nothing else in this room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.kernels.arguments import ChainArrays, ModelArrays, PlaceOfChains
from paperlib.kernels.capability import compiled
from paperlib.kernels.draws import Beta, draw_bits_of_logits, draw_keys, softplus_increment
from paperlib.kernels.products import (
    BinaryProduct,
    IntegerProduct,
    Memory,
    binary_product,
    largest_size,
)
from paperlib.kernels.tempering import Ladder
from paperlib.numerics import softplus
from paperlib.torch_settings import plain_torch

Temper: TypeAlias = Callable[[Tensor, torch.Generator, Memory, int], tuple[Tensor, ...]]


class BipartiteSampler:
    """Hidden units given visible ones, and vice versa.

    Each group of hidden units may have an inverse temperature of its own.

    Parameters
    ----------
    weights : Tensor, shape [D, M]
        Weights between the two layers.
    hidden_bias : Tensor, shape [M]
        Biases of the hidden units.
    groups : sequence of slice
        Parts of the hidden layer, in the order in which they are drawn.

    Attributes
    ----------
    groups : tuple of slice
        As given.

    Examples
    --------
    >>> import torch
    >>> sampler = BipartiteSampler(torch.eye(3), torch.zeros(3), [slice(None)])
    >>> hidden_input = sampler.hidden_input(torch.tensor([[True, False, True]]), {})
    >>> [round(number, 3) for number in hidden_input[0].tolist()]
    [1.0, 0.0, 1.0]
    >>> sampler.increment(hidden_input, [0.5], [0.5])  # from a beta to itself
    tensor([0.], dtype=torch.float64)
    """

    def __init__(self, weights: Tensor, hidden_bias: Tensor, groups: Sequence[slice]) -> None:
        self.groups = tuple(groups)
        self._weights = weights
        self._hidden_bias = hidden_bias
        self._num_hidden = weights.shape[1]
        units = range(self._num_hidden)
        self._undivided = [units[group] for group in self.groups] == [units]
        self._largest = largest_size(weights)
        self._to_hidden = binary_product(weights, self._largest)
        self._to_visible = [self.to_visible(group) for group in self.groups]
        products = (self._to_hidden, *self._to_visible)
        # the only case for which there are compiled functions of whole steps
        self._undivided_bits = self._undivided and all(
            isinstance(product, IntegerProduct) for product in products
        )

    def to_visible(self, hidden: slice, visible: slice = slice(None)) -> BinaryProduct:
        """The product of the states of some hidden units with their weights to visible ones."""
        return binary_product(self._weights[visible, hidden].T, self._largest)

    def hidden_input(self, v: Tensor, memory: Memory) -> Tensor:
        """W' v + a for bool `v` [chains, D], [chains, M]."""
        return self._to_hidden(v, 1.0, self._hidden_bias, memory)

    def log_sums(self, hidden_input: Tensor, betas: Sequence[Beta]) -> Tensor:
        """ln sum_h e^{beta h'u} over all hidden units, each group at its beta; float64 [chains]."""
        parts = []
        for group, beta in zip(self.groups, betas, strict=True):
            logits = self._inputs(hidden_input, group) * _column(beta, hidden_input)
            parts.append(softplus(logits).sum(-1, dtype=torch.float64))
        return torch.stack(parts).sum(0)

    def increment(
        self, hidden_input: Tensor, betas_from: Sequence[Beta], betas_to: Sequence[Beta]
    ) -> Tensor:
        """`log_sums` at `betas_to` minus those at `betas_from`, without cancellation."""
        total: Tensor | None = None
        for group, beta_from, beta_to in zip(self.groups, betas_from, betas_to, strict=True):
            part = softplus_increment(self._inputs(hidden_input, group), beta_from, beta_to)
            total = part if total is None else total.add_(part)
        assert total is not None
        return total

    def draw_visible(
        self,
        hidden_input: Tensor,
        betas: Sequence[Beta],
        visible_bias: Tensor,
        generator: torch.Generator,
        memory: Memory,
        first: int = 0,
    ) -> Tensor:
        """A Gibbs step: all hidden units given their inputs, then the visible ones given them.

        Parameters
        ----------
        hidden_input : Tensor, shape [chains, M]
            From `hidden_input`.
        betas : sequence of float or Tensor
            The inverse temperature of each group, a number or one for each chain.
        visible_bias : Tensor, shape [D] or [chains, D]
            The biases at that temperature.
        generator : torch.Generator
            On the device of the inputs.
        memory : dict
            The memory of the chains, see `paperlib.kernels.products`.
        first : int
            For a part of a block of chains, see `draw_bits_of_logits`.

        Returns
        -------
        Tensor, shape [chains, D]
            bool.
        """
        self._require_inputs(hidden_input)
        visible_input = self._visible_input(
            hidden_input, betas, visible_bias, generator, memory, first
        )
        return draw_bits_of_logits(visible_input, generator, 1.0, first)

    @property
    def steps_at_once(self) -> bool:
        """Whether `anneal` and `temper` can be called: for one group, in float32 on a CPU.

        Draws depend only on a chain's place there, and steps leave the interpreter alone, so that
        parts of a block of chains can walk side by side in threads.
        """
        return self._undivided_bits and compiled("temper") is not None

    def anneal(
        self,
        hidden_input: Tensor,
        bias_sums: Tensor,
        log_weights: Tensor,
        betas: Tensor,
        moving_first: bool,
        visible_biases: Tensor,
        bias_difference: Tensor,
        generator: torch.Generator,
        memory: Memory,
        first: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Steps of AIS or, if `moving_first`, of RAISE, all by a single call.

        They come to the same bits as those of `paperlib.annealing.path.AnnealingPath`, which take
        some ten calls each.

        Parameters
        ----------
        hidden_input : Tensor, shape [chains, M]
            From `hidden_input`.
        bias_sums : Tensor, shape [chains]
            The sums of `bias_difference` over the units that are on, float64.
        log_weights : Tensor, shape [chains]
            float64; the log-ratios are added to them.
        betas : Tensor, shape [T + 1]
            Inverse temperatures, float64.
        moving_first : bool
            Whether a move at the first beta of a step comes before its log-ratio, or one at the
            second beta after it.
        visible_biases : Tensor, shape [T, D]
            Biases of the visible units at the beta of each move.
        bias_difference : Tensor, shape [D]
            Those at beta = 1 minus those at beta = 0.
        generator, memory, first
            As for `draw_visible`.

        Returns
        -------
        tuple of Tensor
            The visible units, bool [chains, D], their inputs to the hidden units, and the sums of
            `bias_difference` over the units that are on.
        """
        chains = len(hidden_input)
        self._require_inputs(hidden_input, chains)
        for name, numbers in (("state", bias_sums), ("log_weights", log_weights)):
            if not isinstance(numbers, Tensor):
                raise InputError(f"{name}: expected a tensor, got {type(numbers).__name__}")
            if numbers.shape != (chains,) or numbers.dtype != torch.float64:
                raise InputError(
                    f"{name}: expected a float64 number for each of {chains} chains, "
                    f"got {numbers.dtype} {list(numbers.shape)}"
                )
        state = self._chain_arrays(hidden_input, bias_sums)
        biases = visible_biases.contiguous().numpy()
        model = self._model_arrays(chains, memory, biases, bias_difference.numpy())
        keys = draw_keys(generator, 2 * len(biases)).reshape(-1, 4)
        place = PlaceOfChains(0, chains, first)
        anneal = cast(Any, compiled("anneal"))
        anneal(model, betas.numpy(), moving_first, place, keys, state, log_weights.numpy())
        self._put_back(model, memory)
        results = state.v, state.hidden_input, state.bias_sums
        v, hidden_input, bias_sums = (torch.from_numpy(array) for array in results)
        return v, hidden_input, bias_sums

    def temper(self, ladder: Ladder, visible_biases: Tensor, bias_difference: Tensor) -> Temper:
        """A function that takes steps of parallel tempering, each by a single call.

        A step is a Gibbs step of each chain at its temperature, then swaps of the even and of the
        odd pairs. It comes to the same bits as the three calls of
        `paperlib.annealing.path.AnnealingPath.tempering_steps`. Those take some forty small
        operations a step, whose overhead is most of the time with narrow layers.

        Parameters
        ----------
        ladder : Ladder
            The temperatures, and which chain is at which.
        visible_biases : Tensor, shape [N, D]
            Biases of the visible units at each temperature.
        bias_difference : Tensor, shape [D]
            Those at beta = 1 minus those at beta = 0.

        Returns
        -------
        function
            From the inputs to the hidden units [chains, M], a generator, the memory of the chains
            and a number of steps T it makes the visible units, bool [chains, D], their inputs to
            the hidden units, the sums of `bias_difference` over the units that are on, float64
            [chains], and what each step leaves: the log-ratios, float64 [T, 2, R, N], and the
            chains at both ends, int64 [T, R, 2].
        """
        temper = cast(Any, compiled("temper"))
        biases = visible_biases.contiguous().numpy()
        chains = ladder.num_chains

        def take(
            hidden_input: Tensor, generator: torch.Generator, memory: Memory, count: int
        ) -> tuple[Tensor, ...]:
            self._require_inputs(hidden_input, chains)
            keys, uniform = ladder.draws(generator, count)
            state = self._chain_arrays(hidden_input, torch.zeros(chains, dtype=torch.float64))
            ratios = np.empty((count, 2, *ladder.chain_at.shape))
            ends = np.empty((count, ladder.num_replicas, 2), np.int64)
            model = self._model_arrays(chains, memory, biases, bias_difference.numpy())
            temper(model, ladder.numbers(), keys, uniform, state, ratios, ends)
            self._put_back(model, memory)
            results = state.v, state.hidden_input, state.bias_sums, ratios, ends
            return tuple(torch.from_numpy(array) for array in results)

        return take

    def _chain_arrays(self, hidden_input: Tensor, bias_sums: Tensor) -> ChainArrays:
        """The state of chains for compiled functions, which change it; units are not drawn yet."""
        chains = len(hidden_input)
        visible, hidden = self._weights.shape
        v = np.empty((chains, visible), bool)
        h = np.empty((chains, hidden), bool)
        inputs = np.array(hidden_input.numpy(), order="C")
        return ChainArrays(v, h, inputs, np.array(bias_sums.numpy()))

    def _model_arrays(
        self,
        chains: int,
        memory: Memory,
        visible_biases: np.ndarray,
        bias_difference: np.ndarray,
    ) -> ModelArrays:
        """The model for compiled functions, where its products are those of integers.

        It has taken what the memory has of them.
        """
        to_hidden = cast(IntegerProduct, self._to_hidden)
        to_visible = cast(IntegerProduct, self._to_visible[0])
        return ModelArrays(
            to_hidden.take_arrays(chains, memory),
            to_visible.take_arrays(chains, memory),
            to_hidden.scale,
            self._hidden_bias.numpy(),
            visible_biases,
            bias_difference,
        )

    def _put_back(self, model: ModelArrays, memory: Memory) -> None:
        memory[self._to_hidden] = model.to_hidden
        memory[self._to_visible[0]] = model.to_visible

    def _visible_input(
        self,
        hidden_input: Tensor,
        betas: Sequence[Beta],
        visible_bias: Tensor,
        generator: torch.Generator,
        memory: Memory,
        first: int = 0,
    ) -> Tensor:
        """Draw all hidden units given their inputs; returns the inputs to the visible ones."""
        visible_input: Tensor | None = None
        for group, beta, product in zip(self.groups, betas, self._to_visible, strict=True):
            h = draw_bits_of_logits(self._inputs(hidden_input, group), generator, beta, first)
            offset = visible_bias if visible_input is None else torch.zeros_like(visible_bias)
            part = product(h, beta, offset, memory)
            visible_input = part if visible_input is None else visible_input.add_(part)
        assert visible_input is not None
        return visible_input

    def _inputs(self, hidden_input: Tensor, group: slice) -> Tensor:
        """The inputs of one group.

        The whole layer is not sliced, which would take a hundredth of a small RBM's step.
        """
        return hidden_input if self._undivided else hidden_input[:, group]

    def _require_inputs(self, hidden_input: Tensor, chains: int | None = None) -> None:
        shape = list(hidden_input.shape)
        if len(shape) != 2 or shape[1] != self._num_hidden or chains not in (None, shape[0]):
            rows = "chains" if chains is None else chains
            raise InputError(
                f"state: expected inputs of shape [{rows}, {self._num_hidden}], got {shape}"
            )
        if hidden_input.dtype != self._weights.dtype:
            raise InputError(
                f"state: expected inputs in {self._weights.dtype}, got {hidden_input.dtype}"
            )

    def rounding(self, v: Tensor, hidden_input: Tensor, group: slice) -> Tensor:
        """A group's `log_sums` at beta = 1 with exact weights, minus those with rounded ones."""
        # at the start of a path no hidden unit may have a weight
        if not self._to_hidden.rounded or not range(self._num_hidden)[group]:
            return torch.zeros(len(v), dtype=torch.float64, device=v.device)
        with plain_torch():
            exact = torch.addmm(
                self._hidden_bias[group], v.to(self._weights.dtype), self._weights[:, group]
            )
        difference = softplus(exact) - softplus(hidden_input[:, group])
        return difference.sum(-1, dtype=torch.float64)


def _column(beta: Beta, like: Tensor) -> Beta:
    return beta.to(like.dtype)[..., None] if isinstance(beta, Tensor) else beta
