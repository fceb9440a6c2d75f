"""RBMs from HDF5 archives of two packages, `rbms` and RestrictedBoltzmannMachines.jl.

`rbms`, in Python, stores one model for each of several updates during training. The Julia package
stores one model, and writes arrays with their axes in the opposite order. Both say of which type
their units are: binary units and spins are read, anything else is refused by its name.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from boltzmann_likelihood.files.gone import CATEGORICAL_KINDS, categorical_model
from boltzmann_likelihood.files.spins import binary_from_spins
from boltzmann_likelihood.files.stored import listed, read_stored
from boltzmann_likelihood.sources import ForeignRBM
from paperlib.errors import InputError
from paperlib.models.files import Entry
from paperlib.models.rbm import RBM
from paperlib.validation import as_tensor

# A message names all updates if there are at most this many.
_FEW = 20
_UPDATE = re.compile(r"update_(\d+)")
_JULIA_HEADER = "rbm_hdf5_file_format_version"
_JULIA_VERSION = "1.0.0"
# Visible and hidden units of each kind of model, under its name in `rbms`; below them, what this
# library lacks for other kinds.
_BINARY = "Binary"
_SPIN = "Spin"
_RBMS_UNITS = {"BBRBM": (_BINARY, _BINARY), "IIRBM": (_SPIN, _SPIN)}
_RBMS_OTHERS = {"BGRBM": "Gaussian hidden units", "IGRBM": "Gaussian hidden units"}
# Units of each layer, under the names that the Julia package uses.
_JULIA_UNITS = (_BINARY, _SPIN)
_ARRAYS = ("weight_matrix", "vbias", "hbias")


def is_archive(stored: Mapping[str, Entry]) -> bool:
    """Whether a file's names are those of an archive of one of the two packages."""
    return _JULIA_HEADER in stored or bool(_updates(stored))


def from_archive(stored: Mapping[str, Entry], path: Path, update: int | None = None) -> ForeignRBM:
    """An RBM from an opened HDF5 archive of `rbms` or of RestrictedBoltzmannMachines.jl.

    Parameters
    ----------
    stored : mapping
        What `boltzmann_likelihood.files.stored.read_stored` read. From `rbms`, models with binary
        units (BBRBM) and spins (IIRBM) can be read; from the Julia package, layers of type Binary
        and Spin.
    path : Path
        The archive's file, for notes and error messages.
    update : int, optional
        Which of the models that `rbms` stored during training; by default the last one.

    Returns
    -------
    ForeignRBM
        Includes the archive's own ln Z, if it has one.

    Raises
    ------
    InputError
        If an array is missing or of another kind, there is no such update, or units are of a type
        that the library does not have.

    Examples
    --------
    >>> stored = {f"update_10.params.{name}": np.zeros(2) for name in ("vbias", "hbias")}
    >>> stored |= {"update_10.params.weight_matrix": np.zeros((2, 2)), "model_type": "BBRBM"}
    >>> from_archive(stored, Path("RBM.h5")).origin
    'update_10 of RBM.h5, BBRBM'
    """
    if _JULIA_HEADER in stored:
        if update is not None:
            raise InputError(f"update: expected none, since {path} holds a single model")
        return _from_julia(stored, path)
    return _from_rbms(stored, path, update)


def archive_updates(path: str | os.PathLike[str]) -> list[int]:
    """The updates for which an archive of `rbms` holds a model, in order; needs the h5py package.

    Raises
    ------
    InputError
        If the file is missing or damaged, or holds none.
    """
    updates = _updates(read_stored("path", path))
    if not updates:
        raise _error(path, "models as update_N", "none")
    return updates


def _error(path: str | os.PathLike[str], expected: str, got: str) -> InputError:
    return InputError(f"path: expected {expected} in {path}, got {got}")


def _categorical_error(path: Path, sites: int, states: int) -> InputError:
    """For weights with this many visible units, each of which has this many states."""
    return _error(path, "a model of binary units", categorical_model(sites, states))


def _updates(stored: Mapping[str, Entry]) -> list[int]:
    matches = {_UPDATE.fullmatch(name.partition(".")[0]) for name in stored}
    return sorted({int(match[1]) for match in matches if match})


def _entry(stored: Mapping[str, Entry], name: str, path: Path) -> Entry:
    if name not in stored:
        raise _error(path, f"data as {name}", "nothing")
    return stored[name]


def _text(stored: Mapping[str, Entry], name: str, path: Path) -> str:
    text = _entry(stored, name, path)
    if not isinstance(text, str):
        raise _error(path, f"a string as {name}", listed({name: text}))
    return text


def _array(stored: Mapping[str, Entry], name: str, path: Path) -> np.ndarray:
    array = np.asarray(_entry(stored, name, path))
    if array.dtype.kind != "f" or array.ndim == 0 or array.size == 0:
        got = f"{array.dtype} {list(array.shape)}"
        raise _error(path, f"an array of real numbers as {name}", got)
    return array


def _from_rbms(stored: Mapping[str, Entry], path: Path, update: int | None) -> ForeignRBM:
    updates = _updates(stored)
    number = updates[-1] if update is None else update
    if number not in updates:
        raise InputError(f"update: expected one of {_some(updates)} in {path}, got {update}")
    # Older versions kept the arrays one level higher, and the oldest did not say which kind of
    # model it is.
    group = f"update_{number}"
    prefix = f"{group}.params."
    parameters = {name.removeprefix(prefix) for name in stored if name.startswith(prefix)}
    if not parameters:
        prefix = f"{group}."
    arrays = [_array(stored, f"{prefix}{name}", path) for name in _ARRAYS]
    extra = parameters - {*_ARRAYS}
    if extra:
        expected = f"only {', '.join(_ARRAYS)} as the parameters of {group}"
        raise _error(path, expected, f"{', '.join(sorted(extra))} as well")
    notes: tuple[str, ...] = ()
    kind = _text(stored, "model_type", path) if "model_type" in stored else ""
    if not kind:
        kind, notes = _kind_of_oldest(arrays[0], path)
    if kind in CATEGORICAL_KINDS and arrays[0].ndim == 3:
        raise _categorical_error(path, *arrays[0].shape[:2])
    if kind not in _RBMS_UNITS:
        units = _RBMS_OTHERS.get(kind, "units that this library does not have")
        expected = "a model of binary units (BBRBM) or of spins (IIRBM)"
        raise _error(path, expected, f"{kind}, which needs {units}")
    log_z = None
    if f"{group}.log_z" in stored:
        value = np.asarray(stored[f"{group}.log_z"])
        if value.dtype.kind not in "fiu" or value.size != 1:
            got = f"{value.dtype} {list(value.shape)}"
            raise _error(path, f"a number as {group}.log_z", got)
        log_z = float(value.item())
    origin = f"{group} of {path.name}, {kind}"
    return _foreign(arrays, _RBMS_UNITS[kind], path, origin, log_z, notes)


def _kind_of_oldest(weights: np.ndarray, path: Path) -> tuple[str, tuple[str, ...]]:
    """The kind of a model whose file does not name it, and a note."""
    if weights.ndim == 2:
        return "BBRBM", ("no model_type in the file: taken as binary units",)
    if weights.ndim == 3:
        # they had the states first, [q, L, M]
        raise _categorical_error(path, weights.shape[1], weights.shape[0])
    got = f"nothing, and weights {list(weights.shape)} that do not tell"
    raise _error(path, "data as model_type", got)


def _some(updates: list[int]) -> str:
    """All of the updates, or the first and the last ones."""
    numbers = [str(update) for update in updates]
    if len(numbers) > _FEW:
        numbers = [*numbers[: _FEW // 2], "...", *numbers[-_FEW // 2 :]]
    return ", ".join(numbers)


def _from_julia(stored: Mapping[str, Entry], path: Path) -> ForeignRBM:
    for name, expected in ((_JULIA_HEADER, _JULIA_VERSION), ("rbm_type", "RBM")):
        text = _text(stored, name, path)
        if text != expected:
            raise _error(path, f"{name} {expected}", text)
    units = _text(stored, "visible_type", path), _text(stored, "hidden_type", path)
    # The first axis of a layer's parameters in Julia is the last one here, and has one entry for
    # these units.
    biases = [_array(stored, f"{layer}_par", path) for layer in ("visible", "hidden")]
    weights = _array(stored, "weights", path)
    if units[0] in CATEGORICAL_KINDS and biases[0].ndim > 2:
        # the first axis in Julia holds the states
        *sites, states, _ = biases[0].shape
        raise _categorical_error(path, math.prod(sites), states)
    for layer, kind in zip(("visible", "hidden"), units, strict=True):
        if kind not in _JULIA_UNITS:
            expected = f"{' or '.join(_JULIA_UNITS)} {layer} units"
            raise _error(path, expected, f"{kind}, which this library does not have")
    shape = biases[1].shape[:-1] + biases[0].shape[:-1]
    if weights.shape != shape or any(bias.shape[-1] != 1 for bias in biases):
        shapes = [list(array.shape) for array in (weights, *biases)]
        got = f"shapes {shapes[0]}, {shapes[1]} and {shapes[2]}"
        raise _error(path, "weights and biases that fit each other", got)
    sides = biases[0].shape[-2::-1]
    visible_bias = biases[0].reshape(-1)
    hidden_bias = biases[1].reshape(-1)
    matrix = weights.reshape(len(hidden_bias), len(visible_bias)).T
    notes: tuple[str, ...] = ()
    if len(sides) > 1:
        lattice = " x ".join(map(str, sides))
        notes = (f"visible units: {lattice} in Julia, taken in Julia's order, first index fastest",)
    origin = f"{path.name}, {units[0]} visible and {units[1]} hidden units"
    return _foreign([matrix, visible_bias, hidden_bias], units, path, origin, notes=notes)


def _foreign(
    arrays: list[np.ndarray],
    units: tuple[str, str],
    path: Path,
    origin: str,
    stored_log_z: float | None = None,
    notes: tuple[str, ...] = (),
) -> ForeignRBM:
    """The model with these arrays: weights [D, M] and biases."""
    tensors = [as_tensor("path", array) for array in arrays]
    spin_visible = units[0] == _SPIN
    spin_hidden = units[1] == _SPIN
    offset = 0.0
    try:
        model = RBM(*tensors)
        if spin_visible or spin_hidden:
            parameters = model.tensors().values()
            model, offset = binary_from_spins(*parameters, visible=spin_visible, hidden=spin_hidden)
    except InputError as error:
        raise InputError(f"path: expected an RBM in {path}: {error}") from error
    if spin_visible or spin_hidden:
        log_z_note = f"ln Z of the model in the file is that of the new one {offset:+.2f} nats"
        notes += (f"units -1 and 1: changed to 0 and 1; {log_z_note}",)
    return ForeignRBM(model, origin, spin_visible, offset, stored_log_z, notes)
