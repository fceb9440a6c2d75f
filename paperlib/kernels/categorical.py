"""Categorical visible units: each is in one of q states, and is written as q bits of which one is on.

With such bits, the inputs to the hidden units and all sums over them are those of binary units. Only the draw of the visible units
differs: one of the q bits of a unit is drawn, with the softmax of its inputs as probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.kernels.sampler import BipartiteSampler


def draw_categories(logits: Tensor, num_states: int, generator: torch.Generator) -> Tensor:
    """Independent draws, with one of every `num_states` bits on.

    Parameters
    ----------
    logits : Tensor, shape [..., L q]
        Floating point; the q numbers of a unit stand side by side, and e^logit is proportional to a state's probability.
    num_states : int
        The number of states of a unit, q.
    generator : torch.Generator
        On the device of the logits.

    Returns
    -------
    Tensor, shape [..., L q]
        bool.

    Raises
    ------
    InputError
        If the last dimension is not a multiple of q.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[0.0, 99.0, 0.0, 99.0, 0.0, 0.0]])
    >>> draw_categories(logits, 3, torch.Generator().manual_seed(0))
    tensor([[False,  True, False,  True, False, False]])
    """
    if logits.shape[-1] % num_states:
        raise InputError(
            f"logits: expected a multiple of {num_states} in the last dimension, got {list(logits.shape)}"
        )
    by_unit = logits.unflatten(-1, (-1, num_states))
    below = (by_unit - by_unit.amax(-1, keepdim=True)).exp_().cumsum_(-1)
    uniform = torch.rand(
        by_unit.shape[:-1], dtype=logits.dtype, device=logits.device, generator=generator
    )
    passed = below[..., :-1] <= uniform[..., None] * below[..., -1:]
    chosen = passed.sum(-1, keepdim=True)
    drawn = torch.zeros(by_unit.shape, dtype=torch.bool, device=logits.device)
    return drawn.scatter_(-1, chosen, True).flatten(-2)


class CategoricalSampler(BipartiteSampler):
    """A `BipartiteSampler` whose visible bits are categorical units.

    Parameters
    ----------
    weights, hidden_bias, groups
        As for `BipartiteSampler`, with D = L q visible bits.
    num_states : int
        The number of states of a unit, q.

    Examples
    --------
    >>> import torch
    >>> sampler = CategoricalSampler(torch.zeros(6, 2), torch.zeros(2), [slice(None)], 3)
    >>> inputs = sampler.hidden_input(torch.tensor([[True, False, False] * 2]), {})
    >>> v = sampler.draw_visible(inputs, [1.0], torch.zeros(6), torch.Generator().manual_seed(0), {})
    >>> v.view(2, 3).sum(1)  # one bit of each unit
    tensor([1, 1])
    """

    # Draws of categories come from torch's generator, one chain after the other.
    _draws_bits: ClassVar[bool] = False

    def __init__(
        self, weights: Tensor, hidden_bias: Tensor, groups: Sequence[slice], num_states: int
    ) -> None:
        super().__init__(weights, hidden_bias, groups)
        self._num_states = num_states

    def _draw(self, visible_input: Tensor, generator: torch.Generator, first: int) -> Tensor:
        return draw_categories(visible_input, self._num_states, generator)
