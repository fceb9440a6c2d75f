"""Averages over the test images and how well they are known; rows may have different weights.

A row of weight w stands for w identical, independent rows, such as images of which only one is stored. Averages are weighted, and standard errors use the sum of the weights as the number of rows. Whole-number
weights are therefore equivalent to repeated rows.

Rows that are copies of one image, which would not agree by chance
(`boltzmann_likelihood.evaluation.baselines.copies_among`), are one case: their deviations from the
average add up before they are squared. Such a case counts as often as its heaviest row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.numerics import weighted_mean
from paperlib.uncertain import Uncertain
from paperlib.validation import as_float_tensor, require_finite

LEVEL = 0.95
# What rounds to 0.00 in nats, with the two decimals of the reports, is not shown to differ from zero.
_SHOWN = 0.005
#: The interval of what is not trusted.
UNKNOWN = (-math.inf, math.inf)


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


def clustered_std_error(
    values: Tensor, weights: Tensor | None, cases: Tensor
) -> tuple[float, float]:
    """Standard error of the mean of values [N] whose rows belong to cases [N], and how many independent rows they amount to."""
    if weights is None:
        weights = torch.ones_like(values)
    number = int(cases.max()) + 1
    off = values - weighted_mean(values, weights)
    of_cases = torch.zeros(number, dtype=values.dtype).index_add(0, cases, weights * off)
    sums = torch.zeros(number, dtype=weights.dtype).index_add(0, cases, weights)
    heaviest = torch.zeros(number, dtype=weights.dtype)
    heaviest = heaviest.scatter_reduce(0, cases, weights, "amax")
    total = weights.sum().item()
    independent = total**2 / (sums.square() / heaviest).sum().item()
    if independent <= 1:
        return math.inf, independent
    squares = (of_cases.square() / heaviest).sum().item()
    return math.sqrt(squares * independent / (independent - 1)) / total, independent


class Shown(StrEnum):
    """Whether a difference is shown by test images: for all images of this kind, for these images alone, or not."""

    YES = "yes"
    ON_THESE = "on these images"
    NO = "no"


@dataclass(frozen=True)
class ImageAverage:
    """The average ln p(v) of the test images, with 95 % intervals.

    Attributes
    ----------
    mean : float
        The average, in nats.
    interval : tuple of float
        (low, high) for these images: the error of ln Z alone. Infinite at both ends where the
        evaluation is not trusted, as is the next one.
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
    def without_intervals(self) -> ImageAverage:
        """The same average where nothing is known of its error."""
        return replace(self, interval=UNKNOWN, sample_interval=UNKNOWN)

    @property
    def told_from_zero(self) -> Shown:
        """Whether zero lies outside, for all images of this kind, on these images, or not.

        An interval that is printed as 0.00 to 0.00 shows nothing.
        """
        if _without_zero(self.sample_interval):
            return Shown.YES
        return Shown.ON_THESE if _without_zero(self.interval) else Shown.NO


#: The average of no images.
NO_AVERAGE = ImageAverage(math.nan, (math.nan, math.nan), (math.nan, math.nan), math.nan)


def _without_zero(interval: tuple[float, float]) -> bool:
    low, high = interval
    return (low > 0 or high < 0) and max(abs(low), abs(high)) >= _SHOWN


def average_of(
    log_unnormalized: Tensor,
    log_z: Uncertain,
    weights: Tensor | None = None,
    *,
    cases: Tensor | None = None,
    too_high: float = 0.0,
    too_low: float = 0.0,
) -> ImageAverage:
    """Average ln p*(v) [N] minus ln Z, and how well it is known.

    The errors of the two are independent. In addition, the average may be too high and too low by so many nats.
    `cases` [N] numbers the different images where some are copies.
    """
    count = total_weight(len(log_unnormalized), weights)
    of_images = weighted_std_error(log_unnormalized, weights)
    if cases is not None:
        of_images, count = clustered_std_error(log_unnormalized, weights, cases)
    of_these = (-log_z).shifted(weighted_mean(log_unnormalized, weights).item())
    of_all = of_these + Uncertain(
        0.0, of_images, max(count - 1, 1.0) if cases is not None else count - 1
    )
    return ImageAverage(
        of_these.value,
        of_these.interval(LEVEL, too_high=too_high, too_low=too_low),
        of_all.interval(LEVEL, too_high=too_high, too_low=too_low),
        of_images,
    )
