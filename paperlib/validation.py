"""Checks and conversions of arguments.

All messages name the argument and say what was expected and what came.

Users have states of units in many forms: `binarize` gives bytes, files give numpy arrays, a
comparison gives booleans. These functions turn them into tensors, and nothing else in the library
does:

- `as_states`: for arithmetic with a model's parameters, in their type and on their device;
- `as_bits`, `as_means`: the same at the door of a model's public methods, where values are looked
  at;
- `as_binary`: for data sets, which are checked as a whole and keep their type, often bytes;
- `as_tensor`: for any other numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from paperlib.errors import InputError

# What every public function takes where its documentation says "array or Tensor".
ArrayLike: TypeAlias = Tensor | npt.ArrayLike

# For numbers that belong to no model: float64 on the CPU.
DOUBLE = torch.empty(0, dtype=torch.float64, device="cpu")

# Numbers looked at together: 16 MiB in float32, whatever the total size.
_BLOCK_NUMBERS = 2**22


def as_tensor(name: str, value: object) -> Tensor:
    """A tensor of real numbers from a tensor, an array or nested sequences, in their own type.

    A tensor is returned as it is, and an array shares its memory with the result where torch can do
    that. Unsigned integers of two bytes or more become int64, since torch has hardly any
    operations for them.

    Examples
    --------
    >>> import numpy as np
    >>> as_tensor("v", np.array([[True, False]])).dtype
    torch.bool
    """
    if isinstance(value, Tensor):
        if value.layout != torch.strided:
            raise InputError(
                f"{name}: expected a dense tensor, got {value.layout}; its to_dense() is one"
            )
        tensor = value
    else:
        parts = value if isinstance(value, list | tuple) else [value]
        masked = sum(np.ma.count_masked(part) for part in parts if np.ma.is_masked(part))
        if masked:
            raise InputError(
                f"{name}: expected numbers, got {masked} masked values, which are none; "
                "fill them in, or leave their rows out"
            )
        try:
            array = np.asarray(value)
            # torch knows neither other byte orders nor numbers of more than eight bytes.
            if array.dtype.kind == "f" and array.dtype.itemsize > 8:
                array = array.astype(np.float64)
            if not array.dtype.isnative:
                array = array.astype(array.dtype.newbyteorder("="))
            # torch takes neither read-only arrays nor arrays that run backwards.
            tensor = torch.from_numpy(np.require(array, requirements=["C", "W"]))
        except (TypeError, ValueError, RuntimeError) as error:
            kind = type(value).__name__
            if isinstance(value, np.ndarray):
                kind += f" of type {value.dtype}"
            raise InputError(f"{name}: expected an array of numbers, got {kind}") from error
    if tensor.is_complex():
        raise InputError(f"{name}: expected real numbers, got {tensor.dtype}")
    if tensor.dtype in (torch.uint16, torch.uint32, torch.uint64):
        return tensor.to(torch.int64)
    return tensor


def as_float_tensor(name: str, value: object, dtype: torch.dtype | None = None) -> Tensor:
    """A floating-point tensor from a tensor, an array or nested sequences of numbers.

    Integers and booleans become float64; float16 becomes float32, since no estimator works in half
    precision. An array is copied, a tensor only if its type changes; `parameter` copies both.

    Examples
    --------
    >>> as_float_tensor("betas", [0, 0.5, 1])
    tensor([0.0000, 0.5000, 1.0000], dtype=torch.float64)
    """
    tensor = as_tensor(name, value)
    if isinstance(value, np.ndarray):
        tensor = tensor.clone()
    if dtype is None:
        if not tensor.is_floating_point():
            dtype = torch.float64
        elif tensor.dtype in (torch.float16, torch.bfloat16):
            dtype = torch.float32
    return tensor if dtype is None else tensor.to(dtype)


def as_states(name: str, value: object, like: Tensor, width: int) -> Tensor:
    """States of units as a tensor [..., width], in the type and on the device of `like`.

    A tensor of that type on that device is returned untouched, so that this costs nothing where
    chains walk. Values need not be binary: most formulas hold for means in [0, 1], too.

    Examples
    --------
    >>> as_states("v", [[True, False, True]], like=torch.zeros(3), width=3)
    tensor([[1., 0., 1.]])
    """
    if (
        not isinstance(value, Tensor)
        or value.dtype is not like.dtype
        or value.device != like.device
    ):
        value = as_tensor(name, value).to(like.device, like.dtype)
    if value.ndim == 0 or value.shape[-1] != width:
        raise InputError(
            f"{name}: expected {width} values in the last dimension, got shape {list(value.shape)}"
        )
    return value


def as_bits(name: str, value: object, like: Tensor, width: int) -> Tensor:
    """`as_states` of units that are on or off: 0 and 1 only.

    Raises
    ------
    InputError
        If the width does not fit, or a value is neither 0 nor 1.

    Examples
    --------
    >>> as_bits("v", [[True, False, True]], like=torch.zeros(3), width=3)
    tensor([[1., 0., 1.]])
    """
    states = as_states(name, value, like, width)
    if not bool(((states == 0) | (states == 1)).all()):
        require_binary(name, states)
    return states


def as_means(name: str, value: object, like: Tensor, width: int) -> Tensor:
    """`as_states` of units that are on or off, or of their means: numbers from 0 to 1.

    Raises
    ------
    InputError
        If the width does not fit, or a value lies outside.

    Examples
    --------
    >>> as_means("v", [0.5, 1], like=torch.zeros(2), width=2)
    tensor([0.5000, 1.0000])
    """
    means = as_states(name, value, like, width)
    inside = (means >= 0) & (means <= 1)
    if not bool(inside.all()):
        wrong = means[~inside]
        raise InputError(
            f"{name}: expected numbers from 0 to 1, got {len(wrong)} others of {means.numel()}, "
            f"for example {wrong[0].item():g}"
        )
    return means


def as_state_rows(name: str, value: object, like: Tensor, width: int) -> Tensor:
    """`as_states`, of a batch [N, width] of at least one."""
    rows = as_states(name, value, like, width)
    require_shape(name, rows, [None, width])
    return rows


def as_binary(name: str, value: object, width: int | None = None) -> Tensor:
    """Binary vectors as a tensor [N, width] in their own type; `None` stands for any width.

    Raises
    ------
    InputError
        If the shape does not fit, there is no vector, or a value is neither 0 nor 1.

    Examples
    --------
    >>> as_binary("train", [[0, 1], [1, 1]], width=2).shape
    torch.Size([2, 2])
    """
    tensor = as_tensor(name, value)
    require_shape(name, tensor, [None, width])
    require_binary(name, tensor)
    return tensor


def blocks(tensor: Tensor, numbers: int = _BLOCK_NUMBERS) -> tuple[Tensor, ...]:
    """Consecutive parts of `tensor`, of four million numbers each, for work that needs copies."""
    if tensor.ndim == 0 or tensor.numel() == 0:
        return (tensor,)
    return tensor.split(max(1, numbers * len(tensor) // tensor.numel()))


def require_shape(name: str, tensor: Tensor, shape: Sequence[int | None]) -> None:
    """Raise unless `tensor` has this shape; `None` stands for any length of at least one."""
    expected = "[" + ", ".join("any" if n is None else str(n) for n in shape) + "]"
    matches = tensor.ndim == len(shape) and all(
        length >= 1 if required is None else length == required
        for length, required in zip(tensor.shape, shape, strict=True)
    )
    if not matches:
        empty = ", which is empty" if 0 in tensor.shape else ""
        raise InputError(f"{name}: expected shape {expected}, got {list(tensor.shape)}{empty}")


def parameter(
    name: str, value: object, shape: Sequence[int | None], like: Tensor | None = None
) -> Tensor:
    """A copy of finite numbers of this shape, such as a model's parameter.

    In the type and on the device of the tensor `like`, if there is one.
    """
    tensor = as_float_tensor(name, value, None if like is None else like.dtype)
    tensor = tensor if like is None else tensor.to(like.device)
    if not isinstance(value, np.ndarray):  # which was copied already
        tensor = tensor.clone()
    require_shape(name, tensor, shape)
    require_finite(name, tensor)
    return tensor


def as_double(name: str, value: object, shape: Sequence[int | None]) -> Tensor:
    """Finite numbers of this shape, in double precision."""
    return parameter(name, as_float_tensor(name, value, torch.float64), shape)


def as_log_ratios(name: str, value: object, wrong: str) -> Tensor:
    """Logarithms of ratios, float64 [any]; minus infinity is that of zero.

    `wrong` is what the message calls all others.
    """
    tensor = as_float_tensor(name, value, torch.float64)
    require_shape(name, tensor, [None])
    bad = int((tensor.isnan() | (tensor == torch.inf)).sum())
    if bad:
        raise InputError(
            f"{name}: expected finite numbers or minus infinity, got {bad} {wrong} of {len(tensor)}"
        )
    return tensor


def require_finite(name: str, tensor: Tensor) -> None:
    """Raise if `tensor` holds NaN or infinite values."""
    # Their sum would be neither; that of finite numbers may overflow, and then they are counted.
    if tensor.sum().isfinite():
        return
    bad = sum(int((~torch.isfinite(block)).sum()) for block in blocks(tensor))
    if bad:
        raise InputError(
            f"{name}: expected finite numbers, got {bad} NaN or infinite of {tensor.numel()}"
        )


def require_instance(name: str, value: object, kind: type, called: str) -> None:
    """Raise unless `value` is of this kind, which a message calls so, for instance `an RBM`."""
    if not isinstance(value, kind):
        raise InputError(f"{name}: expected {called}, got {type(value).__name__}")


def require_binary(name: str, tensor: Tensor) -> None:
    """Raise if `tensor` is empty or holds anything but 0 and 1."""
    if tensor.numel() == 0:
        raise InputError(
            f"{name}: expected at least one binary vector, got shape {list(tensor.shape)}"
        )
    count = 0
    example = 0.0
    for block in blocks(tensor):
        wrong = block[(block != 0) & (block != 1)]
        if count == 0 and len(wrong):
            example = wrong[0].item()
        count += len(wrong)
    if count:
        shown = f"{example:g}"
        shown = repr(example) if shown in ("0", "1") else shown
        raise InputError(
            f"{name}: expected only 0 and 1, got {count} other values of {tensor.numel()}, "
            f"for example {shown} "
            "(paperlib.datasets.binarize turns intensities into binary data)"
        )


def require_count(name: str, value: object, minimum: int = 1) -> int:
    """`value` as an int; raise unless it is a whole number of at least `minimum`."""
    if not is_whole(value) or value < minimum:
        raise InputError(f"{name}: expected a whole number of at least {minimum}, got {value!r}")
    return int(value)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether `value` is a whole number of Python or numpy, and not a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether `value` is a Python number, and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def require_fraction(name: str, value: object) -> float:
    """`value`, such as the level of an interval; raise unless it is a number between 0 and 1."""
    if not is_number(value) or not 0 < value < 1:
        raise InputError(f"{name}: expected a number between 0 and 1, got {value!r}")
    return value


def require_device(name: str, device: torch.device | str, present: bool = True) -> torch.device:
    """`device`; raise unless it is a CPU or a CUDA GPU, one that torch finds if it is `present`."""
    try:
        place = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"{name}: expected cpu or cuda, got {device!r}") from error
    if place.type not in ("cpu", "cuda"):
        raise InputError(f"{name}: expected cpu or cuda, got {str(place)!r}")
    # without an index it is the current GPU
    if present and place.type == "cuda" and (place.index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"{name}: expected a device that torch finds on this machine, got {str(place)!r} "
            f"and found {torch.cuda.device_count()} GPUs"
        )
    return place


def require_enumerable(num_hidden: int, most: int) -> None:
    """Raise if there are too many hidden units to enumerate their states."""
    if num_hidden > most:
        raise InputError(
            f"model: expected at most {most} hidden units to enumerate, got {num_hidden}"
        )
