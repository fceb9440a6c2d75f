"""Annealing paths against enumeration: densities, invariance, detailed balance, starts."""

import math

import pytest
import torch
from backends import walked_models
from enumeration import (
    all_states,
    frequencies,
    log_f_pair_table,
    log_f_table,
    log_z,
    random_rbm,
    state_numbers,
    transition_matrix,
)
from every_draw import EveryDraw

from paperlib.annealing import (
    BaseRatePath,
    RBMPairPath,
    check_betas,
    salakhutdinov_murray_betas,
    uniform_betas,
)
from paperlib.numerics import seeded_generator

BETAS = [0.0, 0.3, 0.8, 1.0]
BIAS = torch.tensor([-1.0, 0.5, 2.0, 0.0], dtype=torch.float64)
V = all_states(4)


def base_rate_path(backend=None):
    rbm = random_rbm(4, 3, seed=11)
    if backend is None:
        return BaseRatePath(rbm, BIAS)
    return BaseRatePath(backend.place(rbm), BIAS).to(backend.device)


def pair_path(backend=None):
    models = random_rbm(4, 2, seed=12), random_rbm(4, 3, seed=13)
    if backend is None:
        return RBMPairPath(*models)
    return RBMPairPath(*map(backend.place, models)).to(backend.device)


PATHS = pytest.mark.parametrize("make_path", [base_rate_path, pair_path], ids=["RBM", "pair"])


def log_f_of(start, target):
    """ln f_beta of every v, by beta."""
    if start.num_hidden:
        return lambda beta: log_f_pair_table(start, target, beta)
    return lambda beta: log_f_table(target, start.visible_bias, beta)


@PATHS
def test_densities_are_the_enumerated_ones_of_the_models_that_are_walked(make_path, backend):
    path = make_path(backend)
    log_f = log_f_of(*walked_models(path))
    state = path.state_at(V.to(backend.device))
    close = {"rtol": 0, "atol": backend.tolerance}
    for low in BETAS:
        torch.testing.assert_close(path.log_f(state, low).cpu(), log_f(low), **close)
        for high in BETAS:
            ratio = path.log_ratio(state, low, high).cpu()
            torch.testing.assert_close(ratio, log_f(high) - log_f(low), **close)


@PATHS
def test_densities_with_one_beta_for_each_chain(make_path, backend):
    """Every v at every pair of betas, all of them in one batch."""
    path = make_path(backend)
    log_f = log_f_of(*walked_models(path))
    pairs = [(low, high) for low in BETAS for high in BETAS]
    state = path.state_at(V.repeat(len(pairs), 1).to(backend.device))
    low, high = (
        torch.tensor(betas, dtype=torch.float64).repeat_interleave(len(V)).to(backend.device)
        for betas in zip(*pairs, strict=True)
    )
    close = {"rtol": 0, "atol": backend.tolerance}
    expected = torch.cat([log_f(beta) for beta, _ in pairs])
    torch.testing.assert_close(path.log_f(state, low).cpu(), expected, **close)
    expected = torch.cat([log_f(beta_to) - log_f(beta_from) for beta_from, beta_to in pairs])
    torch.testing.assert_close(path.log_ratio(state, low, high).cpu(), expected, **close)


@PATHS
def test_end_corrections_lead_from_the_rounded_models_to_the_models_themselves(make_path, backend):
    path, exact = make_path(backend), make_path()
    log_f, own = (log_f_of(*walked_models(one)) for one in (path, exact))
    state = path.state_at(V.to(backend.device))
    # hidden units that have no weights at an end contribute a factor of 2 each to f, but not to the model's Z
    twos = -math.log(2) if make_path is pair_path else 0.0
    for end in (0, 1):
        correction = path.end_correction(state, end).cpu() - (twos if end == 0 else 0.0)
        difference = own(float(end)) - log_f(float(end))
        torch.testing.assert_close(correction, difference, rtol=0, atol=backend.tolerance)
        # what is called coarse must be visibly so, wherever there are weights
        has_weights = end == 1 or make_path is pair_path
        assert (difference.abs().max() > 0.05) == (backend.coarse and has_weights)


@PATHS
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_every_draw_of_a_transition_makes_up_the_enumerated_kernel(
    make_path, beta, backend, monkeypatch
):
    path = make_path(backend)
    start, target = walked_models(path)
    expected = transition_matrix(start, target, beta)
    bits = start.num_hidden + target.num_hidden + 4
    v = V.repeat_interleave(2**bits, 0).to(backend.device)
    state = path.state_at(v)
    for _ in range(2):
        draws = EveryDraw(bits, copies=16)
        draws.replace_draws(monkeypatch)
        moved = path.transition(state, beta, backend.generator(0))
        numbers = state_numbers(path.units(moved).cpu()).view(16, -1)
        kernel = torch.zeros(16, 16).double().scatter_add_(1, numbers, draws.log_probs.exp())
        torch.testing.assert_close(kernel, expected, rtol=0, atol=backend.tolerance)
        # once more, with the memory of what has been multiplied
        state = path.state_at(v, moved)


@PATHS
def test_every_draw_of_a_transition_with_one_beta_for_each_chain(make_path, backend, monkeypatch):
    """Each v at a temperature of its own: its row of that temperature's kernel."""
    path = make_path(backend)
    start, target = walked_models(path)
    betas = BETAS * 4
    rows = [transition_matrix(start, target, beta)[v] for v, beta in enumerate(betas)]
    bits = start.num_hidden + target.num_hidden + 4
    state = path.state_at(V.repeat_interleave(2**bits, 0).to(backend.device))
    draws = EveryDraw(bits, copies=16)
    draws.replace_draws(monkeypatch)
    each = torch.tensor(betas, dtype=torch.float64).repeat_interleave(2**bits).to(backend.device)
    moved = path.transition(state, each, backend.generator(0))
    numbers = state_numbers(path.units(moved).cpu()).view(16, -1)
    kernel = torch.zeros(16, 16).double().scatter_add_(1, numbers, draws.log_probs.exp())
    torch.testing.assert_close(kernel, torch.stack(rows), rtol=0, atol=backend.tolerance)


@PATHS
@pytest.mark.parametrize("beta", BETAS)
def test_enumerated_kernel_leaves_p_beta_invariant_and_balances_in_detail(make_path, beta):
    start, target = walked_models(make_path())
    kernel = transition_matrix(start, target, beta)
    p = log_f_of(start, target)(beta).softmax(0)
    torch.testing.assert_close(kernel.sum(1), torch.ones(16).double(), rtol=0, atol=1e-12)
    torch.testing.assert_close(p @ kernel, p, rtol=0, atol=1e-12)
    flow = p[:, None] * kernel
    torch.testing.assert_close(flow, flow.T, rtol=0, atol=1e-12)


@PATHS
def test_sampled_transitions_follow_the_enumerated_kernel(make_path, backend):
    path, beta, count = make_path(backend), 0.7, 10_000
    start, target = walked_models(path)
    v = V.repeat_interleave(count, 0).to(backend.device)
    moved = path.reverse_transition(path.state_at(v), beta, backend.generator(5))
    found = frequencies(path.units(moved).cpu().view(16, count, 4))
    kernel = transition_matrix(start, target, beta)
    # 256 comparisons at 5 standard errors, plus 1/count where the normal approximation is poor: one failure in 5,000, and the
    # seeds are fixed
    error = 5 * (kernel * (1 - kernel) / count).sqrt() + 1 / count
    assert ((found - kernel).abs() < error).all()


def test_base_rate_start_has_its_closed_form_partition_function_and_samples():
    path = base_rate_path()
    log_f, rbm = log_f_of(*walked_models(path)), walked_models(path)[1]
    assert path.log_z_start == pytest.approx(log_f(0.0).logsumexp(0).item(), abs=1e-12)
    assert log_f(1.0).logsumexp(0).item() == pytest.approx(log_z(rbm), abs=1e-12)
    state = path.sample_start(50_000, seeded_generator(2))
    expected = torch.sigmoid(BIAS)
    error = 4.5 * (expected * (1 - expected) / 50_000).sqrt()
    assert ((path.units(state).mean(0) - expected).abs() < error).all()


def test_pair_path_corrects_for_different_numbers_of_hidden_units():
    path = pair_path()
    rbm_a, rbm_b = walked_models(path)
    log_f = log_f_of(rbm_a, rbm_b)
    raw = (log_f(1.0).logsumexp(0) - log_f(0.0).logsumexp(0)).item()
    truth = log_z(rbm_b) - log_z(rbm_a)
    # What the weights estimate is off by 2^{M_A - M_B}, the slip of section 3.2.
    assert raw - truth == pytest.approx((2 - 3) * math.log(2), abs=1e-12)
    state = path.state_at(all_states(4))
    corrected = raw - path.end_correction(state, 0) + path.end_correction(state, 1)
    torch.testing.assert_close(
        corrected, torch.full((16,), truth, dtype=torch.float64), rtol=0, atol=1e-12
    )


def test_pair_path_default_start_draws_from_model_a():
    path = pair_path()
    rbm_a, _ = walked_models(path)
    state = path.sample_start(20_000, seeded_generator(3))
    p = rbm_a.log_unnormalized(all_states(4)).softmax(0)
    found = frequencies(path.units(state))
    assert ((found - p).abs() < 4.5 * (p * (1 - p) / 20_000).sqrt()).all()


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
