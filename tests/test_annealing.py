"""Annealing paths against enumeration: densities, invariance, detailed balance, starts."""

import math

import pytest
import torch
from enumeration import (
    WeightlessRBM,
    all_states,
    log_f_pair_table,
    log_f_table,
    log_z,
    random_rbm,
    transition_matrix,
)

from paperlib.annealing import (
    BaseRatePath,
    RBMPairPath,
    check_betas,
    salakhutdinov_murray_betas,
    uniform_betas,
)
from paperlib.numerics import seeded_generator

BETAS = [0.0, 0.3, 0.8, 1.0]


def base_rate_case():
    rbm = random_rbm(4, 3, seed=11)
    bias = torch.tensor([-1.0, 0.5, 2.0, 0.0], dtype=torch.float64)
    start = WeightlessRBM(bias)
    return BaseRatePath(rbm, bias), start, rbm, lambda beta: log_f_table(rbm, bias, beta)


def pair_case():
    rbm_a, rbm_b = random_rbm(4, 2, seed=12), random_rbm(4, 3, seed=13)
    return (
        RBMPairPath(rbm_a, rbm_b),
        rbm_a,
        rbm_b,
        lambda beta: log_f_pair_table(rbm_a, rbm_b, beta),
    )


CASES = pytest.mark.parametrize("case", [base_rate_case, pair_case])


@CASES
def test_log_ratio_equals_the_difference_of_enumerated_densities(case):
    path, _, _, log_f = case()
    state = path.state_at(all_states(4))
    for low in BETAS:
        for high in BETAS:
            expected = log_f(high) - log_f(low)
            torch.testing.assert_close(
                path.log_ratio(state, low, high), expected, rtol=0, atol=1e-12
            )


@CASES
@pytest.mark.parametrize("beta", BETAS)
def test_enumerated_kernel_leaves_p_beta_invariant_and_balances_in_detail(case, beta):
    _, start, rbm, log_f = case()
    kernel = transition_matrix(start, rbm, beta)
    p = log_f(beta).softmax(0)
    torch.testing.assert_close(kernel.sum(1), torch.ones(16).double(), rtol=0, atol=1e-12)
    torch.testing.assert_close(p @ kernel, p, rtol=0, atol=1e-12)
    flow = p[:, None] * kernel
    torch.testing.assert_close(flow, flow.T, rtol=0, atol=1e-12)


@CASES
@pytest.mark.parametrize("direction", ["transition", "reverse_transition"])
@pytest.mark.parametrize("beta", [0.3, 1.0])
def test_sampled_transitions_follow_the_enumerated_kernel(case, direction, beta):
    path, start, rbm, _ = case()
    count = 20_000
    v = all_states(4).repeat_interleave(count, 0)
    moved = getattr(path, direction)(path.state_at(v), beta, seeded_generator(5))
    index = (path.visible(moved) * 2.0 ** torch.arange(3, -1, -1)).sum(1).long().view(16, count)
    frequencies = torch.stack([torch.bincount(row, minlength=16) for row in index]) / count
    kernel = transition_matrix(start, rbm, beta)
    # 5 standard errors: 256 comparisons; plus 1/count where the normal approximation is poor
    error = 5 * (kernel * (1 - kernel) / count).sqrt() + 1 / count
    assert ((frequencies - kernel).abs() < error).all()


def test_base_rate_start_has_its_closed_form_partition_function_and_samples():
    path, _, rbm, log_f = base_rate_case()
    assert path.log_z_start == pytest.approx(log_f(0.0).logsumexp(0).item(), abs=1e-12)
    assert log_f(1.0).logsumexp(0).item() == pytest.approx(log_z(rbm), abs=1e-12)
    state = path.sample_start(50_000, seeded_generator(2))
    expected = torch.sigmoid(torch.tensor([-1.0, 0.5, 2.0, 0.0]).double())
    error = 4.5 * (expected * (1 - expected) / 50_000).sqrt()
    assert ((path.visible(state).mean(0) - expected).abs() < error).all()


def test_pair_path_corrects_for_different_numbers_of_hidden_units():
    path, rbm_a, rbm_b, log_f = pair_case()
    raw = (log_f(1.0).logsumexp(0) - log_f(0.0).logsumexp(0)).item()
    truth = log_z(rbm_b) - log_z(rbm_a)
    # What the weights estimate is off by 2^{M_A - M_B}, the slip of section 3.2.
    assert raw - truth == pytest.approx((2 - 3) * math.log(2), abs=1e-12)
    assert raw + path.log_z_start == pytest.approx(truth, abs=1e-12)


def test_pair_path_default_start_draws_from_model_a():
    path, rbm_a, _, _ = pair_case()
    state = path.sample_start(20_000, seeded_generator(3))
    p = rbm_a.log_unnormalized(all_states(4)).softmax(0)
    index = (path.visible(state) * 2.0 ** torch.arange(3, -1, -1)).sum(1).long()
    frequencies = torch.bincount(index, minlength=16) / 20_000
    assert ((frequencies - p).abs() < 4.5 * (p * (1 - p) / 20_000).sqrt()).all()


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
