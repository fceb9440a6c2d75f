"""What holds for every computation with a checkpoint: it resumes to the same bits.

Wherever it was interrupted; and it takes no state of other work.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
import torch
from backends import BACKENDS
from enumeration import all_states, random_rbm
from interruptions import interrupt_call
from walks import base_rates

from paperlib.annealing import BaseRatePath
from paperlib.errors import InputError
from paperlib.estimators import parallel_tempering
from paperlib.learning import (
    ContrastiveDivergence,
    DeepBoltzmannLearning,
    contrastive_divergence,
    deep_boltzmann,
    train_dbm,
    train_rbm,
)
from paperlib.models.files import read_metadata, read_safetensors, write_safetensors
from paperlib.numerics import seeded_generator

DATA = all_states(6)[torch.tensor([0, 7, 7, 56, 63, 63, 56, 7, 21, 42])].to(torch.uint8)
CD = ContrastiveDivergence(3, epochs=4, batch_size=4, cd_steps=3, cd_ramp_epochs=1)
DEEP = DeepBoltzmannLearning(
    CD, replace(CD, num_hidden=2), epochs=4, chains=4, gibbs_steps=2, batch_size=5
)
MORE = {"initial": random_rbm(6, 3, 2), "layers_below": [random_rbm(6, 6, 1)]}


@dataclass(frozen=True)
class Kind:
    """A computation with a checkpoint.

    `run` with these arguments takes steps by calling `step`, and writes so many `states`.
    """

    run: Callable[..., Any]
    arguments: Mapping[str, Any]
    step: tuple[Any, str]
    states: int
    # arguments that make other work of it, by what is said of it
    others: Mapping[str, Mapping[str, Any]]

    def __call__(self, checkpoint=None, **changes):
        return self.run(checkpoint=checkpoint, **{**self.arguments, **changes})


def train(function, **arguments):
    trained = function(seed=arguments.pop("seed", 0), dtype=torch.float64, **arguments)
    model, *errors = trained if isinstance(trained, tuple) else [trained]
    return model.checksum(), errors


def training(function, recipe, step, others=None, **arguments):
    others = (others or {}) | {
        "seed 1": {"seed": 1},
        "data": {"train": DATA.roll(1, 1)},
        "recipe": {"recipe": replace(recipe, learning_rate=0.3)},
    }
    options = {"train": DATA, "recipe": recipe, "progress": False, **arguments}
    # one before the first epoch, and one after each
    return Kind(partial(train, function), options, (step, "_update"), 5, others)


def temper(seed=3, **arguments):
    path = base_rates(BACKENDS[3]).path  # float32, fast
    estimate = parallel_tempering(
        path, generator=seeded_generator(seed), num_replicas=4, **arguments
    )
    return estimate.log_z, estimate.std_error, estimate.chain_steps, estimate.samples.tolist()


rbm_training = partial(training, train_rbm, step=contrastive_divergence)
# an argument that is added makes another training, just as one that is dropped
ADDED = {name: {name: value} for name, value in MORE.items()}
TRAININGS = {
    "CD": rbm_training(CD, others=ADDED),
    "PCD": rbm_training(replace(CD, persistent_chains=3), others=ADDED),
    "initial": rbm_training(CD, others={"initial": {"initial": None}}, initial=MORE["initial"]),
    "layers_below": rbm_training(
        CD, others={"layers_below": {"layers_below": ()}}, layers_below=MORE["layers_below"]
    ),
    "DBM": training(train_dbm, DEEP, deep_boltzmann),
}
TEMPERING = Kind(
    temper,
    {"chain_steps": 2_000, "progress": False},
    (BaseRatePath, "transition"),
    # three pilot rounds and ten segments
    13,
    {"generator": {"seed": 4}, "chain_steps 2001, got 2000": {"chain_steps": 2_001}},
)
KINDS = {**TRAININGS, "tempering": TEMPERING}
EACH = pytest.mark.parametrize("name", KINDS)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint.safetensors"


@EACH
@pytest.mark.parametrize("inside", ["a step", "the writing of a state"])
def test_resumed_it_ends_with_the_identical_result(path, monkeypatch, name, inside):
    """By Ctrl-C in the middle of it; what was written is not computed again."""
    kind = KINDS[name]
    place = kind.step if inside == "a step" else (os, "fsync")
    whole = kind()
    with monkeypatch.context() as patch:
        calls = interrupt_call(patch, *place, 0)
        kind(path)
    for moment in {1, 2, len(calls) // 2, len(calls)}:
        path.unlink()
        with monkeypatch.context() as patch:
            written = interrupt_call(patch, os, "fsync", 0)
            with patch.context() as interrupted:
                interrupt_call(interrupted, *place, moment)
                with pytest.raises(KeyboardInterrupt):
                    kind(path)
            assert set(path.parent.iterdir()) <= {path}
            for _ in range(2):  # resumed; then found finished
                assert kind(path) == whole
            assert len(written) == kind.states


@EACH
def test_a_state_of_other_work_is_refused(path, name):
    kind = KINDS[name]
    kind(path)
    stored = path.read_bytes()
    for difference, changes in kind.others.items():
        with pytest.raises(InputError, match=f"^checkpoint: expected {difference}"):
            kind(path, **changes)
    for other in KINDS.keys() - {name}:
        with pytest.raises(InputError, match=r"^checkpoint: expected .* to start anew"):
            KINDS[other](path)
    assert path.read_bytes() == stored


@EACH
def test_a_damaged_state_and_one_of_an_older_version_are_refused(path, name):
    kind = KINDS[name]
    kind(path)
    identity = read_metadata(path)
    del identity["progress"]
    older = path.with_name("older.safetensors")
    write_safetensors(older, read_safetensors(path), identity)
    path.write_bytes(path.read_bytes()[:-9])
    for refused in (path, older):
        sentence = f"checkpoint: expected an undamaged file of this version at {refused}; "
        with pytest.raises(InputError, match=f"^{re.escape(sentence)}remove it to start anew$"):
            kind(refused)


@pytest.mark.parametrize("name", TRAININGS)
@pytest.mark.parametrize("state", [1, 3, 5])
def test_no_epoch_remains_unseen(path, monkeypatch, name, state):
    seen = []
    train = partial(TRAININGS[name], path, on_epoch=lambda epoch, model: seen.append(epoch))
    with monkeypatch.context() as patch:
        interrupt_call(patch, os, "fsync", state)
        with pytest.raises(KeyboardInterrupt):
            train()
    assert seen == [1, 2, 3, 4][: state - 1]
    train()
    assert seen[state - 1 :] == [1, 2, 3, 4][max(0, state - 2) :]
