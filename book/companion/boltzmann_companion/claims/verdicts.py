"""The verdict on a published number: the criterion of its entry, applied to the stored records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from boltzmann_companion.claims.checks import Records
from boltzmann_companion.claims.claims import (
    OUTCOMES,
    PAPERS_CHAINS,
    Finding,
)
from boltzmann_companion.published import Cell, Published
from boltzmann_companion.recipes import RECIPES
from boltzmann_companion.rows import by_model
from boltzmann_companion.studies.bracket_tables import TABLES
from boltzmann_companion.studies.same_recipe import (
    PRINTED,
    in_words,
    interval_at,
    judged_lengths,
    lengths_of_row,
)
from boltzmann_companion.tables import cell_of, difference, format_value, stored_std_error
from paperlib.learning import ContrastiveDivergence

_RBMS, _DEEP = "raise-table-1", "raise-table-2"

#: Every verdict, in the order in which a reader wants to see them. The outcomes of claims are in the middle.
VERDICTS = (
    "agrees",
    "differs",
    "typical",
    "typical at some lengths",
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
        The difference in units of its standard error, if the weights are the authors'.
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
        All published numbers, of which one may be the printed error of another.
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
    if record is None or value is None:
        return Judgement("not run", f"{criterion.judged_by.record} has no answer yet")
    if kind == "same-recipe":
        return _same_recipe(entry, criterion.judged_by, record)
    error = stored_std_error(criterion.judged_by, record)
    return _same_weights(entry, criterion.judged_by, value, error, entries)


def deciding(entry: Published) -> Cell | None:
    """The cell whose number is judged: that of the criterion, or else that of our stored model."""
    return entry.criterion.judged_by or entry.reproduced_by


def _same_recipe(entry: Published, cell: Cell, record: Mapping[str, Any]) -> Judgement:
    """Whether a number is typical of the seeds, after each length of training that a reader would accept."""
    assert entry.value is not None
    models = by_model(record["rows"])
    rows = models.pop(cell.row)
    # what the paper prints for other models of the same recipe
    others = {row: PRINTED[row][cell.column] for row in models}
    lengths = judged_lengths(rows, cell.row)
    at: dict[str, list[int]] = {words: [] for words in (_ALONE, _TOO, _BELOW, _ABOVE)}
    also: dict[str, float] = {}
    for length in lengths:
        interval = interval_at(rows, cell.row, length, cell.column)
        if interval is None:
            continue
        low, high = interval
        held = {row: value for row, value in others.items() if low <= value <= high}
        if high < entry.value:
            at[_BELOW].append(length)
        elif low > entry.value:
            at[_ABOVE].append(length)
        else:
            at[_TOO if held else _ALONE].append(length)
            also |= held
    said = {
        words: f"{words} {in_words(chosen, lengths)} epochs"
        for words, chosen in at.items()
        if chosen
    }
    if also:
        said[_TOO] += (
            f" ({', '.join(f'{row} {format_value(value)}' for row, value in also.items())})"
        )
    of_row = in_words(lengths_of_row(rows, cell.row, PRINTED[cell.row]), lengths)
    evidence = (
        f"the 95 % intervals of trainings by the released recipe {'; '.join(said.values())}; "
        f"those of all numbers of the row hold them after: {of_row}"
    )
    return Judgement(_typical(at), evidence)


# What the interval of the seeds does after some lengths of training.
_ALONE = "hold it after"
_TOO = "hold it, and what is printed for another model, after"
_BELOW, _ABOVE = "end below it after", "begin above it after"


def _typical(at: Mapping[str, Sequence[int]]) -> str:
    """The verdict from the lengths of training at which a number lies inside, or outside, the intervals of the seeds."""
    if not any(at.values()):
        return "no estimate"
    if at[_ALONE]:
        everywhere = not (at[_TOO] or at[_BELOW] or at[_ABOVE])
        return "typical" if everywhere else "typical at some lengths"
    return "says nothing" if at[_TOO] else "not typical"


def _same_weights(
    entry: Published, cell: Cell, value: Any, std_error: float | None, entries: Iterable[Published]
) -> Judgement:
    """Whether a number and ours, of the same weights, differ by no more than three standard errors of the two and rounding."""
    theirs = _printed_error(entry, entries)
    if entry.interval is not None:
        # An interval says where its middle is, and how well that is known.
        low, high = (float(end) for end in value)
        off, ours = (low + high - sum(entry.interval)) / 2, _half_width(cell, (low, high))
    else:
        off, ours = difference(entry.value, value), std_error
    if ours is None:
        return Judgement("no estimate", "our value has no error")
    if not math.isfinite(ours):
        return Judgement("no estimate", "the library says that the error of ours is not known")
    # Where the paper prints no error, its number was estimated with the same protocol, so that its error is as large as ours.
    error = math.hypot(ours, ours if theirs is None else theirs)
    allowed = 3 * error + _half_a_digit(entry)
    whose = "ours, and theirs taken as ours" if theirs is None else "ours and the printed one"
    evidence = f"off by {format_value(off)}; three standard errors ({whose}) and rounding: {format_value(allowed)}"
    verdict = "agrees" if abs(off) <= allowed else "differs"
    return Judgement(verdict, evidence, off / error if error else None)


def _printed_error(entry: Published, entries: Iterable[Published]) -> float | None:
    """The standard error that the paper prints with a number, as a three-sigma interval of the same estimate; None if it prints none."""
    cell = entry.criterion.judged_by
    assert cell is not None  # ensured when the file is read
    if entry.interval is not None:
        return _half_width(cell, entry.interval)
    if cell.column not in ("log_z", "test", "train"):
        return None
    of_log_z = replace(cell, column="interval_3_sigma")
    for other in entries:
        if other.paper == entry.paper and other.criterion.judged_by == of_log_z and other.interval:
            return _half_width(of_log_z, other.interval)
    return None


def _half_width(cell: Cell, interval: Sequence[float]) -> float:
    """The standard error that an interval of so many sigma, which its column names, stands for."""
    _, sigmas, _ = cell.column.split("_")
    low, high = interval
    return (high - low) / 2 / int(sigmas)


def _half_a_digit(entry: Published) -> float:
    """Half a unit of the last digit that the paper prints, which is hundredths in its tables, and elsewhere tenths or whole nats."""
    for digits in (0, 1):
        if entry.value is not None and round(entry.value, digits) == entry.value:
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
        # this many steps of each of the paper's chains are as many Gibbs steps as ours, after each of which CSL has a state
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
