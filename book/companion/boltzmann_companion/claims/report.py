"""The reproduction report: the papers' conclusions and every published number beside ours, drawn from `data/published.csv` and the stored records."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from boltzmann_companion.claims.checks import Records, Rows, Stored
from boltzmann_companion.claims.claims import (
    CLAIMS,
    OUTCOMES,
    SUBJECTS,
    Finding,
    findings,
    start_of,
)
from boltzmann_companion.claims.verdicts import VERDICTS, Judgement, deciding, is_fitted, judge
from boltzmann_companion.published import CRITERIA, Cell, Published, load_published
from boltzmann_companion.records import source_line
from boltzmann_companion.studies.bracket_tables import verdict_of
from boltzmann_companion.studies.same_recipe import interval_at, judged_lengths
from boltzmann_companion.tables import (
    Table,
    cell_of,
    cell_std_error,
    difference,
    format_value,
    row_of,
)
from paperlib.estimators import BracketVerdict

PAPERS = {"sm2008": "Salakhutdinov & Murray 2008", "raise2015": "RAISE 2015"}
#: The model of a record whose numbers belong to the authors' released weights.
AUTHORS = "CD25(500)"
#: The second paper's name for it; our own model of that recipe has the same name.
RELEASED = "mnistCD25-500"
# Names for narrow columns.
_IN_SHORT = {"sm2008": "S&M 2008", "raise2015": "RAISE 2015"}
#: Grades for the size of a difference, in the unit of the number. A grade describes and does not judge.
GRADES = {0.1: "within 0.1", 1.0: "within 1", 3.0: "within 3", 10.0: "within 10"}


@dataclass(frozen=True)
class ReportRow:
    """A published number beside one of ours, and the verdict. All that is said of ours comes from the row of one record.

    Attributes
    ----------
    entry : Published
        The number, its unit and the criterion it is judged by.
    cell : Cell or None
        Where our number is stored.
    model : str
        Whose number it is.
    value : number, pair of numbers or None
        Our value; of several trainings, the lowest and the highest of the means after the lengths of training by which it is judged.
    interval : pair of numbers or None
        Of several trainings, from the lowest to the highest end of the 95 % prediction intervals after these lengths.
    std_error : float or None
        Monte Carlo standard error of the value.
    judgement : Judgement
        The verdict and the evidence for it.
    steps : int or None
        Our number of annealing steps, if the value depends on it.
    fitted : bool
        Whether the recipe of the model was fitted to published values.
    chapter, command, commit, utc : str or None
        The chapter that discusses the number, the command that reproduces ours, the commit of the library
        that the chapter used, and the time.
    """

    entry: Published
    cell: Cell | None
    model: str
    value: Any
    interval: Sequence[float] | None
    std_error: float | None
    judgement: Judgement
    steps: int | None
    fitted: bool
    chapter: str | None
    command: str | None
    commit: str | None
    utc: str | None

    @property
    def grade(self) -> str:
        """How far ours is from the published number, one of `GRADES` or `further`; empty if no difference can be taken."""
        gap = difference(self.entry.meant, self.value)
        if not isinstance(gap, int | float):
            return ""
        return next((name for size, name in GRADES.items() if abs(gap) <= size), "further")

    @property
    def ours(self) -> str:
        """Our value with its error, interval and number of steps, as far as it has them."""
        text = format_value(self.value)
        if self.std_error is not None:
            text += f" ± {format_value(self.std_error)}"
        if self.interval is not None:
            text = f"means {text}, 95\N{NO-BREAK SPACE}% {format_value(self.interval)}"
        if self.fitted:
            text += " (fitted)"
        if self.steps is not None:
            text += f" (K = {self.steps:,})"
        return text


def report_rows() -> list[ReportRow]:
    """A row for every published number, in the papers' order, with the number of ours that is judged."""
    stored, entries = Stored().record, load_published()
    claims = findings(stored)
    return [
        _row(entry, deciding(entry), judge(entry, stored, claims, entries), stored)
        for entry in entries
    ]


def _row(entry: Published, cell: Cell | None, judgement: Judgement, stored: Records) -> ReportRow:
    record = None if cell is None else stored(cell.record)
    made = {} if record is None else record["provenance"]
    model, value, interval = entry.row, cell_of(cell, record), None
    if cell is not None and cell == entry.criterion.judged_by:
        if entry.criterion.kind == "same-recipe" and record is not None:
            value, interval, trainings = _trainings(cell, record["rows"])
            model += f", {trainings} trainings"
        elif entry.criterion.kind == "claim":
            model = cell.row
    if AUTHORS in made.get("models", ()):
        model += ", the authors' weights"
    return ReportRow(
        entry,
        cell,
        model,
        value,
        interval,
        cell_std_error(cell, record) if interval is None else None,
        judgement,
        _steps(cell, record),
        is_fitted(cell, record),
        made.get("chapter"),
        made.get("command"),
        made.get("commit"),
        made.get("utc"),
    )


def _trainings(cell: Cell, rows: Rows) -> tuple[list[float], list[float], int]:
    """Means and intervals of a column over all judged lengths, each from the lowest to the highest; and the number of seeds."""
    lengths = judged_lengths(rows, cell.row)
    intervals = [interval_at(rows, cell.row, length, cell.column) for length in lengths]
    known = [interval for interval in intervals if interval is not None]
    means = [(low + high) / 2 for low, high in known]
    ends = [end for interval in known for end in interval]
    seeds = {row["seed"] for row in rows if row["model"] == cell.row}
    return [min(means), max(means)], [min(ends), max(ends)], len(seeds)


def _steps(cell: Cell | None, record: Mapping[str, Any] | None) -> int | None:
    """Our K for a number from one of the starts in the second paper's tables."""
    row = row_of(cell, record) if cell is not None and start_of(cell.column) else None
    return row["steps"] if row else None


def comparison_rows(record_name: str) -> Iterator[ReportRow]:
    """The rows of `comparison_table`: a stored model that is not the one that is judged has a row of its own, above the judged one.

    Parameters
    ----------
    record_name : str
        Name of the record, for example `sm2008-table-1`.
    """
    stored = Stored().record
    for row in report_rows():
        source = row.entry.reproduced_by
        if source is None or source.record != record_name:
            continue
        if row.cell != source:
            reason = f"the number is judged by {row.model}"
            yield _row(row.entry, source, Judgement("not judged", reason), stored)
        yield row


def counts(rows: Iterable[ReportRow]) -> dict[str, dict[str, int]]:
    """How often each verdict was given, by criterion."""
    given: dict[str, dict[str, int]] = {kind: {} for kind in CRITERIA}
    for row in rows:
        of_kind = given[row.entry.criterion.kind]
        verdict = row.judgement.verdict
        of_kind[verdict] = of_kind.get(verdict, 0) + 1
    return {
        kind: {verdict: of_kind[verdict] for verdict in VERDICTS if verdict in of_kind}
        for kind, of_kind in given.items()
    }


def rests_on(rows: Iterable[ReportRow]) -> dict[str, int]:
    """On how many independent estimates, sets of trainings, or claims the judged numbers of a criterion rest.

    Numbers of one estimate are not independent. With the same weights all averages of a record follow from its one ln Z, and a gap
    from the two ends of its bracket.

    Parameters
    ----------
    rows : iterable of ReportRow
        From `report_rows`.
    """
    found: dict[str, set[Any]] = {"same-weights": set(), "same-recipe": set(), "claim": set()}
    for row in rows:
        criterion, verdict = row.entry.criterion, row.judgement.verdict
        if criterion.kind == "same-weights" and verdict in ("agrees", "differs"):
            found[criterion.kind] |= _estimates(criterion.judged_by)
        elif criterion.kind == "same-recipe" and criterion.judged_by is not None:
            found[criterion.kind].add(criterion.judged_by.row)
        elif criterion.kind == "claim":
            found[criterion.kind].add(criterion.claim)
    return {kind: len(each) for kind, each in found.items()}


def _estimates(cell: Cell | None) -> set[Cell]:
    """The estimates from which the number in a cell follows."""
    if cell is None:
        return set()
    if cell.column in ("log_z", "test", "train") or cell.column.startswith("interval_"):
        return {replace(cell, column="log_z")}
    if cell.column.endswith("_gap"):
        start = start_of(cell.column)
        return {replace(cell, column=f"{start}_{end}") for end in ("ais", "raise")}
    return {cell}


# How often chance alone puts a number outside: beyond three standard errors, or outside a 95 % prediction interval.
_BY_CHANCE = {"same-weights": math.erfc(3 / math.sqrt(2)), "same-recipe": 0.05}


# Verdicts that decide: the others say that nothing is known, or that nothing was asked.
_DECIDED = (
    *("agrees", "differs", "typical", "typical at some lengths", "not typical"),
    *("holds", "partly", "does not hold"),
)


def criteria_table(rows: Sequence[ReportRow], found: Mapping[str, Finding]) -> Table:
    """How many numbers are judged by which criterion, on what they rest, how many chance alone would put outside, and the verdicts.

    The last row counts the numbers, and the claims, that have a verdict.

    Parameters
    ----------
    rows : sequence of ReportRow
        From `report_rows`.
    found : mapping of str to Finding
        From `claim_findings`.
    """
    independent, table = rests_on(rows), []
    bases = {"same-weights": "estimates", "same-recipe": "trained models", "claim": "claims"}
    for kind, verdicts in counts(rows).items():
        number = sum(verdicts.values())
        judged = number - verdicts.get("no estimate", 0) - verdicts.get("not run", 0)
        chance = f"{_BY_CHANCE[kind] * judged:.2g}" if kind in _BY_CHANCE else format_value(None)
        table.append(
            [
                kind.replace("-", " "),
                str(number),
                f"{independent[kind]} {bases[kind]}" if kind in bases else format_value(None),
                chance + (" after each length" if kind == "same-recipe" else ""),
                "; ".join(f"{verdict}: {each}" for verdict, each in verdicts.items()),
            ]
        )
    numbers = sum(row.judgement.verdict in _DECIDED for row in rows)
    claims = sum(finding.outcome in _DECIDED for finding in found.values())
    none = format_value(None)
    table.append(["with a verdict", str(numbers), f"{claims} of {len(found)} claims", none, none])
    return Table(["judged by", "numbers", "rest on", "outside by chance", "verdicts"], table)


def claim_findings() -> dict[str, Finding]:
    """The finding for every claim at the papers' size, by its id."""
    return findings(Stored().record)


def claim_table(found: Mapping[str, Finding]) -> Table:
    """The papers' conclusions: claim and place, outcome, ours, chapter. The numbers of single models and the reason unfold.

    Parameters
    ----------
    found : mapping of str to Finding
        From `claim_findings`.
    """
    rows = []
    for claim in CLAIMS:
        finding = found[claim.id]
        where = f"<small>({_IN_SHORT[claim.paper]}, {claim.where})</small>"
        link = f"[{claim.chapter[:2]}]({claim.chapter}.ipynb)"
        ours, more = finding.ours, ". ".join(filter(None, (finding.details, finding.why)))
        if more:
            ours = f"<details><summary style='margin: 0'>{ours}</summary>{more}.</details>"
        # the second paper's name for a model of which there are two
        ours = ours.replace(RELEASED, f"{RELEASED} (ours)")
        rows.append([f"{claim.statement} {where}", _marked(finding.outcome), ours, link])
    heading = ["claim", "outcome", "ours", "chapter"]
    return Table(heading, [[cell.replace("|", "\\|") for cell in row] for row in rows])


# What became of a claim, in words for a heading.
_TOGETHER = {
    "hold": ("holds",),
    "hold in part": ("partly",),
    "do not hold": ("does not hold",),
    "cannot be judged": ("says nothing", "no estimate", "not run"),
}


def conclusion_table(found: Mapping[str, Finding]) -> Table:
    """What became of the claims about AIS, RAISE, CSL and the trained models: how many of each kind.

    Parameters
    ----------
    found : mapping of str to Finding
        From `claim_findings`.
    """
    rows = []
    for subject in SUBJECTS:
        own = [found[claim.id].outcome for claim in CLAIMS if claim.about == subject]
        number = [sum(outcome in together for outcome in own) for together in _TOGETHER.values()]
        rows.append([subject, str(len(own)), *map(str, number)])
    return Table(["about", "claims", *_TOGETHER], rows)


def bracket_table(rows: Iterable[ReportRow]) -> Table:
    """How the brackets of the second paper's tables came out, by start and by our number of steps.

    Those that are not closed are named, with their gaps.

    Parameters
    ----------
    rows : iterable of ReportRow
        From `report_rows`.
    """
    stored = Stored().record
    found: dict[tuple[str, int], dict[str, list[str]]] = {}
    for row in rows:
        if row.cell is not None and row.cell.column.endswith("_gap") and row.steps is not None:
            start = start_of(row.cell.column)
            said = verdict_of(row_of(row.cell, stored(row.cell.record)), start)
            of_start = found.setdefault(
                (start, row.steps), {verdict: [] for verdict in BracketVerdict}
            )
            named = row.model.replace(", the authors' weights", " (the authors' weights)")
            of_start[said].append(f"{named} {format_value(row.value)}")
    table = []
    for (start, steps), said in sorted(found.items()):
        closed, *others = said.values()
        number = str(sum(map(len, said.values())))
        named = [", ".join(models) or "–" for models in others]
        table.append([start.replace("_", " "), f"{steps:,}", number, str(len(closed)), *named])
    return Table(["start", "K", "brackets", *BracketVerdict], table)


def outcome_counts(found: Mapping[str, Finding]) -> dict[str, int]:
    """How many claims had each outcome."""
    outcomes = [finding.outcome for finding in found.values()]
    return {outcome: outcomes.count(outcome) for outcome in OUTCOMES}


def comparison_table(record_name: str) -> Table:
    """Published | ours | difference | criterion | verdict, for every published number that a record at the papers' size answers.

    The rows are those of `comparison_rows`.

    Parameters
    ----------
    record_name : str
        Name of the record, for example `sm2008-table-1`.
    """
    stored = Stored().record
    shown = list(comparison_rows(record_name))
    own = stored(record_name)
    columns = {} if own is None else own["columns"]
    rows = []
    for row in shown:
        source = row.entry.reproduced_by
        assert source is not None  # or the row would not be shown
        quantity = columns.get(source.column, {}).get("label", row.entry.column)
        judged = row.cell == deciding(row.entry)
        rows.append(
            [
                row.model,
                quantity.replace("|", "\\|"),
                format_value(row.entry.printed),
                row.ours,
                format_value(difference(row.entry.meant, row.value)),
                row.entry.criterion.kind.replace("-", " ") if judged else "–",
                row.judgement.verdict,
            ]
        )
    heading = ["model", "quantity", "published", "ours", "difference", "judged by", "verdict"]
    used = dict.fromkeys([record_name, *(row.cell.record for row in shown if row.cell)])
    sources = [source_line(record) for record in map(stored, used) if record is not None]
    return Table(heading, rows, "\n\n".join(sources))


@dataclass(frozen=True)
class Report:
    """All rows as a table that the reader can filter without a kernel and without contacting another host."""

    rows: Sequence[ReportRow]

    def __repr__(self) -> str:
        return f"Report({len(self.rows)} published numbers)"

    def _repr_html_(self) -> str:
        names = (
            "where",
            "of what",
            "published",
            "ours ± standard error",
            "difference",
            "judged by",
            "verdict and reason",
            "chapter",
        )
        heading = "".join(f"<th scope='col'>{name}</th>" for name in names)
        body = "".join(_html_row(row) for row in self.rows)
        given = {row.judgement.verdict for row in self.rows}
        options = "".join(f"<option>{name}</option>" for name in VERDICTS if name in given)
        kinds = "".join(f"<option>{kind.replace('-', ' ')}</option>" for kind in CRITERIA)
        return (
            _PAGE.read_text(encoding="utf-8")
            .rstrip()
            .replace("{options}", options)
            .replace("{kinds}", kinds)
            .replace("{heading}", heading)
            .replace("{body}", body)
        )


_PAGE = Path(__file__).with_name("report.html")
# A symbol beside the colour, for readers who cannot see the colour.
_SIGNS = {
    "good": ("✓", ("agrees", "typical", "holds")),
    "mixed": ("~", ("partly", "typical at some lengths", "setting, ours differs")),
    "bad": ("✗", ("differs", "not typical", "does not hold")),
    "open": ("–", ("says nothing", "no estimate", "not run")),
}


def _marked(verdict: str) -> str:
    """A verdict in its colour, with its symbol."""
    sign = next((name for name, (_, words) in _SIGNS.items() if verdict in words), "none")
    mark = _SIGNS[sign][0] + " " if sign in _SIGNS else ""
    return f"<span class='verdict-{sign}'>{mark}{html.escape(verdict)}</span>"


def _html_row(row: ReportRow) -> str:
    entry, verdict = row.entry, row.judgement.verdict
    unit = "" if entry.unit in ("count", "dimensionless") else f" {entry.unit}"
    chapter = "" if row.chapter is None else f"<a href='{row.chapter}.html'>{row.chapter[:2]}</a>"
    off = format_value(difference(entry.meant, row.value))
    kind = entry.criterion.kind.replace("-", " ")
    reason = row.judgement.evidence or entry.criterion.why
    if entry.criterion.kind == "same-weights":
        # whose images they are, beside how far off ours is
        reason += f". {entry.criterion.why}"
    cells = [
        html.escape(f"{_IN_SHORT[entry.paper]}, {entry.where}"),
        html.escape(f"{row.model}: {entry.column}"),
        html.escape(format_value(entry.printed) + unit),
        html.escape(row.ours),
        html.escape(f"{off} ({row.grade})" if row.grade else off),
        html.escape(kind),
        f"{_marked(verdict)}<br>" + html.escape(reason),
        chapter,
    ]
    return (
        f"<tr data-verdict='{verdict}' data-kind='{kind}'{' hidden' if verdict == 'setting' else ''} title='{html.escape(row.command or '', quote=True)}'>"
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
    )
