"""The particles of chapter 4's player: their weights, and where they are at every moment."""

import torch

from boltzmann_companion.studies.two_bumps import anneal
from paperlib.annealing import AnnealingPath, uniform_betas

BETAS = uniform_betas(6).tolist()


class Line(AnnealingPath):
    """Nine places, from a bump in the middle to one at each end, in steps to a neighbour."""

    log_start = -0.5 * (torch.arange(9).double() - 4).square()
    log_target = torch.tensor([3.0, 1, -1, -3, -5, -3, -1, 1, 2]).double()

    def sample_start(self, num_chains, generator):
        start = self.log_start.softmax(0)
        return torch.multinomial(start, num_chains, True, generator=generator)

    def log_f(self, state, beta):
        return torch.lerp(self.log_start, self.log_target, beta)[state]

    def transition(self, state, beta, generator):
        move = 2 * torch.randint(2, state.shape, generator=generator) - 1
        proposed = (state + move).clamp(0, 8)
        log_ratio = self.log_f(proposed, beta) - self.log_f(state, beta)
        chance = torch.rand(state.shape, dtype=torch.float64, generator=generator)
        return torch.where(chance.log() < log_ratio, proposed, state)


def test_mean_weight_of_annealed_particles_is_the_ratio_of_partition_functions():
    particles = anneal(Line(), BETAS, 40_000, seed=2)
    for beta, log_weights in zip(BETAS[1:], particles.log_weights[1:], strict=True):
        log_f_beta = torch.lerp(Line.log_start, Line.log_target, beta)
        ratio = (log_f_beta.logsumexp(0) - Line.log_start.logsumexp(0)).exp()
        weights = log_weights.exp()
        assert abs(weights.mean() - ratio) < 5 * weights.std() / 40_000**0.5


def test_particles_are_recorded_moment_by_moment():
    particles = anneal(Line(), BETAS, 4, seed=0)
    assert particles.betas == BETAS
    assert particles.places.shape == particles.log_weights.shape == (7, 4)
    assert bool((particles.log_weights[0] == 0).all())
    steps = particles.places.diff(dim=0).abs()
    assert bool((steps <= 1).all())
    assert bool((steps == 1).any())
