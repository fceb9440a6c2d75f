"""Sequential Monte Carlo against enumeration: unbiased estimates, AIS as a special case, schedules, coverage, warnings."""

import math
from contextlib import nullcontext
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from enumeration import (
    assert_unbiased,
    joint_log_table,
    log_z,
    missed_mode_rbm,
    random_rbm,
    state_numbers,
)
from walks import BIAS, EVERY_WALK

from paperlib.annealing import AnnealingPath, BaseRatePath, uniform_betas
from paperlib.errors import InputError
from paperlib.estimators import ais, smc
from paperlib.estimators.smc import smc as smc_module
from paperlib.estimators.smc.pilot import PilotSchedule, conditional_effective_part, pilot_schedule
from paperlib.estimators.smc.resampling import effective_part, systematic
from paperlib.estimators.smc.smc import log_z_std_error
from paperlib.numerics import seeded_generator

PEAKED = random_rbm(4, 3, seed=31, scale=1.5)


def problem():
    """A path, and the ln Z that is to be found."""
    return BaseRatePath(PEAKED, BIAS), log_z(PEAKED)


@EVERY_WALK
def test_estimates_of_populations_are_unbiased_on_every_backend(make, backend, monkeypatch):
    monkeypatch.setattr(smc_module, "THRESHOLD", 0.9)
    walk = make(backend)
    path, truth = walk.path, walk.truth
    betas = uniform_betas(5)
    # all chains of a population in one block, and more than one block
    found = smc(path, 20, backend.generator(1), betas=betas, num_populations=600)
    # in easy problems fewer than in others, but many of them, and not all at the same steps
    assert found.resampled.sum() > 200
    # 105 cases: beyond four standard errors with probability 7e-3 in all, and the seeds are fixed
    assert_unbiased(found.log_weights, truth, 0.03)


@EVERY_WALK
def test_without_resampling_it_is_ais_on_every_backend(make, backend, monkeypatch):
    monkeypatch.setattr(smc_module, "THRESHOLD", 0)
    path = make(backend).path
    betas = uniform_betas(7)
    one = smc(path, 50, backend.generator(2), betas=betas, num_populations=1)
    other = ais(path, betas, 50, backend.generator(2))
    assert torch.equal(one.chain_log_weights[0].cpu(), other.log_weights.cpu())
    assert torch.equal(one.final_states[0].cpu(), other.final_states.cpu())
    assert one.log_z == pytest.approx(other.log_z, abs=1e-12)
    assert one.chain_steps == 7 * 50


def test_a_schedule_that_a_pilot_finds_biases_nothing():
    """Each of many runs with a pilot of its own."""
    path, truth = problem()
    runs = [smc(path, 20, seeded_generator(seed), num_populations=10) for seed in range(100)]
    assert len({len(run.betas) for run in runs}) > 1
    assert_unbiased(torch.cat([run.log_weights for run in runs]), truth, 0.03)


def test_weighed_chains_are_draws_of_the_target():
    path, truth = problem()
    found = smc(path, 30, seeded_generator(3), num_populations=400)
    weights = (found.chain_log_weights - truth).exp()
    states = state_numbers(found.final_states.flatten(0, 1)).view(weights.shape)
    exact = (torch.logsumexp(joint_log_table(PEAKED), 1) - truth).exp()
    for state, probability in enumerate(exact):
        # unbiased for each state, and populations are independent
        each = (weights * (states == state)).mean(1)
        assert abs(each.mean() - probability) < 4 * each.std() / math.sqrt(len(each)) + 1e-9


# ---- error


def test_intervals_cover_as_often_as_they_say(monkeypatch):
    # The search for it takes half of the time.
    monkeypatch.setattr(BaseRatePath, "log_z_lower_bound", lambda path, states: None)
    rbm = random_rbm(6, 4, seed=24, scale=2)
    path, truth, runs = BaseRatePath(rbm), log_z(rbm), 250
    levels, covered = (0.8, 0.95), torch.zeros(2)
    for seed in range(runs):
        found = smc(path, 20, seeded_generator(seed), chain_steps=1_200, num_populations=8)
        intervals = [found.interval(level) for level in levels]
        covered += torch.tensor([float(low <= truth <= high) for low, high in intervals])
    for level, count in zip(levels, covered.tolist(), strict=True):
        # four standard deviations of the number of runs that cover, and a per cent: the error is itself an approximation
        spread = 4 * math.sqrt(runs * level * (1 - level)) + 0.01 * runs
        assert abs(count - level * runs) < spread


def test_the_standard_error_is_that_of_a_mean_of_log_normal_numbers():
    spread, count = 0.7, 12
    draws = spread * torch.randn(count, 40_000, generator=seeded_generator(5)).double()
    errors = draws.exp().mean(0).log()
    stated = log_z_std_error(draws).square().mean().sqrt()
    assert stated == pytest.approx(errors.std().item(), rel=0.1)
    assert log_z_std_error(draws[:1, 0]).item() == math.inf


# ---- resampling


def test_systematic_resampling_takes_each_chain_as_often_as_its_share_demands():
    shares = torch.tensor([0.45, 0.3, 0.2, 0.05, 0.0], dtype=torch.float64).repeat(4_000, 1)
    uneven = torch.arange(4_000) % 2 == 0
    index = systematic(shares.log(), uneven, seeded_generator(7))
    counts = torch.stack([(index == chain).sum(1) for chain in range(5)], 1).double()
    assert (counts[~uneven] == 1).all()
    redrawn, expected = counts[uneven], 5 * shares[0]
    assert ((redrawn >= expected.floor()) & (redrawn <= expected.ceil())).all()
    # a count is one of two neighbouring numbers: its standard deviation is at most a half
    assert ((redrawn.mean(0) - expected).abs() < 4 * 0.5 / math.sqrt(2_000)).all()


def test_every_population_is_resampled_by_its_own_weights():
    log_weights = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.0, -50.0, -50.0, -50.0]]).double()
    part = effective_part(log_weights)
    assert part.tolist() == pytest.approx([1.0, 0.25])
    index = systematic(log_weights, part < 0.5, seeded_generator(8))
    assert index.tolist() == [[0, 1, 2, 3], [0, 0, 0, 0]]


def test_populations_keep_to_themselves(monkeypatch):
    """Chains that never move and are named by numbers: those at the end are of their own population, and are its ancestors."""
    monkeypatch.setattr(smc_module, "THRESHOLD", 1)

    class Names(AnnealingPath):
        def sample_start(self, num_chains, generator):
            return torch.arange(num_chains, dtype=torch.float64)

        def log_f(self, state, beta):
            return beta * torch.sin(37 * state)

        def transition(self, state, beta, generator):
            return state

    found = smc(Names(), 10, seeded_generator(20), betas=uniform_betas(5), num_populations=6)
    names = found.final_states.squeeze(2).long()
    assert (names // 10 == torch.arange(6)[:, None]).all()
    assert (found.resampled == 4).all()
    for population, ancestors in zip(names, found.ancestors.tolist(), strict=True):
        assert len(population.unique()) == ancestors < 10


def test_ancestors_are_counted(monkeypatch):
    path, _ = problem()
    # There is no resampling at the end of the path.
    never = smc(path, 40, seeded_generator(9), betas=[0, 1], num_populations=2)
    assert never.ancestors.tolist() == [40, 40]
    weights = never.chain_log_weights.exp()
    assert torch.allclose(never.families, weights.sum(1) ** 2 / weights.square().sum(1))
    monkeypatch.setattr(smc_module, "THRESHOLD", 1)
    often = smc(path, 40, seeded_generator(9), betas=uniform_betas(8), num_populations=2)
    assert often.resampled.tolist() == [7, 7]
    assert (often.families <= often.ancestors + 1e-9).all()
    assert (often.ancestors < 40).all()


# ---- schedules


class OneSided(AnnealingPath[torch.Tensor]):
    """Cauchy draws that stay where they are, and ln f_beta(x) = -beta ((x - centre) / 0.5)^2 / 2: no ratio is above 0."""

    def __init__(self, centre):
        self.centre = centre

    def sample_start(self, num_chains, generator):
        uniform = torch.rand(num_chains, dtype=torch.float64, generator=generator)
        return torch.tan(math.pi * (uniform - 0.5))

    def log_f(self, state, beta):
        return -beta * ((state - self.centre) / 0.5) ** 2 / 2

    def transition(self, state, beta, generator):
        return state


@pytest.mark.parametrize(
    "path", [problem()[0], OneSided(2), OneSided(-2)], ids=["RBM", "right", "left"]
)
def test_the_pilot_takes_steps_of_the_set_size(path):
    """Its first steps again, with the same draws, and the fraction at each computed from ln f itself."""
    found = pilot_schedule(path, 2_000, 0.85, 0, seeded_generator(10), lambda chains: None)
    generator = seeded_generator(10)
    state = path.sample_start(2_000, generator)
    log_weights = torch.zeros(1, 2_000, dtype=torch.float64)
    for low, high in pairwise(found.betas):
        ratio = (path.log_f(state, high) - path.log_f(state, low))[None]
        shares, u = log_weights.softmax(1), ratio.exp()
        part = (shares * u).sum() ** 2 / (shares * u**2).sum()
        assert conditional_effective_part(log_weights, ratio) == pytest.approx(part.item())
        if high < 1:
            assert 0.85 <= part < 0.86
        else:
            assert part >= 0.85
        log_weights += ratio
        state = path.transition(state, high, generator)
    assert found.betas[-1] == 1
    assert found.chain_steps == 2_000 * len(found.distances)


def test_a_budget_is_spent_told_and_not_exceeded(monkeypatch):
    path, _ = problem()
    for budget in (400, 1_000, 5_017):
        told = []
        bar = nullcontext(SimpleNamespace(update=told.append))
        monkeypatch.setattr(smc_module, "step_bar", lambda *_, bar=bar: bar)
        found = smc(path, 20, seeded_generator(11), chain_steps=budget, num_populations=10)
        assert sum(told) == found.chain_steps
        # what is left is less than one more step of all chains
        assert budget - 200 < found.chain_steps <= budget


def test_a_pilot_that_did_not_arrive_is_told(monkeypatch):
    path = BaseRatePath(random_rbm(6, 4, seed=24, scale=3), torch.ones(6))
    arrived = smc(path, 20, seeded_generator(12))
    assert not any("The pilot" in warning for warning in arrived.warnings)
    monkeypatch.setattr(smc_module, "CESS", 0.99)
    found = smc(path, 20, seeded_generator(12), chain_steps=400, num_populations=10)
    assert any("The pilot came to beta" in warning for warning in found.warnings)
    assert found.betas[0] == 0
    assert found.betas[-1] == 1


def test_a_schedule_is_spread_over_the_same_distance():
    pilot = PilotSchedule([0.0, 0.5, 0.6, 1.0], [0.3, 0.3, 0.15], 3)
    assert pilot.spread(5) == pytest.approx([0.0, 0.25, 0.5, 0.55, 0.6, 1.0])
    stopped = PilotSchedule([0.0, 0.4, 0.6], [0.3, 0.3], 2)
    assert not stopped.complete
    assert stopped.spread(4) == pytest.approx([0.0, 0.4, 0.6, 0.8, 1.0])


# ---- warnings


def test_a_missed_mode_and_a_uniform_start_are_noticed():
    found = smc(BaseRatePath(missed_mode_rbm()), 20, seeded_generator(15))
    assert "too low by at least" in found.warnings[0]
    assert "uniformly random pixels" in found.warnings[-1]
    assert found.lower_bound > found.interval(0.997)[1]


def test_genealogical_collapse_wide_spreads_and_lone_populations_are_warned_about():
    rbm = random_rbm(30, 20, seed=26, scale=1.5)
    path = BaseRatePath(rbm, rbm.visible_bias)
    few = smc(path, 30, seeded_generator(16), betas=uniform_betas(15))
    assert any("effective ancestors" in warning for warning in few.warnings)
    cold = BaseRatePath(random_rbm(30, 20, seed=26, scale=3), rbm.visible_bias)
    wild = smc(cold, 30, seeded_generator(16), betas=uniform_betas(5))
    assert any("spread by" in warning for warning in wild.warnings)
    lone = smc(path, 30, seeded_generator(16), betas=uniform_betas(3), num_populations=1)
    assert any("One population gives no error" in warning for warning in lone.warnings)
    assert lone.interval() == (-math.inf, math.inf)
    assert smc(problem()[0], 100, seeded_generator(17)).warnings == ()


# ---- paths that cannot be walked


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_paths_without_finite_weights(value):
    class Broken(BaseRatePath):
        def log_ratio(self, state, beta_from, beta_to):
            return super().log_ratio(state, beta_from, beta_to) + value

    path = Broken(random_rbm(4, 3, 1))
    with pytest.raises(InputError, match="path: expected ln f to change continuously"):
        smc(path, 10)
    with pytest.raises(InputError, match="path: expected finite log-weights"):
        smc(path, 10, betas=[0, 0.5, 1])


def test_a_path_that_jumps():
    class Jump(BaseRatePath):
        def log_ratio(self, state, beta_from, beta_to):
            ratio = super().log_ratio(state, beta_from, beta_to)
            crossed = float(beta_from < 0.3 <= beta_to)
            return ratio + 10 * crossed * state.v[:, 0]

    with pytest.raises(InputError, match=r"got a jump or NaN near beta = 0\.3"):
        smc(Jump(random_rbm(4, 3, 1)), 50, seeded_generator(0))
