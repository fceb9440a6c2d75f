"""AIS against enumeration: exact expectation of the weights, sampled means, coverage, and warnings."""

import itertools
import math

import pytest
import torch
from enumeration import (
    WeightlessRBM,
    log_f_pair_table,
    log_f_table,
    log_z,
    random_rbm,
    transition_matrix,
)

from paperlib.annealing import BaseRatePath, RBMPairPath, uniform_betas
from paperlib.estimators import (
    PartitionEstimate,
    ais,
    exact_hidden_samples,
    exact_log_z,
    importance_sampling,
    log_z_lower_bound,
)
from paperlib.estimators.estimate import find_warnings
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

BIAS = torch.tensor([-1.0, 0.5, 2.0, 0.0], dtype=torch.float64)


def weight_moments(log_f, kernel, betas):
    """E[w] and E[w^2] of AIS as products of transition matrices: no sampling anywhere."""
    p = log_f(0.0).softmax(0)
    moments = []
    for power in (1, 2):
        mass = p.clone()
        for low, high in itertools.pairwise(betas):
            ratio = (log_f(high) - log_f(low)).exp()
            mass = (mass * ratio**power) @ kernel(high)
        moments.append(mass.sum())
    return moments


def base_rate_problem():
    rbm = random_rbm(4, 3, seed=21)
    return (
        BaseRatePath(rbm, BIAS),
        lambda beta: log_f_table(rbm, BIAS, beta),
        lambda beta: transition_matrix(WeightlessRBM(BIAS), rbm, beta),
        log_z(rbm),
    )


def pair_problem():
    rbm_a, rbm_b = random_rbm(4, 2, seed=22), random_rbm(4, 3, seed=23)

    def sample_a(num_chains, generator):
        return exact_hidden_samples(rbm_a, num_chains, generator)[0]

    return (
        RBMPairPath(rbm_a, rbm_b, sample_a=sample_a),
        lambda beta: log_f_pair_table(rbm_a, rbm_b, beta),
        lambda beta: transition_matrix(rbm_a, rbm_b, beta),
        log_z(rbm_b) - log_z(rbm_a),
    )


PROBLEMS = pytest.mark.parametrize("problem", [base_rate_problem, pair_problem])


@PROBLEMS
@pytest.mark.parametrize("num_steps", [1, 2, 5, 20])
def test_mean_and_variance_of_weights_equal_the_enumerated_ones(problem, num_steps):
    path, log_f, kernel, truth = problem()
    betas = uniform_betas(num_steps).tolist()
    mean, square = weight_moments(log_f, kernel, betas)
    log_mean = mean.log().item() + path.log_z_start
    assert log_mean == pytest.approx(truth, abs=1e-12)  # unbiased for every K

    count = 20_000
    estimate = ais(path, betas, count, seeded_generator(num_steps))
    ratio = (estimate.log_weights - truth).exp()
    relative_std = (square / mean**2 - 1).sqrt() / math.sqrt(count)
    assert abs(ratio.mean() - 1) < 4 * relative_std
    # The sample variance of skewed weights is itself noisy: 20 % is 4 of its own standard errors here.
    assert estimate.relative_std == pytest.approx(relative_std.item(), rel=0.2)


def test_importance_sampling_is_ais_in_one_step():
    path, *_ = base_rate_problem()
    one = importance_sampling(path, 50, seeded_generator(1))
    other = ais(path, [0, 1], 50, seeded_generator(1))
    assert torch.equal(one.log_weights, other.log_weights)


def test_zero_weights_make_every_weight_exact():
    rbm = RBM(torch.zeros(6, 4).double(), torch.linspace(-1, 1, 6).double(), torch.ones(4).double())
    estimate = ais(BaseRatePath(rbm, rbm.visible_bias), uniform_betas(3), 10, seeded_generator(0))
    expected = math.log(2) * 0 + torch.log1p(rbm.visible_bias.exp()).sum().item()
    expected += 4 * math.log1p(math.e)
    assert estimate.log_weights.tolist() == pytest.approx([expected] * 10, abs=1e-12)
    assert estimate.effective_sample_size == pytest.approx(10)
    assert estimate.interval() == pytest.approx((expected, expected), abs=1e-9)


def test_final_states_follow_the_annealed_distribution():
    path, log_f, kernel, _ = base_rate_problem()
    betas = uniform_betas(3).tolist()
    p = log_f(0.0).softmax(0)
    for beta in betas[1:]:
        p = p @ kernel(beta)
    count = 50_000
    final = ais(path, betas, count, seeded_generator(4)).final_visible
    index = (final * 2.0 ** torch.arange(3, -1, -1)).sum(1).long()
    frequencies = torch.bincount(index, minlength=16) / count
    assert ((frequencies - p).abs() < 4.5 * (p * (1 - p) / count).sqrt()).all()


def test_three_sigma_interval_covers_as_often_as_it_says():
    rbm = random_rbm(6, 4, seed=24)
    truth = log_z(rbm)
    path, betas = BaseRatePath(rbm), uniform_betas(50)
    covered = 0
    for seed in range(200):
        low, high = ais(path, betas, 100, seeded_generator(seed)).interval(3)
        covered += low <= truth <= high
    # Nominal 99.7 %: at most 4 misses of 200 happen with probability 0.9998.
    assert covered >= 196


def test_same_generator_gives_the_same_weights_and_none_a_fresh_one():
    path, *_ = base_rate_problem()
    first, second = (ais(path, [0, 0.5, 1], 20, seeded_generator(7)) for _ in range(2))
    assert torch.equal(first.log_weights, second.log_weights)
    state = torch.get_rng_state()
    fresh = [ais(path, [0, 0.5, 1], 20).log_weights for _ in range(2)]
    assert not torch.equal(*fresh)
    assert torch.equal(torch.get_rng_state(), state)  # the global generator was left alone


def test_float32_weights_agree_with_float64_ones_on_the_same_states():
    rbm = random_rbm(50, 30, seed=25, scale=0.5)
    betas = uniform_betas(1000).tolist()
    v = (torch.rand(40, 50, generator=seeded_generator(0)) < 0.5).double()
    sums = []
    for dtype in (torch.float32, torch.float64):
        path = BaseRatePath(rbm.to(dtype=dtype))
        state = path.state_at(v.to(dtype))
        steps = itertools.pairwise(betas)
        sums.append(sum(path.log_ratio(state, low, high) for low, high in steps))
    # 1,000 steps lose less than a thousandth of a nat; plain float32 differences lose ten times more.
    torch.testing.assert_close(sums[0], sums[1], rtol=0, atol=1e-3)


def test_estimate_intervals_and_effective_sample_size():
    estimate = PartitionEstimate(torch.log(torch.tensor([1.0, 3.0]).double()), torch.zeros(2, 1))
    assert estimate.log_z == pytest.approx(math.log(2))
    assert estimate.relative_std == pytest.approx(0.5)  # sample std sqrt(2), mean 2, two chains
    assert estimate.interval(1) == pytest.approx((math.log(1), math.log(3)))
    assert estimate.interval(3) == pytest.approx((-math.inf, math.log(5)))
    assert estimate.effective_sample_size == pytest.approx(16 / 10)
    lone = PartitionEstimate(torch.zeros(1).double(), torch.zeros(1, 1))
    assert lone.interval() == (-math.inf, math.inf)


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_lower_bound_never_exceeds_the_truth(scale):
    for seed in range(20):
        rbm = random_rbm(5, 4, seed=seed, scale=scale)
        starts = (torch.rand(8, 5, generator=seeded_generator(seed)) < 0.5).double()
        bound, truth = log_z_lower_bound(rbm, starts), log_z(rbm)
        assert bound <= truth + 1e-10
        assert bound >= truth - 1.5  # and is of use: at most 1.5 nats below, over all 60 models


def missed_mode_rbm():
    """Most of Z lies in a mode that chains from random pixels meet too late: 60 pixels on, held by one hidden unit."""
    num_visible = 100
    weights = torch.zeros(num_visible, 2, dtype=torch.float64)
    weights[:60, 0] = 3.0
    weights[60:, 0] = -3.0
    weights[:, 1] = 0.05
    bias = torch.full((num_visible,), -0.2, dtype=torch.float64)
    return RBM(weights, bias, torch.tensor([-105.0, 0.0], dtype=torch.float64))


@pytest.mark.parametrize(("missing", "shown"), [(0.004, "0.004"), (0.1234, "0.1"), (12.34, "12.3")])
def test_warning_says_how_much_is_missing(missing, shown):
    estimate = PartitionEstimate(torch.zeros(2).double(), torch.zeros(2, 1), lower_bound=missing)
    (warning,) = find_warnings(estimate, uniform_start=False)
    assert f"too low by at least {shown} nats" in warning


def test_missed_mode_is_noticed_with_small_error_bars_and_repaired_by_base_rates():
    rbm = missed_mode_rbm()
    truth = exact_log_z(rbm)
    betas = uniform_betas(1000)
    missed = ais(BaseRatePath(rbm), betas, 100, seeded_generator(0))
    low, high = missed.interval(3)
    assert high < truth - 5  # the failure is real: many nats low,
    assert high - low < 1  # with error bars that suggest nothing,
    assert any("too low by at least" in warning for warning in missed.warnings)  # and noticed
    v, _ = exact_hidden_samples(rbm, 1000, seeded_generator(1))
    frequency = (v.mean(0) * 1000 + 5) / 1010
    found = ais(BaseRatePath(rbm, torch.logit(frequency)), betas, 100, seeded_generator(0))
    assert found.interval(3)[0] <= truth <= found.interval(3)[1]
    assert found.warnings == ()


def test_wild_weights_and_single_chains_are_warned_about():
    rbm = random_rbm(40, 20, seed=26, scale=1.5)
    wild = importance_sampling(BaseRatePath(rbm), 100, seeded_generator(0))
    assert any("vary too much" in warning for warning in wild.warnings)
    single = ais(BaseRatePath(rbm), uniform_betas(5), 1, seeded_generator(0))
    assert any("One chain" in warning for warning in single.warnings)
