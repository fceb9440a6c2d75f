"""What the prose says of several cells at once: counts, differences and extremes.

A number in prose is a link to its cell (`boltzmann_companion.cells`). Where no record has it,
because it is how many of some rows are so, or how far two of them are apart, a function of
`boltzmann_companion.derivations` computes it from the records at the papers' size. The table
`figures/derived.json` has it, with the names of those records and a checksum of their rows.
`paperlib check` refuses a table that was made of other records, and `paperlib check --write` makes
it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boltzmann_companion.cells import DERIVED, read_table
from boltzmann_companion.record_files import as_json
from paperlib import storage
from paperlib.errors import InputError

_COLUMNS = {
    "name": {"label": "name", "unit": "", "tolerance": 0},
    "what": {"label": "what it is", "unit": "", "tolerance": None},
    "value": {"label": "value", "unit": "", "tolerance": 1e-6},
    "unit": {"label": "unit", "unit": "", "tolerance": None},
    "records": {"label": "from", "unit": "", "tolerance": None},
}
COMMAND = "paperlib check --write"
# What stands for the published numbers among the records.
_PRINTED = "published"


def checksum(table: Mapping[str, Any]) -> str:
    """Of the rows of a record: its provenance may change.

    Examples
    --------
    >>> checksum({"rows": []})[:8]
    '4f53cda1'
    """
    text = json.dumps(as_json(table["rows"]), sort_keys=True)
    return storage.sha256(text.encode())


def derived_table() -> dict[str, Any]:
    """The table as the records have it now.

    Raises
    ------
    InputError
        If a record has not the rows or columns that a function looks up; says which function.

    Examples
    --------
    >>> derived_table()["name"]
    'derived'
    """
    # These need torch, and only what follows needs them.
    from boltzmann_companion.claims.checks import Row, Stored
    from boltzmann_companion.derivations import DERIVATIONS

    class Noting(Stored):
        """Notes which records were looked up."""

        used: set[str]

        def rows(self, name: str, **where: Any) -> list[Row]:
            self.used.add(name)
            if name == _PRINTED:
                return read_table(_path(storage.companion_folder(), name))["rows"]
            return super().rows(name, **where)

    stored = Noting()
    rows = []
    used = set()
    for derive in DERIVATIONS:
        stored.used = set()
        try:
            numbers = list(derive(stored))
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
            where = f"{derive.__module__}.{derive.__name__}"
            raise InputError(f"{where}: the records lack what it needs: {error!r}") from error
        used |= stored.used
        records = sorted(stored.used)
        rows += [
            {"name": name, "what": what, "value": _rounded(value), "unit": unit, "records": records}
            for name, unit, value, what in numbers
        ]
    root = storage.companion_folder()
    sums = {name: checksum(read_table(_path(root, name))) for name in sorted(used)}
    provenance = {"command": COMMAND, "rows": sums}
    return {"name": "derived", "columns": _COLUMNS, "rows": rows, "provenance": provenance}


def _rounded(value: Any) -> Any:
    """Without the last digits, in which machines differ."""
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def _path(root: Path, name: str) -> Path:
    if name == _PRINTED:
        return root / "data" / "published.csv"
    return root / "figures" / "paper" / f"{name}.json"


def is_current(root: Path) -> bool:
    """Whether the stored table was made of the records as they are."""
    path = root / DERIVED
    if not path.is_file():
        return False
    sums = read_table(path)["provenance"]["rows"]
    records = {name: _path(root, name) for name in sums}
    return all(
        records[name].is_file() and checksum(read_table(records[name])) == sums[name]
        for name in sums
    )


def write_derived(root: Path) -> None:
    """Make the table again."""
    text = json.dumps(derived_table(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    with storage.atomic_path(root / DERIVED) as temporary:
        temporary.write_text(text, encoding="utf-8")
    read_table.cache_clear()
