"""Averages over the test images and how well they are known; rows may have different weights.

A row of weight w stands for w identical, independent rows, such as images of which only one is stored. Averages are weighted, and standard errors use the sum of the weights as the number of rows. Whole-number
weights are therefore equivalent to repeated rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.estimators.estimate import interval_of
from paperlib.numerics import joined_error, weighted_mean
from paperlib.validation import as_float_tensor, require_finite

LEVEL = 0.95


def as_weights(name: str, weights: object, count: int) -> Tensor:
    """Weights of `count` rows, float64 [count]; raise unless they are finite, at least 0, and add up to 2 or more."""
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
    """Standard error of the mean of values [N] as an estimate for all possible rows."""
    if weights is None:
        return values.std().item() / math.sqrt(len(values))
    total = weights.sum()
    squares = weights @ (values - weighted_mean(values, weights)).square()
    return math.sqrt((squares / (total - 1) / total).item())


@dataclass(frozen=True)
class ImageAverage:
    """The average ln p(v) of the test images, with 95 % intervals.

    Attributes
    ----------
    mean : float
        The average, in nats.
    interval : tuple of float
        (low, high) for these images: the error of ln Z alone.
    sample_interval : tuple of float
        (low, high) for all images of this kind, if these are a random sample of them: the errors of ln Z and of the sample together.
    image_std_error : float
        Standard error over the images alone, of their average as an estimate for all images of this kind.
    """

    mean: float
    interval: tuple[float, float]
    sample_interval: tuple[float, float]
    image_std_error: float

    @property
    def told_from_zero(self) -> str:
        """Whether zero lies outside, as `yes` (for all images of this kind), `on these images`, or `no`."""
        for (low, high), word in (
            (self.sample_interval, "yes"),
            (self.interval, "on these images"),
        ):
            if low > 0 or high < 0:
                return word
        return "no"


def average_of(
    log_unnormalized: Tensor,
    log_z: float,
    std_error: float,
    degrees_of_freedom: float,
    weights: Tensor | None = None,
    *,
    too_high: float = 0.0,
    too_low: float = 0.0,
) -> ImageAverage:
    """Average ln p*(v) [N] minus ln Z, and how well it is known.

    The errors of the two are independent. In addition, the average may be too high and too low by so many nats.
    """
    count = total_weight(len(log_unnormalized), weights)
    mean = weighted_mean(log_unnormalized, weights).item() - log_z
    of_images = weighted_std_error(log_unnormalized, weights)
    joined = joined_error((std_error, degrees_of_freedom), (of_images, count - 1))
    of_these, of_all = (
        (low - too_high, high + too_low)
        for low, high in (
            interval_of(mean, std_error, degrees_of_freedom, LEVEL),
            interval_of(mean, *joined, LEVEL),
        )
    )
    return ImageAverage(mean, of_these, of_all, of_images)
