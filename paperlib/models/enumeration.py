"""ln p*(v) of models whose hidden layers have few enough units to be enumerated.

Such are a DBM with a small h1, given which h2 can be summed out, and a DBN with small layers below
its top. `can_enumerate` says whether the sum takes seconds, and `sum_over_states` is the sum over
one layer.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from paperlib.numerics import all_states
from paperlib.torch_settings import plain_torch

# Most rows times enumerated states: about ten seconds.
_MOST_TERMS = 2**30
_WIDEST = 20
# Rows times enumerated states handled at once.
_BLOCK_TERMS = 2**22
# A smaller sum of products is computed from logarithms.
_SMALLEST = 1e-250


def can_enumerate(num_rows: int, widths: Sequence[int]) -> bool:
    """Whether layers of these widths, from the bottom up, can be enumerated in seconds.

    The lowest layer is enumerated for each row, and each other one for each state of that below.
    """
    if any(width > _WIDEST for width in widths):
        return False
    terms = 0
    rows = num_rows
    for width in widths:
        terms += rows * 2**width
        rows = 2**width
    return terms <= _MOST_TERMS


@plain_torch()
def sum_over_states(
    v: Tensor, states: Tensor, masses: Tensor, weights: Tensor, bias: Tensor
) -> Tensor:
    """b'v + ln sum over h of e^{v' W h + mass(h)} for rows `v` [N, D], float64 [N].

    `states` [2^M, M] are all states of h, counting upwards, and `masses` [2^M] belong to them. With
    h cut into two halves, e^{v' W h} is a product of two tables, and the sum over one half is a
    matrix product.
    """
    width = states.shape[1]
    first = all_states(width // 2)
    second = all_states(width - width // 2)
    largest = masses.max()
    table = (masses.view(len(first), len(second)) - largest).exp()
    size = max(1, _BLOCK_TERMS // len(states))
    result = torch.empty(len(v), dtype=torch.float64)
    for start in range(0, len(v), size):
        rows = v[start : start + size].double()
        inputs = rows @ weights
        left = inputs[:, : first.shape[1]] @ first.T
        right = inputs[:, first.shape[1] :] @ second.T
        left_max = left.amax(1, keepdim=True)
        right_max = right.amax(1, keepdim=True)
        sums = (((left - left_max).exp() @ table) * (right - right_max).exp()).sum(1)
        log_sums = sums.log() + largest + (left_max + right_max).squeeze(1)
        # The largest entries of the two tables need not occur together: where the sum nearly
        # vanishes, it is taken in logarithms.
        small = sums < _SMALLEST
        if bool(small.any()):
            log_sums[small] = (inputs[small] @ states.T + masses).logsumexp(1)
        result[start : start + size] = rows @ bias + log_sums
    return result
