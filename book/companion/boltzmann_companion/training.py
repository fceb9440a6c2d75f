"""Training models from their recipes, one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from boltzmann_companion.recipes import RECIPES, recipe, store_model, train_recipe
from paperlib.datasets import cache_folder


def train_models(paths: Mapping[str, Path], commit: str) -> Iterator[str]:
    """Train models and store them; yields the id of each one that has been stored.

    Parameters
    ----------
    paths : mapping of str to Path
        For each model's id, the file to store it in.
    commit : str
        Commit of the code, which is written to the files.

    Raises
    ------
    InputError
        If there is no recipe for an id, or a model below has not been stored.

    Examples
    --------
    >>> import tempfile
    >>> from paperlib.models import RBM
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "model.safetensors"
    ...     list(train_models({"digits-cd1-12": file}, commit="unknown"))
    ...     RBM.load(file).num_hidden
    ['digits-cd1-12']
    12
    """
    for model_id in paths:
        recipe(model_id)
    # A layer on top of another model is trained once that model is stored; recipes are listed in
    # this order.
    for model_id in [model_id for model_id in RECIPES if model_id in paths]:
        _train_and_store(model_id, paths[model_id], commit)
        yield model_id


def _train_and_store(model_id: str, path: Path, commit: str) -> None:
    checkpoint = cache_folder() / "checkpoints" / f"{model_id}.safetensors"
    resumed = checkpoint.exists()
    started = time.perf_counter()
    model = train_recipe(model_id, checkpoint=checkpoint)
    minutes = None if resumed else (time.perf_counter() - started) / 60
    store_model(model_id, model, path, commit, minutes)
    checkpoint.unlink(missing_ok=True)
