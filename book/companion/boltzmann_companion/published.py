"""The numbers that the papers publish, read from `data/published.csv` and checked entry by entry.

The table has every number that the two papers publish: all cells of their tables, and the numbers of their running text, captions and
footnotes. Cells in which a paper prints a dash have no entry. Numbers that we regenerate are in `figures/<profile>/<record>.json`. At the
end are numbers of a later paper about the same weights, which the report of the two papers does not count.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from paperlib import storage
from paperlib.errors import InputError

#: Salakhutdinov & Murray, and Burda, Grosse & Salakhutdinov.
PAPERS = ("sm2008", "raise2015")
#: Carlson, Stinson, Pakman & Paninski; their numbers are shown beside ours but are not judged by the report.
LATER_PAPERS = ("carlson2016",)
UNITS = ("nats", "minutes", "hours", "seconds", "count", "fraction", "dimensionless")
KINDS = ("protocol", "model", "claim")
#: How a number is judged; `Criterion` explains them.
CRITERIA = ("same-weights", "same-recipe", "claim", "other-data", "setting", "not-judged")
_Row = Mapping[str, str]


@dataclass(frozen=True)
class Cell:
    """The record, the row (field `model`) and the column that hold a value."""

    record: str
    row: str
    column: str


@dataclass(frozen=True)
class Criterion:
    """How a published number is judged, and why.

    Attributes
    ----------
    kind : str
        One of `CRITERIA`. `same-weights`: the authors' own weights give the published value within its and our errors. `same-recipe`: the
        published value lies inside the 95 % prediction interval of at least five training seeds, after the lengths of training that a
        reader would accept. `claim`: by what the paper uses it for, an inequality or an order. `other-data`: our data are not the paper's.
        `setting`: a setting of the experiment. `not-judged`.
    why : str
        The reason for the choice. Many entries share one: `data/published-reasons.csv` lists them with their kinds, and the column
        `reason` names one.
    claim : str or None
        Id, in `boltzmann_companion.claims.claims`, of the claim for which the number is evidence; only with the kind `claim`, and always with it.
    judged_by : Cell or None
        The cell that decides, where it is not that of our stored model: always with the kinds `same-weights` and `same-recipe`, and with
        the kind `claim` if the claim is about another model.
    """

    kind: str
    why: str
    claim: str | None = None
    judged_by: Cell | None = None


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
        As printed in a table (headings of two lines are joined); for running text, what is counted or measured, and of which model.
    value : float or None
        The number, with the paper's sign and digits; None where only an interval is given.
    interval : tuple of float, or None
        The columns `low` and `high`, put in rising order, where the paper prints two ends.
    unit : str
        One of `UNITS`.
    kind : str
        `protocol`: a setting of the experiment. `model`: a number of the authors' own trained parameters, or of their machine. `claim`: a
        statement about a comparison.
    criterion : Criterion
        How the number is judged: the columns `reason`, `claim` and those of `judged_by`.
    reproduced_by : Cell or None
        Where our own stored model has the value; None where no record does.
    note : str or None
        A slip of the paper, a rounding, where the number is printed again.
    inverse : bool
        Whether the paper prints the logarithm of the inverse ratio; `yes` in the table, which otherwise has nothing there.
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
    criterion: Criterion
    reproduced_by: Cell | None
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
    """Read and check every published number; return those of the given papers.

    Parameters
    ----------
    path : path-like, optional
        The table; by default the companion's `data/published.csv`. The reasons are beside it, in `published-reasons.csv`.
    papers : collection of str
        Papers whose numbers to return, by default the two that are reproduced; `LATER_PAPERS` has the others.

    Raises
    ------
    InputError
        If an entry is malformed; the message names its row, its id, the field, what was expected and what was found.
    """
    path = Path(path or storage.companion_folder() / "data" / "published.csv")
    reasons = _table(path.with_name("published-reasons.csv"), "reason", _reason)
    entries = _table(path, "id", lambda row: _entry(row, reasons))
    return [entry for entry in entries.values() if entry.paper in papers]


def find(entries: Iterable[Published], **wanted: Any) -> list[Published]:
    """The entries whose fields equal all those given, such as `find(entries, where="Table 1")`."""
    if unknown := sorted(set(wanted) - {field.name for field in fields(Published)}):
        raise InputError(f"find: expected names of fields of Published, got {unknown}")
    return [e for e in entries if all(getattr(e, name) == value for name, value in wanted.items())]


def _table(path: Path, key: str, entry_of: Callable[[_Row], Any]) -> dict[str, Any]:
    """What `entry_of` makes of every row, under what the row has in the column `key`."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file, restkey="more", restval="", strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected a CSV file, got one that ends in: {error}") from error
    entries: dict[str, Any] = {}
    for number, row in enumerate(rows, start=2):
        try:
            _require("more" not in row, "row", "a field for each column", row.get("more"))
            _require(row[key] not in entries, key, "a unique one", row[key])
            entries[row[key]] = entry_of(row)
        except KeyError as error:
            raise InputError(f"{path}: expected a column {error}, got {list(row)}") from error
        except InputError as error:
            raise InputError(f"{path.name}: row {number}, {row[key]}: {error}") from error
    if not entries:
        raise InputError(f"{path}: expected rows below the names of columns, got none")
    return entries


def _reason(row: _Row) -> Criterion:
    return Criterion(_one_of(CRITERIA, row, "kind"), _text(row, "why"))


def _entry(row: _Row, reasons: Mapping[str, Criterion]) -> Published:
    known = {"paper": (*PAPERS, *LATER_PAPERS), "unit": UNITS, "kind": KINDS}
    words = {field: _one_of(names, row, field) for field, names in known.items()}
    texts = {field: _text(row, field) for field in ("id", "where", "row", "column")}
    well_named = re.fullmatch(row["paper"] + r"(/[a-z0-9.-]+){3}", row["id"])
    _require(well_named, "id", f"lower-case {row['paper']}/where/row/column", row["id"])
    value, low, high = (_number(row, field) for field in ("value", "low", "high"))
    interval = None if low is None or high is None else (low, high)
    rising = interval[0] < interval[1] if interval else low is high
    _require(rising, "high", "an end above low, or neither end", row["high"])
    _require(interval or value is not None, "value", "a number, or an interval", "nothing")
    return Published(
        **texts,
        **words,
        value=value,
        interval=interval,
        criterion=_criterion(row, reasons),
        reproduced_by=_cell(row, "reproduced_by"),
        note=row["note"] or None,
        inverse=_one_of(("", "yes"), row, "inverse") == "yes",
    )


def _criterion(row: _Row, reasons: Mapping[str, Criterion]) -> Criterion:
    reason = reasons[_one_of(reasons, row, "reason")]
    claim, judged_by = row["claim"] or None, _cell(row, "judged_by")
    named = (claim is not None) == (reason.kind == "claim")
    _require(named, "claim", "the id of a claim, with the kind claim only", claim)
    decided = reason.kind == "claim" or (judged_by is not None) == reason.kind.startswith("same-")
    expected = "a cell with the kinds same-weights and same-recipe, and otherwise with claim only"
    _require(decided, "judged_by", expected, judged_by)
    return replace(reason, claim=claim, judged_by=judged_by)


def _cell(row: _Row, field: str) -> Cell | None:
    parts = [f"{field}.{part.name}" for part in fields(Cell)]
    if not any(row[part] for part in parts):
        return None
    return Cell(*(_text(row, part) for part in parts))


def _text(row: _Row, field: str) -> str:
    _require(row[field].strip(), field, "a non-empty text", row[field])
    return row[field]


def _one_of(known: Iterable[str], row: _Row, field: str) -> str:
    _require(row[field] in known, field, f"one of {', '.join(known)}", row[field])
    return row[field]


def _number(row: _Row, field: str) -> float | None:
    """A whole number as such, since tables show the digits that a paper prints."""
    number = None
    for kind in (float, int):
        with suppress(ValueError):
            number = kind(row[field])
    # The only infinity that a paper can mean; it needs a note.
    meant = number == -math.inf and field == "low" and row["note"]
    known = number is not None and (math.isfinite(number) or meant)
    expected = "a finite number or nothing (-inf as low needs a note)"
    _require(known or row[field] == "", field, expected, row[field])
    return number


def _require(holds: object, field: str, expected: str, got: object) -> None:
    if not holds:
        raise InputError(f"{field}: expected {expected}, got {got!r}")
