"""`paperlib check`: a run beside the committed claims and records, in words."""

import copy
import json
import math
import shutil

import nbformat
import pytest
from notebooks import ROOT, notebook

from boltzmann_companion.build import check
from boltzmann_companion.chapter import AFTER_A_MOVE
from boltzmann_companion.record_files import as_json, read_record
from boltzmann_companion.records import differences, moved_numbers, moved_records

COMMITTED = ROOT / "figures" / "digits"
CHAPTER = "05-exact-partition-functions"
TABLE = read_record(COMMITTED / "sm2008-table-1.json")


def moved(row, **values):
    """What is said of the table after values of one of its rows have changed."""
    table = copy.deepcopy(TABLE)
    table["rows"][row] |= values
    return differences(TABLE, table)


def test_a_number_is_told_with_its_row_its_column_and_the_digits_that_differ():
    value = TABLE["rows"][0]["log_z"]
    low, high = TABLE["rows"][0]["interval_1_sigma"]
    errors = 0.0147 / ((high - low) / 2)
    assert moved(0, log_z=value + 0.0147) == [
        (
            f"CD1(16), ln Z: {value:.4f} -> {value + 0.0147:.4f}"
            f" (within 1e-6; {errors:.1f} standard errors)"
        )
    ]
    assert moved(0, log_z=value + 3e-6)[0].count(f"{value:.8f} -> ") == 1
    assert moved(0, log_z=math.inf)[0].endswith("-> inf (within 1e-6)")
    assert moved(0, log_z=value + 5e-7) == []
    for unlike in (value + 2e-6, math.nan):
        assert len(moved(0, log_z=unlike)) == 1


def test_an_interval_and_a_name_are_told_whole():
    low, high = TABLE["rows"][1]["interval_3_sigma"]
    (line,) = moved(1, interval_3_sigma=[low, high + 2])
    values = f"({low:.4f}, {high:.2f}) -> ({low:.4f}, {high + 2:.2f})"
    wider = (high + 2 - low) / (high - low)
    expected = f"CD3(16), ln(Z ± 3sigma): {values} (within 1e-6; {wider:.2f} times as wide)"
    assert line == expected
    (line,) = moved(1, interval_3_sigma=[-math.inf, high])
    assert line.endswith("(within 1e-6)")
    assert moved(2, model="CD2(12)") == ["CD1(12), model: CD1(12) -> CD2(12)"]


def test_other_columns_are_named():
    name = {"label": "name", "tolerance": 0}
    median = {"label": "median", "tolerance": 0}
    medain = {"label": "medain", "tolerance": 0}
    old = {"columns": {"name": name, "median": median}, "rows": []}
    new = {"columns": {"name": name | {"tolerance": 1}, "medain": medain}, "rows": []}
    assert differences(old, new) == ["columns differ: without median, with medain, another name"]


def test_an_error_is_told_with_how_many_times_it_is_as_large():
    columns = {"log_z_error": {"label": "error", "tolerance": 1e-6}}
    old = {"columns": columns, "rows": [{"log_z_error": 0.1}]}
    new = {"columns": columns, "rows": [{"log_z_error": 0.13}]}
    assert differences(old, new) == [
        "row 0, error: 0.1000 -> 0.1300 (within 1e-6; 1.30 times as large)"
    ]


def test_on_another_processor_what_follows_training_is_compared_within_its_errors():
    columns = {name: {"label": name, "tolerance": 1e-6} for name in ("log_z", "exact")}
    here = {"processor": "AMD EPYC", "instructions": "AVX512"}
    old = {"name": "a", "columns": columns, "processor_bound": True, "provenance": here}
    old["rows"] = [{"log_z": 10.0, "log_z_error": 0.1, "exact": 10.0}]

    def moved_on(processor, **values):
        new = {"columns": columns, "provenance": here | {"processor": processor}}
        return moved_numbers(old, new | {"rows": [old["rows"][0] | values]})

    assert len(moved_on("AMD EPYC", log_z=10.2, exact=10.2)) == 2
    assert moved_on("another", log_z=10.2, exact=10.2) == []
    assert moved_on("another", log_z=10.4) == [
        "a, row 0, log_z: 10.000 -> 10.400 (within 0.3; 4.0 standard errors)"
    ]


def test_rows_are_told_apart_by_as_few_settings_as_possible():
    columns = {
        name: {"label": label, "tolerance": 0}
        for name, label in {"model": "model", "steps": "$K$", "found": "found"}.items()
    }
    rows = [{"model": "a", "steps": k, "found": "x"} for k in (10, 1000)]
    new = [row | {"found": "y"} for row in rows]
    assert differences({"columns": columns, "rows": rows}, {"columns": columns, "rows": new}) == [
        "K = 10, found: x -> y",
        "K = 1000, found: x -> y",
    ]


def test_rows_without_settings_are_told_apart_by_their_number_and_counted():
    old = {"columns": {"x": {"label": "x", "tolerance": 0.1}}, "rows": [{"x": 1.0}, {"x": None}]}
    within = old | {"rows": [{"x": 1.05}, {"x": 2.0}]}
    alone = old | {"rows": [{"x": 1.0}]}
    assert differences(old, within) == ["row 1, x: None -> 2.0 (within 0.1)"]
    assert differences(old, alone) == ["2 rows expected, 1 found"]


def test_records_of_a_chapter_are_compared_and_those_of_others_left_alone(tmp_path):
    assert moved_records(CHAPTER, COMMITTED, COMMITTED) == ([], [])
    written = [p for p in COMMITTED.glob("*.json") if read_record(p)["name"].startswith("sm2008")]
    for path in written:
        shutil.copy(path, tmp_path)
    table = copy.deepcopy(TABLE)
    for row in table["rows"]:
        row["log_z"] += 1
        row["effective_sample_size"] += 1
        row["test"] += 1
    (tmp_path / "sm2008-table-1.json").write_text(json.dumps(table))
    (tmp_path / "new.json").write_text(json.dumps(table | {"name": "new"}))
    (tmp_path / "sm2008-ratios.json").unlink()
    lines, left_out = moved_records(CHAPTER, COMMITTED, tmp_path)
    assert "new: is not among the committed records" in lines
    assert "sm2008-ratios: was not written" in lines
    assert any(line.startswith("sm2008-table-1, CD1(16), ln Z: ") for line in lines)
    assert "sm2008-table-1: 3 more numbers" in lines
    assert left_out == []


def test_a_record_that_follows_long_training_is_left_out_on_another_processor(tmp_path):
    (path,) = [p for p in COMMITTED.glob("*.json") if read_record(p).get("processor_bound")][:1]
    record = json.loads(path.read_text())
    record["provenance"] |= {"processor": "another"}
    (tmp_path / path.name).write_text(json.dumps(record))
    lines, left_out = moved_records(record["provenance"]["chapter"], COMMITTED, tmp_path)
    assert not any(line.startswith(f"{path.stem},") for line in lines)
    assert [line.partition(": ")[0] for line in left_out] == [path.stem]


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("draws", None, "draws None, not '0.2.0'"),
        ("draws", "0.1.0", "draws '0.1.0', not '0.2.0'"),
        ("settings", None, "settings that it does not name"),
        ("settings", {"seed": 2007}, "seed = 2007, not 2008"),
        ("models", {"digits-cd1-16": "abc"}, "another digits-cd1-16 (its checksum)"),
        ("data", {"digits": "abc"}, "another digits (its checksum)"),
    ],
)
def test_a_record_from_something_else_than_its_command_uses_is_out_of_date(kind, value, reason):
    record = copy.deepcopy(TABLE)
    assert check.outdated(record) == []
    if value is None:
        del record["provenance"][kind]
    else:
        before = record["provenance"][kind]
        record["provenance"][kind] = value if isinstance(value, str) else before | value
    assert check.outdated(record) == [reason]


@pytest.fixture
def checkout(monkeypatch, tmp_path):
    """A book of two chapters with a claim and a record each, as its runs have left it.

    Returns a function that changes their model.
    """

    def write(number=1.0, name="01-one"):
        sources = [
            (
                f"from boltzmann_companion.chapter import open_chapter\n"
                f"chapter = open_chapter({name!r}, globals())\nnumber = {number}"
            ),
            'chapter.check("the number is below 2", number < 2)',
            'chapter.record("a-table", [{"model": "tiny", "log_z": number}]) and None',
            "chapter.compare()",
        ]
        book = notebook(*sources)
        book.cells[2].metadata["tags"] = ["checks", "hide-cell"]
        printed = nbformat.v4.new_output("stream", text="the number is below 2: yes\n")
        book.cells[2].outputs = [printed]
        book.cells[4].metadata["tags"] = ["hide-cell", "nbval-check-output"]
        numbers = "1 records with 2 values, all as in the book\n"
        book.cells[4].outputs = [nbformat.v4.new_output("stream", text=numbers)]
        book.metadata["language_info"] = {"name": "python"}
        nbformat.write(book, tmp_path / "book" / f"{name}.ipynb")

    (tmp_path / "book").mkdir()
    monkeypatch.setattr("paperlib.storage.repository_root", lambda: tmp_path)
    write()
    write(name="02-two")
    check.check_chapter(tmp_path / "book" / "01-one.ipynb")
    shutil.move(tmp_path / "_build" / "check" / "figures", tmp_path / "figures")
    return write


def test_check_says_what_moved_and_leaves_the_book_alone(checkout, tmp_path, command):
    def run(*names):
        code, out, _ = command("check", *names)
        return code, out.splitlines()

    looked_at = ["0 numbers on 1 pages, 0 mistakes", "1 records, 0 out of date"]
    assert run("01") == (0, [*looked_at, "01-one: nothing moved"])
    checkout(2.5)
    before = {path: path.read_bytes() for path in tmp_path.glob("*/**/*.*") if path.is_file()}
    assert run("01") == (
        1,
        [
            *looked_at,
            f"01-one: {AFTER_A_MOVE}",
            "  the number is below 2: yes -> no",
            "  a-table, tiny, ln Z: 1.00 -> 2.50 (within 1e-6)",
        ],
    )
    checkout("1 / 0")
    code, (_, _, first, second, *_, last) = run("01")
    assert (code, first) == (1, f"01-one: {AFTER_A_MOVE}")
    assert second.startswith("  the run stopped: ")
    assert "ZeroDivisionError" in second
    assert last == "  a-table: was not written"
    unchanged = {
        path for path in before if "_build" not in path.parts and "01-one" not in path.name
    }
    assert {path.read_bytes() == before[path] for path in unchanged} == {True}


def test_records_that_are_out_of_date_are_told_with_their_command(tmp_path):
    folder = tmp_path / "figures" / "digits"
    folder.mkdir(parents=True)
    for name, draws in (("now", TABLE["provenance"]["draws"]), ("old", "0.0.1")):
        record = TABLE | {"name": name, "provenance": TABLE["provenance"] | {"draws": draws}}
        (folder / f"{name}.json").write_text(json.dumps(as_json(record)))
    count, old = check.check_records(tmp_path, {CHAPTER})
    assert count == 2
    (notice,) = old
    first, second = notice.splitlines()
    assert first.startswith("digits/old: made from draws '0.0.1', not ")
    assert second == f"  make it again: {TABLE['provenance']['command']}"
    assert check.check_records(tmp_path, {"06-full-size-rbms"}) == (0, [])
