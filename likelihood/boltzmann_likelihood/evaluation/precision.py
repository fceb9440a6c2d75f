"""In which floating-point type a model is evaluated, and how far rounding can move its numbers.

Chains walk fastest in float32, where weights are rounded to 16-bit integers as well (`paperlib.kernels.products`). For most models this changes
nothing that is printed. It is another matter where biases are large or one weight is far larger than the others. The numbers of the model
decide, once for all chains, bounds and images.

Large biases often say one thing only: that a unit is always on, or always off. A unit whose state the model fixes with certainty, and that has
this state in all images, adds the same number to ln p*(v) and to ln Z. Such units are set aside, and their numbers cost no digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.models.rbm import RBM
from paperlib.models.unnormalized_model import UnnormalizedModel

# The largest effect of rounding that is put up with, in nats.
_LEAST_DIGIT = 0.05
# Half the distance of neighbouring numbers, relative to their size in float64 and in float32, and of 16-bit integers to the largest one.
_FLOAT64, _FLOAT32, _INTEGERS = 2.0**-53, 2.0**-24, 2.0**-16
# Log-odds beyond which a state is certain: all units together change ln Z by less than float64 can tell.
_CERTAIN = 50.0


@dataclass(frozen=True)
class Evaluated:
    """What is evaluated in place of a model: the same distribution of the images.

    Attributes
    ----------
    model : UnnormalizedModel
        The model, in a type that has enough digits, without units that are certain.
    dtype : torch.dtype
        The type in which its chains walk; the model itself may have more digits.
    columns : Tensor or None
        Which visible units are left, bool [D]; None for all.
    log_z : float
        What the units that were set aside add to ln Z, and to ln p*(v) of each image, in nats.
    num_certain : int
        How many were set aside.
    rounding : float
        How far float64 may move ln p*(v) or ln Z, in nats.
    """

    model: UnnormalizedModel
    dtype: torch.dtype
    columns: Tensor | None
    log_z: float
    num_certain: int
    rounding: float


def evaluated(model: UnnormalizedModel, rows: Tensor) -> Evaluated:
    """The model to evaluate for test rows [N, D]: itself, unless float32 has too few digits for it.

    Raises
    ------
    InputError
        If not even float64 leaves a digit behind the point.
    """
    found = Evaluated(model, torch.float32, None, 0.0, 0, model.largest_rounding)
    if _fits_float32(model):
        return found
    if isinstance(model, RBM):
        found = _without_certain_units(model, rows) or found
    if _fits_float32(found.model):
        return found
    if not found.rounding < _LEAST_DIGIT:
        raise InputError(
            "model: expected weights and biases of which ln p*(v) has digits behind the point, got sums of up to "
            f"{found.model.sum_of_parameters:.1g}; did the training diverge, or do biases come from the logarithm of zero?"
        )
    return replace(found, model=found.model.to(dtype=torch.float64), dtype=torch.float64)


def _without_certain_units(rbm: RBM, rows: Tensor) -> Evaluated | None:
    """The RBM without units whose state is certain, if something is left of it; visible ones have to be in that state in all rows [N, D]."""
    weights, visible, hidden = (tensor.double().clone() for tensor in rbm.tensors().values())
    always_off, always_on = rows.amax(0) == 0, rows.amin(0) == 1
    in_images = [(always_on.to(weights.device), always_off.to(weights.device)), (True, True)]
    left = [torch.ones_like(bias, dtype=torch.bool) for bias in (visible, hidden)]
    log_z, rounding, before = 0.0, 0.0, -1
    while before != (before := sum(int(units.sum()) for units in left)):
        for side, (own, other) in enumerate(((visible, hidden), (hidden, visible))):
            matrix = weights if side == 0 else weights.T
            lowest = own + matrix.clamp(max=0).sum(1)
            highest = own + matrix.clamp(min=0).sum(1)
            may_be_on, may_be_off = in_images[side]
            on = left[side] & (lowest > _CERTAIN) & may_be_on
            off = left[side] & (highest < -_CERTAIN) & may_be_off
            # The other layer hears units that are always on as it hears its biases.
            log_z += own[on].sum().item()
            rounding += (
                _FLOAT64 * (other.abs() + matrix[on].abs().sum(0))[left[1 - side]].sum().item()
            )
            other += matrix[on].sum(0)
            matrix[on | off] = 0
            left[side] &= ~(on | off)
    columns, units = left
    if not (columns.any() and units.any()):
        return None
    model = RBM(weights[columns][:, units], visible[columns], hidden[units])
    certain = rbm.num_units - model.num_units
    rounding += model.largest_rounding
    return Evaluated(model, torch.float32, columns, log_z, certain, rounding)


def _fits_float32(model: UnnormalizedModel) -> bool:
    largest = max(tensor.double().abs().max().item() for tensor in model.tensors().values())
    # Each parameter is rounded. Whatever is added to the largest of them is rounded like it, and the errors of many sums cancel in part.
    effect = _FLOAT32 * (model.sum_of_parameters + math.sqrt(model.num_units) * largest)
    # The errors of 16-bit weights are independent and uniform; half of the units of either layer are on.
    weights = model.annealed.weights.double()
    effect += _INTEGERS * weights.abs().max().item() * math.sqrt(weights.numel() / 12)
    return effect < _LEAST_DIGIT
