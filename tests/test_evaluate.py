"""`paperlib evaluate`: the truth lies inside the bracket.

It reads formats of many origins, and says in one clear sentence whatever is wrong.
"""

import errno
import json
import math
import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from enumeration import log_z, random_rbm
from evaluations import SMALL, draws, recorded
from interruptions import interrupt_call

from boltzmann_companion.studies.study import Case, Mode, study_images
from boltzmann_likelihood.evaluation import annealing_runs, evaluate
from boltzmann_likelihood.evaluation.annealing_runs import AnnealingRuns
from boltzmann_likelihood.evaluation.averages import average_of
from boltzmann_likelihood.evaluation.modes import (
    ModeCheck,
    ModeSearch,
    Optimum,
    check_mode,
    mode_starts,
)
from boltzmann_likelihood.evaluation.picture import plot
from boltzmann_likelihood.evaluation.report import as_dict, describe
from boltzmann_likelihood.evaluation.result import (
    AnnealingRun,
    Doubt,
    Effort,
    FinishedRuns,
    Judgement,
)
from boltzmann_likelihood.evaluation.verdict import (
    Shortfall,
    find_annealing_warnings,
    judge,
    shortfall,
)
from paperlib import storage
from paperlib.annealing import BaseRatePath
from paperlib.datasets import base_rate_bias
from paperlib.estimators import (
    PartitionEstimate,
    ReverseEstimate,
    TemperingEstimate,
    bracket,
    parallel_tempering,
)
from paperlib.kernels import bernoulli
from paperlib.models import RBM
from paperlib.numerics import seeded_generator
from paperlib.uncertain import Uncertain

# What the JSON had before there was parallel tempering.
OLD_KEYS = {"num_visible", "num_hidden", "num_images", "unit", "trustworthy", "verdict"}
OLD_KEYS |= {"findings", "start", "interrupted", "estimates"}


def estimate(rbm, test, **options):
    return evaluate(rbm, test, generator=seeded_generator(5), progress=False, **options)


@pytest.mark.usefixtures("_estimated")
def test_bracket_holds_the_truth():
    test = draws(SMALL, 300, 3)
    result = estimate(SMALL, test, steps=200, tempering_steps=20_000)
    truth = SMALL.log_unnormalized(test).mean().item() - log_z(SMALL)
    best = result.runs[-1].bracket
    assert best.upper_interval[0] <= truth <= best.upper_interval[1]
    assert abs(best.lower.mean - truth) < 4 * best.lower.test_set_std_error + 0.02
    assert [run.num_steps for run in result.runs] == sorted(r.num_steps for r in result.runs)
    assert result.trustworthy, result.warnings
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
    assert stored["ladder"]["log_z"] == result.tempering.log_z
    assert average["test"] == pytest.approx(images - result.tempering.log_z, abs=1e-5)
    wider = average["interval_95_other_images"]
    narrower = average["interval_95"]
    assert wider[0] < narrower[0] < average["test"] < narrower[1] < wider[1]
    assert len(plot(result).axes) == 4


def test_the_average_joins_both_errors():
    """For 400 images of spread s the error is s / 20, and Student's t is nearly normal."""
    log_p = torch.randn(400, generator=seeded_generator(1)).double()
    average = average_of(log_p, Uncertain(2.0, 0.3, 1e6))
    error = math.hypot(0.3, log_p.std().item() / 20)
    assert average.mean == pytest.approx(log_p.mean().item() - 2, abs=1e-12)
    assert average.interval[1] - average.mean == pytest.approx(1.96 * 0.3, rel=1e-3)
    assert average.sample_interval[1] - average.mean == pytest.approx(1.96 * error, rel=1e-3)
    unknown = average_of(log_p, Uncertain(2.0, math.inf, 1))
    assert unknown.interval == (-math.inf, math.inf) == unknown.sample_interval


def runs_on(model, images, bias, seed, train=None):
    """The runs of `evaluate` on this model, which chains walk in float32."""
    walked = model.to(dtype=torch.float32)
    log_p = walked.exact_log_unnormalized(images)
    return AnnealingRuns(walked, images, log_p, bias, seeded_generator(seed), train_units=train)


@pytest.fixture(scope="module")
def sound():
    """A run in which everything agrees."""
    runs = runs_on(SMALL, draws(SMALL, 100, 3), None, seed=1)
    return runs.run_up_to(200, 20_000, progress=False)


OPEN_BRACKET = ("The bracket is open.",)


def annealed(log_weights, below, num_steps=200):
    """A run whose AIS has these log-weights; RAISE finds this of ten images with ln p*(v) = 0."""
    above = PartitionEstimate(
        torch.as_tensor(log_weights).double(), torch.zeros(len(log_weights), 8)
    )
    below = ReverseEstimate(torch.as_tensor(below).double().expand(10)[:, None].expand(-1, 2))
    ends = bracket(torch.zeros(10).double(), torch.arange(10), above, below)
    return AnnealingRun(num_steps, above, ends, 1.0, torch.arange(10))


def finished_with(*runs):
    return FinishedRuns(runs)


def with_chains(sound, log_weights):
    """The same run with these log-weights of AIS, in nats above parallel tempering's ln Z.

    RAISE is where parallel tempering is.
    """
    log_z = sound.tempering.log_z
    return replace(sound, runs=(annealed(log_z + torch.tensor(log_weights), -log_z),))


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
    judgement = judge(with_chains(sound, log_weights))
    assert judgement.word == word
    assert all("AIS's weights leave no more than one chance" in text for text in judgement.warnings)


@pytest.mark.parametrize(
    ("change", "word", "reason", "factor"),
    [
        (lambda run: {}, "trusted", "", 1),
        (lambda run: {"mode_checks": (ModeCheck(0.008, 0.004, 0.01, met=0.9),)}, "trusted", "", 1),
        (lambda run: {"mode_checks": (ModeCheck(0.2, 0.0, 0.3, met=0.9),)}, "trusted", "", 1),
        (
            lambda run: {"mode_checks": (ModeCheck(0.2, 0.1, 0.3, met=0.9),)},
            "open",
            "the interval has no room",
            math.inf,
        ),
        (lambda run: {"mode_checks": (ModeCheck(0.005, 0.004, 0.006, met=0.0),)}, "trusted", "", 1),
        (
            lambda run: {"tempering": replace(run.tempering, std_error=0.4)},
            "too noisy to tell",
            "to 0.",
            3.6,
        ),
        (
            lambda run: {"tempering": replace(run.tempering, std_error=math.inf)},
            "too noisy to tell",
            "to inf",
            math.inf,
        ),
        (
            lambda run: {"tempering": replace(run.tempering, round_trips=4, warnings=("Few.",))},
            "not trusted",
            "Parallel tempering: Few.",
            2.5,
        ),
        (
            lambda run: {"tempering": replace(run.tempering, warnings=("Halves.",))},
            "not trusted",
            "Parallel tempering: Halves.",
            math.inf,
        ),
        (
            lambda run: {"tempering": None},
            "not trusted",
            "no run of parallel tempering yet",
            math.inf,
        ),
        (
            lambda run: {"mode_checks": (ModeCheck(1.0, 0.7, 1.5),)},
            "not trusted",
            "missed that mode",
            math.inf,
        ),
        (
            lambda run: {"mode_checks": (ModeCheck(0.0, 0.0, 0.2), ModeCheck(0.0, 0.0, 1.0))},
            "open",
            "by up to 1.0 nats",
            4,
        ),
        (
            lambda run: {"mode_checks": (ModeCheck(0.2, 0.1, 0.3, met=0.0),)},
            "open",
            "others beside it may be",
            math.inf,
        ),
        (lambda run: {"mode_checks": (ModeCheck(0.2, 0.0, 0.3, met=0.0),)}, "trusted", "", 1),
        (
            lambda run: {"mode_checks": (ModeCheck(0.0, 0.0, 0.0, met=2.0, less=0.7),)},
            "trusted",
            "",
            1,
        ),
        (
            lambda run: {"mode_checks": (ModeCheck(0.0, 0.0, 0.0, met=20.0, less=3.0),)},
            "not trusted",
            "finds 3.0 nats less there",
            math.inf,
        ),
        (
            lambda run: {"mode_checks": (ModeCheck(0.0, 0.0, 0.1, met=0.0, promised=0.3),)},
            "open",
            "it raises ln Z by 0.30 nats",
            math.inf,
        ),
        (
            lambda run: {"mode_checks": (ModeCheck(0.0, 0.0, 0.1, met=0.8, promised=0.3),)},
            "trusted",
            "",
            1,
        ),
        (lambda run: {"mode_checks": ()}, "open", "were not looked at", math.inf),
        (lambda run: {"interrupted": True}, "not trusted", "Interrupted", math.inf),
    ],
)
def test_what_speaks_against_parallel_tempering(sound, change, word, reason, factor):
    """What is said of AIS does not, nor does a mode that is met or next to nothing."""
    judgement = judge(replace(sound, **change(sound)), OPEN_BRACKET)
    assert judgement.word == word
    assert bool(judgement.warnings) == (word != "trusted")
    assert reason in " ".join(judgement.warnings)
    assert judgement.settled == OPEN_BRACKET
    assert judgement.factor == pytest.approx(factor, rel=0.1)


def with_raise(sound, short, lost=0.0):
    """The same run with RAISE so many nats below parallel tempering, for each of ten images.

    Half of AIS's chains lost `lost` nats on their way, and the mean weight is right.
    """
    log_z = sound.tempering.log_z
    weights = torch.full((1000,), log_z - lost, dtype=torch.float64)
    weights[:500] = log_z + math.log(2 - math.exp(-lost))
    return replace(sound, runs=(annealed(weights, -log_z - torch.tensor(short)),))


HALF = [0.5] * 5 + [7.5] * 5
NONE_MISSED = (ModeCheck(0.0, 0.0, 0.0),)
MISSED = ModeCheck(1.0, 0.7, 1.5)
# By how much for each image, what runs from images find, how much is explained, the verdict.
FALLS_SHORT = {
    "for all alike": (
        4.0,
        None,
        0.0,
        "open",
        "RAISE is 4.0 nats below parallel tempering's average",
    ),
    "by more than is explained": (4.0, None, 2.5, "open", ""),
    "by what is explained": (4.0, None, 3.5, "trusted", ""),
    "not at all": (-4.0, None, 0.0, "trusted", ""),
    "for half of the images": (
        HALF,
        None,
        0.0,
        "open",
        "RAISE is 4.0 nats below parallel tempering's average",
    ),
    "for half, and no mode is near": (
        HALF,
        (ModeCheck(0.0, 0.0, 0.2),),
        0.0,
        "trusted",
        "find no mode that was missed",
    ),
    "for half, and no mode is elsewhere": (HALF, (), 0.0, "trusted", "has been in the modes"),
    "for half, and a mode could be near": (
        HALF,
        (ModeCheck(0.0, 0.0, 1.0),),
        0.0,
        "open",
        "A mode near some images that parallel tempering may have missed",
    ),
    "for half, and a mode was missed": (
        HALF,
        (MISSED,),
        0.0,
        "not trusted",
        "starts at a mode near some images raises ln Z by 1.0 nats",
    ),
    "for half, and a small mode was missed": (
        HALF,
        (ModeCheck(0.2, 0.1, 0.3, met=0.0),),
        0.0,
        "open",
        "Parallel tempering missed a mode near some images",
    ),
    "for half, explained, and a mode was missed": (
        HALF,
        (MISSED,),
        3.5,
        "not trusted",
        "raises ln Z by 1.0 nats",
    ),
    "for seven of ten": (
        [4.0] * 7 + [0.5] * 3,
        NONE_MISSED,
        0.0,
        "trusted",
        "find no mode that was missed",
    ),
    "for eight of ten": (
        [4.0] * 8 + [0.5] * 2,
        NONE_MISSED,
        0.0,
        "open",
        "More than three quarters",
    ),
    "for all, and no mode is near": (
        [4.0] * 10,
        NONE_MISSED,
        0.0,
        "open",
        "More than three quarters",
    ),
}


@pytest.mark.parametrize(
    ("short", "checks", "explained", "word", "reason"), FALLS_SHORT.values(), ids=FALLS_SHORT
)
def test_raise_that_falls_short(sound, short, checks, explained, word, reason):
    """A nat is left without remark, and so is RAISE above parallel tempering.

    Where some images are hard to reach, runs from them decide.
    """
    run = replace(with_raise(sound, short), image_checks=checks)
    judgement = judge(run, OPEN_BRACKET, raise_loss=explained)
    assert judgement.word == word
    assert bool(judgement.warnings) == (word != "trusted")
    settled = judgement.settled[len(OPEN_BRACKET) :]
    assert bool(settled) == (word == "trusted" and bool(reason))
    assert reason in " ".join([*judgement.warnings, *settled])


def test_raise_may_fall_short_by_what_annealing_loses(sound):
    assert judge(with_raise(sound, 4.0, lost=10.0)).word == "trusted"


def test_the_images_asked_about_are_those_that_fall_short(sound):
    def reached(short):
        lacking = shortfall(with_raise(sound, short).runs[-1], sound.tempering)
        return lacking and lacking.affected.tolist()

    assert reached(4.0) == [True] * 10
    assert reached(0.5) is None
    assert reached([9.0, 0.5, 3.0, 0.0, 0.0] * 2) == [True, False, True, False, False] * 2


def test_the_look_at_images_asks_for_those_that_fall_short(monkeypatch):
    """It starts from test and training images, and from all for which RAISE is too low."""
    images = draws(SMALL, 12, 3)
    train = draws(SMALL, 300, 4)
    searches = []

    def lacking(best, tempering, explained=0.0):
        return Shortfall(4.0, 0.0, (best.chosen == 4) | (best.chosen == 7))

    def modes_of_images(self, some, hard, known):
        searches.append((some, hard))
        return known[:1]

    monkeypatch.setattr(annealing_runs, "shortfall", lacking)
    monkeypatch.setattr(ModeSearch, "of_images", modes_of_images)
    runs = runs_on(SMALL, images, None, seed=1, train=train)
    finished = runs.run_up_to(64, 20_000, progress=False)
    [(some, hard)] = searches
    assert torch.equal(some[:12].to(images), images)
    assert len(some) == 12 + 300
    assert sorted(hard.to(images).tolist()) == sorted(images[[4, 7]].tolist())
    assert not finished.interrupted
    assert [check.most < 0.5 for check in finished.image_checks] == [True]
    # Its work was taken from what was left for AIS and RAISE.
    assert [run.num_steps for run in finished.runs] == [4, 16, 58]


def with_a_mode(log_odds):
    """A model of digits with one more mode in half of the pixels.

    Returns it with its ln Z, training and test images, and what is missed without the mode.
    """
    case = Case("mode", "digits", "digits-pcd-16", mode=Mode(log_odds, pixels=0.5))
    return *case.make(), *study_images(case.data), math.log1p(math.exp(log_odds))


@pytest.mark.parametrize("log_odds", [-6.0, 1.0])
def test_a_mode_at_some_images_is_found_from_there(monkeypatch, log_odds):
    """One of ten images lies in the mode that the model alone does not show.

    The search from its weights does not return it, nor does the proven bound see it.
    """

    def strongest_of_draws(search):
        return [Optimum(search._draws.visible(int(search._bounds.argmax())))]

    rbm, exact, train, test, missed = with_a_mode(log_odds)
    start = base_rate_bias(train, pseudo_off=0.05)
    inside = rbm.visible_probs(torch.eye(rbm.num_hidden).double()[-1:])
    inside = bernoulli(inside.expand(20, -1), seeded_generator(1)).to(test)
    monkeypatch.setattr(ModeSearch, "of_model", strongest_of_draws)
    monkeypatch.setattr(BaseRatePath, "log_z_lower_bound", lambda *_: -math.inf)
    images = torch.cat([test[:180], inside])
    runs = runs_on(rbm, images, start, seed=5)
    finished = runs.run_up_to(128, runs.usual_tempering_steps(128), progress=False)
    assert exact - finished.tempering.log_z == pytest.approx(missed, abs=0.3)
    assert all(check.missed < 0.3 for check in finished.mode_checks)
    largest = max(check.missed for check in finished.image_checks)
    assert largest == pytest.approx(missed, abs=0.15)
    assert judge(finished).word == ("not trusted" if missed > 1 else "trusted")


@pytest.mark.parametrize(
    ("doubts", "minutes", "advice"),
    [
        ([], 2.0, ""),
        (
            [Doubt("open", "", "modes", 2.5), Doubt("too noisy to tell", "", "tempering", 1.2)],
            2.0,
            "3 times as much time should settle this: --minutes 6.",
        ),
        (
            [Doubt("too noisy to tell", "", "tempering", 1.2)],
            None,
            "2 times as much time should settle this: --steps 200 --tempering-steps 2000.",
        ),
        ([Doubt("not trusted", "", "tempering")], 2.0, "cannot be told"),
        (
            [Doubt("not trusted", "", "tempering", 3.0), Doubt("not trusted", "", "nothing")],
            2.0,
            "unlikely to help",
        ),
    ],
)
def test_the_advice_says_how_much_more_time(doubts, minutes, advice):
    judgement = Judgement("open", tuple(doubts))
    exact = evaluate(SMALL, torch.eye(SMALL.num_visible))
    evaluation = replace(exact, judgement=judgement, effort=Effort(100, 1_000, minutes))
    assert advice in evaluation.advice
    assert bool(evaluation.advice) == bool(advice)


@pytest.mark.parametrize("where", ["tempering", "modes", "nowhere", "nothing"])
def test_what_is_left_of_the_work_goes_where_the_doubt_is(monkeypatch, where):
    """Parallel tempering with a warning gets all of it at once.

    A mode that could matter gets a portion at a time. AIS and RAISE get what no doubt takes. Where
    a mode was missed for certain, more work settles nothing.
    """
    runs = runs_on(SMALL, draws(SMALL, 100, 3), None, seed=1)
    extended = []
    looks = []
    extend = AnnealingRuns._extend

    def counted(self, tempering, chain_steps, on_step):
        extended.append((tempering.estimate.lower_bound is not None, chain_steps))
        extend(self, tempering, chain_steps, on_step)

    def doubts(finished, explained=0.0):
        looks.append(finished)
        return [] if where == "nowhere" else [Doubt("open", "", where, 2.0)]

    monkeypatch.setattr(AnnealingRuns, "_extend", counted)
    monkeypatch.setattr(annealing_runs, "find_doubts", doubts)
    finished = runs.run_up_to(64, 9_000, progress=False)
    assert not finished.interrupted
    if where in ("nowhere", "nothing"):
        assert extended == []
        assert [run.num_steps for run in finished.runs] == [4, 16, 64]
        assert finished.tempering.chain_steps <= 9_000
    else:
        assert extended == ([(True, 12_000)] if where == "tempering" else [(False, 3_000)] * 4)
        assert [run.num_steps for run in finished.runs] == [4, 16]
        steps = finished.tempering.chain_steps
        assert (20_000 < steps <= 21_000) if where == "tempering" else steps <= 9_000


def test_steps_fill_the_time(monkeypatch):
    runs = runs_on(SMALL, draws(SMALL, 10, 3), None, seed=0)
    # runs of K, K / 4 and K / 16 steps
    seconds = 0.1005 * (1 + 1 / 4 + 1 / 16)
    for seconds_per_step, steps in [(1e-3, 100), (1.0, 32), (1e-9, 100_000)]:
        monkeypatch.setattr(runs, "_seconds_per_step", lambda value=seconds_per_step: value)
        assert runs.affordable_steps(seconds) == steps


def test_a_step_is_timed_on_a_few(monkeypatch):
    """And not on more than the whole budget may pay for."""
    runs = runs_on(SMALL, draws(SMALL, 10, 3), None, seed=0)
    run = annealing_runs.ais
    made = []

    def timed(path, betas, *arguments, **options):
        made.append(len(betas) - 1)
        return run(path, betas, *arguments, **options)

    monkeypatch.setattr(annealing_runs, "ais", timed)
    runs.affordable_steps(1.0)
    assert made == [20, 20]


@pytest.mark.parametrize(
    ("seconds_per_step", "expected", "pilots"),
    [
        (1e-5, 100_000, [10_000, 10_000]),
        (1e-2, 5_000, [10_000, 10_000]),
        (1e-6, 1_000_000, [10_000, 10_000, 40_000]),
        (1e-12, 10_000_000, [10_000, *(10_000 * 4**n for n in range(5)), 10_000_000]),
    ],
)
def test_parallel_tempering_fills_its_time(monkeypatch, seconds_per_step, expected, pilots):
    """By a clock that goes on with the steps of parallel tempering alone."""
    runs = runs_on(SMALL, draws(SMALL, 10, 3), None, seed=0)
    made = []
    monkeypatch.setattr(runs, "_temper", lambda _, steps, *__, **options: made.append(steps))
    monkeypatch.setattr(annealing_runs.time, "perf_counter", lambda: sum(made) * seconds_per_step)
    assert runs.affordable_tempering_steps(1.0) == pytest.approx(expected, rel=1e-9)
    assert made == pilots


@pytest.mark.usefixtures("_estimated")
def test_too_little_time_is_said():
    rbm = random_rbm(200, 60, 4, scale=4.0, dtype=torch.float32)
    state = torch.zeros(400, 200)
    generator = seeded_generator(6)
    for _ in range(200):
        state = rbm.gibbs_step(state, generator)
    result = estimate(rbm, state, minutes=1e-6)
    # Parallel tempering took what was meant for AIS and RAISE with 32 steps.
    assert result.runs[-1].num_steps == 8
    assert result.tempering.chain_steps > 9_000
    assert not result.trustworthy
    assert "do not rely" in describe(result)
    assert result.judgement.word == "not trusted"
    assert any(text.startswith("Parallel tempering: ") for text in result.warnings)
    assert "time should settle this" in describe(result) or "cannot be told" in describe(result)


def run_with(log_weights, num_steps=100):
    """A run whose RAISE agrees with its AIS."""
    return annealed(log_weights, -annealed(log_weights, 0.0).ais.log_z, num_steps)


# Chains that agree, or of which one or three hold nearly everything; what is said of the runs.
EVEN = [0.0] * 50
ONE = [10.0] + [0.0] * 49
THREE = [10.0 - math.log(3)] * 3 + [0.0] * 47
SAID_OF_RUNS = {
    "every image a little short": (
        [annealed(EVEN, [-6.0] * 10)],
        "as RAISE is conservative.",
        True,
    ),
    "a few by much": ([annealed(EVEN, [-0.2] * 8 + [-30.0] * 2)], "a few to which", True),
    "two heavy chains": ([run_with([7.0] * 2 + [0.0] * 48)], "known to 0.7 nats only", True),
    "half of them heavy": ([run_with([7.0] * 25 + [0.0] * 25)], "nats only", False),
    "moving, with an unknown error": (
        [run_with(ONE, 25), run_with([7.0] * 50)],
        "still moves: by -0.9",
        True,
    ),
    "moving within the error": ([run_with(THREE, 25), run_with([7.0] * 50)], "still moves", False),
}


@pytest.mark.parametrize(
    ("runs", "warning", "is_expected"), SAID_OF_RUNS.values(), ids=SAID_OF_RUNS
)
def test_what_is_said_of_ais_and_raise(runs, warning, is_expected):
    """An error that is not known excuses no movement."""
    assert (warning in " ".join(find_annealing_warnings(finished_with(*runs)))) == is_expected


@pytest.mark.usefixtures("_estimated")
def test_training_images_of_something_else_are_noticed():
    test = draws(SMALL, 300, 3)
    result = estimate(SMALL, test, train=1 - test, steps=100, tempering_steps=20_000)
    assert any("base rates are far" in finding for finding in result.warnings)


def test_a_mode_that_some_units_hold_only_together_is_looked_for():
    """Four of a hundred units pull towards a pattern, and the others away from it.

    One of the four alone is too weak.
    """
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
    """Too loose a proven bound would let the error of ln(1 + e) nats pass."""
    rbm, exact, train, test, missed = with_a_mode(log_odds)
    start = base_rate_bias(train, pseudo_off=0.05)
    runs = runs_on(rbm, test, start, seed=5)
    finished = runs.run_up_to(128, runs.usual_tempering_steps(128), progress=False)
    best = finished.runs[-1]
    assert best.bracket.verdict() == "closed"
    assert exact - best.ais.log_z == pytest.approx(missed, abs=0.15)
    # Parallel tempering makes its round trips, and is distrusted if it has missed as much.
    assert finished.tempering.round_trips > 100
    assert finished.tempering.log_z == pytest.approx(exact - missed, abs=0.3)
    largest = max(check.missed for check in finished.mode_checks if check.significant or missed < 1)
    assert largest == pytest.approx(missed, abs=0.15)
    judgement = judge(finished, find_annealing_warnings(finished))
    assert judgement.word == ("not trusted" if missed > 1 else "trusted")
    warnings = [text for text in judgement.warnings if "the first run missed that mode" in text]
    assert len(warnings) == (missed > 1)


def tempering_with(log_z, samples, std_error=0.0, round_trips=100, warnings=()):
    """A run with this value and these draws."""
    one = torch.zeros(1)
    many = torch.zeros(1, 1)
    return TemperingEstimate(
        log_z, std_error, 19.0, one, one, round_trips, samples, many, one, 1, 1, warnings=warnings
    )


def other_start(value=3.0):
    """The path that starts at the base rates, and one from a mode where the units are on."""
    return BaseRatePath(SMALL), BaseRatePath(SMALL, torch.as_tensor(value).double().expand(8))


NEUTRAL = torch.zeros(50, 8)
AT_MODE = torch.ones(50, 8)


@pytest.mark.parametrize("nats", [-800.0, 0.0, 3.0, 800.0])
def test_what_a_mode_adds_is_in_nats_however_large(nats):
    path, other = other_start()
    base = tempering_with(0.0, NEUTRAL)
    at_mode = tempering_with(nats, AT_MODE)
    check = check_mode(base, path, at_mode, other)
    assert check.missed == check.most == pytest.approx(np.logaddexp(0, nats), abs=1e-12)
    assert check.significant == (nats > -700)
    # A run whose draws are elsewhere says nothing of the mode.
    stray = tempering_with(nats, NEUTRAL)
    assert check_mode(base, path, stray, other) == ModeCheck(0.0, 0.0, 0.0, met=0.0)


@pytest.mark.parametrize(
    ("nats", "std_error", "trips", "warnings", "significant", "could_matter"),
    [
        (0.5, 0.1, 100, (), True, True),
        (0.5, 0.5, 100, (), False, True),
        (-3.0, 0.5, 100, (), False, False),
        (-9.0, math.inf, 100, (), False, True),
        # what a short run or one with a warning says of its error is not believed
        (-2.0, 0.1, 100, (), True, False),
        (-2.0, 0.1, 40, (), False, True),
        (-2.0, 0.1, 100, ("Halves.",), False, True),
        (-9.0, 0.1, 0, ("Few.",), False, False),
    ],
)
def test_the_errors_of_ln_z_decide_what_is_known_of_a_mode(
    nats, std_error, trips, warnings, significant, could_matter
):
    path, other = other_start()
    at_mode = tempering_with(nats, AT_MODE, std_error, trips, warnings)
    check = check_mode(tempering_with(0.0, NEUTRAL), path, at_mode, other)
    assert (check.significant, check.most > 0.5) == (significant, could_matter)
    assert check.met == 0


@pytest.mark.parametrize(("inside", "could_matter"), [(10, False), (4, True)])
def test_a_short_run_that_agrees_is_no_doubt(inside, could_matter):
    """A fifth of the draws of a run from the mode is there, as of the first run, or a half."""
    path, other = other_start()

    def with_draws_in_the_mode(number):
        return torch.cat([AT_MODE[:1].expand(number, -1), NEUTRAL[:1].expand(50 - number, -1)])

    base = tempering_with(0.0, with_draws_in_the_mode(inside))
    at_mode = tempering_with(0.0, with_draws_in_the_mode(10), 0.1, 20)
    check = check_mode(base, path, at_mode, other)
    assert (check.most > 0.5) == could_matter


@pytest.mark.parametrize(
    ("std_error", "trips", "less"), [(0.1, 100, 3.0), (0.1, 20, 0.0), (1.5, 100, 0.0)]
)
def test_a_run_that_finds_less_for_certain_contradicts(std_error, trips, less):
    path, other = other_start()
    base = tempering_with(3.0, AT_MODE, std_error)
    check = check_mode(base, path, tempering_with(0.0, AT_MODE, 0.1, trips), other)
    assert check.less == pytest.approx(less)
    assert check.missed == 0


def test_two_runs_agree_on_the_mass_of_a_region():
    """From either start, within the errors of both: nothing was missed."""
    path, other = other_start(torch.linspace(-2, 2, 8))
    runs = [parallel_tempering(each, 100_000, seeded_generator(3)) for each in (path, other)]
    check = check_mode(runs[0], path, runs[1], other)
    assert check.met == pytest.approx(1, abs=0.1)
    assert not check.significant
    assert check.most < 0.3


@pytest.mark.usefixtures("_estimated")
@pytest.mark.parametrize(
    ("tolerance", "steps", "chosen_by"),
    [
        (1.0, 64, "the tolerance"),
        (0.1, None, "the tolerance"),
        (0.01, 1024, "the time"),
        (0.0, 1024, "the time"),
    ],
    ids=["after the first look", "after the second", "not before the end", "never"],
)
def test_a_narrow_interval_ends_the_run(monkeypatch, tolerance, steps, chosen_by):
    """What is reported is what the same steps give, whatever was run before."""
    monkeypatch.setattr(AnnealingRuns, "affordable_steps", lambda runs, seconds: 1_024)
    monkeypatch.setattr(AnnealingRuns, "affordable_tempering_steps", lambda runs, seconds: 80_000)
    test = draws(SMALL, 100, 3)
    evaluation = estimate(SMALL, test, tolerance=tolerance)
    effort = evaluation.effort
    assert steps in (effort.num_steps, None)
    assert 64 <= effort.num_steps <= 1_024
    assert effort.tolerance == (tolerance if chosen_by == "the tolerance" else None)
    again = estimate(SMALL, test, steps=effort.num_steps, tempering_steps=effort.tempering_steps)
    assert again.average == evaluation.average
    assert as_dict(evaluation)["settings"]["steps_chosen_by"] == chosen_by
    assert ("Stopped early" in describe(evaluation)) == (chosen_by == "the tolerance")


@pytest.mark.usefixtures("_estimated")
def test_runs_from_modes_that_disagree_let_it_run_on(monkeypatch):
    """All the time is then spent, and the same numbers come out as without the first look."""
    monkeypatch.setattr(AnnealingRuns, "affordable_steps", lambda runs, seconds: 128)
    monkeypatch.setattr(AnnealingRuns, "affordable_tempering_steps", lambda runs, seconds: 80_000)

    def elsewhere(runs, tempering, progress):
        return [replace(tempering, log_z=tempering.log_z + 9 * tempering.std_error)]

    monkeypatch.setattr(AnnealingRuns, "from_strongest_modes", elsewhere)
    test = draws(SMALL, 100, 3)
    evaluation = estimate(SMALL, test, tolerance=1.0)
    assert evaluation.effort.tolerance is None
    again = estimate(SMALL, test, steps=128, tempering_steps=80_000)
    assert again.average == evaluation.average


@pytest.mark.usefixtures("_estimated")
def test_interruption_of_the_runs_from_modes_leaves_the_result(monkeypatch):
    monkeypatch.setattr(AnnealingRuns, "affordable_steps", lambda runs, seconds: 1_024)
    monkeypatch.setattr(AnnealingRuns, "affordable_tempering_steps", lambda runs, seconds: 80_000)
    calls = interrupt_call(monkeypatch, AnnealingRuns, "from_strongest_modes", 1)
    result = estimate(SMALL, draws(SMALL, 100, 3), tolerance=1.0)
    assert len(calls) == 1
    assert result.trustworthy
    assert result.effort.num_steps == 64


@pytest.mark.usefixtures("_estimated")
@pytest.mark.parametrize("step", ["_run", "_temper"])
def test_interruption_of_the_second_short_run_leaves_the_first(monkeypatch, step):
    """In its first run of AIS, when it has nothing yet, and in parallel tempering after that."""
    monkeypatch.setattr(AnnealingRuns, "affordable_steps", lambda runs, seconds: 1_024)
    monkeypatch.setattr(AnnealingRuns, "affordable_tempering_steps", lambda runs, seconds: 80_000)
    test = draws(SMALL, 100, 3)
    with monkeypatch.context() as patch:
        calls = interrupt_call(patch, AnnealingRuns, step, 0)
        first = estimate(SMALL, test, steps=64, tempering_steps=5_000)
    second_calls = interrupt_call(monkeypatch, AnnealingRuns, step, len(calls) + 1)
    # A little narrower, so that a fifth of the whole effort is tried next.
    result = estimate(SMALL, test, tolerance=0.7 * first.width)
    assert len(second_calls) == len(calls) + 1
    assert result.average == first.average
    assert (result.effort.num_steps, result.effort.tempering_steps) == (64, 5_000)
    assert result.trustworthy


@pytest.mark.usefixtures("_estimated")
def test_interruption_of_the_longer_run_leaves_the_shorter_one(monkeypatch):
    calls = interrupt_call(monkeypatch, AnnealingRuns, "_run", 4)
    result = evaluate(SMALL, draws(SMALL, 100, 3), minutes=0.01, progress=False, tolerance=1e-9)
    assert result.effort.num_steps == calls[2][1]
    assert result.source == "ladder"


@pytest.mark.usefixtures("_estimated")
def test_interruption_keeps_what_was_finished(monkeypatch):
    calls = interrupt_call(monkeypatch, AnnealingRuns, "_run", 3)
    result = evaluate(SMALL, draws(SMALL, 100, 3), minutes=0.01, progress=False)
    assert result.interrupted
    assert [run.num_steps for run in result.runs] == [num_steps for _, num_steps, *_ in calls[:2]]
    assert any("Interrupted" in finding for finding in result.warnings)


@pytest.mark.usefixtures("_estimated")
def test_interruption_of_parallel_tempering_leaves_ais_and_raise(monkeypatch):
    interrupt_call(monkeypatch, AnnealingRuns, "_temper", 1)
    # the budget's pilot is not what is interrupted
    monkeypatch.setattr(AnnealingRuns, "affordable_tempering_steps", lambda runs, seconds: 20_000)
    result = evaluate(SMALL, draws(SMALL, 100, 3), minutes=0.001, progress=False)
    assert result.interrupted
    assert result.tempering is None
    assert len(result.runs) == 1
    assert any("Interrupted" in finding for finding in result.warnings)
    stored = as_dict(result)
    assert stored["source"] == "AIS"
    assert "ladder" not in stored
    assert stored["average"]["test"] == pytest.approx(result.runs[0].bracket.upper, abs=1e-9)
    assert "Average test log-probability, by AIS" in describe(result)
    assert len(plot(result).axes) == 2


def test_command_writes_what_it_says(folder):
    output, stored = recorded("evaluate m.npz --data t.npy")
    assert f"{stored['exact']['log_z']:.3f}" in output
    assert set(stored) >= OLD_KEYS | {"exact", "verdict_word", "source", "settled", "average"}
    assert stored["average"]["interval_95"] == pytest.approx([stored["exact"]["test"]] * 2)


@pytest.mark.usefixtures("folder")
def test_no_permission(monkeypatch, refusal):
    def refuse(path, *arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("boltzmann_likelihood.files.stored._format", refuse)
    assert "path: expected a readable file" in refusal("evaluate m.npz --data t.npy")[0]


@pytest.mark.usefixtures("folder", "_estimated")
@pytest.mark.parametrize(("name", "file"), [("json", "r.json"), ("plot", "p.png")])
def test_full_disk(monkeypatch, refusal, name, file):
    """Of which `fsync` hears late, as on a network."""

    def sync(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(storage.os, "fsync", sync)
    message, output = refusal(f"evaluate m.npz --data t.npy --minutes 0.001 --{name} {file}")
    sentence = f"{name}: expected to be able to write {file}: No space left on device"
    assert message == f"paperlib: {sentence}\n"
    assert "Verdict" in output  # what was computed is not lost


@pytest.mark.parametrize("size", [1e-15, 3e-8, 0.004])
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_difference_that_prints_as_zero_is_not_shown(size, sign):
    """Whatever is printed as 0.00 with an interval from 0.00 to 0.00 tells nothing from zero."""
    values = torch.full((400,), sign * size, dtype=torch.float64)
    assert average_of(values, Uncertain(0.0)).told_from_zero == "no"
    assert average_of(values + 0.02 * sign, Uncertain(0.0)).told_from_zero == "yes"
