"""Annealing with resampling: schedules, coverage, ancestors, warnings.

`test_extending` compares it with enumeration and with AIS.
"""

import math
from itertools import pairwise

import pytest
import torch
from enumeration import assert_unbiased, log_z, missed_mode_rbm, random_rbm
from walks import BIAS, EVERY_WALK

from boltzmann_companion.studies.annealed_smc import PopulationEstimate, annealed_smc
from boltzmann_companion.studies.budgeted_estimators import populations
from boltzmann_companion.studies.pilot_schedules import (
    PilotSchedule,
    conditional_effective_part,
    pilot_schedule,
)
from paperlib.annealing import AnnealingPath, BaseRatePath, uniform_betas
from paperlib.errors import InputError
from paperlib.estimators import ais
from paperlib.numerics import seeded_generator

PEAKED = random_rbm(4, 3, seed=31, scale=1.5)
PATH = BaseRatePath(PEAKED, BIAS)


def test_a_schedule_that_a_pilot_finds_biases_nothing():
    """Each of many runs with a pilot of its own."""
    runs = []
    lengths = set()
    for seed in range(100):
        generator = seeded_generator(seed)
        betas = pilot_schedule(PATH, 20, generator).betas
        runs.append(annealed_smc(PATH, betas, 20, 10, generator).log_weights)
        lengths.add(len(betas))
    assert len(lengths) > 1
    assert_unbiased(torch.cat(runs), log_z(PEAKED), 0.03)


@EVERY_WALK
def test_without_resampling_it_is_ais_on_every_backend(make, backend):
    path = make(backend).path
    betas = uniform_betas(7)
    never = annealed_smc(path, betas, 50, 1, backend.generator(2), threshold=0)
    same = ais(path, betas, 50, backend.generator(2))
    assert never.log_z == pytest.approx(same.log_z, abs=1e-12)
    assert never.families.item() == pytest.approx(same.effective_sample_size, rel=1e-12)


# ---- error


def test_intervals_cover_as_often_as_they_say(monkeypatch):
    # The search for it takes half of the time.
    monkeypatch.setattr(BaseRatePath, "log_z_lower_bound", lambda path, states: None)
    rbm = random_rbm(6, 4, seed=24, scale=2)
    path = BaseRatePath(rbm)
    truth = log_z(rbm)
    runs = 250
    levels = (0.8, 0.95)
    covered = torch.zeros(2)
    for seed in range(runs):
        generator = seeded_generator(seed)
        betas = pilot_schedule(path, 20, generator, 15).spread(6)
        estimate = annealed_smc(path, betas, 20, 8, generator)
        intervals = [estimate.interval(level) for level in levels]
        covered += torch.tensor([float(low <= truth <= high) for low, high in intervals])
    for level, count in zip(levels, covered.tolist(), strict=True):
        # four standard deviations of the number of runs that cover, and a per cent: the error is
        # itself an approximation
        spread = 4 * math.sqrt(runs * level * (1 - level)) + 0.01 * runs
        assert abs(count - level * runs) < spread


def test_the_standard_error_is_that_of_a_mean_of_log_normal_numbers():
    # so wide that without its second term the error would be a sixth too small
    count = 12
    draws = torch.randn(10_000, count, generator=seeded_generator(5)).double()
    nothing = torch.zeros(count)
    estimates = [PopulationEstimate(row, nothing, nothing) for row in draws]
    errors = torch.tensor([estimate.log_z for estimate in estimates])
    stated = torch.tensor([estimate.std_error for estimate in estimates])
    assert stated.square().mean().sqrt().item() == pytest.approx(errors.std().item(), rel=0.1)


# ---- ancestors


class Names(AnnealingPath[torch.Tensor]):
    """Chains that never move and are named by numbers; `seen` gets those of the last step."""

    def sample_start(self, num_chains, generator):
        return torch.arange(num_chains, dtype=torch.float64)

    def log_f(self, state, beta):
        return beta * torch.sin(37 * state)

    def transition(self, state, beta, generator):
        self.seen = state.long()
        return state


def test_populations_keep_to_themselves():
    """Those at the end are of their own population.

    With equal weights each counts as often as its ancestor has descendants.
    """
    path = Names()
    estimate = annealed_smc(path, uniform_betas(5), 10, 6, seeded_generator(20), threshold=1)
    names = path.seen.view(6, 10)
    assert (names // 10 == torch.arange(6)[:, None]).all()
    assert (estimate.resampled == 4).all()
    for population, families in zip(names, estimate.families.tolist(), strict=True):
        ancestors, descendants = population.unique(return_counts=True)
        assert 1 < len(ancestors) < 10
        # the weights since the last resampling, before the last step
        weights = descendants * torch.exp(0.2 * torch.sin(37 * ancestors.double()))
        assert families == pytest.approx((weights.sum() ** 2 / weights.square().sum()).item())


def test_a_population_with_weights_that_are_even_enough_goes_on_as_it_is():
    class Uneven(Names):
        def log_f(self, state, beta):
            return beta * torch.where(state < 10, 20.0, 1.4) * torch.sin(37 * state)

    path = Uneven()
    estimate = annealed_smc(path, uniform_betas(5), 10, 3, seeded_generator(21))
    assert estimate.resampled.tolist()[0] > 0
    assert estimate.resampled.tolist()[1:] == [0, 0]
    assert len(path.seen[:10].unique()) < 10
    assert path.seen[10:].tolist() == list(range(10, 30))


# ---- schedules


class OneSided(AnnealingPath[torch.Tensor]):
    """Cauchy draws that stay, and ln f_beta(x) = -beta ((x - centre) / 0.5)^2 / 2.

    No ratio is above 0.
    """

    def __init__(self, centre):
        self.centre = centre

    def sample_start(self, num_chains, generator):
        uniform = torch.rand(num_chains, dtype=torch.float64, generator=generator)
        return torch.tan(math.pi * (uniform - 0.5))

    def log_f(self, state, beta):
        return -beta * ((state - self.centre) / 0.5) ** 2 / 2

    def transition(self, state, beta, generator):
        return state


@pytest.mark.parametrize("path", [PATH, OneSided(2), OneSided(-2)], ids=["RBM", "right", "left"])
def test_the_pilot_takes_steps_of_the_set_size(path):
    """Its first steps again, with the same draws, and the fraction at each by ln f itself."""
    pilot = pilot_schedule(path, 2_000, seeded_generator(10), fraction=0.85, threshold=0)
    generator = seeded_generator(10)
    state = path.sample_start(2_000, generator)
    log_weights = torch.zeros(1, 2_000, dtype=torch.float64)
    for (low, high), distance in zip(pairwise(pilot.betas), pilot.distances, strict=True):
        ratio = (path.log_f(state, high) - path.log_f(state, low))[None]
        shares = log_weights.softmax(1)
        u = ratio.exp()
        part = (shares * u).sum() ** 2 / (shares * u**2).sum()
        assert conditional_effective_part(log_weights, ratio) == pytest.approx(part.item())
        assert distance == pytest.approx(math.sqrt(-math.log(part)), rel=1e-3)
        if high < 1:
            assert 0.85 <= part < 0.86
        else:
            assert part >= 0.85
        log_weights += ratio
        state = path.transition(state, high, generator)
    assert pilot.betas[-1] == 1
    assert pilot.chain_steps == 2_000 * len(pilot.distances)


@pytest.mark.parametrize("budget", [2_000, 5_017])
def test_a_budget_is_spent_and_not_exceeded(budget):
    # what is left is less than one more step of all chains
    assert budget - 200 < populations(PATH, budget, seeded_generator(11))[1] <= budget


def test_a_pilot_that_did_not_arrive_is_told():
    arrived, _ = populations(PATH, 2_000, seeded_generator(12))
    assert not any("The pilot" in warning for warning in arrived.warnings)
    cold = BaseRatePath(random_rbm(60, 50, seed=26, scale=3), torch.ones(60))
    stopped, _ = populations(cold, 2_000, seeded_generator(12))
    assert any("The pilot came to beta" in warning for warning in stopped.warnings)


def test_a_schedule_is_spread_over_the_same_distance():
    pilot = PilotSchedule([0.0, 0.5, 0.6, 1.0], [0.3, 0.3, 0.15], 3)
    assert pilot.spread(5) == pytest.approx([0.0, 0.25, 0.5, 0.55, 0.6, 1.0])
    stopped = PilotSchedule([0.0, 0.4, 0.6], [0.3, 0.3], 2)
    assert not stopped.complete
    assert stopped.spread(4) == pytest.approx([0.0, 0.4, 0.6, 0.8, 1.0])


# ---- warnings


def test_a_missed_mode_and_a_uniform_start_are_noticed():
    path = BaseRatePath(missed_mode_rbm())
    warnings = annealed_smc(path, uniform_betas(20), 20, 10, seeded_generator(15)).warnings
    assert "too low by at least" in warnings[0]
    assert "uniformly random pixels" in warnings[-1]


def test_genealogical_collapse_wide_spreads_and_lone_populations_are_warned_about():
    rbm = random_rbm(30, 20, seed=26, scale=1.5)
    path = BaseRatePath(rbm, rbm.visible_bias)
    few = annealed_smc(path, uniform_betas(15), 30, 10, seeded_generator(16))
    assert any("effective ancestors" in warning for warning in few.warnings)
    cold = BaseRatePath(random_rbm(30, 20, seed=26, scale=3), rbm.visible_bias)
    wild = annealed_smc(cold, uniform_betas(5), 30, 10, seeded_generator(16))
    assert any("spread by" in warning for warning in wild.warnings)
    lone = annealed_smc(path, uniform_betas(3), 30, 1, seeded_generator(16))
    assert any("One population gives no error" in warning for warning in lone.warnings)
    assert lone.interval() == (-math.inf, math.inf)
    assert annealed_smc(PATH, uniform_betas(10), 100, 10, seeded_generator(17)).warnings == ()


# ---- paths that cannot be walked


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_paths_without_finite_weights(value):
    class Broken(BaseRatePath):
        def log_ratio(self, state, beta_from, beta_to):
            return super().log_ratio(state, beta_from, beta_to) + value

    path = Broken(random_rbm(4, 3, 1))
    with pytest.raises(InputError, match="path: expected ln f to change continuously"):
        pilot_schedule(path, 10, seeded_generator(0))
    with pytest.raises(InputError, match="path: expected finite log-weights"):
        annealed_smc(path, [0, 0.5, 1], 10)


def test_a_path_that_jumps():
    class Jump(BaseRatePath):
        def log_ratio(self, state, beta_from, beta_to):
            ratio = super().log_ratio(state, beta_from, beta_to)
            crossed = float(beta_from < 0.3 <= beta_to)
            return ratio + 10 * crossed * state.v[:, 0]

    with pytest.raises(InputError, match=r"got a jump or NaN near beta = 0\.3"):
        pilot_schedule(Jump(random_rbm(4, 3, 1)), 50, seeded_generator(0))
