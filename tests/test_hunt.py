"""The hunt for numbers that are trusted and wrong: its answers, and what is counted of them."""

from __future__ import annotations

import pytest
import torch

from boltzmann_companion.records import load_result
from boltzmann_companion.studies import hunt as hunt_module
from boltzmann_companion.studies.hunt import (
    FAMILIES,
    beside,
    flipped,
    from_equal_rows,
    hunt,
    hunted_families,
    independent_modes,
    ising_in_field,
    pair,
    tied,
    transposed,
    with_modes,
)
from boltzmann_likelihood.evaluation import evaluate
from paperlib.estimators import exact_log_z
from paperlib.numerics import all_states, seeded_generator

ENUMERATED = [family for family in FAMILIES if family not in ("deep models", "two phases")]


def double(values: object) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def modes(exclusive: bool, count: int = 3, pixels: int = 3) -> torch.Tensor:
    """Weights of modes of a few pixels each."""
    columns = 9 * torch.eye(count).repeat_interleave(pixels, 0).double()
    return 2 * columns - 9 if exclusive else columns


SMALL = {
    "equal weights": tied(double([[0.6]]), 8, 7),
    "equal weights in a field": tied(double([[0.9]]), 8, 7, field=1.0),
    "four values in a field": tied(double([[0.5, 0.9], [0.7, 0.8]]), 9, 7, field=-2.0),
    "flipped": flipped(tied(double([[0.5, 0.9]]), 9, 7, field=-2.0)),
    "equal rows": from_equal_rows(torch.tensor([0, 0, 1, 1, 1, 2]), double([[1, -2, 3]] * 4), 0.0),
    "equal columns": transposed(
        from_equal_rows(torch.tensor([0, 0, 1, 1, 1, 2]), double([[1, -2, 3]] * 7), 0.0)
    ),
    "pairs": beside([pair(12.0), pair(3.0, pixels=3), tied(double([[0.6]]), 3, 2)]),
    "modes": with_modes(
        modes(False), torch.full((9,), -4.0).double(), 0.5 * modes(True)[:, :2], [0.5, 0.2, 2.0]
    ),
    "modes that exclude each other": with_modes(
        modes(True, 9, 1) + 20 * torch.eye(9).double(),
        torch.full((9,), -12.0).double(),
        torch.zeros(9, 0).double(),
        [0.3] * 9,
    ),
    "independent modes": independent_modes(
        modes(False), torch.full((9,), -4.0).double(), [0.5, 0.2, 2.0]
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_log_z_is_that_of_enumeration(name):
    model = SMALL[name]
    assert model.log_z == pytest.approx(exact_log_z(model.rbm, progress=False), abs=1e-6)


@pytest.mark.parametrize("name", SMALL)
def test_draws_are_of_the_model(name):
    """The means of ln p(v) and of every pixel, within five standard errors."""
    model = SMALL[name]
    states = all_states(model.rbm.num_visible)
    log_p = model.rbm.log_unnormalized(states) - model.log_z
    expected = log_p.exp() @ torch.cat([log_p[:, None], states], 1)
    draws = model.draws(4_000, seeded_generator(0))
    values = torch.cat([(model.rbm.log_unnormalized(draws) - model.log_z)[:, None], draws], 1)
    off = (values.mean(0) - expected).abs()
    assert (off <= 5 * values.std(0) / 4_000**0.5 + 1e-3).all()


@pytest.mark.parametrize("side", [3, 4])
@pytest.mark.parametrize("field", [0.0, 2.0])
def test_the_ising_model_in_a_field(side, field):
    model = ising_in_field(side, 0.5, field, seeded_generator(1))
    assert model.log_z == pytest.approx(exact_log_z(model.rbm, progress=False), abs=0.02)
    states = all_states(side**2)
    probs = (model.rbm.log_unnormalized(states) - model.log_z).exp()
    on = model.draws(4_000, seeded_generator(0)).sum(1)
    expected = (probs @ states.sum(1)).item()
    assert on.mean().item() == pytest.approx(expected, abs=5 * on.std().item() / 4_000**0.5 + 0.05)


def test_modes_have_the_masses_that_were_asked_for():
    bias = torch.full((9,), -4.0).double()
    model = with_modes(modes(True), bias, torch.zeros(9, 0).double(), [0.5, 0.2, 2.0])
    alone = torch.cat([torch.zeros(1, 3), torch.eye(3)]).double()
    masses = model.rbm.log_unnormalized_hidden(alone)
    torch.testing.assert_close((masses[1:] - masses[0]).exp(), double([0.5, 0.2, 2.0]))


def test_many_modes_must_exclude_each_other():
    columns = modes(False, 9, 1)
    bias = torch.full((9,), -4.0).double()
    with pytest.raises(ValueError, match="no two are on together"):
        with_modes(columns, bias, torch.zeros(9, 0).double(), [1.0] * 9)


def test_what_is_expected_of_other_images_is_the_mean_of_many():
    """Of draws of the model, as training images are, and of test images of another kind."""
    scores = []
    for hunted in map(FAMILIES["few images"], range(20)):
        log_p = hunted.model.log_unnormalized(hunted.test.double())
        log_z = log_p.mean().item() - hunted.truth
        if "of another kind" not in hunted.name:
            log_p = hunted.model.log_unnormalized(hunted.train.double())
        error = log_p.std().item() / len(log_p) ** 0.5
        if len(log_p) >= 100:
            scores.append((log_p.mean().item() - log_z - hunted.others) / error)
    assert len(scores) > 12
    assert max(map(abs, scores)) < 4


@pytest.mark.parametrize("family", ENUMERATED)
def test_a_model_depends_on_its_number_alone(family):
    alone = FAMILIES[family](1)
    FAMILIES[family](0)
    after_another = FAMILIES[family](1)
    assert alone.name == after_another.name
    assert alone.name.startswith("2: ")
    assert torch.equal(alone.test, after_another.test)
    assert alone.truth == after_another.truth


def test_rows(tmp_path, monkeypatch):
    rows = hunt(["few images"], 2, steps=32, folder=tmp_path, progress=False)
    for row, hunted in zip(rows, map(FAMILIES["few images"], range(2)), strict=True):
        assert set(row) == set(load_result("hunt", "paper")["columns"])
        assert (row["model"], row["others"]) == (hunted.name, hunted.others)
        assert row["value_error"] == row["value"] - hunted.truth
        exact = evaluate(hunted.model, hunted.test, exact=False, steps=32, progress=False)
        assert row["value"] == pytest.approx(exact.average.mean, abs=1.0)
    monkeypatch.setattr(hunt_module, "_row", lambda *args: pytest.fail("evaluated again"))
    assert hunt(["few images"], 2, steps=32, folder=tmp_path, progress=False) == rows


def test_what_is_counted():
    def row(off: float, verdict: str, **values: object) -> dict[str, object]:
        return {
            "family": "made up",
            "truth": 0.0,
            "value_interval": [off - 0.1, off + 0.1],
            "value_error": off,
            "right": "yes" if abs(off) <= 0.5 else "no",
            "verdict": verdict,
            "others": None,
            "others_interval": [-2.0, 2.0],
            **values,
        }

    rows = [
        row(0.05, "trusted", others=1.0),
        row(0.05, "trusted", others=3.0),
        row(0.05, "trusted", others=3.0, others_interval=None),
        row(0.3, "trusted"),
        row(-0.7, "trusted"),
        row(0.05, "open"),
        row(9.0, "not trusted", others=1.0),
    ]
    [counts] = hunted_families(rows)
    assert set(counts) == set(load_result("hunt-families", "paper")["columns"])
    assert counts == {
        "family": "made up",
        "evaluations": 7,
        "trusted": 5,
        "trusted_wrong": 1,
        "right": 5,
        "right_doubted": 1,
        "held": 3,
        "others_given": 2,
        "others_held": 1,
    }
