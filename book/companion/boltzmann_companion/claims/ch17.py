"""What chapter 17 claims of its runs: errors, intervals, wrong numbers that were trusted, and approximations without sampling."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from boltzmann_companion.claims.checks import Check, Claims, Rows
from boltzmann_companion.rows import where
from boltzmann_companion.studies.budgeted_estimators import BOUND
from boltzmann_companion.studies.estimator_study import HIDDEN, OTHERS
from boltzmann_companion.studies.study import OUTCOMES

_LOST = "importance sampling"
_MEAN_FIELD = "AIS, mean-field start"
# By where their chains start.
_FROM_DATA = (_LOST, "AIS", "SMC", "parallel tempering")
_APPROXIMATIONS = ("mean_field", "tap", "bethe", "tree_reweighted")


def accuracy(rows: Rows, traps: Collection[str], on_digits: bool) -> Claims:
    """Of `estimator-study`, on models that are not among the traps."""
    error, (smallest, largest) = _median_errors(rows), _budgets(rows)
    models = list(dict.fromkeys(row["model"] for row in rows))
    easy = [model for model in models if model not in traps]
    for name in ("AIS", "SMC", "parallel tempering"):
        better = all(error[m, largest, name] < error[m, largest, _LOST] for m in easy)
        yield Check(f"{name} is nearer than importance sampling", better, required=False)
    falls = all(error[m, largest, "AIS"] < error[m, smallest, "AIS"] for m in easy)
    yield Check("AIS comes nearer with a larger budget", falls, required=on_digits)


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


def bound(rows: Rows, on_digits: bool) -> Claims:
    """Of `estimator-coverage`: the certified bound."""
    always = all(row["held_68"] == 100 for row in rows if row["estimator"] == BOUND)
    claim = "the certified bound was never above ln Z, not even at the level of 68 %"
    yield Check(claim, always, required=on_digits)


def trust(trusted: Rows, coverage: Rows, on_digits: bool) -> Claims:
    """Of `estimator-trust` and `estimator-coverage`: who is wrong without a warning, and who finds the hidden mode."""
    _, largest = _budgets(trusted)
    without = where(trusted, models=OTHERS)
    silent = {(row["estimator"], row["budget"]) for row in without if row["wrong, trusted"]}
    claim = "importance sampling is wrong and trusted without a hidden mode, with any budget"
    yield Check(claim, all((_LOST, row["budget"]) in silent for row in trusted), required=on_digits)
    alone = all(name == _LOST for name, budget in silent if budget == largest)
    yield Check("with the larger budget no other estimator is", alone, required=on_digits)
    missed = _share(trusted, _FROM_DATA, "wrong, trusted")
    every = missed + _share(trusted, _FROM_DATA, "wrong, suspected") == 1
    claim = "from the base rates the hidden mode is missed in every run"
    yield Check(claim, every, required=on_digits)
    yield Check("and with a warning in fewer than one of ten", missed > 0.9, required=on_digits)
    found = sum(_share(trusted, (_MEAN_FIELD,), right) for right in OUTCOMES[:2])
    yield Check("from mean field's optima it is never missed", found == 1, required=on_digits)
    [start] = where(coverage, models=HIDDEN, budget=largest, estimator=_MEAN_FIELD)
    claim = "but 95 % intervals from the mean-field start hold too seldom there"
    yield Check(claim, start["held_95_interval"][1] < 95, required=on_digits)


def approximations(rows: Rows, runs: Rows, on_digits: bool) -> Claims:
    """Of `deterministic-approximations`, and of `estimator-study` beside it."""
    yield "mean field lies below the truth", all(row["mean_field"] < 0 for row in rows)
    yield "the tree-reweighted bound lies above it", all(row["tree_reweighted"] > 0 for row in rows)
    closer = all(max(abs(row["tap"]), abs(row["bethe"])) < abs(row["mean_field"]) for row in rows)
    yield Check("TAP and Bethe's are nearer than both", closer, required=on_digits)
    error, (_, largest) = _median_errors(runs), _budgets(runs)
    nearer = all(
        error[row["model"], largest, _MEAN_FIELD] < min(abs(row[key]) for key in _APPROXIMATIONS)
        for row in rows
    )
    claim = "AIS from mean field's start is nearer than all four, on every model"
    yield Check(claim, nearer, required=on_digits)


def wrong_and_trusted(rows: Rows) -> Iterator[str]:
    """Lines that count the runs of `estimator-trust` that mislead, without and with a hidden mode."""
    for models in (OTHERS, HIDDEN):
        own = where(rows, models=models)
        silent, runs = (sum(row[key] for row in own) for key in ("wrong, trusted", "runs"))
        yield f"{models}: {silent:,} of {runs:,} runs wrong and trusted"


def _budgets(rows: Rows) -> tuple[int, int]:
    """The smallest and the largest."""
    budgets = [row["budget"] for row in rows]
    return min(budgets), max(budgets)


def _median_errors(rows: Rows) -> Mapping[tuple[str, int, str], Any]:
    return {(row["model"], row["budget"], row["estimator"]): row["median_error"] for row in rows}


def _share(rows: Rows, names: Collection[str], outcome: str) -> float:
    """Of the runs of these estimators on models with a hidden mode."""
    own = [row for row in rows if row["models"] == HIDDEN and row["estimator"] in names]
    return sum(row[outcome] for row in own) / sum(row["runs"] for row in own)
