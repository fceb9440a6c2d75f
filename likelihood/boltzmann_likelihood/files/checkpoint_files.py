"""The checkpoints of a training run: the updates of an archive, the files of a folder, or a list.

`read_checkpoints` gives the models by name, in the order of training. Whatever the user names one
by one must be a model. In a folder or archive, what cannot be used may be left out with a sentence
that says why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
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
    single = files[0] if len(files) == 1 else None
    is_folder = single is not None and single.is_dir()
    if single is not None and storage.is_file(single) and is_archive(read_stored("path", single)):
        readers = _archive_readers(single, updates)
    elif updates is not None:
        raise InputError("updates: expected none, since they belong to a single archive")
    elif single is not None and is_folder:
        readers = _file_readers(_files_of_folder(single), names, width)
    else:
        readers = _file_readers(files, names, width)
    # What the user names one by one is all wanted.
    all_wanted = single is None or updates is not None or left_out is None
    problems: list[str] = []

    def read(name: str) -> ForeignRBM | None:
        try:
            return readers[name]()
        except InputError as error:
            if all_wanted:
                raise
            diverged = "; training diverged there" if "finite" in str(error) else ""
            problems.append(f"{name} is left out: {error}{diverged}")
            return None

    selection = list(readers)
    if most is not None and updates is None and len(selection) > most:
        if is_folder:
            # Whatever else lies in a folder does not take the place of a checkpoint.
            selection = [name for name in selection if read(name) is not None]
        count = len(selection)
        selection = [selection[number] for number in evenly(count, most)]
        if left_out is not None and len(selection) < count:
            left_out(f"{len(selection)} of {count} checkpoints are taken, evenly spaced")
    models: dict[str, ForeignRBM] = {}
    for name in selection:
        model = read(name)
        if model is not None:
            models[name] = model
    if not models:
        raise InputError(
            f"models: expected at least one checkpoint that can be used, got none; {problems[0]}"
        )
    if left_out is not None:
        for problem in problems:
            left_out(problem)
    _require_one_kind(models)
    return models


def _archive_readers(
    archive: Path, updates: Sequence[int] | None
) -> dict[str, Callable[[], ForeignRBM]]:
    """What reads each update of an archive, by name."""
    numbers = archive_updates(archive) if updates is None else sorted(set(updates))
    # An update that is not stored raises an error whose message names the stored ones.
    return {f"update_{n}": partial(read_model, f"{archive}:update_{n}") for n in numbers}


def _file_readers(
    files: Sequence[Path], names: str | None, width: Callable[[], int] | None
) -> dict[str, Callable[[], ForeignRBM]]:
    """What reads each of several files, by name; by its path if file names are not unique."""
    if len(files) < 2:
        raise InputError(
            "models: expected an archive of rbms, a folder, or at least two model files, "
            f"got {', '.join(map(str, files)) or 'none'}"
        )
    are_unique = len({file.name for file in files}) == len(files)
    return {
        file.name if are_unique else str(file): partial(_read_file, file, names, width)
        for file in files
    }


def _read_file(file: Path, names: str | None, width: Callable[[], int] | None) -> ForeignRBM:
    if file.is_dir():
        raise InputError(f"path: expected a file, got the folder {file}")
    return read_model(file, names, width)


def _require_one_kind(models: Mapping[str, ForeignRBM]) -> None:
    """Raise if the visible units are spins in some models and not in others."""
    first = next(iter(models.values()))
    for name, model in models.items():
        if model.spin_visible != first.spin_visible:
            raise InputError(
                f"models: expected the same kind of visible units in all, got another one in {name}"
            )


def _files_of_folder(folder: Path) -> list[Path]:
    """The files of a folder, in the order of the numbers in their names."""
    # not the hidden files that macOS leaves on other systems' disks, one for each real file
    files = [file for file in folder.iterdir() if not file.name.startswith(".")]
    if len(files) < 2:
        raise InputError(
            f"models: expected a folder with at least two model files, got {len(files)} in {folder}"
        )
    numbers = [number for number in map(_number_with_factor, files) if number is not None]
    if len(numbers) == len(files) and len({rest for rest, _ in numbers}) == 1:
        return [file for _, file in sorted(zip(numbers, files, strict=True))]
    return sorted(files, key=_numbers_in)


def _numbers_in(file: Path) -> list[tuple[float, str]]:
    """The key that sorts files by the numbers in their names, and by the text between these."""
    # A number with one point is a decimal, as in T3.54; with more, it is of a version or a date.
    parts = re.split(r"((?:(?<![\d.])\d+\.\d+(?![\d.]*\d))|\d+)", file.name)
    return [(float(part), "") if part[:1].isdecimal() else (-1.0, part) for part in parts]


def _number_with_factor(file: Path) -> tuple[str, float] | None:
    """The rest of a name with a single number such as 1e3 or 10k, and the number."""
    pattern = r"(\D*)(\d+(?:\.\d+)?)(?:e(\d\d?)|([km]))?((?:[^a-z\d]\D*)?)"
    has_suffix = re.search("[a-z]", file.suffix)
    match = re.fullmatch(pattern, (file.stem if has_suffix else file.name).lower())
    if match is None:
        return None
    before, number, exponent, letter, behind = match.groups()
    is_name = re.search(r"[a-z]$", before) and not re.search("(epoch|step|iter|update)s?$", before)
    if (exponent or letter) and (is_name or float(number) == 0):
        return None
    thousands = {"k": 1e3, "m": 1e6}
    value = float(number) * 10 ** int(exponent or 0) * thousands.get(letter, 1)
    return f"{before} {behind}", value


def evenly(count: int, most: int) -> list[int]:
    """At most `most` of the numbers 0 to `count` - 1, evenly spaced, with the first and the last.

    If `most` is 1, this is the last one.
    """
    if count <= most:
        return list(range(count))
    if most == 1:
        return [count - 1]
    return [round(number * (count - 1) / (most - 1)) for number in range(most)]
