"""Cells of records and of the published numbers, and how a text names them.

A number in prose is a link to the cell that holds it:

    the gap is [3.9](../figures/paper/raise-gaps.json#mnistCD1-500,base-rates/gap) nats
    where the paper has [-145.26](../data/published.csv#raise2015/table-1/mnistcd25-500/csl)

After the file come the row and the column, and for a cell that is a list the place in it:
`interval_3_sigma/0`. A row is named by the values that tell it apart, joined by commas: a text as
`slug` writes it, a number as `steps=1000`. Any of a row's settings will do, in any order, as long
as they fit one row only. This module needs nothing but the files, so that all links are compared in
a second.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from boltzmann_companion.record_files import read_json
from paperlib.errors import InputError

#: The path of a table in the repository, as a link has it after its `../`.
TABLE = r"(?:figures/(?:(?:digits|paper)/[\w.-]+|derived)\.json|data/published\.csv)"
#: The table of what is counted or subtracted (`boltzmann_companion.derived`).
DERIVED = "figures/derived.json"
_GREEK = {"α": "alpha", "β": "beta"}
_ENDS = ("value", "low", "high")


@dataclass(frozen=True)
class Cell:
    """A cell and what is needed to read it.

    Attributes
    ----------
    value : float, int, str or list
        What the cell holds.
    unit : str
        Of its column.
    row : str
        The name of its row (`row_names`).
    table : str
        The path of its table in the repository.
    """

    value: Any
    unit: str
    row: str
    table: str


def slug(text: str) -> str:
    """A text without blanks and signs that an address cannot have.

    Examples
    --------
    >>> slug("MoB(100), started at images")
    'MoB-100-started-at-images'
    """
    for letter, name in _GREEK.items():
        text = text.replace(letter, name)
    return re.sub(r"[^\w.+-]+", "-", text, flags=re.ASCII).strip("-")


def row_names(table: Mapping[str, Any]) -> list[str]:
    """A name for each row of a record: as few settings as tell the rows apart, or its number.

    Examples
    --------
    >>> columns = {"model": {"tolerance": 0}, "steps": {"tolerance": 0}, "gap": {"tolerance": 1e-6}}
    >>> settings = [("CD1(25)", 10), ("CD1(25)", 100), ("CD1(20)", 10)]
    >>> rows = [{"model": model, "steps": steps, "gap": 1.0} for model, steps in settings]
    >>> row_names({"columns": columns, "rows": rows})
    ['CD1-25,steps=10', 'CD1-25,steps=100', 'CD1-20,steps=10']
    """
    rows = table["rows"]
    names: list[tuple[str, ...]] = [() for _ in rows]
    for key, column in table["columns"].items():
        parts = [_part(key, row.get(key)) for row in rows]
        if column["tolerance"] == 0 and all(parts):
            longer = [(*name, str(part)) for name, part in zip(names, parts, strict=True)]
            if len(set(longer)) > len(set(names)) or len(rows) == 1:
                names = longer
        if len(set(names)) == len(rows) and all(names):
            return [",".join(name) for name in names]
    return [f"row={index}" for index in range(len(rows))]


def _part(key: str, value: Any) -> str | None:
    """How a row's name has one of its values; None if it cannot."""
    if isinstance(value, str):
        return slug(value) if len(value) < 80 else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{key}={value:.12g}"
    return None


@cache
def read_table(path: Path) -> Mapping[str, Any]:
    """A record, or the published numbers in the form of one, which nobody changes."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
        columns = {name: {"label": name, "unit": "", "tolerance": 0} for name in rows[0]}
        return {"name": path.stem, "columns": columns, "rows": rows, "provenance": {}}
    return read_json(path)


def find_row(table: Mapping[str, Any], name: str) -> int:
    """The index of the row that a name fits.

    Raises
    ------
    InputError
        If it fits none, or several; says the nearest.
    """
    rows = table["rows"]
    names = row_names(table)
    if name in names:
        return names.index(name)
    wanted = set(name.split(","))
    fits = [
        index
        for index, row in enumerate(rows)
        if wanted <= {_part(key, row.get(key)) for key in table["columns"]}
    ]
    if len(fits) == 1:
        return fits[0]
    if fits:
        among = " and ".join(names[index] for index in fits[:2])
        raise InputError(f"{table['name']} has {len(fits)} rows {name}, such as {among}")
    raise InputError(f"{table['name']} has no row {name}{_nearest(name, names)}")


def find_cell(root: Path, table: str, address: str) -> Cell:
    """The cell that a link names.

    Parameters
    ----------
    root : Path
        The repository.
    table : str
        The path of the table in it.
    address : str
        The row and the column, as in `CD1-25,steps=10/gap`.

    Raises
    ------
    InputError
        If there is no such table, row, column or place in a list; says the nearest.

    Examples
    --------
    >>> from paperlib import storage
    >>> root = storage.companion_folder()
    >>> find_cell(root, "figures/paper/sm2008-table-1.json", "CD1-25/exact_log_z").unit
    'nats'
    >>> find_cell(root, "data/published.csv", "sm2008/table-1/cd1-25/true-log-z").value
    255.41
    """
    path = root / table
    if not path.is_file():
        beside = [each.name for each in path.parent.glob("*.json")]
        raise InputError(f"there is no {table}{_nearest(path.name, beside)}")
    if path.suffix == ".csv":
        return _published_cell(table, read_table(path)["rows"], address)
    record = read_table(path)
    row_name, _, column = address.partition("/")
    index = find_row(record, row_name)
    column, _, place = column.partition("/")
    if column not in record["columns"]:
        raise InputError(
            f"{record['name']} has no column {column}{_nearest(column, record['columns'])}"
        )
    value = record["rows"][index].get(column)
    if place:
        if not isinstance(value, list) or not place.isdecimal() or int(place) >= len(value):
            raise InputError(f"{record['name']}, {row_name}, {column} has no place {place}")
        value = value[int(place)]
    name = row_names(record)[index]
    return Cell(value, record["columns"][column]["unit"], name, table)


def _published_cell(table: str, rows: Sequence[Mapping[str, str]], address: str) -> Cell:
    by_id = {row["id"]: row for row in rows}
    key = address
    end = "value"
    if key not in by_id:
        key, _, end = address.rpartition("/")
    if key not in by_id or end not in _ENDS:
        raise InputError(f"published.csv has no row {address}{_nearest(address, by_id)}")
    text = by_id[key][end]
    if not text:
        raise InputError(f"published.csv has no {end} for {key}")
    return Cell(float(text), by_id[key]["unit"], key, table)


def _nearest(wrong: str, right: Sequence[str] | Mapping[str, Any]) -> str:
    close = get_close_matches(wrong, list(right), n=1, cutoff=0.0)
    return f"; the nearest is {close[0]}" if close else ""
