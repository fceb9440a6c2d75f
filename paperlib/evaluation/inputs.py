"""Models and images from files of many origins. Nothing is ever unpickled."""

from __future__ import annotations

import io
import math
import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paperlib import storage
from paperlib.datasets import binarize
from paperlib.errors import InputError
from paperlib.models import RBM
from paperlib.models.files import READABLE, read_arrays
from paperlib.models.foreign import ForeignRBM, read_archive, read_state_dict
from paperlib.validation import (
    as_float_tensor,
    as_tensor,
    blocks,
    require_binary,
    require_finite,
    require_shape,
)

_IDX_MAGIC = b"\x00\x00"
# IDX type codes of the MNIST format; multi-byte numbers are big-endian.
_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
# scikit-learn's names: components are hidden times visible units.
_SKLEARN_NAMES = ("components_", "intercept_visible_", "intercept_hidden_")


# ARCHIVE.h5, or one model of it: ARCHIVE.h5:update_N
_ARCHIVE = re.compile(r"(?P<path>.+\.(?:h5|hdf5))(?::update_(?P<update>\d+))?", re.DOTALL)
_PICKLES = (".pkl", ".pickle", ".joblib", ".p", ".data")
_MODEL_FILES = ".safetensors, .npz, .mat, .skops, .h5, .hdf5, .pt or .pth"
#: Of files that `read_model` takes.
MODEL_SUFFIXES = (".safetensors", ".npz", ".mat", ".skops", ".h5", ".hdf5", ".pt", ".pth")


def read_model(path: str | os.PathLike[str]) -> ForeignRBM:
    """An RBM, and how it came from a file of any origin.

    Parameters
    ----------
    path : path
        - `.safetensors`, `.npz`, `.mat`: arrays named as in `RBM.load`, or, in `.npz`, as scikit-learn's `BernoulliRBM` names them:
          `components_` [M, D], `intercept_visible_`, `intercept_hidden_`.
        - `.skops`: such an estimator itself (needs the package skops).
        - `.h5`, `.hdf5`: an archive of `rbms` or of RestrictedBoltzmannMachines.jl (needs the package h5py). `ARCHIVE.h5:update_N` is one
          model of an archive of `rbms`, `ARCHIVE.h5` its last.
        - `.pt`, `.pth`: named tensors that `torch.save` wrote.

    Returns
    -------
    ForeignRBM
        With the RBM in the type in which it was stored.

    Raises
    ------
    InputError
        If the file is missing, damaged, of another format, or does not hold an RBM.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     torch.save({"W": torch.zeros(3, 2), "vbias": torch.zeros(3), "hbias": torch.zeros(2)}, f"{folder}/model.pt")
    ...     read_model(f"{folder}/model.pt").origin
    'named tensors in model.pt'
    """
    archive = _ARCHIVE.fullmatch(os.fspath(path))
    if archive is not None:
        update = archive["update"]
        return read_archive(archive["path"], None if update is None else int(update))
    path = Path(path)
    if path.suffix in (".pt", ".pth"):
        return read_state_dict(path)
    if path.suffix in _PICKLES:
        raise InputError(
            f"path: expected a {_MODEL_FILES} file, got {path.name!r}: a pickle can run any code when it is read. Where you trust it, "
            "write it anew: numpy.savez('model.npz', weights=W, visible_bias=b, hidden_bias=a) with W [visible, hidden]"
        )
    if path.suffix == ".skops":
        return ForeignRBM(_from_sklearn(_skops_arrays(path), path), path.name)
    if path.suffix == ".npz":
        arrays = read_arrays(path)
        if "components_" in arrays:
            return ForeignRBM(_from_sklearn(arrays, path), path.name)
    if path.suffix not in READABLE:
        raise InputError(f"path: expected a {_MODEL_FILES} file, got {path.name!r}")
    return ForeignRBM(RBM.load(path), path.name)


def read_rbm(path: str | os.PathLike[str]) -> RBM:
    """The RBM alone of `read_model`.

    Raises
    ------
    InputError
        As `read_model`, or if its visible units are categorical.

    Examples
    --------
    >>> import tempfile
    >>> arrays = {"components_": np.ones((2, 3)), "intercept_visible_": np.zeros(3)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/model.npz", **arrays, intercept_hidden_=np.zeros(2))
    ...     read_rbm(f"{folder}/model.npz")
    RBM(3 visible, 2 hidden, torch.float64, cpu)
    """
    model = read_model(path).rbm
    if not isinstance(model, RBM):
        raise InputError(f"path: expected a model of binary units in {path}, got {model}")
    return model


def _from_sklearn(arrays: Mapping[str, object], path: Path) -> RBM:
    missing = [name for name in _SKLEARN_NAMES if name not in arrays]
    if missing:
        raise InputError(
            f"path: expected the arrays {', '.join(_SKLEARN_NAMES)} in {path}, missing {', '.join(missing)}"
        )
    try:
        components, visible_bias, hidden_bias = (
            as_float_tensor(name, arrays[name]) for name in _SKLEARN_NAMES
        )
        require_shape("components_", components, [None, None])
        return RBM(components.T.contiguous(), visible_bias, hidden_bias)
    except ValueError as error:
        raise InputError(f"path: expected a BernoulliRBM in {path}: {error}") from error


def _skops_arrays(path: Path) -> Mapping[str, object]:
    if not storage.is_file(path):
        raise InputError(f"path: expected a model file, found none at {path}")
    try:
        storage.require_modest_zip(path)
    except InputError as error:
        raise InputError(f"path: {error}") from error
    try:
        import skops.io
    except ImportError as error:
        raise InputError(
            f"path: expected the package skops to be installed to read {path} (pip install skops); an .npz file with "
            f"{', '.join(_SKLEARN_NAMES)} needs nothing more"
        ) from error
    try:
        estimator = skops.io.load(path, trusted=[])
    except Exception as error:  # skops raises whatever its parts raise
        raise InputError(
            f"path: expected a BernoulliRBM that skops can load without trusting anything, could not read {path}: "
            f"{str(error).splitlines()[0] if str(error) else type(error).__name__}"
        ) from error
    found = {name: getattr(estimator, name) for name in _SKLEARN_NAMES if hasattr(estimator, name)}
    if len(found) < len(_SKLEARN_NAMES):
        raise InputError(
            f"path: expected a fitted BernoulliRBM in {path}, got {type(estimator).__name__}"
        )
    return found


def read_images(
    name: str,
    path: str | os.PathLike[str],
    width: int,
    binarize_seed: int | None = None,
    spins: bool = False,
) -> Tensor:
    """Binary images from `.npy`, `.npz`, `.mat`, `.csv` or IDX (also gzipped).

    Parameters
    ----------
    name : str
        What the images are, for messages: `data` or `train`.
    path : path
        A file with one array of numbers, [N, D] or [N, height, width]. Whole numbers up to 255 are grey levels.
    width : int
        D, which the model expects.
    binarize_seed : int, optional
        Draw every pixel once with its intensity as probability, from this seed. None: the images must be binary.
    spins : bool
        Whether the model's own visible units are -1 and 1. Images of -1 and 1 are then taken, and become 0 and 1.

    Returns
    -------
    Tensor, shape [N, D]
        uint8. Bytes 0 and 1 from a `.npy` file are those of the file itself, mapped into memory and not copied.

    Raises
    ------
    InputError
        If the file is missing, damaged or of another format; holds several arrays, none, or one of another width; or
        holds values that are not binary (without a seed) or not intensities (with one).

    Notes
    -----
    Memory is one byte for each pixel, and the pages of a `.npy` file that the system keeps as long as it has room; other formats
    are read as a whole first.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/test.npy", np.eye(3))
    ...     read_images("data", f"{folder}/test.npy", width=3)
    tensor([[1, 0, 0],
            [0, 1, 0],
            [0, 0, 1]], dtype=torch.uint8)
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
    if array.ndim > 1:
        array = array.reshape(len(array), int(np.prod(array.shape[1:])))
    images = as_tensor(name, array)
    require_shape(name, images, [None, None])
    if len(images) == 0:
        raise InputError(f"{name}: expected images in {path}, got none")
    if images.shape[1] != width:
        turned = " (is the array transposed?)" if len(images) == width else ""
        raise InputError(
            f"{name}: expected images of {width} values, as many as the model has visible units, got {images.shape[1]} "
            f"in {path}{turned}"
        )
    if images.is_floating_point():
        require_finite(name, images)
    if spins and images.min() == -1:
        images = _binary_of_spins(name, images)
    white = 255 if array.dtype.kind in "iu" and images.max() > 1 else 1
    if binarize_seed is not None:
        return binarize(images, binarize_seed, white)
    if white == 1 and images.dtype == torch.uint8:
        return images
    result = torch.empty(images.shape, dtype=torch.uint8)
    for block, binary in zip(blocks(images), blocks(result), strict=True):
        intensities = block / white
        try:
            require_binary(name, intensities)
        except ValueError as error:
            hint = "; on the command line: --binarize SEED"
            grey = intensities.min() >= 0 and intensities.max() <= 1
            raise InputError(f"{error}{hint if grey else ''}") from error
        binary.copy_(intensities)
    return result


def _binary_of_spins(name: str, spins: Tensor) -> Tensor:
    """0 for -1 and 1 for 1."""
    result = torch.empty(spins.shape, dtype=torch.uint8)
    for block, binary in zip(blocks(spins), blocks(result), strict=True):
        if not bool((block.abs() == 1).all()):
            raise InputError(f"{name}: expected -1 and 1 throughout, got other values beside -1")
        binary.copy_(block > 0)
    return result


def _read_array(path: Path) -> np.ndarray:
    """The one array in a file."""
    plain = Path(path.stem) if path.suffix == ".gz" else path
    if plain.suffix == ".csv":
        return _read_csv(path)
    if plain.suffix == ".npy":
        try:
            # private pages: torch wants arrays that it may write to
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
            # An empty file is refused later, by its shape.
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
