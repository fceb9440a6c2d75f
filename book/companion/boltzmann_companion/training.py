"""Training models from their recipes, one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from boltzmann_companion.recipes import RECIPES, recipe, snapshot_path, store_model, train_recipe
from paperlib.datasets import cache_folder
from paperlib.models import DBM, RBM


def train_models(paths: Mapping[str, Path], commit: str, snapshots: int = 0) -> Iterator[str]:
    """Train models and store them; yields the id of each one that has been stored.

    Parameters
    ----------
    paths : mapping of str to Path
        For each model's id, the file to store it in.
    commit : str
        Commit of the code, which is written to the files.
    snapshots : int
        n > 0: also keep the model after every n-th epoch, in the cache.

    Raises
    ------
    InputError
        If there is no recipe for an id, or a model below has not been stored.

    Examples
    --------
    >>> import tempfile
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
        _train_and_store(model_id, paths[model_id], commit, snapshots)
        yield model_id


def _train_and_store(model_id: str, path: Path, commit: str, snapshots: int) -> None:
    checkpoint = cache_folder() / "checkpoints" / f"{model_id}.safetensors"

    def keep_snapshot(epoch: int, model: RBM | DBM) -> None:
        if snapshots and epoch % snapshots == 0:
            store_model(model_id, model, snapshot_path(model_id, epoch), commit)

    resumed = checkpoint.exists()
    started = time.perf_counter()
    model = train_recipe(model_id, checkpoint=checkpoint, on_epoch=keep_snapshot)
    minutes = None if resumed else (time.perf_counter() - started) / 60
    store_model(model_id, model, path, commit, minutes)
    checkpoint.unlink(missing_ok=True)
