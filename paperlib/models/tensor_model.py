"""What models share whose parameters are a few named tensors: type, device, checksum and files.

A model lists the names of its tensors and inherits the rest: `to`, `double` and `float` as of a
module of torch, except that they return another model; `state_dict` and `load_state_dict`; `save`
and `load`; and `checksum`, by which stored results name their model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.models.files import (
    Entry,
    dense,
    printable,
    read_named,
    tensors_checksum,
    write_safetensors,
)
from paperlib.validation import as_float_tensor, require_shape


class TensorModel:
    """A model whose parameters are a few named tensors, all of one type and on one device.

    A subclass whose constructor takes nothing but its parameters lists their names in
    `tensor_names`, in that order. A subclass with any number of parameters, such as DBN, defines
    `tensors` and `from_tensors` instead. Type, device, checksum and files follow from these.
    `called` is the name of such a model in error messages.
    """

    called: ClassVar[str]
    tensor_names: ClassVar[tuple[str, ...]] = ()

    def tensors(self) -> dict[str, Tensor]:
        """The parameters by name, as a file stores them."""
        if not self.tensor_names:
            raise TypeError(
                "expected the names of its parameters in "
                f"{type(self).__name__}.tensor_names, got none"
            )
        return {name: getattr(self, name) for name in self.tensor_names}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, object]) -> Self:
        """The model with these parameters, named as in `tensors`.

        Raises
        ------
        InputError
            If one is missing or does not fit the others.
        """
        missing = [name for name in cls.tensor_names if name not in tensors]
        if missing:
            raise InputError(
                f"tensors: expected {', '.join(missing)} as well, got {', '.join(tensors)}"
            )
        return cls(*(tensors[name] for name in cls.tensor_names))

    def state_dict(self) -> dict[str, Tensor]:
        """The parameters by name, as `torch.nn.Module.state_dict` gives those of a module.

        It is for `torch.save` and for other programs. The tensors are those of the model and not
        copies, as with torch.

        Examples
        --------
        >>> from paperlib.models import RBM
        >>> list(RBM(torch.zeros(2, 1), torch.zeros(2), torch.zeros(1)).state_dict())
        ['weights', 'visible_bias', 'hidden_bias']
        """
        return self.tensors()

    def load_state_dict(self, state_dict: Mapping[str, object]) -> None:
        """Replace all parameters in place, as a module of torch does; the type and the device stay.

        A path or an estimate that was made before belongs to the former parameters: make it anew.

        Parameters
        ----------
        state_dict : mapping of str to array or Tensor
            The names and shapes of `state_dict()`.

        Raises
        ------
        InputError
            If a name is missing or is not expected, a shape differs, or a number is not finite.
            The model is then as it was.

        Examples
        --------
        >>> from paperlib.models import RBM
        >>> rbm = RBM(torch.zeros(2, 1), torch.zeros(2), torch.zeros(1))
        >>> rbm.load_state_dict(rbm.state_dict() | {"hidden_bias": [0.5]})
        >>> rbm.hidden_bias
        tensor([0.5000])
        """
        shapes = {name: list(tensor.shape) for name, tensor in self.tensors().items()}
        if set(state_dict) != set(shapes):
            raise InputError(
                f"state_dict: expected the names {', '.join(shapes)}, "
                f"got {printable(', '.join(map(str, state_dict)) or 'none')}"
            )
        like = next(iter(self.tensors().values()))
        tensors = {
            name: as_float_tensor(f"state_dict[{name!r}]", state_dict[name]).to(like)
            for name in shapes
        }
        for name, tensor in tensors.items():
            require_shape(f"state_dict[{name!r}]", tensor, shapes[name])
        vars(self).update(vars(self.from_tensors(tensors)))

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type of the parameters."""
        return next(iter(self.tensors().values())).dtype

    @property
    def device(self) -> torch.device:
        """Device of the parameters."""
        return next(iter(self.tensors().values())).device

    def to(
        self,
        *args: torch.device | str | torch.dtype | Tensor | None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> Self:
        """The same model on another device, or in single or double precision.

        It takes what `torch.nn.Module.to` takes: a device, a type, both in this order, or a tensor
        that has both; or `device=` and `dtype=`. Unlike a module, the model stays as it was.

        Raises
        ------
        InputError
            If the type is neither torch.float32 nor torch.float64: no estimator works in half
            precision. If there is no such device, or an argument is none of these.

        Examples
        --------
        >>> from paperlib.models import RBM
        >>> rbm = RBM(torch.zeros(2, 1), torch.zeros(2), torch.zeros(1))
        >>> rbm.to(torch.float64)
        RBM(2 visible, 1 hidden, torch.float64, cpu)
        >>> rbm.to("cpu", torch.float64).dtype
        torch.float64
        """
        device, dtype = _place_and_type(args, device, dtype)
        if dtype not in (None, torch.float32, torch.float64):
            raise InputError(
                f"dtype: expected torch.float32 or torch.float64, got {dtype}; half precision is "
                "for files: save(path, dtype=torch.float16)"
            )
        tensors = {
            name: tensor.to(device=device, dtype=dtype) for name, tensor in self.tensors().items()
        }
        return type(self).from_tensors(tensors)

    def double(self) -> Self:
        """The same model in torch.float64."""
        return self.to(dtype=torch.float64)

    def float(self) -> Self:
        """The same model in torch.float32."""
        return self.to(dtype=torch.float32)

    def checksum(self) -> str:
        """SHA-256 over shapes, type and values of the parameters, whatever the file format."""
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
            Stored in the file.
        dtype : torch.dtype, optional
            Storage type, for example torch.float16 to halve the size. Loading then gives the
            rounded model.

        Raises
        ------
        InputError
            If the suffix is another, `dtype` is not of 16 to 64 bits, or a parameter overflows it.
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
            torch.float32 or torch.float64; by default the stored type, with half precision widened
            to float32.

        Raises
        ------
        InputError
            If the file is missing, damaged or of another format, its arrays are not exactly those
            of such a model, or `dtype` is another type.
        """
        path = Path(path)
        arrays = cls._read(path)
        try:
            model = cls.from_tensors({name: dense(name, value) for name, value in arrays.items()})
        except InputError as error:
            raise InputError(
                f"path: expected {cls.called} in {path}: {printable(str(error))}"
            ) from error
        return model if dtype is None else model.to(dtype=dtype)

    @classmethod
    def _read(cls, path: Path) -> Mapping[str, Entry]:
        """The arrays in a file, as `from_tensors` takes them."""
        return read_named(path, cls.tensor_names)


def _place_and_type(
    args: Sequence[object], device: torch.device | str | None, dtype: torch.dtype | None
) -> tuple[torch.device | None, torch.dtype | None]:
    """The device and the type that the arguments of `TensorModel.to` name, or None for each."""
    devices: list[object] = [] if device is None else [device]
    dtypes: list[torch.dtype] = [] if dtype is None else [dtype]
    for arg in args:
        if arg is None:
            continue
        if isinstance(arg, Tensor):
            devices.append(arg.device)
            dtypes.append(arg.dtype)
        elif isinstance(arg, torch.dtype):
            dtypes.append(arg)
        elif isinstance(arg, torch.device | str | int):
            devices.append(arg)
        else:
            raise InputError(f"to: expected a device or a type, got {type(arg).__name__}")
    if len(devices) > 1 or len(dtypes) > 1:
        raise InputError(f"to: expected one device and one type at most, got {args}")
    target = _present_device(devices[0]) if devices else None
    return target, (dtypes[0] if dtypes else None)


def _present_device(device: object) -> torch.device:
    """`device`; raise unless torch can put a tensor there."""
    try:
        return torch.empty(0, device=cast(Any, device)).device
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        raise InputError(
            f"device: expected one that torch finds on this machine, got {str(device)!r}"
        ) from error
