"""The bound that holds with a stated probability.

By sums over all outcomes, and by counting how often it fails.
"""

import math

import pytest
import torch
from enumeration import all_states, log_z, random_rbm
from evaluations import draws
from scipy.stats import binom

from paperlib.estimators import (
    PartitionEstimate,
    certified_lower_bound,
    upper_bound_from_reached,
)
from paperlib.estimators.certified import _log_mixture, _log_threshold, _lower_bounds
from paperlib.numerics import log_mean_exp, seeded_generator

SETS = 10_000


def failures(log_weights, true_log_z, level):
    """In how many of the sets [sets, n] the bound lies above the truth."""
    bounds = _lower_bounds(log_weights, _log_threshold(level))
    # the function that users call is this one, up to rounding of sums in another layout
    assert certified_lower_bound(log_weights[0], level) == pytest.approx(bounds[0].item(), abs=1e-9)
    return int((bounds > true_log_z).sum())


def most_failures(level, sets=SETS):
    """More failures than this have probability 1e-6, if each set fails with 1 - level."""
    return int(binom.isf(1e-6, sets, 1 - level))


def markov(log_weights, level):
    return log_mean_exp(log_weights, -1) + math.log1p(-level)


# ---- without any sampling


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("count", [1, 2, 5, 30])
def test_two_point_weights_fail_no_more_often_than_stated(count, level):
    """w is `high` with probability p and otherwise `low`, and Z = 1.

    Only how many are high matters, and all cases are summed.
    """
    most = 0.0
    for p in (0.5, 0.1, 0.01, (1 - level) / count, (1 - level) / (4.5 * count)):
        for low in (0.0, 0.5, 0.99):
            high = (1 - (1 - p) * low) / p
            highs = torch.arange(count + 1)
            is_high = torch.arange(count) < highs[:, None]
            log_weights = torch.where(is_high, high, low).double().log()
            fails = _lower_bounds(log_weights, _log_threshold(level)) > 0
            most = max(most, binom.pmf(highs.numpy(), count, p)[fails.numpy()].sum())
    assert most <= 1 - level
    # the bound is not so low that nothing could break it
    assert most > (1 - level) / 6


@pytest.mark.parametrize("count", [1, 3, 20])
def test_mean_of_the_mixture_at_the_truth_is_one(count):
    p = 0.2
    low = 0.3
    high = (1 - (1 - p) * low) / p
    highs = torch.arange(count + 1)
    weights = torch.where(torch.arange(count) < highs[:, None], high, low).double()
    log_mixture, _ = _log_mixture(weights.log())
    probabilities = torch.from_numpy(binom.pmf(highs.numpy(), count, p))
    assert (probabilities * log_mixture.exp()).sum().item() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("weights", [(5.0, 5.0, 5.0), (1.0, 4.0, 2.0)])
def test_a_weight_is_no_number_of_independent_draws(weights):
    """The upper bound from the model's draws fails no more often than stated, for any weights.

    All sets of three draws are summed.
    """
    rbm = random_rbm(3, 2, seed=5)
    chance = 0.1
    log_p = rbm.log_unnormalized(all_states(3))
    p = log_p.softmax(0)
    # Annealing prefers the four least probable states, which are drawn one time in nine.
    rare = torch.zeros(8, dtype=torch.bool)
    rare[p.argsort()[:4]] = True
    log_r = torch.where(rare, log_p, log_p - 3).log_softmax(0)
    drawn = torch.cartesian_prod(*[torch.arange(8)] * 3)
    ratios = (log_p - log_r)[drawn]
    shares = torch.tensor(weights).double()
    bounds = torch.tensor([upper_bound_from_reached(row, chance, shares) for row in ratios])
    fails = bounds < log_z(rbm)
    assert 0 < p[drawn].prod(1)[fails].sum() <= chance
    # the unit of the weights is anybody's choice
    bound = upper_bound_from_reached(ratios[0], chance, 7 * shares)
    assert bound == pytest.approx(bounds[0].item(), abs=1e-5)


def test_the_bound_is_where_the_mixture_crosses_the_threshold():
    log_weights = 2 * torch.randn(5, 40, generator=seeded_generator(4)).double()
    for level in (0.1, 0.99, 1 - 1e-9):
        threshold = _log_threshold(level)
        bounds = _lower_bounds(log_weights, threshold)
        log_mixture, _ = _log_mixture(log_weights - bounds[:, None])
        assert log_mixture == pytest.approx(
            torch.full((5,), threshold, dtype=torch.float64), abs=1e-8
        )


# ---- by counting


@pytest.mark.parametrize("count", [5, 50])
@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
def test_log_normal_weights(spread, count):
    level = 0.95
    normal = torch.randn(SETS, count, generator=seeded_generator(count), dtype=torch.float64)
    log_weights = spread * normal - spread**2 / 2
    assert failures(log_weights, 0.0, level) <= most_failures(level)
    # An estimate that claims nothing fails by far too often: the test can fail.
    assert int((log_mean_exp(log_weights, -1) > 0).sum()) > most_failures(level)


def test_reverse_weights_of_exact_draws_bound_from_above():
    """E_p 2^-D / p*(v) = 1/Z."""
    rbm = random_rbm(5, 4, seed=22)
    log_p = rbm.log_unnormalized(draws(rbm, SETS * 10, seed=5))
    log_weights = (-5 * math.log(2) - log_p).view(SETS, 10)
    # -L < ln Z is a failure
    assert failures(log_weights, -log_z(rbm), 0.95) <= most_failures(0.95)
    truth = log_z(rbm)
    bound = -certified_lower_bound(log_weights.flatten()[:5_000])
    assert truth < bound < truth + 0.5


# ---- how good it is


@pytest.mark.parametrize(
    ("count", "spread", "documented"),
    [(100, 0.3, 0.12), (100, 1.0, 0.40), (100, 2.0, 1.04), (1_000, 0.3, 0.04), (1_000, 2.0, 0.45)],
)
def test_figures_of_the_documentation(count, spread, documented):
    generator = seeded_generator(11)
    normal = torch.randn(300, count, generator=generator, dtype=torch.float64)
    missing = -_lower_bounds(spread * normal - spread**2 / 2, _log_threshold(0.99))
    # four errors of a median, 1.25 standard deviations over the root of their number, and
    # a digit of rounding
    assert missing.median().item() == pytest.approx(
        documented, abs=4 * 1.25 * missing.std().item() / math.sqrt(300) + 0.005
    )


@pytest.mark.parametrize("spread", [0.0, 0.5, 5.0, 100.0])
@pytest.mark.parametrize("count", [1, 2, 10, 500])
def test_it_is_at_most_ln_4_below_markov(count, spread):
    for seed in range(5):
        log_weights = spread * torch.randn(count, generator=seeded_generator(seed)).double()
        for level in (0.01, 0.9, 0.999):
            missing = markov(log_weights, level).item() - certified_lower_bound(log_weights, level)
            assert missing <= (0 if count == 1 else math.log(4)) + 1e-8


# ---- what must not matter


def test_zeros_and_enormous_spreads():
    nothing = torch.full((4,), -math.inf).double()
    assert certified_lower_bound(nothing) == -math.inf
    for log_weights in ([0.0, -1e300], [1e300, 0.0], [0.0, -800.0, -math.inf], [700.0] * 9):
        bound = certified_lower_bound(log_weights)
        assert math.isfinite(bound)
        assert bound <= max(log_weights)
    assert certified_lower_bound([0, 1, 2]) == certified_lower_bound(torch.arange(3.0))


# ---- joined with the proven bound


def test_the_larger_of_both_bounds():
    log_weights = torch.randn(50, generator=seeded_generator(4)).double()
    certified = certified_lower_bound(log_weights, 0.9)
    states = torch.zeros(50, 3)
    for proven, expected in (
        (None, certified),
        (certified - 1, certified),
        (certified + 1, certified + 1),
    ):
        assert PartitionEstimate(log_weights, states, proven).certified_bound(0.9) == expected
