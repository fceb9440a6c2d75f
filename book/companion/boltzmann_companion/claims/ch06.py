"""What chapter 06 claims: of ratios of large models, of mixtures, and of ten runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from boltzmann_companion.claims.checks import Claims, Row, Rows, above, every, of_stored
from boltzmann_companion.records import std_error


def two_directions(ratios: Rows, table: Rows) -> Claims:
    """Of this run's ratio, from either side and as a difference of estimates of Table 1.

    It cannot be told if the library warns of one of these.
    """
    trusted = all(row["warnings"] == "none" for row in table)
    fits = _fits(*ratios) if trusted else None
    yield "the difference of the separate estimates fits the two directions", fits


@of_stored("sm2008-ratios-full-size")
def start_of_the_ratio(ratios: Rows) -> Claims:
    """The states from which the ratio of two MNIST models starts."""
    row, _ = ratios
    claim = "CD25(500)/CD3(500): the start's chains are not where AIS says that they should be"
    yield claim, above(abs(row["start_chains"] - row["start_annealed"]), 0, row["start_error"])


@of_stored("sm2008-mixtures", "sm2008-table-1-full-size")
def best_rbm_above_mixtures(mixtures: Rows, table: Rows) -> Claims:
    """The best mixture beside the best RBM."""
    best = max(table, key=lambda row: row["test"])
    best_mixture = max(row["test"] for row in mixtures)
    claim = "the best RBM predicts the test images better than the best mixture"
    yield claim, above(best["test"], best_mixture, std_error(best, "test"))


def worth(effective: Sequence[float]) -> Claims:
    """Of the effective number of ten runs, for each of the small models."""
    near_four = every(3 < number < 5 for number in effective)
    yield "ten runs are worth between three and five", near_four


def _fits(forward: Row, backward: Row) -> bool | None:
    """Whether the difference of separate estimates meets the span of the two direct ones."""
    low = min(forward["interval_3_sigma"][0], -backward["interval_3_sigma"][1])
    high = max(forward["interval_3_sigma"][1], -backward["interval_3_sigma"][0])
    ends = (low, high, *forward["difference_interval"])
    if not all(map(math.isfinite, ends)):
        return None
    return forward["difference_interval"][0] <= high and low <= forward["difference_interval"][1]
