"""How often intervals of few draws hold the truth.

Those of CSL from few chains, and of the bound of a DBN from few draws and cases.
"""

import math

import pytest
import torch
from enumeration import all_states, log_z, random_rbm

from paperlib.estimators import CSLEstimate, DBNBoundEstimate, csl_estimate, dbn_lower_bound
from paperlib.models import DBN
from paperlib.numerics import seeded_generator

REPEATS = 300
# Four standard errors of a share around 0.95.
SLACK = 4 * math.sqrt(0.95 * 0.05 / REPEATS)
SMALL = random_rbm(8, 5, 2)
VECTORS = all_states(8)[::29]
LAYERS = DBN([random_rbm(8, 6, 3), random_rbm(6, 5, 4)])


def share_held(numbers, truth, quantile=None):
    """The share of intervals that hold the truth, by Student's t or so many standard errors."""
    held = 0
    for each in numbers:
        low, high = each.interval(0.95)
        if quantile is not None:
            low = each.value - quantile * each.std_error
            high = each.value + quantile * each.std_error
        held += low <= truth <= high
    return held / len(numbers)


@pytest.mark.parametrize("chains", [2, 3, 5, 10])
def test_csl_of_few_chains(chains):
    estimate = csl_estimate(SMALL, VECTORS, REPEATS * chains, 400, seeded_generator(chains), False)
    truth = (SMALL.log_unnormalized(VECTORS) - log_z(SMALL)).mean().item()
    parts = [CSLEstimate(each) for each in estimate.log_means.split(chains, 1)]
    chain_errors = [each.monte_carlo for each in parts]
    assert abs(share_held(chain_errors, truth) - 0.95) < SLACK
    assert {each.dof for each in chain_errors} == {chains - 1}
    if chains <= 3:
        assert share_held(chain_errors, truth, 1.96) < 0.9


def test_csl_for_other_vectors_joins_both_errors():
    estimate = csl_estimate(SMALL, VECTORS, 4, 100, seeded_generator(0), False)
    assert estimate.uncertain.std_error == estimate.std_error
    assert estimate.degrees_of_freedom >= 3
    low, high = estimate.interval(0.95)
    narrow = estimate.monte_carlo.interval(0.95)
    assert low < narrow[0] < estimate.mean < narrow[1] < high


@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (1, 1)], ids=["one chain", "one vector", "one"])
def test_csl_without_an_error(shape):
    chains, vectors = shape
    estimate = csl_estimate(SMALL, VECTORS[:vectors], chains, 10, seeded_generator(0), False)
    assert estimate.interval(0.95) == (-math.inf, math.inf)


@pytest.mark.parametrize(("cases", "draws"), [(100, 2), (50, 5), (20, 10)])
def test_dbn_bound_of_few_draws(cases, draws):
    """On these very cases, from the draws alone."""
    vectors = all_states(8)[torch.randperm(256, generator=seeded_generator(1))[:cases]]
    whole = dbn_lower_bound(LAYERS, vectors, 0.0, REPEATS * draws, seeded_generator(2))
    truth = dbn_lower_bound(LAYERS, vectors, 0.0, 4_000, seeded_generator(3)).bound
    parts = [
        DBNBoundEstimate(each, whole.entropy, 0.0, (0.0, 0.0)).monte_carlo
        for each in whole.expected_log_joint.split(draws, 1)
    ]
    assert abs(share_held(parts, truth) - 0.95) < SLACK
    assert all(draws - 1 <= each.dof <= cases * (draws - 1) for each in parts)


@pytest.mark.parametrize(("cases", "draws"), [(1, 199), (5, 5), (39, 5), (300, 1)])
def test_dbn_bound_of_too_few_draws(cases, draws):
    vectors = all_states(8)[:256].repeat(2, 1)[:cases]
    monte_carlo = dbn_lower_bound(LAYERS, vectors, 0.0, draws, seeded_generator(2)).monte_carlo
    assert monte_carlo.interval(0.95) == (-math.inf, math.inf)


@pytest.mark.parametrize("cases", [2, 3, 5, 50])
def test_dbn_bound_for_other_cases(cases):
    """From few cases, with Student's t."""
    states = all_states(8)
    truth = dbn_lower_bound(LAYERS, states, 0.0, 500, seeded_generator(3)).bound
    generator = seeded_generator(4)
    estimates = []
    for _ in range(REPEATS):
        chosen = states[torch.randint(0, 256, (cases,), generator=generator)]
        estimates.append(dbn_lower_bound(LAYERS, chosen, 0.0, 5, generator).uncertain)
    assert abs(share_held(estimates, truth) - 0.95) < SLACK
    if cases <= 3:
        assert share_held(estimates, truth, 1.96) < 0.9
