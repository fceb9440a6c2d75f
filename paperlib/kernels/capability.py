"""Which kernels can be trusted here: once a process, a short walk is compared with the reference.

A mismatch, or a compiler that is missing or fails, leads to one warning, and plain torch takes the
place of the compiled functions. Results stay the same except for the rounding of float32 sums; they
only take longer. `PAPERLIB_KERNELS=reference` selects plain torch from the start.
"""

from __future__ import annotations

import ctypes
import os
import warnings
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.torch_settings import plain_torch

VARIABLE = "PAPERLIB_KERNELS"
FAST = "fast"
REFERENCE = "reference"
# Which of the two walks of the comparison this thread is taking, if any.
_compared: ContextVar[str | None] = ContextVar("compared", default=None)
# How far sums in float32 may differ between the two, relatively and absolutely.
_ROUNDING = 1e-5


def chosen() -> str:
    """What the variable `PAPERLIB_KERNELS` selects: `fast`, the default, or `reference`."""
    value = os.environ.get(VARIABLE) or FAST
    if value not in (FAST, REFERENCE):
        raise InputError(f"{VARIABLE}: expected {FAST} or {REFERENCE}, got {value!r}")
    return value


def compiled(name: str) -> Callable[..., Any] | None:
    """The compiled function of this name, or None where plain torch takes its place."""
    walk = _compared.get()
    fast = agrees() if walk is None else walk == FAST
    return getattr(_module(), name) if fast else None


@cache
def _module() -> ModuleType:
    from paperlib.kernels import cpu

    return cpu


@cache
def _compile_anew() -> None:
    """Replace what numba has stored, once; half of a file would fail in every later run, too."""
    for function in vars(_module()).values():
        if hasattr(function, "recompile"):
            function.recompile()


@cache
@plain_torch(gradients=False)
def agrees() -> bool:
    """Whether the compiled functions agree with the reference here, and so may be used."""
    if chosen() == REFERENCE:
        return False
    expected = _walk(REFERENCE)
    reason = ""
    # first with what numba has stored, then with everything compiled anew
    for prepare in (_module, _compile_anew):
        try:
            prepare()
            pairs = zip(_walk(FAST), expected, strict=True)
            if all(torch.allclose(*pair, rtol=_ROUNDING, atol=_ROUNDING) for pair in pairs):
                return True
            reason = "their results differ from those of plain torch"
        except Exception as error:  # a compiler may raise any exception
            reason = f"{type(error).__name__}: {error}"
    warnings.warn(
        f"paperlib.kernels: the compiled functions are not used on this machine ({reason}); "
        "plain torch takes their place and is slower",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


def _walk(kernels: str) -> list[Tensor]:
    """The results of a short walk with these kernels."""
    from paperlib.kernels import comparison

    token = _compared.set(kernels)
    try:
        return comparison.short_walk()
    finally:
        _compared.reset(token)


@cache
def multiplies_integers() -> bool:
    """Whether products of eight-bit integers are right here, and fast by VNNI instructions."""
    if chosen() == REFERENCE or not _torch_says("_is_vnni_supported"):
        return False
    # so many rows that their sums need more than 16 bits, in some chains with all of them on
    states = (np.arange(40 * 700) % 3 == 0).astype(np.int8).reshape(40, 700)
    states[:3] = 1
    matrix = (np.arange(700 * 70) * 37 % 256 - 128).astype(np.int8).reshape(70, 700).T
    # Without these instructions two terms are added in 16 bits, too few for extreme neighbours.
    matrix[:, :10] = -128
    matrix[:, 10:20] = 127
    sums = np.zeros((40, 70), np.int32)
    function, *tensors = call_of_torch(sums, states, matrix)
    if function == 0:
        return False
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, *3 * [ctypes.c_void_p])
    failed = kind(function)(*tensors) != 0
    return not failed and bool((sums == states.astype(int) @ matrix).all())


def call_of_torch(
    out: np.ndarray, states: np.ndarray, matrix: np.ndarray
) -> tuple[int, int, int, int]:
    """How compiled functions compute int32 `out = states @ matrix` for int8 factors.

    These are the addresses of a function of torch's C interface, which torch keeps the same for
    models that it has compiled, and of three tensors with the memory of the arrays; zeros where
    there is no such function. They hold for as long as `out` is there.
    """
    try:
        library = _library(torch._C.__file__)
        function = ctypes.cast(library.aoti_torch_cpu__int_mm_out, ctypes.c_void_p)
        tensors = [_tensor(library, array) for array in (out, states, matrix)]
    except (AttributeError, OSError):
        return 0, 0, 0, 0

    def release(*_: np.ndarray) -> None:
        for tensor in tensors:
            library.aoti_torch_delete_tensor_object(tensor)

    # `release` takes the factors, so that they are there as long as `out` is
    weakref.finalize(out, release, states, matrix).atexit = False
    addresses = [pointer.value or 0 for pointer in (function, *tensors)]
    return addresses[0], addresses[1], addresses[2], addresses[3]


# opened once, since each block of chains needs it
_library = cache(ctypes.CDLL)


def _tensor(library: ctypes.CDLL, matrix: np.ndarray) -> ctypes.c_void_p:
    """A tensor with the memory of a matrix."""
    tensor = ctypes.c_void_p()
    pair = ctypes.c_int64 * 2
    strides = pair(*(stride // matrix.itemsize for stride in matrix.strides))
    dtype = getattr(library, f"aoti_torch_dtype_{matrix.dtype}")()
    failed = library.aoti_torch_create_tensor_from_blob(
        ctypes.c_void_p(matrix.ctypes.data),
        ctypes.c_int64(2),  # dimensions
        pair(*matrix.shape),
        strides,
        ctypes.c_int64(0),  # where the first number is
        dtype,
        library.aoti_torch_device_type_cpu(),
        0,  # the device's number
        ctypes.byref(tensor),
    )
    if failed:
        raise OSError("torch has made no tensor of a matrix")
    return tensor


def multiplies_tiles() -> bool:
    """Whether the processor has instructions for whole tiles of a matrix (AMX)."""
    return _torch_says("_is_amx_tile_supported")


def _torch_says(name: str) -> bool:
    """What a function of torch says about the processor; False if there is no such function."""
    return bool(getattr(torch.cpu, name, lambda: False)())
