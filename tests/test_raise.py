"""RAISE: the kernel that it takes, its limit, errors and bad input; `test_every_path` has the expectation of its weights."""

import math

import pytest
import torch
from enumeration import (
    WeightlessRBM,
    all_states,
    annealing_model,
    log_z,
    random_rbm,
    transition_matrix,
)
from walks import Coins

from paperlib.annealing import BaseRatePath, RBMPairPath, uniform_betas
from paperlib.estimators import raise_log_prob
from paperlib.numerics import seeded_generator

RBM = random_rbm(4, 3, 11)
BIAS = torch.tensor([0.5, -1.0, 0.3, 1.2], dtype=torch.float64)
V = all_states(4)


def test_the_printed_index_of_the_kernel_would_be_noticed():
    """Algorithm 2 multiplied out: with T~_{k+1} the mean weight is p_ann to machine precision, with T~_k as printed it is not."""
    betas = uniform_betas(3).tolist()
    path, start = BaseRatePath(RBM, BIAS), WeightlessRBM(BIAS)
    states, log_first = path.begin_reverse(V, betas, seeded_generator(0), lambda _: None)
    expected = {}
    for name, shift in (("right", 1), ("printed", 0)):
        total = torch.ones(16, dtype=torch.float64)
        for k in range(3):
            # what the chain multiplies from step k on, for every x_{k+1}
            ratio = path.log_ratio(states, betas[k + 1], betas[k]).exp()
            total = transition_matrix(start, RBM, betas[k + shift]) @ (ratio * total)
        expected[name] = log_first.exp() * total
    truth = annealing_model(start, RBM, betas)
    torch.testing.assert_close(expected["right"], truth, rtol=1e-12, atol=0)
    assert ((expected["printed"] / truth).log().abs() > 0.05).any()


def test_many_steps_approach_the_target():
    truth = RBM.log_unnormalized(V) - log_z(RBM)
    gaps = [
        (raise_log_prob(BaseRatePath(RBM), V, uniform_betas(k), 500, seeded_generator(0)).log_prob - truth)
        .abs()
        .mean()
        for k in (1, 10, 200)
    ]  # fmt: skip
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2]


def test_types_of_test_vectors():
    path, betas = BaseRatePath(RBM), uniform_betas(5)
    whole = raise_log_prob(path, V, betas, 30, seeded_generator(1))
    same = raise_log_prob(path, V.to(torch.uint8), betas, 30, seeded_generator(1))
    assert torch.equal(whole.log_weights, same.log_weights)


def test_standard_errors():
    """Over 200 repetitions the average scatters as the Monte Carlo error says: a chi-square with 199 degrees of freedom."""
    betas, path = uniform_betas(10), BaseRatePath(RBM)
    estimates = [raise_log_prob(path, V, betas, 200, seeded_generator(s)) for s in range(200)]
    scatter = torch.tensor([e.mean for e in estimates]).var().item()
    predicted = torch.tensor([e.monte_carlo_std_error**2 for e in estimates]).mean().item()
    assert scatter / predicted == pytest.approx(1, abs=4 * math.sqrt(2 / 199))
    log_prob = estimates[0].log_prob
    assert estimates[0].std_error == pytest.approx(log_prob.std().item() / 4)
    one = raise_log_prob(path, V[:1], betas, 1, seeded_generator(0))
    assert one.std_error == one.monte_carlo_std_error == math.inf


class NoWayIn(Coins):
    """Reversible, but nobody knows how a test vector becomes a state."""

    reversible = True


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"v": V * 0.5}, "v: expected only 0 and 1"),
        ({"v": V[:, :3]}, r"v: expected shape \[any, 4\], got \[16, 3\]"),
        ({"v": V[:0]}, r"v: expected shape \[any, 4\], got \[0, 4\]"),
        ({"v": V[0]}, r"v: expected shape \[any, 4\], got \[4\]"),
        ({"betas": [0, 0.5]}, "betas: expected to run from 0 to 1"),
        ({"num_chains": 0}, "num_chains: expected a whole number of at least 1"),
        ({"path": Coins()}, "path: expected one that can be walked back.*reverse_transition"),
        ({"path": NoWayIn()}, "path: expected one that can start at a test vector.*state_at"),
        ({"path": "base rates"}, "path: expected an AnnealingPath.*got str"),
        ({"path": RBMPairPath(RBM, RBM)}, "path: expected one whose start has a known partition"),
    ],
)
def test_bad_input(changes, message):
    arguments = {
        "path": BaseRatePath(RBM), "v": V, "betas": uniform_betas(2), "num_chains": 2,
    } | changes  # fmt: skip
    with pytest.raises(ValueError, match=message):
        raise_log_prob(**arguments)
