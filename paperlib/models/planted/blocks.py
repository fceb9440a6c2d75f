"""Small RBMs side by side: the easiest models of any size with an exact ln Z."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from paperlib.errors import InputError
from paperlib.models.planted.components import from_components
from paperlib.models.planted.planted_model import Planted, require_number, require_type
from paperlib.models.rbm import RBM
from paperlib.numerics import resolve_generator
from paperlib.validation import require_count


def block_diagonal(
    num_visible: int = 784,
    num_hidden: int = 500,
    num_blocks: int = 50,
    weight_std: float = 1.0,
    bias_std: float = 0.5,
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.float64,
) -> Planted:
    """Many small random RBMs joined into one with its units shuffled: ln Z is the sum over the blocks.

    Parameters
    ----------
    num_visible, num_hidden : int
        Numbers of units of the whole model, D and M, divided evenly among the blocks.
    num_blocks : int
        At most the number of units of either layer, and enough that the smaller layer of each block can be enumerated (at most 20 units).
    weight_std : float
        Standard deviation of the weights within the blocks.
    bias_std : float
        Standard deviation of the biases around the values at which a unit is on half of the time when the units of the other layer are.
    generator : torch.Generator, optional
        Source of randomness for the model; on the CPU.
    dtype : torch.dtype
        Type of the model, float32 or float64.

    Raises
    ------
    InputError
        If a number does not fit, or the blocks are too large.

    Examples
    --------
    >>> from paperlib.numerics import seeded_generator
    >>> model = block_diagonal(generator=seeded_generator(0))
    >>> model.rbm
    RBM(784 visible, 500 hidden, torch.float64, cpu)
    >>> model.draws(2, seeded_generator(1)).shape
    torch.Size([2, 784])
    """
    num_visible = require_count("num_visible", num_visible)
    num_hidden = require_count("num_hidden", num_hidden)
    num_blocks = require_count("num_blocks", num_blocks)
    weight_std = require_number("weight_std", weight_std, 0.0)
    bias_std = require_number("bias_std", bias_std, 0.0)
    dtype, generator = require_type(dtype), resolve_generator(generator)
    if num_blocks > min(num_visible, num_hidden):
        raise InputError(
            f"num_blocks: expected at most {min(num_visible, num_hidden)}, one for each unit of the smaller layer, "
            f"got {num_blocks}"
        )

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    parts = []
    for block in range(num_blocks):
        rows, columns = (
            (block + 1) * units // num_blocks - block * units // num_blocks
            for units in (num_visible, num_hidden)
        )
        weights = weight_std * normal(rows, columns)
        visible_bias = bias_std * normal(rows) - weights.sum(1) / 2
        hidden_bias = bias_std * normal(columns) - weights.sum(0) / 2
        parts.append(RBM(weights, visible_bias, hidden_bias))
    joined = side_by_side(parts).to(dtype=dtype)
    rows = torch.randperm(num_visible, generator=generator)
    columns = torch.randperm(num_hidden, generator=generator)
    rbm = RBM(
        joined.weights[rows][:, columns].contiguous(),
        joined.visible_bias[rows],
        joined.hidden_bias[columns],
    )
    return from_components(rbm)


def side_by_side(parts: Sequence[RBM]) -> RBM:
    """Independent RBMs as one, with units in the order of the parts; its ln Z is the sum of theirs."""
    return RBM(
        torch.block_diag(*(part.weights for part in parts)),
        torch.cat([part.visible_bias for part in parts]),
        torch.cat([part.hidden_bias for part in parts]),
    )
