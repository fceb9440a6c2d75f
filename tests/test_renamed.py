"""What the last release called otherwise still works, and the warning says the new name."""

import pytest
import torch

from paperlib import estimators
from paperlib.annealing import BaseRatePath
from paperlib.errors import InputError
from paperlib.estimators import bennett, join_tempering, parallel_tempering, tempering_in_shards
from paperlib.evaluation import Effort, audit, compare, evaluate
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

SMALL = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
PATH, IMAGES = BaseRatePath(SMALL), torch.eye(3)
SIDES = [0.1, 0.2, 0.3, 0.5], [0.0, -0.3, 0.1, 0.2]
FEW = {"steps": 32, "exact": False, "progress": False}


def run():
    return parallel_tempering(PATH, 1_000, seeded_generator(0), progress=False)


def evaluated(**given):
    return evaluate(SMALL, IMAGES, generator=seeded_generator(0), **FEW, **given)


def shards(folder, **given):
    return tempering_in_shards(PATH, 1_000, seed=1, folder=folder, progress=False, **given).log_z


# The old name, what asks by it, and what asks by the new one.
OLD = {
    "num_blocks": (lambda _: bennett(*SIDES, num_blocks=2).std_error, lambda _: bennett(*SIDES, num_batches=2).std_error),
    "blocks": (lambda _: run().blocks.tolist(), lambda _: run().batch_means.tolist()),
    "join_ladders": (lambda _: estimators.join_ladders, lambda _: join_tempering),
    "ladders": (lambda _: join_tempering(ladders=[run()]).log_z, lambda _: join_tempering([run()]).log_z),
    "num_ladders": (lambda folder: shards(folder, num_ladders=2), lambda folder: shards(folder, num_runs=2)),
    "ladder_steps": (lambda _: evaluated(ladder_steps=5_000).effort, lambda _: evaluated(tempering_steps=5_000).effort),
    "ladder": (lambda _: evaluated().ladder.log_z, lambda _: evaluated().tempering.log_z),
    "findings": (lambda _: evaluated().findings, lambda _: evaluated().warnings),
    "ladder_steps of Effort": (lambda _: Effort(32, ladder_steps=9).ladder_steps, lambda _: 9),
}  # fmt: skip


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", OLD)
def test_an_old_name_works_and_says_the_new_one(name, tmp_path):
    old, new = OLD[name]
    with pytest.warns(DeprecationWarning, match=f"{name.split()[0]} is now called") as said:
        found = old(tmp_path)
    assert found == new(tmp_path)
    assert {warning.filename for warning in said} == {__file__}


@pytest.mark.parametrize(
    "call",
    [
        lambda: audit(SMALL, IMAGES, claimed_log_z=1.0, ladder_steps=5),
        lambda: compare(SMALL, SMALL, IMAGES, ladder_steps=5),
    ],
)
def test_an_old_parameter_is_checked_as_the_new_one_is(call):
    with (
        pytest.warns(DeprecationWarning, match="now called"),
        pytest.raises(InputError, match="tempering_steps: expected"),
    ):
        call()


def test_no_other_name_is_found():
    with pytest.raises(AttributeError, match="no attribute 'climb'"):
        estimators.climb  # noqa: B018
    with pytest.raises(TypeError, match="ladder_steps"):
        evaluated(ladder_steps=5_000, tempering_steps=5_000)
