"""The verdict on a published number: the criterion of its entry, applied to the stored records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boltzmann_companion.claims.checks import Records
from boltzmann_companion.claims.claims import (
    OUTCOMES,
    PAPERS_CHAINS,
    Finding,
)
from boltzmann_companion.published import Cell, Published, find
from boltzmann_companion.recipes import RECIPES
from boltzmann_companion.studies.bracket_tables import TABLES
from boltzmann_companion.tables import cell_of, difference, format_value, row_of, stored_std_error
from paperlib.learning import ContrastiveDivergence

_RBMS, _DEEP = "raise-table-1", "raise-table-2"

#: Every verdict, in the order in which a reader wants to see them. The outcomes of claims are in the middle.
VERDICTS = (
    "agrees",
    "differs",
    "typical",
    "not typical",
    *OUTCOMES,
    "other data",
    "setting",
    "setting, ours differs",
    "not judged",
)


@dataclass(frozen=True)
class Judgement:
    """How a published number was judged.

    Attributes
    ----------
    verdict : str
        One of `VERDICTS`.
    evidence : str
        The evidence for the verdict, in words and numbers.
    standard_errors : float or None
        The difference in units of its standard error, if the weights or the recipe are the authors'.
    """

    verdict: str
    evidence: str = ""
    standard_errors: float | None = None


def judge(
    entry: Published,
    stored: Records,
    claims: Mapping[str, Finding],
    entries: Iterable[Published] = (),
) -> Judgement:
    """The verdict on a published number, from the cell that `deciding` names and no other model.

    Parameters
    ----------
    entry : Published
        The number.
    stored : callable
        Returns the record with a given name, or None.
    claims : mapping of str to Finding
        From `boltzmann_companion.claims.claims.findings`.
    entries : iterable of Published
        All published numbers. An interval of trainings that also holds what the paper prints for another model says nothing.
    """
    kind, criterion = entry.criterion.kind, entry.criterion
    if kind == "claim":
        assert criterion.claim is not None  # ensured when the file is read
        found, cell = claims[criterion.claim], deciding(entry)
        if cell is not None:
            found = found.of(cell.row, cell.column)
        return Judgement(found.outcome, found.why or found.ours)
    if kind == "setting":
        return _setting(entry, stored)
    if criterion.judged_by is None:
        return Judgement(kind.replace("-", " "), criterion.why)
    record = stored(criterion.judged_by.record)
    value = cell_of(criterion.judged_by, record)
    if value is None:
        return Judgement("not run", f"{criterion.judged_by.record} has no answer yet")
    if kind == "same-recipe":
        return _same_recipe(entry, criterion.judged_by, value, record, entries)
    return _same_weights(entry, value, stored_std_error(criterion.judged_by, record))


def deciding(entry: Published) -> Cell | None:
    """The cell whose number is judged: that of the criterion, or else that of our stored model."""
    return entry.criterion.judged_by or entry.reproduced_by


def _same_recipe(
    entry: Published,
    cell: Cell,
    interval: Any,
    record: Mapping[str, Any] | None,
    entries: Iterable[Published],
) -> Judgement:
    assert entry.value is not None
    row, (low, high) = row_of(cell, record), interval
    column = find(entries, paper=entry.paper, where=entry.where, column=entry.column)
    others = [e for e in column if e.row != entry.row and e.value is not None]
    held = [f"{e.row} ({format_value(e.value)})" for e in others if low <= e.value <= high]
    evidence = (
        f"95 % of trainings by the released recipe end between {format_value(low)} and {format_value(high)} after {row['judged_at']} "
        f"epochs ({row['seeds']} seeds); all numbers of the row are typical after: {row['fits_at']}"
    )
    verdict = "typical" if low <= entry.value <= high else "not typical"
    if verdict == "typical" and held:
        verdict = "says nothing"
        evidence += f"; the interval also holds what is printed for {', '.join(held)}"
    middle, half_width = (low + high) / 2, (high - low) / 2
    return Judgement(verdict, evidence, 1.96 * (middle - entry.value) / half_width)


def _same_weights(entry: Published, value: Any, std_error: float | None) -> Judgement:
    if std_error is None:
        # A number that does not depend on ln Z has only a rounding error.
        std_error = 0.0
    if not math.isfinite(std_error):
        return Judgement("no estimate", "the library says that the error of ours is not known")
    if entry.interval is not None:
        ours, theirs = value, entry.interval
        overlap = max(ours[0], theirs[0]) <= min(ours[1], theirs[1])
        evidence = f"ours {format_value(ours)}{'; the two overlap' if overlap else ''}"
        return Judgement("agrees" if overlap else "differs", evidence)
    # The paper's number was estimated with the same protocol, so its error is as large as ours.
    error = math.sqrt(2) * std_error
    off = difference(entry.value, value)
    allowed = 3 * error + _half_a_digit(entry)
    evidence = f"off by {format_value(off)}; three standard errors of the two and rounding: {format_value(allowed)}"
    verdict = "agrees" if abs(off) <= allowed else "differs"
    return Judgement(verdict, evidence, off / error if error else None)


def _half_a_digit(entry: Published) -> float:
    """Half a unit of the last digit that the paper prints, which is hundredths in its tables, and elsewhere tenths or whole nats."""
    assert entry.value is not None
    for digits in (0, 1):
        if round(entry.value, digits) == entry.value:
            return 0.5 * 10.0**-digits
    return 0.005


def _setting(entry: Published, stored: Records) -> Judgement:
    ours = used_setting(entry, stored)
    if ours is None:
        return Judgement("setting", entry.criterion.why)
    if ours == [entry.printed]:
        return Judgement("setting", "ours is the same")
    listed = ", ".join(format_value(value) for value in ours)
    return Judgement("setting, ours differs", f"ours: {listed}")


# The record of our K, and the model if it is the K of a single one.
_STEPS = {
    "raise2015/table-1/caption/intermediate-distributions": (_RBMS, None),
    "raise2015/table-2/caption/intermediate-distributions": (_DEEP, None),
    "raise2015/section-5/largest-run/intermediate-distributions-k": (_RBMS, None),
    "raise2015/figure-6/omnipcd-1000/intermediate-distributions": (_RBMS, "omniPCD-1000"),
    "raise2015/section-5.2/dbms/intermediate-distributions-k": (_DEEP, None),
    "raise2015/section-5.3/dbns/intermediate-distributions-k": (_DEEP, None),
}
# The models whose hidden units and CD steps are published: those of the first paper, which are all of MNIST, and of the second's Table 1.
_MODELS = {chosen.label: name for name, chosen in RECIPES.items() if chosen.dataset == "mnist"}
_MODELS |= TABLES["paper"]["raise-table-1"].models


def used_setting(entry: Published, stored: Records) -> list[Any] | None:
    """All values that our runs use in place of a published setting; None if neither a record nor a recipe states it.

    Parameters
    ----------
    entry : Published
        An entry of the kind `setting`.
    stored : callable
        Returns the record with a given name, or None.
    """
    if entry.id in _STEPS:
        name, model = _STEPS[entry.id]
        rows = _rows(stored(name))
        return sorted({row["steps"] for row in rows if model in (None, row["model"])}) or None
    if entry.id == "raise2015/footnote-4/csl/k-whose-gibbs-steps-are-matched":
        record = stored(_RBMS)
        # this many steps of each of the paper's chains make as many hidden states as ours
        return sorted({row["csl_states"] // PAPERS_CHAINS for row in _rows(record)}) or None
    training = getattr(RECIPES.get(_MODELS.get(entry.row, "")), "training", None)
    name = entry.column
    if not isinstance(training, ContrastiveDivergence):
        return None
    if name in ("hidden units", "units of the second hidden layer"):
        return [training.num_hidden]
    if name.startswith("CD steps"):
        return [training.steps_in(1 if name.endswith("first") else training.epochs)]
    return None


def _rows(record: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    return [] if record is None else record["rows"]


def is_fitted(cell: Cell | None, record: Mapping[str, Any] | None) -> bool:
    """Whether the value in a cell comes from a model whose recipe was fitted to published values."""
    if record is None or cell is None:
        return False
    ids = record["provenance"]["models"]
    fitted = [RECIPES[key] for key in ids if key in RECIPES and RECIPES[key].fitted]
    names = {chosen.label for chosen in fitted}
    names |= {f"{chosen.dataset}{chosen.label.replace('(', '-').rstrip(')')}" for chosen in fitted}
    return cell.row.removeprefix("Test ").removeprefix("Train ") in names
