"""In which floating-point type a model is evaluated, and how far rounding can move its numbers.

Chains walk fastest in float32, where weights are rounded to 16-bit integers as well
(`paperlib.kernels.products`). For most models this changes nothing that is printed. It is another
matter where biases are large or one weight is far larger than the others. The numbers of the model
decide, once for all chains, bounds and images.
"""

from __future__ import annotations

import math

import torch

from paperlib.errors import InputError
from paperlib.models.unnormalized_model import UnnormalizedModel

# The largest effect of rounding that is put up with, in nats.
_LEAST_DIGIT = 0.05
# Half the distance of neighbouring numbers in float32, relative to their size, and of 16-bit integers to the largest one.
_FLOAT32, _INTEGERS = 2.0**-24, 2.0**-16


def chain_dtype(model: UnnormalizedModel) -> torch.dtype:
    """The type in which chains of a model walk: float32, unless it has too few digits.

    Raises
    ------
    InputError
        If not even float64 leaves a digit behind the point.
    """
    if _fits_float32(model):
        return torch.float32
    if not model.largest_rounding < _LEAST_DIGIT:
        raise InputError(
            "model: expected weights and biases of which ln p*(v) has digits behind the point, got sums of up to "
            f"{model.sum_of_parameters:.1g}; did the training diverge, or do biases come from the logarithm of zero?"
        )
    return torch.float64


def _fits_float32(model: UnnormalizedModel) -> bool:
    largest = max(tensor.double().abs().max().item() for tensor in model.tensors().values())
    # Each parameter is rounded. Whatever is added to the largest of them is rounded like it, and the errors of many sums cancel in part.
    effect = _FLOAT32 * (model.sum_of_parameters + math.sqrt(model.num_units) * largest)
    # The errors of 16-bit weights are independent and uniform; half of the units of either layer are on.
    weights = model.annealed.weights.double()
    effect += _INTEGERS * weights.abs().max().item() * math.sqrt(weights.numel() / 12)
    return effect < _LEAST_DIGIT
