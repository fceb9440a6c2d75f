"""Learning DBMs: one update by its definition, pre-training, and that it learns.

Pre-training doubles inputs. `test_every_training` has checkpoints.
"""

import math
from dataclasses import replace

import pytest
import torch
from enumeration import all_states

from paperlib.estimators import exact_log_z
from paperlib.learning import (
    ContrastiveDivergence,
    DeepBoltzmannLearning,
    deep_boltzmann,
    pretrain_dbm,
    train_dbm,
    train_rbm,
)
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

DATA = all_states(4)[torch.tensor([0, 3, 3, 12, 15, 15, 12, 3, 12, 0])].to(torch.uint8)
LAYER = ContrastiveDivergence(3, epochs=2, batch_size=5, weight_cost=0.01)
RECIPE = DeepBoltzmannLearning(
    LAYER,
    replace(LAYER, num_hidden=2),
    epochs=3,
    chains=4,
    gibbs_steps=2,
    batch_size=5,
    mean_field_updates=3,
    learning_rate=0.02,
    weight_cost=0.01,
)


def train(recipe=RECIPE, seed=0, **options):
    return train_dbm(DATA, recipe, seed, dtype=torch.float64, progress=False, **options)


def test_pretraining_doubles_what_each_layer_will_hear_twice():
    dbm = pretrain_dbm(DATA, RECIPE, 7, dtype=torch.float64, progress=False)
    first, _ = train_rbm(
        DATA, replace(LAYER, upward_factor=2), 7, dtype=torch.float64, progress=False
    )
    doubled = RBM(2 * first.weights, first.visible_bias, first.hidden_bias)
    second, _ = train_rbm(
        DATA,
        replace(LAYER, num_hidden=2, downward_factor=2),
        8,
        layers_below=[doubled],
        dtype=torch.float64,
        progress=False,
    )
    assert torch.equal(dbm.weights_1, first.weights)
    assert torch.equal(dbm.weights_2, second.weights)
    assert torch.equal(dbm.hidden_bias_1, first.hidden_bias)


def test_first_updates_are_mean_field_minus_chains():
    """An epoch of two updates, written down again with the same stream of random numbers."""
    recipe = replace(RECIPE, epochs=1)
    result = train(recipe, seed=3)
    dbm = pretrain_dbm(DATA, recipe, 3, dtype=torch.float64, progress=False)
    w1 = dbm.weights_1.clone()
    w2 = dbm.weights_2.clone()
    b = dbm.visible_bias.clone()
    a1 = dbm.hidden_bias_1.clone()
    a2 = dbm.hidden_bias_2.clone()
    generator = seeded_generator(5)

    def draw(p):
        return (torch.rand(p.shape, dtype=torch.float64, generator=generator) < p).double()

    def mean_field(v, updates):
        m2 = torch.sigmoid(a2).expand(len(v), -1)
        for _ in range(updates):
            m1 = torch.sigmoid(v @ w1 + m2 @ w2.T + a1)
            m2 = torch.sigmoid(m1 @ w2 + a2)
        return m1, m2

    v = DATA[torch.randint(10, (4,), generator=generator)].double()
    # the chains' h2 starts at converged mean field
    h2 = draw(mean_field(v, 200)[1])
    velocity = [torch.zeros_like(t) for t in (w1, w2, b, a1, a2)]
    for number, index in enumerate(torch.randperm(10, generator=generator).split(5)):
        v0 = DATA[index].double()
        m1, m2 = mean_field(v0, 3)
        for _ in range(2):
            h1 = draw(torch.sigmoid(v @ w1 + h2 @ w2.T + a1))
            both = draw(torch.sigmoid(torch.cat([h1 @ w1.T + b, h1 @ w2 + a2], 1)))
            v = both[:, :4]
            h2 = both[:, 4:]
        p1 = torch.sigmoid(v @ w1 + h2 @ w2.T + a1)
        gradients = [
            v0.T @ m1 / 5 - v.T @ p1 / 4 - 0.01 * w1,
            m1.T @ m2 / 5 - p1.T @ h2 / 4 - 0.01 * w2,
            v0.mean(0) - v.mean(0),
            m1.mean(0) - p1.mean(0),
            m2.mean(0) - h2.mean(0),
        ]
        rate = 0.02 * (1 - number / 2)
        velocity = [0.5 * old + rate * new for old, new in zip(velocity, gradients, strict=True)]
        w1, w2, b, a1, a2 = (
            t + step for t, step in zip((w1, w2, b, a1, a2), velocity, strict=True)
        )
    for ours, expected in (
        (result.weights_1, w1),
        (result.weights_2, w2),
        (result.visible_bias, b),
        (result.hidden_bias_1, a1),
        (result.hidden_bias_2, a2),
    ):
        # converged mean field stops at a tolerance of 1e-5, which only decides the chains' first h2
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)


def test_centred_gradient_is_that_of_the_model_with_offsets():
    """Steepest ascent in the parameters of centred units, in the plain ones.

    It is J J' times the plain gradient.
    """
    generator = seeded_generator(1)
    positive, negative = (
        tuple(torch.rand(5, n, dtype=torch.float64, generator=generator) for n in (4, 3, 2))
        for _ in range(2)
    )
    mu, nu, xi = (layer.mean(0) for layer in positive)
    plain = deep_boltzmann._gradient(positive, negative)
    shapes = [g.shape for g in plain]
    sizes = [g.numel() for g in plain]

    def to_plain(centred):
        w1, w2, b, a1, a2 = (
            part.view(shape) for part, shape in zip(centred.split(sizes), shapes, strict=True)
        )
        # -E = (v - mu)' W1 (h1 - nu) + (h1 - nu)' W2 (h2 - xi) + biases, multiplied out
        biases = b - w1 @ nu, a1 - w1.T @ mu - w2 @ xi, a2 - w2.T @ nu
        return torch.cat([w1.flatten(), w2.flatten(), *biases])

    jacobian = torch.autograd.functional.jacobian(
        to_plain, torch.zeros(sum(sizes), dtype=torch.float64)
    )
    expected = jacobian @ jacobian.T @ torch.cat([g.flatten() for g in plain])
    ours = deep_boltzmann._centred_gradient(positive, negative)
    torch.testing.assert_close(torch.cat([g.flatten() for g in ours]), expected, rtol=0, atol=1e-14)


def log_likelihood(dbm):
    """Average ln p(v) of the data by summing over h2 and every state."""
    h2 = all_states(dbm.num_hidden_2)
    joint = dbm.log_unnormalized_joint(DATA.double()[:, None], h2[None])
    return joint.logsumexp(1).mean().item() - exact_log_z(dbm.joint_rbm)


@pytest.mark.parametrize("centred", [False, True])
def test_it_learns(centred):
    recipe = DeepBoltzmannLearning(
        ContrastiveDivergence(4, epochs=100, batch_size=10, learning_rate=0.2, weight_cost=0),
        ContrastiveDivergence(3, epochs=100, batch_size=10, learning_rate=0.2, weight_cost=0),
        epochs=1_500,
        chains=50,
        batch_size=10,
        learning_rate=0.1,
        weight_cost=0,
        centred=centred,
    )
    before = pretrain_dbm(DATA, recipe, 0, dtype=torch.float64, progress=False)
    after = train(recipe)
    # four patterns with probabilities 0.2, 0.3, 0.3, 0.2: no model exceeds minus their entropy
    best = 2 * (0.2 * math.log(0.2) + 0.3 * math.log(0.3))
    assert log_likelihood(before) < log_likelihood(after) - 0.1
    assert best - 0.25 < log_likelihood(after) < best
