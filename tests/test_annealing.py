"""Schedules, draws of a pair's first model, and starts by mean field.

`test_every_path` has what holds for all paths.
"""

import math

import torch
from enumeration import (
    all_states,
    assert_rates,
    frequencies,
    joint_log_table,
    missed_mode_rbm,
    random_rbm,
)
from walks import BIAS

from paperlib.annealing import (
    BaseRatePath,
    RBMPairPath,
    check_betas,
    mean_field_bias,
    salakhutdinov_murray_betas,
    uniform_betas,
)
from paperlib.estimators import ais, exact_log_z
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


def test_mean_field_without_weights_is_the_model_itself():
    rbm = RBM(torch.zeros(4, 3).double(), BIAS, torch.ones(3))
    torch.testing.assert_close(mean_field_bias(rbm), BIAS)


def test_mean_field_is_a_fixed_point_of_both_layers():
    rbm = random_rbm(5, 4, seed=43, scale=0.5)
    bias = mean_field_bias(rbm)
    hidden = rbm.hidden_probs(torch.sigmoid(bias))
    again = hidden @ rbm.weights.T + rbm.visible_bias
    # two decimals, and a weight of about a half on each of them
    assert (again - bias).abs().max() < 0.02


def test_a_mean_field_start_finds_what_a_uniform_one_misses():
    """As `test_ais` shows that a uniform start does."""
    rbm = missed_mode_rbm()
    truth = exact_log_z(rbm)
    betas = uniform_betas(300)
    bias = mean_field_bias(rbm)
    assert bias.abs().max() <= math.log(999) + 0.01
    estimate = ais(BaseRatePath(rbm, bias), betas, 50, seeded_generator(0))
    assert abs(estimate.log_z - truth) < 4 * estimate.std_error
    assert estimate.warnings == ()


def test_a_mean_field_start_counts_each_mode_by_its_share():
    """Two hidden units, each of which holds half of the pixels and is on in one of ten draws.

    That makes four modes with shares of 81, 9, 9 and 1 %.
    """
    weights = torch.zeros(10, 2).double()
    weights[:5, 0] = 5
    weights[5:, 1] = 5
    visible_bias = torch.full((10,), -2.0).double()
    # what five pixels add to ln f when their unit is on
    gain = 5 * (torch.nn.functional.softplus(torch.tensor([3.0, -2.0])) @ torch.tensor([1.0, -1.0]))
    rbm = RBM(weights, visible_bias, (-gain - math.log(9)).expand(2).double())
    means = joint_log_table(rbm).logsumexp(1).softmax(0) @ all_states(10)
    # A bias is rounded to two decimals, and a hidden unit is a little less sure than its mode.
    start = torch.sigmoid(mean_field_bias(rbm))
    torch.testing.assert_close(start, means, rtol=0, atol=0.003)


def test_mean_field_in_every_type(backend):
    rbm = backend.place(random_rbm(6, 4, seed=44)).to(backend.device)
    exact = mean_field_bias(random_rbm(6, 4, seed=44))
    bias = mean_field_bias(rbm)
    assert bias.dtype == rbm.dtype
    assert bias.device == rbm.device
    torch.testing.assert_close(bias.cpu().double(), exact, rtol=0, atol=0.011)
    path = BaseRatePath(rbm, bias)
    assert path.device == rbm.device
