"""The models of the book: trained in the order of their recipes, and stored.

`test_resumable` has trainings that are interrupted.
"""

from dataclasses import replace

import pytest

from boltzmann_companion.recipes import RECIPES
from boltzmann_companion.training import train_models
from paperlib.models import RBM


def test_recipes_stand_after_those_below_them():
    seen = set()
    for model_id, recipe in RECIPES.items():
        assert recipe.below is None or recipe.below in seen
        seen.add(model_id)


def test_models_are_stored_in_the_order_of_the_recipes(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "boltzmann_companion.training._train_and_store",
        lambda model_id, path, commit: path.write_text(model_id),
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
