"""AIS walked both ways, against enumeration."""

import math

import pytest
import torch
from enumeration import assert_unbiased, log_z, random_rbm
from evaluations import draws
from walks import THREE_WALKS, base_rates, draw_states

from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import TwoSidedEstimate, ais, parallel_tempering, two_sided_ais
from paperlib.numerics import seeded_generator


@THREE_WALKS
@pytest.mark.parametrize("num_steps", [1, 3])
def test_mean_of_reverse_weights_is_one_over_z(make, num_steps, backend):
    walk = make(backend)
    path, truth = walk.path, walk.truth
    # of the model itself, not of the one with rounded weights that the path walks to
    exact = draw_states(walk.log_target.log_softmax(0), 2_000, seeded_generator(num_steps))
    v, betas = walk.states[exact].to(path.device), uniform_betas(num_steps)
    estimate = two_sided_ais(path, betas, v, 2_000, backend.generator(num_steps), progress=False)
    # 90 cases: beyond 4 standard errors with probability 6e-3 in all, and the seeds are fixed
    assert_unbiased(-estimate.reverse, -truth)
    assert abs(estimate.log_z - truth) < 4.5 * estimate.std_error
    low, high = estimate.interval(0.9999)
    assert low < truth < high
    assert estimate.warnings == ()


def test_both_sides_err_their_own_way_and_bennett_lies_between():
    """One step is far too few, and five walks each: the two sides are more than a nat apart on average."""
    rbm = random_rbm(8, 6, seed=5, scale=1.5)
    path, truth = BaseRatePath(rbm), log_z(rbm)
    errors = []
    for seed in range(60):
        estimate = two_sided_ais(path, [0, 1], draws(rbm, 5, seed), 5, seeded_generator(seed))
        errors.append([estimate.lower, estimate.upper, estimate.log_z])
    errors = torch.tensor(errors) - truth
    mean, error = errors.mean(0), errors.std(0) / math.sqrt(60)
    assert mean[0] < -4 * error[0]
    assert mean[1] > 4 * error[1]
    square = errors.square().mean(0)
    assert square[2] < square[:2].min()


def test_draws_of_parallel_tempering_and_weights_of_ais():
    walk = base_rates()
    path, truth = walk.path, walk.truth
    betas = uniform_betas(20)
    samples = parallel_tempering(path, 10_000, seeded_generator(0), num_replicas=10).samples
    forward = ais(path, betas, 300, seeded_generator(1)).log_weights
    estimate = two_sided_ais(
        path, betas, samples, generator=seeded_generator(2), forward=forward, num_batches=20
    )
    assert torch.equal(estimate.forward, forward)
    assert abs(estimate.log_z - truth) < 4.5 * estimate.std_error
    assert estimate.bennett.degrees_of_freedom == 19
    assert "from below" in repr(estimate)


def test_draws_that_are_not_the_targets_are_noticed_where_the_sides_cross():
    weights = torch.linspace(0, 0.1, 50, dtype=torch.float64)
    assert any("exceeds" in text for text in TwoSidedEstimate(weights + 1, weights).warnings)
    lone = TwoSidedEstimate(weights[:1], weights[:1])
    assert lone.interval() == (-math.inf, math.inf)
