"""Models, images and weights of images from files of many origins. Nothing is ever unpickled.

- `read_model`: a model, and how it was read.
- `read_images`: binary images, [N, D]. Where a file may be read before its images are needed, a
  `RowsFile` reads it once, and `images_of` makes the images.
- `read_weights`: the weights of test images.

Which array of a file is what is decided in `boltzmann_likelihood.files.naming` for models, and by
`RowsFile.rows` for images and weights.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from boltzmann_likelihood.evaluation.averages import as_weights
from boltzmann_likelihood.files.archives import from_archive, is_archive
from boltzmann_likelihood.files.naming import IGNORE, model_of, parse_names
from boltzmann_likelihood.files.stored import COMPLETE, listed, read_stored, untyped_bytes_note
from boltzmann_likelihood.sources import ForeignRBM, Images
from paperlib import storage
from paperlib.datasets import binarize
from paperlib.errors import InputError
from paperlib.models import RBM
from paperlib.models.files import Entry, dense, printable
from paperlib.validation import (
    as_tensor,
    blocks,
    require_binary,
    require_finite,
)

# ARCHIVE.h5:update_N is one model of an archive, IMAGES.npz:x_test one array of a file.
_UPDATE = re.compile(r"(?P<path>.+):update_(?P<update>\d+)", re.DOTALL)
_LABELS = ("label", "labels", "class", "target", "y", "digit")
# Above this value, the largest one is a grey level of at most 255. Up to it, it may be white on
# another scale.
_DARKEST_WHITE = 127


def read_model(
    path: str | os.PathLike[str],
    names: str | None = None,
    width: Callable[[], int] | None = None,
) -> ForeignRBM:
    """A model from a file of any origin, and how it was read.

    Parameters
    ----------
    path : path
        A file of one of these formats, which its first bytes tell, possibly gzipped:
        `.safetensors`, `.npz`, `.mat` (also version 7.3), HDF5, what `torch.save` wrote, or a
        `BernoulliRBM` as `.skops`. `W.npy,b.npy,a.npy` are three files of one model, and
        `ARCHIVE.h5:update_N` is one model of an archive of `rbms`, `ARCHIVE.h5` its last. HDF5
        needs the package h5py, `.skops` the package skops.
    names : str, optional
        Which array is what, where the file does not tell: `weights=W,visible=b,hidden=a` or a part
        of it. `weights=W.T` stands for [hidden, visible], `visible=0` for no biases, and
        `ignore=NAME` for an array that is not part of the model.
    width : callable, optional
        Gives the number of values of an image, where neither names nor shapes tell which layer is
        the visible one.

    Returns
    -------
    ForeignRBM
        The model keeps the type in which it was stored.

    Raises
    ------
    InputError
        If the file is missing, damaged, a pickle or in an unknown format; if it does not hold a
        model of units that this library has, or anything else besides; or if it cannot be told what
        is what.

    Notes
    -----
    An RBM is one matrix and two vectors that fit its sides, whatever they are called. Stacked
    layers are a DBN. The arrays of a `DBM` or `DBN` are found under the names that `save` gives
    them, and under the names of the papers' authors.

    Examples
    --------
    >>> import tempfile
    >>> tensors = {"W": torch.zeros(3, 2), "b": torch.zeros(3), "c": torch.zeros(2)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     torch.save(tensors, f"{folder}/model.pt")
    ...     model = read_model(f"{folder}/model.pt", width=lambda: 3)
    >>> model.rbm
    RBM(3 visible, 2 hidden, torch.float32, cpu)
    >>> model.notes
    ('read as weights=W,visible=b,hidden=c',)
    """
    location = os.fspath(path)
    update = None
    match = _UPDATE.fullmatch(location)
    if match:
        location = match["path"]
        update = int(match["update"])
    roles = parse_names(names)
    stored = _read_files(location)
    if is_archive(stored) and not roles.keys() - {IGNORE}:
        return from_archive(stored, Path(location), update)
    if update is not None:
        raise InputError(f"update: expected none, since {location} is no archive of rbms")
    try:
        model, notes, log_z = model_of(stored, roles, width)
    except InputError as error:
        raise InputError(
            f"path: expected a model in {location}: {str(error).removeprefix('path: ')}"
        ) from error
    kind = "" if isinstance(model, RBM) else f", {model.called}"
    origin = ", ".join(Path(part).name for part in location.split(","))
    return ForeignRBM(model, origin + kind, stored_log_z=log_z, notes=notes)


def _read_files(location: str) -> Mapping[str, Entry]:
    """The entries of a file, or of several with commas between them.

    The name of an entry begins with that of its file if there are several, or if the entry has no
    name of its own.
    """
    is_one = storage.is_file(location) or "," not in location
    files = [location] if is_one else location.split(",")
    names = [Path(file).stem for file in files]
    if len(set(names)) < len(names):
        names = [Path(file).with_suffix("").as_posix() for file in files]
    stored: dict[str, Entry] = {}
    for file, name in zip(files, names, strict=True):
        entries = read_stored("path", file)
        if is_one and "" not in entries:
            return entries
        new = {f"{name}.{key}".removesuffix("."): entry for key, entry in entries.items()}
        if stored.keys() & new.keys():
            raise InputError(
                f"path: expected different files, got the same one twice in {location}"
            )
        stored |= new
    return stored


class RowsFile:
    """A file of images or weights, which is read once, when it is first needed.

    `name` is what the rows are, for error messages. FILE.npz:x_test is one of several arrays.
    """

    def __init__(self, name: str, path: str | os.PathLike[str]) -> None:
        self.name = name
        self.path = path
        self._location, self._member = storage.file_and_member(os.fspath(path))
        self._entries: dict[str, Entry] = {}

    @cached_property
    def _stored(self) -> Mapping[str, Entry]:
        return read_stored(self.name, self._location)

    def _entry(self, key: str) -> Entry:
        # A file of HDF5 reads an entry each time that it is asked for.
        if key not in self._entries:
            self._entries[key] = self._stored[key]
        return self._entries[key]

    def width(self) -> int:
        """How many values a row has."""
        array, _ = self.rows()
        return math.prod(array.shape[1:])

    def rows(
        self, fewest_axes: int = 2, widths: Collection[int] = ()
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        """The one array in the file, [N, values], and what was not used of the file.

        `widths` are the numbers of values that a row may have, where they are known: a column of
        labels is left out only if it is one too many.
        """
        name = self.name
        key, entry = self._named_entry(fewest_axes, widths)
        array = _as_array(name, key, entry)
        if array.dtype.kind == "U":
            raise InputError(
                f"{name}: expected numbers in {self.path}, got letters: a model of bits takes no "
                "sequences; of strings of bits, make a row of numbers each"
            )
        if array.dtype.kind not in "biuf":
            note = untyped_bytes_note(array)
            if isinstance(entry, bytes):
                note = " as bytes: unpack that file first"
            raise InputError(
                f"{name}: expected numbers in {self._location}, got {array.dtype}{note}"
            )
        notes: list[str] = []
        columns = str(self._stored.get(f"{key}.header".removeprefix("."), "")).split("\n")
        if len(columns) > 1:
            notes.append(f"{name}: the first line is a header and was left out")
            labels = [column for column in columns if column.lower() in _LABELS]
            fits = not widths or len(columns) - 1 in widths
            if len(labels) == 1 and fits and array.shape[1:] == (len(columns),):
                array = np.delete(array, columns.index(labels[0]), 1)
                notes.append(f"{name}: the column {labels[0]!r} was left out")
        if array.ndim > 1:
            array = array.reshape(len(array), int(np.prod(array.shape[1:])))
        return array, tuple(notes)

    def _named_entry(self, fewest_axes: int, widths: Collection[int]) -> tuple[str, Entry]:
        """The name and the content of the one entry that can be rows."""
        location = self._location
        member = self._member
        stored = self._stored
        if member not in stored:
            # in HDF5, groups have slashes behind their names
            member = member.strip("/").replace("/", ".")
        if member in stored:
            return member, self._entry(member)
        try:
            entries = {key: self._entry(key) for key in stored}
        except InputError as error:
            choice = ""
            if len(stored) > 1:
                choice = f"; of {printable(', '.join(stored))} choose one with {location}:NAME"
            raise InputError(f"{error}{choice}") from error
        axes = {key: np.ndim(entry) for key, entry in entries.items()}  # pyright: ignore
        arrays = {key: entries[key] for key in entries if axes[key] >= fewest_axes}
        if member or len(arrays) != 1:
            lists = _lists(self.name, entries, member, widths)
            if lists or member:
                arrays = lists
        if len(arrays) != 1:
            raise InputError(
                f"{self.name}: expected one array in {location}, got {listed(arrays or entries)}; "
                f"choose with {location}:NAME"
            )
        [named_entry] = arrays.items()
        return named_entry


def _as_array(name: str, key: str, entry: Entry) -> np.ndarray:
    if not isinstance(entry, Tensor):
        return np.asarray(entry)
    try:
        tensor = as_tensor(name, dense(key or "an array", entry))
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()


def _lists(
    name: str, entries: Mapping[str, Entry], member: str, widths: Collection[int]
) -> dict[str, np.ndarray]:
    """The list of this name, or all lists of images of one of these widths, as arrays [N, ...].

    Cells of MATLAB are such lists.
    """
    numbered: dict[str, dict[int, Entry]] = {}
    for key, entry in entries.items():
        group, _, number = key.rpartition(".")
        if number.isdecimal() and np.ndim(entry):  # pyright: ignore
            numbered.setdefault(group, {})[int(number)] = entry
    lists: dict[str, np.ndarray] = {}
    for group, items in numbered.items():
        shapes = {tuple(np.shape(entry)) for entry in items.values()}  # pyright: ignore
        is_named = group == member
        has_width = not widths or math.prod(min(shapes)) in widths
        if len(shapes) == 1 and (is_named if member else has_width):
            images = [_as_array(name, f"{group}.{n}", items[n]) for n in sorted(items)]
            lists[group] = np.stack(images)
    return lists


def read_images(
    name: str,
    path: str | os.PathLike[str],
    width: int,
    binarize_seed: int | None = None,
    spins: bool = False,
    threshold: float | None = None,
) -> Images:
    """Binary images from a file of one of many formats, possibly gzipped.

    The formats are `.npy`, `.npz`, `.mat`, `.csv`, IDX, HDF5 and what `torch.save` writes.

    Parameters
    ----------
    name : str
        What the images are, for error messages: `data` or `train`.
    path : path
        A file with one array of numbers, [N, D] or [N, height, width], or with a list of N images,
        such as cells of MATLAB; or one of several arrays, as in `FILE.npz:x_test`. Values up to 1
        are intensities, and values that reach beyond 127 and up to 255 are grey levels.
    width : int
        D, as the model expects it.
    binarize_seed : int, optional
        Draw every pixel once, with its intensity as its probability, from this seed.
    spins : bool
        Whether the model's own visible units are -1 and 1. Images of -1 and 1 are then accepted,
        and converted to 0 and 1.
    threshold : float, optional
        Pixels with a larger value are on, the others off. Without this and without a seed, the
        images must be binary.

    Returns
    -------
    Images
        Their `pixels` are a tensor [N, D] of uint8; bytes 0 and 1 from a `.npy` file are mapped
        into memory and not copied. Their `notes` say what in the file was left out: the header of
        a table, or a column of labels.

    Raises
    ------
    InputError
        If the file is missing, damaged or in another format; holds several arrays, none, or one of
        the wrong width; or holds values that are not binary (without a seed or threshold), or of
        which it is not clear what is white (with a seed).

    Notes
    -----
    The images need one byte of memory for each pixel, plus the pages of a `.npy` file that the
    system keeps as long as it has room; other formats are first read as a whole.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/test.npy", np.eye(3))
    ...     images = read_images("data", f"{folder}/test.npy", width=3)
    >>> images
    <Images: 3 of 3 pixels, images binary as given>
    >>> images.pixels
    tensor([[1, 0, 0],
            [0, 1, 0],
            [0, 0, 1]], dtype=torch.uint8)
    """
    return images_of(RowsFile(name, path), width, binarize_seed, spins, threshold)


def images_of(
    file: RowsFile,
    width: int,
    binarize_seed: int | None = None,
    spins: bool = False,
    threshold: float | None = None,
) -> Images:
    """`read_images` from a file that may have been read before."""
    array, notes = file.rows(widths=(width,))
    if binarize_seed is not None and threshold is not None:
        raise InputError("threshold: expected it or a seed for binarization, got both")
    images = as_tensor(file.name, array)
    _require_rows(file, images, width)
    low = images.min().item()
    high = images.max().item()
    if spins and low == -1:
        images = _from_spins(file.name, images, high)
        low = 0
    if threshold is not None:
        if not low <= threshold < high:
            raise InputError(
                f"threshold: expected a number from {low:g} to below {high:g}, the values of the "
                f"{file.name}, got {threshold:g}"
            )
        above = (images > threshold).to(torch.uint8)
        return Images(above, f"pixels on where above {threshold:g}", notes)
    white = 255 if _DARKEST_WHITE < high <= 255 else 1
    if binarize_seed is not None:
        if low < 0 or high > white or _lacks_values(images, low, high):
            raise InputError(
                f"{file.name}: expected intensities from 0 to 1 or grey levels up to 255, got "
                f"values from {low:g} to {high:g}. {_what_to_do(images, low, high)}"
            )
        drawn = binarize(images, binarize_seed, white)
        return Images(drawn, f"images binarised once with seed {binarize_seed}", notes)
    if white == 1 and images.dtype == torch.uint8 and high <= 1:
        return Images(images, notes=notes)
    try:
        for block in blocks(images):
            require_binary(file.name, block / white)
    except InputError as error:
        raise InputError(f"{error}. {_what_to_do(images, low, high)}") from error
    return Images((images > 0).view(torch.uint8), notes=notes)


def _require_rows(file: RowsFile, images: Tensor, width: int) -> None:
    """Raise unless there are images, each a row of `width` finite numbers."""
    name = file.name
    if not images.numel():
        raise InputError(f"{name}: expected at least one image, got an empty table in {file.path}")
    if images.ndim == 0:
        raise InputError(
            f"{name}: expected a row of values for each image, got a single number in {file.path}"
        )
    if images.ndim == 1:
        raise InputError(
            f"{name}: expected a row of values for each image, got a single row of {len(images)} "
            f"in {file.path}: labels, or one image, which needs an axis for the number of images"
        )
    if images.shape[1] != width:
        raise InputError(
            f"{name}: expected images of {width} values, as many as the model has visible units, "
            f"got {images.shape[1]} in {file.path}{_why_other_width(images, width)}"
        )
    if images.is_floating_point():
        try:
            require_finite(name, images)
        except InputError as error:
            raise InputError(f"{error}; {COMPLETE}") from error


def _from_spins(name: str, images: Tensor, high: float) -> Tensor:
    """Images of -1 and 1 as bits; raise if they have other values."""
    if not _are_spins(images):
        raise InputError(
            f"{name}: expected -1 and 1 throughout, got other values beside -1. "
            f"{_what_to_do(images, -1, high)}"
        )
    return (images > 0).view(torch.uint8)


def _why_other_width(images: Tensor, width: int) -> str:
    """A guess at what is the matter with images of another width than the model's."""
    if len(images) == width:
        return " (is the array transposed?)"
    if images.shape[1] > width:
        return _why_wider(images, width)
    return _why_narrower(images, width)


def _why_wider(images: Tensor, width: int) -> str:
    more = images.shape[1] - width
    if more == 1:
        return (
            " (is there a label in the first or last column? Leave it out. Or the number of times "
            "that the row occurred? Then write that column to a file of its own for --weights)"
        )
    for extra, where in ((images[:, width:], "last"), (images[:, :more], "first")):
        if bool(((extra == 0) | (extra == 1)).all() & (extra.sum(1) == 1).all()):
            return (
                f" (the {where} {more} columns have a single one in each row, as labels have: "
                "leave them out)"
            )
    return ""


def _why_narrower(images: Tensor, width: int) -> str:
    count = images.shape[1]
    if count == -(-width // 8) and images.dtype == torch.uint8:
        return " (if eight bits are packed into each byte, unpack them)"
    if count == 1:
        return " (if a row is a string of bits, put commas between them)"
    if count == width - 1:
        return " (was a column left out, as a label or as the number of the row?)"
    # Labels have a unit for each of at least two kinds, and fewer than half of the units are hardly
    # for labels.
    if count >= max(width - 20, width // 2 + 1):
        return (
            f" (if the model has {width - count} visible units for labels, it gives a probability "
            "to images with their labels: append these to the images, as zeros and a one)"
        )
    return ""


def _holds_everywhere(condition: Callable[[Tensor], Tensor], images: Tensor) -> bool:
    """Whether all values meet a condition.

    It is tried block by block, since a mask of all images is as large as they are. For most sets of
    images, the first block decides.
    """
    return all(bool(condition(block).all()) for block in blocks(images))


def _are_spins(images: Tensor) -> bool:
    return _holds_everywhere(lambda values: values.abs() == 1, images)


def _lacks_values(images: Tensor, low: float, high: float) -> bool:
    """Whether there is a -1 beside other whole numbers, or a 255, -1 as a byte, beside 0 and 1."""
    if low == -1:
        are_whole = _holds_everywhere(lambda values: values == values.long(), images)
        return are_whole and not _are_spins(images)
    if low != 0 or high != 255:
        return False
    are_bits_and_255 = _holds_everywhere(
        lambda values: (values == 0) | (values == 1) | (values == 255), images
    )
    return are_bits_and_255 and not _holds_everywhere(lambda values: values != 1, images)


def _what_to_do(images: Tensor, low: float, high: float) -> str:
    """How images with these values become binary."""
    if low == -1 and _are_spins(images):
        return (
            "Values of -1 and 1 are spins: for a model of bits, store (x + 1) / 2; a model of "
            "spins becomes one of bits with boltzmann_likelihood.files.binary_from_spins"
        )
    if _lacks_values(images, low, high):
        return (
            f"{-1 if low else 255} beside other whole numbers often stands for a missing value "
            f"(not rated), and {COMPLETE}"
        )
    if low < 0 or high > 255:
        return "On the command line, --threshold T turns on what is above T"
    if not 1 < high <= _DARKEST_WHITE:
        return "On the command line: --binarize SEED, or --threshold T, above which a pixel is on"
    if not _holds_everywhere(lambda values: (values == low) | (values == high), images):
        return (
            f"It is not clear which value is white: divide by it (by {high:g}, if that is white), "
            "and add --binarize SEED, or choose --threshold T, above which a pixel is on"
        )
    return _what_to_do_with_two(low, high)


def _what_to_do_with_two(low: float, high: float) -> str:
    """How images with two values, which are not 0 and 1, become binary."""
    if high - low == 1:
        return (
            f"The values are {low:g} and {high:g}: subtract {low:g}, or on the command line "
            f"--threshold {low:g}, which turns on what is {high:g}"
        )
    return (
        f"The values are {low:g} and {high:g}: --threshold {low:g} turns on what is {high:g}, on "
        f"the command line; in the file, subtract {low:g} and divide the rest by {high - low:g}"
    )


def read_weights(path: str | os.PathLike[str], count: int) -> Tensor:
    """Weights of the test rows from a file of one of the formats that `read_images` takes.

    Parameters
    ----------
    path : path
        A file with numbers of at least 0, in one row or one column.
    count : int
        Number of test rows.

    Returns
    -------
    Tensor, shape [count]
        float64.

    Raises
    ------
    InputError
        If the file is missing, damaged or in another format, or `as_weights` rejects the numbers.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/weights.npy", np.array([1.0, 0.5, 2.0]))
    ...     read_weights(f"{folder}/weights.npy", 3)
    tensor([1.0000, 0.5000, 2.0000], dtype=torch.float64)
    """
    numbers, _ = RowsFile("weights", path).rows(fewest_axes=1)
    return as_weights("weights", as_tensor("weights", numbers.reshape(-1)), count)
