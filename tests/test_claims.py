"""What chapters claim of stored records holds of the committed ones and fails on others."""

import importlib
import itertools
import math
import pkgutil

import pytest

from boltzmann_companion import claims
from boltzmann_companion.claims.checks import STORED, Stored

for module in pkgutil.iter_modules(claims.__path__, f"{claims.__name__}."):
    importlib.import_module(module.name)


def name_of(claim):
    return f"{claim.judge.__module__.split('.')[-1]}.{claim.judge.__name__}"


# The committed records.
GIVEN = Stored()
# What a number of a record is changed to.
CHANGES = (lambda v: -v, lambda v: 3 * v + 7, lambda v: 0 * v, lambda v: v + 50, lambda v: v / 9)
# What a claim may meet in records that no run could have made.
UNDEFINED = (ArithmeticError, AssertionError, LookupError, StopIteration, TypeError, ValueError)


def answers(claim, stored):
    """Each sentence, with whether it holds."""
    return [(each.claim, bool(each.holds)) for each in claim.checks(stored)]


def read_by(claim):
    """The names of the records that a claim reads."""
    names = []

    def record(name):
        names.append(name)
        return GIVEN.record(name)

    answers(claim, Stored(record))
    return list(dict.fromkeys(names))


def others(names):
    """The records with other numbers: all of them, those of a column, or a single one.

    Or each row with what another model has.
    """
    rows = {name: GIVEN.record(name)["rows"] for name in names}
    columns = dict.fromkeys(key for table in rows.values() for each in table for key in each)
    most = max(map(len, rows.values()))
    one_cell = itertools.product(columns, range(most))
    places = itertools.chain([(None, None)], ((key, None) for key in columns), one_cell)
    for (column, row), change in itertools.product(places, CHANGES):
        yield {name: changed_rows(table, column, row, change) for name, table in rows.items()}
    for shift in range(1, most):
        yield {name: shifted_rows(table, shift) for name, table in rows.items()}


def changed_rows(table, column, row, change):
    """The rows with a change in this column and row; None stands for all of them."""

    def changed_row(number, values):
        if row not in (None, number):
            return dict(values)
        return {
            key: changed(value, change) if column in (None, key) else value
            for key, value in values.items()
        }

    return [changed_row(number, values) for number, values in enumerate(table)]


def shifted_rows(table, shift):
    """Each model with the values of the model so many rows below."""
    return [
        table[(number + shift) % len(table)] | {"model": values.get("model")}
        for number, values in enumerate(table)
    ]


def changed(value, change):
    if isinstance(value, list):
        return [changed(part, change) for part in value]
    if isinstance(value, str) and value.replace(", ", "").isdecimal():
        return ", ".join(str(changed(int(part), change)) for part in value.split(", "))
    if not isinstance(value, int | float):
        return value
    if isinstance(value, int):
        return round(change(value)) if math.isfinite(change(value)) else value
    return change(value)


@pytest.mark.parametrize("claim", STORED, ids=name_of)
def test_claims_hold(claim):
    checks = list(claim.checks(GIVEN))
    assert checks
    assert [each.claim for each in checks if each.answer != "yes"] == []


@pytest.mark.parametrize("claim", STORED, ids=name_of)
def test_claims_fail_on_other_records(claim):
    """Each of its sentences, which is known by its place, since its words may hold a number."""
    stored = answers(claim, GIVEN)
    never = set(range(len(stored)))
    for rows in others(read_by(claim)):
        try:
            changed_answers = answers(claim, Stored(lambda name, rows=rows: {"rows": rows[name]}))
        except UNDEFINED:
            continue
        if len(changed_answers) == len(stored):
            never = {n for n in never if changed_answers[n][1] == stored[n][1]}
        if not never:
            break
    assert [stored[n][0] for n in sorted(never)] == []


def test_our_mixture_of_a_hundred_components_hardly_overfits():
    """Both of them, with whatever start and smoothing; the errata say so."""
    both = [row for row in GIVEN.rows("sm2008-mixtures") if row["model"].startswith("MoB(100)")]
    assert len(both) == 2
    assert all(row["train"] - row["test"] < 1 for row in both)
