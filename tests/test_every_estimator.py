"""What holds for everything that draws: the same numbers for the same generator.

On any number of threads, and no other generator moves.
"""

from dataclasses import fields, is_dataclass
from functools import partial

import numpy as np
import pytest
import torch
from enumeration import all_states, random_rbm

from boltzmann_companion.studies.annealed_smc import annealed_smc
from boltzmann_likelihood import planted
from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import (
    ais,
    csl_log_prob,
    dbn_lower_bound,
    exact_hidden_samples,
    parallel_tempering,
    raise_log_prob,
)
from paperlib.kernels import draw_bits
from paperlib.models import DBN
from paperlib.numerics import seeded_generator

# Few: each step divides the chains and joins them again.
BETAS = uniform_betas(6)
# So wide, and so many chains, that there are several blocks of them.
DOUBLE = BaseRatePath(random_rbm(150, 140, 1, scale=0.3, dtype=torch.float64))
SINGLE = BaseRatePath(random_rbm(150, 140, 1, scale=0.3, dtype=torch.float32))
V = draw_bits(torch.full((7, 150), 0.5), seeded_generator(0))
SMALL = random_rbm(5, 4, 1)


def planted_draws(generator=None):
    return planted.low_rank(9, 6, generator=generator).draws(3, generator)


WALKS = {
    "AIS": partial(ais, DOUBLE, BETAS, 430),
    "AIS in float32": partial(ais, SINGLE, BETAS, 430),
    "RAISE": partial(raise_log_prob, DOUBLE, V, BETAS, 61),
    "RAISE in float32": partial(raise_log_prob, SINGLE, V, BETAS, 61),
}
RUNS = WALKS | {
    "SMC": partial(annealed_smc, SINGLE, BETAS, 60, 3),
    "tempering": partial(parallel_tempering, BaseRatePath(SMALL), 1_000),
    "CSL": partial(csl_log_prob, SMALL, all_states(5), 20, 3),
    "bound of a DBN": partial(
        dbn_lower_bound, DBN([SMALL, random_rbm(4, 3, 2)]), all_states(5), 0.0
    ),
    # two blocks of rows
    "exact draws": partial(exact_hidden_samples, random_rbm(30, 18, 1, scale=0.3), 50),
    "planted model": planted_draws,
    "planted Ising": partial(planted.ising_2d(3).draws, 3),
}
EACH = pytest.mark.parametrize("name", RUNS)


def tensors(result):
    """All numbers of a result that are not summaries of others."""
    if is_dataclass(result):
        result = [getattr(result, field.name) for field in fields(result)]
    parts = result if isinstance(result, list | tuple) else [result]
    return [part for part in parts if isinstance(part, torch.Tensor)]


def same(one, other):
    return all(map(torch.equal, tensors(one), tensors(other)))


@EACH
def test_one_generator_gives_the_same_numbers_on_any_number_of_threads(name, threads):
    results = []
    for count in (1, 2, 5):
        threads(count)
        results.append(RUNS[name](generator=seeded_generator(1)))
        assert torch.get_num_threads() == count
    assert tensors(results[0])
    assert same(results[0], results[1])
    assert same(results[0], results[2])
    assert not same(results[0], RUNS[name](generator=seeded_generator(2)))


@EACH
def test_without_a_generator_numbers_are_fresh_and_the_global_ones_are_left_alone(name):
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    assert not same(RUNS[name](), RUNS[name]())
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()


@pytest.mark.parametrize("name", WALKS)
def test_every_transition_of_a_chain_is_told(name):
    counts = []
    WALKS[name](on_step=counts.append)
    chains = 7 * 61 if "RAISE" in name else 430
    assert sum(counts) == 6 * chains
