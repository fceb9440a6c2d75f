"""What the chapters claim of stored records: it holds of the committed ones, and each claim fails on others."""

import importlib
import itertools
import math
import pkgutil

import pytest

from boltzmann_companion import claims
from boltzmann_companion.claims.checks import STORED
from boltzmann_companion.records import load_result

for module in pkgutil.iter_modules(claims.__path__, f"{claims.__name__}."):
    importlib.import_module(module.name)
EACH = pytest.mark.parametrize(
    "checks", STORED, ids=lambda checks: f"{checks.__module__.split('.')[-1]}.{checks.__name__}"
)
# Every number of every record changed.
CHANGES = (lambda v: -v, lambda v: 3 * v + 7, lambda v: 0 * v, lambda v: v + 50, lambda v: v / 9)


def rows(name, change=lambda value: value, column=None, row=None):
    """The rows of a stored record, with every number changed, those of one column, or one of them."""
    record = load_result(name, "paper")
    assert record is not None, f"figures/paper/{name}.json has not been computed"
    return [
        {
            key: changed(value, change)
            if column in (None, key) and row in (None, number)
            else value
            for key, value in found.items()
        }
        for number, found in enumerate(record["rows"])
    ]


def changed(value, change):
    if isinstance(value, list):
        return [changed(part, change) for part in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, int):
        return round(change(value)) if math.isfinite(change(value)) else value
    return change(value)


def others(checks):
    """The claims of the same records with other numbers, where these can be told."""
    names = STORED[checks]
    columns = {key: None for name in names for row in rows(name) for key in row}
    most = max(len(rows(name)) for name in names)
    one_cell = itertools.product(columns, range(most))
    places = itertools.chain([(None, None)], ((key, None) for key in columns), one_cell)
    for place, change in itertools.product(places, CHANGES):
        try:
            yield list(checks(*(rows(name, change, *place) for name in names)))
        except (ZeroDivisionError, ValueError, IndexError, KeyError, StopIteration):
            continue


@EACH
def test_claims_of_stored_records_hold(checks):
    found = list(checks(*(rows(name) for name in STORED[checks])))
    assert found
    wrong = [each.claim for each in found if each.required and bool(each.holds) != each.expected]
    assert wrong == []


@EACH
def test_each_claim_fails_on_other_records(checks):
    """A claim is known by its place, since its words may hold a number."""
    intact = list(checks(*(rows(name) for name in STORED[checks])))
    never = set(range(len(intact)))
    for found in others(checks):
        if len(found) == len(intact):
            never = {n for n in never if bool(found[n].holds) == bool(intact[n].holds)}
        if not never:
            break
    assert [intact[place].claim for place in sorted(never)] == []
