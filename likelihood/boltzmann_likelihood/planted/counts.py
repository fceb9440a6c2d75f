"""Weights of low rank with whole-number factors: ln Z by dynamic programming over counts.

Let W = sum_a u_a w_a' with whole numbers u_a. The hidden units see a visible vector only through
the counts m_a = u_a' v, so that

    Z = sum_m N(m) prod_j (1 + exp(a_j + sum_a w_ja m_a)),        N(m) = sum_{v: u' v = m} e^{b' v}.

There are few different counts, and N is computed unit by unit. All sums are of positive terms in
the log domain, so nothing cancels. All hidden units pull together, so that strong weights give what
single-site chains are worst at: a transition between two phases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from boltzmann_likelihood.planted.planted_model import (
    Draws,
    Planted,
    draw_indices,
    require_number,
    require_type,
)
from paperlib.errors import InputError
from paperlib.kernels import bernoulli
from paperlib.models.rbm import RBM
from paperlib.numerics import resolve_generator, softplus
from paperlib.torch_settings import plain_torch
from paperlib.validation import as_tensor, parameter, require_count, require_finite, require_shape

# Largest number of different counts m. A table of 2^21 takes 16 MiB, and there is one for each
# different row of u.
_MOST_COUNTS = 2**21
# Numbers held at once while the hidden units are summed out: 32 MiB.
_BLOCK_NUMBERS = 2**22
# Bits of a significand, including the first one.
_SIGNIFICAND = {torch.float32: 24, torch.float64: 53}


@plain_torch()
def low_rank(
    num_visible: int = 784,
    num_hidden: int = 500,
    rank: int = 2,
    values: Sequence[int] = (-1, 0, 1),
    strength: float = 1.0,
    threshold: float = 0.0,
    bias_std: float = 0.1,
    generator: torch.Generator | int | None = None,
    dtype: torch.dtype = torch.float64,
) -> Planted:
    """A random RBM whose weights have low rank and whole-number factors.

    Parameters
    ----------
    num_visible, num_hidden : int
        D and M.
    rank : int
        Number of factors, 1 or 2.
    values : sequence of int
        Values from which the entries of u are drawn.
    strength : float
        Scale of the weights. 1 is the critical point of mean-field theory for threshold 0: below
        it, the hidden units are nearly independent; above it, there are two modes for each factor.
    threshold : float
        How far below zero the input of a hidden unit is at balanced counts. From about 2 on, the
        transition is of first order and occurs at a strength below 1: a disordered phase and
        ordered phases have comparable weights, with hardly anything between them. At the default
        sizes this happens near strength 0.81 for threshold 3 and, more sharply, near 0.62 for
        threshold 4; the exact place depends on the draw.
    bias_std : float
        Standard deviation of the visible biases around the values that balance the counts. These
        biases decide the odds of the modes.
    generator : torch.Generator or int, optional
        Source of randomness for the model; on the CPU.
    dtype : torch.dtype
        Type of the model, float32 or float64.

    Raises
    ------
    InputError
        If a number does not fit, or there are too many different counts.

    Notes
    -----
    The factors w are normal with variance 4 s^2 / (r D M sigma'(-threshold)), where s is the
    `strength`, r the mean square of the `values`, and sigma' the derivative of the logistic
    function. Hidden biases set the inputs at balanced counts, m = sum_i u_i / 2, to minus
    `threshold`; visible biases cancel the mean pull of the hidden units there.

    Examples
    --------
    >>> from paperlib.estimators import exact_log_z
    >>> from paperlib.numerics import seeded_generator
    >>> model = low_rank(30, 12, generator=seeded_generator(0))
    >>> abs(model.log_z - exact_log_z(model.rbm)) < 1e-9
    True
    """
    num_visible = require_count("num_visible", num_visible)
    num_hidden = require_count("num_hidden", num_hidden)
    if require_count("rank", rank) > 2:
        raise InputError(f"rank: expected 1 or 2, got {rank}")
    strength = require_number("strength", strength, 0.0)
    threshold = require_number("threshold", threshold)
    bias_std = require_number("bias_std", bias_std, 0.0)
    dtype = require_type(dtype)
    generator = resolve_generator(generator)
    choices = as_tensor("values", values)
    require_shape("values", choices, [None])
    choices = _whole("values", choices)
    mean_square = choices.double().square().mean().item()
    if mean_square == 0:
        raise InputError("values: expected at least one that is not 0, got only 0")

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    picked = torch.randint(len(choices), (num_visible, rank), generator=generator)
    u = choices[picked]
    on = 1 / (1 + math.exp(threshold)) if threshold < 700 else 0.0
    slope = on * (1 - on)
    if slope == 0:
        raise InputError(f"threshold: expected a number from about -36 to 700, got {threshold!r}")
    critical = 2 / math.sqrt(mean_square * num_visible * num_hidden * slope)
    w = _on_grid(u, strength * critical * normal(num_hidden, rank), dtype)
    balanced = u.double().sum(0) / 2
    hidden_bias = -threshold - w @ balanced
    visible_bias = bias_std * normal(num_visible) - on * (u.double() @ w.sum(0))
    return from_factors(u, w, visible_bias, hidden_bias, dtype)


@plain_torch()
def from_factors(
    visible_factors: object,
    hidden_factors: object,
    visible_bias: object,
    hidden_bias: object,
    dtype: torch.dtype = torch.float64,
) -> Planted:
    """The RBM with weights W = u w', where u consists of whole numbers.

    Parameters
    ----------
    visible_factors : array or Tensor, shape [D, rank]
        u: whole numbers, small enough for the number of different counts, `prod_a (1 + sum_i
        |u_ia|)`, to be at most two million.
    hidden_factors : array or Tensor, shape [M, rank]
        w: any numbers. They are rounded to multiples of a power of two so that every weight is
        exact in `dtype`; this changes a weight by a few roundings of the largest one.
    visible_bias : array or Tensor, shape [D]
    hidden_bias : array or Tensor, shape [M]
    dtype : torch.dtype
        Type of the model, float32 or float64.

    Raises
    ------
    InputError
        If a shape does not fit, a number is NaN or infinite, one in u is not whole, or there are
        too many different counts.

    Examples
    --------
    >>> import math
    >>> # with u = 1 and the same w everywhere only the number of visible units matters that are on
    >>> model = from_factors([[1]] * 50, [[0.25]] * 40, [0.0] * 50, [-6.0] * 40)
    >>> terms = [math.comb(50, m) * (1 + math.exp(0.25 * m - 6)) ** 40 for m in range(51)]
    >>> print(f"{model.log_z:.6f} = {math.log(sum(terms)):.6f}")
    260.062401 = 260.062401
    """
    dtype = require_type(dtype)
    u = as_tensor("visible_factors", visible_factors)
    require_shape("visible_factors", u, [None, None])
    u = _whole("visible_factors", u)
    w = parameter("hidden_factors", hidden_factors, [None, u.shape[1]]).double()
    b = parameter("visible_bias", visible_bias, [len(u)]).to(dtype)
    a = parameter("hidden_bias", hidden_bias, [len(w)]).to(dtype)
    counts = math.prod((1 + u.abs().sum(0)).tolist())
    if counts > _MOST_COUNTS:
        raise InputError(
            f"visible_factors: expected at most {_MOST_COUNTS} different counts, the product of "
            f"1 + sum_i |u_ia|, got {counts}"
        )
    w = _on_grid(u, w, dtype)
    rbm = RBM((u.double() @ w.T).to(dtype), b, a)
    programme = _CountProgramme.solve(u, w, b.double(), a.double(), dtype)
    return Planted(rbm, programme.log_z, Draws(programme.draw))


def _whole(name: str, tensor: Tensor) -> Tensor:
    require_finite(name, tensor.double())
    if (tensor.double() != tensor.double().round()).any():
        raise InputError(f"{name}: expected whole numbers, got some that are not")
    if tensor.double().abs().max() > _MOST_COUNTS:
        raise InputError(f"{name}: expected numbers up to {_MOST_COUNTS}, got larger ones")
    return tensor.long()


def _on_grid(u: Tensor, w: Tensor, dtype: torch.dtype) -> Tensor:
    """`w` rounded so that no sum of its products with rows of `u` needs rounding in this type."""
    largest = (u.double().abs() @ w.abs().T).max().item()
    if largest == 0:
        return w
    step = 2.0 ** (math.floor(math.log2(largest)) + 2 - _SIGNIFICAND[dtype])
    return torch.round(w / step) * step


@dataclass(frozen=True)
class _Group:
    """The visible units that share a row of u, with sums over them and over earlier groups."""

    units: Tensor  # indices of the units, [g]
    row: Tensor  # their row of u, [rank]
    bias: Tensor  # [g]
    # ln of the elementary symmetric polynomials of the e^{b_i}: row i, column n sums over the
    # states of the first i units with n of them on
    log_polynomials: Tensor  # [g + 1, g + 1]
    low: Tensor  # smallest counts of the earlier groups, [rank]
    log_counts: Tensor  # ln N of the earlier groups, from `low` on, [range of m_1, ...]


@dataclass(frozen=True)
class _CountProgramme:
    """All counts with their weights, and the groups from which a vector with counts is drawn."""

    groups: list[_Group]
    counts: Tensor  # those that can occur, [S, rank]
    log_masses: Tensor  # ln of the sum over all v with these counts and all h, [S]
    log_z: float
    num_visible: int
    dtype: torch.dtype

    @classmethod
    def solve(
        cls, u: Tensor, w: Tensor, visible_bias: Tensor, hidden_bias: Tensor, dtype: torch.dtype
    ) -> _CountProgramme:
        rank = u.shape[1]
        rows, group_of = u.unique(dim=0, return_inverse=True)
        low = torch.zeros(rank, dtype=torch.long)
        log_counts = torch.zeros([1] * rank, dtype=torch.float64)
        groups = []
        # The largest groups first, while the table is small.
        for number in group_of.bincount().argsort(descending=True, stable=True).tolist():
            units = torch.nonzero(group_of == number).flatten()
            bias = visible_bias[units]
            polynomials = _log_polynomials(bias)
            groups.append(_Group(units, rows[number], bias, polynomials, low, log_counts))
            low, log_counts = _add_group(low, log_counts, rows[number], polynomials[-1])
        possible = torch.nonzero(log_counts > -math.inf)
        counts = possible + low
        log_masses = log_counts[tuple(possible.T)]
        for part in torch.arange(len(counts)).split(max(1, _BLOCK_NUMBERS // len(w))):
            inputs = counts[part].double() @ w.T + hidden_bias
            log_masses[part] += softplus(inputs).sum(-1)
        log_z = torch.logsumexp(log_masses, 0).item()
        return cls(groups, counts, log_masses, log_z, len(u), dtype)

    def draw(self, num_draws: int, generator: torch.Generator) -> Tensor:
        """The counts first, then the groups in reverse order."""
        counts = self.counts[draw_indices(self.log_masses, num_draws, generator)]
        drawn = torch.empty(num_draws, self.num_visible, dtype=self.dtype)
        for group in reversed(self.groups):
            number_on = _draw_number_on(group, counts, generator)
            counts = counts - number_on[:, None] * group.row
            drawn[:, group.units] = _draw_subset(group, number_on, generator).to(self.dtype)
        return drawn


def _log_polynomials(bias: Tensor) -> Tensor:
    """ln e_n(e^{b_1}, ..., e^{b_i}) for all i and n: [g + 1, g + 1], minus infinity for n > i."""
    size = len(bias)
    table = torch.full((size + 1, size + 1), -math.inf, dtype=torch.float64)
    table[0, 0] = 0.0
    for i in range(size):
        table[i + 1] = table[i]
        table[i + 1, 1:] = torch.logaddexp(table[i, 1:], table[i, :-1] + bias[i])
    return table


def _add_group(
    low: Tensor, log_counts: Tensor, row: Tensor, log_polynomial: Tensor
) -> tuple[Tensor, Tensor]:
    """The smallest counts and ln N with one more group, of units that each add `row` to the counts.

    `log_polynomial` has ln of the weight e_n of n of these units being on.
    """
    size = len(log_polynomial) - 1
    below = (size * row).clamp(max=0)
    old_shape = torch.tensor(log_counts.shape)
    shape = old_shape + size * row.abs()
    grown = torch.full(tuple(shape.tolist()), -math.inf, dtype=torch.float64)
    for number_on, log_weight in enumerate(log_polynomial.tolist()):
        first = (number_on * row - below).tolist()
        place = tuple(
            slice(start, start + length)
            for start, length in zip(first, old_shape.tolist(), strict=True)
        )
        grown[place] = torch.logaddexp(grown[place], log_counts + log_weight)
    return low + below, grown


def _draw_number_on(group: _Group, counts: Tensor, generator: torch.Generator) -> Tensor:
    """How many units of a group are on, given `counts` [num, rank] with earlier groups: [num]."""
    numbers = torch.arange(len(group.bias) + 1)
    earlier = counts[:, None] - numbers[:, None] * group.row - group.low
    shape = torch.tensor(group.log_counts.shape)
    inside = ((earlier >= 0) & (earlier < shape)).all(-1)
    safe = torch.where(inside[..., None], earlier, 0)
    log_weights = group.log_counts[tuple(safe.unbind(-1))] + group.log_polynomials[-1]
    log_weights = torch.where(inside, log_weights, -math.inf)
    return draw_indices(log_weights, 1, generator)[:, 0]


def _draw_subset(group: _Group, number_on: Tensor, generator: torch.Generator) -> Tensor:
    """Draw which units of a group are on, given how many, [num]: binary [num, g], float64."""
    drawn = torch.empty(len(number_on), len(group.bias), dtype=torch.float64)
    left = number_on.clone()
    for unit in range(len(group.bias) - 1, -1, -1):
        without = group.log_polynomials[unit]
        with_it = group.log_polynomials[unit + 1]
        log_prob = without[(left - 1).clamp(min=0)] + group.bias[unit] - with_it[left]
        on = bernoulli(torch.where(left > 0, log_prob.exp(), 0.0), generator)
        drawn[:, unit] = on
        left -= on.long()
    return drawn
