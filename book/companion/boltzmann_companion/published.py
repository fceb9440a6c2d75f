"""The numbers that the papers publish, read from `data/published.yaml` and checked entry by entry."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from paperlib import storage
from paperlib.errors import InputError

PAPERS = ("sm2008", "raise2015")
#: Papers whose numbers are shown beside ours but are not judged by the report.
LATER_PAPERS = ("carlson2016",)
UNITS = ("nats", "minutes", "hours", "seconds", "count", "fraction", "dimensionless")
KINDS = ("protocol", "model", "claim")
#: How a number is judged; the header of `data/published.yaml` explains them.
CRITERIA = ("same-weights", "same-recipe", "claim", "other-data", "setting", "not-judged")


@dataclass(frozen=True)
class Cell:
    """The record, the row (field `model`) and the column that hold a value."""

    record: str
    row: str
    column: str


@dataclass(frozen=True)
class Criterion:
    """How a published number is judged.

    Attributes
    ----------
    kind : str
        One of `CRITERIA`.
    why : str
        The reason for the choice.
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
    """One published number; the header of `data/published.yaml` explains the fields."""

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
        The YAML file; by default the companion's `data/published.yaml`.
    papers : collection of str
        Papers whose numbers to return, by default the two that are reproduced; `LATER_PAPERS` has the others.

    Raises
    ------
    InputError
        If an entry is malformed; the message names the entry, the field, what was expected and what was found.
    """
    path = path or storage.companion_folder() / "data" / "published.yaml"
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected a YAML file, got one that ends in: {error}") from error
    listed = content.get("entries") if isinstance(content, Mapping) else None
    if not isinstance(listed, list) or not listed:
        raise InputError(f"{path}: field 'entries': expected a non-empty list, got {listed!r}")
    entries: dict[str, Published] = {}
    for number, raw in enumerate(listed, start=1):
        name = raw.get("id") if isinstance(raw, Mapping) else None
        entry = _entry(raw, name if isinstance(name, str) else f"number {number}")
        _require(entry.id not in entries, entry.id, "id", "a unique id", "a second entry with it")
        entries[entry.id] = entry
    return [entry for entry in entries.values() if entry.paper in papers]


def find(entries: Iterable[Published], **wanted: Any) -> list[Published]:
    """The entries whose fields equal all those given, such as `find(entries, where="Table 1")`."""
    if unknown := sorted(set(wanted) - {field.name for field in fields(Published)}):
        raise InputError(f"find: expected names of fields of Published, got {unknown}")
    return [e for e in entries if all(getattr(e, name) == value for name, value in wanted.items())]


def _entry(raw: Any, name: str) -> Published:
    raw = _mapping(raw, name, "entry", Published, optional=("note", "inverse"))
    for field in ("id", "where", "row", "column"):
        _text(raw[field], name, field)
    for field, known in (("paper", (*PAPERS, *LATER_PAPERS)), ("unit", UNITS), ("kind", KINDS)):
        _require(raw[field] in known, name, field, f"one of {', '.join(known)}", raw[field])
    well_named = re.fullmatch(raw["paper"] + r"(/[a-z0-9.-]+){3}", raw["id"])
    _require(well_named, name, "id", f"lower-case {raw['paper']}/where/row/column", raw["id"])
    value, ends, note = raw["value"], raw["interval"], raw.get("note")
    _text("-" if note is None else note, name, "note")
    turned = raw.get("inverse", False)
    _require(isinstance(turned, bool), name, "inverse", "true or false", turned)
    _require((value, ends) != (None, None), name, "value", "a number, or an interval", None)
    _require(value is None or _finite(value), name, "value", "a finite number or null", value)
    if ends is not None:
        pair = isinstance(ends, list) and len(ends) == 2 and _finite(ends[1])
        # A lower end of minus infinity is the only infinity that a paper can mean; it needs a note.
        known = pair and (_finite(ends[0]) or (ends[0] == -math.inf and note is not None))
        ordered = known and ends[0] < ends[1]
        _require(ordered, name, "interval", "[low, high], rising (-.inf as low needs a note)", ends)
    raw["interval"] = None if ends is None else tuple(ends)
    return Published(
        **raw
        | {
            "criterion": _criterion(raw["criterion"], name),
            "reproduced_by": _cell(raw["reproduced_by"], name, "reproduced_by"),
        }
    )


def _criterion(raw: Any, name: str) -> Criterion:
    raw = _mapping(raw, name, "criterion", Criterion, optional=("claim", "judged_by"))
    kind, claim = raw["kind"], raw.get("claim")
    _require(kind in CRITERIA, name, "criterion.kind", f"one of {', '.join(CRITERIA)}", kind)
    _text(raw["why"], name, "criterion.why")
    judged_by = _cell(raw.get("judged_by"), name, "criterion.judged_by")
    named = isinstance(claim, str) if kind == "claim" else claim is None
    _require(named, name, "criterion.claim", "the id of a claim, with the kind claim only", claim)
    decided = kind == "claim" or (judged_by is None) == (
        kind not in ("same-weights", "same-recipe")
    )
    expected = "a cell with the kinds same-weights and same-recipe, and otherwise with claim only"
    _require(decided, name, "criterion.judged_by", expected, judged_by)
    return Criterion(**raw | {"judged_by": judged_by})


def _cell(raw: Any, name: str, field: str) -> Cell | None:
    if raw is None:
        return None
    cell = Cell(**_mapping(raw, name, field, Cell))
    for part in fields(cell):
        _text(getattr(cell, part.name), name, f"{field}.{part.name}")
    return cell


def _mapping(
    raw: Any, name: str, field: str, shape: type, optional: Collection[str] = ()
) -> dict[str, Any]:
    """`raw` as a dictionary that has exactly the fields of the dataclass `shape`."""
    names = [f.name for f in fields(shape)]
    _require(isinstance(raw, Mapping), name, field, f"a mapping with {', '.join(names)}", raw)
    for key in names:
        _require(key in raw or key in optional, name, key, f"to be given in {field}", "nothing")
    for key in raw:
        _require(key in names, name, str(key), f"only {', '.join(names)} in {field}", raw[key])
    return dict(raw)


def _text(value: Any, name: str, field: str) -> None:
    _require(isinstance(value, str) and value.strip(), name, field, "a non-empty text", value)


def _finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _require(holds: object, name: str, field: str, expected: str, got: object) -> None:
    if not holds:
        raise InputError(f"published entry {name}: {field}: expected {expected}, got {got!r}")
