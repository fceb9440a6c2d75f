"""ln p*(v) of models with hidden units that are few enough to be enumerated."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from paperlib.numerics import all_states
from paperlib.torch_settings import plain_torch

# Most rows times enumerated states: about ten seconds.
_MOST_TERMS = 2**30
_WIDEST = 20
_BLOCK_TERMS = 2**22
_SMALLEST = 1e-250


def can_enumerate(num_rows: int, widths: Sequence[int]) -> bool:
    """Whether layers of these widths can be enumerated in seconds: the lowest for each row, and each other one for each state of that below."""
    if any(width > _WIDEST for width in widths):
        return False
    rows = [num_rows, *(2**width for width in widths)]
    return sum(row * 2**width for row, width in zip(rows, widths, strict=False)) <= _MOST_TERMS


@plain_torch()
def sum_over_states(
    v: Tensor, states: Tensor, masses: Tensor, weights: Tensor, bias: Tensor
) -> Tensor:
    """b'v + ln sum over h of e^{v' W h + mass(h)} for rows `v` [N, D], float64 [N]; `states` are all states of h, counting upwards.

    With h cut into two halves, e^{v' W h} is a product of two tables, and the sum over one half is
    a matrix product.
    """
    width = states.shape[1]
    first = all_states(width // 2)
    second = all_states(width - width // 2)
    table = masses.view(len(first), len(second))
    largest = masses.max()
    table = (table - largest).exp()
    size = max(1, _BLOCK_TERMS // len(states))
    result = torch.empty(len(v), dtype=torch.float64)
    for start in range(0, len(v), size):
        rows = v[start : start + size].double()
        inputs = rows @ weights
        left = inputs[:, : first.shape[1]] @ first.T
        right = inputs[:, first.shape[1] :] @ second.T
        shifts = [part.amax(1, keepdim=True) for part in (left, right)]
        sums = (((left - shifts[0]).exp() @ table) * (right - shifts[1]).exp()).sum(1)
        log_sums = sums.log() + largest + (shifts[0] + shifts[1]).squeeze(1)
        # The largest entries of the two tables need not occur together: where the sum nearly
        # vanishes, it is taken in logarithms.
        small = sums < _SMALLEST
        if bool(small.any()):
            log_sums[small] = (inputs[small] @ states.T + masses).logsumexp(1)
        result[start : start + size] = rows @ bias + log_sums
    return result
