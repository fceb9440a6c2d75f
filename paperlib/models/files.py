"""Model files of three formats, `.safetensors`, `.npz` and `.mat`, as named arrays.

Nothing is ever unpickled. A `.safetensors` file of ours carries a checksum of its contents, which
is verified when the file is read: a single flipped bit is noticed. Files without one (older files
of ours, or files from elsewhere) are read without this check. Files of other programs are read by
the package `boltzmann_likelihood`.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from paperlib import storage
from paperlib.errors import InputError
from paperlib.validation import require_finite

#: What a name in a file stands for: an array, a number or text.
Entry: TypeAlias = np.ndarray | Tensor | float | str

_STORABLE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_REAL = (*_STORABLE, *_INTEGERS)
# What the files of models with a known answer (`data/planted`) hold beside the parameters.
BESIDE_A_MODEL = ("log_z", "draws", "provenance")
# Metadata key under which a file keeps the checksum of everything else in it.
_CHECKSUM = "contents_sha256"


def read_arrays(path: str | os.PathLike[str]) -> dict[str, Entry]:
    """The named arrays of a `.safetensors`, `.npz` or `.mat` file (version 5).

    Raises
    ------
    InputError
        If the file is missing, damaged, of another format, or many times larger than it seems.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    readers = {".safetensors": read_safetensors, ".npz": _read_npz, ".mat": _read_matlab}
    if suffix not in readers:
        raise InputError(
            f"path: expected a {', '.join(readers)} file, got {path.name!r}; "
            "boltzmann_likelihood.read_model reads the files of other programs"
        )
    if not storage.is_file(path):
        raise InputError(f"path: expected a model file, found none at {path}")
    try:
        return readers[suffix](path)
    except InputError as error:
        raise InputError(f"path: {str(error).removeprefix('path: ')}") from error
    except PermissionError as error:
        raise InputError(f"path: expected a readable file at {path}: {error.strerror}") from error
    except Exception as error:  # each format's reader has its own exceptions
        raise InputError(
            f"path: expected an undamaged {suffix} file, could not read {path}: {first_line(error)}"
        ) from error


def _read_npz(path: Path) -> dict[str, Entry]:
    with zipfile.ZipFile(path) as archive:
        storage.require_modest(path, sum(member.file_size for member in archive.infolist()))
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _read_matlab(path: Path) -> dict[str, Entry]:
    from scipy.io import loadmat

    return {name: value for name, value in loadmat(path).items() if not name.startswith("__")}


def read_named(path: str | os.PathLike[str], names: Sequence[str]) -> dict[str, Entry]:
    """The arrays with these names; raise if the file holds others not in `BESIDE_A_MODEL`."""
    arrays = read_arrays(path)
    if not set(names) <= set(arrays) <= {*names, *BESIDE_A_MODEL}:
        raise InputError(
            f"path: expected the arrays {', '.join(names)} in {path}, "
            f"got {printable(', '.join(sorted(arrays)) or 'none')}; "
            "boltzmann_likelihood.read_model finds a model among other arrays"
        )
    return {name: arrays[name] for name in names}


def first_line(error: Exception) -> str:
    """The first line of an exception's message, cut to 200 characters."""
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def printable(text: str) -> str:
    """`text` for a message of one line; names in a file may hold any characters, at any length."""
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= 200 else f"{text[:200]}..."


def dense(name: str, value: Entry) -> Entry:
    """`value`; raise if it is a tensor but not one of real numbers that are all in the file."""
    if not isinstance(value, Tensor):
        return value
    plain = value.layout == torch.strided and value.device.type == "cpu" and value.dtype in _REAL
    if not plain or value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise InputError(
            f"expected a dense tensor of real numbers as {name}, "
            f"got {value.dtype}, {value.layout}, shape {list(value.shape)}"
        )
    return value.detach()


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    from safetensors import safe_open

    try:
        with safe_open(path, "pt") as stored:
            yield stored
    except Exception as error:  # safetensors raises its own type of exception
        raise InputError(
            f"path: expected an undamaged .safetensors file, could not read {path}: {error}"
        ) from error


def read_safetensors(source: Path | bytes) -> dict[str, Tensor]:
    """The tensors of a `.safetensors` file, or of its contents."""
    from safetensors.torch import load

    if isinstance(source, bytes):
        return load(source)
    if not storage.is_file(source):
        raise InputError(f"path: expected a model file, found none at {source}")
    with _opened(source) as stored:
        # Copies, because the file's buffers are unaligned and matrix products of them are rounded
        # in another way.
        tensors = {name: stored.get_tensor(name).clone() for name in stored.keys()}  # noqa: SIM118
        metadata = stored.metadata() or {}
    expected = metadata.pop(_CHECKSUM, None)
    if expected is not None and expected != _contents_checksum(tensors, metadata):
        raise InputError(
            f"path: expected an undamaged .safetensors file, could not read {source}: "
            "its contents are not those that were written (checksum)"
        )
    return tensors


def _contents_checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    names = sorted(tensors)
    text = json.dumps([names, dict(metadata)], sort_keys=True)
    checksum = tensors_checksum(tensors[name] for name in names)
    return storage.sha256(f"{text} {checksum}".encode())


def read_metadata(path: Path) -> dict[str, str]:
    """The text that a `.safetensors` file holds beside its tensors; empty if there is none."""
    with _opened(path) as stored:
        metadata = stored.metadata() or {}
    return {key: text for key, text in metadata.items() if key != _CHECKSUM}


def as_stored(tensors: Mapping[str, Tensor], dtype: torch.dtype | None = None) -> dict[str, Tensor]:
    """Tensors in the form in which a file stores them, converted to `dtype` unless it is None."""
    if dtype not in (None, *_STORABLE):
        raise InputError(f"dtype: expected one of {', '.join(map(str, _STORABLE))}, got {dtype}")
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    if dtype is not None:
        stored = {name: tensor.to(dtype) for name, tensor in stored.items()}
        for name, tensor in stored.items():
            require_finite(f"dtype ({name} stored as {dtype})", tensor)
    return stored


def write_safetensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    metadata: Mapping[str, str] | None = None,
    dtype: torch.dtype | None = None,
) -> None:
    """Write tensors and text, with a checksum of both, as a `.safetensors` file.

    The file is written completely or not at all.
    """
    if path.suffix != ".safetensors":
        raise InputError(f"path: expected a .safetensors file, got {path.name!r}")
    from safetensors.torch import save_file

    stored = as_stored(tensors, dtype)
    entries = dict(metadata or {})
    entries[_CHECKSUM] = _contents_checksum(stored, entries)
    with storage.atomic_path(path) as temporary:
        save_file(stored, temporary, metadata=entries)


def tensors_checksum(tensors: Iterable[Tensor]) -> str:
    """SHA-256 over shapes, types and values, independent of any file format."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{list(tensor.shape)}".encode())
        # bytes, since numpy does not know all of torch's types
        numbers = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        digest.update(numbers.data)
    return digest.hexdigest()
