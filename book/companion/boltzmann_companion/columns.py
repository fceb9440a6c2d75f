r"""The columns of the book's records: how they are headed, in which unit, and how far two runs may differ.

`columns.yaml` declares each of them once, and says which records have them and which of them a table shows.
A chapter only fills in rows:

>>> rows = [{"model": "CD1(500)", "log_z": 451.3}]
>>> record_columns("my-own-table", "digits", rows)["log_z"]
Column(label='$\\ln \\hat Z$', unit='nats', tolerance=1e-06)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from paperlib.errors import InputError

DECLARATIONS = Path(__file__).with_name("columns.yaml")


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
        Largest absolute difference between two runs of the same code with the same seed; None: not compared.
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
        The columns that it shows, with headings in place of their labels; None: all columns that are filled in.
    digits : int or None
        Significant digits, as for `boltzmann_companion.tables.record_table`.
    """

    headings: Mapping[str, str | None] | None = None
    digits: int | None = None


def record_columns(name: str, profile: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Column]:
    """The columns of a record: those declared for it that its rows have.

    A record that is not declared has the keys of its rows, with the columns as they are declared for all records.

    Parameters
    ----------
    name : str
        Name of the record.
    profile : str
        Name of the profile, as some tolerances and labels differ.
    rows : sequence of mappings
        Its rows.

    Raises
    ------
    InputError
        If a row has a key that is not declared.

    Examples
    --------
    >>> found = record_columns("sm2008-table-1", "digits", [{"model": "CD1(25)", "log_z": 221.0}])
    >>> found["log_z"].unit
    'nats'
    """
    declared = _declarations()["records"].get(name, {})
    used = dict.fromkeys(key for row in rows for key in row)
    keys = declared.get("columns", used)
    known = _declarations()["columns"]
    unknown = [key for key in used if key not in keys or key not in known]
    if unknown:
        raise InputError(
            f"rows: expected columns of {name} in {DECLARATIONS.name}, got {', '.join(unknown)}"
        )
    overrides = declared.get("overrides", {})
    return {
        key: _column(key, (known[key] or {}) | overrides.get(key, {}), profile)
        for key in keys
        if key in used
    }


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
    declared = _declarations()["records"].get(name, {})
    shown = declared.get("shown")
    views: dict[str | None, Any] = shown if isinstance(shown, dict) else {None: shown}
    which = which or next(iter(views))
    if which not in views:
        raise InputError(f"view: expected one of {name} in {DECLARATIONS.name}, got {which!r}")
    headings = views[which] and dict(_heading(item) for item in views[which])
    return View(headings, declared.get("digits"))


def _column(key: str, fields: dict[str, Any], profile: str) -> Column:
    """A column from its fields; a field may have a value for each profile."""
    fields = {"label": key.replace("_", " ")} | fields
    return Column(**{name: x[profile] if isinstance(x, dict) else x for name, x in fields.items()})


def _heading(item: str | dict[str, str]) -> tuple[str, str | None]:
    """A column that a table shows, and the heading that it has there if not its label."""
    return (item, None) if isinstance(item, str) else next(iter(item.items()))


@cache
def _declarations() -> dict[str, Any]:
    return yaml.safe_load(DECLARATIONS.read_text(encoding="utf-8"))
