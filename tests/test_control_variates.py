"""The control variate's average and its variance against simulation, and CSL against enumeration."""

import math

import pytest
import torch
from enumeration import all_states, log_z, random_rbm

from paperlib.estimators import control_variate_mean, csl_log_prob
from paperlib.numerics import seeded_generator


def draw(count, generator, noise=0.5):
    x = 3 * torch.randn(count, dtype=torch.float64, generator=generator)
    y = 1.5 * x + 2 + noise * torch.randn(count, dtype=torch.float64, generator=generator)
    return y, x


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1.5])
@pytest.mark.parametrize("total", [20, 100, 2_000])
def test_variance_over_fresh_samples(alpha, total):
    """20 of `total` cases, 1,500 times: the average is unbiased and scatters as eq. 14 (with its last term over N) says."""
    repeats, count, generator = 1_500, 20, seeded_generator(total)
    estimates = []
    for _ in range(repeats):
        y, x = draw(total, generator)
        estimates.append(control_variate_mean(y[:count], x[:count], x, alpha))
    means = torch.tensor([e.mean for e in estimates], dtype=torch.float64)
    assert abs(means.mean() - 2) < 4 * means.std() / math.sqrt(repeats)
    predicted = torch.tensor([e.std_error**2 for e in estimates]).mean().item()
    # the scatter's own standard error is sqrt(2 / repeats) of it, that of the mean prediction no more
    assert predicted / means.var().item() == pytest.approx(1, abs=4 * math.sqrt(4 / repeats))


def test_variance_within_one_test_set():
    """Batches of 20 drawn anew from the same 60 cases scatter around the average over those 60."""
    generator = seeded_generator(3)
    y, x = draw(60, generator)
    estimates = []
    for _ in range(1_500):
        batch = torch.randperm(60, generator=generator)[:20]
        estimates.append(control_variate_mean(y[batch], x[batch], x))
    means = torch.tensor([e.mean for e in estimates], dtype=torch.float64)
    assert abs(means.mean() - y.mean()) < 4 * means.std() / math.sqrt(1_500)
    predicted = torch.tensor([e.test_set_std_error**2 for e in estimates]).mean().item()
    assert predicted / means.var().item() == pytest.approx(1, abs=4 * math.sqrt(4 / 1_500))


def test_estimated_alpha_and_the_reduction():
    y, x = draw(5_000, seeded_generator(4))
    chosen = control_variate_mean(y[:200], x[:200], x, alpha=None)
    assert chosen.alpha == pytest.approx(1.5, abs=4 * 0.5 / 3 / math.sqrt(200))
    fixed = control_variate_mean(y[:200], x[:200], x)
    assert chosen.variance_reduction > fixed.variance_reduction > 5
    assert fixed.plain_std_error == pytest.approx(y[:200].std().item() / math.sqrt(200))


def test_the_whole_test_set_needs_no_control():
    y, x = draw(50, seeded_generator(5))
    estimate = control_variate_mean(y, x, x)
    assert estimate.mean == pytest.approx(y.mean().item(), abs=1e-12)
    assert estimate.test_set_std_error == 0
    assert estimate.std_error == pytest.approx(estimate.plain_std_error, rel=1e-12)
    same = control_variate_mean(x, x, x)
    assert (same.mean, same.variance_reduction) == (
        pytest.approx(x.mean().item()),
        pytest.approx(1),
    )


RBM, V = random_rbm(4, 3, 21), all_states(4)


def test_csl_tends_to_the_truth_and_errs_low():
    truth = RBM.log_unnormalized(V) - log_z(RBM)
    exact = csl_log_prob(RBM, V, 200, 2_000, seeded_generator(1))
    assert (exact - truth).abs().max() < 0.05
    # Few draws, from chains that have not converged: by Jensen's and Gibbs' inequalities the estimate is too low on average
    # over the model's own vectors, whatever the chains generate.
    spiky = random_rbm(4, 3, 21, scale=4)
    truth = spiky.log_unnormalized(V) - log_z(spiky)
    few = torch.stack([csl_log_prob(spiky, V, 2, 3, seeded_generator(s)) for s in range(200)])
    shortfall = ((truth - few) * truth.exp()).sum(1)
    assert shortfall.mean() > 4 * shortfall.std() / math.sqrt(200)


def test_csl_is_the_mean_conditional_probability():
    generator = seeded_generator(9)
    value = csl_log_prob(RBM, V, 2, 1, seeded_generator(9))
    start = (torch.rand(2, 4, dtype=torch.float64, generator=generator) < 0.5).double()
    h = (
        torch.rand(2, 3, dtype=torch.float64, generator=generator) < RBM.hidden_probs(start)
    ).double()
    p = RBM.visible_probs(h)[None]
    direct = (V[:, None] * p + (1 - V[:, None]) * (1 - p)).prod(-1).mean(1).log()
    torch.testing.assert_close(value, direct, rtol=0, atol=1e-12)
