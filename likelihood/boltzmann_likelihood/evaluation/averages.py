"""Averages over the test images and how well they are known; rows may have different weights.

A row of weight w stands for w identical, independent rows, such as images of which only one is
stored. Averages are weighted, and standard errors use the sum of the weights as the number of rows.
Whole-number weights are therefore equivalent to repeated rows.

Rows that are copies of one image, which would not agree by chance
(`boltzmann_likelihood.evaluation.baselines.EqualImages`), are one case: their deviations from the
average add up before they are squared. Such a case counts as often as its heaviest row.

An interval for other images needs enough of them, and none that decides alone. How often such
intervals of 95 % hold the mean of all images was counted for log-probabilities with these
distributions: normal, exponential, Student's with three degrees of freedom, log-normal of scale 0.5
and 1, and normal with 1, 2, 3, 5 or 10 % of the images 10, 20 or 40 standard deviations worse. With
1 % of such images, 37 of 100 sets of 100 images have none of them, and nothing in these sets says
so. Intervals for other images are therefore stated

- from `FEWEST` = 300 independent images on, and
- where no image makes up more than half of the sum of squared deviations.

Where they are stated they hold in 92 to 97 % for each of these families and 300, 360, 500, 1,000
and 10,000 images; all normal sets have one (`tests/test_averages.py`). Without the rule they hold
in 64 to 96 % with 100 images and in 39 to 96 % with 20. Longer tails than these remain: in 86 to 88
% for log-normal ones of scale 1.5 with 300 images. To refuse more sets with such tails would not
help, since those that are left are the ones that have met none of the worst images.
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
#: Fewest independent images from which something is said of other images.
FEWEST = 300
# Largest share of a single image in the sum of squared deviations.
_LARGEST_SHARE = 0.5
# What rounds to 0.00 in nats, with the two decimals of the reports, is not shown to differ from
# zero.
_SHOWN = 0.005
#: The interval of what is not known.
UNKNOWN = (-math.inf, math.inf)


def as_weights(name: str, weights: object, count: int) -> Tensor:
    """Weights of `count` rows, float64 [count].

    Raises
    ------
    InputError
        Unless they are finite, at least 0, and add up to 2 or more.
    """
    values = as_float_tensor(name, weights, torch.float64).cpu()
    if values.ndim != 1 or len(values) != count:
        raise InputError(
            f"{name}: expected {count} numbers, one for each test row, got shape "
            f"{list(values.shape)}"
        )
    require_finite(name, values)
    if bool((values < 0).any()):
        raise InputError(f"{name}: expected numbers of at least 0, got {values.min().item():g}")
    if values.sum() < 2:
        raise InputError(
            f"{name}: expected a sum of at least 2, since it stands for the number of independent "
            f"rows, got {values.sum().item():g}"
        )
    return values


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
class Spread:
    """How rows differ from their mean.

    Attributes
    ----------
    std_error : float
        Standard error of the mean as an estimate for all possible rows.
    independent : float
        How many independent rows there are.
    largest_share : float
        The share of a single independent row in the sum of squared deviations, at most.
    """

    std_error: float
    independent: float
    largest_share: float

    @property
    def degrees_of_freedom(self) -> float:
        """Of the standard error, and at least 1."""
        return max(self.independent - 1, 1.0)

    @property
    def doubt(self) -> str:
        """Why nothing is said of other images; empty if something is."""
        count = math.floor(self.independent + 1e-9)
        if count < FEWEST:
            images = "one image is" if count == 1 else f"{count:,} images are"
            return f"{images} too few for that, {FEWEST} are needed"
        if self.largest_share > _LARGEST_SHARE:
            return f"one image makes up {self.largest_share:.0%} of the spread of all"
        return ""


def spread_of(values: Tensor, weights: Tensor | None, cases: Tensor | None = None) -> Spread:
    """The spread of values [N] with weights [N], whose rows may belong to cases [N]."""
    if cases is not None:
        return _spread_of_cases(values, weights, cases)
    squares = (values - weighted_mean(values, weights)).square()
    single = squares
    if weights is not None:
        # A row of weight w stands for w rows, each with this deviation.
        single = weights.clamp(max=1) * squares
        squares = weights * squares
    return Spread(
        weighted_std_error(values, weights),
        total_weight(len(values), weights),
        _largest_share(single, squares),
    )


def _spread_of_cases(values: Tensor, weights: Tensor | None, cases: Tensor) -> Spread:
    """The spread of values [N] whose rows belong to cases [N].

    Each case counts as often as its heaviest row.
    """
    if weights is None:
        weights = torch.ones_like(values)
    number = int(cases.max()) + 1
    row_deviations = weights * (values - weighted_mean(values, weights))
    deviations = torch.zeros(number, dtype=values.dtype).index_add(0, cases, row_deviations)
    sums = torch.zeros(number, dtype=weights.dtype).index_add(0, cases, weights)
    heaviest = torch.zeros(number, dtype=weights.dtype)
    heaviest = heaviest.scatter_reduce(0, cases, weights, "amax")
    total = weights.sum().item()
    independent = total**2 / (sums.square() / heaviest).sum().item()
    squares = deviations.square() / heaviest
    largest = _largest_share(squares / heaviest.clamp(min=1), squares)
    if independent <= 1:
        return Spread(math.inf, independent, largest)
    error = math.sqrt(squares.sum().item() * independent / (independent - 1)) / total
    return Spread(error, independent, largest)


def _largest_share(single: Tensor, squares: Tensor) -> float:
    """The largest square of a single row as a share of the sum of all; 0 where nothing differs."""
    total = squares.sum().item()
    return single.max().item() / total if total > 0 else 0.0


class Shown(StrEnum):
    """Whether test images show a difference.

    For all images of this kind, for these images alone, or not.
    """

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
        (low, high) for these images: the error of ln Z alone. Both intervals are infinite where the
        evaluation is not trusted.
    sample_interval : tuple of float
        (low, high) for all images of this kind, if these are a random sample of them: the errors of
        ln Z and of the sample together. Infinite at both ends where the images are too few, or one
        of them decides.
    image_std_error : float
        Standard error over the images alone, of their average as an estimate for all images of this
        kind.
    highest : float
        The upper end of the interval with both errors, also where `sample_interval` is infinite
        because nothing can be said of other images.
    doubt : str
        Why nothing is said of other images; empty if something is.
    """

    mean: float
    interval: tuple[float, float]
    sample_interval: tuple[float, float]
    image_std_error: float
    highest: float
    doubt: str = ""

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
        if _without_zero(self.interval):
            return Shown.ON_THESE
        return Shown.NO


#: The average of no images.
NO_AVERAGE = ImageAverage(
    math.nan, (math.nan, math.nan), (math.nan, math.nan), math.nan, highest=math.nan
)


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

    The errors of the two are independent. In addition, the average may be too high and too low by
    this many nats. `cases` [N] numbers the different images where some are copies.
    """
    spread = spread_of(log_unnormalized, weights, cases)
    average = (-log_z).shifted(weighted_mean(log_unnormalized, weights).item())
    sample_average = average + Uncertain(0.0, spread.std_error, spread.degrees_of_freedom)
    sample_interval = sample_average.interval(LEVEL, too_high=too_high, too_low=too_low)
    return ImageAverage(
        mean=average.value,
        interval=average.interval(LEVEL, too_high=too_high, too_low=too_low),
        sample_interval=UNKNOWN if spread.doubt else sample_interval,
        image_std_error=spread.std_error,
        highest=sample_interval[1],
        doubt=spread.doubt,
    )
