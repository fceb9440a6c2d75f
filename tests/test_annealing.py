"""Schedules, draws of a pair's first model, and starts by mean field; `test_every_path` has what holds for all paths."""

import math

import torch
from enumeration import all_states, assert_rates, frequencies, missed_mode_rbm, random_rbm
from walks import BIAS

from paperlib.annealing import (
    BaseRatePath,
    MixturePath,
    RBMPairPath,
    check_betas,
    mean_field_bias,
    mean_field_mixture,
    salakhutdinov_murray_betas,
    uniform_betas,
)
from paperlib.estimators import ais, exact_hidden_samples, exact_log_z
from paperlib.models import RBM
from paperlib.numerics import seeded_generator


def test_pair_path_default_start_draws_from_model_a():
    rbm_a = random_rbm(4, 2, seed=12)
    path = RBMPairPath(rbm_a, random_rbm(4, 3, seed=13))
    state = path.sample_start(20_000, seeded_generator(3))
    p = rbm_a.log_unnormalized(all_states(4)).softmax(0)
    assert_rates(frequencies(path.units(state)), p, 20_000, errors=4.5)


def test_schedules_have_the_published_steps():
    betas = salakhutdinov_murray_betas()
    steps = betas.diff()
    assert len(betas) == 14_501
    for part, width in ((slice(0, 500), 1e-3), (slice(500, 4500), 1e-4), (slice(4500, None), 1e-5)):
        torch.testing.assert_close(
            steps[part], torch.full_like(steps[part], width), rtol=1e-9, atol=0
        )
    torch.testing.assert_close(check_betas(betas), betas, rtol=0, atol=0)
    assert uniform_betas(4).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert check_betas((0, 0.5, 1)).tolist() == [0, 0.5, 1]
    assert len(salakhutdinov_murray_betas(0.1)) == 1451


# ---- starts by mean field


def test_a_component_for_each_mode_beats_base_rates():
    """Two modes, half of Z in each, between which chains hardly cross: 40 pixels on, or all off."""
    weights = torch.full((40, 1), 6.0, dtype=torch.float64)
    rbm = RBM(weights, torch.full((40,), -3.0, dtype=torch.float64), [-120.0])
    truth = exact_log_z(rbm)
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
