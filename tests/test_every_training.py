"""What holds for every training that keeps checkpoints: it resumes to the same bits, and takes no checkpoint of other work."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from enumeration import all_states, random_rbm
from interruptions import interrupt_epoch

from boltzmann_companion.recipes import RECIPES
from boltzmann_companion.training import train_models
from paperlib.errors import InputError
from paperlib.learning import ContrastiveDivergence, DeepBoltzmannLearning, train_dbm, train_rbm
from paperlib.models import RBM

DATA = all_states(6)[torch.tensor([0, 7, 7, 56, 63, 63, 56, 7, 21, 42])].to(torch.uint8)
OTHER_DATA = DATA.roll(1, 1)
CD = ContrastiveDivergence(3, epochs=4, batch_size=4, cd_steps=3, cd_ramp_epochs=1)
DEEP = DeepBoltzmannLearning(
    CD, replace(CD, num_hidden=2), epochs=4, chains=4, gibbs_steps=2, batch_size=5
)
MORE = {"initial": random_rbm(6, 3, 2), "layers_below": [random_rbm(6, 6, 1)]}
GIVEN = {"seed": 0, "dtype": torch.float64, "progress": False}
RBM_TRAINING = partial(train_rbm, train=DATA, recipe=CD, **GIVEN)
TRAININGS = {
    "CD": RBM_TRAINING,
    "PCD": partial(RBM_TRAINING, recipe=replace(CD, persistent_chains=3)),
    "initial": partial(RBM_TRAINING, initial=MORE["initial"]),
    "layers_below": partial(RBM_TRAINING, layers_below=MORE["layers_below"]),
    "DBM": partial(train_dbm, train=DATA, recipe=DEEP, **GIVEN),
}
EACH = pytest.mark.parametrize("name", TRAININGS)


def outcome(trained):
    """Of a model, or of a model and its errors."""
    model, *errors = trained if isinstance(trained, tuple) else [trained]
    return model.checksum(), errors


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint.safetensors"


@EACH
def test_resumed_training_ends_with_the_identical_result(path, name):
    train, seen = TRAININGS[name], []
    with pytest.raises(KeyboardInterrupt):
        train(checkpoint=path, on_epoch=interrupt_epoch(2))
    whole = outcome(train())
    for _ in range(2):  # resumed; then found finished
        resumed = train(checkpoint=path, on_epoch=lambda epoch, model: seen.append(epoch))
        assert outcome(resumed) == whole
    assert seen == [3, 4]


@EACH
def test_checkpoint_of_another_training_is_refused(path, name):
    """An argument that is dropped makes another training, just as one that is added."""
    train = TRAININGS[name]
    train(checkpoint=path)
    stored = path.read_bytes()
    recipe = train.keywords["recipe"]
    others = {
        "seed 1": {"seed": 1},
        "data": {"train": OTHER_DATA},
        "recipe": {"recipe": replace(recipe, learning_rate=0.3)},
    }
    if name in MORE:
        others[name] = {name: None if name == "initial" else ()}
    elif name != "DBM":
        others |= {argument: {argument: value} for argument, value in MORE.items()}
    for said, changes in others.items():
        with pytest.raises(InputError, match=f"^checkpoint: expected {said}"):
            train(checkpoint=path, **changes)
        assert path.read_bytes() == stored
    # those of a DBM and of an RBM are never taken for each other
    with pytest.raises(InputError, match=r"^checkpoint: expected "):
        TRAININGS["CD" if name == "DBM" else "DBM"](checkpoint=path)


@EACH
def test_damaged_checkpoint_is_refused(path, name):
    TRAININGS[name](checkpoint=path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"^checkpoint: expected an undamaged file"):
        TRAININGS[name](checkpoint=path)


# ---- models of the book


def test_recipes_stand_after_those_below_them():
    seen = set()
    for model_id, recipe in RECIPES.items():
        assert recipe.below is None or recipe.below in seen
        seen.add(model_id)


def test_models_are_stored_in_the_order_of_the_recipes(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "boltzmann_companion.training._train_and_store",
        lambda model_id, path, commit, snapshots: path.write_text(model_id),
    )
    names = ["digits-cd1-16", "digits-cd1-50", "digits-dbn-cd1"]
    paths = {name: tmp_path / name for name in reversed(names)}
    assert list(train_models(paths, "none")) == sorted(names, key=list(RECIPES).index)
    assert all(path.read_text() == name for name, path in paths.items())
    with pytest.raises(ValueError, match="model_id: expected one of"):
        list(train_models({"x": tmp_path}, "none"))


def test_a_stored_training_leaves_no_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPERLIB_CACHE", str(tmp_path / "cache"))
    short = replace(RECIPES["digits-cd1-12"].training, epochs=2)
    monkeypatch.setitem(RECIPES, "digits-cd1-12", replace(RECIPES["digits-cd1-12"], training=short))
    path = tmp_path / "model.safetensors"
    assert list(train_models({"digits-cd1-12": path}, "none")) == ["digits-cd1-12"]
    assert RBM.load(path).num_hidden == 12
    assert list((tmp_path / "cache" / "checkpoints").iterdir()) == []
