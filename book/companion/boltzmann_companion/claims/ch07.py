"""What chapter 7 claims of estimates of a bound."""

from __future__ import annotations

from boltzmann_companion.claims.checks import Claims
from paperlib.estimators.dbn_bound import DBNBoundEstimate


def sampled(expected: float, by_hand: float, by_library: DBNBoundEstimate) -> Claims:
    """Two estimates of a bound beside its exact average in nats."""
    error = by_library.monte_carlo_std_error
    agree = all(abs(bound - expected) < 4 * error for bound in (by_hand, by_library.bound))
    claim = "these lines and dbn_lower_bound: within 4 standard errors of the exact bound"
    yield claim, agree if error < 0.01 else None
