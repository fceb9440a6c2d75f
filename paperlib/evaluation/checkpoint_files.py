"""The checkpoints of a training run from an archive of `rbms`, from a folder, or from files in the given order."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from paperlib.errors import InputError
from paperlib.evaluation.along_training import evenly
from paperlib.evaluation.inputs import MODEL_SUFFIXES, read_model
from paperlib.models import RBM
from paperlib.models.foreign import ForeignRBM, archive_updates, read_archive

_ARCHIVES = (".h5", ".hdf5")


def read_checkpoints(
    paths: Sequence[str | os.PathLike[str]],
    updates: Sequence[int] | None = None,
    most: int | None = None,
) -> dict[str, ForeignRBM]:
    """Models of binary units by name, in the order of training.

    Parameters
    ----------
    paths : sequence of paths
        One archive of `rbms`, whose updates are read; one folder of model files, read in the order of the numbers in their names (2
        before 10); or the files of at least two models in the order of training.
    updates : sequence of int, optional
        Which updates of an archive to read, whatever `most` is; by default all.
    most : int, optional
        Read at most this many, evenly spaced, including the first and the last.

    Returns
    -------
    dict of str to ForeignRBM
        The names are `update_N`, or those of the files.

    Raises
    ------
    InputError
        As for `read_model`; if there are fewer than two files, one model has categorical units, or the visible units are spins in some models
        and not in others.

    Examples
    --------
    >>> import tempfile
    >>> import torch
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in (10, 9):
    ...         rbm.save(f"{folder}/epoch{number}.npz")
    ...     list(read_checkpoints([folder]))
    ['epoch9.npz', 'epoch10.npz']
    """
    files = [Path(path) for path in paths]
    if len(files) == 1 and files[0].suffix in _ARCHIVES:
        found = _of_archive(files[0], updates, most)
    else:
        if updates is not None:
            raise InputError("updates: expected none, since they belong to a single archive")
        if len(files) == 1 and files[0].is_dir():
            files = _of_folder(files[0])
        if len(files) < 2:
            raise InputError(
                f"models: expected an archive of rbms, a folder, or at least two model files, got {', '.join(map(str, files)) or 'none'}"
            )
        chosen = files if most is None else [files[number] for number in evenly(len(files), most)]
        # The whole path where file names alone are not unique.
        names = [file.name for file in chosen]
        same = len(set(names)) < len(names)
        found = {str(file) if same else file.name: read_model(file) for file in chosen}
    _require_one_kind(found)
    return found


def _of_archive(
    file: Path, updates: Sequence[int] | None, most: int | None
) -> dict[str, ForeignRBM]:
    stored = archive_updates(file)
    chosen = stored if updates is None else sorted(set(updates))
    for update in chosen:
        if update not in stored:
            # raises an error whose message names the stored updates
            read_archive(file, update)
    if most is not None and updates is None:
        chosen = [chosen[number] for number in evenly(len(chosen), most)]
    return {f"update_{update}": read_archive(file, update) for update in chosen}


def _of_folder(folder: Path) -> list[Path]:
    files = [file for file in folder.iterdir() if file.suffix in MODEL_SUFFIXES and file.is_file()]
    if len(files) < 2:
        raise InputError(
            f"models: expected a folder with at least two model files, got {len(files)} in {folder}"
        )

    def order(file: Path) -> list[tuple[int, str]]:
        parts = re.split(r"(\d+)", file.name)
        return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]

    return sorted(files, key=order)


def _require_one_kind(found: dict[str, ForeignRBM]) -> None:
    first = next(iter(found.values()))
    for name, model in found.items():
        if not isinstance(model.rbm, RBM):
            raise InputError(f"models: expected models of binary units, got {model.rbm} as {name}")
        if model.spin_visible != first.spin_visible:
            raise InputError(
                f"models: expected the same kind of visible units in all, got another one in {name}"
            )
