"""DBNs: densities, samples and bound against sums over every state; greedy learning."""

import math

import pytest
import torch
from enumeration import (
    all_states,
    assert_rates,
    bernoulli_table,
    directed_table,
    frequencies,
    joint_log_table,
    log_z,
    random_rbm,
)

from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import ais, dbn_lower_bound
from paperlib.learning import ContrastiveDivergence, train_dbn, train_rbm
from paperlib.models import DBN
from paperlib.numerics import bernoulli_entropy, bernoulli_log_prob, seeded_generator

TWO_LAYERS = DBN([random_rbm(4, 3, 0), random_rbm(3, 5, 1)])
THREE_LAYERS = DBN([random_rbm(4, 3, 2), random_rbm(3, 4, 3), random_rbm(4, 3, 4)])
RANDOM_DBNS = pytest.mark.parametrize("dbn", [TWO_LAYERS, THREE_LAYERS], ids=["two", "three"])


def recognition(layer):
    """Q(above | below) of eq. 5 for every pair: [2^below, 2^above]."""
    probs = torch.sigmoid(all_states(layer.num_visible) @ layer.weights + layer.hidden_bias)
    return bernoulli_table(probs, all_states(layer.num_hidden))


def top_marginal(rbm):
    """Normalised p(h^{L-1}) of the top RBM, by summing over its hidden states."""
    return joint_log_table(rbm).logsumexp(1).softmax(0)


def exact_probs(dbn):
    """p(v) of every visible vector, layer by layer from the top."""
    probs = top_marginal(dbn.top)
    for layer in reversed(dbn.directed):
        probs = probs @ directed_table(layer)
    return probs


def exact_bound(dbn):
    """B(v) of every visible vector: the sum over all h of Q (ln p - ln Q)."""
    log_model = top_marginal(dbn.top).log()
    log_ratio = log_model  # ln p(h^{l}, ...) - ln Q(...| h^{l}), averaged over what lies above
    for layer in reversed(dbn.directed):
        q = recognition(layer)
        log_ratio = (q * (log_ratio[None] + directed_table(layer).T.log() - q.log())).sum(1)
    return log_ratio


def test_numerics_of_independent_units():
    logits = torch.tensor([[-50.0, -1.0, 0.0, 2.0, 50.0]], dtype=torch.float64)
    probs = torch.sigmoid(logits)[0, 1:4]
    entropy = -(probs * probs.log() + (1 - probs) * (1 - probs).log()).sum()
    tails = 2 * 51 * math.exp(-50)
    assert bernoulli_entropy(logits).item() == pytest.approx(entropy.item() + tails, abs=1e-14)
    assert bernoulli_entropy(torch.tensor([800.0, -800.0])).item() == 0
    states = all_states(5)
    torch.testing.assert_close(
        bernoulli_log_prob(states, logits).exp(),
        bernoulli_table(torch.sigmoid(logits), states)[0],
        rtol=1e-12,
        atol=1e-20,  # the table's 1 - p is 0 for the unit that is almost always on
    )


@RANDOM_DBNS
def test_joint_is_normalised_by_the_top_partition_function(dbn):
    widths = [layer.num_hidden for layer in dbn.directed]
    v = all_states(dbn.num_visible)
    hidden = all_states(sum(widths)).split(widths, dim=-1)
    log_joint = dbn.log_joint_unnormalized(v[:, None], [h[None] for h in hidden]) - log_z(dbn.top)
    torch.testing.assert_close(log_joint.exp().sum(1), exact_probs(dbn), rtol=1e-12, atol=0)
    assert log_joint.exp().sum().item() == pytest.approx(1, abs=1e-12)


@RANDOM_DBNS
def test_bound_agrees_with_enumeration_and_lies_below_the_truth(dbn):
    v = all_states(dbn.num_visible)
    truth = exact_probs(dbn).log()
    expected = exact_bound(dbn)
    assert (expected < truth - 0.01).all()
    estimate = dbn_lower_bound(
        dbn, v, log_z(dbn.top), num_samples=20_000, generator=seeded_generator(5)
    )
    error = estimate.expected_log_joint.std(1) / math.sqrt(20_000)
    # 16 cases: beyond 4 standard errors with probability 1e-3
    assert ((estimate.values - expected).abs() < 4 * error).all()
    assert abs(estimate.bound - expected.mean().item()) < 4 * estimate.monte_carlo_std_error


def test_a_single_layer_needs_no_bound():
    rbm = random_rbm(4, 3, 8)
    estimate = dbn_lower_bound(DBN([rbm]), all_states(4), log_z(rbm))
    truth = rbm.log_unnormalized(all_states(4)) - log_z(rbm)
    torch.testing.assert_close(estimate.values, truth, rtol=0, atol=1e-12)


def test_blocks_do_not_change_the_bound(monkeypatch):
    v = all_states(4)
    whole = dbn_lower_bound(THREE_LAYERS, v, 0.0, 7, seeded_generator(2))
    monkeypatch.setattr("paperlib.models.dbn._BLOCK", 7 * 16)
    same = dbn_lower_bound(THREE_LAYERS, v, 0.0, 7, seeded_generator(2))
    assert torch.equal(whole.values, same.values)
    monkeypatch.setattr("paperlib.models.dbn._BLOCK", 1)
    one_by_one = dbn_lower_bound(THREE_LAYERS, v, 0.0, 7, seeded_generator(2))
    torch.testing.assert_close(one_by_one.entropy, whole.entropy, rtol=0, atol=1e-12)


def test_errors_are_those_of_the_average():
    """Over 300 repetitions the average scatters as the Monte Carlo error says.

    By a chi-square with 299 degrees of freedom.
    """
    v = all_states(4)[::3]
    estimates = [dbn_lower_bound(TWO_LAYERS, v, 0.0, 4, seeded_generator(s)) for s in range(300)]
    scatter = torch.tensor([e.bound for e in estimates]).var().item()
    predicted = torch.tensor([e.monte_carlo_std_error**2 for e in estimates]).mean().item()
    assert scatter / predicted == pytest.approx(1, abs=4 * math.sqrt(2 / 299))
    values = estimates[0].values
    assert estimates[0].std_error == pytest.approx(values.std().item() / math.sqrt(len(v)))


def test_ais_estimate_brings_its_interval():
    top = TWO_LAYERS.top
    result = ais(BaseRatePath(top), uniform_betas(20), 50, seeded_generator(0))
    estimate = dbn_lower_bound(TWO_LAYERS, all_states(4), result, generator=seeded_generator(0))
    low, high = result.std_interval(3)
    assert estimate.log_z == result.log_z
    assert estimate.ais_error == (low - result.log_z, high - result.log_z)


@RANDOM_DBNS
def test_samples_have_the_right_distribution(dbn):
    count = 40_000
    samples = dbn.sample(count, 60, seeded_generator(3))
    # 16 frequencies: beyond 4.5 standard errors with probability 1e-4
    assert_rates(frequencies(samples), exact_probs(dbn), count, errors=4.5)


def test_means_are_shown_instead_of_draws():
    for dbn in (TWO_LAYERS, DBN(TWO_LAYERS.layers[:1])):
        means = dbn.sample(10, 3, seeded_generator(3), mean=True)
        assert ((means > 0) & (means < 1)).all()


def test_recognition_frequencies():
    v = all_states(4)[[5]].expand(20_000, -1)
    h1, h2 = THREE_LAYERS.recognize(v, seeded_generator(4))
    q1 = recognition(THREE_LAYERS.layers[0])[5]
    for h, probs in ((h1, q1), (h2, q1 @ recognition(THREE_LAYERS.layers[1]))):
        assert_rates(h.mean(0), probs @ all_states(h.shape[1]), len(v), errors=4)


TRAIN = all_states(4)[torch.tensor([0, 3, 3, 12, 15, 15, 12, 5])].to(torch.uint8)
RECIPE = ContrastiveDivergence(3, epochs=1, batch_size=8, weight_cost=0.0)


def test_a_dbn_grows_layer_by_layer():
    recipes = [RECIPE, ContrastiveDivergence(4, epochs=1, batch_size=8, weight_cost=0.0)]
    dbn = train_dbn(TRAIN, recipes, 5, start_transposed=True, dtype=torch.float64, progress=False)
    first, _ = train_rbm(TRAIN, recipes[0], 5, dtype=torch.float64, progress=False)
    assert dbn.layers[0].checksum() == first.checksum()
    # one small step away from the first layer's transpose
    moved = (dbn.layers[1].weights - first.weights.T).abs().max().item()
    assert 0 < moved < 0.05
