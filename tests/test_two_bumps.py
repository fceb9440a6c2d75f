"""The path on a line, against its transition matrix; and the particles that are drawn from it."""

import pytest
import torch

from boltzmann_companion.studies.two_bumps import TwoBumpPath, anneal, melt
from paperlib.annealing import uniform_betas

PLACES = 61
BETAS = uniform_betas(6).tolist()


def density(path, beta):
    return path.log_density(beta).exp()


def kernel(path, beta):
    """One Metropolis step, by hand: T[x, y] from x to y."""
    p = density(path, beta)
    matrix = torch.zeros(PLACES, PLACES, dtype=torch.float64)
    for x in range(PLACES):
        for y in (x - 1, x + 1):
            if 0 <= y < PLACES:
                matrix[x, y] = 0.5 * min(1.0, (p[y] / p[x]).item())
        matrix[x, x] = 1 - matrix[x].sum()
    return matrix


def moved(path, beta, moves):
    return torch.linalg.matrix_power(kernel(path, beta), moves)


def test_target_has_two_bumps_of_unequal_mass():
    path = TwoBumpPath(moves=1)
    p = density(path, 1.0)
    left = p[:25].sum()
    middle = p[25:31].sum()
    right = p[31:].sum()
    assert middle < 0.02 < left
    assert middle < 0.02 < right
    assert path.log_z == pytest.approx(path.log_f(torch.arange(PLACES), 1.0).logsumexp(0).item())
    assert path.log_z_start == pytest.approx(
        path.log_f(torch.arange(PLACES), 0.0).logsumexp(0).item()
    )


def test_mean_weight_of_annealed_particles_is_the_ratio_of_partition_functions():
    path = TwoBumpPath(moves=2)
    weights = anneal(path, BETAS, 40_000, seed=2).log_weights[-1].exp()
    ratio = torch.tensor(path.log_z - path.log_z_start, dtype=torch.float64).exp()
    assert abs(weights.mean() - ratio) < 5 * weights.std() / 40_000**0.5


@pytest.mark.parametrize("place", [15, 30, 45])
def test_mean_weight_of_melted_particles_is_the_probability_under_the_annealing_model(place):
    path = TwoBumpPath(moves=2)
    end = density(path, 0.0)
    for beta in BETAS[1:]:
        end = end @ moved(path, beta, 2)
    weights = melt(path, BETAS, place, 40_000, seed=3).log_weights[-1].exp()
    assert abs(weights.mean() - end[place]) < 5 * weights.std() / 40_000**0.5


def test_particles_are_recorded_moment_by_moment():
    path = TwoBumpPath(moves=1)
    up = anneal(path, BETAS, 4, seed=0)
    down = melt(path, BETAS, 20, 4, seed=0)
    assert up.betas == BETAS
    assert down.betas == BETAS[::-1]
    assert up.places.shape == up.log_weights.shape == (7, 4)
    assert bool((up.log_weights[0] == 0).all())
    assert bool((down.places[0] == 20).all())
    assert bool(((up.places[1:] - up.places[:-1]).abs() <= 1).all())
