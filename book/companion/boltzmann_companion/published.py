"""The numbers that the papers publish, read from `data/published.csv`.

The table has every number that the two papers publish: all cells of their tables, and the numbers
of their running text, captions and footnotes. Cells in which a paper prints a dash have no entry.
Numbers that we regenerate are in `figures/<profile>/<record>.json`. At the end are numbers of a
later paper about the same weights, which the report of the two papers does not count.
`tests/test_published.py` checks the table entry by entry.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from paperlib import storage
from paperlib.errors import InputError

#: Salakhutdinov & Murray, and Burda, Grosse & Salakhutdinov.
PAPERS = ("sm2008", "raise2015")
#: Carlson, Stinson, Pakman & Paninski; their numbers are shown beside ours, and not in the report.
LATER_PAPERS = ("carlson2016",)


@dataclass(frozen=True)
class Cell:
    """The record, the row (field `model`) and the column that hold a value."""

    record: str
    row: str
    column: str


@dataclass(frozen=True)
class Published:
    """One published number: a row of `data/published.csv`.

    Attributes
    ----------
    id : str
        Unique name: paper/where/row/column, lower case.
    paper : str
        One of `PAPERS` or `LATER_PAPERS`.
    where : str
        Table, figure, section or footnote.
    row, column : str
        As printed in a table (headings of two lines are joined); for running text, what is counted
        or measured, and of which model.
    value : float or None
        The number, with the paper's sign and digits; None where only an interval is given.
    interval : tuple of float, or None
        The columns `low` and `high`, put in rising order, where the paper prints two ends.
    unit : str
        nats, minutes, hours, seconds, count, fraction or dimensionless.
    kind : str
        `protocol`: a setting of the experiment. `model`: a number of the authors' own trained
        parameters, or of their machine. `claim`: a statement about a comparison.
    reproduced_by : Cell or None
        Where our own stored model has the value; None where no record does.
    same_weights : Cell or None
        Where the authors' own weights have it, by the paper's protocol; None for every other model.
    note : str or None
        A slip of the paper, a rounding, where the number is printed again.
    inverse : bool
        Whether the paper prints the logarithm of the inverse ratio; `yes` in the table, which
        otherwise has nothing there.
    """

    id: str
    paper: str
    where: str
    row: str
    column: str
    value: float | None
    interval: tuple[float, float] | None
    unit: str
    kind: str
    reproduced_by: Cell | None
    same_weights: Cell | None
    note: str | None = None
    inverse: bool = False

    @property
    def printed(self) -> float | list[float]:
        """The value, or the two ends where only an interval is printed."""
        if self.value is not None:
            return self.value
        assert self.interval is not None  # an entry without either is refused when it is read
        return list(self.interval)

    @property
    def meant(self) -> float | list[float]:
        """The printed number, with the sign that the paper's own definition gives it."""
        if not self.inverse:
            return self.printed
        if isinstance(self.printed, list):
            return [-end for end in reversed(self.printed)]
        return -self.printed


def load_published(
    path: str | os.PathLike[str] | None = None, papers: Collection[str] = PAPERS
) -> list[Published]:
    """Every published number of the given papers.

    Parameters
    ----------
    path : path-like, optional
        The table; by default the companion's `data/published.csv`.
    papers : collection of str
        Papers whose numbers to return, by default the two that are reproduced; `LATER_PAPERS` has
        the others.
    """
    path = Path(path or storage.companion_folder() / "data" / "published.csv")
    return [_entry(row) for row in _rows(path) if row["paper"] in papers]


def find(entries: Iterable[Published], **wanted: Any) -> list[Published]:
    """The entries whose fields have these values, such as `find(entries, where="Table 1")`."""
    unknown = sorted(set(wanted) - {field.name for field in fields(Published)})
    if unknown:
        raise InputError(f"find: expected names of fields of Published, got {unknown}")
    return [e for e in entries if all(getattr(e, name) == value for name, value in wanted.items())]


def _rows(path: Path) -> list[dict[str, str]]:
    # A spreadsheet may put a mark in front of the file.
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def _entry(row: Mapping[str, str]) -> Published:
    texts = {name: row[name] for name in ("id", "paper", "where", "row", "column", "unit", "kind")}
    low = _number(row["low"])
    high = _number(row["high"])
    return Published(
        **texts,
        value=_number(row["value"]),
        interval=None if low is None or high is None else (low, high),
        reproduced_by=_cell(row, "reproduced_by"),
        same_weights=_cell(row, "same_weights"),
        note=row["note"] or None,
        inverse=row["inverse"] == "yes",
    )


def _cell(row: Mapping[str, str], field: str) -> Cell | None:
    parts = [row[f"{field}.{part.name}"] for part in fields(Cell)]
    return Cell(*parts) if any(parts) else None


def _number(text: str) -> float | None:
    """A whole number where the table has one, since 100 runs are not shown as 100.0."""
    with suppress(ValueError):
        return int(text)
    return float(text) if text else None
