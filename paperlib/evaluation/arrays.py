"""One array of numbers from a file in one of many formats. Nothing is ever unpickled."""

from __future__ import annotations

import io
import math
import os
import warnings
from pathlib import Path

import numpy as np

from paperlib import storage
from paperlib.errors import InputError
from paperlib.models.files import read_arrays

_IDX_MAGIC = b"\x00\x00"
# IDX type codes of the MNIST format; multi-byte numbers are big-endian.
_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_rows(name: str, path: str | os.PathLike[str]) -> np.ndarray:
    """The numbers in a file, with all dimensions but the first flattened into one.

    Parameters
    ----------
    name : str
        What the numbers are, for error messages.
    path : path
        A `.npy`, `.npz`, `.mat`, `.csv` or IDX file, possibly gzipped, with one array of numbers.

    Raises
    ------
    InputError
        If the file is missing, damaged or in another format, or does not hold one array of numbers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/test.npy", np.zeros((2, 4, 5)))
    ...     read_rows("data", f"{folder}/test.npy").shape
    (2, 20)
    """
    path = Path(path)
    if not storage.is_file(path):
        raise InputError(f"{name}: expected a file, found none at {path}")
    try:
        array = _read_array(path)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from error
    except OSError as error:
        raise InputError(f"{name}: expected a readable file at {path}: {error.strerror}") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name}: expected numbers in {path}, got {array.dtype}")
    return array.reshape(len(array), int(np.prod(array.shape[1:]))) if array.ndim > 1 else array


def _read_array(path: Path) -> np.ndarray:
    """The one array in a file."""
    plain = Path(path.stem) if path.suffix == ".gz" else path
    if plain.suffix == ".csv":
        return _read_csv(path)
    if plain.suffix == ".npy":
        try:
            # private pages, since torch wants arrays that it may write to
            with np.errstate(over="ignore"):
                return np.load(path, mmap_mode="c", allow_pickle=False)
        except (ValueError, EOFError, OverflowError) as error:
            raise InputError(
                f"expected an undamaged .npy file without pickled objects, could not read {path}: {error}"
            ) from error
    if plain.suffix in (".npz", ".mat"):
        arrays = {
            key: value for key, value in read_arrays(path).items() if np.asarray(value).ndim > 1
        }
        if len(arrays) != 1:
            raise InputError(
                f"expected one array of images in {path}, got {', '.join(sorted(arrays)) or 'none'}"
            )
        return np.asarray(next(iter(arrays.values())))
    return _read_idx(path)


def _read_csv(path: Path) -> np.ndarray:
    try:
        with warnings.catch_warnings():
            # An empty file is rejected later because of its shape.
            warnings.simplefilter("ignore", UserWarning)
            text = io.BytesIO(storage.read_bytes(path)) if path.suffix == ".gz" else path
            return np.loadtxt(text, delimiter=",", ndmin=2)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(
            f"expected rows of numbers with commas between them in {path}: {error}"
        ) from error


def _read_idx(path: Path) -> np.ndarray:
    """An array in the format of MNIST's files."""
    data = storage.read_bytes(path)
    if len(data) < 4 or data[:2] != _IDX_MAGIC or data[2] not in _IDX_TYPES:
        raise InputError(
            f"expected a .npy, .npz, .mat, .csv or IDX file, got {path.name!r}, which is none of these"
        )
    dimensions = data[3]
    start = 4 + 4 * dimensions
    shape = np.frombuffer(data[4:start], ">u4") if len(data) >= start else None
    kind = np.dtype(_IDX_TYPES[data[2]])
    if shape is None or len(data) - start != math.prod(shape.tolist()) * kind.itemsize:
        raise InputError(f"expected a whole IDX file at {path}, its length does not fit its header")
    return np.frombuffer(data, kind, offset=start).reshape(shape).astype(kind.newbyteorder("="))
