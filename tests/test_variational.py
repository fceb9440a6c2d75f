"""Variational inference: bounds, fixed points, learning by enumeration, autograd, quadrature."""

import math

import pytest
import torch
from enumeration import all_states, assert_rates, bernoulli_table, normal

from paperlib.numerics import seeded_generator
from paperlib.variational import (
    block_mean_field,
    evidence_lower_bound,
    factorial_log_probs,
    kl_divergence,
    largest_stable_step,
    learn_dictionary,
    learn_sparse_coding,
    map_codes,
    mean_field,
)
from paperlib.variational.em import _exact_moments, _factorial_moments, _maximize_parameters
from paperlib.variational.map_inference import _improve_dictionary
from paperlib.variational.sparse_coding import BinarySparseCoding, LaplaceSparseCoding

H = all_states(4)


def binary_model(num_visible=3, num_hidden=4, seed=0, scale=1.0):
    return BinarySparseCoding(
        scale * normal(num_visible, num_hidden, seed=seed),
        normal(num_hidden, seed=seed + 1000),
        normal(num_visible, seed=seed + 2000).exp(),
    )


MODEL = binary_model()
V, _ = MODEL.sample(6, seeded_generator(1))


# ---- binary sparse coding


def test_log_joint_by_the_definition():
    table = MODEL.log_joint_table(V)
    prior = bernoulli_table(torch.sigmoid(MODEL.hidden_bias)[None], H).log()
    conditional = torch.distributions.Normal(H @ MODEL.weights.T, MODEL.precision.rsqrt())
    expected = prior + conditional.log_prob(V[:, None]).sum(-1)
    torch.testing.assert_close(table, expected, rtol=0, atol=1e-12)
    assert MODEL.log_prob(V).tolist() == pytest.approx(table.exp().sum(1).log().tolist(), abs=1e-12)


def test_density_integrates_to_one():
    model = BinarySparseCoding([[1.0, -0.5]], [0.3, -1.0], [2.0])
    grid = torch.linspace(-12, 12, 4801, dtype=torch.float64)[:, None]
    mass = torch.trapezoid(model.log_prob(grid).exp(), grid[:, 0])
    assert mass.item() == pytest.approx(1, abs=1e-12)


def test_samples_have_the_models_moments():
    v, h = MODEL.sample(40_000, seeded_generator(2))
    on = torch.sigmoid(MODEL.hidden_bias)
    variance = MODEL.weights.square() @ (on * (1 - on)) + 1 / MODEL.precision
    # 7 means, 4 standard errors each
    assert_rates(h.mean(0), on, 40_000, errors=4)
    assert ((v.mean(0) - MODEL.weights @ on).abs() < 4 * (variance / 40_000).sqrt()).all()
    # the relative standard error of a variance from 40,000 nearly Gaussian draws is 0.7 %
    torch.testing.assert_close(v.var(0), variance, rtol=0.03, atol=0)


def test_bound_is_equation_19_36_and_the_sum_over_states():
    means = torch.rand(6, 4, dtype=torch.float64, generator=seeded_generator(3))
    bound = MODEL.lower_bound(V, means)
    enumerated = evidence_lower_bound(MODEL.log_joint_table(V), factorial_log_probs(means, H))
    torch.testing.assert_close(bound, enumerated, rtol=0, atol=1e-12)
    w = MODEL.weights
    b = MODEL.hidden_bias
    beta = MODEL.precision
    for n in range(6):  # the sums as they are printed
        m = means[n]
        v = V[n]
        printed = sum(
            m[i] * (torch.sigmoid(b[i]).log() - m[i].log())
            + (1 - m[i]) * (torch.sigmoid(-b[i]).log() - (1 - m[i]).log())
            for i in range(4)
        )
        for i in range(3):
            pairs = sum(
                w[i, j] ** 2 * m[j]
                + sum(w[i, j] * w[i, k] * m[j] * m[k] for k in range(4) if k != j)
                for j in range(4)
            )
            square = v[i] ** 2 - 2 * v[i] * (w[i] @ m) + pairs
            printed = printed + 0.5 * ((beta[i] / (2 * math.pi)).log() - beta[i] * square)
        assert bound[n].item() == pytest.approx(printed.item(), abs=1e-12)


def test_bound_at_certain_units_is_the_log_joint():
    expected = MODEL.log_joint_table(V)
    torch.testing.assert_close(MODEL.lower_bound(V[:, None], H), expected, rtol=0, atol=1e-12)


def test_derivative_is_equation_19_43():
    means = torch.rand(6, 4, dtype=torch.float64, generator=seeded_generator(4))
    leaf = means.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(MODEL.lower_bound(V, leaf).sum(), leaf)
    expected = MODEL.conditional_logits(V, means) - torch.logit(means)
    torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-12)


def test_conditional_logits_of_binary_values_are_those_of_the_posterior():
    table = MODEL.log_joint_table(V)
    for s, h in enumerate(H):
        logits = MODEL.conditional_logits(V, h.expand(6, -1))
        for unit in range(4):
            bit = 2 ** (3 - unit)
            expected = table[:, s | bit] - table[:, s & ~bit]
            torch.testing.assert_close(logits[:, unit], expected, rtol=0, atol=1e-11)


# ---- the bound


def test_three_forms_of_the_bound_agree():
    log_joint = MODEL.log_joint_table(V)
    log_q = normal(6, 16, seed=5).log_softmax(-1)
    bound = evidence_lower_bound(log_joint, log_q)
    gap = kl_divergence(log_q, log_joint.log_softmax(-1))
    torch.testing.assert_close(bound, MODEL.log_prob(V) - gap, rtol=0, atol=1e-12)
    log_prior = factorial_log_probs(torch.sigmoid(MODEL.hidden_bias), H)
    reconstruction = (log_q.exp() * (log_joint - log_prior)).sum(-1)
    torch.testing.assert_close(
        bound, reconstruction - kl_divergence(log_q, log_prior), rtol=0, atol=1e-12
    )
    assert (gap > 0.1).all()


def test_bounds_of_certain_and_of_impossible_states():
    certain = torch.full((16,), -math.inf).double()
    certain[3] = 0.0
    log_joint = MODEL.log_joint_table(V[0])
    assert evidence_lower_bound(log_joint, certain) == log_joint[3]
    assert kl_divergence(certain, certain) == 0
    assert kl_divergence(log_joint.log_softmax(0), certain) == math.inf
    assert factorial_log_probs(H[3], H).tolist() == certain.tolist()


# ---- mean field


@pytest.mark.parametrize("seed", range(5))
def test_coordinate_ascent_never_falls_and_ends_at_a_maximum(seed):
    model = binary_model(4, 6, seed, scale=1.5)
    v, _ = model.sample(20, seeded_generator(seed))
    trace = mean_field(model, v)
    assert trace.converged.all()
    assert (trace.bounds.diff(dim=0) > -1e-10).all()
    assert (trace.lower_bound <= model.log_prob(v) + 1e-12).all()
    assert trace.lower_bound.tolist() == model.lower_bound(v, trace.means).tolist()
    fixed = torch.sigmoid(model.conditional_logits(v, trace.means))
    torch.testing.assert_close(trace.means, fixed, rtol=0, atol=1e-7)
    # no small step in a random direction is better
    shaken = (trace.means + 1e-3 * normal(50, 20, 6, seed=6)).clamp(0, 1)
    assert (model.lower_bound(v, shaken) <= trace.lower_bound + 1e-9).all()


def test_one_sweep_by_hand():
    means = torch.sigmoid(MODEL.hidden_bias).clone()
    for i in range(4):
        rest = V[0] - sum(MODEL.weights[:, j] * means[j] for j in range(4) if j != i)
        column = MODEL.weights[:, i]
        argument = MODEL.hidden_bias[i] + (rest * MODEL.precision * column).sum()
        means[i] = torch.sigmoid(argument - 0.5 * (column**2 * MODEL.precision).sum())  # eq. 19.45
    trace = mean_field(MODEL, V, max_sweeps=1)
    torch.testing.assert_close(trace.means[0], means, rtol=0, atol=1e-12)


def test_a_block_update_is_a_step_of_the_recurrent_network():
    """Of chapter 11, with the weights -C and what mean field hears from v."""
    means = torch.rand(6, 4, dtype=torch.float64, generator=seeded_generator(19))
    overlap = MODEL.weights.T @ (MODEL.precision[:, None] * MODEL.weights)
    constant = (V * MODEL.precision) @ MODEL.weights + MODEL.hidden_bias - overlap.diagonal() / 2
    heard = constant - means @ (overlap - overlap.diagonal().diag())
    block = block_mean_field(MODEL, V, 1.0, means, max_updates=1)
    torch.testing.assert_close(block.means, torch.sigmoid(heard), rtol=0, atol=1e-12)


def test_mean_field_is_exact_for_orthogonal_columns():
    columns = torch.linalg.qr(normal(5, 5, seed=7))[0][:, :3]
    model = BinarySparseCoding(columns, [0.5, -1.0, 0.0], [2.0] * 5)
    v, _ = model.sample(4, seeded_generator(8))
    torch.testing.assert_close(
        mean_field(model, v, max_sweeps=2).lower_bound, model.log_prob(v), rtol=0, atol=1e-12
    )
    torch.testing.assert_close(
        block_mean_field(model, v, 1.0, max_updates=1).lower_bound, model.log_prob(v)
    )


def twins(num_units, coupling):
    """Units with the same column, and a visible vector between none and all of them.

    The logit is coupling (k / 2 - sum m).
    """
    model = BinarySparseCoding(torch.ones(1, num_units).double(), [0.0] * num_units, [coupling])
    return model, torch.tensor([[num_units / 2]]).double()


@pytest.mark.parametrize("num_units", [2, 3, 6])
def test_the_largest_stable_step_is_where_damping_begins_to_work(num_units):
    model, v = twins(num_units, coupling=3.9)  # the symmetric point is a maximum up to 4
    middle = torch.full((1, num_units), 0.5).double()
    step = largest_stable_step(model, middle).item()
    assert step == pytest.approx(2 / (1 + (num_units - 1) * 3.9 / 4), abs=1e-12)
    for factor, stable in ((0.98, True), (1.02, False)):
        if factor * step > 1:
            continue
        trace = block_mean_field(model, v, factor * step, middle + 1e-3, 3_000)
        assert bool(trace.converged.all()) is stable
        if stable:
            torch.testing.assert_close(trace.means, middle, rtol=0, atol=1e-6)
        else:  # a cycle of two
            first, second, third = trace.iterates[-3:]
            assert (first - second).abs().max() > 0.01
            torch.testing.assert_close(first, third, rtol=0, atol=1e-6)


def test_twins_share_below_a_coupling_of_four_and_choose_above():
    for coupling, chooses in ((3.5, False), (4.5, True)):
        model, v = twins(2, coupling)
        means = mean_field(model, v, torch.tensor([[0.7, 0.4]]).double(), 5_000).means[0]
        assert ((means[0] - means[1]) > 0.3) == chooses


# ---- expectation maximisation


@pytest.mark.parametrize("factorial", [False, True])
def test_m_step_leaves_no_gradient(factorial):
    v, _ = MODEL.sample(200, seeded_generator(9))
    log_joint = MODEL.log_joint_table(v)
    if factorial:
        field = mean_field(MODEL, v).means
        q = factorial_log_probs(field, H).exp()
        means, seconds = _factorial_moments(field)
    else:
        q = log_joint.softmax(-1)
        means, seconds = _exact_moments(MODEL, v)
    torch.testing.assert_close(means, q @ H, rtol=0, atol=1e-12)
    torch.testing.assert_close(seconds, torch.einsum("ns,si,sj->ij", q, H, H), rtol=0, atol=1e-9)
    improved = _maximize_parameters(v, means, seconds)
    leaves = [
        parameter.clone().requires_grad_()
        for parameter in (improved.weights, improved.hidden_bias, improved.precision)
    ]
    expected = (q * BinarySparseCoding(*leaves).log_joint_table(v)).sum(-1).mean()
    for gradient in torch.autograd.grad(expected, leaves):
        assert gradient.abs().max() < 1e-9
    assert expected > (q * log_joint).sum(-1).mean() + 0.01


@pytest.mark.parametrize("factorial", [False, True])
def test_learning_never_lowers_its_bound(factorial):
    v, _ = MODEL.sample(100, seeded_generator(10))
    start = binary_model(seed=11)
    learned, bounds = learn_sparse_coding(start, v, 40, factorial)
    assert len(bounds) == 40
    assert (torch.tensor(bounds).double().diff() > -1e-9).all()
    assert bounds[-1] > bounds[0] + 0.1
    assert learned.log_prob(v).mean().item() >= bounds[-1] - 1e-9
    if not factorial:
        assert bounds[0] == pytest.approx(start.log_prob(v).mean().item(), abs=1e-12)


def test_a_unit_that_is_never_on_does_no_harm():
    v = normal(10, 3, seed=12)
    means = torch.rand(10, 2, dtype=torch.float64, generator=seeded_generator(13))
    means[:, 1] = 0
    model = _maximize_parameters(v, *_factorial_moments(means))
    assert model.weights[:, 1].abs().max() < 1e-12
    assert torch.isfinite(model.log_prob(v)).all()


# ---- sparse coding with a Laplace prior


LAPLACE = LaplaceSparseCoding(normal(3, 5, seed=14), normal(3, seed=15), 1.5, 4.0)
X = normal(8, 3, seed=16)


def test_laplace_joint_integrates_to_the_evidence():
    model = LaplaceSparseCoding([[0.8]], [0.2], 1.3, 2.0)
    grid = torch.linspace(-25, 25, 2001, dtype=torch.float64)
    joint = model.log_joint(grid[:, None, None], grid[None, :, None]).exp()
    # trapezoids of width 0.025 across the kink of the prior
    mass = torch.trapezoid(torch.trapezoid(joint, grid), grid).item()
    assert mass == pytest.approx(1, abs=1e-3)


def test_map_codes_satisfy_the_optimality_conditions():
    codes = map_codes(LAPLACE, X)
    pull = 4.0 * (X - codes @ LAPLACE.weights.T - LAPLACE.visible_bias) @ LAPLACE.weights
    on = codes != 0
    assert 0 < on.sum() < codes.numel()
    torch.testing.assert_close(pull[on], 1.5 * codes[on].sign(), rtol=0, atol=1e-6)
    assert (pull[~on].abs() <= 1.5 + 1e-9).all()


def test_map_code_of_one_unit_by_hand():
    model = LaplaceSparseCoding([[2.0]], [0.0], 3.0, 1.0)
    codes = map_codes(model, torch.tensor([[1.0], [1.5], [4.0], [-4.0]]).double())
    assert codes[:, 0].tolist() == pytest.approx([0, 0, 1.25, -1.25], abs=1e-12)


def test_no_half_round_raises_the_energy_and_columns_stay_short():
    data = normal(60, 4, seed=17)
    model, codes, energies = learn_dictionary(data, 6, 1.0, 3.0, num_rounds=15, seed=0)
    assert len(energies) == 30
    assert (torch.tensor(energies).double().diff() < 1e-10).all()
    assert (model.weights.norm(dim=0) <= 1 + 1e-12).all()
    assert energies[-1] == pytest.approx(model.energy(data, codes).mean().item(), abs=1e-12)
    # the column that is updated last is the best of its length, given the others
    again = _improve_dictionary(model, data, codes)
    for seed in range(20):
        weights = again.weights.clone()
        weights[:, -1] += 0.01 * normal(4, seed=seed)
        weights[:, -1] /= weights[:, -1].norm().clamp(min=1)
        other = LaplaceSparseCoding(weights, model.visible_bias, 1.0, 3.0)
        assert other.energy(data, codes).sum() > again.energy(data, codes).sum()


def test_energy_is_equation_19_16_for_its_constants():
    model = LaplaceSparseCoding(LAPLACE.weights, [0.0] * 3, 1.0, 2.0)
    codes = normal(8, 5, seed=18)
    printed = codes.abs().sum() + (X - codes @ model.weights.T).square().sum()
    assert model.energy(X, codes).sum().item() == pytest.approx(printed.item(), abs=1e-12)
    # with other constants the most probable code is another one
    assert (map_codes(model, X) - map_codes(LAPLACE, X)).abs().max() > 0.1
