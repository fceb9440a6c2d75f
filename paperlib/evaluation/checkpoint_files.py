"""The checkpoints of a training run from an archive of `rbms`, from a folder, or from files in the given order."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch

from paperlib.errors import InputError
from paperlib.evaluation.along_training import evenly
from paperlib.evaluation.inputs import read_model
from paperlib.models import RBM
from paperlib.models.foreign import ForeignRBM, archive_updates, read_archive
from paperlib.models.stored import MODEL_SUFFIXES

_ARCHIVES = (".h5", ".hdf5")


def read_checkpoints(
    paths: Sequence[str | os.PathLike[str]],
    updates: Sequence[int] | None = None,
    most: int | None = None,
    left_out: Callable[[str], object] | None = None,
    width: Callable[[], int] | None = None,
    names: str | None = None,
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
    left_out : callable, optional
        Called with a sentence for each checkpoint of a folder or archive that cannot be used, because the file is damaged or training
        diverged there; the others are returned. None: such a checkpoint is an error, as it is where each file is named.
    width : callable, optional
        As for `read_model`.
    names : str, optional
        As for `read_model`, for each model file.

    Returns
    -------
    dict of str to ForeignRBM
        The names are `update_N`, or those of the files.

    Raises
    ------
    InputError
        As for `read_model`; if there are fewer than two files, no checkpoint can be used, one model has categorical units, or the visible
        units are spins in some models and not in others.

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
    # What the user names one by one is all wanted.
    named = updates is not None
    if len(files) == 1 and files[0].suffix in _ARCHIVES:
        readers = _of_archive(files[0], updates)
    else:
        if updates is not None:
            raise InputError("updates: expected none, since they belong to a single archive")
        named = not (len(files) == 1 and files[0].is_dir())
        if not named:
            files = _of_folder(files[0])
        if len(files) < 2:
            raise InputError(
                f"models: expected an archive of rbms, a folder, or at least two model files, got {', '.join(map(str, files)) or 'none'}"
            )
        # The whole path where file names alone are not unique.
        same = len({file.name for file in files}) < len(files)
        readers = {
            str(file) if same else file.name: partial(read_model, file, names, width)
            for file in files
        }
    if most is not None and updates is None:
        every = list(readers)
        readers = {every[n]: readers[every[n]] for n in evenly(len(every), most)}
    found: dict[str, ForeignRBM] = {}
    problems = []
    for name, read in readers.items():
        try:
            found[name] = _binary(name, read())
        except InputError as error:
            if named or left_out is None:
                raise
            diverged = "; training diverged there" if "finite" in str(error) else ""
            problems.append(f"{name} is left out: {error}{diverged}")
    if not found:
        raise InputError(
            f"models: expected at least one checkpoint that can be used, got none; {problems[0]}"
        )
    if left_out is not None:
        for problem in problems:
            left_out(problem)
    first = next(iter(found.values()))
    for name, model in found.items():
        if model.spin_visible != first.spin_visible:
            raise InputError(
                f"models: expected the same kind of visible units in all, got another one in {name}"
            )
    return found


def _of_archive(file: Path, updates: Sequence[int] | None) -> dict[str, Callable[[], ForeignRBM]]:
    chosen = archive_updates(file) if updates is None else sorted(set(updates))
    # An update that is not stored raises an error whose message names the stored ones.
    return {f"update_{update}": partial(read_archive, file, update) for update in chosen}


def _binary(name: str, model: ForeignRBM) -> ForeignRBM:
    if not isinstance(model.rbm, RBM):
        raise InputError(f"models: expected models of binary units, got {model.rbm} as {name}")
    largest = model.rbm.sum_of_parameters
    if largest > torch.finfo(torch.float32).max:
        raise InputError(
            f"models: expected weights whose energies are finite in single precision, got {largest:.0e} as their sum in {name}"
        )
    return model


def _of_folder(folder: Path) -> list[Path]:
    # not the hidden files that macOS leaves on other systems' disks, one for each real file
    visible = (file for file in folder.iterdir() if not file.name.startswith("."))
    files = [file for file in visible if file.suffix in MODEL_SUFFIXES and file.is_file()]
    if len(files) < 2:
        raise InputError(
            f"models: expected a folder with at least two model files, got {len(files)} in {folder}"
        )

    def order(file: Path) -> list[tuple[int, str]]:
        parts = re.split(r"(\d+)", file.name)
        return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]

    return sorted(files, key=order)
