"""What chapter 7 claims of greedy learning, and of the bound of a deep belief network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from boltzmann_companion.claims.checks import Claims, Row, Rows, every
from paperlib.estimators.dbn_bound import DBNBoundEstimate


def narrow_layer(gains: Mapping[str, float]) -> Claims:
    """What a second layer with a single unit gains on each RBM, in nats."""
    claim = "a single second unit ends below the good RBM, and above the spoilt one"
    yield claim, gains["likelihood"] < 0 < gains["CD-1"]


def fall(course: Sequence[tuple[float, float]]) -> Claims:
    """The learning of the third layer in which ln p(v) falls furthest: the bound and ln p(v) at every step."""
    rises = all(a < b for (a, _), (b, _) in pairwise(course))
    claim = "the bound rises at every step, and ln p(v) ends lower than it began"
    yield claim, rises and course[-1][1] < course[0][1]


def sampled(expected: float, by_hand: float, by_library: DBNBoundEstimate) -> Claims:
    """Two estimates of a bound beside its exact average in nats."""
    error = by_library.monte_carlo_std_error
    agree = all(abs(bound - expected) < 4 * error for bound in (by_hand, by_library.bound))
    claim = "these lines and dbn_lower_bound: within 4 standard errors of the exact bound"
    yield claim, agree if error < 0.01 else None


def sides(rows: Rows) -> Claims:
    """ln Z by annealing either layer."""
    yield "the two sides agree for every model", every(map(_agree, rows))


def gap(rows: Rows) -> Claims:
    """What the bound leaves out, for three DBNs after a random start and one after the transposed start."""
    *from_random, from_transposed = (row["gap"] for row in rows)
    least = min(from_random)
    claim = "after a random start the bound leaves out at least a tenth of a nat, after the transposed one less"
    yield claim, least > 0.1 and from_transposed < least


def _agree(row: Row) -> bool | None:
    """Whether the intervals of the two sides meet; None if one is infinite, or the library warns."""
    (low, high), (lower, upper) = row["lower_interval"], row["upper_interval"]
    warned = "yes" in (row["lower_warned"], row["upper_warned"])
    if warned or not all(map(math.isfinite, (low, high, lower, upper))):
        return None
    return low <= upper and lower <= high
