"""`evaluate` and `audit` without images: ln Z alone, and no number about images."""

import math

import pytest
import torch
from enumeration import log_z, random_rbm
from evaluations import SMALL, draws, recorded, run
from typer.testing import CliRunner

from boltzmann_likelihood import cli, planted
from boltzmann_likelihood.evaluation import audit, audit_evaluation, compare, evaluate, quote
from boltzmann_likelihood.evaluation.picture import plot
from boltzmann_likelihood.evaluation.report import as_dict, describe
from boltzmann_likelihood.sources import ForeignRBM
from paperlib.errors import InputError
from paperlib.estimators import exact_log_z
from paperlib.models import DBM, DBN, RBM
from paperlib.numerics import seeded_generator


def small_dbn():
    return DBN([random_rbm(8, 6, 0), random_rbm(6, 5, 1)])


def small_dbm():
    one = random_rbm(8, 6, 2)
    two = random_rbm(6, 4, 3)
    return DBM(one.weights, two.weights, one.visible_bias, one.hidden_bias, two.hidden_bias)


MODELS = {"RBM": lambda: SMALL, "DBN": small_dbn, "DBM": small_dbm}
# What the report and the JSON of images would say.
OF_IMAGES = ("log-probability", "For scale", "for other images", "nan")


@pytest.mark.parametrize("name", MODELS)
def test_ln_z_is_exact_where_it_can_be_enumerated(name):
    model = MODELS[name]()
    evaluation = evaluate(model)
    assert evaluation.exact is not None
    assert evaluation.exact.log_z == pytest.approx(exact_log_z(model), abs=1e-9)
    assert evaluation.trustworthy
    assert not evaluation.has_images
    text = describe(evaluation)
    assert f"ln Z = {evaluation.exact.log_z:.3f}, exact." in text
    assert not [words for words in OF_IMAGES if words in text]


@pytest.mark.parametrize("start", ["mean field", "uniform", "training images"])
@pytest.mark.parametrize("name", MODELS)
def test_the_interval_holds_ln_z(name, start):
    """At 99.99 %, so that nine intervals fail by chance once in a thousand times."""
    model = MODELS[name]()
    images = torch.randint(2, (30, model.num_visible), generator=seeded_generator(1))
    evaluation = evaluate(
        model,
        train=images if start == "training images" else None,
        uniform_start=start == "uniform",
        generator=seeded_generator(4),
        steps=320,
        exact=False,
        progress=False,
    )
    low, high = evaluation.log_z_interval(0.9999)
    assert low <= exact_log_z(model) <= high
    assert evaluation.word == "trusted"
    words = {
        "mean field": "means of the model under mean field",
        "uniform": "the uniform distribution",
        "training images": "base rates of the training images",
    }
    assert evaluation.start == words[start]
    # on average one is below and the other above; what is left is noise of short runs
    assert abs(evaluation.runs[-1].bracket.gap) < 0.2


@pytest.fixture(scope="module")
def evaluation():
    return evaluate(SMALL, generator=seeded_generator(5), steps=160, exact=False, progress=False)


def test_nothing_that_is_said_is_about_images(evaluation):
    text = describe(evaluation)
    assert "no test images" in text
    assert "modes that only images would show were not looked for" in text
    assert not [words for words in OF_IMAGES if words in text]
    assert quote(evaluation).startswith(
        f"To quote: ln Z = {evaluation.known_log_z.value:.2f} nats, 95 %"
    )
    assert "4 of RAISE for each of 100 draws of the model" in quote(evaluation)
    assert f"ln Z = {evaluation.known_log_z.value:.2f}" in repr(evaluation)
    record = as_dict(evaluation)
    assert record["num_images"] == record["test_images_in_training"] == 0
    assert record["average"]["test"] is None
    assert record["average"]["interval_95"] == [None, None]
    assert record["baselines"]["uniform"] is record["baselines"]["base_rates"] is None
    assert all(row["ais"] is row["raise"] is None for row in record["estimates"])
    assert record["ladder"]["log_z"] == evaluation.known_log_z.value
    assert math.isnan(evaluation.average.mean)
    assert len(evaluation.log_unnormalized) == 0


def test_a_seed_repeats_it(evaluation):
    again = evaluate(SMALL, generator=5, steps=160, exact=False, progress=False)
    assert again.known_log_z == evaluation.known_log_z
    assert again.seed == 5


HARD = {
    "blocks": lambda: planted.block_diagonal(60, 40, 8, generator=0),
    "low rank": lambda: planted.low_rank(40, 30, strength=0.9, generator=2),
    "Ising": lambda: planted.ising_2d(8),
}


@pytest.mark.parametrize("name", HARD)
def test_planted_models_are_right(name):
    model = HARD[name]()
    evaluation = evaluate(
        model.rbm, generator=seeded_generator(0), steps=400, exact=False, progress=False
    )
    assert evaluation.word == "trusted"
    low, high = evaluation.log_z_interval(0.9999)
    assert low <= model.log_z <= high


def test_a_mode_that_the_start_does_not_know_is_not_trusted():
    base = planted.block_diagonal(60, 40, 8, generator=1).rbm
    model = planted.hidden_mode(base, log_odds=0, units=4, fraction=0.6, generator=1)
    evaluation = evaluate(
        model.rbm, generator=seeded_generator(1), steps=400, exact=False, progress=False
    )
    assert evaluation.known_log_z.value < model.log_z - 0.5
    assert evaluation.word == "not trusted"
    assert "mode" in evaluation.warnings[0]


def test_time_is_left_where_ln_z_is_known_well():
    evaluation = evaluate(
        SMALL, minutes=2, tolerance=1.0, generator=seeded_generator(0), exact=False, progress=False
    )
    assert evaluation.effort.tolerance == 1.0
    assert "Stopped early" in describe(evaluation)


def test_a_claimed_ln_z_is_audited(evaluation):
    truth = log_z(SMALL)
    assert audit(SMALL, claimed_log_z=truth).verdict == "consistent"
    assert audit(SMALL, claimed_log_z=truth + 1).verdict == "impossible"
    result = audit_evaluation(SMALL, None, evaluation, truth)
    assert result.verdict == "consistent"
    assert "the mass of the test images" not in [bound.name for bound in result.bounds]
    assert "nan" not in str(result)
    assert audit_evaluation(SMALL, None, evaluation, truth + 2).verdict == "not supported"


def test_ln_z_of_a_file_with_spins_is_that_of_the_file():
    foreign = ForeignRBM(SMALL, "spins.h5", spin_visible=True, log_z_offset=1.5)
    exact = evaluate(foreign)
    assert f"has ln Z = {log_z(SMALL) + 1.5:.3f}" in describe(exact)
    assert f"ln Z = {log_z(SMALL) + 1.5:.2f} nats" in quote(exact)
    options = {"generator": 5, "steps": 160, "exact": False, "progress": False}
    low, high = evaluate(SMALL, **options).log_z_interval(0.95)
    assert f"interval {low + 1.5:.2f} to {high + 1.5:.2f}" in quote(evaluate(foreign, **options))


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: evaluate(SMALL, weights=[1, 2]), "weights: expected test images"),
        (lambda: audit(SMALL, claimed_log_prob=-3), "claimed_log_prob: expected the test images"),
        (lambda: plot(evaluate(SMALL)), "plot: expected an evaluation of test images"),
        (lambda: compare(SMALL, SMALL, None), "test: expected"),
    ],
)
def test_what_needs_images_says_so(ask, words):
    with pytest.raises(InputError, match=words):
        ask()


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SMALL.save("m.npz")
    result, record = recorded("evaluate m.npz --seed 3")
    assert f"ln Z = {log_z(SMALL):.3f}, exact." in result
    assert record["run"]["repeat"] == "paperlib evaluate m.npz --seed 3 --device cpu"
    assert record["run"]["binarization"] == "no images"
    assert record["average"]["test"] is None
    assert "Verdict: consistent" in run(f"audit m.npz --claimed-log-z {log_z(SMALL)}")
    run("compare m.npz m.npz", 2)
    run("training m.npz m.npz", 2)


@pytest.mark.parametrize("option", ["plot", "weights"])
def test_the_command_says_what_images_are_needed_for(option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SMALL.save("m.npz")
    refused = CliRunner().invoke(cli.app, ["evaluate", "m.npz", f"--{option}", "file.svg"])
    assert isinstance(refused.exception, InputError)
    assert f"{option}: expected --data" in str(refused.exception)


def test_training_images_tell_which_layer_is_visible(tmp_path, monkeypatch):
    """Where shapes do not, as with test images."""
    monkeypatch.chdir(tmp_path)
    torch.save({"W": SMALL.weights, "b": SMALL.visible_bias, "c": SMALL.hidden_bias}, "m.pt")
    images = draws(SMALL, 5, 1)
    torch.save(images, "x.pt")
    assert f"ln Z = {log_z(SMALL):.3f}" in run("evaluate m.pt --train x.pt")


def test_float64_where_float32_is_too_coarse():
    steep = RBM(1e5 * torch.eye(3, 2), torch.zeros(3), torch.zeros(2))
    evaluation = evaluate(
        steep, generator=seeded_generator(0), steps=64, exact=False, progress=False
    )
    assert evaluation.dtype == torch.float64
    assert "float64" in describe(evaluation)
