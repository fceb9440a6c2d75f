"""What chapter 9 claims: of the printed variance, and of what control variates gain."""

from __future__ import annotations

from boltzmann_companion.claims.checks import Claims, Row, Rows, every
from boltzmann_companion.rows import by_model, where

# A simulated variance has a relative standard error of sqrt(2 / 20,000) = 1 %, a little more where
# the values are skewed.
_SAME = 0.06


def _off(row: Row, formula: str) -> bool:
    """Whether a formula of the variance is not what a simulation finds."""
    return abs(row[formula] / row["simulated"] - 1) > _SAME


def printed_formula(rows: Rows) -> Claims:
    """Of `control-variate-variance`: the variance as it is printed."""
    wrong = all(_off(row, "printed") == (row["alpha"] > 0) for row in rows)
    yield "the printed formula is off at every alpha above zero, and at no other", wrong


def reductions(rows: Rows, shown: int) -> Claims:
    """Of `control-variates`, for the number of steps that the tables show."""
    shown_rows = where(rows, steps=shown)
    halved = every(row["average_error"] < row["plain_error"] / 2 for row in shown_rows)
    models = len(by_model(shown_rows))
    yield f"{models} models: less than half the standard error of a plain average", halved
