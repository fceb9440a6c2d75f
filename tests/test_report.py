"""The reproduction report: every published number once, with the verdict that its criterion gives."""

import functools
import math
import re
from dataclasses import replace

import pytest
from notebooks import NOTEBOOKS, cells_of

from boltzmann_companion.claims.claims import CLAIMS, OUTCOMES, start_of
from boltzmann_companion.claims.report import (
    Report,
    comparison_rows,
    comparison_table,
    counts,
    report_rows,
)
from boltzmann_companion.claims.verdicts import VERDICTS, Judgement, deciding, judge, used_setting
from boltzmann_companion.published import Cell, Criterion, load_published
from boltzmann_companion.records import load_result
from boltzmann_companion.tables import cell_std_error, difference

ENTRIES = load_published()
ROWS = report_rows()
BY_ID = {row.entry.id: row for row in ROWS}


def test_every_published_number_is_there_once():
    assert [row.entry.id for row in ROWS] == [entry.id for entry in load_published()]
    assert sum(sum(verdicts.values()) for verdicts in counts(ROWS).values()) == len(ROWS)


def test_every_verdict_is_one_of_the_list_and_belongs_to_its_criterion():
    allowed = {
        "same-weights": {"agrees", "differs", "no estimate", "not run"},
        "same-recipe": {"typical", "not typical", "says nothing", "not run"},
        "claim": set(OUTCOMES),
        "other-data": {"other data"},
        "setting": {"setting", "setting, ours differs"},
        "not-judged": {"not judged"},
    }
    for row in ROWS:
        assert row.judgement.verdict in VERDICTS
        assert row.judgement.verdict in allowed[row.entry.criterion.kind], row.entry.id
        assert row.judgement.evidence, row.entry.id


def test_our_numbers_name_the_command_that_makes_them_again():
    answered = [row for row in ROWS if row.value is not None]
    assert len(answered) > 100
    for row in answered:
        assert row.command.startswith("paperlib reproduce --profile paper --only ")


def test_every_row_has_the_papers_effort():
    """A verdict speaks of the paper's K and of its number of hidden states for CSL, not of less."""
    shown = [row for name in COMPARED for row in comparison_rows(name)] + ROWS
    starts = [row for row in shown if row.cell and start_of(row.cell.column)]
    assert len(starts) > 100
    assert {row.steps for row in starts} == {100_000}
    for name in ("raise-table-1", "raise-own-weights"):
        assert {row["csl_states"] for row in load_result(name, "paper")["rows"]} == {5 * 10**8}
    own = BY_ID["raise2015/table-2/caption/intermediate-distributions"].judgement
    assert own == Judgement("setting", "ours is the same")
    shared = BY_ID["sm2008/section-5.1/samples-of-figure-2/alternating-gibbs-steps"]
    assert shared.entry.value == 100_000
    assert shared.judgement.verdict == "setting"


def test_architectures_are_compared_with_the_recipes():
    for key, value in (
        ("sm2008/section-5.1/cd3-500/hidden-units", 500),
        ("sm2008/section-5.1/cd25-500/cd-steps-t-first", 1),
        ("sm2008/section-5.1/cd25-500/cd-steps-t-last", 25),
        ("sm2008/section-5.2/dbn-cd25/units-of-the-second-hidden-layer", 2_000),
        ("raise2015/section-5.1/omnipcd-1000/hidden-units", 1_000),
    ):
        assert used_setting(BY_ID[key].entry, {}.get) == [value]
        assert BY_ID[key].judgement.evidence == "ours is the same"
        other = replace(BY_ID[key].entry, value=value + 1)
        assert judge(other, {}.get, {}).verdict == "setting, ours differs"


def test_fitted_recipes_are_marked():
    shown = [row for name in COMPARED for row in comparison_rows(name)]
    fitted = {row.model for row in shown if row.fitted}
    assert {"CD1(500)", "CD3(500)", "MoB(10)", "MoB(500)", "mnistCD1-500"} <= fitted
    assert not fitted & {"CD25(500)", "CD1(20)", "mnistPCD-500"}
    assert all("(fitted)" in row.ours for row in shown if row.fitted)
    # trainings by the released recipe, and mixtures that were started at images, are not
    assert not any(name.endswith(("trainings", "started at images")) for name in fitted)


def entry_of(kind, published=-86.34, column="test"):
    """A published number, or an interval, that is judged by a cell of a record."""
    criterion = Criterion(kind, "because", judged_by=Cell("r", "m", column))
    interval = published if isinstance(published, tuple) else None
    value = None if interval else published
    return replace(BOUND, value=value, interval=interval, criterion=criterion)


AIS = "base_rate_ais"


@pytest.mark.parametrize(
    ("published", "row", "verdict"),
    [
        # three standard errors of a difference, 3 sqrt(2) 0.1, and half a hundredth: 0.429
        (-86.34, {"test": -85.92, "log_z_error": 0.1}, "agrees"),
        (-86.34, {"test": -85.90, "log_z_error": 0.1}, "differs"),
        (-86.34, {"test": -86.76, "log_z_error": 0.1}, "agrees"),
        (-86.34, {"test": -86.78, "log_z_error": 0.1}, "differs"),
        # without an error only rounding is allowed: hundredths, tenths, whole nats
        (-86.34, {"test": -86.344}, "agrees"),
        (-86.34, {"test": -86.346}, "differs"),
        (56.6, {"test": 56.64}, "agrees"),
        (56.6, {"test": 56.66}, "differs"),
        (-86.0, {"test": -86.4}, "agrees"),
        (-86.0, {"test": -86.6}, "differs"),
        ((1.0, 2.0), {"test": [1.9, 3.0]}, "agrees"),
        ((1.0, 2.0), {"test": [2.1, 3.0]}, "differs"),
        (-86.34, {}, "not run"),
        # an estimate of unknown error agrees with nothing
        (-86.34, {AIS: -86.34, "base_rate_ais_error": math.inf}, "no estimate"),
    ],
    ids=str,
)
def test_same_weights_by_hand(published, row, verdict):
    record, column = {"rows": [{"model": "m", **row}]}, next(iter(row), "test")
    found = judge(entry_of("same-weights", published, column), {"r": record}.get, {})
    assert found.verdict == verdict
    if "test" in row:
        error = row.get("log_z_error")
        if error is None:
            assert found.standard_errors is None
        else:
            off = (row["test"] - published) / error / math.sqrt(2)
            assert found.standard_errors == pytest.approx(off, abs=1e-9)


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [([-90.0, -86.0], "typical"), ([-86.0, -82.0], "not typical"), (None, "not run")],
)
def test_same_recipe_by_hand(interval, verdict):
    row = {"model": "m", "test": interval, "judged_at": 10, "seeds": 10, "fits_at": "none"}
    found = judge(entry_of("same-recipe"), {"r": {"rows": [row]}}.get, {})
    assert found.verdict == verdict
    assert judge(entry_of("same-recipe"), {}.get, {}).verdict == "not run"
    if interval == [-90.0, -86.0]:
        # the middle is -88, and 1.96 standard errors are 2
        assert found.standard_errors == pytest.approx(1.96 * (-88 + 86.34) / 2)


def test_difference_of_an_inverse_ratio():
    """The paper prints -24.18 for what its own definition makes +24.18; ours is -134.60."""
    (row,) = [row for row in ROWS if row.entry.id.endswith("cd1-20-over-cd1-25/true")]
    assert difference(row.entry.meant, row.value) == pytest.approx(-134.60 - 24.18, abs=0.01)


def test_page_holds_every_row_and_no_other_host():
    page = Report(ROWS)._repr_html_()
    assert page.count("<tr data-verdict=") == len(ROWS)
    assert "http" not in page
    assert repr(Report(ROWS)) == f"Report({len(ROWS)} published numbers)"


def answer(column, row):
    """A published number that this row of a record answers, and the record."""
    source = replace(BOUND.reproduced_by, row="m", column=column)
    return replace(BOUND, reproduced_by=source), {"rows": [{"model": "m", **row}]}


BOUND = next(
    entry
    for entry in load_published()
    if entry.reproduced_by is not None and entry.reproduced_by.column == "bound"
)


@pytest.mark.parametrize(
    ("column", "row", "error"),
    [
        ("bound", {"bound": -86.0, "error_bound": 0.6}, 0.2),
        ("raise", {"raise": -86.0, "raise_error": 0.6}, 0.6),
        ("test", {"test": -86.0, "interval_1_sigma": [1.0, 1.5]}, 0.25),
        ("test", {"test": -86.0, "interval_1_sigma": [-math.inf, 1.5]}, None),
        ("test", {"test": -86.0, "interval_1_sigma": ["-inf", 1.5]}, None),
        ("raise", {"raise": -86.0, "raise_error": math.inf}, None),
        ("bound", {"bound": -86.0, "error_bound": math.inf}, None),
        ("exact", {"exact": 1.0}, None),
        ("test", {"test": -86.0, "log_z_error": 0.1}, 0.1),
    ],
)
def test_standard_errors_by_hand(column, row, error):
    entry, record = answer(column, row)
    found = cell_std_error(entry.reproduced_by, record)
    assert found is None if error is None else found == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize(
    ("published", "value", "expected"),
    [
        (-86.34, -85.84, 0.5),
        (-86.34, -87.34, -1.0),
        ([1.0, 2.0], [1.5, 1.0], [0.5, -1.0]),
        (-math.inf, -math.inf, 0.0),
        (1.0, math.nan, None),
        ("yes", "no", None),
        (1.0, None, None),
    ],
)
def test_differences_are_ours_less_theirs(published, value, expected):
    assert difference(published, value) == pytest.approx(expected, abs=1e-12)


def test_comparison_table_has_a_row_for_every_number_that_the_record_answers():
    entries = [e for e in ENTRIES if e.reproduced_by and e.reproduced_by.record == "raise-table-1"]
    apart = [entry for entry in entries if deciding(entry) != entry.reproduced_by]
    assert apart
    table = comparison_table("raise-table-1")
    assert len(table.rows) == len(entries) + len(apart)
    assert table.heading[-2:] == ["judged by", "verdict"]
    assert any("(K = 100,000)" in cell for row in table.rows for cell in row)
    (csl,) = [row for row in table.rows if row[0] == "mnistCD1-500" and row[1] == "CSL"]
    assert "(fitted)" in csl[3]


# ---- every row judges the number that it shows

SHOWN = [
    (path.stem, cell, name)
    for path in NOTEBOOKS
    for cell in cells_of(path)
    for name in re.findall(r'comparison_table\("(.*?)"', cell.source)
]
COMPARED = sorted({name for *_, name in SHOWN})


def numbers(cell):
    """The numbers in a cell of a rendered table, as they are read from the page."""
    cell = cell.replace("−", "-").replace("∞", "inf").replace(",", "")
    return [float(found) for found in re.findall(r"-?(?:\d+\.\d+|inf)", cell)]


@pytest.mark.parametrize("name", COMPARED)
def test_rendered_rows_bear_their_verdicts_out(name):
    """By what the page prints alone: value, error, interval and K in the row decide as its verdict says."""
    table = comparison_table(name)
    for row in table.rows:
        cells = dict(zip(table.heading, row, strict=True))
        printed, ours = numbers(cells["published"]), numbers(cells["ours"])
        verdict = cells["verdict"]
        if cells["judged by"] == "same weights":
            if len(printed) == 2:
                agrees = max(ours[0], printed[0]) <= min(ours[1], printed[1])
            else:
                # a value, and its error where it has one; half a hundredth on either side is rounding
                value, error = (*ours, 0.0)[:2]
                agrees = abs(value - printed[0]) <= 3 * math.sqrt(2) * (error + 0.005) + 0.01
            assert (verdict == "agrees") == agrees, row
        if cells["judged by"] == "same recipe":
            assert len(ours) >= 2, row  # the interval that is judged is shown
            low, high = ours[-2:]
            assert (verdict in ("typical", "says nothing")) == (low <= printed[0] <= high), row


def test_every_number_of_a_row_comes_from_one_row_of_a_record():
    """Value, error, interval, K and verdict; the verdict stays if every other model of every record had other numbers."""
    shown = [row for name in COMPARED for row in comparison_rows(name)] + ROWS
    seen = [row for row in shown if row.value is not None]
    assert len(seen) > 300
    for row in seen:
        cell, entry = row.cell, row.entry
        record = load_result(cell.record, "paper")
        own = next(r for r in record["rows"] if r["model"] == cell.row)
        if row.interval is None:
            assert row.value == own[cell.column], row
        else:
            assert (row.interval, row.value) == (own[cell.column], sum(own[cell.column]) / 2)
        start = re.match("uniform|base_rate|", cell.column)[0]
        k = own.get(f"{start}_steps", own.get("steps")) if start else None
        assert row.steps == k, row
        assert row.std_error == cell_std_error(cell, record), row
        if f"{cell.column}_error" in own:
            assert row.std_error == own[f"{cell.column}_error"], row
        # Whether a mixture is worse than an RBM cannot be told from the mixture alone.
        if cell == deciding(entry) and entry.criterion.claim != "mixtures-below-rbm":
            stored = functools.partial(others_changed, cell)
            claims = {c.id: c.finding(stored) for c in CLAIMS if c.id == entry.criterion.claim}
            assert judge(entry, stored, claims, ENTRIES).verdict == row.judgement.verdict, row


def others_changed(cell, name):
    """A stored record in which all models but that of the cell have other numbers."""
    record = load_result(name, "paper")
    return record | {
        "rows": [
            row
            if (name, row.get("model")) == (cell.record, cell.row)
            else {key: other(value) for key, value in row.items()}
            for row in record["rows"]
        ]
    }


def other(value):
    if isinstance(value, list):
        return [other(part) for part in value]
    return 1.5 * value if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("cell", "name"),
    [(cell, name) for _, cell, name in SHOWN],
    ids=[f"{chapter}: {name}" for chapter, _, name in SHOWN],
)
def test_pages_show_these_tables(cell, name):
    [output] = cell.outputs
    assert output.data["text/markdown"] == repr(comparison_table(name))


def test_an_interval_that_holds_another_models_number_says_nothing():
    # (-154.67, -141.08) also holds the -151.57 of CD1(25)
    wide, narrow = (
        BY_ID[f"sm2008/table-1/{row}/test-true"].judgement for row in ("cd3-25", "cd1-20")
    )
    assert wide.verdict == "says nothing"
    assert "CD1(25) (−151.57)" in wide.evidence
    assert narrow.verdict == "typical"
