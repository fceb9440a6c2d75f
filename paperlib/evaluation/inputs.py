"""Models, images and weights of images from files of many origins. Nothing is ever unpickled."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from paperlib import storage
from paperlib.datasets import binarize
from paperlib.errors import InputError
from paperlib.evaluation.arrays import read_rows
from paperlib.evaluation.targets import as_rows
from paperlib.evaluation.weighting import as_weights
from paperlib.models import DBM, DBN, RBM, PottsRBM
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

# scikit-learn's names; the components have shape [hidden, visible].
_SKLEARN_NAMES = ("components_", "intercept_visible_", "intercept_hidden_")


# ARCHIVE.h5, or one model of it: ARCHIVE.h5:update_N
_ARCHIVE = re.compile(r"(?P<path>.+\.(?:h5|hdf5))(?::update_(?P<update>\d+))?", re.DOTALL)
_PICKLES = (".pkl", ".pickle", ".joblib", ".p", ".data")
_MODEL_FILES = ".safetensors, .npz, .mat, .skops, .h5, .hdf5, .pt or .pth"
#: Suffixes of the files that `read_model` accepts.
MODEL_SUFFIXES = (".safetensors", ".npz", ".mat", ".skops", ".h5", ".hdf5", ".pt", ".pth")


def read_model(path: str | os.PathLike[str]) -> ForeignRBM:
    """A model from a file of any origin, and how it was read.

    Parameters
    ----------
    path : path
        - `.safetensors`, `.npz`, `.mat`: arrays named as in `RBM.load`, or, in `.npz`, as scikit-learn's `BernoulliRBM` names them:
          `components_` [M, D], `intercept_visible_`, `intercept_hidden_`.
        - `.safetensors`, `.npz` with the arrays of a `DBM`, a `DBN` or a `PottsRBM`, as their `save` writes them.
        - `.skops`: a `BernoulliRBM` itself (needs the package skops).
        - `.h5`, `.hdf5`: an archive of `rbms` or of RestrictedBoltzmannMachines.jl (needs the package h5py). `ARCHIVE.h5:update_N` is one
          model of an archive of `rbms`, `ARCHIVE.h5` its last.
        - `.pt`, `.pth`: named tensors that `torch.save` wrote.

    Returns
    -------
    ForeignRBM
        The model keeps the type in which it was stored.

    Raises
    ------
    InputError
        If the file is missing, damaged or in another format, or does not hold such a model.

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
    if path.suffix not in READABLE:
        raise InputError(f"path: expected a {_MODEL_FILES} file, got {path.name!r}")
    arrays = read_arrays(path)
    if "components_" in arrays and path.suffix == ".npz":
        return ForeignRBM(_from_sklearn(arrays, path), path.name)
    kind = _kind_of(arrays)
    return ForeignRBM(kind.load(path), path.name if kind is RBM else f"{path.name}, {kind.called}")


def _kind_of(arrays: Mapping[str, object]) -> type[RBM | PottsRBM | DBM | DBN]:
    """The class of model that these arrays belong to; RBM unless they fit another."""
    if "weights_1" in arrays:
        return DBM
    if any(name.startswith("layers.0.") for name in arrays):
        return DBN
    weights = arrays.get("weights")
    return PottsRBM if getattr(weights, "ndim", 2) == 3 else RBM


def read_rbm(path: str | os.PathLike[str]) -> RBM:
    """An RBM from a file, as `read_model` reads it, without the origin.

    Raises
    ------
    InputError
        As for `read_model`, or if the model is not an RBM of binary units.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> arrays = {"components_": np.ones((2, 3)), "intercept_visible_": np.zeros(3)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/model.npz", **arrays, intercept_hidden_=np.zeros(2))
    ...     read_rbm(f"{folder}/model.npz")
    RBM(3 visible, 2 hidden, torch.float64, cpu)
    """
    model = read_model(path).rbm
    if not isinstance(model, RBM):
        raise InputError(f"path: expected an RBM of binary units in {path}, got {model}")
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
        sizes = [hidden_bias.numel(), visible_bias.numel()]
        if list(components.shape) == sizes[::-1] and sizes[0] != sizes[1]:
            raise InputError(
                f"components_: expected shape [hidden, visible] = {sizes}, got {sizes[::-1]}; are the weights transposed?"
            )
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
        What the images are, for error messages: `data` or `train`.
    path : path
        A file with one array of numbers, [N, D] or [N, height, width]. Whole numbers up to 255 are grey levels.
    width : int
        D, as the model expects it.
    binarize_seed : int, optional
        Draw every pixel once, with its intensity as its probability, from this seed. None: the images must be binary.
    spins : bool
        Whether the model's own visible units are -1 and 1. Images of -1 and 1 are then accepted, and converted to 0 and 1.

    Returns
    -------
    Tensor, shape [N, D]
        uint8. Bytes 0 and 1 from a `.npy` file are mapped into memory and not copied.

    Raises
    ------
    InputError
        If the file is missing, damaged or in another format; holds several arrays, none, or one of the wrong width; or
        holds values that are not binary (without a seed) or not intensities (with one).

    Notes
    -----
    The images need one byte of memory for each pixel, plus the pages of a `.npy` file that the system keeps as long as it has
    room; other formats are first read as a whole.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/test.npy", np.eye(3))
    ...     read_images("data", f"{folder}/test.npy", width=3)
    tensor([[1, 0, 0],
            [0, 1, 0],
            [0, 0, 1]], dtype=torch.uint8)
    """
    array = read_rows(name, path)
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


def read_sequences(name: str, path: str | os.PathLike[str], model: PottsRBM) -> Tensor:
    """Data for a model with categorical visible units, as bits, from the kinds of file that `read_images` accepts.

    Parameters
    ----------
    name : str
        What the sequences are, for error messages: `data` or `train`.
    path : path
        A file with state numbers [N, L] from 0 to q - 1, or with bits [N, L q] or [N, L, q], exactly one on at each site.
    model : PottsRBM
        Determines L and q.

    Returns
    -------
    Tensor, shape [N, L q]
        uint8.

    Raises
    ------
    InputError
        If the file is missing, damaged or in another format, or holds anything else.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> model = PottsRBM(torch.zeros(2, 3, 1), torch.zeros(2, 3), torch.zeros(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/test.npy", np.array([[0, 2]]))
    ...     read_sequences("data", f"{folder}/test.npy", model)
    tensor([[1, 0, 0, 0, 0, 1]], dtype=torch.uint8)
    """
    rows = as_tensor(name, read_rows(name, path))
    require_shape(name, rows, [None, None])
    if rows.shape[1] not in (model.num_sites, model.num_visible):
        raise InputError(
            f"{name}: expected sequences of {model.num_sites} sites, or {model.num_visible} bits, got {rows.shape[1]} in {path}"
        )
    require_finite(name, rows.double())
    return as_rows(name, rows, model).to(torch.uint8)


def read_weights(path: str | os.PathLike[str], count: int) -> Tensor:
    """Weights of the test rows from a `.npy`, `.mat` or `.csv` file.

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
    return as_weights(
        "weights", as_tensor("weights", read_rows("weights", path).reshape(-1)), count
    )


def _binary_of_spins(name: str, spins: Tensor) -> Tensor:
    """0 for -1 and 1 for 1."""
    result = torch.empty(spins.shape, dtype=torch.uint8)
    for block, binary in zip(blocks(spins), blocks(result), strict=True):
        if not bool((block.abs() == 1).all()):
            raise InputError(f"{name}: expected -1 and 1 throughout, got other values beside -1")
        binary.copy_(block > 0)
    return result
