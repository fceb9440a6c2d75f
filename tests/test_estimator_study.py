"""The study of estimators: known ln Z, budgets kept, draws of each run's own, right counts."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from enumeration import log_z, random_rbm

from boltzmann_companion.studies import budgeted_estimators, estimator_study
from boltzmann_companion.studies.budgeted_estimators import (
    BOUND,
    ESTIMATORS,
    LEVELS,
    SMALLEST_BUDGET,
    Answer,
)
from boltzmann_companion.studies.estimator_study import (
    HIDDEN,
    accuracy_rows,
    coverage_rows,
    judged_anew,
    run_once,
    run_study,
    study_folder,
    trust_rows,
)
from boltzmann_companion.studies.known_models import KnownModel, in_hidden_mode, known_models
from boltzmann_likelihood import planted
from paperlib.estimators import exact_log_z
from paperlib.estimators.estimate import UNIFORM_START
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

BUDGET = SMALLEST_BUDGET


def small(seed=0, name="small", kind="planted"):
    """An easy model, 6 x 4."""
    rbm = random_rbm(6, 4, seed, scale=0.5)
    return KnownModel(name, kind, rbm, log_z(rbm), torch.zeros(6))


def plain(outcomes):
    """Outcomes without what a clock says."""
    return [{**each, "seconds": 0} for each in outcomes]


# ---- models


def test_the_small_models_have_the_ln_z_that_they_say():
    models = known_models("digits")
    assert [model.kind for model in models] == ["planted", "trained", "hidden mode"]
    for model in models:
        assert model.exact
        assert model.kind in ("planted", "trained", "hidden mode", "published")
    assert models[1].log_z == pytest.approx(exact_log_z(models[1].rbm), abs=1e-9)
    # The others are planted: tests/test_planted.py compares those with enumeration.
    trap = models[2]
    without = RBM(trap.rbm.weights[:, :-1], trap.rbm.visible_bias, trap.rbm.hidden_bias[:-1])
    missing = trap.log_z - planted.from_components(without).log_z
    assert missing == pytest.approx(math.log1p(math.exp(2)), abs=1e-9)


def test_base_rates_of_the_trap_do_not_show_the_mode():
    trap = known_models("digits")[2]
    towards = trap.rbm.weights[:, -1]
    fixed = towards != 0
    rates = torch.sigmoid(trap.start_bias)
    # Of units that the mode nearly always holds at one value, half have other base rates.
    on_its_side = ((rates > 0.5) == (towards > 0))[fixed].double().mean().item()
    assert on_its_side < 0.8


def test_draws_in_a_hidden_mode_are_told_from_others():
    base = planted.block_diagonal(40, 20, 5, generator=seeded_generator(0))
    model = planted.hidden_mode(base.rbm, 1.0, generator=seeded_generator(1))
    draws = model.draws(4_000, seeded_generator(2))
    share = in_hidden_mode(model.rbm, draws).double().mean().item()
    odds = math.exp(1) / (1 + math.exp(1))
    # four standard errors
    assert abs(share - odds) < 4 * math.sqrt(odds * (1 - odds) / 4_000)
    assert not in_hidden_mode(model.rbm, base.draws(500, seeded_generator(3))).any()


# ---- estimators with a budget


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_keeps_to_its_budget_and_is_right_on_an_easy_model(name):
    model = small()
    budget = 6_000
    answer = ESTIMATORS[name](model, budget, seeded_generator(3))
    assert 0.8 * budget < answer.chain_steps <= budget
    assert len(answer.intervals) == len(LEVELS)
    error = answer.log_z - model.log_z
    if name == BOUND:
        assert error <= 0
        assert all(high == math.inf for _, high in answer.intervals)
    else:
        # its own error, which is far below half a nat here
        assert answer.std_error < 0.1
        assert abs(error) < 5 * answer.std_error
    # a higher level is wider
    assert all(one[0] >= two[0] and one[1] <= two[1] for one, two in pairwise(answer.intervals))


def test_the_budget_counts_the_transitions_that_are_made(monkeypatch):
    """All of them, those of pilots included."""
    made = []
    model = small()
    for kind in {type(budgeted_estimators._base_rates(model))}:
        real = kind.transition

        def counted(self, state, beta, generator, real=real):
            made.append(len(self.units(state)))
            return real(self, state, beta, generator)

        monkeypatch.setattr(kind, "transition", counted)
    for name in ("AIS", "SMC", "parallel tempering"):
        made.clear()
        answer = ESTIMATORS[name](model, 4_000, seeded_generator(0))
        assert sum(made) == answer.chain_steps, name


# ---- runs


def test_draws_depend_on_estimator_model_budget_and_seed_alone():
    models = [small(0, "one"), small(1, "two")]
    names = ("AIS", "SMC", "importance sampling")
    runs = run_study(models, {BUDGET: 2, 4_000: 1}, 5, names, progress=False)
    assert len(runs) == (2 + 1) * 2 * 3
    again = run_study(models[::-1], {4_000: 1, BUDGET: 2}, 5, names[::-1], progress=False)

    def order(run):
        return run["estimator"], run["model"], run["budget"], run["seed"]

    assert plain(sorted(runs, key=order)) == plain(sorted(again, key=order))
    alone = run_once("SMC", models[1], BUDGET, 6)
    [same] = [run for run in runs if order(run) == order(alone)]
    assert plain([alone]) == plain([same])
    # Every run has draws of its own.
    assert len({run["log_z"] for run in runs}) == len(runs)
    # The same model by another name has others.
    assert run_once("AIS", small(0, "three"), BUDGET, 5)["log_z"] != runs[0]["log_z"]


def test_outcomes_are_kept_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PAPERLIB_CACHE", str(tmp_path))
    assert study_folder().is_relative_to(tmp_path)


def test_each_run_has_one_thread_and_leaves_the_number_as_it_was(monkeypatch, threads):
    seen = []

    def look(model, budget, generator):
        seen.append(torch.get_num_threads())
        raise KeyboardInterrupt

    monkeypatch.setattr(estimator_study, "ESTIMATORS", {"AIS": look})
    threads(2)
    with pytest.raises(KeyboardInterrupt):
        run_once("AIS", small(), BUDGET, 0)
    assert (seen, torch.get_num_threads()) == ([1], 2)


def stand_in(monkeypatch, answer, name="AIS"):
    estimators = {**ESTIMATORS, name: lambda model, budget, generator: answer}
    monkeypatch.setattr(estimator_study, "ESTIMATORS", estimators)


@pytest.mark.parametrize(
    ("off", "warnings", "expected"),
    [
        (0.9, (), "right, trusted"),
        (-0.9, ("too few",), "right, suspected"),
        (0.9, (UNIFORM_START,), "right, trusted"),
        (-1.1, ("too few", UNIFORM_START), "wrong, suspected"),
        (1.1, (UNIFORM_START,), "wrong, trusted"),
        (math.inf, (), "wrong, trusted"),
    ],
)
def test_what_an_outcome_says(monkeypatch, off, warnings, expected):
    model = small()
    value = model.log_z + off
    around = ((value - 1, value + 1), (model.log_z, math.inf), (-math.inf, model.log_z - 1e-7))
    stand_in(monkeypatch, Answer(value, math.inf, around, warnings, 1_900))
    outcome = run_once("AIS", model, BUDGET, 0)
    assert outcome["outcome"] == expected
    assert outcome["held"] == [abs(off) <= 1, True, False]
    assert outcome["error"] == (pytest.approx(off) if math.isfinite(off) else None)
    assert outcome["std_error"] is None
    assert outcome["warnings"] == list(warnings)
    json.dumps(outcome, allow_nan=False)


def test_a_bound_is_neither_right_nor_wrong(monkeypatch):
    model = small()
    bound = Answer(model.log_z - 5, math.inf, ((model.log_z - 5, math.inf),) * 3, (), BUDGET)
    stand_in(monkeypatch, bound, BOUND)
    assert run_once(BOUND, model, BUDGET, 0)["outcome"] is None


# ---- what outcomes say together


def made(
    estimator, error, held=(True, True, True), warned=False, model="m", kind="planted", seed=0
):
    right = error is not None and abs(error) <= 1
    word = f"{'right' if right else 'wrong'}, {'suspected' if warned else 'trusted'}"
    return {
        "estimator": estimator,
        "model": model,
        "kind": kind,
        "budget": BUDGET,
        "seed": seed,
        "error": error,
        "std_error": 0.1,
        "held": list(held),
        "warnings": [UNIFORM_START, "The error is large."] if warned else [UNIFORM_START],
        "outcome": None if estimator == BOUND else word,
        "chain_steps": 1_990,
        "seconds": 2.0 if estimator == "AIS" else 6.0,
    }


def test_accuracy_is_counted_by_hand():
    errors = (0.1, -0.3, 0.2)
    runs = [made("AIS", error, seed=seed) for seed, error in enumerate(errors)]
    runs += [made("SMC", None), made("SMC", 0.5, seed=1), made("SMC", -0.5, seed=7)]
    one, two = accuracy_rows(runs)
    assert (one["estimator"], one["repeats"], one["chain_steps"]) == ("AIS", 3, 1_990)
    assert one["median_error"] == pytest.approx(0.2)
    assert one["rms_error"] == pytest.approx(math.sqrt((0.01 + 0.09 + 0.04) / 3))
    assert one["bias"] == pytest.approx(0)
    assert (one["below"], one["far_above"]) == (1, 0)
    assert one["time"] == 1
    assert two["median_error"] == 0.5
    assert two["rms_error"] == two["bias"] == math.inf
    assert (two["below"], two["far_above"]) == (1, 0)
    [above] = accuracy_rows([made("SMC", 0.51), made("SMC", -0.51, seed=1)])
    assert (above["below"], above["far_above"]) == (1, 1)
    assert two["time"] == 3
    assert accuracy_rows([made("SMC", 0.5)])[0]["time"] is None


def test_coverage_and_trust_are_counted_by_hand():
    runs = [
        made("AIS", 0.1, (True, True, True)),
        made("AIS", 0.5, (False, True, True), seed=1, warned=True),
        made("AIS", 1.5, (False, False, True), seed=2),
        made("AIS", 1.5, (False, False, False), seed=3, warned=True),
        made("AIS", -2.0, (False, False, False), model="t", kind="hidden mode"),
        made("AIS", 0.0, model="p", kind="published"),
        made(BOUND, -0.2),
    ]
    first, trap, bound = coverage_rows(runs)
    assert (first["model"], first["models"]) == ("m", "planted")
    assert (first["runs"], first["unknown"]) == (4, 0)
    assert [first[key] for key in ("held_68", "held_95", "held_99_7")] == [25, 50, 75]
    # The ends are where a share differs from one half by 1.96 of its own standard deviations.
    for key, trials in (("held_95_interval", 4), ("unwarned_95_interval", 2)):
        for end in (percent / 100 for percent in first[key]):
            reach = 1.959964 * math.sqrt(end * (1 - end) / trials)
            assert abs(0.5 - end) == pytest.approx(reach, abs=1e-6)
    assert (first["unwarned"], first["unwarned_95"]) == (2, 50)
    [warned] = coverage_rows([made("AIS", 0.1, warned=True)])
    assert (warned["unwarned"], warned["unwarned_95"]) == (0, None)
    assert warned["unwarned_95_interval"] is None
    assert (bound["estimator"], bound["held_68"], bound["unknown"]) == (BOUND, 100, None)
    assert (trap["models"], trap["held_99_7"]) == (HIDDEN, 0)
    planted, hidden, published = trust_rows(runs)
    assert (planted["model"], planted["models"], planted["runs"]) == ("m", "planted", 4)
    counts = [
        planted[f"{one}_{two}"] for one in ("right", "wrong") for two in ("trusted", "suspected")
    ]
    assert counts == [1, 1, 1, 1]
    assert (hidden["models"], hidden["wrong_trusted"]) == (HIDDEN, 1)
    # Whether a published ln Z is met to a nat can be said.
    assert (published["model"], published["right_trusted"]) == ("p", 1)


def test_coverage_is_never_counted_over_models():
    always = (True, True, True)
    never = (False, False, False)
    runs = [made("AIS", 0.1, always, seed=seed) for seed in range(4)]
    runs += [made("AIS", 0.1, never, model="other", kind="trained")]
    assert [(row["model"], row["held_95"]) for row in coverage_rows(runs)] == [
        ("m", 100),
        ("other", 0),
    ]


def test_outcomes_of_a_model_with_an_estimated_truth_follow_the_estimate():
    truth = replace(small(kind="published"), log_z=7.0, log_z_error=0.01)
    run = made("AIS", 0.1, model="p", kind="published") | {"log_z": 8.5}
    anew = judged_anew(run, truth)
    assert (anew["error"], anew["outcome"], anew["held"]) == (1.5, "wrong, trusted", None)
    assert judged_anew(run | {"log_z": 7.5}, truth)["outcome"] == "right, trusted"
    bound = judged_anew(made(BOUND, 0.0) | {"log_z": None}, truth)
    assert (bound["error"], bound["outcome"]) == (None, None)
