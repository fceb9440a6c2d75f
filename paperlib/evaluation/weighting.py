"""Test sets whose rows have different weights.

A row of weight w stands for w identical, independent rows, as in models of protein families, where the weight of a sequence is the inverse of
the number of similar ones. Averages are weighted, and standard errors use the sum of the weights as the number of rows. Whole-number
weights are therefore equivalent to repeated rows.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.numerics import weighted_mean
from paperlib.validation import as_float_tensor, require_finite


def as_weights(name: str, weights: object, count: int) -> Tensor:
    """Weights of `count` rows, float64 [count].

    Raises
    ------
    InputError
        If their number is not `count`, one is negative, NaN or infinite, or they add up to less than two.

    Examples
    --------
    >>> as_weights("weights", [1, 0.5, 2], 3)
    tensor([1.0000, 0.5000, 2.0000], dtype=torch.float64)
    """
    found = as_float_tensor(name, weights, torch.float64).cpu()
    if found.ndim != 1 or len(found) != count:
        raise InputError(
            f"{name}: expected {count} numbers, one for each test row, got shape {list(found.shape)}"
        )
    require_finite(name, found)
    if bool((found < 0).any()):
        raise InputError(f"{name}: expected numbers of at least 0, got {found.min().item():g}")
    if found.sum() < 2:
        raise InputError(
            f"{name}: expected a sum of at least 2, since it stands for the number of independent rows, got {found.sum().item():g}"
        )
    return found


def total_weight(count: int, weights: Tensor | None) -> float:
    """How many independent rows there are, for standard errors."""
    return float(count) if weights is None else weights.sum().item()


def weighted_std_error(values: Tensor, weights: Tensor | None) -> float:
    """Standard error of the mean of values [N] as an estimate for all possible rows.

    Examples
    --------
    >>> values, twice = torch.tensor([1.0, 4.0, 2.0]).double(), torch.full((3,), 2.0).double()
    >>> print(f"{weighted_std_error(values, None):.4f} {weighted_std_error(values, twice):.4f}")
    0.8819 0.5578
    """
    if weights is None:
        return values.std().item() / math.sqrt(len(values))
    total = weights.sum()
    squares = weights @ (values - weighted_mean(values, weights)).square()
    return math.sqrt((squares / (total - 1) / total).item())
