"""The reproduction report: every published number beside ours, drawn from `data/published.yaml` and the stored records."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from paperlib.experiments.published import Published, load_published
from paperlib.experiments.records import load_result
from paperlib.publishing.tables import (
    difference,
    format_value,
    reproduced_std_error,
    reproduced_value,
    verdict,
)

# In the order in which a reader wants them.
VERDICTS = ("reproduced", "not reproduced", "not judged", "not run", "setting or remark")


@dataclass(frozen=True)
class ReportRow:
    """A published number and what became of it.

    Attributes
    ----------
    entry : Published
        The number, its unit and what counts as reproduced.
    value : number, pair of numbers or None
        Ours.
    std_error : float or None
        Its Monte Carlo standard error.
    verdict : str
        One of `VERDICTS`.
    chapter, command, commit, utc : str or None
        The chapter that discusses it, how our number is made again, the commit of the library that
        the chapter used, and when.
    """

    entry: Published
    value: Any
    std_error: float | None
    verdict: str
    chapter: str | None
    command: str | None
    commit: str | None
    utc: str | None


def report_rows() -> list[ReportRow]:
    """A row for every published number, in the papers' order."""
    stored = cache(lambda name: load_result(name, "paper"))
    rows = []
    for entry in load_published():
        source = entry.reproduced_by
        record = None if source is None else stored(source.record)
        made = {} if record is None else record["provenance"]
        value = reproduced_value(entry, record)
        rows.append(
            ReportRow(
                entry,
                value,
                reproduced_std_error(entry, record),
                "setting or remark" if source is None else verdict(entry, value),
                made.get("chapter"),
                made.get("command"),
                made.get("commit"),
                made.get("utc"),
            )
        )
    return rows


def counts(rows: Iterable[ReportRow]) -> dict[str, int]:
    """How often each verdict was given."""
    given = [row.verdict for row in rows]
    return {verdict: given.count(verdict) for verdict in VERDICTS}


@dataclass(frozen=True)
class Report:
    """All rows as a table that the reader can filter, without a kernel and without another host."""

    rows: Sequence[ReportRow]

    def __repr__(self) -> str:
        return f"Report({len(self.rows)} published numbers)"

    def _repr_html_(self) -> str:
        heading = "".join(
            f"<th scope='col'>{name}</th>"
            for name in (
                "where",
                "of what",
                "published",
                "ours ± standard error",
                "difference",
                "verdict",
                "chapter",
            )
        )
        body = "".join(_html_row(row) for row in self.rows)
        options = "".join(f"<option>{name}</option>" for name in VERDICTS)
        return (
            _PAGE.replace("{options}", options)
            .replace("{heading}", heading)
            .replace("{body}", body)
        )


def _html_row(row: ReportRow) -> str:
    entry = row.entry
    paper = {"sm2008": "S&M 2008", "raise2015": "RAISE 2015"}[entry.paper]
    unit = "" if entry.unit in ("count", "dimensionless") else f" {entry.unit}"
    chapter = "" if row.chapter is None else f"<a href='{row.chapter}.html'>{row.chapter[:2]}</a>"
    tolerance = entry.criterion.tolerance
    within = "" if tolerance is None else f" Tolerance {tolerance:g}{unit}."
    error = "" if row.std_error is None else f" ± {format_value(row.std_error)}"
    cells = [
        html.escape(f"{paper}, {entry.where}"),
        html.escape(f"{entry.row}: {entry.column}"),
        html.escape(format_value(entry.printed) + unit),
        html.escape(format_value(row.value) + error),
        html.escape(format_value(difference(entry.printed, row.value))),
        f"<span title='{html.escape(entry.criterion.why + within, quote=True)}'>{row.verdict}</span>",
        chapter,
    ]
    return (
        f"<tr data-verdict='{row.verdict}' title='{html.escape(row.command or '', quote=True)}'>"
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
    )


_PAGE = """\
<div class="reproduction-report">
<p><label>Verdict <select><option value="">all</option>{options}</select></label>
<label>Containing <input type="search" placeholder="for example CD25"></label>
<span role="status"></span></p>
<div class="reproduction-report-scroll" tabindex="0" role="region" aria-label="Published numbers beside ours">
<table><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table></div>
<style>
.reproduction-report-scroll { max-height: 80vh; overflow: auto; }
.reproduction-report label { margin-right: 1.5em; }
.reproduction-report th { position: sticky; top: 0; background: #fff; color: #1a1a1a; }
.reproduction-report td { border-bottom: 1px solid #8886; padding: 2px 6px; vertical-align: top; }
</style>
<script>
(() => {
  const report = document.currentScript.closest(".reproduction-report");
  const chosen = report.querySelector("select"), words = report.querySelector("input");
  const rows = [...report.querySelectorAll("tbody tr")];
  const show = () => {
    let shown = 0;
    for (const row of rows) {
      const fits = (!chosen.value || row.dataset.verdict === chosen.value)
        && row.textContent.toLowerCase().includes(words.value.toLowerCase());
      row.hidden = !fits;
      shown += fits;
    }
    report.querySelector("[role=status]").textContent = `${shown} of ${rows.length} numbers`;
  };
  chosen.addEventListener("change", show);
  words.addEventListener("input", show);
  show();
})();
</script>
</div>"""
