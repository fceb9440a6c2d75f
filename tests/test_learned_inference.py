"""Learned inference: chapter 12's models and networks by enumeration, autograd and quadrature."""

import math

import pytest
import torch
from enumeration import all_states, assert_rates, bernoulli_table, frequencies, normal

from paperlib.numerics import log_mean_exp, seeded_generator
from paperlib.variational import (
    Network,
    RecognitionWeights,
    ascend,
    ista,
    learn_ista,
    map_codes,
    sleep_step,
    wake_sleep,
    wake_step,
)
from paperlib.variational.sigmoid_belief_net import SigmoidBeliefNet
from paperlib.variational.sparse_coding import LaplaceSparseCoding
from paperlib.variational.vae import VAE, train_vae

V = all_states(4)
H = all_states(3)


NET = SigmoidBeliefNet(normal(4, 3, seed=1), normal(4, seed=2), normal(3, seed=3))
GUESS = RecognitionWeights(normal(4, 3, seed=4), normal(3, seed=5))


# ---- sigmoid belief net


def test_log_joint_by_the_definition():
    prior = bernoulli_table(torch.sigmoid(NET.hidden_bias)[None], H)
    conditional = bernoulli_table(torch.sigmoid(H @ NET.weights.T + NET.visible_bias), V)
    expected = (conditional.T * prior).log()
    for table in (NET.log_joint_table(V), NET.log_joint(V[:, None], H)):
        torch.testing.assert_close(table, expected, rtol=0, atol=1e-12)
    assert NET.log_prob(V).exp().sum().item() == pytest.approx(1, abs=1e-12)


def test_samples_have_the_models_probabilities():
    draws = 40_000
    v, h = NET.sample(draws, seeded_generator(6))
    expected = NET.log_joint_table(V).exp().flatten()
    # 128 frequencies
    assert_rates(frequencies(torch.cat([v, h], 1)), expected, draws, errors=5, slack=1e-4)


# ---- wake-sleep


def test_sleep_step_is_the_gradient_of_the_reverse_divergence():
    # The average over many dreams against autograd on the enumerated objective.
    joint = NET.log_joint_table(V).exp()
    leaf = GUESS.weights.clone().requires_grad_()
    on = torch.sigmoid(V @ leaf + GUESS.bias)[:, None]
    log_q = (H * on.log() + (1 - H) * (1 - on).log()).sum(-1)
    (slope,) = torch.autograd.grad((joint * log_q).sum(), leaf)
    draws = 200_000
    moved = sleep_step(NET, GUESS, draws, 1.0, seeded_generator(7))
    # an entry of the average has a standard error of at most 1 / sqrt(draws); five of these
    assert (moved.weights - GUESS.weights - slope).abs().max() < 5 / draws**0.5


def test_wake_step_is_the_gradient_of_the_bound():
    repeats = 20_000
    on = torch.sigmoid(GUESS.logits(V))[:, None]
    q = (H * on + (1 - H) * (1 - on)).prod(-1)
    leaves = [x.clone().requires_grad_() for x in (NET.weights, NET.visible_bias, NET.hidden_bias)]
    bound = (q * SigmoidBeliefNet(*leaves).log_joint_table(V)).sum(1).mean()
    slopes = torch.autograd.grad(bound, leaves)
    moved = wake_step(NET, GUESS, V.repeat(repeats, 1), 1.0, seeded_generator(8))
    for name, slope in zip(("weights", "visible_bias", "hidden_bias"), slopes, strict=True):
        step = getattr(moved, name) - getattr(NET, name)
        assert (step - slope).abs().max() < 5 / (repeats * len(V)) ** 0.5


def test_wake_sleep_learns_two_patterns():
    data = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 1]]).double().repeat(50, 1)
    start = SigmoidBeliefNet(0.1 * normal(4, 3, seed=9), torch.zeros(4), torch.zeros(3))
    blank = RecognitionWeights(torch.zeros(4, 3).double(), torch.zeros(3).double())
    model, recognition = wake_sleep(start, blank, data, 300, 0.5, seeded_generator(10), 20)
    again, _ = wake_sleep(start, blank, data, 300, 0.5, seeded_generator(10), 20)
    assert torch.equal(model.weights, again.weights)
    # independent pixels would give 4 ln 2 = 2.77 nats, the truth is ln 2 = 0.69
    assert model.log_prob(data).mean() > -1.5
    assert recognition.weights.abs().max() > 0.5


# ---- recognition networks


def test_network_by_hand():
    network = Network([3, 5, 2], seeded_generator(11))
    x = normal(7, 3, seed=12)
    by_hand = torch.tanh(x @ network.weights[0] + network.biases[0])
    by_hand = by_hand @ network.weights[1] + network.biases[1]
    assert torch.allclose(network(x), by_hand)
    assert [p.shape.numel() for p in network.parameters] == [15, 10, 5, 2]


def test_ascend_finds_the_top_of_a_parabola():
    x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    unused = torch.ones(1, dtype=torch.float64, requires_grad=True)
    goal = torch.tensor([1.0, -2.0], dtype=torch.float64)
    values = ascend([x, unused], lambda: -(x - goal).square().sum(), 500, 0.1)
    assert values[0] == pytest.approx(-5)
    assert torch.allclose(x.detach(), goal, atol=1e-3)
    assert unused.item() == 1


# ---- ISTA and LISTA


SPARSE = LaplaceSparseCoding(normal(4, 6, seed=16), normal(4, seed=17), rate=1.0, precision=3.0)
PATCHES = normal(60, 4, seed=18) * 2


def test_ista_descends_and_rests_at_the_codes_of_coordinate_descent():
    energies = torch.stack(
        [SPARSE.energy(PATCHES, ista(SPARSE, k)(PATCHES)) for k in (1, 2, 5, 20, 100)]
    )
    assert (energies.diff(dim=0) <= 1e-10).all()
    # ISTA is slow, but the codes that coordinate descent finds are a fixed point of its layer.
    codes = map_codes(SPARSE, PATCHES, max_sweeps=20_000, tolerance=1e-12)
    network = ista(SPARSE, 1)
    heard = (PATCHES - network.offset) @ network.bottom_up + codes @ network.lateral
    threshold = network.log_thresholds[0].exp().item()
    assert torch.allclose(torch.nn.functional.softshrink(heard, threshold), codes, atol=1e-8)
    assert (energies[-1] >= SPARSE.energy(PATCHES, codes)).all()


def test_ista_step_is_a_gradient_step_and_a_soft_threshold():
    # two steps from zero, the second written out with autograd
    first = ista(SPARSE, 1)(PATCHES).requires_grad_()
    curvature = torch.linalg.eigvalsh(SPARSE.weights.T @ SPARSE.weights)[-1]
    square = 0.5 * (PATCHES - first @ SPARSE.weights.T - SPARSE.visible_bias).square().sum()
    (slope,) = torch.autograd.grad(square, first)
    moved = first.detach() - slope / curvature
    threshold = 1.0 / (3.0 * curvature)
    second = torch.nn.functional.softshrink(moved, threshold.item())
    assert torch.allclose(ista(SPARSE, 2)(PATCHES), second, atol=1e-12)


def test_learned_ista_is_closer_at_equal_depth():
    codes = map_codes(SPARSE, PATCHES)
    plain = ista(SPARSE, 3)
    learned = learn_ista(plain, PATCHES, codes, 200, 0.02)
    errors = [(n(PATCHES) - codes).square().sum(-1).mean() for n in (plain, learned)]
    assert errors[1] < 0.5 * errors[0]
    assert not learned.lateral.requires_grad


# ---- variational autoencoder


def small_vae(latent=2, seed=19):
    vae = VAE(5, latent, 7, seeded_generator(seed))
    for network in (vae.decoder, vae.encoder):
        for number, weights in enumerate(network.weights):
            weights.data = normal(*weights.shape, seed=seed + number + 1)
    vae.encoder.weights[1].data *= 0.1
    return vae


def test_grid_is_a_distribution_over_images():
    for latent in (1, 2):
        images = all_states(5)
        total = small_vae(latent).log_prob_on_grid(images, 7.0, 300).exp().sum()
        # the mass of the prior beyond 7 is 1e-11, and the midpoint rule of a smooth function is
        # better than that
        assert total.item() == pytest.approx(1, abs=1e-8)


def test_bounds_rise_with_the_number_of_weights_to_the_truth():
    vae = small_vae()
    images = all_states(5)[::4]
    with torch.no_grad():
        truth = vae.log_prob_on_grid(images, 7.0, 300)
        weights = vae.log_weights(images, 40_000, seeded_generator(20))
        closed = vae.lower_bound(images, 40_000, seeded_generator(21))
    bounds = [log_mean_exp(weights.view(-1, k, len(images)), 1).mean(0) for k in (1, 10, 100)]
    assert (bounds[0] < bounds[1]).all()
    assert (bounds[1] < bounds[2]).all()
    standard_error = weights.std(0) / 40_000**0.5
    assert ((bounds[0] - closed).abs() < 5 * 1.5 * standard_error).all()
    ratio = (weights - truth).exp()
    assert ((ratio.mean(0) - 1).abs() < 5 * ratio.std(0) / 40_000**0.5).all()


def test_the_gap_of_the_bound_is_a_divergence_on_the_grid():
    vae = small_vae(latent=1)
    images = all_states(5)[3:5]
    with torch.no_grad():
        z, log_cell = vae.grid(8.0, 4_000)
        truth = vae.log_prob_on_grid(images, 8.0, 4_000)
        mean, log_width = vae.posterior(images)
        log_q = torch.distributions.Normal(mean, log_width.exp()).log_prob(z[:, None, 0, None])
        log_q = log_q.squeeze(-1)
        log_p = vae.log_joint(images, z[:, None]) - truth
        divergence = (log_q.exp() * (log_q - log_p)).sum(0) * math.exp(log_cell)
        draws = vae.log_weights(images, 100_000, seeded_generator(22))
    error = 5 * draws.std(0) / 100_000**0.5
    assert (divergence > 0).all()
    assert ((truth - divergence - draws.mean(0)).abs() < error).all()


def test_training_raises_the_exact_log_prob():
    data = torch.tensor([[1, 1, 1, 0, 0], [0, 0, 0, 1, 1]]).double().repeat(20, 1)
    generator = seeded_generator(23)
    vae = VAE(5, 1, 8, generator)
    before = vae.log_prob_on_grid(data[:2]).mean()
    train_vae(vae, data, 300, generator, batch_size=20, learning_rate=0.02)
    assert vae.log_prob_on_grid(data[:2]).mean() > before + 1.5
