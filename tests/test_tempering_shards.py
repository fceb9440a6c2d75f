"""Ladders in shards: the truth, and what a joined estimate says of itself; `test_keep` has the rest."""

import math
from dataclasses import replace

import pytest
from enumeration import log_z, random_rbm
from walks import base_rates, dbm

from paperlib.annealing import BaseRatePath
from paperlib.estimators import join_tempering, parallel_tempering, tempering_in_shards
from paperlib.numerics import seeded_generator

RBM = random_rbm(4, 3, 0)
PATH = BaseRatePath(RBM)
STEPS = 2_000


def run(folder, path=PATH, runs=3, steps=STEPS, seed=1):
    return tempering_in_shards(path, steps, runs, seed, folder, progress=False)


def single(seed, **options):
    return parallel_tempering(
        PATH, STEPS, seeded_generator(seed), betas=[0, 0.5, 1], progress=False, **options
    )


@pytest.mark.parametrize("make", [base_rates, dbm])
def test_truth_by_enumeration(tmp_path, make):
    walk = make()
    found = run(tmp_path, walk.path, runs=4)
    assert abs(found.log_z - walk.truth) < 4.5 * found.std_error  # two seeds, fixed
    assert found.std_error < 0.2
    assert not found.warnings


def test_joined_runs_count_by_their_steps():
    one, other = single(1), single(2)
    other = replace(other, counted_steps=3 * one.counted_steps)
    joined = join_tempering([one, other])
    assert joined.log_z == pytest.approx(0.25 * one.log_z + 0.75 * other.log_z)
    expected = math.hypot(0.25 * one.std_error, 0.75 * other.std_error)
    assert joined.std_error == pytest.approx(expected)
    assert joined.round_trips == one.round_trips + other.round_trips
    assert len(joined.samples) == len(one.samples) + len(other.samples)
    assert (
        joined.batch_means.shape[1] == joined.num_replicas == one.num_replicas + other.num_replicas
    )
    assert joined.lower_bound <= log_z(RBM) + 1e-9
    assert joined.log_z_at_betas[-1].item() == pytest.approx(joined.log_z)
    middle = 0.25 * one.log_z_at_betas[1] + 0.75 * other.log_z_at_betas[1]
    assert joined.log_z_at_betas[1].item() == pytest.approx(middle.item())
    alone = join_tempering([one])
    assert (alone.log_z, alone.std_error, alone.warnings) == (one.log_z, one.std_error, ())


def test_one_that_contradicts_the_others_is_said():
    runs = [single(seed, check=False) for seed in range(4)]
    assert not join_tempering(runs).warnings
    far = replace(runs[0], log_z=runs[0].log_z + 3)
    [said] = join_tempering([far, *runs[1:]]).warnings
    assert said.startswith("One of 4 runs says")
    warned = replace(runs[1], warnings=("few round trips",))
    assert join_tempering([warned, warned, runs[2]]).warnings == ("few round trips",)
