r"""The columns of the book's records: headings, units, and how far two runs may differ.

A chapter only fills in rows. Columns that mean the same in several records are declared in
`columns.yaml`. Columns of one record alone, or with another meaning in it, are declared in the file
of its chapter in `headings/`, which also says what its tables show. Any other column is headed by
its key:

>>> rows = [{"model": "CD1(500)", "log_z": 451.3, "my_own": 1.5}]
>>> columns = record_columns("my-own-table", "digits", rows)
>>> columns["log_z"]
Column(label='$\\ln \\hat Z$', unit='nats', tolerance=1e-06)
>>> columns["my_own"]
Column(label='my own', unit='', tolerance=0.0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from paperlib.errors import InputError

#: Columns that several records share.
SHARED = Path(__file__).with_name("columns.yaml")
#: A file for each chapter, with what its records alone have.
HEADINGS = Path(__file__).with_name("headings")


@dataclass(frozen=True)
class Column:
    """What a record says about one of its columns.

    Attributes
    ----------
    label : str
        Heading, in Markdown.
    unit : str
        `nats`, `minutes`, `count`, ... ; empty for names.
    tolerance : float or None
        Largest absolute difference between two runs of the same code with the same seed; None: not
        compared.
    """

    label: str
    unit: str = ""
    tolerance: float | None = 0.0


@dataclass(frozen=True)
class View:
    """How a table shows a record.

    Attributes
    ----------
    headings : mapping of str to str or None
        The columns that it shows, with headings in place of their labels; None: all columns that
        are filled in.
    digits : int or None
        Significant digits, as for `boltzmann_companion.tables.record_table`.
    """

    headings: Mapping[str, str | None] | None = None
    digits: int | None = None


def record_columns(name: str, profile: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Column]:
    """The columns of a record: the keys of its rows, in their order.

    Parameters
    ----------
    name : str
        Name of the record.
    profile : str
        Name of the profile, as some tolerances and labels differ.
    rows : sequence of mappings
        Its rows.

    Examples
    --------
    >>> rows = [{"model": "CD1(25)", "log_z": 221.0}]
    >>> record_columns("sm2008-table-1", "digits", rows)["log_z"].unit
    'nats'
    """
    shared = _shared_columns()
    special = _declared(name).get("columns", {})
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: _column(key, shared.get(key, {}) | special.get(key, {}), profile) for key in keys}


def view(name: str, which: str | None = None) -> View:
    """How a record is shown: in its only view, the first of several, or the one with this name.

    Raises
    ------
    InputError
        If no view of this name is declared.

    Examples
    --------
    >>> view("binarization").headings["fresh_gap_spread"]
    'its spread'
    """
    declared = _declared(name)
    shown = declared.get("shown")
    views: dict[str | None, Any] = shown if isinstance(shown, dict) else {None: shown}
    which = which or next(iter(views))
    if which not in views:
        raise InputError(f"view: expected one of {name} in {HEADINGS.name}/, got {which!r}")
    headings = views[which] and dict(_heading(item) for item in views[which])
    return View(headings, declared.get("digits"))


def _column(key: str, fields: Mapping[str, Any], profile: str) -> Column:
    """A column from its fields; a field may have a value for each profile."""
    values = {name: x[profile] if isinstance(x, dict) else x for name, x in fields.items()}
    unit = values.get("unit", "")
    tolerance = {"": 0.0, "count": 0}.get(unit, 1e-6)
    return Column(
        label=values.get("label", key.replace("_", " ")),
        unit=unit,
        tolerance=values.get("tolerance", tolerance),
    )


def _heading(item: str | dict[str, str]) -> tuple[str, str | None]:
    """A column that a table shows, and the heading that it has there if not its label."""
    return (item, None) if isinstance(item, str) else next(iter(item.items()))


def _declared(name: str) -> dict[str, Any]:
    """What is declared for a record."""
    return _declared_records().get(name, {})


@cache
def _shared_columns() -> dict[str, dict[str, Any]]:
    return yaml.safe_load(SHARED.read_text(encoding="utf-8"))


@cache
def _declared_records() -> dict[str, dict[str, Any]]:
    records = {}
    for path in sorted(HEADINGS.glob("*.yaml")):
        records |= yaml.safe_load(path.read_text(encoding="utf-8"))
    return records
