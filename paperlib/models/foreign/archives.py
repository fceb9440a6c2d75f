"""RBMs from HDF5 archives, as written by the Python package `rbms` or the Julia package RestrictedBoltzmannMachines.

Archives from elsewhere are not trusted. Only plain data within the file itself are read: no links to other files, no virtual or
external data, and nothing that would need many times the file's size in memory.

`rbms` stores one model for each of several updates during training. The Julia package writes arrays with their axes in the
opposite order.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paperlib import storage
from paperlib.errors import InputError
from paperlib.models.foreign.foreign_rbm import ForeignRBM
from paperlib.models.foreign.spins import binary_from_spins
from paperlib.models.potts_rbm import PottsRBM
from paperlib.models.rbm import RBM

# How many times larger than the file an array may be. Trained weights do not compress by as much.
_LARGEST_RATIO = 16
_SMALLEST_LIMIT = 2**20
# A message names all updates if there are at most this many.
_FEW = 20
_UPDATE = re.compile(r"update_(\d+)")
_JULIA_HEADER, _JULIA_VERSION = "rbm_hdf5_file_format_version", "1.0.0"
# Visible and hidden units of each kind of model, under its name in `rbms`; for the other kinds, what this library lacks.
_BINARY, _SPIN, _POTTS = "Binary", "Spin", "Potts"
_RBMS_UNITS = {
    "BBRBM": (_BINARY, _BINARY),
    "IIRBM": (_SPIN, _SPIN),
    "PBRBM": (_POTTS, _BINARY),
}
_RBMS_OTHERS = {"BGRBM": "Gaussian hidden units", "IGRBM": "Gaussian hidden units"}
# Units of each layer, under the names that the Julia package uses.
_JULIA_UNITS = {"visible": (_BINARY, _SPIN, _POTTS), "hidden": (_BINARY, _SPIN)}


def read_archive(path: str | os.PathLike[str], update: int | None = None) -> ForeignRBM:
    """An RBM from an HDF5 archive of `rbms` or of RestrictedBoltzmannMachines.jl; needs the h5py package.

    Parameters
    ----------
    path : path
        The archive. From `rbms`, models with binary units (BBRBM), spins (IIRBM) and categorical visible units (PBRBM) can be read;
        from the Julia package, layers of type Binary and Spin, and visible layers of type Potts.
    update : int, optional
        Which of the models that `rbms` stored during training; by default the last one.

    Returns
    -------
    ForeignRBM
        Includes the archive's own ln Z, if it has one.

    Raises
    ------
    InputError
        If the file is missing, damaged or of another format, links to other files, holds arrays far larger than itself, has no such
        update, or has units of a type that the library does not have.

    Examples
    --------
    >>> import tempfile
    >>> import h5py
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with h5py.File(f"{folder}/RBM.h5", "w") as file:
    ...         file["model_type"] = "BBRBM"
    ...         file["update_10/params/weight_matrix"] = np.zeros((3, 2))
    ...         file["update_10/params/vbias"], file["update_10/params/hbias"] = np.zeros(3), np.zeros(2)
    ...     read_archive(f"{folder}/RBM.h5").origin
    'update_10 of RBM.h5, BBRBM'
    """
    path = Path(path)
    with _opened(path) as archive:
        if archive.has(_JULIA_HEADER):
            if update is not None:
                raise InputError(f"update: expected none, since {path} holds a single model")
            return _read_julia(archive)
        return _read_rbms(archive, update)


def archive_updates(path: str | os.PathLike[str]) -> list[int]:
    """The updates for which an archive of `rbms` holds a model, in order; needs the h5py package.

    Raises
    ------
    InputError
        If the file is missing or damaged, or holds none.

    Examples
    --------
    >>> import tempfile
    >>> import h5py
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with h5py.File(f"{folder}/RBM.h5", "w") as file:
    ...         file.create_group("update_10"), file.create_group("update_2")
    ...     archive_updates(f"{folder}/RBM.h5")
    (<HDF5 group "/update_10" (0 members)>, <HDF5 group "/update_2" (0 members)>)
    [2, 10]
    """
    with _opened(Path(path)) as archive:
        return archive.updates()


class _Archive:
    """Reads named data from an open file, and refuses anything that is not plain data of that file."""

    def __init__(self, file: Any, path: Path) -> None:
        self._file, self.path = file, path
        self._most_bytes = max(_LARGEST_RATIO * path.stat().st_size, _SMALLEST_LIMIT)

    def _refused(self, name: str, expected: str, got: object) -> InputError:
        return InputError(f"path: expected {expected} as {name} in {self.path}, got {got}")

    def _item(self, name: str) -> Any:
        """The object with this name, reached by links within the file; None if there is none."""
        import h5py

        item = self._file
        for part in name.split("/"):
            if not isinstance(item, h5py.Group) or part not in item.keys():  # noqa: SIM118
                return None
            link = item.get(part, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise self._refused(name, "data of the file itself", type(link).__name__)
            item = item[part]
        return item

    def has(self, name: str) -> bool:
        """Whether something in the file has this name."""
        return self._item(name) is not None

    def _dataset(self, name: str) -> Any:
        import h5py

        found = self._item(name)
        if not isinstance(found, h5py.Dataset):
            raise self._refused(name, "data", "nothing" if found is None else "a group")
        if found.is_virtual or found.external:
            raise self._refused(name, "data of the file itself", "data of other files")
        if found.shape is None or found.nbytes > self._most_bytes:
            raise self._refused(
                name,
                f"at most {self._most_bytes} bytes, {_LARGEST_RATIO} times the file's size",
                "no data" if found.shape is None else f"{found.nbytes}",
            )
        # A chunk may be larger than its array, and is always unpacked as a whole.
        if found.chunks and math.prod(found.chunks) * found.dtype.itemsize > self._most_bytes:
            raise self._refused(name, f"chunks of at most {self._most_bytes} bytes", "larger ones")
        return found

    def text(self, name: str) -> str:
        """A single string."""
        import h5py

        found = self._dataset(name)
        if found.shape != () or h5py.check_string_dtype(found.dtype) is None:
            raise self._refused(name, "a string", f"{found.dtype} {list(found.shape)}")
        return found.asstr()[()]

    def array(self, name: str) -> np.ndarray:
        """An array of real numbers with at least one dimension."""
        found = self._dataset(name)
        if found.dtype.kind != "f" or found.ndim == 0 or found.size == 0:
            raise self._refused(
                name, "an array of real numbers", f"{found.dtype} {list(found.shape)}"
            )
        # torch supports neither other byte orders nor numbers of more than eight bytes
        return np.asarray(
            found[()], np.float64 if found.dtype.itemsize > 8 else found.dtype.newbyteorder("=")
        )

    def number(self, name: str) -> float | None:
        """A single real number; None if nothing has this name."""
        if not self.has(name):
            return None
        found = self._dataset(name)
        if found.dtype.kind not in "fiu" or found.size != 1:
            raise self._refused(name, "a number", f"{found.dtype} {list(found.shape)}")
        return float(np.asarray(found[()]).item())

    def updates(self) -> list[int]:
        """The updates for which there is a model."""
        matches = [_UPDATE.fullmatch(name) for name in self._file.keys()]  # noqa: SIM118
        found = sorted(int(match[1]) for match in matches if match)
        if not found:
            raise self._refused("update_N", "models", "none")
        return found


@contextmanager
def _opened(path: Path) -> Iterator[_Archive]:
    if not storage.is_file(path):
        raise InputError(f"path: expected a model file, found none at {path}")
    try:
        import h5py
    except ImportError as error:
        raise InputError(
            f"path: expected the package h5py to be installed to read {path} (pip install h5py)"
        ) from error
    try:
        with h5py.File(path, "r") as file:
            yield _Archive(file, path)
    except InputError:
        raise
    except Exception as error:  # h5py raises many kinds of exceptions for damaged files
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(
            f"path: expected an undamaged HDF5 file, could not read {path}: {reason}"
        ) from error


def _read_rbms(archive: _Archive, update: int | None) -> ForeignRBM:
    updates, path = archive.updates(), archive.path
    chosen = updates[-1] if update is None else update
    if chosen not in updates:
        raise InputError(f"update: expected one of {_some(updates)} in {path}, got {update}")
    kind = archive.text("model_type")
    if kind not in _RBMS_UNITS:
        raise InputError(
            f"path: expected a model of binary units (BBRBM), of spins (IIRBM) or of categorical visible units (PBRBM) in {path}, "
            f"got {kind}, which needs {_RBMS_OTHERS.get(kind, 'units that this library does not have')}"
        )
    group = f"update_{chosen}"
    inside = f"{group}/params"
    # Older versions kept the arrays one level higher.
    place = inside if archive.has(inside) else group
    arrays = [archive.array(f"{place}/{name}") for name in ("weight_matrix", "vbias", "hbias")]
    return _foreign(
        arrays,
        _RBMS_UNITS[kind],
        archive,
        f"{group} of {path.name}, {kind}",
        stored_log_z=archive.number(f"{group}/log_z"),
    )


def _some(updates: list[int]) -> str:
    """All of the updates, or the first and the last ones."""
    if len(updates) > _FEW:
        return f"{', '.join(map(str, updates[: _FEW // 2]))}, ..., {', '.join(map(str, updates[-_FEW // 2 :]))}"
    return ", ".join(map(str, updates))


def _read_julia(archive: _Archive) -> ForeignRBM:
    path = archive.path
    for name, expected in ((_JULIA_HEADER, _JULIA_VERSION), ("rbm_type", "RBM")):
        found = archive.text(name)
        if found != expected:
            raise InputError(f"path: expected {name} {expected} in {path}, got {found}")
    units = archive.text("visible_type"), archive.text("hidden_type")
    for layer, kind in zip(("visible", "hidden"), units, strict=True):
        if kind not in _JULIA_UNITS[layer]:
            raise InputError(
                f"path: expected {' or '.join(_JULIA_UNITS[layer])} {layer} units in {path}, got {kind}, which this library does not have"
            )
    # The first axis of a layer's parameters in Julia is the last one here, and has one entry for these units.
    biases = [archive.array(f"{layer}_par") for layer in ("visible", "hidden")]
    weights = archive.array("weights")
    if any(bias.shape[-1] != 1 for bias in biases) or (
        weights.shape != biases[1].shape[:-1] + biases[0].shape[:-1]
    ):
        raise InputError(
            f"path: expected weights and biases that fit each other in {path}, got shapes {list(weights.shape)}, "
            f"{list(biases[0].shape)} and {list(biases[1].shape)}"
        )
    # For categorical units, the first axis in Julia (the last one here) holds the states.
    states = biases[0].shape[-2:-1] if units[0] == _POTTS else ()
    sides = biases[0].shape[: -2 if states else -1][::-1]
    visible_bias, hidden_bias = biases[0].reshape(-1, *states), biases[1].reshape(-1)
    matrix = np.moveaxis(weights.reshape(len(hidden_bias), *visible_bias.shape), 0, -1)
    notes: tuple[str, ...] = ()
    if len(sides) > 1:
        named = " x ".join(map(str, sides))
        notes = (f"visible units: {named} in Julia, taken in Julia's order, first index fastest",)
    origin = f"{path.name}, {units[0]} visible and {units[1]} hidden units"
    return _foreign([matrix, visible_bias, hidden_bias], units, archive, origin, notes=notes)


def _foreign(
    arrays: list[np.ndarray],
    units: tuple[str, str],
    archive: _Archive,
    origin: str,
    stored_log_z: float | None = None,
    notes: tuple[str, ...] = (),
) -> ForeignRBM:
    """The model with these arrays: weights [D, M], or [L, q, M] for categorical units, and biases."""
    weights, visible_bias, hidden_bias = (
        torch.from_numpy(np.ascontiguousarray(array)) for array in arrays
    )
    spins = [kind == _SPIN for kind in units]
    offset = 0.0
    try:
        kind = PottsRBM if units[0] == _POTTS else RBM
        model = kind(weights, visible_bias, hidden_bias)
        if any(spins):
            flat = model.flat if isinstance(model, PottsRBM) else model
            flat, offset = binary_from_spins(
                *flat.tensors().values(), visible=spins[0], hidden=spins[1]
            )
            parts = flat.weights.view(weights.shape), flat.visible_bias.view(visible_bias.shape)
            model = kind(*parts, flat.hidden_bias)
    except InputError as error:
        raise InputError(f"path: expected an RBM in {archive.path}: {error}") from error
    if any(spins):
        notes += (
            f"units -1 and 1: changed to 0 and 1; ln Z of the model in the file is that of the new one {offset:+.2f} nats",
        )
    return ForeignRBM(model, origin, spins[0], offset, stored_log_z, notes)
