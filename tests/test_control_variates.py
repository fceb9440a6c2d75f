"""The control variate's average and variance against simulation, and CSL by enumeration."""

import math

import pytest
import torch
from enumeration import all_states, log_z, random_rbm

from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.errors import InputError
from paperlib.estimators import (
    ReverseEstimate,
    control_variate_mean,
    csl_estimate,
    csl_log_prob,
    raise_log_prob,
)
from paperlib.numerics import leave_one_out, log_mean_exp, seeded_generator, weighted_mean


def draw(count, generator, noise=0.5):
    x = 3 * torch.randn(count, dtype=torch.float64, generator=generator)
    y = 1.5 * x + 2 + noise * torch.randn(count, dtype=torch.float64, generator=generator)
    return y, x


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1.5])
@pytest.mark.parametrize("total", [20, 100, 2_000])
def test_variance_over_fresh_samples(alpha, total):
    """20 of `total` cases, 1,500 times: the average is unbiased and scatters as eq.

    14 (with its last term over N) says.
    """
    repeats = 1_500
    count = 20
    generator = seeded_generator(total)
    estimates = []
    for _ in range(repeats):
        y, x = draw(total, generator)
        estimates.append(control_variate_mean(y[:count], x[:count], x, alpha))
    means = torch.tensor([e.mean for e in estimates], dtype=torch.float64)
    assert abs(means.mean() - 2) < 4 * means.std() / math.sqrt(repeats)
    predicted = torch.tensor([e.std_error**2 for e in estimates]).mean().item()
    # the scatter's own relative error is sqrt(2 / repeats), and the mean prediction's no larger
    assert predicted / means.var().item() == pytest.approx(1, abs=4 * math.sqrt(4 / repeats))


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_variance_over_fresh_samples_with_weights(alpha):
    """1,500 times.

    Of 40 cases of 100, half hardly count, and have another relation to the cheap values.
    """
    estimates = []
    generator = seeded_generator(11)
    for _ in range(1_500):
        y, x = draw(100, generator)
        counts = torch.rand(100, generator=generator) < 0.5
        weights = counts.double().clamp(min=1e-6)
        y = torch.where(counts, y, -2 * x)
        estimates.append(
            control_variate_mean(
                y[:40], x[:40], x, alpha, batch_weights=weights[:40], all_weights=weights
            )
        )
    means = torch.tensor([e.mean for e in estimates], dtype=torch.float64)
    predicted = torch.tensor([e.std_error**2 for e in estimates]).mean().item()
    # as above, and a few per cent for a ratio of two means of about twenty
    assert predicted / means.var().item() == pytest.approx(1, abs=4 * math.sqrt(4 / 1_500))


def test_estimated_alpha_and_the_reduction():
    y, x = draw(5_000, seeded_generator(4))
    chosen = control_variate_mean(y[:200], x[:200], x, alpha=None)
    assert chosen.alpha == pytest.approx(1.5, abs=4 * 0.5 / 3 / math.sqrt(200))
    fixed = control_variate_mean(y[:200], x[:200], x)
    plain = y[:200].std().item() / math.sqrt(200)
    # the variance is more than five times smaller than that of the plain average
    assert chosen.std_error < fixed.std_error < plain / math.sqrt(5)


def test_the_whole_test_set_needs_no_control():
    y, x = draw(50, seeded_generator(5))
    estimate = control_variate_mean(y, x, x)
    assert estimate.mean == pytest.approx(y.mean().item(), abs=1e-12)
    assert estimate.test_set_std_error == 0
    assert estimate.std_error == pytest.approx(y.std().item() / math.sqrt(50), rel=1e-12)
    same = control_variate_mean(x, x, x)
    assert same.mean == pytest.approx(x.mean().item())
    assert same.std_error == pytest.approx(x.std().item() / math.sqrt(50))


@pytest.mark.parametrize("spread", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("count", [2, 4, 50])
def test_jackknife_of_a_log_mean(spread, count):
    """Its variance is that of 40,000 log-means of log-normal values within a quarter.

    The delta rule states as little as a tenth.
    """
    log_values = spread * torch.randn(40_000, count, generator=seeded_generator(count)).double()
    stated = leave_one_out(log_values).square().sum(1).mean()
    assert stated / log_mean_exp(log_values).var() == pytest.approx(1, abs=0.25)


def test_jackknife_by_hand():
    """Also where one value is so large that the others would be lost in a difference of sums."""
    values = torch.tensor([[1.0, 2.0, 3.0, 6.0], [1e-30, 3e-30, 1e30, 2e-30]]).double()
    others = [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
    without = [[row[three].sum().log() for three in others] for row in values]
    expected = torch.tensor(without).double()
    expected = math.sqrt(3 / 4) * (expected - expected.mean(1, keepdim=True))
    torch.testing.assert_close(leave_one_out(values.log()), expected, rtol=1e-12, atol=1e-12)


# ---- RAISE for n of N images: its noise, the choice of images, and how often the interval holds

SIZES = [(2, 2), (2, 100), (40, 40), (40, 100), (100, 100), (100, 397), (100, 10_000)]
IMAGES = random_rbm(6, 4, 3, scale=2)


@pytest.fixture(scope="module")
def pool():
    """ln w of 20,000 reverse chains from each of 64 images, and what four are expected to say.

    Their spread is 1.5 nats.
    """
    path = BaseRatePath(IMAGES)
    betas = uniform_betas(2)
    estimate = raise_log_prob(
        path, all_states(6), betas, 20_000, seeded_generator(1), progress=False
    )
    return estimate.log_weights, log_mean_exp(estimate.log_weights.view(64, -1, 4)).mean(1)


def runs_of(pool, count, total, repeats, weighted=False, chains=4):
    """Estimates from `count` of `total` images, and the averages of all of these.

    The model draws the images; each estimate has new images and chains.
    """
    log_weights, expected = pool
    log_p = IMAGES.log_unnormalized(all_states(6))
    generator = seeded_generator(7)
    for _ in range(repeats):
        images = torch.multinomial(log_p.softmax(0), total, True, generator=generator)
        weights = torch.rand(total, generator=generator).double() + 0.2 if weighted else None
        chosen = torch.randperm(total, generator=generator)[:count]
        which = torch.randint(log_weights.shape[1], (count, chains), generator=generator)
        below = ReverseEstimate(log_weights[images[chosen]].gather(1, which))
        x = log_p[images]
        chosen_weights = weights[chosen] if weighted else None
        average = control_variate_mean(
            below, x[chosen], x, batch_weights=chosen_weights, all_weights=weights
        )
        yield average, weighted_mean(expected[images], weights).item()


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(("count", "total"), SIZES)
def test_interval_holds_what_raise_is_expected_to_say_of_all_images(pool, count, total, weighted):
    """500 intervals of 95 % hold it in 92 to 98 of 100.

    The count itself is known to one of 100.
    """
    held = [
        average.interval()[0] <= truth <= average.interval()[1]
        for average, truth in runs_of(pool, count, total, 500, weighted)
    ]
    assert 0.92 <= sum(held) / 500 <= 0.98


@pytest.mark.parametrize(("count", "total"), [(40, 40), (40, 100), (100, 397)])
def test_error_and_its_parts_are_what_they_say(pool, count, total):
    """Over 500 runs. Without the noise of the chains, all images would have an error of zero."""
    averages, truths = zip(*runs_of(pool, count, total, 500), strict=True)
    off = torch.tensor([one.mean for one in averages]) - torch.tensor(truths)
    stated = torch.tensor([one.test_set_std_error for one in averages])
    # a scatter of 500 has an error of sqrt(1 / 1,000), the jackknife a bias of a few per cent where
    # weights spread
    assert stated.square().mean().sqrt().item() == pytest.approx(off.std().item(), rel=0.1)
    for one in averages:
        assert math.hypot(one.monte_carlo_std_error, one.choice_std_error) == pytest.approx(
            one.test_set_std_error, rel=1e-9
        )
    chosen = [one.choice_std_error for one in averages]
    assert (max(chosen) == 0) == (count == total)


def test_two_cases_do_not_estimate_alpha():
    """The line through both leaves nothing, and the error would be zero."""
    with pytest.raises(
        InputError, match="alpha: expected a number, since it cannot be estimated from two"
    ):
        control_variate_mean([1.0, 2.0], [1.0, 3.0], [1.0, 2.0, 3.0], alpha=None)


def test_one_chain_cannot_tell_its_noise(pool):
    """All of the spread between images counts as noise.

    The interval is too wide rather than too narrow.
    """
    held = [
        average.interval()[0] <= truth <= average.interval()[1]
        for average, truth in runs_of((pool[0], pool[0].mean(1)), 40, 40, 500, chains=1)
    ]
    assert sum(held) / 500 >= 0.93


RBM = random_rbm(4, 3, 21)
V = all_states(4)


def test_csl_tends_to_the_truth_and_errs_low():
    truth = RBM.log_unnormalized(V) - log_z(RBM)
    exact = csl_log_prob(RBM, V, 200, 2_000, seeded_generator(1))
    assert (exact - truth).abs().max() < 0.05
    # Few draws, from chains that have not converged: by Jensen's and Gibbs' inequalities the
    # estimate is too low on average over the model's own vectors, whatever the chains generate.
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


def test_csl_states_the_spread_of_fresh_chains():
    """All images share the chains.

    Taken as independent, the errors of 16 images would be four times too small.
    """
    estimates = [csl_estimate(RBM, V, 40, 20, seeded_generator(seed), False) for seed in range(300)]
    spread = torch.tensor([one.mean for one in estimates]).std().item()
    stated = torch.tensor([one.monte_carlo_std_error for one in estimates]).square().mean().sqrt()
    assert stated.item() == pytest.approx(spread, rel=4 * math.sqrt(1 / 600))
    assert torch.equal(estimates[0].log_prob, csl_log_prob(RBM, V, 40, 20, seeded_generator(0)))
    one = csl_estimate(RBM, V, 1, 20, seeded_generator(0))
    assert one.std_error == one.monte_carlo_std_error == math.inf
    assert csl_estimate(RBM, V[:1], 40, 20, seeded_generator(0)).std_error == math.inf


@pytest.mark.parametrize("count", [3, 4, 5, 10])
def test_intervals_with_a_fitted_alpha_hold(count):
    """Of 1,000 intervals of 95 %, 925 to 975 hold: 3.6 standard deviations to either side."""
    generator = seeded_generator(count)
    y, x = draw(500, generator)
    held = 0
    for _ in range(1_000):
        chosen = torch.randperm(500, generator=generator)[:count]
        average = control_variate_mean(y[chosen], x[chosen], x, alpha=None)
        low, high = average.interval(0.95)
        held += low <= y.mean().item() <= high
    assert average.degrees_of_freedom == count - 2
    assert 925 <= held <= 975
