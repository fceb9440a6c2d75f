"""RAISE against the annealing model that it estimates: p_ann as a product of transition matrices, for every visible vector."""

import math

import pytest
import torch
from enumeration import WeightlessRBM, all_states, log_z, random_rbm, transition_matrix

from paperlib.annealing import BaseRatePath, RBMPairPath, uniform_betas
from paperlib.estimators import raise_log_prob
from paperlib.numerics import seeded_generator

RBM = random_rbm(4, 3, 11)
BIAS = torch.tensor([0.5, -1.0, 0.3, 1.2], dtype=torch.float64)
V = all_states(4)
STARTS = pytest.mark.parametrize("bias", [None, BIAS], ids=["uniform", "base rates"])


def annealing_model(rbm, bias, betas):
    """p_ann(v) for every v (eq. 10 and 11): the start's distribution times T_1 ... T_K."""
    bias = torch.zeros(rbm.num_visible, dtype=torch.float64) if bias is None else bias
    probs = torch.softmax(V @ bias, 0)
    for beta in betas.tolist()[1:]:
        probs = probs @ transition_matrix(WeightlessRBM(bias), rbm, beta)
    return probs


@STARTS
@pytest.mark.parametrize("steps", [1, 2, 5, 20])
def test_mean_weight_is_the_probability_under_the_annealing_model(bias, steps):
    betas, chains = uniform_betas(steps), 20_000
    truth = annealing_model(RBM, bias, betas)
    estimate = raise_log_prob(BaseRatePath(RBM, bias), V, betas, chains, seeded_generator(steps))
    weights = estimate.log_weights.exp()
    error = weights.std(1) / math.sqrt(chains)
    # 16 vectors in each of 8 cases: beyond 4 standard errors with probability 8e-3 in all
    assert ((weights.mean(1) - truth).abs() < 4 * error).all()
    assert abs(weights.mean(1).sum() - 1) < 4 * error.square().sum().sqrt()
    # on average the logarithm errs low
    assert (estimate.log_weights.mean(1) < truth.log()).all()


def test_the_printed_index_of_the_kernel_would_be_noticed():
    """Algorithm 2 multiplied out: with T~_{k+1} the mean weight is p_ann to machine precision, with T~_k as printed it is not."""
    betas = uniform_betas(3).tolist()
    path, start = BaseRatePath(RBM, BIAS), WeightlessRBM(BIAS)
    states, log_first = path.begin_reverse(V, betas, seeded_generator(0), lambda: None)
    expected = {}
    for name, shift in (("right", 1), ("printed", 0)):
        total = torch.ones(16, dtype=torch.float64)
        for k in range(3):
            # what the chain multiplies from step k on, for every x_{k+1}
            ratio = path.log_ratio(states, betas[k + 1], betas[k]).exp()
            total = transition_matrix(start, RBM, betas[k + shift]) @ (ratio * total)
        expected[name] = log_first.exp() * total
    truth = annealing_model(RBM, BIAS, uniform_betas(3))
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


def test_blocks_and_types_of_test_vectors(monkeypatch):
    path, betas = BaseRatePath(RBM), uniform_betas(5)
    whole = raise_log_prob(path, V, betas, 30, seeded_generator(1))
    same = raise_log_prob(path, V.to(torch.uint8), betas, 30, seeded_generator(1))
    assert torch.equal(whole.log_weights, same.log_weights)
    monkeypatch.setattr("paperlib.estimators.blocks._NARROW_CHAINS", 7)
    parts = raise_log_prob(path, V, betas, 4_000, seeded_generator(2))
    weights = parts.log_weights.exp()
    error = weights.std(1) / math.sqrt(4_000)
    assert ((weights.mean(1) - annealing_model(RBM, None, betas)).abs() < 4 * error).all()


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


class ForwardOnly:
    """A path that AIS could walk and RAISE cannot."""

    target, log_z_start, device = RBM, 0.0, torch.device("cpu")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"v": V * 0.5}, "v: expected only 0 and 1"),
        ({"v": V[:, :3]}, r"v: expected shape \[any, 4\], got \[16, 3\]"),
        ({"v": V[:0]}, r"v: expected shape \[any, 4\], got \[0, 4\]"),
        ({"v": V[0]}, r"v: expected shape \[any, 4\], got \[4\]"),
        ({"betas": [0, 0.5]}, "betas: expected to run from 0 to 1"),
        ({"num_chains": 0}, "num_chains: expected a whole number of at least 1"),
        ({"path": ForwardOnly()}, "path: expected one that can be walked back.*reverse_transition"),
        ({"path": RBMPairPath(RBM, RBM)}, "path: expected one whose start has a known partition"),
    ],
)
def test_bad_input(changes, message):
    arguments = {
        "path": BaseRatePath(RBM), "v": V, "betas": uniform_betas(2), "num_chains": 2,
    } | changes  # fmt: skip
    with pytest.raises(ValueError, match=message):
        raise_log_prob(**arguments)
