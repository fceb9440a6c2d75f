"""Training paths: what is looked at, and the interval that the seeds give.

`test_store` has the rest.
"""

import statistics

import pytest
import torch
from enumeration import random_rbm

from boltzmann_companion.seeds import prediction_interval
from boltzmann_companion.studies import training_paths
from boltzmann_companion.studies.training_paths import ROWS, _likeliest_hidden_state, look_at
from paperlib.datasets import BinaryImages, load_digits
from paperlib.estimators import exact_log_z
from paperlib.models.bounds import search_points
from paperlib.numerics import all_states

IMAGES = BinaryImages(
    *(
        (torch.rand(count, 12, generator=torch.Generator().manual_seed(count)) < 0.3).to(
            torch.uint8
        )
        for count in (200, 50)
    ),
    load_digits(),
)


@pytest.mark.parametrize("seed", range(5))
def test_the_likeliest_hidden_state_is_the_likeliest(seed):
    rbm = random_rbm(8, 6, seed, scale=1.0)
    log_masses = rbm.log_unnormalized_hidden(all_states(6))
    state, log_mass = _likeliest_hidden_state(rbm, search_points(rbm))
    assert torch.equal(state, all_states(6)[log_masses.argmax()])
    assert log_mass == pytest.approx(log_masses.max().item(), abs=1e-12)


def test_a_look_at_an_enumerable_model_is_exact():
    rbm = random_rbm(12, 5, 1, scale=0.5)
    look = look_at(rbm, IMAGES, seed=0, progress=False)
    log_z = torch.logsumexp(rbm.log_unnormalized(all_states(12)), 0).item()
    assert look["log_z"] == pytest.approx(log_z, abs=1e-9)
    for split in ("test", "train"):
        expected = rbm.log_unnormalized(getattr(IMAGES, split)).mean().item() - log_z
        assert look[split] == pytest.approx(expected, abs=1e-9)
    largest = torch.softmax(rbm.log_unnormalized_hidden(all_states(5)), 0).max().item()
    assert look["largest_mass"] == pytest.approx(largest, abs=1e-9)
    assert look["log_z_error"] is look["warnings"] is None


def test_a_look_at_a_larger_model_is_an_estimate(monkeypatch):
    monkeypatch.setattr(training_paths, "_MAX_ENUMERATED", 4)
    rbm = random_rbm(12, 5, 1, scale=0.5)
    look = look_at(rbm, IMAGES, seed=0, schedule_fraction=0.05, progress=False)
    assert abs(look["log_z"] - exact_log_z(rbm)) < 5 * look["log_z_error"]
    assert look["num_steps"] == 725
    assert 1 < look["effective_runs"] <= 100
    # all pages of twelve pixels are blank by the standard of 784
    assert look["blank_share"] == pytest.approx(1)


def test_every_row_is_judged_from_the_releases_ten_epochs_to_the_length_that_its_ramp_implies():
    for row in ROWS.values():
        assert row.all_steps_at in training_paths.LENGTHS
        assert training_paths.JUDGED_FROM in training_paths.LENGTHS
        assert training_paths.JUDGED_FROM < row.recipe.epochs <= training_paths.JUDGED_TO
        assert "in one order" in row.recipe.summary
    ramp = ROWS["cd25-500"].recipe
    assert ramp.epochs == training_paths.JUDGED_TO
    assert [ramp.steps_in(epoch) for epoch in (240, 241, 250)] == [24, 25, 25]


def test_prediction_interval_is_the_textbooks():
    values = [1.0, 2.0, 4.0, 7.0, 11.0]
    low, high = prediction_interval(values)
    # Student's t with four degrees of freedom: 2.7764 at 97.5 %
    half = 2.776445 * statistics.stdev(values) * (6 / 5) ** 0.5
    assert (low, high) == pytest.approx((5 - half, 5 + half), abs=1e-4)
    assert prediction_interval(values, 0.5)[0] > low
