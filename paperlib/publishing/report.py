"""The reproduction report: the papers' conclusions and every published number beside ours, drawn from `data/published.yaml` and the stored records."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from paperlib.experiments.published import CRITERIA, Published, load_published
from paperlib.experiments.records import load_result, source_line
from paperlib.publishing.claims import CLAIMS, OUTCOMES, Finding, findings
from paperlib.publishing.tables import Table, cell_of, cell_std_error, difference, format_value
from paperlib.publishing.verdicts import VERDICTS, Judgement, is_fitted, judge

PAPERS = {"sm2008": "Salakhutdinov & Murray 2008", "raise2015": "RAISE 2015"}
# Names for narrow columns.
_IN_SHORT = {"sm2008": "S&M 2008", "raise2015": "RAISE 2015"}
#: Grades for the size of a difference, in the unit of the number. A grade describes and does not judge.
GRADES = {0.1: "within 0.1", 1.0: "within 1", 3.0: "within 3", 10.0: "within 10"}


@dataclass(frozen=True)
class ReportRow:
    """A published number, our value, and the verdict.

    Attributes
    ----------
    entry : Published
        The number, its unit and the criterion it is judged by.
    value : number, pair of numbers or None
        Our value, which is the one that decides if the criterion is `same-weights`, and otherwise that of our stored model.
    std_error : float or None
        Its Monte Carlo standard error.
    judgement : Judgement
        The verdict and the evidence for it.
    steps : int or None
        Our number of annealing steps, if the record states it.
    fitted : bool
        Whether the recipe of our stored model was fitted to published values.
    chapter, command, commit, utc : str or None
        The chapter that discusses the number, the command that reproduces ours, the commit of the library
        that the chapter used, and the time.
    """

    entry: Published
    value: Any
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


def _stored(name: str) -> dict[str, Any] | None:
    return load_result(name, "paper")


def report_rows() -> list[ReportRow]:
    """A row for every published number, in the papers' order."""
    stored = cache(_stored)
    claims = findings(stored)
    rows = []
    for entry in load_published():
        own = entry.criterion.kind == "same-weights"
        cell = entry.criterion.judged_by if own else entry.reproduced_by
        record = None if cell is None else stored(cell.record)
        made = {} if record is None else record["provenance"]
        rows.append(
            ReportRow(
                entry,
                cell_of(cell, record),
                cell_std_error(cell, record),
                judge(entry, stored, claims),
                _steps(entry, record),
                not own and is_fitted(entry, record),
                made.get("chapter"),
                made.get("command"),
                made.get("commit"),
                made.get("utc"),
            )
        )
    return rows


def _steps(entry: Published, record: Mapping[str, Any] | None) -> int | None:
    """Our K for a number from the second paper's tables."""
    if record is None or entry.reproduced_by is None or entry.paper != "raise2015":
        return None
    start = entry.reproduced_by.column.rsplit("_", 1)[0]
    row = next((r for r in record["rows"] if r.get("model") == entry.reproduced_by.row), {})
    return row.get("steps", row.get(f"{start}_steps"))


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


def claim_findings() -> dict[str, Finding]:
    """The finding for every claim at the papers' size, by its id."""
    return findings(cache(_stored))


def claim_table(found: Mapping[str, Finding]) -> Table:
    """The papers' conclusions: claim, paper, outcome, ours, reason, chapter.

    Parameters
    ----------
    found : mapping of str to Finding
        From `claim_findings`.
    """
    rows = []
    for claim in CLAIMS:
        finding = found[claim.id]
        # two lines at most: no breaks inside the name and inside the place
        where = ", ".join(
            text.replace(" ", "\N{NO-BREAK SPACE}")
            for text in (_IN_SHORT[claim.paper], claim.where)
        )
        link = f"[{claim.chapter[:2]}]({claim.chapter}.ipynb)"
        rows.append(
            [claim.statement, where, f"**{finding.outcome}**", finding.ours, finding.why, link]
        )
    heading = ["claim", "where", "outcome", "ours", "why", "chapter"]
    return Table(heading, [[cell.replace("|", "\\|") for cell in row] for row in rows])


def outcome_counts(found: Mapping[str, Finding]) -> dict[str, int]:
    """How many claims had each outcome."""
    outcomes = [finding.outcome for finding in found.values()]
    return {outcome: outcomes.count(outcome) for outcome in OUTCOMES}


def comparison_table(record_name: str) -> Table:
    """Published | ours | difference | criterion | verdict, for every published number that a record at the papers' size answers.

    Parameters
    ----------
    record_name : str
        Name of the record, for example `sm2008-table-1`.
    """
    record = _stored(record_name)
    rows = []
    for row in report_rows():
        source = row.entry.reproduced_by
        if source is None or source.record != record_name:
            continue
        value = cell_of(source, record)
        column = None if record is None else record["columns"].get(source.column)
        quantity = row.entry.column if column is None else column["label"]
        ours = format_value(value) + (" (fitted)" if row.fitted else "")
        if row.steps is not None:
            ours += f" (K = {row.steps:,})"
        rows.append(
            [
                row.entry.row,
                quantity.replace("|", "\\|"),
                format_value(row.entry.printed),
                ours,
                format_value(difference(row.entry.meant, value)),
                row.entry.criterion.kind.replace("-", " "),
                row.judgement.verdict,
            ]
        )
    heading = ["model", "quantity", "published", "ours", "difference", "judged by", "verdict"]
    return Table(heading, rows, "" if record is None else source_line(record))


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
            _PAGE.replace("{options}", options)
            .replace("{kinds}", kinds)
            .replace("{heading}", heading)
            .replace("{body}", body)
        )


# A symbol beside the colour, for readers who cannot see the colour.
_SIGNS = {
    "good": ("✓", ("agrees", "typical", "holds")),
    "mixed": ("~", ("partly", "open at our K", "setting, ours differs")),
    "bad": ("✗", ("differs", "not typical", "does not hold", "no estimate")),
}


def _html_row(row: ReportRow) -> str:
    entry, verdict = row.entry, row.judgement.verdict
    unit = "" if entry.unit in ("count", "dimensionless") else f" {entry.unit}"
    chapter = "" if row.chapter is None else f"<a href='{row.chapter}.html'>{row.chapter[:2]}</a>"
    ours = format_value(row.value)
    if row.std_error is not None:
        ours += f" ± {format_value(row.std_error)}"
    if row.steps is not None:
        ours += f", K = {row.steps:,}"
    if row.fitted:
        ours += ", fitted"
    off = format_value(difference(entry.meant, row.value))
    kind = entry.criterion.kind.replace("-", " ")
    sign = next((name for name, (_, words) in _SIGNS.items() if verdict in words), "none")
    mark = _SIGNS[sign][0] + " " if sign in _SIGNS else ""
    cells = [
        html.escape(f"{_IN_SHORT[entry.paper]}, {entry.where}"),
        html.escape(f"{entry.row}: {entry.column}"),
        html.escape(format_value(entry.printed) + unit),
        html.escape(ours),
        html.escape(f"{off} ({row.grade})" if row.grade else off),
        html.escape(kind),
        f"<span class='verdict-{sign}'>{mark}{html.escape(verdict)}</span><br>"
        + html.escape(row.judgement.evidence or entry.criterion.why),
        chapter,
    ]
    return (
        f"<tr data-verdict='{verdict}' data-kind='{kind}' title='{html.escape(row.command or '', quote=True)}'>"
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
    )


_PAGE = """\
<div class="reproduction-report">
<p><label>Verdict <select><option value="">all</option>{options}</select></label>
<label>Judged by <select><option value="">all</option>{kinds}</select></label>
<label>Containing <input type="search" placeholder="for example CD25"></label>
<span role="status"></span></p>
<div class="reproduction-report-scroll" tabindex="0" role="region" aria-label="Published numbers beside ours">
<table><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table></div>
<style>
.reproduction-report-scroll { max-height: 80vh; overflow: auto; }
.reproduction-report label { margin-right: 1.5em; }
.reproduction-report th { position: sticky; top: 0; background: #fff; color: #1a1a1a; }
.reproduction-report .verdict-good { color: #1a7f37; font-weight: 600; }
.reproduction-report .verdict-bad { color: #b3261e; font-weight: 600; }
.reproduction-report .verdict-mixed { color: #7a5900; font-weight: 600; }
html[data-theme="dark"] .reproduction-report .verdict-good { color: #57d17c; }
html[data-theme="dark"] .reproduction-report .verdict-bad { color: #ff9b91; }
html[data-theme="dark"] .reproduction-report .verdict-mixed { color: #e8c468; }
.reproduction-report th { text-align: left; padding: 2px 6px; }
.reproduction-report td:nth-child(7) { min-width: 14em; }
.reproduction-report td { border-bottom: 1px solid #8886; padding: 2px 6px; vertical-align: top; }
</style>
<script>
(() => {
  const report = document.currentScript.closest(".reproduction-report");
  const [verdict, kind] = report.querySelectorAll("select"), words = report.querySelector("input");
  const rows = [...report.querySelectorAll("tbody tr")];
  const show = () => {
    let shown = 0;
    for (const row of rows) {
      const fits = (!verdict.value || row.dataset.verdict === verdict.value)
        && (!kind.value || row.dataset.kind === kind.value)
        && row.textContent.toLowerCase().includes(words.value.toLowerCase());
      row.hidden = !fits;
      shown += fits;
    }
    report.querySelector("[role=status]").textContent = `${shown} of ${rows.length} numbers`;
  };
  verdict.addEventListener("change", show);
  kind.addEventListener("change", show);
  words.addEventListener("input", show);
  show();
})();
</script>
</div>"""
