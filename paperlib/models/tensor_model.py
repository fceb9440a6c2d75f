"""What every model has whose parameters are a few named tensors: type and device, checksum, file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

import torch
from torch import Tensor

from paperlib.models.files import read_tensors, tensors_checksum, write_safetensors


class TensorModel:
    """A model of named tensors, all of one floating-point type and on one device.

    Subclasses name them in `tensor_names`, in the order of the constructor's arguments, of which there are no others; `called` is
    what an error calls such a model.
    """

    tensor_names: ClassVar[tuple[str, ...]]
    called: ClassVar[str]

    def tensors(self) -> dict[str, Tensor]:
        """The parameters by name, as a file stores them."""
        return {name: getattr(self, name) for name in self.tensor_names}

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type of the parameters."""
        return next(iter(self.tensors().values())).dtype

    @property
    def device(self) -> torch.device:
        """Device of the parameters."""
        return next(iter(self.tensors().values())).device

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> Self:
        """The same model on another device or in another floating-point type."""
        return type(self)(
            *(tensor.to(device=device, dtype=dtype) for tensor in self.tensors().values())
        )

    def checksum(self) -> str:
        """SHA-256 over shapes, type and values of the parameters, independent of the file format."""
        return tensors_checksum(self.tensors().values())

    def save(
        self,
        path: str | os.PathLike[str],
        metadata: Mapping[str, str] | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Write the parameters.

        Parameters
        ----------
        path : path
            `.safetensors`.
        metadata : mapping of str to str, optional
            Kept in the file.
        dtype : torch.dtype, optional
            Storage type, for example torch.float16 to halve the size. What is loaded later is the rounded model.

        Raises
        ------
        ValueError
            For another suffix, or a parameter that overflows `dtype`.
        """
        write_safetensors(Path(path), self.tensors(), metadata, dtype)

    @classmethod
    def load(cls, path: str | os.PathLike[str], dtype: torch.dtype | None = None) -> Self:
        """Read a model that `save` wrote, or one in the same layout from elsewhere.

        Parameters
        ----------
        path : path
            `.safetensors`, `.npz` or `.mat` (version 5). Nothing is ever unpickled.
        dtype : torch.dtype, optional
            Type to convert to; by default the stored one, with half precision widened to float32.

        Raises
        ------
        ValueError
            If the file is missing, damaged, of another format, or its arrays do not make such a model.
        """
        path = Path(path)
        arrays = cls._read(path)
        try:
            model = cls(*arrays)
            return model if dtype is None else model.to(dtype=dtype)
        except ValueError as error:
            raise ValueError(f"path: expected {cls.called} in {path}: {error}") from error

    @classmethod
    def _read(cls, path: Path) -> list[object]:
        """The constructor's arguments."""
        return list(read_tensors(path, cls.tensor_names).values())
