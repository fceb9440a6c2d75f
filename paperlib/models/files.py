"""Our own model files, `.safetensors`: tensors in, tensors out, and a checksum of their contents.

Such a file of ours carries a checksum of its contents, which is verified when the file is read: a single flipped bit is
noticed. Files without one (older files of ours, or files from elsewhere) are read without this check.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from paperlib import storage
from paperlib.errors import InputError
from paperlib.validation import require_finite

_STORABLE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# Metadata key under which a file keeps the checksum of everything else in it.
_CHECKSUM = "contents_sha256"


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
        # Copies, because the file's own buffers are unaligned, which makes matrix products round differently.
        tensors = {name: stored.get_tensor(name).clone() for name in stored.keys()}  # noqa: SIM118
        metadata = stored.metadata() or {}
    expected = metadata.pop(_CHECKSUM, None)
    if expected is not None and expected != _contents_checksum(tensors, metadata):
        raise InputError(
            f"path: expected an undamaged .safetensors file, could not read {source}: its contents are not those that were written (checksum)"
        )
    return tensors


def _contents_checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    names = sorted(tensors)
    text = json.dumps([names, dict(metadata)], sort_keys=True)
    return storage.sha256(f"{text} {tensors_checksum(tensors[name] for name in names)}".encode())


def read_metadata(path: Path) -> dict[str, str]:
    """The text that a `.safetensors` file carries in addition to its tensors; empty if there is none."""
    with _opened(path) as stored:
        metadata = stored.metadata() or {}
    return {key: text for key, text in metadata.items() if key != _CHECKSUM}


def as_stored(tensors: Mapping[str, Tensor], dtype: torch.dtype | None = None) -> dict[str, Tensor]:
    """Tensors in the form in which a file stores them, converted to `dtype` if it is given."""
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
    """Write tensors and text as one `.safetensors` file with a checksum of both, whole or not at all."""
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
