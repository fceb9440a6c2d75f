"""The papers' numbers beside ours, drawn from `data/published.csv` and the stored records.

Ours are of models that we trained, or of the authors' own weights. Only for the latter does a
difference have an error to be measured by, and a word: *agrees* or *differs*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from boltzmann_companion.claims.checks import Stored
from boltzmann_companion.published import Cell, Published, load_published
from boltzmann_companion.recipes import RECIPES
from boltzmann_companion.records import source_line
from boltzmann_companion.tables import (
    Table,
    cell_of,
    cell_std_error,
    difference,
    format_value,
    row_of,
)

#: How far apart two numbers of the same weights may be, in standard errors of their difference.
ALLOWED = 3.0
_STARTS = ("uniform", "base_rate")
_NONE = format_value(None)


@dataclass(frozen=True)
class Compared:
    """A published number beside one of ours, which comes from one row of a record.

    Attributes
    ----------
    entry : Published
        The number and its unit.
    cell : Cell or None
        Where ours is stored; None if no record answers the number.
    value : number, pair of numbers or None
        Ours.
    std_error : float or None
        Its Monte Carlo standard error.
    steps : int or None
        Our number of annealing steps, for a number of the second paper's tables.
    fitted : bool
        Whether the recipe of our model was fitted to published values.
    joint_error : float or None
        Standard error of the difference, where the weights are the authors'.
    """

    entry: Published
    cell: Cell | None
    value: Any
    std_error: float | None
    steps: int | None
    fitted: bool
    joint_error: float | None

    @property
    def authors(self) -> bool:
        """Whether ours is of the authors' weights."""
        return self.cell is not None and self.cell == self.entry.same_weights

    @property
    def model(self) -> str:
        """Whose number it is."""
        return f"{self.entry.row}, the authors' weights" if self.authors else self.entry.row

    @property
    def off(self) -> Any:
        """Ours less theirs; for intervals of the same weights, the difference of their middles."""
        gap = difference(self.entry.meant, self.value)
        return sum(gap) / 2 if self.authors and isinstance(gap, list) else gap

    @property
    def errors(self) -> float | None:
        """The difference in units of its standard error, where the weights are the authors'."""
        return self.off / self.joint_error if self.joint_error else None

    @property
    def word(self) -> str:
        """*agrees* or *differs* where the weights are the same and the error known; or empty."""
        if self.joint_error is None:
            return ""
        allowed = ALLOWED * self.joint_error + _half_a_digit(self.entry)
        return "agrees" if abs(self.off) <= allowed else "differs"

    @property
    def ours(self) -> str:
        """Our value with its error and number of steps, as far as it has them."""
        text = format_value(self.value)
        if self.std_error is not None:
            text += f" ± {format_value(self.std_error)}"
        if self.fitted:
            text += " (fitted)"
        if self.steps is not None:
            text += f" (K = {self.steps:,})"
        return text


def compared(stored: Stored | None = None) -> list[Compared]:
    """Every published number in the papers' order, beside the authors' weights where there are any.

    Parameters
    ----------
    stored : Stored, optional
        The records; by default the committed ones at the papers' size.
    """
    stored = stored or Stored()
    entries = load_published()
    return [
        compare(entry, entry.same_weights or entry.reproduced_by, stored, entries)
        for entry in entries
    ]


def compare(
    entry: Published, cell: Cell | None, stored: Stored, entries: Iterable[Published] = ()
) -> Compared:
    """A published number beside what a cell has.

    Parameters
    ----------
    entry : Published
        The number.
    cell : Cell or None
        Where ours is.
    stored : Stored
        The records.
    entries : iterable of Published
        All published numbers, of which one may be the printed error of another.
    """
    record = None if cell is None else stored.record(cell.record)
    value = cell_of(cell, record)
    joint = None
    if cell is not None and cell == entry.same_weights:
        joint = _joint_error(entry, cell, record, value, entries)
    start = cell is not None and cell.column.startswith(_STARTS)
    return Compared(
        entry,
        cell,
        value,
        cell_std_error(cell, record),
        row_of(cell, record).get("steps") if start else None,
        _is_fitted(cell, record),
        joint,
    )


def _joint_error(
    entry: Published,
    cell: Cell,
    record: Mapping[str, Any] | None,
    value: Any,
    entries: Iterable[Published],
) -> float | None:
    """The standard error of ours less theirs; None if that of ours is not known.

    Where the paper prints no error, its number was estimated with the same protocol, so that its
    error is as large as ours.
    """
    if entry.interval is not None:
        ours = None if value is None else _half_width(cell, [float(end) for end in value])
    else:
        ours = cell_std_error(cell, record)
    if ours is None or not math.isfinite(ours):
        return None
    theirs = _printed_error(entry, cell, entries)
    return math.hypot(ours, ours if theirs is None else theirs)


def _printed_error(entry: Published, cell: Cell, entries: Iterable[Published]) -> float | None:
    """The standard error that the paper prints, as a three-sigma interval of the same estimate."""
    if entry.interval is not None:
        return _half_width(cell, entry.interval)
    if cell.column not in ("log_z", "test", "train"):
        return None
    interval_cell = replace(cell, column="interval_3_sigma")
    for other in entries:
        if other.paper == entry.paper and other.same_weights == interval_cell and other.interval:
            return _half_width(interval_cell, other.interval)
    return None


def _half_width(cell: Cell, interval: Sequence[float]) -> float:
    """The standard error that an interval of so many sigma, which its column names, stands for."""
    _, sigmas, _ = cell.column.split("_")
    low, high = interval
    return (high - low) / 2 / int(sigmas)


def _half_a_digit(entry: Published) -> float:
    """Half a unit of the last printed digit: hundredths in tables, or tenths or whole nats."""
    for digits in (0, 1):
        if entry.value is not None and round(entry.value, digits) == entry.value:
            return 0.5 * 10.0**-digits
    return 0.005


def _is_fitted(cell: Cell | None, record: Mapping[str, Any] | None) -> bool:
    """Whether the value in a cell is of a model whose recipe was fitted to published values."""
    if record is None or cell is None:
        return False
    names = set()
    for model_id in record["provenance"]["models"]:
        if model_id in RECIPES and RECIPES[model_id].fitted:
            label = RECIPES[model_id].label
            # as in the tables of the first paper and of the second
            names.add(label)
            names.add(f"{RECIPES[model_id].dataset}{label.replace('(', '-').rstrip(')')}")
    return cell.row.removeprefix("Test ").removeprefix("Train ") in names


# ---- tables


def comparison_rows(record_name: str, stored: Stored | None = None) -> Iterator[Compared]:
    """The rows of `comparison_table`: below a model of ours stands the authors', if any."""
    stored = stored or Stored()
    entries = load_published()
    for entry in entries:
        if entry.reproduced_by is None or entry.reproduced_by.record != record_name:
            continue
        yield compare(entry, entry.reproduced_by, stored)
        if entry.same_weights is not None:
            yield compare(entry, entry.same_weights, stored, entries)


def comparison_table(record_name: str) -> Table:
    """Published, ours and their difference, for every published number that a record answers.

    Parameters
    ----------
    record_name : str
        Name of a record at the papers' size, for example `sm2008-table-1`.
    """
    stored = Stored()
    shown = list(comparison_rows(record_name, stored))
    record = stored.record(record_name)
    columns = {} if record is None else record["columns"]
    rows = []
    for row in shown:
        source = row.entry.reproduced_by
        assert source is not None  # or the row would not be shown
        quantity = columns.get(source.column, {}).get("label", row.entry.column)
        rows.append(
            [
                row.model,
                quantity.replace("|", "\\|"),
                format_value(row.entry.printed),
                row.ours,
                format_value(row.off),
                _in_errors(row),
            ]
        )
    heading = ["model", "quantity", "published", "ours", "difference", "in joint errors"]
    names = dict.fromkeys(row.cell.record for row in shown if row.cell)
    sources = [source_line(used) for used in map(stored.record, names) if used is not None]
    return Table(heading, rows, "\n\n".join(sources))


def _in_errors(row: Compared) -> str:
    """A difference in standard errors, with its word."""
    return f"{format_value(row.errors)}, {row.word}" if row.word else _NONE


#: Independent estimates of the second paper, by the columns of our records.
_SECOND = {
    "base_rate_raise": "RAISE, base rates",
    "base_rate_ais": "AIS, base rates",
    "uniform_raise": "RAISE, uniform",
    "uniform_ais": "AIS, uniform",
}


def first_paper(rows: Iterable[Compared]) -> list[Compared]:
    """Test averages of the first paper's Tables 1 and 2, estimates and bounds, in its order."""
    return [
        row
        for row in rows
        if row.entry.paper == "sm2008"
        and row.entry.where.startswith("Table")
        and row.cell is not None
        and (row.cell.column == "test" or (row.cell.column == "bound" and "Test" in row.cell.row))
    ]


def first_table(rows: Sequence[Compared]) -> Table:
    """The first paper's two tables: ln Z, and the average of test images or its bound."""
    log_z_rows = {
        row.entry.row: row
        for row in rows
        if row.entry.where == "Table 1" and row.cell is not None and row.cell.column == "log_z"
    }
    cells = []
    for row in first_paper(rows):
        log_z = log_z_rows.get(row.entry.row)
        cells.append(
            [
                row.model.removeprefix("Test "),
                _NONE if log_z is None else format_value(log_z.entry.printed),
                _NONE if log_z is None else format_value(log_z.value),
                format_value(row.entry.printed),
                format_value(row.value),
                _in_errors(row),
            ]
        )
    heading = ["model", "$\\ln Z$, paper", "$\\ln Z$, ours", "test, paper", "test, ours"]
    return Table([*heading, "in joint errors"], cells)


def second_paper(rows: Iterable[Compared]) -> dict[str, dict[str, Compared]]:
    """The numbers of the RAISE paper's Tables 1 and 2 by model and by column of our records."""
    models: dict[str, dict[str, Compared]] = {}
    for row in rows:
        if row.entry.paper == "raise2015" and row.entry.where.startswith("Table") and row.cell:
            models.setdefault(row.model, {})[row.cell.column] = row
    return {name: columns for name, columns in models.items() if "uniform_gap" in columns}


def second_table(rows: Iterable[Compared]) -> Table:
    """The RAISE paper's two tables: AIS less RAISE from either start."""
    cells = []
    for name, columns in second_paper(rows).items():
        line = [name]
        for start in ("base_rate", "uniform"):
            gap = columns.get(f"{start}_gap")
            if gap is None:
                line += [_NONE, _NONE, _NONE]
            else:
                error = format_value(gap.std_error)
                ours = f"{format_value(gap.value)} ± {error}"
                line += [format_value(gap.entry.printed), ours, _in_errors(gap)]
        cells.append(line)
    heading = ["model"]
    for start in ("base rates", "uniform"):
        heading += [f"{start}, paper", f"{start}, ours", "in joint errors"]
    return Table(heading, cells)


def counts(rows: Sequence[Compared]) -> Table:
    """How many numbers each paper prints, and beside how many of them stands one of ours."""
    papers = {"sm2008": "Salakhutdinov & Murray 2008", "raise2015": "RAISE 2015"}
    cells = []
    for paper, name in papers.items():
        numbers = [row for row in rows if row.entry.paper == paper]
        settings = sum(row.entry.kind == "protocol" for row in numbers)
        authors = sum(row.authors for row in numbers)
        ours = sum(row.value is not None for row in numbers) - authors
        neither = len(numbers) - settings - authors - ours
        cells.append([name, *map(str, (len(numbers), settings, authors, ours, neither))])
    heading = ["paper", "numbers", "settings", "the authors' weights", "our models", "none of ours"]
    return Table(heading, cells)


# ---- the record, and what rests on the authors' weights


def report_rows(rows: Sequence[Compared]) -> list[dict[str, Any]]:
    """The rows of the record `reproduction-report`."""
    estimates = {row.entry.id: name for name, row in independent(rows).items()}
    return [
        {
            "id": row.entry.id,
            "published": row.entry.printed,
            "ours": row.value,
            "std_error": row.std_error,
            "difference": row.off,
            "errors": row.errors,
            "word": row.word or None,
            "unit": row.entry.unit,
            "weights": None if row.cell is None else "the authors'" if row.authors else "ours",
            "of": None if row.cell is None else f"{row.cell.record}, {row.cell.row}",
            "estimate": estimates.get(row.entry.id),
        }
        for row in rows
    ]


def independent(rows: Iterable[Compared]) -> dict[str, Compared]:
    """One number for each independent estimate on the authors' weights, by its name.

    All averages of the first paper follow from its one ln Z, and a gap from the two ends of its
    bracket.
    """
    chosen = {}
    for row in rows:
        if row.word and row.cell is not None and "Table" in row.entry.where:
            if row.cell.column in _SECOND:
                chosen[_SECOND[row.cell.column]] = row
            elif row.cell.column == "log_z":
                chosen["AIS, the first paper"] = row
    return chosen
