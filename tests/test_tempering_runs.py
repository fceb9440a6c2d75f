"""Repeated runs at equal chain-steps, and what parallel tempering says of a bracket."""

import json
import math

import pytest
import torch
from enumeration import random_rbm
from interruptions import interrupt_call

from boltzmann_companion.profiles import get_profile
from boltzmann_companion.records import load_result
from boltzmann_companion.studies import open_brackets as brackets
from boltzmann_companion.studies import tempering_runs
from boltzmann_companion.studies.open_brackets import (
    bracket_reading,
    bracket_row,
    open_brackets,
    readings,
)
from boltzmann_companion.studies.tempering_runs import (
    error_row,
    repeated_runs,
    seconds_rows,
    timed_run,
)
from paperlib.annealing import BaseRatePath
from paperlib.errors import InputError
from paperlib.estimators import exact_log_z
from paperlib.estimators.tempering.run import TemperingRun

RBM = random_rbm(6, 4, seed=5)
PATH = BaseRatePath(RBM)


def test_long_run_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("boltzmann_companion.studies.tempering_runs._LONG_RUN", 2_000)
    whole = timed_run("parallel tempering", PATH, 2_000, 1)
    calls = interrupt_call(monkeypatch, TemperingRun, "advance", 6)
    with pytest.raises(KeyboardInterrupt):
        timed_run("parallel tempering", PATH, 2_000, 1, tmp_path)
    assert [file.suffix for file in tmp_path.iterdir()] == [".safetensors"]
    resumed = timed_run("parallel tempering", PATH, 2_000, 1, tmp_path)
    assert resumed["log_z"] == whole["log_z"]
    assert [file.suffix for file in tmp_path.iterdir()] == [".json"]
    # ten segments and three pilot rounds; five of them were not done twice
    assert len(calls) == 6 + 13 - 5


def test_an_error_that_is_not_known_is_kept(tmp_path):
    run = {"log_z": 1.0, "interval": [-math.inf, math.inf], "warnings": ["few"], "seconds": 1.0}
    assert json.loads(json.dumps(run)) == run
    row = error_row([run, run | {"log_z": 2.0, "interval": [1.9, 2.1], "warnings": []}], 1.0)
    assert (row["coverage"], row["warned"], row["rmse"]) == (0.5, 1, pytest.approx(math.sqrt(0.5)))


def test_seconds_to_a_tenth_of_a_nat(monkeypatch):
    """The time of a run grows with the square of its error; a bias counts as an error."""
    errors = {"parallel tempering": 0.1, "AIS": -0.4, "SMC": 0.2, "RAISE": 0.3}
    clock = iter(range(0, 10_000, 3))  # every run takes three seconds
    monkeypatch.setattr(tempering_runs.time, "process_time", lambda: next(clock))

    def run(name, path, steps, seed, folder, images):
        return {"log_z": 2.0 + errors[name], "interval": [0.0, 9.0], "warnings": [], "seconds": 9.0}

    monkeypatch.setattr(tempering_runs, "timed_run", run)
    rows = seconds_rows("model", PATH, 2_000, 10, 0, truth=2.0, progress=False)
    assert {row["estimator"]: row["ratio"] for row in rows} == pytest.approx(
        {"parallel tempering": 1, "AIS": 16, "SMC": 4, "RAISE": None}
    )
    assert rows[0]["tenth"] == pytest.approx(3)
    low, high = rows[1]["ratio_interval"]
    assert low * high == pytest.approx(16**2)
    assert 16 / low == pytest.approx(3.7, abs=0.1)  # the 97.5 % quantile of F with 10 and 10


def test_raise_implies_a_log_z():
    """It is on average too low, so the ln Z that it implies is on average too high."""
    images = torch.eye(PATH.num_visible)
    runs = repeated_runs("RAISE", PATH, 2_000, 20, 0, progress=False, images=images)
    row = error_row(runs, exact_log_z(RBM, progress=False))
    assert abs(row["mean_error"]) < 0.1
    assert row["coverage"] == 1.0  # its interval is not known
    with pytest.raises(InputError, match="images: expected some for RAISE, got none"):
        timed_run("RAISE", PATH, 2_000, 0)


# ---- brackets

DIGITS = get_profile("digits")


def test_the_average_is_that_of_the_tables():
    """ln p* less the exact ln Z gives the exact average of the record, for an RBM and for a DBM."""

    shallow = {one.name: one for one in open_brackets(DIGITS, ["raise-table-1"])}
    assert list(shallow) == list(brackets.TABLES["digits"]["raise-table-1"].models)
    for name in ("digitsCD1-16", "digitsPCD-16"):
        exact = shallow[name].mean_log_p - exact_log_z(shallow[name].model, progress=False)
        assert exact == pytest.approx(shallow[name].row["exact"], abs=1e-9)
    deep = {one.name: one for one in open_brackets(DIGITS, ["raise-table-2"])}
    dbm = deep["DBM"]
    exact = dbm.mean_log_p - exact_log_z(dbm.model.joint_rbm, progress=False)
    # ln p*(v) is an estimate there, from 500 draws for each of 359 images
    assert exact == pytest.approx(dbm.row["exact"], abs=0.01)


def test_average_of_a_dbn_is_chapter_tens():
    """Its AIS average, with the ln Z that the chapter's AIS run had, from the same seed."""
    from paperlib.annealing import uniform_betas

    *_, dbn = open_brackets(DIGITS, ["raise-table-2"])
    assert dbn.name == "DBN-CD25"
    seed = 2008 + 1_000 + 100 + 20 + 2 * 3
    estimate = DIGITS.ais(dbn.path, uniform_betas(200), 500, seed, progress=False)
    assert dbn.mean_log_p - estimate.log_z == pytest.approx(dbn.row["base_rate_ais"], abs=1e-6)


def test_papers_models_are_those_of_the_records():
    for profile, tables in brackets.TABLES.items():
        for record_name, table in tables.items():
            record = load_result(record_name, profile)
            models = table.models
            assert [row["model"] for row in record["rows"]][: len(models)] == list(models)
            used = record["provenance"]["models"]
            assert set(models.values()) <= set(used)


def test_row_of_a_bracket():
    [one, *_] = open_brackets(DIGITS, ["raise-table-1"])
    run = {
        "log_z": one.mean_log_p + 23.0,
        "interval": [one.mean_log_p + 22.8, one.mean_log_p + 23.2],
        "chain_steps": 10,
        "round_trips": 20,
        "rungs": 5,
        "barrier": 1.0,
        "warnings": [],
        "seconds": 1.0,
    }
    row = bracket_row(one, run)
    assert row["ladder"] == pytest.approx(-23.0)
    assert row["ais_off"] == pytest.approx(one.row["base_rate_ais"] + 23.0)
    assert row["raise_off"] == pytest.approx(one.row["base_rate_raise"] + 23.0)
    assert row["ais_log_z"] + row["ais"] == pytest.approx(one.mean_log_p)
    # both ends lie below -23.25, and the run's standard error is 0.1
    assert readings([row], "digits", 0.9) == {one.name: "both right"}
    assert readings([row], "digits", 0.3) == {one.name: "both undecided"}
    narrow = row | {"interval": [one.mean_log_p + 22.99, one.mean_log_p + 23.01]}
    assert readings([narrow], "digits", 0.05) == {one.name: "both wrong"}


@pytest.mark.parametrize(
    ("ais_off", "raise_off", "reading"),
    [
        (0.2, -0.2, "both right"),
        (4.0, -0.2, "AIS wrong, RAISE right"),
        (0.2, -3.0, "AIS right, RAISE wrong"),
        (0.2, 3.0, "AIS right, RAISE wrong"),
        (4.0, -3.0, "both wrong"),
        # three standard errors of the two are 0.34
        (0.65, -0.65, "both right"),
        (0.7, -0.2, "AIS undecided, RAISE right"),
        (0.2, -1.3, "AIS right, RAISE undecided"),
        (4.0, -1.4, "both wrong"),
    ],
)
def test_reading_by_hand(ais_off, raise_off, reading):
    row = {"warnings": "none", "interval": [5.0, 5.392], "ais_off": ais_off, "raise_off": raise_off}
    ends = {"base_rate_ais_error": 0.05, "base_rate_raise_error": 0.05}
    assert bracket_reading(row, ends, 100) == reading
    assert bracket_reading(row | {"warnings": "a warning"}, ends, 100) == "both undecided"
    assert bracket_reading(row | {"interval": [-math.inf, math.inf]}, ends, 100) == "both undecided"
    # what AIS says rests on enough chains, or on nothing
    raise_word = reading.split()[-1]
    alone = "both undecided" if raise_word == "undecided" else f"AIS undecided, RAISE {raise_word}"
    assert bracket_reading(row, ends | {"base_rate_ais_error": 0.5}, 100) == alone
