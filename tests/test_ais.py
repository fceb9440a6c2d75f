"""AIS: special cases, coverage, bounds and warnings.

`test_every_path` has the expectation of its weights.
"""

import math

import pytest
import torch
from enumeration import all_states, log_z, missed_mode_rbm, random_rbm

from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import (
    PartitionEstimate,
    ais,
    exact_hidden_samples,
    exact_log_z,
    importance_sampling,
)
from paperlib.estimators.estimate import _log_runs_needed, find_warnings
from paperlib.models import RBM, log_z_lower_bound
from paperlib.models.bounds import _sum_over_best_states
from paperlib.numerics import seeded_generator


def test_zero_weights_make_every_weight_exact():
    rbm = RBM(torch.zeros(6, 4).double(), torch.linspace(-1, 1, 6).double(), torch.ones(4).double())
    estimate = ais(BaseRatePath(rbm, rbm.visible_bias), uniform_betas(3), 10, seeded_generator(0))
    expected = torch.log1p(rbm.visible_bias.exp()).sum().item()
    expected += 4 * math.log1p(math.e)
    assert estimate.log_weights.tolist() == pytest.approx([expected] * 10, abs=1e-12)
    assert estimate.effective_sample_size == pytest.approx(10)
    assert estimate.std_interval() == pytest.approx((expected, expected), abs=1e-9)


def test_estimate_intervals_and_effective_sample_size():
    estimate = PartitionEstimate(torch.log(torch.tensor([1.0, 3.0]).double()), torch.zeros(2, 1))
    assert estimate.log_z == pytest.approx(math.log(2))
    assert estimate.relative_std == pytest.approx(0.5)  # sample std sqrt(2), mean 2, two chains
    assert estimate.std_interval(1) == pytest.approx((math.log(1), math.log(3)))
    assert estimate.std_interval(3) == pytest.approx((-math.inf, math.log(5)))
    assert estimate.effective_sample_size == pytest.approx(16 / 10)
    lone = PartitionEstimate(torch.zeros(1).double(), torch.zeros(1, 1))
    assert lone.std_interval() == lone.interval() == (-math.inf, math.inf)


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_lower_bound_never_exceeds_the_truth(scale):
    for seed in range(20):
        rbm = random_rbm(5, 4, seed=seed, scale=scale)
        starts = (torch.rand(8, 5, generator=seeded_generator(seed)) < 0.5).double()
        bound = log_z_lower_bound(rbm, starts)
        truth = log_z(rbm)
        assert bound <= truth + 1e-10
        assert bound >= truth - 1.5  # and is of use: at most 1.5 nats below, over all 60 models


def test_lower_bound_sums_the_best_hidden_states():
    """The search, against one that knows all 2^12 hidden states and looks for flips among them."""
    units = 12
    bits = all_states(units)
    for seed in range(10):
        rbm = random_rbm(30, units, seed=seed, scale=0.5)
        log_masses = rbm.log_unnormalized_hidden(bits)
        place_of = {tuple(state): place for place, state in enumerate(bits.tolist())}
        flips = [
            [place_of[tuple(near)] for near in (state - torch.eye(units)).abs().tolist()]
            for state in bits
        ]
        known = {0, len(bits) - 1}
        total = -math.inf
        while True:
            best = sorted(known, key=lambda place: -log_masses[place].item())[:1024]
            summed = log_masses[best].logsumexp(0).item()
            if summed - total < 1e-6:
                break
            known = set(best).union(*(flips[place] for place in best[: 1024 // units]))
            total = summed
        bound = _sum_over_best_states(rbm, bits[[0, -1, 0]])
        assert bound == pytest.approx(summed, abs=1e-9)
        assert bound < log_masses.logsumexp(0).item()


@pytest.mark.parametrize(("missing", "shown"), [(0.004, "0.004"), (0.1234, "0.1"), (12.34, "12.3")])
def test_warning_says_how_much_is_missing(missing, shown):
    estimate = PartitionEstimate(torch.zeros(2).double(), torch.zeros(2, 1), lower_bound=missing)
    (warning,) = find_warnings(estimate, uniform_start=False)
    assert f"too low by at least {shown} nats" in warning


def test_missed_mode_is_noticed_with_small_error_bars_and_repaired_by_base_rates():
    rbm = missed_mode_rbm()
    truth = exact_log_z(rbm)
    betas = uniform_betas(1000)
    missed = ais(BaseRatePath(rbm), betas, 100, seeded_generator(0))
    low, high = missed.std_interval(3)
    assert high < truth - 5  # the failure is real: many nats low,
    assert high - low < 1  # with error bars that suggest nothing,
    assert any("too low by at least" in warning for warning in missed.warnings)  # and noticed
    unchecked = ais(BaseRatePath(rbm), betas[::100], 100, seeded_generator(0), check=False)
    assert (unchecked.lower_bound, unchecked.warnings) == (None, ())
    v, _ = exact_hidden_samples(rbm, 1000, seeded_generator(1))
    frequency = (v.mean(0) * 1000 + 5) / 1010
    estimate = ais(BaseRatePath(rbm, torch.logit(frequency)), betas, 100, seeded_generator(0))
    assert estimate.std_interval(3)[0] <= truth <= estimate.std_interval(3)[1]
    assert estimate.warnings == ()


def test_wild_weights_and_single_chains_are_warned_about():
    rbm = random_rbm(40, 20, seed=26, scale=1.5)
    wild = importance_sampling(BaseRatePath(rbm), 100, seeded_generator(0))
    assert any("vary too much" in warning for warning in wild.warnings)
    single = ais(BaseRatePath(rbm), uniform_betas(5), 1, seeded_generator(0))
    assert any("One chain" in warning for warning in single.warnings)


def test_the_number_of_chains_that_would_be_needed():
    """exp(s^2 / 2) for log-normal weights, here at the quantiles of a normal with s = 2."""
    places = (torch.arange(1_000, dtype=torch.float64) + 0.5) / 1_000
    log_weights = 2 * torch.distributions.Normal(0.0, 1.0).icdf(places)
    assert _log_runs_needed(log_weights) == pytest.approx(2**2 / 2, rel=0.02)
    # chains that went astray do not count
    log_weights[:300] -= 1_000
    assert _log_runs_needed(log_weights) == pytest.approx(2**2 / 2, rel=0.02)


@pytest.mark.parametrize(("spread", "shown"), [(4.2, None), (4.5, "1e+02"), (8.0, "6e+06")])
def test_log_weights_that_spread_widely_are_warned_about(spread, shown):
    """49 of 100 chains a few nats above the others.

    exp(0.49 spread^2 / 2) chains would be needed: 100 from 4.34 nats on.
    """
    log_weights = torch.zeros(100, dtype=torch.float64)
    log_weights[:49] = spread
    warnings = find_warnings(PartitionEstimate(log_weights, torch.zeros(100, 1)), False)
    if shown is None:
        assert warnings == ()
    else:
        (warning,) = warnings
        assert f"spread so widely that about {shown} chains would be needed" in warning
        assert "there are 100" in warning
