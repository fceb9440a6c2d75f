"""RAISE: its limit and its errors; `test_every_path` has the expectation of its weights."""

import math

import pytest
import torch
from enumeration import all_states, random_rbm
from walks import base_rates

from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import raise_log_prob
from paperlib.numerics import seeded_generator

RBM = random_rbm(4, 3, 11)
V = all_states(4)


def test_data_from_the_model_lie_between_raise_and_ais():
    """All trajectories of two steps: p_fwd = w q_rev, and each errs to its side by a divergence."""
    walk = base_rates()
    states, _ = walk.path.begin_reverse(
        V, uniform_betas(2).tolist(), seeded_generator(0), lambda _: None
    )
    f0 = walk.path.log_f(states, 0.0)
    f1 = walk.path.log_f(states, 0.5)
    f2 = walk.path.log_f(states, 1.0)
    first = walk.kernel(0.5)
    second = walk.kernel(1.0)
    target = f2.softmax(0)
    # axes: x_0, x_1, x_2
    forward = f0.softmax(0)[:, None, None] * first[:, :, None] * second[None]
    backward = first.T[:, :, None] * second.T[None]
    log_w = f2 - walk.path.log_z_start + (f1 - f2)[:, None] + (f0 - f1)[:, None, None]
    torch.testing.assert_close(forward, log_w.exp() * backward, rtol=1e-10, atol=0)
    r = target * backward
    truth = (target * target.log()).sum()
    low = (r * log_w).sum()
    high = (target * f2).sum() - (forward * (f2 - log_w)).sum()
    torch.testing.assert_close(truth - low, (r * (r / forward).log()).sum())
    torch.testing.assert_close(high - truth, (forward * (forward / r).log()).sum())
    assert low < truth < high


def test_standard_errors():
    """Over 200 repetitions the average scatters as the Monte Carlo error says.

    By a chi-square with 199 degrees of freedom.
    """
    betas = uniform_betas(10)
    path = BaseRatePath(RBM)
    estimates = [raise_log_prob(path, V, betas, 200, seeded_generator(s)) for s in range(200)]
    scatter = torch.tensor([e.mean for e in estimates]).var().item()
    predicted = torch.tensor([e.monte_carlo_std_error**2 for e in estimates]).mean().item()
    assert scatter / predicted == pytest.approx(1, abs=4 * math.sqrt(2 / 199))
    log_prob = estimates[0].log_prob
    assert estimates[0].std_error == pytest.approx(log_prob.std().item() / 4)
    one = raise_log_prob(path, V[:1], betas, 1, seeded_generator(0))
    assert one.std_error == one.monte_carlo_std_error == math.inf
