"""Paths from a mixture, and starts by mean field; `test_every_path` has what holds for all paths."""

import math

import torch
from enumeration import missed_mode_rbm, random_rbm
from walks import BIAS

from paperlib.annealing import (
    BaseRatePath,
    MixturePath,
    mean_field_bias,
    mean_field_mixture,
    uniform_betas,
)
from paperlib.estimators import ais, exact_hidden_samples, exact_log_z
from paperlib.models import RBM
from paperlib.numerics import seeded_generator


def two_modes():
    """Two modes, half of Z in each, between which chains hardly cross: 40 pixels on, or all off."""
    weights = torch.full((40, 1), 6.0, dtype=torch.float64)
    rbm = RBM(weights, torch.full((40,), -3.0, dtype=torch.float64), [-120.0])
    return rbm, exact_log_z(rbm)


def test_a_component_for_each_mode_beats_base_rates():
    rbm, truth = two_modes()
    train, _ = exact_hidden_samples(rbm, 200, seeded_generator(5))
    rates = train.mean(0)
    assert ((rates > 0.3) & (rates < 0.7)).all()
    betas = uniform_betas(30)
    by_rates = ais(BaseRatePath(rbm, torch.logit(rates)), betas, 200, seeded_generator(6))
    by_modes = ais(MixturePath(rbm, mean_field_mixture(rbm)), betas, 200, seeded_generator(6))
    assert abs(by_modes.log_z - truth) < 4 * by_modes.std_error
    assert by_modes.std_error < 0.05
    # the truth lies ten times farther from the other, or its weights say nothing
    assert abs(by_rates.log_z - truth) > 10 * by_modes.std_error


# ---- mean field


def test_mean_field_without_weights_is_the_model_itself():
    rbm = RBM(torch.zeros(4, 3).double(), BIAS, torch.ones(3))
    torch.testing.assert_close(mean_field_bias(rbm), BIAS)
    mixture = mean_field_mixture(rbm)
    assert mixture.num_components == 1
    torch.testing.assert_close(mixture.logits[0], BIAS)


def test_mean_field_is_a_fixed_point_of_both_layers():
    rbm = random_rbm(5, 4, seed=43, scale=0.5)
    mixture = mean_field_mixture(rbm)
    for logits in mixture.logits:
        hidden = rbm.hidden_probs(torch.sigmoid(logits))
        again = hidden @ rbm.weights.T + rbm.visible_bias
        # two decimals, and a weight of about a half on each of them
        assert (again - logits).abs().max() < 0.02


def test_a_mean_field_start_finds_what_a_uniform_one_misses():
    """As `test_ais` shows that a uniform start does."""
    rbm = missed_mode_rbm()
    truth, betas = exact_log_z(rbm), uniform_betas(300)
    bias = mean_field_bias(rbm)
    assert bias.abs().max() <= math.log(999) + 0.01
    found = ais(BaseRatePath(rbm, bias), betas, 50, seeded_generator(0))
    assert abs(found.log_z - truth) < 4 * found.std_error
    assert found.warnings == ()


def test_mean_field_in_every_type(backend):
    rbm = backend.place(random_rbm(6, 4, seed=44)).to(backend.device)
    exact = mean_field_bias(random_rbm(6, 4, seed=44))
    bias, mixture = mean_field_bias(rbm), mean_field_mixture(rbm, num_components=2)
    assert bias.dtype == rbm.dtype
    assert bias.device == mixture.logits.device == rbm.device
    torch.testing.assert_close(bias.cpu().double(), exact, rtol=0, atol=0.011)
    assert mixture.num_components <= 2
    path = BaseRatePath(rbm, bias)
    assert path.device == rbm.device
