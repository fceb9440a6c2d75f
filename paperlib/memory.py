"""Memory: large matrices are worked on in parts, and large arrays are returned to the system.

A part is so small that copies of it hardly count beside the matrix itself.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

import torch
from torch import Tensor

from paperlib.validation import blocks

#: How many bytes the work on one of `parts` may take.
PART_BYTES = 2**24
# How many numbers each of `small_parts` has, of 8 MiB in float64.
_SMALL_PART_NUMBERS = 2**20
# How many numbers of a matrix a product converts at a time, which stay in the processor's cache.
_NUMBERS_CONVERTED = 2**18
# Copies of smaller matrices, and the gaps that they leave, do not matter.
_MANY_NUMBERS = 2**20
# The number by which `mallopt` knows the size from which arrays are mapped separately.
_M_MMAP_THRESHOLD = -3
# That size, in bytes.
_LARGE_ARRAY = 2**22


def parts(rows: Tensor, bytes_of_each: int) -> tuple[Tensor, ...]:
    """Consecutive parts of `rows` [N, n], each of which needs 16 MiB of memory to be worked on.

    `bytes_of_each` says how many bytes the work needs for a row.

    Examples
    --------
    >>> import torch
    >>> [len(part) for part in parts(torch.zeros(20, 3), 2**21)]
    [8, 8, 4]
    """
    return rows.split(max(1, PART_BYTES // max(1, bytes_of_each)))


def small_parts(matrix: Tensor) -> tuple[Tensor, ...]:
    """Consecutive rows of a matrix [n, m] in parts of 8 MiB, for work that needs copies in float64.

    Examples
    --------
    >>> import torch
    >>> [len(part) for part in small_parts(torch.zeros(3, 2**19))]
    [2, 1]
    """
    return blocks(matrix, _SMALL_PART_NUMBERS)


def is_large(matrix: Tensor) -> bool:
    """Whether copies of a matrix matter.

    Examples
    --------
    >>> import torch
    >>> is_large(torch.zeros(3, 2))
    False
    """
    return matrix.numel() >= _MANY_NUMBERS


def product(states: Tensor, matrix: Tensor) -> Tensor:
    """`states @ matrix` in the type of the states, without a copy of a matrix of another type.

    `states` are [..., n] and `matrix` [n, m], of which a few rows are converted at a time, or a few
    columns if these are consecutive in memory.

    Examples
    --------
    >>> import torch
    >>> product(torch.ones(2).double(), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([4., 6.], dtype=torch.float64)
    """
    if states.dtype == matrix.dtype:
        return states @ matrix
    by_rows = matrix.is_contiguous()
    parts_of_matrix = blocks(matrix if by_rows else matrix.T, _NUMBERS_CONVERTED)
    room = torch.empty_like(parts_of_matrix[0], dtype=states.dtype)
    result = states.new_zeros(*states.shape[:-1], matrix.shape[1])
    # what belongs to each part: units of the states that it multiplies, or of the result
    slices = (states if by_rows else result).split(len(room), -1)
    for part, some_units in zip(parts_of_matrix, slices, strict=True):
        converted = room[: len(part)].copy_(part)
        if by_rows:
            result += some_units @ converted
        else:
            some_units.copy_(states @ converted.T)
    return result


def give_back_at_once(weights: Tensor) -> None:
    """For a large model: from now on, arrays of 4 MiB or more return to the system once unused.

    The allocator of glibc keeps arrays of up to 32 MiB for later ones. A small result behind such a
    gap then keeps it for ever, and a large model leaves hundreds of megabytes of gaps. Nothing
    happens on other systems, or if there are few weights.

    Examples
    --------
    >>> import torch
    >>> give_back_at_once(torch.zeros(3, 2))
    """
    if is_large(weights):
        _set_threshold()


@cache
def _set_threshold() -> None:
    """Set glibc's threshold, once in a process, and return what is free already."""
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt") and hasattr(library, "malloc_trim"):
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_ARRAY)
        library.malloc_trim(0)
