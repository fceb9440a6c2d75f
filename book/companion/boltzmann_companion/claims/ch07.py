"""What chapter 7 claims of greedy learning, and of estimates of a bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from boltzmann_companion.claims.checks import Claims
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
