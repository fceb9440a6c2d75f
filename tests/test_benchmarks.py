"""The benchmarks: all compute the same, the record is whole, the table follows from it."""

import copy
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import run
from benchmarks.competitors import COMPETITORS, calls, runs
from benchmarks.work import CD_STEPS, LEARNING_RATE, Work, main_work, quick_work
from boltzmann_companion import speed
from boltzmann_companion.record_files import read_record

ROOT = Path(__file__).parents[1]
REPEATS = 2


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Record and printed table of a quick run on one thread."""
    path = tmp_path_factory.mktemp("bench") / "record.json"
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--threads", "1"]
    command += ["--repeats", str(REPEATS), "--output", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    json.loads(path.read_text(), parse_constant=pytest.fail)  # strict JSON
    return read_record(path), done.stdout


# ---- the record


def test_record_has_a_whole_row_for_everybody_and_every_task(quick):
    record, printed = quick
    assert [(row["task"], row["by"]) for row in record["rows"]] == [
        (work.task, by) for work in quick_work() for by in COMPETITORS[work.task]
    ]
    assert record["columns"] == run.COLUMNS
    for row in record["rows"]:
        assert set(row) == set(run.COLUMNS)
        assert len(row["seconds"]) == REPEATS
        assert min(row["seconds"]) > 0
        without_value = row["task"] in CD_STEPS or row["by"] == speed.FLOOR
        assert (row["value"] is None) == without_value
    assert str(speed.speed_table([record])) in printed
    assert "DIFFERENT ANSWERS" not in printed


def test_provenance_names_machine_versions_and_calls(quick):
    record, _ = quick
    made = record["provenance"]
    assert made["machine"].startswith(made["processor"])
    assert record["name"] == run.machine_slug(made["machine"])
    assert made["rbms"] == "0.5.0"
    for key in ("torch", "numpy", "numba", "scikit-learn", "commit", "utc", "threads", "command"):
        assert made[key]
    assert made["calls"] == calls()
    assert "compute_partition_function_ais" in made["calls"]["AIS"]["rbms"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repeats", "0"], "whole numbers of at least 1"),
        (["--threads", "0"], "whole numbers of at least 1"),
        (["--device", "tpu"], "invalid choice"),
    ],
)
def test_wrong_arguments_end_with_a_sentence(arguments, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmarks.run", *arguments])
    with pytest.raises(SystemExit) as ended:
        run.main()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


# ---- the same work gives the same answers


def found_by(record, task, by):
    return next(row for row in record["rows"] if (row["task"], row["by"]) == (task, by))


def test_everybody_finds_the_same_numbers(quick):
    record, _ = quick
    assert speed.disagreements(record) == []
    wrong = copy.deepcopy(record)
    row = found_by(wrong, "AIS", "rbms")
    row["value"] += 20 * found_by(record, "AIS", "paperlib")["std_error"]
    assert len(speed.disagreements(wrong)) == 1
    row["value"] = math.nan
    assert len(speed.disagreements(wrong)) == 1


IMAGES = 4_000


@pytest.mark.parametrize(
    ("task", "by"), [(task, by) for task in CD_STEPS for by in COMPETITORS[task]]
)
def test_first_update_follows_the_gradient(task, by):
    # From weights near zero all units of the chains are on half of the time, whatever the number of
    # Gibbs steps: the gradient is mean(v) - 1/2 for the biases, and half of that for every weight.
    work = Work(task, visible=16, hidden=6, chains=IMAGES, steps=1)
    expected = work.images().mean(0) - 0.5
    trained = runs(work, "cpu", (by,))[by]()
    change = trained.visible_bias.float()
    if by == "rbms":  # its steps have a fixed length
        start = work.initial()
        changes = [trained.weights - start.weights, change, trained.hidden_bias]
        length = torch.cat([part.flatten() for part in changes]).norm()
        assert length == pytest.approx(LEARNING_RATE, rel=1e-4)
        rate = (change.norm() / expected.norm()).item()
    else:
        rate = LEARNING_RATE
    # 5 standard errors of a mean of IMAGES pixels, and what weights of 0.01 do to it
    tolerance = rate * (5 * 0.5 / IMAGES**0.5 + 0.01)
    torch.testing.assert_close(change, rate * expected, rtol=0, atol=tolerance)
    if by != "scikit-learn":  # whose initial weights are not known
        weight_change = trained.weights - work.initial().weights
        wanted = (rate * expected / 2)[:, None].expand(-1, 6)
        torch.testing.assert_close(weight_change, wanted, rtol=0, atol=tolerance)


# ---- what follows from a record


def row(task, hidden, by, seconds, chains=0, steps=1, **more):
    values = {"task": task, "visible": 784, "hidden": hidden, "chains": chains, "steps": steps}
    values |= {"by": by, "threads": 1, "busy": 0, "seconds": seconds}
    values |= {"value": None, "std_error": None}
    return values | more


def test_ratios_are_of_medians_their_range_over_sizes_and_threads():
    def record(machine, slower, value):
        rows = [
            row("AIS", 500, "paperlib", [2.0, 9.0, 2.2], 100, 1_000, value=5.0, std_error=0.1),
            row("AIS", 500, "rbms", [8.8 * slower, 11.0 * slower, 0.1], 100, 1_000, value=value),
            row("AIS", 500, "paperlib", [1.0], 100, 1_000, threads=2, value=5.0, std_error=0.1),
            row("AIS", 500, "rbms", [3.0], 100, 1_000, threads=2, value=5.0),
            row("AIS", 20, "paperlib", [2.0], 5_000, 10, value=5.0, std_error=0.1),
            row("AIS", 20, "rbms", [1.0], 5_000, 10, value=5.0),
            row("bound", 500, "paperlib", [0.44, 0.1, 0.9], 100, value=4.0, std_error=0.0),
            row("CD-1", 500, "paperlib", [2.0], 100),
            row("CD-1", 500, "plain torch", [1.8], 100),
        ]
        return {"rows": rows, "provenance": {"machine": machine}}

    good = record("one", 1, 5.1)
    bad = record("other", 5, 6.0)
    bad["rows"] = bad["rows"][:-2]
    assert str(speed.speed_table([good, bad])).splitlines() == [
        "| task | by | one | other | same answer |",
        "| --- | --- | --- | --- | --- |",
        "| AIS, 100 chains | rbms | 3.00 to 4.00 | 3.00 to 20.0 | no |",
        "| AIS, 5,000 chains | rbms | 0.500 | 0.500 | yes |",
        "| CD-1 | plain torch | 0.900 | – | – |",
        "",
        (
            "The check of `ais` against a bound takes as long as 200 steps of 100 chains,"
            " once for each call."
        ),
    ]
    assert speed.disagreements(good) == []
    assert speed.disagreements(bad) == ["AIS, 100 chains, 784 × 500: rbms 6.0, paperlib 5.0"]


def test_everything_that_is_measured_stands_in_the_table():
    rows = [
        row(work.task, work.hidden, by, [1.0], work.chains, work.steps, visible=work.visible)
        for work in main_work()
        for by in COMPETITORS[work.task]
    ]
    table = speed.speed_table([{"rows": rows, "provenance": {"machine": "one"}}])
    others = {by for named in COMPETITORS.values() for by in named} - {speed.LIBRARY}
    assert {by for _, by, *_ in table.rows} == others
    tasks = {task.split(",")[0] for task, *_ in table.rows}
    assert tasks == set(COMPETITORS) - {speed.CHECK, "tempering"}
    assert "as long as 300 to 2,000 steps" in table.source


def test_a_step_is_compared_with_its_products_with_ais_and_with_more_threads():
    rows = [
        row(task, 500, by, [seconds * slower / gain, 99.0, 0.0], chains, steps, **setting)
        for task, chains, steps, seconds, by in (
            ("AIS", 100, 10, 4.0, speed.LIBRARY),
            ("AIS", 100, 10, 8.0, speed.FLOOR),
            ("AIS", 2_000, 1, 6.0, speed.LIBRARY),
            ("AIS", 2_000, 1, 6.0, speed.FLOOR),
            ("tempering", 0, 500, 3.0, speed.LIBRARY),
        )
        for slower, gain, setting in (
            (1, 1, {}),
            (1, 1.6, {"threads": 2}),
            (3, 1, {"busy": 1}),
            (3, 1.2, {"threads": 2, "busy": 1}),
        )
    ]
    # the same work with other numbers of steps belongs to the other table
    rows.append(row("AIS", 500, speed.LIBRARY, [7.0], 100, 11))
    rows.append(row("bound", 500, speed.LIBRARY, [7.0], 100))
    record = {"rows": rows, "provenance": {"machine": "one", "utc": "2026"}}
    table = speed.step_table([record])
    assert table.rows == [
        ["784 × 500", "AIS, 100 chains", "4,000", "0.500", "0.500", "–", "1.60", "1.20"],
        ["784 × 500", "AIS, 2,000 chains", "3,000", "1.00", "1.00", "–", "1.60", "1.20"],
        ["784 × 500", "parallel tempering", "6,000", "–", "–", "1.50", "1.60", "1.20"],
    ]
    # what is measured beside busy loops is no part of the other table, nor of the line below it
    other = speed.speed_table([record])
    assert [cells[2] for cells in other.rows] == ["2.00", "1.00"]
    assert "as long as 11.0 to 17.5 steps" in other.source


def test_committed_records_are_named_after_their_machines():
    records = speed.load_records()
    assert records
    for record in records:
        assert record["name"] == run.machine_slug(record["provenance"]["machine"])
