"""The reproduction report: every published number once, with the verdict that its tolerance gives."""

import math

from paperlib.reproduction.published import load_published
from paperlib.reproduction.records import load_result
from paperlib.reproduction.report import VERDICTS, Report, counts, report_rows

ROWS = report_rows()


def test_every_published_number_is_there_once():
    assert [row.entry.id for row in ROWS] == [entry.id for entry in load_published()]
    assert sum(counts(ROWS).values()) == len(ROWS)


def test_verdicts_follow_from_the_tolerances():
    for row in ROWS:
        assert row.verdict in VERDICTS
        if row.verdict not in ("reproduced", "not reproduced"):
            continue
        pairs = (
            zip(row.entry.printed, row.value, strict=True)
            if isinstance(row.value, list)
            else [(row.entry.printed, row.value)]
        )
        within = all(
            printed == ours or math.fabs(ours - printed) <= row.entry.criterion.tolerance
            for printed, ours in pairs
        )
        assert within == (row.verdict == "reproduced"), row.entry.id
        assert row.command.startswith("paperlib reproduce --profile paper --only ")


def test_standard_errors_stand_beside_estimates():
    errors = {row.entry.id: row.std_error for row in ROWS}
    record = load_result("sm2008-table-1-full-size", "paper")
    for entry in load_published():
        source = entry.reproduced_by
        if source is None or source.record != record["name"] or source.column != "test":
            continue
        (row,) = [row for row in record["rows"] if row["model"] == source.row]
        low, high = row["interval_1_sigma"]
        assert errors[entry.id] == (high - low) / 2 > 0
    bounds = [row for row in ROWS if row.entry.reproduced_by and row.value is not None]
    bounds = [row for row in bounds if row.entry.reproduced_by.column == "bound"]
    assert len(bounds) >= 6
    assert all(0 < row.std_error < 1 for row in bounds)
    exact = [row for row in ROWS if row.entry.column == "exact" and row.value is not None]
    assert all(row.std_error is None for row in exact)


def test_page_holds_every_row_and_no_other_host():
    page = Report(ROWS)._repr_html_()
    assert page.count("<tr data-verdict=") == len(ROWS)
    assert "http" not in page
    assert repr(Report(ROWS)) == f"Report({len(ROWS)} published numbers)"
