"""Early stops on models with two phases, where a narrow interval comes from seeing only one."""

import math

import pytest
import torch
from enumeration import all_states

from boltzmann_likelihood import planted
from boltzmann_likelihood.evaluation.evaluation import (
    Effort,
    _confirmed,
    estimate,
    find_start,
    target_of,
)
from boltzmann_likelihood.planted.planted_model import draw_indices
from paperlib.annealing import path_to, start_bias
from paperlib.estimators import parallel_tempering
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

EFFORT = Effort(64, 20_000)


def ising(coupling, field):
    """A lattice of 4 x 4 spins in a field, and exact draws."""
    zero = planted.ising_2d(4, coupling).rbm
    rbm = RBM(zero.weights, zero.visible_bias + 2 * field, zero.hidden_bias)
    states = all_states(16)
    log_p = rbm.log_unnormalized(states)
    generator = seeded_generator(7)
    return rbm, log_p.logsumexp(0).item(), states[draw_indices(log_p, 100, generator)]


def equal_weights(coupling, field):
    """The model of Curie and Weiss with 50 spins, as 30 hidden units, and exact draws.

    The weights of the hidden units are equal.
    """
    visible = 50
    hidden = 30
    weight = math.sqrt(coupling / (visible * hidden))
    rbm = RBM(
        torch.full((visible, hidden), 4 * weight, dtype=torch.float64),
        torch.full((visible,), 2 * field - 2 * weight * hidden, dtype=torch.float64),
        torch.full((hidden,), -2 * weight * visible, dtype=torch.float64),
    )
    count = torch.arange(visible + 1, dtype=torch.float64)
    ways = torch.lgamma(torch.tensor(visible + 1.0, dtype=torch.float64))
    ways = ways - torch.lgamma(count + 1) - torch.lgamma(visible - count + 1)
    states = (torch.arange(visible) < count[:, None]).double()
    log_p = ways + rbm.log_unnormalized(states)
    generator = seeded_generator(7)
    counts = draw_indices(log_p, 100, generator)
    places = torch.rand(100, visible, generator=generator).argsort(1).argsort(1)
    return rbm, log_p.logsumexp(0).item(), (places < counts[:, None]).double()


def stop(model, test, seed, tolerance):
    """Whether a run may end an evaluation, and what it says."""
    start = find_start(target_of(model, test, exact=False), seeded_generator(seed))
    evaluation = estimate(start, EFFORT, False)
    low, high = evaluation.log_z_interval(0.95)
    narrow = evaluation.trustworthy and high - low <= tolerance
    return narrow and _confirmed([start], [evaluation], False), (low, high)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("field", [0.07, 0.1])
def test_an_interval_of_one_phase_stops_nothing(field, seed):
    """The second phase lies 2 or 3 nats below the first; the narrow intervals miss it."""
    model, log_z, test = ising(0.55, field)
    stopped, (low, high) = stop(model, test, seed, 0.25)
    assert not stopped or low <= log_z <= high


@pytest.mark.parametrize("field", [0.0, 0.015])
def test_runs_between_phases_that_mix_stop(field):
    """Where chains go from phase to phase, nearly all narrow intervals are confirmed, and hold."""
    model, log_z, test = equal_weights(1.3, field)
    stops = [stop(model, test, seed, 0.25) for seed in range(5)]
    assert sum(stopped for stopped, _ in stops) >= 4
    assert all(low <= log_z <= high for stopped, (low, high) in stops if stopped)


@pytest.mark.parametrize("field", [0.07, 0.1])
def test_narrow_intervals_alone_would_be_wrong(field):
    """What the confirmation is there for: this test fails if there is no trap."""
    model, log_z, test = ising(0.55, field)
    path = path_to(model.to(dtype=torch.float32), start_bias(model, test, seeded_generator(0)))
    estimates = [parallel_tempering(path, 20_000, seed) for seed in range(8)]
    narrow = [each.interval(0.95) for each in estimates if 4 * each.std_error <= 0.25]
    assert sum(not low <= log_z <= high for low, high in narrow) >= 2
