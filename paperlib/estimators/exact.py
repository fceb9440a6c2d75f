"""Exact partition functions by enumeration of the smaller layer.

With the visible units summed out,

    Z = sum_h exp(a' h) prod_i (1 + e^{b_i + (W h)_i}),

so only the smaller layer's 2^M states h have to be enumerated. Computed directly, this costs an
exponential and a logarithm for each state and unit. Two ideas make it 30 times cheaper.

1. The layer is cut into two halves, h = (h1, h2). Then e^{b_i + (W h)_i} = A_i(h1) B_i(h2) is a
   product of two small tables.
2. The units i are taken in groups of three. The product of three factors 1 + A_i B_i, multiplied
   out, is a scalar product of 8 terms that depend on h1 with 8 that depend on h2, so one matrix
   product serves all pairs of halves.

All terms are positive, so nothing cancels, and every factor is at least 1, so a logarithm is needed
only before the running product might overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.kernels import bernoulli
from paperlib.models import RBM
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import bits, resolve_generator, softplus
from paperlib.threads import run_in_threads, step_bar
from paperlib.torch_settings import plain_torch
from paperlib.validation import require_count, require_instance

_GROUP = 3  # binary units per matrix product: 2 and 4 are slower
_MAX_LOG_PRODUCT = 700.0  # e^709 is the largest float64
# 1 MiB of running products: fits a core's second-level cache
_BLOCK_ROWS = 256
_BLOCK_COLUMNS = 512


@plain_torch(gradients=False)
def exact_log_z(rbm: UnnormalizedModel, max_units: int = 25, progress: bool | None = None) -> float:
    """ln Z in nats, by summing over every state of the smaller layer.

    Parameters
    ----------
    rbm : RBM, DBM or DBN
        The model, of any type; the computation uses float64. A DBM or DBN has the ln Z of its joint
        or top RBM.
    max_units : int
        Refuse if the smaller layer has more units; each additional unit doubles the time. 2^25
        states of a model with 784 visible units take seconds on two cores.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal and the run takes more than
        two seconds.

    Raises
    ------
    InputError
        If the smaller layer has more than `max_units` units.

    Notes
    -----
    Memory is bounded by tables of 2^{M/2} rows: 0.3 GiB at 784 x 25.

    Examples
    --------
    >>> rbm = RBM([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], [0.0, 0.5, -1.0], [0.2, 0.0])
    >>> print(f"{exact_log_z(rbm):.4f}")
    5.1324
    """
    require_instance("rbm", rbm, UnnormalizedModel, "a model such as an RBM")
    enumerable = _enumerable(rbm.annealed, max_units)
    sums = _map_log_masses(lambda block: block.logsumexp((0, 1)), enumerable, progress)
    return torch.logsumexp(torch.stack(sums), 0).item()


@plain_torch(gradients=False)
def exact_hidden_samples(
    rbm: RBM, num_samples: int, generator: torch.Generator | int | None = None, max_units: int = 25
) -> tuple[Tensor, Tensor]:
    """Independent exact draws (v, h) from an RBM with few hidden units.

    Parameters
    ----------
    rbm : RBM
        The model; p(h) is tabulated in float64 for all 2^M hidden states (256 MiB at M = 25).
    num_samples : int
        Number of draws.
    generator : torch.Generator or int, optional
        On the model's device.
    max_units : int
        Refuse if there are more hidden units.

    Returns
    -------
    v, h : Tensor, shapes [num_samples, D] and [num_samples, M]
        Binary, in the model's type.

    Raises
    ------
    InputError
        If there are more hidden units than visible ones or than `max_units`.

    Examples
    --------
    >>> from paperlib.numerics import seeded_generator
    >>> rbm = RBM([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], [0.0, 0.5, -1.0], [0.2, 0.0])
    >>> v, h = exact_hidden_samples(rbm, 1_000, seeded_generator(0))
    >>> v.shape, h.shape
    (torch.Size([1000, 3]), torch.Size([1000, 2]))
    """
    num_samples = require_count("num_samples", num_samples)
    generator = resolve_generator(generator, rbm.device)
    if rbm.num_hidden > rbm.num_visible:
        raise InputError(
            f"rbm: expected at most as many hidden as visible units ({rbm.num_visible}), "
            f"got {rbm.num_hidden}"
        )
    log_masses = torch.cat(_map_log_masses(torch.flatten, _enumerable(rbm, max_units), None))
    cumulative = torch.exp(log_masses - log_masses.max()).cumsum_(0)
    uniform = torch.rand(
        num_samples, dtype=torch.float64, device=rbm.device, generator=generator
    ).mul_(cumulative[-1])
    index = torch.searchsorted(cumulative, uniform, right=True).clamp_(max=len(cumulative) - 1)
    h = bits(index, rbm.num_hidden).to(rbm.dtype)
    return bernoulli(rbm.visible_probs(h), generator), h


def _enumerable(rbm: RBM, max_units: int) -> RBM:
    """The model in float64, with its smaller layer as the hidden one, if that can be enumerated."""
    units = rbm.enumerated_units
    if units > max_units:
        # a float holds no more than 2^1023
        number = f" = {2.0**units:.2g}" if units < 1024 else ""
        raise InputError(
            f"rbm: expected a layer of at most {max_units} units to enumerate, got "
            f"{rbm.num_visible} visible and {rbm.num_hidden} hidden: 2^{units}{number} states. "
            "Estimate ln Z with ais instead."
        )
    double = rbm.to(dtype=torch.float64)
    return double.transposed() if units < double.num_hidden else double


@dataclass(frozen=True)
class _Half:
    """One half of the hidden layer: tables over its 2^m states."""

    states: Tensor  # [2^m, m], float64
    bias_terms: Tensor  # [2^m], a' h
    log_table: Tensor  # [2^m, D], logarithms of A or B

    def products(self, units: Tensor) -> Tensor:
        """Products of A (or B) over each subset of each group of units, [groups, 2^m, 2^group]."""
        grouped = torch.exp(self.log_table[:, units]).view(len(self.states), -1, _GROUP)
        products = torch.ones_like(grouped[..., :1])
        for member in grouped.split(1, dim=-1):
            products = torch.cat([products, products * member], dim=-1)
        return products.transpose(0, 1).contiguous()


def _halves(rbm: RBM) -> tuple[_Half, _Half]:
    """Both halves of the hidden layer, scaled so that the largest A of a unit is its largest B."""
    count = rbm.num_hidden
    halves = []
    for part in (slice(0, count // 2), slice(count // 2, count)):
        weights = rbm.weights[:, part]
        bias = rbm.hidden_bias[part]
        states = bits(torch.arange(2 ** len(bias), device=bias.device), len(bias)).to(bias.dtype)
        halves.append(_Half(states, states @ bias, states @ weights.T))
    left, right = halves
    left_table = left.log_table + rbm.visible_bias
    right_table = right.log_table
    shift = (left_table.amax(0) - right_table.amax(0)) / 2
    left = replace(left, log_table=left_table - shift)
    right = replace(right, log_table=right_table + shift)
    return left, right


def _map_log_masses(
    function: Callable[[Tensor], Tensor], rbm: RBM, progress: bool | None
) -> list[Tensor]:
    """`function` of ln sum_v exp(-E(v, h)), in blocks [rows, columns] that together hold all h.

    Rows are states of the first half, and columns the 2^{M - M // 2} of the second.
    """
    left, right = _halves(rbm)
    # No state makes a unit contribute more than this to the logarithm.
    largest = softplus(left.log_table.amax(0) + right.log_table.amax(0))
    fast = torch.nonzero(largest <= _MAX_LOG_PRODUCT / _GROUP).flatten()
    fast = fast[: len(fast) - len(fast) % _GROUP]
    slow = torch.ones(rbm.num_visible, dtype=torch.bool, device=fast.device)
    slow[fast] = False
    slow_units = torch.nonzero(slow).flatten().tolist()
    left_products = left.products(fast)
    right_products = right.products(fast).transpose(1, 2).contiguous()
    bounds = largest[fast].view(-1, _GROUP).sum(1).tolist()

    def masses_from(row: int) -> Tensor:
        rows = slice(row, row + _BLOCK_ROWS)
        blocks = []
        for column in range(0, len(right.states), _BLOCK_COLUMNS):
            columns = slice(column, column + _BLOCK_COLUMNS)
            log_mass = left.bias_terms[rows, None] + right.bias_terms[None, columns]
            for unit in slow_units:
                log_factor = left.log_table[rows, None, unit] + right.log_table[None, columns, unit]
                log_mass += softplus(log_factor)
            product = torch.ones_like(log_mass)
            factor = torch.empty_like(log_mass)
            bound = 0.0
            for number, group_bound in enumerate(bounds):
                bound += group_bound
                if bound > _MAX_LOG_PRODUCT:
                    log_mass += product.log_()
                    product.fill_(1)
                    bound = group_bound
                torch.mm(
                    left_products[number, rows], right_products[number][:, columns], out=factor
                )
                product *= factor
            blocks.append(log_mass.add_(product.log_()))
        return function(torch.cat(blocks, dim=1))

    starts = range(0, len(left.states), _BLOCK_ROWS)
    with step_bar(len(starts), f"exact ln Z, 2^{rbm.num_hidden} states", progress, "block") as bar:
        return run_in_threads([partial(masses_from, row) for row in starts], bar.update)
