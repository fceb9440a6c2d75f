"""The study of `evaluate` on models of known answer: is it right, and is the count right?"""

import json
import math
from dataclasses import replace

import pytest
import torch

from boltzmann_companion.records import load_result
from boltzmann_companion.studies import study as study_module
from boltzmann_companion.studies.study import (
    CASES,
    OUTCOMES,
    STARTS,
    Case,
    FullSizeCase,
    Mode,
    full_size_study,
    held_out_cases,
    holds_truth,
    outcome,
    study,
    study_images,
)
from boltzmann_likelihood.evaluation import evaluate
from boltzmann_likelihood.evaluation.annealing_runs import AnnealingRuns
from paperlib import storage
from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import ais, exact_log_z
from paperlib.learning import ContrastiveDivergence
from paperlib.numerics import seeded_generator

LITTLE = ContrastiveDivergence(4, epochs=2, batch_size=100)


def test_there_are_enough_models_and_no_two_of_a_name():
    assert len(CASES) >= 30
    assert len({(case.data, case.name) for case in CASES}) == len(CASES)


def test_the_models_that_nobody_chose_are_always_the_same_and_not_those_of_the_list():
    cases = held_out_cases()
    assert cases == held_out_cases()
    assert len({(case.data, case.name) for case in cases}) == len(cases) == 44
    assert not set(cases) & set(CASES)
    assert [case.data.startswith("mnist") for case in cases].index(True) == 10
    assert {case.mode is None for case in cases} == {True, False}


@pytest.mark.parametrize(
    "case",
    [
        Case("scaled", "digits", "digits-cd1-12", weight_factor=2.0, bias_shift=-1.0),
        Case("joined", "digits quarters", LITTLE),
        Case("joined, with a mode", "digits quarters", LITTLE, mode=Mode(1.0, pixels=0.5)),
        Case("mode of 4 units", "digits", "digits-cd1-12", mode=Mode(3.0, units=4)),
        Case("few pixels", "digits centre", LITTLE),
    ],
    ids=lambda case: case.name,
)
def test_the_answer_is_exact(case):
    rbm, log_z = case.make()
    assert log_z == pytest.approx(exact_log_z(rbm, progress=False), abs=1e-9)


def test_images():
    assert sorted(study_images("digits quarters")[1][0]) == sorted(study_images("digits")[1][0])
    first = study_images("digits")[1][0].view(8, 8)[:4, :4].flatten()
    assert study_images("digits quarters")[1][0, :16].tolist() == first.tolist()
    assert study_images("digits centre")[0].shape[1] == 20
    assert study_images("hidden states")[0].shape[1] == 16
    with pytest.raises(ValueError, match="data: expected a data set of the study, got 'digits s"):
        study_images("digits sideways")


def test_a_uniform_start_knows_nothing_of_the_images():
    """AIS begins at half of the pixels on, where ln Z_0 counts all states, and says so."""
    rbm, _ = CASES[0].make()
    train, test = study_images(CASES[0].data)
    options = {"steps": 32, "tempering_steps": 5_000, "exact": False, "progress": False}
    evaluation = evaluate(rbm, test, generator=seeded_generator(1), uniform_start=True, **options)
    assert evaluation.exact is None
    expected = ais(
        BaseRatePath(rbm.to(dtype=torch.float32)), uniform_betas(2), 200, seeded_generator(1)
    )
    assert torch.equal(evaluation.runs[0].ais.log_weights, expected.log_weights)
    assert evaluation.start == "the uniform distribution"
    known = evaluate(rbm, test, train, generator=seeded_generator(1), **options)
    assert known.start == "base rates of the training images"
    assert not torch.equal(known.runs[0].ais.log_weights, expected.log_weights)


def test_outcomes():
    errors_and_findings = [(0.9, ()), (-0.9, ("a",)), (-1.1, ("a",)), (1.1, ())]
    assert [outcome(*pair) for pair in errors_and_findings] == list(OUTCOMES)


def test_an_interrupted_evaluation_leaves_no_row(tmp_path, monkeypatch):
    """`evaluate` returns what it has on Ctrl-C; a study must not keep it as if it were complete."""
    run_up_to = AnnealingRuns.run_up_to
    monkeypatch.setattr(
        AnnealingRuns,
        "run_up_to",
        lambda *args, **options: replace(run_up_to(*args, **options), interrupted=True),
    )
    cases = [Case("small", "digits", "digits-cd1-12")]
    with pytest.raises(KeyboardInterrupt):
        study(cases, [64], folder=tmp_path, progress=False)
    assert not list(tmp_path.iterdir())


def test_rows(tmp_path):
    cases = [Case("mode", "digits", "digits-cd1-12", mode=Mode(3.0))]
    rows = study(cases, [64], folder=tmp_path, progress=False)
    assert [row["start"] for row in rows] == list(STARTS)
    for row in rows:
        assert set(row) == set(load_result("evaluate-study", "paper")["columns"])
        assert row["outcome"] == "wrong, suspected"
        assert row["verdict"] == "not trusted"
        assert row["ais_error"] == pytest.approx(math.log1p(math.exp(3)), abs=0.5)
        assert row["held"] == "no"


def test_models_whose_answer_comes_from_long_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(study_module, "MINUTES", {2: (256, 40_000)})
    monkeypatch.setattr(study_module, "_TRUTH_STEPS", 20_000)
    cases = [FullSizeCase("small", "digits", "digits-cd1-12"), FullSizeCase("x", "mnist", "others")]
    rows = full_size_study(cases, {2: 2}, tmp_path, progress=False)
    assert [(row["model"], row["seed"]) for row in rows] == [("small", 0), ("small", 1)]
    rbm = cases[0].make()
    images = cases[0].images()[1]
    exact = rbm.log_unnormalized(images).mean().item() - exact_log_z(rbm, progress=False)
    for row in rows:
        assert set(row) == set(load_result("evaluate-full-size", "paper")["columns"])
        assert row["truth"] == pytest.approx(exact, abs=4 * row["truth_std_error"])
        assert row["value_error"] == pytest.approx(row["value"] - row["truth"])
        assert abs(row["ais_error"]) < 0.5
    # Rows that are kept are shown even where the model's file is missing, those of the first
    # version as well.
    for file in tmp_path.glob("*/small-*"):
        older = json.loads(file.read_text())
        del older["identity"]
        storage.write_json(tmp_path / "1" / file.name.replace("small", "x"), older)
    monkeypatch.setattr(FullSizeCase, "make", lambda self: pytest.fail("made again"))
    assert full_size_study(cases[1:], {2: 3}, tmp_path, progress=False) == rows


def test_a_long_run_that_got_stuck_does_not_count():
    """The others count alike, whatever error they state."""
    mean, std_error = study_module._mean([[1.0, 0.3], [9.0, 4.0], [2.0, 0.4]])
    assert (mean, std_error) == (1.5, pytest.approx(0.25))
    assert study_module._mean([[9.0, 4.0]]) == (9.0, 4.0)


def test_an_interval_holds_the_exact_average_or_that_of_long_runs():
    assert holds_truth({"value_interval": [1, 2], "exact": 1.5})
    assert not holds_truth({"value_interval": [1, 2], "truth": 2.5})
