"""Model files: named arrays in, named arrays out, and a checksum of what they hold. Nothing is ever unpickled.

A `.safetensors` file of ours carries the checksum of its own contents, which is compared when it is read: a single flipped bit is
noticed. Files without one, older ones of ours or those of others, are read as they are. `.npz` has checksums of its own (CRC-32).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paperlib import storage
from paperlib.errors import InputError
from paperlib.validation import require_finite

_STORABLE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
READABLE = (".safetensors", ".npz", ".mat")
# Where in a file's text the checksum of all the rest stands.
_CHECKSUM = "contents_sha256"


def read_arrays(path: Path) -> Mapping[str, object]:
    """The named arrays of a model file, every reader's own failure turned into one kind of error.

    Raises
    ------
    InputError
        If the file is missing, damaged (also if a checksum that it carries does not fit), or of another format.
    """
    if path.suffix not in READABLE:
        raise InputError(f"path: expected a .safetensors, .npz or .mat file, got {path.name!r}")
    if not path.is_file():
        raise InputError(f"path: expected a model file, found none at {path}")
    try:
        if path.suffix == ".safetensors":
            return _read_safetensors(path)
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        from scipy.io import loadmat

        return {
            name: value
            for name, value in loadmat(path).items()
            if isinstance(value, np.ndarray) and not name.startswith("__")
        }
    except Exception as error:  # each format's reader has exceptions of its own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"path: expected an undamaged {path.suffix} file, could not read {path}: {reason}"
        ) from error


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors import safe_open

    with safe_open(path, "pt") as stored:
        # Copies: the file's own buffers are unaligned, and matrix products then round differently.
        tensors = {name: stored.get_tensor(name).clone() for name in stored.keys()}  # noqa: SIM118
        metadata = stored.metadata() or {}
    expected = metadata.pop(_CHECKSUM, None)
    if expected is not None and expected != _contents_checksum(tensors, metadata):
        raise InputError("its contents are not those that were written (checksum)")
    return tensors


def _contents_checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    names = sorted(tensors)
    text = json.dumps([names, dict(metadata)], sort_keys=True)
    return storage.sha256(f"{text} {tensors_checksum(tensors[name] for name in names)}".encode())


def read_tensors(path: Path, names: Iterable[str]) -> dict[str, object]:
    """Those arrays of a model file that have the given names.

    Raises
    ------
    InputError
        As `read_arrays`, or if one of the names is missing.
    """
    arrays, names = read_arrays(path), list(names)
    if any(name not in arrays for name in names):
        raise InputError(
            f"path: expected the arrays {', '.join(names)} in {path}, got {', '.join(sorted(arrays)) or 'none'}"
        )
    return {name: arrays[name] for name in names}


def read_metadata(path: Path) -> dict[str, str]:
    """The text that a `.safetensors` file carries beside its tensors; empty if it has none.

    Raises
    ------
    InputError
        If the file is missing or damaged.
    """
    from safetensors import safe_open

    try:
        with safe_open(path, "pt") as stored:
            metadata = stored.metadata() or {}
    except Exception as error:  # safetensors raises an exception type of its own
        raise InputError(
            f"path: expected an undamaged .safetensors file, could not read {path}: {error}"
        ) from error
    return {key: text for key, text in metadata.items() if key != _CHECKSUM}


def as_stored(tensors: Mapping[str, Tensor], dtype: torch.dtype | None = None) -> dict[str, Tensor]:
    """Tensors as a file takes them, in another type if one is given.

    Raises
    ------
    InputError
        If `dtype` is not a floating-point type of 16 to 64 bits, or a parameter overflows it.
    """
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
    """Write tensors and text as one `.safetensors` file with a checksum of both, whole or not at all.

    Raises
    ------
    InputError
        For another suffix, or as `as_stored`.
    """
    if path.suffix != ".safetensors":
        raise InputError(f"path: expected a .safetensors file, got {path.name!r}")
    from safetensors.torch import save_file

    stored, text = as_stored(tensors, dtype), dict(metadata or {})
    text[_CHECKSUM] = _contents_checksum(stored, text)
    with storage.atomic_path(path) as temporary:
        save_file(stored, temporary, metadata=text)


def tensors_checksum(tensors: Iterable[Tensor]) -> str:
    """SHA-256 over shapes, types and values, independent of any file format."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{list(tensor.shape)}".encode())
        # bytes, since numpy does not know all of torch's types
        numbers = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        digest.update(numbers.data)
    return digest.hexdigest()
