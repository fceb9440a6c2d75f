"""What another training run would have given: the prediction interval from a few seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from paperlib.errors import InputError
from paperlib.numerics import student_quantile

#: With fewer seeds an interval says next to nothing.
FEWEST_SEEDS = 5


def prediction_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """The interval that holds the result of one more training run with the given probability.

    It is mean ± t s sqrt(1 + 1/n), with s the standard deviation of the n values and t the quantile
    of Student's distribution with n - 1 degrees of freedom: exact if results of different seeds are
    independent and normally distributed.

    Parameters
    ----------
    values : sequence of float
        One result for each seed, at least five.
    level : float
        Between 0 and 1.

    Returns
    -------
    low, high : float
        In the unit of the values.

    Raises
    ------
    InputError
        If there are fewer than five values, one is not finite, or the level is not between 0 and 1.

    Examples
    --------
    >>> low, high = prediction_interval([-1.0, -0.5, 0.0, 0.5, 1.0])
    >>> print(f"{low:.3f} {high:.3f}")
    -2.404 2.404
    """
    if len(values) < FEWEST_SEEDS:
        raise InputError(f"values: expected at least {FEWEST_SEEDS} numbers, got {len(values)}")
    if not all(math.isfinite(value) for value in values):
        raise InputError(f"values: expected finite numbers, got {list(values)}")
    mean = statistics.fmean(values)
    spread = statistics.stdev(values)
    half_width = student_quantile(level, len(values) - 1) * spread * math.sqrt(1 + 1 / len(values))
    return mean - half_width, mean + half_width
