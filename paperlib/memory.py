"""Large matrices in parts, so that no copy is larger than a small multiple of what is given; and memory that goes back to the system."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

from torch import Tensor

#: What is made at a time of rows that are few but wide.
PART_BYTES = 2**24
# The same of a matrix that is worked on element by element.
_SMALL_PART_BYTES = 2**23
# Smaller models leave no gaps that matter.
_MANY_NUMBERS = 2**21
# What `mallopt` calls the size from which on an array has a place of its own, and that size in
# bytes.
_M_MMAP_THRESHOLD = -3
_LARGE_ARRAY = 2**22


def parts(rows: Tensor, bytes_of_each: int) -> tuple[Tensor, ...]:
    """Consecutive parts of `rows` [N, n], for work that makes so many bytes for each: 16 MiB at a time.

    Examples
    --------
    >>> import torch
    >>> [len(part) for part in parts(torch.zeros(20, 3), 2**21)]
    [8, 8, 4]
    """
    return rows.split(max(1, PART_BYTES // max(1, bytes_of_each)))


def small_parts(matrix: Tensor) -> tuple[Tensor, ...]:
    """Consecutive rows of a matrix [n, m] of 8 MiB each in float64, for work on each element that needs such copies.

    Examples
    --------
    >>> import torch
    >>> [len(part) for part in small_parts(torch.zeros(3, 2**19))]
    [2, 1]
    """
    return matrix.split(max(1, _SMALL_PART_BYTES // (8 * max(1, matrix.shape[1]))))


def give_back_at_once(weights: Tensor) -> None:
    """From now on, return each array of 4 MiB or more to the system when it is no longer used, where weights are as many as these or more.

    The allocator of glibc keeps arrays of up to 32 MiB for later ones. A small result behind such a
    gap then keeps it for ever, and a large model leaves hundreds of megabytes of gaps. Does nothing
    for small models, whose arrays are smaller, and on other systems.

    Examples
    --------
    >>> import torch
    >>> give_back_at_once(torch.zeros(3, 2))
    """
    if weights.numel() >= _MANY_NUMBERS:
        _set_threshold()


@cache
def _set_threshold() -> None:
    """Do it, once in a process, where the C library can; what is free already is returned, too."""
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt") and hasattr(library, "malloc_trim"):
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_ARRAY)
        library.malloc_trim(0)
