"""What chapter 17 claims of its runs: the certified bound, the hidden mode, and approximations without sampling."""

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
    """A line for each model of `estimator-coverage` without a hidden mode and each estimator, at the larger budget."""
    _, largest = _budgets(rows)
    for row in rows:
        is_asked = row["models"] != HIDDEN and row["estimator"] != BOUND
        if is_asked and row["budget"] == largest:
            low, high = row["held_95_interval"]
            other = "too seldom" if high < 95 else "more often than they say"
            word = "as often as they say" if low <= 95 <= high else other
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
    """Of the runs of these estimators on models with a hidden mode."""
    own = [row for row in rows if row["models"] == HIDDEN and row["estimator"] in names]
    return sum(row[outcome] for row in own) / sum(row["runs"] for row in own)


def _budgets(rows: Rows) -> tuple[int, int]:
    """The smallest and the largest."""
    budgets = [row["budget"] for row in rows]
    return min(budgets), max(budgets)
