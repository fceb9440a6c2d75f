"""In which floating-point type a model is evaluated, and how far rounding can move its numbers.

Chains walk fastest in float32, where weights are rounded to 16-bit integers as well
(`paperlib.kernels.products`). For most models this changes nothing that is printed. It is another
matter where biases are large, one weight is far larger than the others, or many weights are alike.
The numbers of the model decide, once for all chains, bounds and images.

**What a state collects.** With e_ij the error of a weight, a state's energy is wrong by the sum of
e_ij v_i h_j. With t_i = 2 v_i - 1 and s_j = 2 h_j - 1, which are -1 or 1, this is

    1/4 (sum_ij e_ij + sum_i t_i r_i + sum_j s_j c_j + t' e s),

where r and c are the sums of e along rows and columns. The first term is the same for all states.
The others, which make one state more probable than another, come to at most

    1/4 (sum_i |r_i| + sum_j |c_j| + |e| sqrt(D M)),

with |e| the largest singular value. Independent errors reach a part of this in the worst state, but
that state depends on the errors alone and is no phase of the model; at a phase such errors cancel
but for their standard deviation. What exceeds that part is counted in full. So is the part of e
that is a multiple of the weights: it changes the temperature, to which all low energies answer.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.kernels.products import largest_size, rounding_errors
from paperlib.memory import small_parts
from paperlib.models.unnormalized_model import UnnormalizedModel

# The largest effect of rounding that is tolerated, in nats.
_LARGEST_EFFECT = 0.05
# How many nats a phase may collect from errors that do not cancel. The stored models of the book
# collect 0.006 at most, and estimates correct for far more than this (`end_correction`).
_MOST_COLLECTED = 0.2
# Half the distance of neighbouring numbers in float32, relative to their size, and of 16-bit
# integers to the largest one.
_FLOAT32 = 2.0**-24
_INTEGERS = 2.0**-16
# For the largest singular value: vectors side by side, and how often they are multiplied.
_VECTORS = 4
_ROUNDS = 8


def chain_dtype(model: UnnormalizedModel) -> torch.dtype:
    """The type in which chains of a model walk: float32, unless it has too few digits.

    Raises
    ------
    InputError
        If not even float64 leaves a digit after the decimal point.
    """
    if _fits_float32(model):
        return torch.float32
    if not model.largest_rounding < _LARGEST_EFFECT:
        raise InputError(
            "model: expected weights and biases of which ln p*(v) has digits behind the point, got "
            f"sums of up to {model.sum_of_parameters:.1g}; did the training diverge, or do biases "
            "come from the logarithm of zero?"
        )
    return torch.float64


def float64_remark(model: UnnormalizedModel) -> str:
    """Why everything was computed in float64, a sentence of a report."""
    if _effect_of_single_precision(model) < _LARGEST_EFFECT:
        return (
            "Rounding to the 16 bits of fast products would move many weights the same way: "
            "everything was computed in float64, which takes longer."
        )
    return (
        f"Weights and biases add up to {model.sum_of_parameters:.1g}, too much for the digits of "
        "float32: everything was computed in float64, which takes longer."
    )


def _fits_float32(model: UnnormalizedModel) -> bool:
    if not _effect_of_single_precision(model) < _LARGEST_EFFECT:
        return False
    weights = model.annealed.weights.detach()
    return collected_rounding(rounding_errors(weights), weights) < _MOST_COLLECTED


def _effect_of_single_precision(model: UnnormalizedModel) -> float:
    """The effect of rounding, in nats, if errors of 16-bit weights are independent and uniform."""
    largest = max(largest_size(tensor).item() for tensor in model.tensors().values())
    # Each parameter is rounded. Whatever is added to the largest of them is rounded like it, and
    # the errors of many sums cancel in part.
    effect = _FLOAT32 * (model.sum_of_parameters + math.sqrt(model.num_units) * largest)
    # Half of the units of either layer are on.
    weights = model.annealed.weights
    effect += _INTEGERS * largest_size(weights).item() * math.sqrt(weights.numel() / 12)
    return effect


def collected_rounding(errors: Tensor, weights: Tensor) -> float:
    """How many nats a phase can collect beyond what independent errors of this size would give it.

    Parameters
    ----------
    errors : Tensor, shape [D, M]
        What is added to each weight, float64.
    weights : Tensor, shape [D, M]
        The weights themselves.

    Returns
    -------
    float
        In nats.

    Examples
    --------
    Equal errors of a thousandth, and errors of the same size with random signs:

    >>> weights = torch.full((200, 200), 0.1, dtype=torch.float64)
    >>> print(f"{collected_rounding(0.001 * torch.ones_like(weights), weights):.0f}")
    37
    >>> signs = torch.randn(200, 200, generator=torch.Generator().manual_seed(0)).sign().double()
    >>> collected_rounding(0.001 * signs, weights) < 0.1
    True
    """
    row_squares = []
    column_squares = errors.new_zeros(errors.shape[1])
    weight_squares = errors.new_zeros(())
    aligned = errors.new_zeros(())
    sizes = errors.new_zeros(())
    for part, weight_part in zip(small_parts(errors), small_parts(weights), strict=True):
        squares = part.square()
        row_squares.append(squares.sum(1))
        column_squares += squares.sum(0)
        double = weight_part.to(errors)
        weight_squares += double.square().sum()
        aligned += (part * double).sum()
        sizes += double.abs().sum()
    row_norms = torch.cat(row_squares).sqrt()
    column_norms = column_squares.sqrt()
    pairs = math.sqrt(errors.numel())
    most = errors.sum(1).abs().sum() + errors.sum(0).abs().sum()
    most += pairs * _largest_singular_value(errors)
    # The mean size of a normal number is sqrt(2 / pi), and no matrix of independent errors has a
    # noticeably larger singular value than the norms of its largest row and column together.
    independent = math.sqrt(2 / math.pi) * (row_norms.sum() + column_norms.sum())
    independent += pairs * (row_norms.max() + column_norms.max())
    # How much hotter or colder the rounded model is, times the most that weights add to an energy.
    power = weight_squares.clamp(min=torch.finfo(errors.dtype).tiny)
    hotter = (aligned / power).abs() * sizes
    return ((most - independent).clamp(min=0) + hotter).item() / 4


def _largest_singular_value(matrix: Tensor) -> Tensor:
    """By power iteration with a few vectors.

    It is right to some percent in noise, and to many digits where one singular value stands out.
    """
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(matrix.shape[1], _VECTORS, dtype=matrix.dtype, generator=generator)
    vectors = vectors.to(matrix.device)
    for _ in range(_ROUNDS):
        vectors = torch.linalg.qr(matrix.T @ (matrix @ vectors)).Q
    return torch.linalg.matrix_norm(matrix @ vectors, 2)
