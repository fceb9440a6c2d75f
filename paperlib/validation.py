"""Checks of arguments, all with the same message: which argument, what was expected, what came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

# Numbers looked at together: 16 MiB in float32, whatever the size of the whole.
_BLOCK_NUMBERS = 2**22


def as_float_tensor(name: str, value: object, dtype: torch.dtype | None = None) -> Tensor:
    """A floating-point tensor from a tensor, an array or nested sequences of numbers.

    Integers and booleans become float64; float16 becomes float32, since no estimator works in half precision.
    """
    try:
        tensor = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name}: expected an array of numbers, got {type(value).__name__}"
        ) from error
    if tensor.is_complex():
        raise ValueError(f"{name}: expected real numbers, got {tensor.dtype}")
    if dtype is None:
        if not tensor.is_floating_point():
            dtype = torch.float64
        elif tensor.dtype in (torch.float16, torch.bfloat16):
            dtype = torch.float32
    return tensor if dtype is None else tensor.to(dtype)


def blocks(tensor: Tensor) -> tuple[Tensor, ...]:
    """Consecutive parts of `tensor` along its first dimension, of four million numbers each, for work that needs copies."""
    if tensor.ndim == 0 or tensor.numel() == 0:
        return (tensor,)
    return tensor.split(max(1, _BLOCK_NUMBERS * len(tensor) // tensor.numel()))


def require_shape(name: str, tensor: Tensor, shape: Sequence[int | None]) -> None:
    """Raise unless `tensor` has this shape; `None` stands for any length of at least one."""
    expected = "[" + ", ".join("any" if n is None else str(n) for n in shape) + "]"
    matches = tensor.ndim == len(shape) and all(
        have >= 1 if want is None else have == want
        for have, want in zip(tensor.shape, shape, strict=True)
    )
    if not matches:
        raise ValueError(f"{name}: expected shape {expected}, got {list(tensor.shape)}")


def parameter(
    name: str, value: object, shape: Sequence[int | None], like: Tensor | None = None
) -> Tensor:
    """A model's parameter: finite, of this shape, in the type and on the device of the tensor `like` if one is given."""
    tensor = as_float_tensor(name, value, None if like is None else like.dtype)
    tensor = tensor if like is None else tensor.to(like.device)
    require_shape(name, tensor, shape)
    require_finite(name, tensor)
    return tensor


def require_width(name: str, tensor: Tensor, width: int) -> None:
    """Raise unless the last dimension of `tensor` is `width`."""
    if tensor.ndim == 0 or tensor.shape[-1] != width:
        raise ValueError(
            f"{name}: expected {width} values in the last dimension, got shape {list(tensor.shape)}"
        )


def require_finite(name: str, tensor: Tensor) -> None:
    """Raise if `tensor` holds NaN or infinite values."""
    bad = sum(int((~torch.isfinite(block)).sum()) for block in blocks(tensor))
    if bad:
        raise ValueError(
            f"{name}: expected finite numbers, got {bad} NaN or infinite of {tensor.numel()}"
        )


def require_binary(name: str, tensor: Tensor) -> None:
    """Raise if `tensor` is empty or holds anything but 0 and 1."""
    if tensor.numel() == 0:
        raise ValueError(
            f"{name}: expected at least one binary vector, got shape {list(tensor.shape)}"
        )
    count, example = 0, 0.0
    for block in blocks(tensor):
        wrong = block[(block != 0) & (block != 1)]
        if count == 0 and len(wrong):
            example = wrong[0].item()
        count += len(wrong)
    if count:
        raise ValueError(
            f"{name}: expected only 0 and 1, got {count} other values of {tensor.numel()}, "
            f"for example {example:g} (paperlib.datasets.binarize turns intensities into binary data)"
        )


def require_count(name: str, value: object, minimum: int = 1) -> int:
    """`value` as an int; raise unless it is a whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise ValueError(f"{name}: expected a whole number of at least {minimum}, got {value!r}")
    return int(value)


def require_device(name: str, device: torch.device | str, present: bool = True) -> torch.device:
    """`device`; raise unless it is a processor or a CUDA GPU, and if `present` is set one that torch finds here."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"{name}: expected cpu or cuda, got {device!r}") from error
    if found.type not in ("cpu", "cuda"):
        raise ValueError(f"{name}: expected cpu or cuda, got {str(found)!r}")
    # without an index it is the current GPU
    if present and found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"{name}: expected a device that torch finds on this machine, got {str(found)!r} and found "
            f"{torch.cuda.device_count()} GPUs"
        )
    return found


def require_enumerable(num_hidden: int, most: int) -> None:
    """Raise unless the states of so many hidden units are few enough to be enumerated."""
    if num_hidden > most:
        raise ValueError(
            f"model: expected at most {most} hidden units to enumerate, got {num_hidden}"
        )
