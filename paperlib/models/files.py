"""Model files: named arrays in, named arrays out, and a checksum of their contents. Nothing is ever unpickled.

A `.safetensors` file of ours carries a checksum of its contents, which is verified when the file is read: a single flipped bit is
noticed. Files without one (older files of ours, or files from elsewhere) are read without this check. `.npz` files have their own
checksums (CRC-32).
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paperlib import storage
from paperlib.errors import InputError
from paperlib.validation import as_tensor, require_finite

_STORABLE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
READABLE = (".safetensors", ".npz", ".mat")
# Types of elements in a level 5 MATLAB file, packed and plain, and how many bytes are unpacked at a time.
_MATLAB_PACKED, _MATLAB_PLAIN, _PIECE = 15, 14, 2**20
# Metadata key under which a file keeps the checksum of everything else in it.
_CHECKSUM = "contents_sha256"


def read_arrays(path: Path) -> Mapping[str, object]:
    """The named arrays of a model file, with all readers' failures turned into one kind of error.

    Raises
    ------
    InputError
        If the file is missing, damaged (which includes a checksum that does not match), or of another format.
    """
    if path.suffix not in READABLE:
        raise InputError(f"path: expected a .safetensors, .npz or .mat file, got {path.name!r}")
    if not storage.is_file(path):
        raise InputError(f"path: expected a model file, found none at {path}")
    try:
        if path.suffix == ".safetensors":
            return _read_safetensors(path)
        if path.suffix == ".npz":
            storage.require_modest_zip(path)
            with np.load(path, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        from scipy.io import loadmat

        storage.require_modest(path, _matlab_size(path))
        return {
            name: value
            for name, value in loadmat(path).items()
            if isinstance(value, np.ndarray) and not name.startswith("__")
        }
    except InputError as error:
        raise InputError(f"path: {error}") from error
    except Exception as error:  # each format's reader has its own exceptions
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"path: expected an undamaged {path.suffix} file, could not read {path}: {reason}"
        ) from error


def _matlab_size(path: Path) -> int:
    """Unpacked size in bytes of the packed elements of a level 5 MATLAB file, counted up to just above the limit."""
    limit, total, at_end = storage.unpacked_limit(path), 0, path.stat().st_size
    with path.open("rb") as file:
        head = file.read(128)
        order = {b"IM": "<", b"MI": ">"}.get(head[126:128])
        # Other levels pack nothing.
        while order is not None and total <= limit and file.tell() + 8 <= at_end:
            kind, size = struct.unpack(f"{order}II", file.read(8))
            after = file.tell() + size
            if kind not in (_MATLAB_PACKED, _MATLAB_PLAIN):
                raise InputError(
                    f"expected matrices in the MATLAB file {path}, got an element of type {kind}"
                )
            if kind == _MATLAB_PACKED:
                unpacker, left = zlib.decompressobj(), size
                while left > 0 and total <= limit and not unpacker.eof:
                    piece = file.read(min(left, _PIECE))
                    if not piece:
                        break
                    left -= len(piece)
                    while piece and total <= limit:
                        total += len(unpacker.decompress(piece, _PIECE))
                        piece = unpacker.unconsumed_tail
            file.seek(after)
    return min(total, limit + 1)


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors import safe_open

    with safe_open(path, "pt") as stored:
        # Copies, because the file's own buffers are unaligned, which makes matrix products round differently.
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
    """The arrays of a model file that have the given names.

    Raises
    ------
    InputError
        As in `read_arrays`, or if one of the names is missing.
    """
    arrays, names = read_arrays(path), list(names)
    if any(name not in arrays for name in names):
        raise InputError(
            f"path: expected the arrays {', '.join(names)} in {path}, got {', '.join(sorted(arrays)) or 'none'}"
        )
    return {name: arrays[name] for name in names}


def read_metadata(path: Path) -> dict[str, str]:
    """The text that a `.safetensors` file carries in addition to its tensors; empty if there is none.

    Raises
    ------
    InputError
        If the file is missing or damaged.
    """
    from safetensors import safe_open

    try:
        with safe_open(path, "pt") as stored:
            metadata = stored.metadata() or {}
    except Exception as error:  # safetensors raises its own type of exception
        raise InputError(
            f"path: expected an undamaged .safetensors file, could not read {path}: {error}"
        ) from error
    return {key: text for key, text in metadata.items() if key != _CHECKSUM}


def read_resumable(
    path: Path, signature: Mapping[str, str], progress: Collection[str]
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The contents of a checkpoint, if it belongs to the work with this signature.

    Parameters
    ----------
    path : Path
        A file that `write_safetensors` wrote, with the signature and the progress as its text.
    signature : mapping of str to str
        Entries that tell one piece of work from another.
    progress : collection of str
        Names of the other entries in the text, whose values are JSON.

    Returns
    -------
    tensors : dict of str to Tensor
        By name.
    progress : dict
        The value of each.

    Raises
    ------
    InputError
        If the file is damaged, or belongs to work with another signature: one with a different, a missing or an additional entry.
    """
    try:
        metadata = read_metadata(path)
        tensors = {name: as_tensor(name, array) for name, array in read_arrays(path).items()}
        done = {name: json.loads(metadata.pop(name)) for name in progress}
    except (ValueError, KeyError) as error:
        raise InputError(
            f"checkpoint: expected an undamaged file at {path}; remove it to start anew"
        ) from error
    # Compared both ways, since a checkpoint may also have an entry that this work lacks.
    for key in sorted(signature.keys() | metadata.keys()):
        wanted, found = signature.get(key, "none"), metadata.get(key, "none")
        if wanted != found:
            raise InputError(
                f"checkpoint: expected {key} {wanted}, got {found} in {path}; "
                "remove it to start anew"
            )
    return tensors, done


def as_stored(tensors: Mapping[str, Tensor], dtype: torch.dtype | None = None) -> dict[str, Tensor]:
    """Tensors in the form in which a file stores them, converted to `dtype` if it is given.

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
        If the suffix is another, or as in `as_stored`.
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
