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

from paperlib import cli, storage
from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import PartitionEstimate, ReverseEstimate, ais, bracket
from paperlib.evaluation import evaluate, read_images, read_rbm
from paperlib.evaluation.annealing_runs import AnnealingRun, AnnealingRuns, FinishedRuns
from paperlib.evaluation.modes import ModeCheck, check_mode, mode_starts, most_unmet
from paperlib.evaluation.picture import plot
from paperlib.evaluation.reasons import find_reasons
from paperlib.evaluation.report import as_dict, describe
from paperlib.evaluation.targets import base_rates
from paperlib.evaluation.verdict import average_of, judge
from paperlib.experiments.study import Case, Mode, study_images
from paperlib.models import RBM, PottsRBM
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
        judgement = judge(finished, find_reasons(finished))
        low, high = runs.average(finished, judgement).interval
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


def test_the_ladder_settles_what_ais_doubts(sound):
    found = judge(sound, OPEN_BRACKET)
    assert (found.word, found.source, found.findings) == ("trusted", "ladder", ())
    assert found.settled == OPEN_BRACKET


def test_the_bracket_vouches_where_the_ladder_warns_of_itself(sound):
    warned = replace(sound, ladder=replace(sound.ladder, warnings=("Few round trips.",)))
    found = judge(warned, ())
    assert (found.word, found.source, found.findings) == ("trusted", "AIS", ())
    assert found.settled == ("The ladder: Few round trips.",)
    both = judge(warned, OPEN_BRACKET)
    assert (both.word, both.settled) == ("not trusted", ())
    assert both.findings == ("The ladder: Few round trips.", *OPEN_BRACKET)


@pytest.mark.parametrize(
    ("change", "word", "said"),
    [
        (lambda run: {"ladder": replace(run.ladder, log_z=run.ladder.log_z + 2)}, "not trusted", "differ"),
        (lambda run: {"ladder": replace(run.ladder, log_z=run.ladder.log_z - 2)}, "not trusted", "differ"),
        (lambda run: {"ladder": replace(run.ladder, std_error=0.4)}, "too noisy to tell", "to 0."),
        (lambda run: {"ladder": replace(run.ladder, std_error=math.inf)}, "too noisy to tell", "to inf"),
        (lambda run: {"ladder_mode_checks": (ModeCheck(1.0, True, 50.0),)}, "not trusted", "missed that mode"),
        (lambda run: {"ladder_mode_checks": (ModeCheck(0.0, False, 3.0),)}, "open", "3.0 effective"),
        (lambda run: {"ladder_mode_checks": (ModeCheck(0.0, False, 3.0, 0.6),)}, "open", "3.0 effective"),
        (lambda run: {"ladder_mode_checks": (ModeCheck(1.0, True, 3.0, 0.0),)}, "not trusted", "missed that mode"),
        (lambda run: {"ladder_mode_checks": ()}, "open", "was not run"),
        (lambda run: {"interrupted": True}, "not trusted", "Interrupted"),
    ],
)  # fmt: skip
def test_what_no_ladder_settles(sound, change, word, said):
    found = judge(replace(sound, **change(sound)), OPEN_BRACKET)
    assert found.word == word
    assert any(said in text for text in found.findings)
    assert not found.settled


def test_few_effective_chains_do_not_count_where_no_unmet_state_can_matter(sound):
    checks = (ModeCheck(0.0, False, 50.0), ModeCheck(0.0, False, 1.5, 0.4))
    found = judge(replace(sound, ladder_mode_checks=checks), OPEN_BRACKET)
    assert (found.word, found.source) == ("trusted", "ladder")


def test_a_mode_that_ais_is_known_to_miss_explains_what_the_ladder_has_more(sound):
    more = replace(sound.ladder, log_z=sound.ladder.log_z + 2)
    checks = (ModeCheck(2.0, True, 50.0),)
    explained = judge(replace(sound, ladder=more, mode_checks=checks), OPEN_BRACKET)
    assert (explained.word, explained.source) == ("trusted", "ladder")


@pytest.mark.parametrize(
    ("lost", "explained", "word"),
    [(0.0, 0.0, "open"), (10.0, 0.0, "trusted"), (0.0, 2.5, "open"), (0.0, 3.5, "trusted")],
)
def test_raise_may_fall_short_by_what_is_explained(sound, lost, explained, word):
    """RAISE 4 nats below; half of AIS's chains lost so many nats on their way, and the mean weight is right.

    A nat is left without remark.
    """
    best, log_z = sound.runs[-1], sound.ladder.log_z
    weights = torch.full((1000,), log_z - lost, dtype=torch.float64)
    weights[:500] = log_z + math.log(2 - math.exp(-lost))
    above = PartitionEstimate(weights, torch.zeros(1000, 8))
    below = ReverseEstimate(torch.full((10, 1), -log_z - 4).double())
    found = bracket(torch.zeros(10), torch.arange(10), above, below)
    run = AnnealingRun(best.num_steps, above, found, 1.0)
    judged = judge(replace(sound, runs=(run,)), OPEN_BRACKET, explained=explained)
    assert judged.word == word


def test_steps_fill_the_time(monkeypatch):
    runs = AnnealingRuns(SMALL, draws(SMALL, 10, 3), None, seeded_generator(0))
    # runs of K, K / 4 and K / 16 steps, and a third of K for the modes
    seconds = 0.1005 * (1 + 1 / 4 + 1 / 16 + 1 / 3)
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
    monkeypatch.setattr(runs, "_ladder", lambda steps, *_, **options: made.append(steps))
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
    assert result.runs[-1].num_steps == 32
    assert not result.trustworthy
    assert "do not rely" in describe(result)
    assert result.judgement.word == "not trusted"
    assert any(text.startswith("The ladder: ") for text in result.findings)
    assert any("open by" in finding or "vary too much" in finding for finding in result.findings)


@pytest.mark.parametrize(
    ("short", "advice"),
    [([6.0] * 10, "Give it more time"), ([0.2] * 8 + [30.0] * 2, "a few to which")],
)
def test_an_open_bracket_names_its_reason(short, advice):
    """Every image a little short of AIS, or a few of them by much."""
    log_p, gaps = torch.zeros(10).double(), torch.tensor(short).double()
    above = PartitionEstimate(torch.zeros(50).double(), torch.zeros(50, 8))
    found = bracket(log_p, torch.arange(10), above, ReverseEstimate(-gaps[:, None]))
    finished = FinishedRuns((AnnealingRun(100, above, found, 1.0),), (), interrupted=False)
    (reason,) = [text for text in find_reasons(finished) if "open by" in text]
    assert advice in reason


def run_with(log_weights, num_steps=100):
    """A run whose AIS chains have these log-weights, and whose RAISE agrees with it."""
    above = PartitionEstimate(torch.tensor(log_weights, dtype=torch.float64), torch.zeros(50, 8))
    below = torch.full((10, 1), -above.log_z, dtype=torch.float64)
    found = bracket(torch.zeros(10), torch.arange(10), above, ReverseEstimate(below))
    return AnnealingRun(num_steps, above, found, 1.0)


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
    finished = AnnealingRuns(rbm, test, base_rates(train), seeded_generator(5)).run_up_to(
        128, progress=False
    )
    best, missed = finished.runs[-1], math.log1p(math.exp(log_odds))
    assert best.bracket.verdict() == "closed"
    assert exact - best.ais.log_z == pytest.approx(missed, abs=0.15)
    found = [text for text in find_reasons(finished) if "starts at a mode" in text]
    assert len(found) == (missed > 1)
    largest = max(check.missed for check in finished.mode_checks if check.significant or missed < 1)
    assert largest == pytest.approx(missed, abs=0.15)
    # The ladder makes its round trips, and is distrusted if it has missed as much.
    judgement = judge(finished, find_reasons(finished))
    assert finished.ladder.round_trips > 100
    assert finished.ladder.log_z == pytest.approx(exact - missed, abs=0.3)
    assert judgement.word == ("not trusted" if missed > 1 else "trusted")
    told = [text for text in judgement.findings if "the ladder missed that mode" in text]
    assert len(told) == (missed > 1)


@pytest.mark.parametrize("one_hot", [False, True])
def test_only_chains_that_ended_where_no_draw_is_can_raise_ln_z(one_hot):
    """Two modes: nearly all units off, or nearly all on."""
    units = torch.tensor([[0.0] * 4, [0, 0, 0, 1], [1] * 4, [1] * 4])
    weights, visible, hidden = (
        torch.full((4, 1), 9.0),
        torch.full((4,), -4.5),
        torch.tensor([-18.0]),
    )
    model, ends = RBM(weights, visible, hidden), units
    if one_hot:
        # A site in its second state is a unit that is on.
        model = PottsRBM(*(torch.stack([0 * x, x], 1) for x in (weights, visible)), hidden)
        ends = torch.stack([1 - units, units], 2).flatten(1)
    off, _, on, _ = ends
    draws = torch.stack([off] * 3)
    heavy, light = (torch.tensor([50, 40, *last]).double() for last in ([1, -2], [-9, -9.5]))
    assert most_unmet(model, draws, 1.0, PartitionEstimate(heavy, ends)) == pytest.approx(
        math.log(2)
    )
    assert most_unmet(model, draws, 1.0, PartitionEstimate(light, ends)) == pytest.approx(
        math.log1p(math.exp(-10))
    )
    both = torch.stack([off, on])
    assert most_unmet(model, both, 1.0, PartitionEstimate(heavy, ends)) == 0


@pytest.mark.parametrize("nats", [-800.0, 0.0, 3.0, 800.0])
def test_what_a_mode_adds_is_in_nats_however_large(nats):
    path, other = BaseRatePath(SMALL), BaseRatePath(SMALL, torch.full((8,), 3.0).double())
    base = PartitionEstimate(torch.zeros(50).double(), torch.zeros(50, 8))
    check = PartitionEstimate(torch.full((50,), nats).double(), torch.ones(50, 8))
    result = check_mode(base, path, check, other)
    assert result.missed == pytest.approx(np.logaddexp(0, nats), abs=1e-12)
    # chains that ended elsewhere say nothing of the mode
    stray = PartitionEstimate(torch.full((50,), nats).double(), torch.zeros(50, 8))
    assert check_mode(base, path, stray, other) == ModeCheck(0.0, significant=False)


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
    def interrupted_ladder(self, chain_steps, on_step, check=True):
        raise KeyboardInterrupt

    test = draws(SMALL, 100, 3)
    monkeypatch.setattr(AnnealingRuns, "_ladder", interrupted_ladder)
    monkeypatch.setattr("paperlib.evaluation.annealing_runs._FRACTIONS", (1,))
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
