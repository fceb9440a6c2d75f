"""What chapter 17 claims: of the certified bound, the hidden mode, and no sampling at all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from boltzmann_companion.claims.checks import Claims, Rows, every
from boltzmann_companion.studies.budgeted_estimators import BOUND
from boltzmann_companion.studies.estimator_study import HIDDEN

_LOST = "importance sampling"
_MEAN_FIELD = "AIS, mean-field start"
# By where their chains start.
_FROM_DATA = (_LOST, "AIS", "SMC", "parallel tempering")
_APPROXIMATIONS = ("mean_field", "tap", "bethe", "tree_reweighted")


def intervals(rows: Rows) -> Iterator[str]:
    """Of `estimator-coverage`: a line for each model without a hidden mode and each estimator.

    It is about the larger budget.
    """
    largest = max(row["budget"] for row in rows)
    for row in rows:
        if row["models"] == HIDDEN or row["estimator"] == BOUND or row["budget"] != largest:
            continue
        low, high = row["held_95_interval"]
        if low > 95:
            word = "more often than they say"
        elif high < 95:
            word = "too seldom"
        else:
            word = "as often as they say"
        yield f"{row['model']}, {row['estimator']}: 95 % intervals hold {word}"


def bound(rows: Rows) -> Claims:
    """Of `estimator-coverage`: the certified bound."""
    always = every(row["held_68"] == 100 for row in rows if row["estimator"] == BOUND)
    claim = "the certified bound was never above ln Z, not even at the level of 68 %"
    yield claim, always


def trust(trusted: Rows) -> Claims:
    """Of `estimator-trust`: who is wrong without a warning, and who finds the hidden mode."""
    outcomes = ("wrong_trusted", "wrong_suspected")
    missed = sum(_share(trusted, _FROM_DATA, outcome) for outcome in outcomes) == 1
    yield "from the base rates the hidden mode is missed in every run", missed
    right = ("right_trusted", "right_suspected")
    met = sum(_share(trusted, (_MEAN_FIELD,), outcome) for outcome in right) == 1
    yield "from mean field's optima it is never missed", met


def approximations(rows: Rows, runs: Rows) -> Claims:
    """Of `deterministic-approximations`, and of `estimator-study` beside it."""
    error = _median_errors(runs)
    largest = max(row["budget"] for row in runs)
    nearer = every(
        error[row["model"], largest, _MEAN_FIELD] < min(abs(row[key]) for key in _APPROXIMATIONS)
        for row in rows
    )
    yield "AIS from mean field's start is nearer than all four, on every model", nearer


def _median_errors(rows: Rows) -> Mapping[tuple[str, int, str], Any]:
    return {(row["model"], row["budget"], row["estimator"]): row["median_error"] for row in rows}


def _share(rows: Rows, names: Collection[str], outcome: str) -> float:
    """The share of an outcome in the runs of these estimators on models with a hidden mode."""
    hidden = [row for row in rows if row["models"] == HIDDEN and row["estimator"] in names]
    return sum(row[outcome] for row in hidden) / sum(row["runs"] for row in hidden)
