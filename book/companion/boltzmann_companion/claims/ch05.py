"""What chapter 05 claims of its tables: AIS beside the exact ln Z, and ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import chdtri
from torch import Tensor

from boltzmann_companion.claims.checks import Claims, Rows, above, every, inside, of_stored
from boltzmann_companion.rows import by_model

# Of a right AIS, how often chance alone makes `unbiased` fail.
_FALSE_ALARMS = 1e-3


def intervals(table: Rows) -> Claims:
    """Of this run's Table 1: AIS's intervals beside the exact ln Z."""
    held = every(_holds(row["interval_3_sigma"], row["exact_log_z"]) for row in table)
    yield "every 3-sigma interval holds the true ln Z", held


def _holds(interval: Sequence[float], truth: float) -> bool | None:
    """Whether an interval holds the truth, which one without an end does not show."""
    if not inside(interval, truth):
        return False
    return True if all(map(math.isfinite, interval)) else None


def unbiased(points: Rows) -> Claims:
    """Of this run's Figure 3: errors of the mean weights of all models, in standard errors."""
    errors = [_pooled_error(rows) for rows in by_model(points).values()]
    # The mean weight is unbiased, so each error is standard normal but for the skewness of the
    # weights.
    chance = chdtri(len(errors), _FALSE_ALARMS)
    statistic = sum(error**2 for error in errors)
    claim = "all runs together pass a chi-square test with 1 false alarm in 1,000"
    yield claim, statistic < chance if math.isfinite(statistic) else None


def _pooled_error(points: Rows) -> float:
    """The mean weight of independent sets of runs less the exact Z, in standard errors."""
    mean = variance = 0.0
    for row in points:
        share = row["runs"] * math.exp(row["log_z"] - row["exact_log_z"])
        relative_std = math.expm1(row["interval_3_sigma"][1] - row["log_z"]) / 3
        mean = mean + share
        variance = variance + (share * relative_std) ** 2
    return (mean - sum(row["runs"] for row in points)) / math.sqrt(variance)


def both_directions(ratios: Rows) -> Claims:
    """Of this run's ratios: the last two, which start from exact draws, beside the true ratio."""
    exact_starts = ratios[1:]
    intervals = [row["interval_3_sigma"] for row in exact_starts]
    low = min(low for low, _ in intervals)
    high = max(high for _, high in intervals)
    known = math.isfinite(low) and math.isfinite(high)
    claim = "the intervals of the two directions bracket the true log-ratio"
    yield claim, low <= exact_starts[0]["exact"] <= high if known else None


@of_stored("sm2008-ratios")
def ratio_on_mnist(ratios: Rows) -> Claims:
    """One direction is wrong from either start, and the library doubts all three."""
    *forward, _ = ratios
    missed = not any(inside(row["interval_3_sigma"], row["exact"]) for row in forward)
    warned = all(row["warnings"] != "none" for row in ratios)
    claim = (
        "from CD1(25) neither interval holds the truth, and the library warns in both directions"
    )
    yield claim, missed and warned


def likeliest_state(hidden: Tensor) -> Claims:
    """Of exact draws [N, M] of the hidden units of the MNIST CD1(20)."""
    share = hidden.unique(dim=0, return_counts=True)[1].max().item() / len(hidden)
    error = math.sqrt(share * (1 - share) / len(hidden))
    claim = "its most probable hidden state has more than half of the probability"
    yield claim, above(share, 0.5, error)
