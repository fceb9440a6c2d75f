"""Numbers with errors: their arithmetic, and how often their joined intervals hold, counted."""

import itertools
import math
import random

import numpy as np
import pytest
import torch
from scipy.special import ndtr, ndtri, stdtrit

from paperlib.errors import InputError
from paperlib.estimators import PartitionEstimate
from paperlib.numerics import seeded_generator
from paperlib.uncertain import Uncertain, total

REPEATS = 30_000
FREEDOMS = (1, 2, 5, 20, math.inf)
RATIOS = (1 / 9, 1 / 3, 1, 3, 9)


def squared_quantile(dof):
    finite = np.where(np.isinf(dof), 1.0, dof)
    return np.where(np.isinf(dof), ndtri(0.975), stdtrit(finite, 0.975)) ** 2


def joined(variances, freedoms):
    """The variance and the degrees of freedom of sums, by `total`'s rule."""
    variance = sum(variances)
    dofs = [dof * np.sqrt(variance / part) for part, dof in zip(variances, freedoms, strict=True)]
    return variance, np.min(np.broadcast_arrays(*dofs), axis=0)


def welch(variances, freedoms):
    variance = sum(variances)
    parts = zip(variances, freedoms, strict=True)
    known = sum((part / variance) ** 2 / dof for part, dof in parts)
    return variance, 1 / np.maximum(known, 1e-300)


def held(freedoms, sigmas, rule=joined):
    """How often an interval of 95 % holds a sum of normal parts whose variances are estimated.

    Given these, how often the sum itself does is known, and is averaged in place of counting it:
    with so many repeats that is known to 0.002.
    """
    generator = np.random.default_rng(1)
    variances = []
    for dof, sigma in zip(freedoms, sigmas, strict=True):
        scale = generator.chisquare(dof, REPEATS) / dof if math.isfinite(dof) else np.ones(REPEATS)
        variances.append(sigma**2 * scale)
    variance, dof = rule(variances, freedoms)
    width = np.sqrt(variance * squared_quantile(dof))
    return (2 * ndtr(width / math.hypot(*sigmas)) - 1).mean()


CASES = [
    *itertools.product(
        itertools.combinations_with_replacement(FREEDOMS, 2), ((ratio,) for ratio in RATIOS)
    ),
    *itertools.product(
        itertools.combinations_with_replacement(FREEDOMS, 3),
        itertools.product((1 / 3, 1, 3), repeat=2),
    ),
]


def test_joined_intervals_hold_as_often_as_they_say():
    """Never below 93 %; below 97 % where each part has five degrees of freedom or more.

    Where parts have one or two, up to 99.6 %: too wide, and not too narrow.
    """
    shares = {case: held(case[0], (1.0, *case[1])) for case in CASES}
    assert len(shares) == 75 + 315
    assert min(shares.values()) > 0.93
    known = [share for (freedoms, _), share in shares.items() if min(freedoms) >= 5]
    assert min(known) > 0.948
    assert max(known) < 0.972
    assert max(shares.values()) < 0.998


def test_welch_and_satterthwaite_would_hold_too_seldom():
    """Why it is not the rule: 87 of 100 where the part that dominates has one degree of freedom."""
    assert held((1, math.inf), (1.0, 1 / 3), welch) < 0.89
    assert held((1, math.inf), (1.0, 1 / 3)) > 0.93


@pytest.mark.parametrize("freedoms", [(1, 5), (2, math.inf), (1, 2, 20), (math.inf, math.inf)])
def test_the_rule_that_is_counted_is_the_library_s(freedoms):
    errors = [0.1, 0.5, 2.0][: len(freedoms)]
    number = total(Uncertain(1.0, *part) for part in zip(errors, freedoms, strict=True))
    variance, dof = joined([error**2 for error in errors], freedoms)
    assert number.value == len(freedoms)
    assert number.std_error == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert number.dof == pytest.approx(float(dof), rel=1e-12)
    low, high = number.interval(0.95)
    assert (high - low) / 2 == pytest.approx(math.sqrt(variance * squared_quantile(dof)), rel=1e-9)


def test_arithmetic():
    a = Uncertain(3.0, 0.3, 9)
    b = Uncertain(1.0, 0.4, 20)
    assert a - b == Uncertain(2.0, 0.5, 15)
    assert (a + b).value == 4
    assert -a == Uncertain(-3.0, 0.3, 9)
    assert a.shifted(-1) == Uncertain(2.0, 0.3, 9)
    assert b.scaled(-2) == Uncertain(-2.0, 0.8, 20)
    # an exact number changes nothing, to the bit
    assert (Uncertain(0.0) + Uncertain(0.1, 0.3, 7)) == Uncertain(0.1, 0.3, 7)
    assert total([]) == Uncertain(0)


def test_the_order_of_a_sum_does_not_matter():
    parts = [Uncertain(1.0, error, dof) for error, dof in ((0.2, 3), (0.7, 50), (0.4, 8), (1, 9))]
    at_once = total(parts)
    for seed in range(5):
        random.Random(seed).shuffle(parts)
        first, second, third, fourth = parts
        for number in (first + second + (third + fourth), first + (second + third) + fourth):
            assert number.std_error == pytest.approx(at_once.std_error, rel=1e-12)
            assert number.dof == pytest.approx(at_once.dof, rel=1e-12)


def test_unknown_errors_stay_unknown():
    unknown = Uncertain(1.0, math.inf, 0)
    assert (unknown + Uncertain(1.0, 0.1, 5)).interval() == (-math.inf, math.inf)
    # an error without degrees of freedom says nothing, beside a known one as well
    assert (Uncertain(1.0, 0.1, 0) + Uncertain(1.0, 0.1)).interval() == (-math.inf, math.inf)
    assert Uncertain(1.0, 0.0, 0).interval() == (1.0, 1.0)
    assert math.isnan((Uncertain(1.0, math.nan) + Uncertain(1.0, 0.1, 5)).interval()[0])


def test_what_may_be_missing_widens_one_end():
    low, high = Uncertain(5.0, 1.0).interval(0.95)
    assert Uncertain(5.0, 1.0).interval(0.95, too_low=2, too_high=0.5) == (low - 0.5, high + 2)


# ---- estimates of ln Z


def of(log_weights):
    weights = torch.as_tensor(log_weights, dtype=torch.float64)
    return PartitionEstimate(weights, torch.zeros(len(weights), 1))


def test_interval_of_ais_is_a_probability_and_its_error_bars_have_a_name():
    estimate = of(torch.tensor([1.0, 1, 1, 5]).log())  # worth 64 / 28 chains, with an error of 1/2
    low, high = estimate.interval(0.95)
    assert estimate.degrees_of_freedom == pytest.approx(64 / 28 - 1)
    width = stdtrit(64 / 28 - 1, 0.975) / 2
    assert (low, high) == pytest.approx((math.log(2) - width, math.log(2) + width))
    assert estimate.interval() == (low, high)
    assert estimate.std_interval(1) == pytest.approx((math.log(1), math.log(3)))
    assert estimate.std_interval() == pytest.approx((-math.inf, math.log(5)))
    with pytest.warns(DeprecationWarning, match=r"std_interval\(\.\.\.\)"):
        assert estimate.interval(num_std=1) == estimate.std_interval(1)
    for number in (1, 3.0):
        with pytest.raises(InputError, match=rf"level: .* std_interval\({number}\)"):
            estimate.interval(number)
    with pytest.raises(InputError, match="level: expected a number between 0 and 1, got 0"):
        estimate.interval(0)


@pytest.mark.parametrize(("chains", "spread"), [(10, 0.3), (30, 0.5), (100, 0.5), (100, 1.0)])
def test_interval_of_ais_holds_as_often_as_it_says(chains, spread):
    """2,000 times, for log-normal weights; a share of 95 % has a standard error of 0.5 %."""
    draws = torch.randn(2_000, chains, generator=seeded_generator(chains), dtype=torch.float64)
    # the mean weight is 1
    log_weights = spread * draws - spread**2 / 2
    intervals = [of(row).interval(0.95) for row in log_weights]
    share = sum(low <= 0 <= high for low, high in intervals) / len(intervals)
    assert 0.93 < share < 0.97
