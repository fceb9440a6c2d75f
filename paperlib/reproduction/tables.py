"""Tables of the book, drawn from `data/published.yaml` and `figures/*/*.json` and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paperlib import storage
from paperlib.models.files import read_metadata
from paperlib.reproduction.published import Published, load_published
from paperlib.reproduction.recipes import model_path, recipe
from paperlib.reproduction.records import load_result


@dataclass(frozen=True)
class Table:
    """A table that Jupyter and the book render from Markdown, formulas included."""

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]

    def _repr_markdown_(self) -> str:
        lines = [self.heading, ["---"] * len(self.heading), *self.rows]
        return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)

    def __repr__(self) -> str:
        return self._repr_markdown_()


def format_value(value: Any) -> str:
    """A value as a table's cell: two decimals, a proper minus sign, a dash for what is missing."""
    if value is None:
        return "–"
    if isinstance(value, list | tuple):
        return "(" + ", ".join(format_value(item) for item in value) + ")"
    if isinstance(value, int | str):
        return f"{value:,}" if isinstance(value, int) else value
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:,.2f}".replace("-", "−")


def record_table(record: Mapping[str, Any], columns: Sequence[str] | None = None) -> Table:
    """The rows of a record as they are.

    Parameters
    ----------
    record : mapping
        From `Run.save` or `load_result`.
    columns : sequence of str, optional
        Which columns, in which order; by default all.
    """
    chosen = list(columns or record["columns"])
    heading = [_heading(record["columns"][key]) for key in chosen]
    return Table(
        heading, [[format_value(row.get(key)) for key in chosen] for row in record["rows"]]
    )


def comparison_table(record_name: str, profile: str = "paper") -> Table:
    """Published | reproduced | difference | verdict, for every published number that a record holds an answer to.

    Parameters
    ----------
    record_name : str
        For example `sm2008-table-1`.
    profile : str
        Whose record; only `paper` runs on the papers' data.
    """
    entries = [
        entry
        for entry in load_published()
        if entry.reproduced_by is not None and entry.reproduced_by.record == record_name
    ]
    record = load_result(record_name, profile)
    rows = []
    for entry in entries:
        value = reproduced_value(entry, record)
        rows.append(
            [
                entry.row,
                _quantity(entry, record),
                format_value(entry.printed),
                format_value(value),
                format_value(difference(entry.printed, value)),
                verdict(entry, value),
            ]
        )
    return Table(["model", "quantity", "published", "reproduced", "difference", "verdict"], rows)


def model_table(model_ids: Sequence[str]) -> Table:
    """How models were trained: recipe, minutes on the machine that trained them, and SHA-256 of the stored file.

    Parameters
    ----------
    model_ids : sequence of str
        From `paperlib models`; one that has no file is shown without minutes and checksum.
    """
    rows = []
    for model_id in model_ids:
        chosen, path = recipe(model_id), model_path(model_id)
        metadata = read_metadata(path) if path.is_file() else {}
        rows.append(
            [
                f"`{model_id}`",
                chosen.label,
                chosen.summary,
                metadata.get("minutes", format_value(None)),
                f"`{storage.file_sha256(path)[:12]}`" if path.is_file() else format_value(None),
            ]
        )
    return Table(["id", "model", "recipe", "minutes", "SHA-256"], rows)


def reproduced_value(entry: Published, record: Mapping[str, Any] | None) -> Any:
    """The number of a record that answers a published one; None if it was not computed."""
    if record is None or entry.reproduced_by is None:
        return None
    for row in record["rows"]:
        if row.get("model") == entry.reproduced_by.row:
            return row.get(entry.reproduced_by.column)
    return None


def verdict(entry: Published, value: Any) -> str:
    """One of `not run`, `not judged`, `reproduced`, `not reproduced`."""
    if value is None:
        return "not run"
    if entry.criterion.tolerance is None:
        return "not judged"
    gap = difference(entry.printed, value)
    gaps = gap if isinstance(gap, list) else [gap]
    within = all(gap is not None and abs(gap) <= entry.criterion.tolerance for gap in gaps)
    return "reproduced" if within else "not reproduced"


def _quantity(entry: Published, record: Mapping[str, Any] | None) -> str:
    """What a published number is, in the words of the record that answers it where there is one."""
    columns = {} if record is None or entry.reproduced_by is None else record["columns"]
    column = columns.get(entry.reproduced_by.column) if columns else None
    return entry.column.replace("|", "\\|") if column is None else column["label"]


def _heading(column: Mapping[str, Any]) -> str:
    return (
        f"{column['label']} ({column['unit']})"
        if column["unit"] not in ("", "count")
        else column["label"]
    )


def difference(published: Any, value: Any) -> Any:
    """Reproduced minus published, elementwise; None where there is none."""
    if isinstance(published, list | tuple) and isinstance(value, list | tuple):
        return [difference(a, b) for a, b in zip(published, value, strict=True)]
    if isinstance(published, int | float) and isinstance(value, int | float):
        gap = value - published
        return 0.0 if published == value else (None if math.isnan(gap) else gap)
    return None
