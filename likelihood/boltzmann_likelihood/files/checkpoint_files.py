"""The checkpoints of a training run from an archive of `rbms`, from a folder, or from files in the given order."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from boltzmann_likelihood.files.archives import archive_updates, is_archive
from boltzmann_likelihood.files.inputs import read_model
from boltzmann_likelihood.files.stored import read_stored
from boltzmann_likelihood.sources import ForeignRBM
from paperlib import storage
from paperlib.errors import InputError


def read_checkpoints(
    paths: Sequence[str | os.PathLike[str]],
    updates: Sequence[int] | None = None,
    most: int | None = None,
    left_out: Callable[[str], object] | None = None,
    width: Callable[[], int] | None = None,
    names: str | None = None,
) -> dict[str, ForeignRBM]:
    """Models by name, in the order of training.

    Parameters
    ----------
    paths : sequence of paths
        One archive of `rbms`, whose updates are read; one folder, whose files are read in the order
        of the numbers in their names (2 before 10), except hidden ones; or the files of at least
        two models in the order of training.
    updates : sequence of int, optional
        Which updates of an archive to read, whatever `most` is; by default all.
    most : int, optional
        Read at most this many, evenly spaced, including the first and the last.
    left_out : callable, optional
        Called with a sentence for each file of a folder, and for each model of an archive, that
        cannot be used, because it is damaged, holds something else, or training diverged there; the
        others are returned. None: this is an error, as it is where each is named.
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
        As for `read_model`; if there are fewer than two files, no checkpoint can be used, or the
        visible units are spins in some models and not in others.

    Examples
    --------
    >>> import tempfile
    >>> import torch
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in (10, 9):
    ...         rbm.save(f"{folder}/epoch{number}.npz")
    ...     list(read_checkpoints([folder]))
    ['epoch9.npz', 'epoch10.npz']
    """
    files = [Path(path) for path in paths]
    alone = files[0] if len(files) == 1 else None
    in_folder = alone is not None and alone.is_dir()
    # What the user names one by one is all wanted.
    named = alone is None or updates is not None
    if alone is not None and storage.is_file(alone) and is_archive(read_stored("path", alone)):
        chosen = archive_updates(alone) if updates is None else sorted(set(updates))
        # An update that is not stored raises an error whose message names the stored ones.
        readers = {f"update_{n}": partial(read_model, f"{alone}:update_{n}") for n in chosen}
    else:
        if updates is not None:
            raise InputError("updates: expected none, since they belong to a single archive")
        if alone is not None and in_folder:
            files = _of_folder(alone)
        if len(files) < 2:
            raise InputError(
                f"models: expected an archive of rbms, a folder, or at least two model files, got {', '.join(map(str, files)) or 'none'}"
            )
        # The whole path where file names alone are not unique.
        same = len({file.name for file in files}) < len(files)
        readers = {
            str(file) if same else file.name: partial(_of_file, file, names, width)
            for file in files
        }
    problems: list[str] = []

    def usable(name: str) -> ForeignRBM | None:
        try:
            return readers[name]()
        except InputError as error:
            if named or left_out is None:
                raise
            diverged = "; training diverged there" if "finite" in str(error) else ""
            problems.append(f"{name} is left out: {error}{diverged}")
            return None

    chosen = list(readers)
    if most is not None and updates is None and len(chosen) > most:
        if in_folder:
            # Whatever else lies in a folder does not take the place of a checkpoint.
            chosen = [name for name in chosen if usable(name) is not None]
        count = len(chosen)
        chosen = [chosen[number] for number in evenly(count, most)]
        if left_out is not None and len(chosen) < count:
            left_out(f"{len(chosen)} of {count} checkpoints are taken, evenly spaced")
    found = {name: model for name in chosen if (model := usable(name)) is not None}
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


def _of_file(file: Path, names: str | None, width: Callable[[], int] | None) -> ForeignRBM:
    if file.is_dir():
        raise InputError(f"path: expected a file, got the folder {file}")
    return read_model(file, names, width)


def _of_folder(folder: Path) -> list[Path]:
    # not the hidden files that macOS leaves on other systems' disks, one for each real file
    files = [file for file in folder.iterdir() if not file.name.startswith(".")]
    if len(files) < 2:
        raise InputError(
            f"models: expected a folder with at least two model files, got {len(files)} in {folder}"
        )

    def order(file: Path) -> list[tuple[float, str]]:
        # A number with one point is a decimal, as in T3.54; with more, it is of a version or a
        # date.
        parts = re.split(r"((?:(?<![\d.])\d+\.\d+(?![\d.]*\d))|\d+)", file.name)
        numbered = [part[:1].isdecimal() for part in parts]
        return [
            (float(part), "") if number else (-1.0, part)
            for part, number in zip(parts, numbered, strict=True)
        ]

    return sorted(files, key=order)


def evenly(count: int, most: int) -> list[int]:
    """At most `most` of the numbers 0 to `count` - 1, evenly spaced, with the first and the last; the last alone if `most` is 1."""
    if most == 1:
        return [count - 1]
    if count <= most:
        return list(range(count))
    return [round(number * (count - 1) / (most - 1)) for number in range(most)]
