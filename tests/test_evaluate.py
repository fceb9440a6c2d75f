"""`paperlib evaluate`: the truth inside the bracket, formats of many origins, and one clear sentence for whatever is wrong."""

import errno
import gzip
import json
import math
import os
import pickle
import struct
import sys
from dataclasses import replace

import numpy as np
import pytest
import skops.io
import torch
from enumeration import all_states, log_z, random_rbm
from matplotlib.figure import Figure
from scipy.io import savemat
from sklearn.neural_network import BernoulliRBM
from typer.testing import CliRunner

from boltzmann_companion.studies.study import Case, Mode, study_images
from paperlib import cli, storage
from paperlib.annealing import BaseRatePath, start_bias, uniform_betas
from paperlib.datasets import base_rate_bias
from paperlib.estimators import (
    PartitionEstimate,
    ReverseEstimate,
    TemperingEstimate,
    ais,
    bracket,
    parallel_tempering,
)
from paperlib.evaluation import evaluate, read_images, read_rbm
from paperlib.evaluation.annealing_runs import AnnealingRuns
from paperlib.evaluation.averages import average_of
from paperlib.evaluation.modes import ModeCheck, check_mode, mode_starts
from paperlib.evaluation.picture import plot
from paperlib.evaluation.reasons import find_reasons
from paperlib.evaluation.report import as_dict, describe
from paperlib.evaluation.result import (
    AnnealingRun,
    Doubt,
    Effort,
    Evaluation,
    FinishedRuns,
    Judgement,
)
from paperlib.evaluation.verdict import Shortfall, judge, shortfall
from paperlib.kernels import bernoulli
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

SMALL = random_rbm(8, 5, 1, scale=1.5)


# What the JSON had before there was a ladder.
OLD_KEYS = {
    "num_visible",
    "num_hidden",
    "num_images",
    "unit",
    "trustworthy",
    "verdict",
    "findings",
    "start",
    "interrupted",
    "estimates",
}


def draws(rbm, count, seed):
    index = torch.multinomial(
        rbm.log_unnormalized(all_states(rbm.num_visible)).softmax(0),
        count,
        replacement=True,
        generator=seeded_generator(seed),
    )
    return all_states(rbm.num_visible)[index]


def test_exact_for_small_models():
    test = draws(SMALL, 50, 2)
    result = evaluate(SMALL, test)
    truth = SMALL.log_unnormalized(test).double() - log_z(SMALL)
    assert result.exact.log_z == pytest.approx(log_z(SMALL), abs=1e-9)
    assert result.exact.test == pytest.approx(truth.mean().item(), abs=1e-9)
    assert result.trustworthy
    assert "exact" in describe(result)


def estimated(monkeypatch, rbm, test, steps=None, **options):
    """An estimate with so many steps; without them by the clock, so that the numbers depend on the machine."""
    monkeypatch.setattr("paperlib.evaluation.evaluation.EXACT_UNITS", 2)
    if steps:
        monkeypatch.setattr(AnnealingRuns, "affordable_steps", lambda runs, seconds: steps)
        monkeypatch.setattr(AnnealingRuns, "affordable_ladder_steps", lambda runs, seconds: 20_000)
    return evaluate(rbm, test, generator=seeded_generator(5), progress=False, **options)


def test_bracket_holds_the_truth(monkeypatch):
    test = draws(SMALL, 300, 3)
    result = estimated(monkeypatch, SMALL, test, steps=200)
    truth = SMALL.log_unnormalized(test).mean().item() - log_z(SMALL)
    best = result.runs[-1].bracket
    assert best.upper_interval[0] <= truth <= best.upper_interval[1]
    assert abs(best.lower.mean - truth) < 4 * best.lower.test_set_std_error + 0.02
    assert [run.num_steps for run in result.runs] == sorted(r.num_steps for r in result.runs)
    assert result.trustworthy, result.findings
    assert "Verdict: trusted" in describe(result)
    stored = json.loads(json.dumps(as_dict(result), allow_nan=False))
    assert stored["estimates"][-1]["ais"] == best.upper
    assert set(stored) >= OLD_KEYS | {"verdict_word", "source", "settled", "average", "ladder"}
    assert (stored["verdict_word"], stored["source"]) == ("trusted", "ladder")
    low, high = stored["ladder"]["log_z_interval_95"]
    assert low < stored["ladder"]["log_z"] < high
    assert stored["ladder"]["round_trips"] >= 10
    average = stored["average"]
    images = SMALL.log_unnormalized(test).mean().item()
    assert average["test"] == pytest.approx(images - stored["ladder"]["log_z"], abs=1e-5)
    wider, narrower = average["interval_95_other_images"], average["interval_95"]
    assert wider[0] < narrower[0] < average["test"] < narrower[1] < wider[1]
    assert len(plot(result).axes) == 4


def test_the_interval_of_the_ladder_holds_the_truth_as_often_as_it_says():
    """At 95 %, fewer than 15 of 20 happen once in 3,000 times."""
    test = draws(SMALL, 100, 3)
    truth = SMALL.log_unnormalized(test).mean().item() - log_z(SMALL)
    held = 0
    for seed in range(20):
        runs = AnnealingRuns(SMALL, test, None, seeded_generator(seed))
        finished = runs.run_up_to(32, progress=False, ladder_steps=5_000)
        low, high = runs.average(finished).interval
        held += low <= truth <= high
    assert held >= 15


def test_the_average_joins_both_errors():
    """For 400 images of spread s the error is s / 20; Student's t is near the normal distribution."""
    log_p = torch.randn(400, generator=seeded_generator(1)).double()
    found = average_of(log_p, 2.0, 0.3, 1e6)
    error = math.hypot(0.3, log_p.std().item() / 20)
    assert found.mean == pytest.approx(log_p.mean().item() - 2, abs=1e-12)
    assert found.interval[1] - found.mean == pytest.approx(1.96 * 0.3, rel=1e-3)
    assert found.sample_interval[1] - found.mean == pytest.approx(1.96 * error, rel=1e-3)
    unknown = average_of(log_p, 2.0, math.inf, 1)
    assert unknown.interval == (-math.inf, math.inf) == unknown.sample_interval


@pytest.fixture(scope="module")
def sound():
    """A run in which everything agrees."""
    runs = AnnealingRuns(SMALL, draws(SMALL, 100, 3), None, seeded_generator(1))
    return runs.run_up_to(200, progress=False, ladder_steps=20_000)


OPEN_BRACKET = ("The bracket is open.",)


def test_what_is_said_of_ais_does_not_count_against_the_ladder(sound):
    found = judge(sound, OPEN_BRACKET)
    assert (found.word, found.findings, found.settled) == ("trusted", (), OPEN_BRACKET)


@pytest.mark.parametrize(
    "check", [ModeCheck(0.2, 0.1, 0.3, met=0.9), ModeCheck(0.005, 0.004, 0.006, met=0.0)]
)
def test_a_mode_that_is_met_or_next_to_nothing_does_not_count(sound, check):
    assert judge(replace(sound, mode_checks=(check,))).word == "trusted"


def with_chains(sound, log_weights):
    """The same run with these log-weights of AIS, in nats above the ladder's ln Z, and RAISE where the ladder is."""
    best, log_z = sound.runs[-1], sound.ladder.log_z
    weights = log_z + torch.tensor(log_weights, dtype=torch.float64)
    above = PartitionEstimate(weights, torch.zeros(len(weights), 8))
    below = ReverseEstimate(torch.full((10, 1), -log_z).double())
    found = bracket(torch.zeros(10), torch.arange(10), above, below)
    return replace(sound, runs=(AnnealingRun(best.num_steps, above, found, 1.0, torch.arange(10)),))


@pytest.mark.parametrize(
    ("log_weights", "word"),
    [
        (
            [-2.0] * 200,
            "trusted",
        ),  # all chains agree on less, and so much less that it is no accident
        ([-60.0] * 199 + [-3.0], "trusted"),
        ([2.0] * 200, "not trusted"),  # many chains
        ([-60.0] * 199 + [9.0], "trusted"),  # one of 200 chains says 3.7 nats more, which happens
        ([-60.0] * 199 + [14.0], "not trusted"),  # 8.7 nats more, which hardly happens: Markov
    ],
)
def test_ais_contradicts_from_above_only_and_as_far_as_markov_allows(sound, log_weights, word):
    found = judge(with_chains(sound, log_weights))
    assert found.word == word
    assert all("AIS's weights leave no more than one chance" in text for text in found.findings)


@pytest.mark.parametrize(
    ("change", "word", "said", "factor"),
    [
        (lambda run: {"ladder": replace(run.ladder, std_error=0.4)}, "too noisy to tell", "to 0.", 3.6),
        (lambda run: {"ladder": replace(run.ladder, std_error=math.inf)}, "too noisy to tell", "to inf", math.inf),
        (lambda run: {"ladder": replace(run.ladder, round_trips=4, warnings=("Few.",))}, "not trusted", "The ladder: Few.", 2.5),
        (lambda run: {"ladder": replace(run.ladder, warnings=("Halves.",))}, "not trusted", "The ladder: Halves.", math.inf),
        (lambda run: {"ladder": None}, "not trusted", "no ladder yet", math.inf),
        (lambda run: {"mode_checks": (ModeCheck(1.0, 0.7, 1.5),)}, "not trusted", "missed that mode", math.inf),
        (lambda run: {"mode_checks": (ModeCheck(0.0, 0.0, 0.2), ModeCheck(0.0, 0.0, 1.0))}, "open", "by up to 1.0 nats", 4),
        (lambda run: {"mode_checks": (ModeCheck(0.2, 0.1, 0.3, met=0.0),)}, "open", "others beside it may be", math.inf),
        (lambda run: {"mode_checks": ()}, "open", "were not looked at", math.inf),
        (lambda run: {"interrupted": True}, "not trusted", "Interrupted", math.inf),
    ],
)  # fmt: skip
def test_what_speaks_against_the_ladder(sound, change, word, said, factor):
    found = judge(replace(sound, **change(sound)), OPEN_BRACKET)
    assert found.word == word
    assert said in " ".join(found.findings)
    assert found.settled == OPEN_BRACKET
    assert found.factor == pytest.approx(factor, rel=0.1)


def with_raise(sound, short, lost=0.0):
    """The same run with RAISE so many nats below the ladder, for each of ten images.

    Half of AIS's chains lost `lost` nats on their way, and the mean weight is right.
    """
    best, log_z = sound.runs[-1], sound.ladder.log_z
    weights = torch.full((1000,), log_z - lost, dtype=torch.float64)
    weights[:500] = log_z + math.log(2 - math.exp(-lost))
    above = PartitionEstimate(weights, torch.zeros(1000, 8))
    below = ReverseEstimate(-log_z - torch.tensor(short).double().expand(10)[:, None])
    found = bracket(torch.zeros(10), torch.arange(10), above, below)
    return replace(sound, runs=(AnnealingRun(best.num_steps, above, found, 1.0, torch.arange(10)),))


@pytest.mark.parametrize(
    ("lost", "explained", "short", "word"),
    [
        (0.0, 0.0, 4.0, "open"),
        (10.0, 0.0, 4.0, "trusted"),
        (0.0, 2.5, 4.0, "open"),
        (0.0, 3.5, 4.0, "trusted"),
        (0.0, 0.0, -4.0, "trusted"),
    ],
)
def test_raise_may_fall_short_by_what_is_explained(sound, lost, explained, short, word):
    """A nat is left without remark, and so is RAISE above the ladder."""
    assert judge(with_raise(sound, short, lost), explained=explained).word == word


@pytest.mark.parametrize(
    ("check", "word", "said"),
    [
        (None, "open", "RAISE is 4.0 nats below the ladder's average"),
        (ModeCheck(0.0, 0.0, 0.2), "trusted", ""),
        (ModeCheck(0.0, 0.0, 1.0), "open", "A mode near some test images that the ladder may have missed"),
        (ModeCheck(1.0, 0.7, 1.5), "not trusted", "starts at a mode near some test images raises ln Z by 1.0 nats"),
        (ModeCheck(0.2, 0.1, 0.3, met=0.0), "open", "The ladder missed a mode near some test images"),
    ],
)  # fmt: skip
def test_a_ladder_from_images_that_raise_hardly_reaches_decides(sound, check, word, said):
    run = replace(with_raise(sound, [0.5] * 5 + [7.5] * 5), image_check=check)
    found = judge(run, OPEN_BRACKET)
    assert found.word == word
    assert said in " ".join(found.findings)
    settled = [text for text in found.settled if "finds no mode that was missed" in text]
    assert len(settled) == (word == "trusted")
    # Where RAISE is not too low, nobody asks.
    explained = judge(run, OPEN_BRACKET, explained=3.5)
    assert (explained.word, explained.settled) == ("trusted", OPEN_BRACKET)


@pytest.mark.parametrize(("affected", "word"), [(7, "trusted"), (8, "open"), (10, "open")])
def test_where_raise_falls_short_for_nearly_all_images_their_place_does_not_explain_it(
    sound, affected, word
):
    run = with_raise(sound, [4.0] * affected + [0.5] * (10 - affected))
    found = judge(replace(run, image_check=ModeCheck(0.0, 0.0, 0.0)))
    assert found.word == word
    assert ("More than three quarters" in " ".join(found.findings)) == (word == "open")


def test_the_images_asked_about_are_those_that_fall_short(sound):
    def reached(short):
        found = shortfall(with_raise(sound, short).runs[-1], sound.ladder)
        return found and found.affected.tolist()

    assert reached(4.0) == [True] * 10
    assert reached(0.5) is None
    assert reached([9.0, 0.5, 3.0, 0.0, 0.0] * 2) == [True, False, True, False, False] * 2


def test_the_last_ladder_starts_at_the_images_that_fall_short(monkeypatch):
    module = sys.modules["paperlib.evaluation.annealing_runs"]
    images, begun = draws(SMALL, 12, 3), []

    def lacking(best, ladder):
        return Shortfall(4.0, 0.0, (best.chosen == 4) | (best.chosen == 7))

    monkeypatch.setattr(module, "shortfall", lacking)

    def start(model, rows, generator):
        begun.append(rows)
        return start_bias(model, rows, generator)

    monkeypatch.setattr(module, "start_bias", start)
    runs = AnnealingRuns(SMALL, images, None, seeded_generator(1))
    finished = runs.run_up_to(64, progress=False, ladder_steps=20_000)
    (rows,) = begun
    assert sorted(rows.tolist()) == sorted(images[[4, 7]].tolist())
    assert not finished.interrupted
    assert finished.image_check.most < 0.5


@pytest.mark.parametrize("log_odds", [-6.0, 1.0])
def test_a_mode_at_some_images_is_found_from_there(monkeypatch, log_odds):
    """A mode in half of the pixels, in which one of ten images lies, and which the search from the model's own weights does not return."""
    case = Case("mode", "digits", "digits-pcd-16", mode=Mode(log_odds, pixels=0.5))
    rbm, exact = case.make()
    train, test = study_images(case.data)
    module = sys.modules["paperlib.evaluation.annealing_runs"]
    inside = rbm.visible_probs(torch.eye(rbm.num_hidden).double()[-1:])
    inside = bernoulli(inside.expand(20, -1), seeded_generator(1)).to(test)
    monkeypatch.setattr(module, "mode_starts", lambda *_: [base_rate_bias(train, pseudo_off=0.05)])
    images = torch.cat([test[:180], inside])
    finished = AnnealingRuns(
        rbm, images, base_rate_bias(train, pseudo_off=0.05), seeded_generator(5)
    ).run_up_to(128, progress=False)
    missed = math.log1p(math.exp(log_odds))
    assert exact - finished.ladder.log_z == pytest.approx(missed, abs=0.3)
    assert all(check.missed < 0.3 for check in finished.mode_checks)
    assert finished.image_check.missed == pytest.approx(missed, abs=0.15)
    assert judge(finished).word == ("not trusted" if missed > 1 else "trusted")


@pytest.mark.parametrize(
    ("doubts", "minutes", "said"),
    [
        ([], 2.0, ""),
        ([Doubt("open", "", "modes", 2.5), Doubt("too noisy to tell", "", "ladder", 1.2)], 2.0, "3 times as much time should settle this: --minutes 6."),
        ([Doubt("too noisy to tell", "", "ladder", 1.2)], None, "2 times as much time should settle this: --steps 200 --ladder-steps 2000."),
        ([Doubt("not trusted", "", "ladder")], 2.0, "cannot be told"),
        ([Doubt("not trusted", "", "ladder", 3.0), Doubt("not trusted", "", "nothing")], 2.0, "unlikely to help"),
    ],
)  # fmt: skip
def test_the_advice_says_how_much_more_time(doubts, minutes, said):
    judgement = Judgement("open", tuple(doubts))
    found = Evaluation(
        8, 5, 10, None, (), judgement.findings, "", False, judgement=judgement, effort=Effort(100, 1_000, minutes)
    )  # fmt: skip
    assert said in found.advice
    assert bool(found.advice) == bool(said)


@pytest.mark.parametrize("where", ["ladder", "modes", "nowhere", "nothing"])
def test_what_is_left_of_the_work_goes_where_the_doubt_is(monkeypatch, where):
    """A ladder with a warning, or a mode that could matter, gets four more portions. AIS and RAISE get what no doubt takes.

    Where a mode was missed for certain, more work settles nothing.
    """
    module = sys.modules["paperlib.evaluation.annealing_runs"]
    runs = AnnealingRuns(SMALL, draws(SMALL, 100, 3), None, seeded_generator(1))
    extended, asked = [], []
    extend = AnnealingRuns._extend

    def counted(self, ladder, chain_steps, on_step):
        extended.append((ladder.estimate.lower_bound is not None, chain_steps))
        extend(self, ladder, chain_steps, on_step)

    def doubts(finished, explained=0.0):
        asked.append(finished)
        return [] if where == "nowhere" else [Doubt("open", "", where, 2.0)]

    monkeypatch.setattr(AnnealingRuns, "_extend", counted)
    monkeypatch.setattr(module, "find_doubts", doubts)
    finished = runs.run_up_to(64, progress=False, ladder_steps=9_000)
    assert not finished.interrupted
    if where in ("nowhere", "nothing"):
        assert extended == []
        assert [run.num_steps for run in finished.runs] == [4, 16, 64]
        assert finished.ladder.chain_steps <= 9_000
    else:
        assert extended == [(where == "ladder", 3_000)] * 4
        assert [run.num_steps for run in finished.runs] == [4, 16]
        steps = finished.ladder.chain_steps
        assert (20_000 < steps <= 21_000) if where == "ladder" else steps <= 9_000


def test_steps_fill_the_time(monkeypatch):
    runs = AnnealingRuns(SMALL, draws(SMALL, 10, 3), None, seeded_generator(0))
    # runs of K, K / 4 and K / 16 steps
    seconds = 0.1005 * (1 + 1 / 4 + 1 / 16)
    for seconds_per_step, steps in [(1e-3, 100), (1.0, 32), (1e-9, 100_000)]:
        monkeypatch.setattr(runs, "_seconds_per_step", lambda value=seconds_per_step: value)
        assert runs.affordable_steps(seconds) == steps


@pytest.mark.parametrize(
    ("seconds_per_step", "expected", "pilots"),
    [
        (1e-5, 100_000, [10_000, 10_000]),
        (1e-2, 5_000, [10_000, 10_000]),
        (1e-6, 1_000_000, [10_000, 10_000, 40_000]),
        (1e-12, 10_000_000, [10_000, *(10_000 * 4**n for n in range(5)), 10_000_000]),
    ],
)
def test_the_ladder_fills_its_time(monkeypatch, seconds_per_step, expected, pilots):
    """By a clock that goes on with the ladder's steps alone."""
    runs = AnnealingRuns(SMALL, draws(SMALL, 10, 3), None, seeded_generator(0))
    made = []
    monkeypatch.setattr(runs, "_climb", lambda _, steps, *__, **options: made.append(steps))
    module = sys.modules["paperlib.evaluation.annealing_runs"]
    monkeypatch.setattr(module.time, "perf_counter", lambda: sum(made) * seconds_per_step)
    assert runs.affordable_ladder_steps(1.0) == pytest.approx(expected, rel=1e-9)
    assert made == pilots


def test_too_little_time_is_said(monkeypatch):
    rbm = random_rbm(200, 60, 4, scale=4.0, dtype=torch.float32)
    state = torch.zeros(400, 200)
    generator = seeded_generator(6)
    for _ in range(200):
        state = rbm.gibbs_step(state, generator)
    result = estimated(monkeypatch, rbm, state, minutes=1e-6)
    # The ladder took what was meant for AIS and RAISE with 32 steps.
    assert result.runs[-1].num_steps == 8
    assert result.ladder.chain_steps > 9_000
    assert not result.trustworthy
    assert "do not rely" in describe(result)
    assert result.judgement.word == "not trusted"
    assert any(text.startswith("The ladder: ") for text in result.findings)
    assert "time should settle this" in describe(result) or "cannot be told" in describe(result)


@pytest.mark.parametrize(
    ("short", "advice"),
    [([6.0] * 10, "RAISE is conservative."), ([0.2] * 8 + [30.0] * 2, "a few to which")],
)
def test_an_open_bracket_names_its_reason(short, advice):
    """Every image a little short of AIS, or a few of them by much."""
    log_p, gaps = torch.zeros(10).double(), torch.tensor(short).double()
    above = PartitionEstimate(torch.zeros(50).double(), torch.zeros(50, 8))
    found = bracket(log_p, torch.arange(10), above, ReverseEstimate(-gaps[:, None]))
    finished = FinishedRuns(
        (AnnealingRun(100, above, found, 1.0, torch.arange(10)),), (), interrupted=False
    )
    (reason,) = [text for text in find_reasons(finished) if "open by" in text]
    assert advice in reason


def run_with(log_weights, num_steps=100):
    """A run whose AIS chains have these log-weights, and whose RAISE agrees with it."""
    above = PartitionEstimate(torch.tensor(log_weights, dtype=torch.float64), torch.zeros(50, 8))
    below = torch.full((10, 1), -above.log_z, dtype=torch.float64)
    found = bracket(torch.zeros(10), torch.arange(10), above, ReverseEstimate(below))
    return AnnealingRun(num_steps, above, found, 1.0, torch.arange(10))


@pytest.mark.parametrize(("heavy", "said"), [(2, True), (25, False)])
def test_an_error_of_ais_above_half_a_nat_is_said(heavy, said):
    """Two of 50 chains that hold nearly everything: an error of ln Z of 0.7 nats."""
    run = run_with([7.0] * heavy + [0.0] * (50 - heavy))
    assert (run.ais.std_error > 0.5) == said
    finished = FinishedRuns((run,), (), interrupted=False)
    assert any("known to 0.7 nats only" in text for text in find_reasons(finished)) == said


@pytest.mark.parametrize("unknown", [False, True])
def test_an_error_that_is_not_known_excuses_no_movement(unknown):
    """AIS moves by 0.9 nats, from chains of which one holds everything, or three share it."""
    first = [10.0] + [0.0] * 49 if unknown else [10.0 - math.log(3)] * 3 + [0.0] * 47
    runs = (run_with(first, 25), run_with([7.0] * 50))
    assert math.isinf(runs[0].ais.std_error) == unknown
    finished = FinishedRuns(runs, (), interrupted=False)
    assert any("still moves: by -0.9" in text for text in find_reasons(finished)) == unknown


def test_training_images_of_something_else_are_noticed(monkeypatch):
    test = draws(SMALL, 300, 3)
    result = estimated(monkeypatch, SMALL, test, train=1 - test, steps=100)
    assert any("base rates are far" in finding for finding in result.findings)


def test_mass_of_a_region_is_that_of_the_model():
    """E[w 1(x in R)] with x the final state is the mass of R, for few steps and wherever the chains start."""
    v = all_states(8)
    bias = torch.linspace(-2, 2, 8).double()
    paths = BaseRatePath(SMALL), BaseRatePath(SMALL, bias)
    inside = paths[1].log_start(v) > paths[0].log_start(v)
    mass = (SMALL.log_unnormalized(v) - log_z(SMALL)).exp()[inside].sum().item()
    assert 0.01 < mass < 0.99
    for path in paths:
        run = ais(path, uniform_betas(5), 20_000, seeded_generator(7))
        ended = paths[1].log_start(run.final_states) > paths[0].log_start(run.final_states)
        weights = (run.log_weights - log_z(SMALL)).exp() * ended
        assert abs(weights.mean().item() - mass) < 4 * weights.std().item() / 20_000**0.5
    torch.testing.assert_close(paths[1].log_start(v).exp().sum().item(), 1.0, rtol=0, atol=1e-12)


def test_a_mode_that_some_units_hold_only_together_is_looked_for():
    """Four of a hundred units pull towards a pattern, and the others away from it. One of the four alone is too weak."""
    pattern = torch.ones(40)
    pattern[::2] = -1
    noise = 0.02 * torch.randn(40, 100, generator=seeded_generator(1))
    weights = torch.cat([noise - 0.2 * pattern[:, None], 2 * pattern[:, None].expand(-1, 4)], 1)
    rbm = RBM(weights, torch.zeros(40), torch.tensor([0.0] * 100 + [-35.0] * 4))
    away = (pattern < 0).float().expand(5, -1)
    starts = mode_starts(rbm, away, seeded_generator(2))
    assert [(start.sign() * pattern).mean().round().item() for start in starts] == [-1, 1]


@pytest.mark.parametrize("log_odds", [-9.0, 1.0])
def test_a_mode_far_from_all_images_is_noticed_though_ais_and_raise_agree(log_odds):
    """A mode in half of the pixels: too loose a proven bound would let the error of ln(1 + e) nats pass."""
    case = Case("mode", "digits", "digits-pcd-16", mode=Mode(log_odds, pixels=0.5))
    rbm, exact = case.make()
    train, test = study_images(case.data)
    finished = AnnealingRuns(
        rbm, test, base_rate_bias(train, pseudo_off=0.05), seeded_generator(5)
    ).run_up_to(128, progress=False)
    best, missed = finished.runs[-1], math.log1p(math.exp(log_odds))
    assert best.bracket.verdict() == "closed"
    assert exact - best.ais.log_z == pytest.approx(missed, abs=0.15)
    # The ladder makes its round trips, and is distrusted if it has missed as much.
    assert finished.ladder.round_trips > 100
    assert finished.ladder.log_z == pytest.approx(exact - missed, abs=0.3)
    largest = max(check.missed for check in finished.mode_checks if check.significant or missed < 1)
    assert largest == pytest.approx(missed, abs=0.15)
    judgement = judge(finished, find_reasons(finished))
    assert judgement.word == ("not trusted" if missed > 1 else "trusted")
    told = [text for text in judgement.findings if "the first ladder missed that mode" in text]
    assert len(told) == (missed > 1)


def ladder_with(log_z, samples, std_error=0.0, round_trips=100, warnings=()):
    """A ladder with this value and these draws."""
    nothing = torch.zeros(1, 1)
    return TemperingEstimate(
        log_z,
        std_error,
        19.0,
        nothing[0],
        nothing[0],
        round_trips,
        samples,
        nothing,
        nothing[0],
        1,
        1,
        1,
        warnings=warnings,
    )


@pytest.mark.parametrize("nats", [-800.0, 0.0, 3.0, 800.0])
def test_what_a_mode_adds_is_in_nats_however_large(nats):
    path, other = BaseRatePath(SMALL), BaseRatePath(SMALL, torch.full((8,), 3.0).double())
    base, at_mode = ladder_with(0.0, torch.zeros(50, 8)), ladder_with(nats, torch.ones(50, 8))
    found = check_mode(base, path, at_mode, other)
    assert found.missed == found.most == pytest.approx(np.logaddexp(0, nats), abs=1e-12)
    assert found.significant == (nats > -700)
    # A ladder whose draws are elsewhere says nothing of the mode.
    stray = ladder_with(nats, torch.zeros(50, 8))
    assert check_mode(base, path, stray, other) == ModeCheck(0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("nats", "trips", "warnings", "could_matter"),
    [(-2.0, 100, (), False), (-2.0, 40, (), True), (-2.0, 100, ("Halves.",), True), (-9.0, 0, ("Few.",), False)],
)  # fmt: skip
def test_the_error_of_a_short_ladder_from_a_mode_is_not_believed(
    nats, trips, warnings, could_matter
):
    path, other = BaseRatePath(SMALL), BaseRatePath(SMALL, torch.full((8,), 3.0).double())
    base = ladder_with(0.0, torch.zeros(50, 8), 0.1)
    found = check_mode(
        base, path, ladder_with(nats, torch.ones(50, 8), 0.1, trips, warnings), other
    )
    assert (found.most > 0.5) == could_matter
    assert found.met == 0


@pytest.mark.parametrize(
    ("nats", "std_error", "significant", "could_matter"),
    [(0.5, 0.1, True, True), (0.5, 0.5, False, True), (-3.0, 0.5, False, False), (-9.0, math.inf, False, True)],
)  # fmt: skip
def test_the_errors_of_ln_z_decide_what_is_known_of_a_mode(
    nats, std_error, significant, could_matter
):
    path, other = BaseRatePath(SMALL), BaseRatePath(SMALL, torch.full((8,), 3.0).double())
    at_mode = ladder_with(nats, torch.ones(50, 8), std_error)
    found = check_mode(ladder_with(0.0, torch.zeros(50, 8)), path, at_mode, other)
    assert (found.significant, found.most > 0.5) == (significant, could_matter)


def test_two_ladders_agree_on_the_mass_of_a_region():
    """From either start, Z times the share of draws in the region is its mass, by enumeration."""
    v, bias = all_states(8), torch.linspace(-2, 2, 8).double()
    path, other = BaseRatePath(SMALL), BaseRatePath(SMALL, bias)
    inside = other.log_start(v) > path.log_start(v)
    mass = (SMALL.log_unnormalized(v) - log_z(SMALL)).exp()[inside].sum().item()
    assert 0.01 < mass < 0.99
    ladders = [parallel_tempering(p, 100_000, seeded_generator(3)) for p in (path, other)]
    for ladder in ladders:
        share = (other.log_start(ladder.samples) > path.log_start(ladder.samples)).double().mean()
        assert share.item() == pytest.approx(mass, abs=0.08)
    found = check_mode(ladders[0], path, ladders[1], other)
    assert not found.significant
    assert found.most < 0.3


def test_interruption_keeps_what_was_finished(monkeypatch):
    monkeypatch.setattr("paperlib.evaluation.evaluation.EXACT_UNITS", 2)
    # the module: in the package its name belongs to the function
    module = sys.modules["paperlib.evaluation.annealing_runs"]
    original, calls = module.AnnealingRuns._run, []

    def interrupted_run(self, num_steps, on_step):
        calls.append(num_steps)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, num_steps, on_step)

    monkeypatch.setattr(module.AnnealingRuns, "_run", interrupted_run)
    result = evaluate(SMALL, draws(SMALL, 100, 3), minutes=0.01, progress=False)
    assert result.interrupted
    assert [r.num_steps for r in result.runs] == calls[:2]
    assert any("Interrupted" in finding for finding in result.findings)


def test_interruption_of_the_ladder_leaves_ais_and_raise(monkeypatch):
    def interrupted_ladder(self, path, chain_steps, on_step, check=True):
        raise KeyboardInterrupt

    test = draws(SMALL, 100, 3)
    monkeypatch.setattr(AnnealingRuns, "_climb", interrupted_ladder)
    # the budget's pilot is not what is interrupted
    monkeypatch.setattr(AnnealingRuns, "affordable_ladder_steps", lambda runs, seconds: 20_000)
    monkeypatch.setattr("paperlib.evaluation.evaluation.EXACT_UNITS", 2)
    result = evaluate(SMALL, test, minutes=0.001, progress=False)
    assert result.interrupted
    assert result.ladder is None
    assert len(result.runs) == 1
    assert any("Interrupted" in finding for finding in result.findings)
    stored = as_dict(result)
    assert stored["source"] == "AIS"
    assert "ladder" not in stored
    assert stored["average"]["test"] == pytest.approx(result.runs[0].bracket.upper, abs=1e-9)
    assert "Average test log-probability, by AIS" in describe(result)
    assert len(plot(result).axes) == 2


def test_formats(tmp_path):
    """The same model and images through every format."""
    w, b, a = SMALL.weights.numpy(), SMALL.visible_bias.numpy(), SMALL.hidden_bias.numpy()
    for suffix in (".safetensors", ".npz", ".mat"):
        SMALL.save(tmp_path / f"model{suffix}")
    np.savez(tmp_path / "sklearn.npz", components_=w.T, intercept_visible_=b, intercept_hidden_=a)
    savemat(tmp_path / "columns.mat", {"vishid": w, "visbiases": b[:, None], "hidbiases": a[None]})
    for name in ("model.safetensors", "model.npz", "model.mat", "sklearn.npz", "columns.mat"):
        assert read_rbm(tmp_path / name).checksum() == SMALL.checksum()

    images = draws(SMALL, 6, 1).to(torch.uint8).numpy()
    np.save(tmp_path / "i.npy", images.reshape(6, 2, 4))
    np.savez(tmp_path / "i.npz", anything=images, labels=np.arange(6))
    savemat(tmp_path / "i.mat", {"testdata": images})
    np.savetxt(tmp_path / "i.csv", images, delimiter=",", fmt="%d")
    idx = struct.pack(">HBBIII", 0, 8, 3, 6, 2, 4) + images.tobytes()
    (tmp_path / "i-ubyte").write_bytes(idx)
    (tmp_path / "i-ubyte.gz").write_bytes(gzip.compress(idx))
    for name in ("i.npy", "i.npz", "i.mat", "i.csv", "i-ubyte", "i-ubyte.gz"):
        np.testing.assert_array_equal(read_images("data", tmp_path / name, 8).numpy(), images)

    for kind in ("u1", "u2", "u4", "u8", "i8", "?", "f2", ">u2", ">f4"):
        np.save(tmp_path / "kind.npy", images.astype(kind))
        read = read_images("data", tmp_path / "kind.npy", 8)
        assert read.dtype == torch.uint8, kind
        np.testing.assert_array_equal(read.numpy(), images)

    grey = np.full((4_000, 8), 51, dtype=np.uint8)
    grey[0, 0] = 255
    np.save(tmp_path / "grey.npy", grey)
    drawn = read_images("data", tmp_path / "grey.npy", 8, binarize_seed=0)
    # 32,000 draws with probability 0.2
    assert abs(drawn.double().mean().item() - 0.2) < 4 * (0.16 / 32_000) ** 0.5


def run(*arguments):
    return CliRunner().invoke(cli.app, ["evaluate", *map(str, arguments)])


def test_command_writes_what_it_says(tmp_path):
    SMALL.save(tmp_path / "m.npz")
    np.save(tmp_path / "t.npy", draws(SMALL, 20, 1).numpy())
    result = run(tmp_path / "m.npz", "--data", tmp_path / "t.npy", "--json", tmp_path / "r.json")
    assert result.exit_code == 0, result.output
    stored = json.loads((tmp_path / "r.json").read_text())
    assert f"{stored['exact']['log_z']:.3f}" in result.output
    assert set(stored) >= OLD_KEYS | {"exact", "verdict_word", "source", "settled", "average"}
    assert stored["average"]["interval_95"] == pytest.approx(
        [stored["exact"]["test"]] * 2, abs=1e-9
    )


def test_estimator_saved_with_skops(tmp_path):
    """scikit-learn's own free energy, enumerated, is the reference."""
    images = draws(SMALL, 60, 4).numpy()
    estimator = BernoulliRBM(n_components=5, n_iter=20, random_state=0).fit(images)
    skops.io.dump(estimator, tmp_path / "m.skops")
    np.save(tmp_path / "t.npy", images)
    arguments = ["--data", tmp_path / "t.npy", "--json", tmp_path / "r.json"]
    result = run(tmp_path / "m.skops", *arguments)
    assert result.exit_code == 0, result.output
    log_z = np.logaddexp.reduce(-estimator._free_energy(all_states(8).numpy()))
    stored = json.loads((tmp_path / "r.json").read_text())["exact"]
    assert stored["log_z"] == pytest.approx(log_z, abs=1e-9)
    truth = -estimator._free_energy(images).mean() - log_z
    assert stored["test"] == pytest.approx(truth, abs=1e-9)


class Untrusted:
    """Of a type that no reader of a model file has reason to trust."""


@pytest.fixture
def folder(tmp_path):
    """A good model and good images, and everything that can be wrong with either."""
    images = draws(SMALL, 20, 1).to(torch.uint8).numpy()
    w, b, a = SMALL.weights.numpy(), SMALL.visible_bias.numpy(), SMALL.hidden_bias.numpy()
    good = {"weights": w, "visible_bias": b, "hidden_bias": a}
    SMALL.save(tmp_path / "good.npz")
    SMALL.save(tmp_path / "good.safetensors")
    SMALL.save(tmp_path / "good.mat")
    np.save(tmp_path / "good.npy", images)

    def model(name, **changes):
        arrays = {**good, **changes}
        np.savez(tmp_path / f"{name}.npz", **{k: v for k, v in arrays.items() if v is not None})

    model("no_bias", hidden_bias=None)
    model("nan", weights=np.where(w > 1, np.nan, w))
    model("infinite", visible_bias=np.full_like(b, np.inf))
    model("swapped", visible_bias=a, hidden_bias=b)
    model("text", weights=np.full(w.shape, "x"))
    model("complex", weights=w * 1j)
    model("flat", weights=w.ravel())
    model("empty", weights=w[:0], visible_bias=b[:0])
    model("object", weights=w.astype(object))
    model("huge", weights=w * 1e38)
    for suffix in ("npz", "safetensors", "mat"):
        data = (tmp_path / f"good.{suffix}").read_bytes()
        (tmp_path / f"cut.{suffix}").write_bytes(data[: len(data) // 2])
        (tmp_path / f"nothing.{suffix}").write_bytes(b"")
    savemat(tmp_path / "keys.mat", {"W": w})
    np.savez(tmp_path / "half_sklearn.npz", components_=w.T)
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(good))
    (tmp_path / "m.pt").write_bytes(b"PK\x03\x04")
    (tmp_path / "bad.skops").write_bytes(b"PK")
    skops.io.dump(BernoulliRBM(n_components=5, random_state=Untrusted()), tmp_path / "type.skops")
    skops.io.dump(BernoulliRBM(n_components=5), tmp_path / "unfitted.skops")
    skops.io.dump({"weights": w}, tmp_path / "words.skops")
    (tmp_path / "folder.npz").mkdir()

    np.save(tmp_path / "grey.npy", images * 0.5)
    np.save(tmp_path / "levels.npy", images * 200)
    np.save(tmp_path / "above.npy", images * 1.5)
    np.save(tmp_path / "below.npy", images * -1.0)
    np.save(tmp_path / "narrow.npy", images[:, :7])
    np.save(tmp_path / "turned.npy", images.T)
    np.save(tmp_path / "one.npy", images[:1])
    np.save(tmp_path / "none.npy", images[:0])
    np.save(tmp_path / "vector.npy", images[0])
    np.save(tmp_path / "number.npy", np.float64(3))
    np.save(tmp_path / "nan.npy", np.where(images, np.nan, 0.0))
    np.save(tmp_path / "objects.npy", images.astype(object), allow_pickle=True)
    np.save(tmp_path / "words.npy", images.astype(str))
    np.savez(tmp_path / "two.npz", first=images, second=images)
    np.savez(tmp_path / "vectors.npz", first=images[0])
    (tmp_path / "cut.npy").write_bytes((tmp_path / "good.npy").read_bytes()[:150])
    (tmp_path / "words.csv").write_text("a,b\nc,d\n")
    (tmp_path / "ragged.csv").write_text("0,1\n1\n")
    header = struct.pack(">HBBII", 0, 8, 2, 20, 8)
    (tmp_path / "cut-ubyte").write_bytes(header + images.tobytes()[:100])
    (tmp_path / "cut-ubyte.gz").write_bytes(gzip.compress(header + images.tobytes())[:50])
    (tmp_path / "short-ubyte").write_bytes(b"\x00\x00\x08")
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n")
    (tmp_path / "file").write_text("")
    return tmp_path


MODELS = {
    "missing.npz": "path: expected a file, found none",
    "missing.skops": "path: expected a file, found none",
    "folder.npz": "path: expected a file, found none",
    "m.pkl": "a pickle, which can run any code when it is read",
    "m.pt": "path: expected an undamaged torch file",
    "file": "which is none of these",
    "bad.skops": "path: expected a BernoulliRBM that skops can load",
    "type.skops": "Untrusted types found in the file",
    "unfitted.skops": "path: expected a fitted BernoulliRBM",
    "words.skops": "path: expected a fitted BernoulliRBM",
    "cut.npz": "path: expected an undamaged .npz file",
    "cut.safetensors": "path: expected an undamaged .safetensors file",
    "cut.mat": "path: expected an undamaged .mat file",
    "nothing.npz": "path: expected an undamaged .npz file",
    "nothing.safetensors": "path: expected an undamaged .safetensors file",
    "nothing.mat": "path: expected an undamaged .mat file",
    "keys.mat": "expected visible and hidden biases, got no arrays besides the rest of an RBM; if the model has none, say so: --names visible=0,hidden=0",
    "half_sklearn.npz": "expected visible and hidden biases, got no arrays",
    "no_bias.npz": "expected hidden biases, got no arrays besides the rest of an RBM; if the model has none, say so: --names hidden=0",
    "nan.npz": "expected finite numbers",
    "infinite.npz": "expected finite numbers",
    "swapped.npz": "data: expected images of 5 values, as many as the model has visible units, got 8",
    "text.npz": "weights: expected an array of numbers",
    "complex.npz": "weights: expected real numbers",
    "flat.npz": "expected one matrix of weights, and a vector of biases for each of its sides, got",
    "empty.npz": "weights: expected shape [any, any]",
    "object.npz": "path: expected an undamaged .npz file",
}
IMAGES = {
    "missing.npy": "data: expected a file, found none",
    "folder.npz": "data: expected a file, found none",
    "grey.npy": "--binarize SEED",
    "levels.npy": "--binarize SEED",
    "above.npy": "data: expected only 0 and 1",
    "below.npy": "data: expected only 0 and 1",
    "narrow.npy": "data: expected images of 8 values",
    "turned.npy": "is the array transposed?",
    "one.npy": "test: expected at least two images",
    "none.npy": "data: expected shape",
    "vector.npy": "data: expected shape",
    "number.npy": "data: expected shape",
    "nan.npy": "data: expected finite numbers",
    "objects.npy": "it holds pickled objects, which can run any code",
    "words.npy": "data: expected numbers",
    "two.npz": "data: expected one array in",
    "vectors.npz": "data: expected one array in",
    "cut.npy": "data: expected an undamaged .npy file",
    "words.csv": "data: expected rows of numbers",
    "ragged.csv": "data: expected rows of numbers",
    "cut-ubyte": "data: expected a whole IDX file",
    "cut-ubyte.gz": "data: expected a whole gzip file",
    "short-ubyte": "which is none of these",
    "image.png": "which is none of these",
}
OPTIONS = {
    ("--minutes", "0"): "minutes: expected a positive number",
    ("--minutes", "nan"): "minutes: expected a positive number",
    ("--json", "no_such_folder/r.json"): "json: expected a file in a folder that exists",
    ("--plot", "p.bmp"): "plot: expected a .svg, .png or .pdf file",
    ("--train", "missing.npy"): "train: expected a file, found none",
    ("--train", "narrow.npy"): "train: expected images of 8 values",
    ("--train", "grey.npy"): "train: expected only 0 and 1",
}


def refused(folder, monkeypatch, arguments):
    """Exit code 2, one sentence on standard error, no traceback, nothing written."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["paperlib", "evaluate", *arguments])
    before = sorted(os.listdir(folder))
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize("name", MODELS)
def test_bad_models(folder, monkeypatch, capsys, name):
    refused(folder, monkeypatch, [name, "--data", "good.npy", "--json", "r.json"])
    said = capsys.readouterr()
    assert MODELS[name] in said.err
    assert len(said.err.strip().splitlines()) == 1, said.err
    assert said.out == ""


@pytest.mark.parametrize("name", IMAGES)
def test_bad_images(folder, monkeypatch, capsys, name):
    refused(folder, monkeypatch, ["good.npz", "--data", name, "--json", "r.json"])
    said = capsys.readouterr()
    assert IMAGES[name] in said.err
    assert len(said.err.strip().splitlines()) == 1, said.err


@pytest.mark.parametrize("option", OPTIONS)
def test_bad_options(folder, monkeypatch, capsys, option):
    refused(folder, monkeypatch, ["good.npz", "--data", "good.npy", *option])
    assert OPTIONS[option] in capsys.readouterr().err


def test_model_that_overflows(folder, monkeypatch, capsys):
    monkeypatch.setattr("paperlib.evaluation.evaluation.EXACT_UNITS", 2)
    refused(folder, monkeypatch, ["huge.npz", "--data", "good.npy", "--minutes", "0.01"])
    said = "model: expected weights and biases of which ln p*(v) has digits behind the point"
    assert said in capsys.readouterr().err


def test_no_permission(folder, monkeypatch, capsys):
    def refuse(path, *arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("paperlib.models.stored._format", refuse)
    refused(folder, monkeypatch, ["good.npz", "--data", "good.npy"])
    assert "path: expected a readable file" in capsys.readouterr().err


def full_disk(monkeypatch, at):
    """A disk that takes the beginning of a file and then is full; `fsync` hears of it late, as on a network."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(target, *arguments, **options):
        path = target if at == "json" else arguments[0]
        path.write_bytes(b"the beginning")
        raise full

    def sync(handle):
        raise full

    if at == "json":
        monkeypatch.setattr("pathlib.Path.write_text", write)
    elif at == "plot":
        monkeypatch.setattr(Figure, "savefig", write)
    else:
        monkeypatch.setattr(storage.os, "fsync", sync)


@pytest.mark.parametrize(
    ("at", "option", "file"),
    [
        ("json", "--json", "r.json"),
        ("plot", "--plot", "p.svg"),
        ("fsync", "--json", "r.json"),
        ("fsync", "--plot", "p.png"),
    ],
)
def test_full_disk(folder, monkeypatch, capsys, at, option, file):
    monkeypatch.setattr("paperlib.evaluation.evaluation.EXACT_UNITS", 2)
    full_disk(monkeypatch, at)
    arguments = ["good.npz", "--data", "good.npy", "--minutes", "0.001", option, file]
    refused(folder, monkeypatch, arguments)
    said = capsys.readouterr()
    name = option.removeprefix("--")
    sentence = f"{name}: expected to be able to write {file}: No space left on device"
    assert said.err == f"paperlib: {sentence}\n"
    assert "Verdict" in said.out  # what was computed is not lost
