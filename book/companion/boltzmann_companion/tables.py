"""Tables of the book, drawn only from `data/published.csv` and `figures/`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boltzmann_companion.columns import view
from boltzmann_companion.published import Cell
from boltzmann_companion.recipes import model_path, recipe
from boltzmann_companion.records import source_line, std_error
from paperlib import storage
from paperlib.errors import InputError
from paperlib.models.files import read_metadata


@dataclass(frozen=True)
class Table:
    """A table that Jupyter and the book render from Markdown, formulas included.

    Attributes
    ----------
    heading : sequence of str
        Headings of the columns.
    rows : sequence of sequences of str
        Rows with one cell for each column.
    source : str
        A line below the table that says where its numbers come from.

    Examples
    --------
    >>> Table(["model", "test"], [["RBM", "−1.00"]])
    | model | test |
    | --- | --- |
    | RBM | −1.00 |
    """

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    source: str = ""

    def _repr_markdown_(self) -> str:
        lines = [self.heading, ["---"] * len(self.heading), *self.rows]
        table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
        return f"{table}\n\n{self.source}" if self.source else table

    def __repr__(self) -> str:
        return self._repr_markdown_()


def format_value(value: Any, unit: str = "") -> str:
    """A value as a table's cell: two decimals, a proper minus sign, a dash for a missing value.

    Parameters
    ----------
    value : object
        A number, a sequence of numbers, a word, or None.
    unit : str
        Unit of its column. A `count` or `%` that is not an integer has three significant digits,
        because an effective number of runs is not known more precisely.

    Examples
    --------
    >>> [format_value(value) for value in (None, -1234.5, 10_000, -1, float("inf"), -0.001)]
    ['–', '−1,234.50', '10,000', '−1', '∞', '0.00']
    >>> [format_value(value, "count") for value in (13_531.86, 94.69, 4.123)]
    ['13,532', '94.7', '4.12']
    """
    if value is None:
        return "–"
    if isinstance(value, list | tuple):
        return "(" + ", ".join(format_value(item, unit) for item in value) + ")"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    decimals = 2
    if unit in ("count", "%"):
        decimals -= (abs(value) >= 10) + (abs(value) >= 100)
    # rounded first: a negative zero plus zero has no sign
    return f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", "−")


def significant(value: float, digits: int = 3) -> str:
    r"""A number with so many significant digits, and with all digits of a longer whole part.

    Parameters
    ----------
    value : float
        The number; below a ten-thousandth it is written with a power of ten.
    digits : int
        How many digits.

    Examples
    --------
    >>> [significant(value) for value in (0.0, 0.5, -0.04567, 9.996, 0.000335, 11_389.6)]
    ['0', '0.500', '−0.0457', '10.0', '0.000335', '11,390']
    >>> print(significant(-3.14e-6))
    $-3.14 \cdot 10^{-6}$
    """
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return format_value(float(value))
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    if int(exponent) < -4:
        return f"${mantissa} \\cdot 10^{{{int(exponent)}}}$"
    decimals = max(0, digits - 1 - int(exponent))
    return f"{value:,.{decimals}f}".replace("-", "−")


def record_table(
    record: Mapping[str, Any],
    labels: Mapping[str, str] | None = None,
    digits: int | None = None,
    transpose: bool = False,
) -> Table:
    """The rows of a record, unchanged.

    Parameters
    ----------
    record : mapping
        From `Run.save` or `load_result`.
    labels : mapping of str to str, optional
        Which columns, in which order, with labels in place of the record's, for headings that have
        to be short; by default all. The units stay.
    digits : int, optional
        Significant digits of the numbers, by default as `format_value` has it. Numbers in columns
        with the tolerance 0 are settings, and they and counts without decimals are shown with the
        digits that they have.
    transpose : bool
        Whether the table has a row for each column of the record, for records with few rows and
        many columns.

    Examples
    --------
    >>> record = {"columns": {"log_z": {"label": "estimate of ln Z", "unit": "nats"}},
    ...           "rows": [], "name": "t", "profile": "digits", "provenance": {"command": ""}}
    >>> record_table(record, {"log_z": "ln Z"}).heading
    ['ln Z (nats)']
    """
    chosen = labels or {key: column["label"] for key, column in record["columns"].items()}
    heading = [_heading(record["columns"][key] | {"label": label}) for key, label in chosen.items()]

    def cell(value: Any, column: Mapping[str, Any]) -> str:
        if digits is None or not isinstance(value, float):
            return format_value(value, column["unit"])
        if column["tolerance"] == 0 or (column["unit"] == "count" and value.is_integer()):
            return f"{value:,g}".replace("-", "−")
        return significant(value, digits)

    rows = [
        [cell(row.get(key), record["columns"][key]) for key in chosen] for row in record["rows"]
    ]
    if transpose:
        heading, *rows = map(list, zip(heading, *rows, strict=True))
    return Table(heading, rows, source_line(record))


class Record(dict[str, Any]):
    r"""A record that Jupyter and the book show as a table; `boltzmann_companion.columns` says how.

    One without rows stands for a record that is not computed yet: it shows a sentence that says so.

    Examples
    --------
    >>> from boltzmann_companion.records import load_result
    >>> record = Record(load_result("sm2008-table-1", "paper"))
    >>> record.only(model="CD25(20)")["rows"], record.view().heading[:2]
    ([], ['model', 'true $\\ln Z$ (nats)'])
    >>> Record(name="my-own-table", profile="paper")
    The record `my-own-table` has not been computed at the paper's size yet; `make paper` makes it.
    """

    def only(self, rows: Iterable[Mapping[str, Any]] | None = None, **values: Any) -> Record:
        """The record with some of its rows: these, or those with these values.

        Parameters
        ----------
        rows : iterable of mappings, optional
            By default all of the record's.
        **values
            Only rows with these values are taken, for example `steps=100`.
        """
        candidates: Iterable[Mapping[str, Any]] = self["rows"] if rows is None else rows
        return Record(self, rows=[row for row in candidates if values.items() <= row.items()])

    def view(self, which: str | None = None, *, transpose: bool = False) -> Table:
        """The table of this name, or the first or only one.

        Parameters
        ----------
        which : str, optional
            Its name in `headings/`.
        transpose : bool
            As for `record_table`.

        Raises
        ------
        InputError
            If the record has no table of this name, or is not computed yet.
        """
        shown = view(self["name"], which)
        columns = self["columns"]
        filled = {key: None for key in columns if any(r.get(key) is not None for r in self["rows"])}
        labels = {
            key: heading or columns[key]["label"]
            for key, heading in (shown.headings or filled).items()
            if key in columns
        }
        return record_table(self, labels, shown.digits, transpose)

    def __missing__(self, key: str) -> Any:
        raise InputError(self._missing)

    @property
    def _missing(self) -> str:
        return (
            f"The record `{self['name']}` has not been computed at the paper's size yet; "
            "`make paper` makes it."
        )

    def _repr_markdown_(self) -> str:
        return self.view()._repr_markdown_() if "rows" in self else self._missing

    def __repr__(self) -> str:
        return self._repr_markdown_()


def model_table(model_ids: Sequence[str]) -> Table:
    """How models were trained.

    The table has each recipe, the minutes on the machine that trained the model, and the SHA-256 of
    the stored file. If any recipe was fitted to published values, a further column says how.

    Parameters
    ----------
    model_ids : sequence of str
        Names from `paperlib models`; a model without a file is shown without minutes and checksum.
    """
    rows = []
    for model_id in model_ids:
        chosen = recipe(model_id)
        path = model_path(model_id)
        metadata = read_metadata(path) if path.is_file() else {}
        rows.append(
            [
                f"`{model_id}`",
                chosen.label,
                chosen.summary,
                chosen.fitted or format_value(None),
                metadata.get("minutes", format_value(None)),
                f"`{storage.file_sha256(path)[:12]}`" if path.is_file() else format_value(None),
            ]
        )
    heading = ["id", "model", "recipe", "fitted to published values", "minutes", "SHA-256"]
    if not any(recipe(model_id).fitted for model_id in model_ids):
        heading.pop(3)
        for row in rows:
            row.pop(3)
    return Table(heading, rows)


def row_of(cell: Cell | None, record: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The row of a record in which a cell is; nothing if the record or the row does not exist."""
    if cell is None or record is None:
        return {}
    return next((row for row in record["rows"] if row.get("model") == cell.row), {})


def cell_of(cell: Cell | None, record: Mapping[str, Any] | None) -> Any:
    """The value in a cell of a record; None if the record or the row does not exist."""
    return None if cell is None else row_of(cell, record).get(cell.column)


def cell_std_error(cell: Cell | None, record: Mapping[str, Any] | None) -> float | None:
    """The Monte Carlo standard error of the value in a cell; None if none is known.

    `boltzmann_companion.records.std_error` says where it stands in the record.
    """
    error = stored_std_error(cell, record)
    return error if isinstance(error, int | float) and math.isfinite(error) else None


def stored_std_error(cell: Cell | None, record: Mapping[str, Any] | None) -> Any:
    """The standard error as in `cell_std_error`, but infinite where the record has it so."""
    return None if cell is None else std_error(row_of(cell, record), cell.column)


def _heading(column: Mapping[str, Any]) -> str:
    if column["unit"] in ("", "count"):
        return column["label"]
    return f"{column['label']} ({column['unit']})"


def difference(published: Any, value: Any) -> Any:
    """Reproduced minus published, elementwise; None where the difference is not defined.

    Examples
    --------
    >>> difference([1.0, 2.0], [1.5, 1.0])
    [0.5, -1.0]
    """
    if isinstance(published, list | tuple) and isinstance(value, list | tuple):
        return [difference(a, b) for a, b in zip(published, value, strict=True)]
    if isinstance(published, int | float) and isinstance(value, int | float):
        # also for equal infinities, whose difference is not a number
        if published == value:
            return 0.0
        gap = value - published
        return None if math.isnan(gap) else gap
    return None
