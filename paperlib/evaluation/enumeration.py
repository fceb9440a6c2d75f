"""ln p*(v) of deep models whose layers are small enough to be enumerated.

For a DBM, h1 is enumerated and h2 is summed out given h1. For a DBN, every hidden layer but the top one is enumerated, from the top down:

    p*(h^l) = sum over h^{l+1} of p(h^l | h^{l+1}) p*(h^{l+1}).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from paperlib.models import DBM, DBN, RBM
from paperlib.numerics import all_states, softplus
from paperlib.validation import blocks

# Most rows times enumerated states: about ten seconds.
_MOST_TERMS = 2**30
_WIDEST = 20
_BLOCK_TERMS = 2**22
_SMALLEST = 1e-250


def can_enumerate(model: DBM | DBN, num_images: int) -> bool:
    """Whether enumerating ln p*(v) of this many images takes only seconds.

    Examples
    --------
    >>> can_enumerate(DBN([RBM(torch.zeros(4, 30), torch.zeros(4), torch.zeros(30))]), 10)
    True
    """
    if isinstance(model, DBM):
        widths = [model.num_hidden_1]
    else:
        widths = [layer.num_hidden for layer in model.directed]
    if any(width > _WIDEST for width in widths):
        return False
    rows = [num_images, *(2**width for width in widths)]
    return sum(row * 2**width for row, width in zip(rows, widths, strict=False)) <= _MOST_TERMS


def enumerated_log_unnormalized(model: DBM | DBN, images: Tensor) -> Tensor:
    """Exact ln p*(v) of images [N, D], float64 [N] on the CPU, in nats.

    Examples
    --------
    >>> dbm = DBM([[1.0], [0.5]], [[2.0]], [0.0, 0.0], [-1.0], [0.0])
    >>> enumerated_log_unnormalized(dbm, torch.tensor([[1, 0]]))  # ln(2 + 1 + e^2)
    tensor([2.3408], dtype=torch.float64)
    """
    model = model.to("cpu", torch.float64)
    if isinstance(model, DBM):
        upper = RBM(model.weights_2, model.hidden_bias_1, model.hidden_bias_2)
        states = all_states(model.num_hidden_1)
        masses = upper.log_unnormalized(states)
        weights, bias = model.weights_1, model.visible_bias
        return _over_states(images, states, masses, weights, bias)
    log_p: Callable[[Tensor], Tensor] = model.top.log_unnormalized
    for layer in reversed(model.directed[1:]):
        log_p = _below(layer, log_p)
    if not model.directed:
        return _in_blocks(images, model.top.log_unnormalized)
    return _below(model.directed[0], log_p)(images)


def _below(layer: RBM, log_p: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """ln p* of a directed layer's lower units, from that of its upper units."""
    states = all_states(layer.num_hidden)
    inputs = states @ layer.weights.T + layer.visible_bias
    masses = log_p(states) - softplus(inputs).sum(1)
    return lambda v: _over_states(v, states, masses, layer.weights, layer.visible_bias)


def _over_states(
    v: Tensor, states: Tensor, masses: Tensor, weights: Tensor, bias: Tensor
) -> Tensor:
    """b'v + ln sum over h of e^{v' W h + mass(h)}; `states` are all states of h, counting upwards.

    With h cut into two halves, e^{v' W h} is a product of two tables, and the sum over one half is a matrix product.
    """
    width = states.shape[1]
    first, second = _halves(width)
    table = masses.view(len(first), len(second))
    largest = masses.max()
    table = (table - largest).exp()
    size = max(1, _BLOCK_TERMS // len(states))
    result = torch.empty(len(v), dtype=torch.float64)
    for start in range(0, len(v), size):
        rows = v[start : start + size].double()
        inputs = rows @ weights
        left, right = inputs[:, : first.shape[1]] @ first.T, inputs[:, first.shape[1] :] @ second.T
        shifts = [part.amax(1, keepdim=True) for part in (left, right)]
        sums = (((left - shifts[0]).exp() @ table) * (right - shifts[1]).exp()).sum(1)
        log_sums = sums.log() + largest + (shifts[0] + shifts[1]).squeeze(1)
        # The largest entries of the two tables need not occur together: where the sum nearly vanishes, it is taken in logarithms.
        small = sums < _SMALLEST
        if bool(small.any()):
            log_sums[small] = (inputs[small] @ states.T + masses).logsumexp(1)
        result[start : start + size] = rows @ bias + log_sums
    return result


def _halves(width: int) -> tuple[Tensor, Tensor]:
    """All states of the first half and of the second half of `width` units."""
    cut = width // 2
    if cut == 0:
        return torch.zeros(1, 0, dtype=torch.float64), all_states(width)
    return all_states(cut), all_states(width - cut)


def _in_blocks(v: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    return torch.cat([function(block.double()) for block in blocks(v)])
