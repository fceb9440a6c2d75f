"""Published numbers beside ours: every one once, and a word only for the same weights."""

import math
import re
from dataclasses import replace

import pytest
from notebooks import NOTEBOOKS, cells_of

from boltzmann_companion.claims.checks import Stored
from boltzmann_companion.claims.report import (
    compare,
    compared,
    comparison_rows,
    comparison_table,
    counts,
    first_table,
    independent,
    report_rows,
    second_table,
)
from boltzmann_companion.published import Cell, load_published
from boltzmann_companion.records import load_result
from boltzmann_companion.tables import cell_std_error, difference

ENTRIES = load_published()
ROWS = compared()
BY_ID = {row.entry.id: row for row in ROWS}
SHOWN = [
    (path.stem, cell, name)
    for path in NOTEBOOKS
    for cell in cells_of(path)
    for name in re.findall(r'comparison_table\("(.*?)"', cell.source)
]
# whether or not a page shows the table
COMPARED = sorted({entry.reproduced_by.record for entry in ENTRIES if entry.reproduced_by})


def test_every_published_number_is_there_once():
    assert [row.entry.id for row in ROWS] == [entry.id for entry in ENTRIES]
    assert len({row["id"] for row in report_rows(ROWS)}) == len(ROWS)
    numbers = [[int(cell) for cell in row[1:]] for row in counts(ROWS).rows]
    assert sum(total for total, *_ in numbers) == len(ROWS)
    assert all(total == sum(parts) for total, *parts in numbers)


def test_a_word_stands_only_where_the_weights_are_the_authors():
    shown = [row for name in COMPARED for row in comparison_rows(name)] + ROWS
    assert {row.word for row in shown} <= {"agrees", "differs", ""}
    for row in shown:
        same = row.cell is not None and row.cell == row.entry.same_weights
        assert (row.errors is not None) == bool(row.word)
        assert same or not row.word, row.entry.id
        if same:
            made = load_result(row.cell.record, "paper")["provenance"]
            assert list(made["models"]) == ["CD25(500)"]
    assert sum(bool(row.word) for row in ROWS) == 14


def test_every_row_has_the_papers_effort():
    """A row of the second paper's tables has the paper's K."""
    shown = [row for name in COMPARED for row in comparison_rows(name)] + ROWS
    steps = [row.steps for row in shown if row.steps is not None]
    assert len(steps) > 100
    assert set(steps) == {100_000}
    for name in ("raise-table-1", "raise-own-weights"):
        assert {row["csl_states"] for row in load_result(name, "paper")["rows"]} == {5 * 10**8}


def test_fitted_recipes_are_marked():
    shown = [row for name in COMPARED for row in comparison_rows(name)]
    fitted = {row.model for row in shown if row.fitted}
    assert {"CD1(500)", "CD3(500)", "MoB(10)", "MoB(500)", "mnistCD1-500"} <= fitted
    assert not fitted & {"CD25(500)", "CD1(20)", "mnistPCD-500"}
    assert all("(fitted)" in row.ours for row in shown if row.fitted)


BOUND = next(
    entry
    for entry in ENTRIES
    if entry.reproduced_by is not None and entry.reproduced_by.column == "bound"
)


def entry_of(published=-86.34, column="test"):
    """A published number, or an interval, that a cell of a record has of the same weights."""
    interval = published if isinstance(published, tuple) else None
    value = None if interval else published
    return replace(BOUND, value=value, interval=interval, same_weights=Cell("r", "m", column))


def beside(entry, row, entries=()):
    """The number beside that row."""
    record = {"rows": [{"model": "m", **row}], "provenance": {"models": {}}}
    return compare(entry, entry.same_weights, Stored({"r": record}.get), entries)


ONE = "interval_1_sigma"
THREE = "interval_3_sigma"


@pytest.mark.parametrize(
    ("published", "row", "verdict"),
    [
        # three standard errors of a difference, 3 sqrt(2) 0.1, and half a hundredth: 0.429
        (-86.34, {"raise": -85.92, "raise_error": 0.1}, "agrees"),
        (-86.34, {"raise": -85.90, "raise_error": 0.1}, "differs"),
        (-86.34, {"raise": -86.76, "raise_error": 0.1}, "agrees"),
        (-86.34, {"raise": -86.78, "raise_error": 0.1}, "differs"),
        # half of the last printed digit is rounding: of hundredths, tenths, whole nats
        (-86.34, {"raise": -86.344, "raise_error": 1e-9}, "agrees"),
        (-86.34, {"raise": -86.346, "raise_error": 1e-9}, "differs"),
        (56.6, {"raise": 56.64, "raise_error": 1e-9}, "agrees"),
        (56.6, {"raise": 56.66, "raise_error": 1e-9}, "differs"),
        (-86.0, {"raise": -86.4, "raise_error": 1e-9}, "agrees"),
        (-86.0, {"raise": -86.6, "raise_error": 1e-9}, "differs"),
        # a missing error is not an error of zero
        (-86.34, {"csl": -86.34}, ""),
        (-86.34, {"csl": -110.15}, ""),
        # the middles of two intervals of one sigma, 0.3 and 0.4: 3 times 0.5
        ((1.0, 1.6), {ONE: [2.4, 3.2]}, "agrees"),
        ((1.0, 1.6), {ONE: [2.5, 3.3]}, "differs"),
        # of three sigma, 0.1 and 0.4 / 3: they overlap, although three standard errors apart
        ((1.0, 1.6), {THREE: [1.4, 2.2]}, "agrees"),
        ((1.0, 1.6), {THREE: [1.5, 2.3]}, "differs"),
        ((1.0, 1.6), {THREE: ["-inf", 2.3]}, ""),
        (-86.34, {}, ""),
        # an estimate of unknown error agrees with nothing
        (-86.34, {"base_rate_ais": -86.34, "base_rate_ais_error": math.inf}, ""),
    ],
    ids=str,
)
def test_same_weights_by_hand(published, row, verdict):
    word = beside(entry_of(published, next(iter(row), "test")), row)
    assert word.word == verdict
    if "raise" in row:
        off = (row["raise"] - published) / row["raise_error"] / math.sqrt(2)
        assert word.errors == pytest.approx(off, rel=1e-9)


@pytest.mark.parametrize(
    ("printed", "verdict"), [((-0.3, 0.3), "agrees"), ((-0.03, 0.03), "differs")]
)
def test_the_error_that_the_paper_prints_is_used(printed, verdict):
    """A three-sigma interval of ln Z is the error of the averages, too: 0.1 or 0.01, ours 0.1."""
    interval = entry_of(printed, THREE)
    row = {"test": -85.95, "log_z_error": 0.1, THREE: [-0.3, 0.3]}
    assert beside(entry_of(), row, [interval]).word == verdict


def test_the_same_row_of_another_model_has_no_word():
    entry = replace(entry_of(), same_weights=None)
    record = {"rows": [{"model": "m", "test": -86.34, "log_z_error": 0.1}]}
    record["provenance"] = {"models": {}}
    compared = compare(entry, Cell("r", "m", "test"), Stored({"r": record}.get))
    assert (compared.off, compared.errors, compared.word) == (0.0, None, "")


def test_one_point_for_each_independent_estimate():
    """Of the fourteen numbers eight follow from one ln Z, and a gap from both ends of a bracket."""
    points = independent(ROWS)
    cells = [row.cell for row in points.values()]
    assert len(set(cells)) == len(points) == 5
    assert [cell.column for cell in cells if cell.record == "sm2008-own-weights"] == ["log_z"]
    assert {cell.column for cell in cells if cell.record == "raise-own-weights"} == {
        f"{start}_{end}" for start in ("uniform", "base_rate") for end in ("ais", "raise")
    }
    assert sum(row["estimate"] is not None for row in report_rows(ROWS)) == 5


def test_the_opening_tables_have_a_row_for_each_model_of_the_papers():
    first = first_table(ROWS)
    second = second_table(ROWS)
    assert [row[0].split(",")[0] for row in first.rows] == [
        *("CD1(25)", "CD3(25)", "CD1(20)", "CD1(500)", "CD3(500)", "CD25(500)"),
        *("DBN-CD1", "DBN-CD3", "DBN-CD25"),
    ]
    assert len(second.rows) == 10
    # typed from the paper's tables
    of = {row[0].split(",")[0]: row for row in second.rows}
    assert (of["mnistCD1-500"][1], of["mnistCD1-500"][4]) == ("0.68", "44.26")
    assert (of["Omniglot DBM"][1], of["Omniglot DBM"][4]) == ("−0.63", "−6.38")
    assert of["MNIST DBN"][1] == "–"
    words = [row[-1] for row in first.rows if row[-1] != "–"]
    assert words == ["1.92, agrees"]


def test_difference_of_an_inverse_ratio():
    """The paper prints -24.18 for what its own definition makes +24.18; ours is -134.60."""
    (row,) = [row for row in ROWS if row.entry.id.endswith("cd1-20-over-cd1-25/true")]
    assert difference(row.entry.meant, row.value) == pytest.approx(-134.60 - 24.18, abs=0.01)


def answer(column, row):
    """A published number that this row of a record answers, and the record."""
    source = replace(BOUND.reproduced_by, row="m", column=column)
    return replace(BOUND, reproduced_by=source), {"rows": [{"model": "m", **row}]}


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
    std_error = cell_std_error(entry.reproduced_by, record)
    assert std_error is None if error is None else std_error == pytest.approx(error, abs=1e-12)


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
    authors = [entry for entry in entries if entry.same_weights is not None]
    table = comparison_table("raise-table-1")
    assert len(authors) == 6
    assert len(table.rows) == len(entries) + len(authors)
    assert any("(K = 100,000)" in cell for row in table.rows for cell in row)
    (csl,) = [row for row in table.rows if row[0] == "mnistCD1-500" and row[1] == "CSL"]
    assert "(fitted)" in csl[3]


def test_every_number_of_a_row_comes_from_one_row_of_a_record():
    """Value, error and K."""
    shown = [row for name in COMPARED for row in comparison_rows(name)] + ROWS
    seen = [row for row in shown if row.value is not None]
    assert len(seen) > 250
    for row in seen:
        cell = row.cell
        record = load_result(cell.record, "paper")
        stored = next(each for each in record["rows"] if each["model"] == cell.row)
        assert row.value == stored[cell.column], row
        start = re.match("uniform|base_rate|", cell.column)[0]
        assert row.steps == (stored["steps"] if start else None), row
        assert row.std_error == cell_std_error(cell, record), row
        if f"{cell.column}_error" in stored:
            assert row.std_error == stored[f"{cell.column}_error"], row


@pytest.mark.parametrize(
    ("cell", "name"),
    [(cell, name) for _, cell, name in SHOWN],
    ids=[f"{chapter}: {name}" for chapter, _, name in SHOWN],
)
def test_pages_show_these_tables(cell, name):
    [output] = cell.outputs
    assert output.data["text/markdown"] == repr(comparison_table(name))
