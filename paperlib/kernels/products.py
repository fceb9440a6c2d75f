"""Products of binary states with a fixed matrix: most of the work of AIS and RAISE, at half the price of a float32 product.

A binary vector is exact in eight bits. A matrix is not, but once rounded to 16-bit fixed-point numbers it is the sum of two
eight-bit matrices. Sums of integers are exact and do not drift: where few units have changed since the last product of the same
chains, adding and subtracting their rows gives the same sums, bit for bit, in less time. In a step, one in twenty of the visible
units of an RBM may change, and one in three of the hidden ones.

On processors with vector instructions for them (VNNI), products of eight-bit integers run four times as fast as float32 ones. Other
processors multiply the two matrices in float32, in which these sums are exact as well, and do so as rarely as possible. They do not
split a matrix with few columns, but sum up its 16-bit numbers directly. The sums are the same in every case.

The matrix is rounded, by at most 2^-16 of its largest element. The rounding is the same in both directions and along the whole path,
so annealing walks, without any further error, towards a slightly rounded model. Exact factors at both ends of the path
(`AnnealingPath.end_correction`) correct for this: AIS stays unbiased for the model itself.

On a GPU the two matrices have eight significant bits each, in bfloat16, and are multiplied by tensor cores with float32 sums. There
each element is rounded by at most 2^-16 of its own size, and the correction is the same.

float64 models use ordinary products, and nothing is rounded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.kernels import reference
from paperlib.kernels.capability import (
    compiled,
    multiplies_integers,
    multiplies_packed,
    multiplies_tiles,
    packed,
    unpacked,
)
from paperlib.kernels.draws import Beta, column, for_each_row
from paperlib.surroundings import autocasts, undisturbed

# The largest number whose upper part stays within eight bits when the lower one is between -128 and 127.
_LARGEST = 127 * 256 + 127
# Sums of this many terms of _LARGEST stay within 32 bits, and sums of this many eight-bit terms within the 24 of a float32 number.
_MOST_ROWS = 2**31 // (_LARGEST + 1) - 1
_FAST_INTEGERS = multiplies_integers()
# Adding single rows is slower per row than a full product by about this factor, which is largest with instructions for whole tiles
# of a matrix (AMX).
_COST_OF_A_ROW = (20 if multiplies_tiles() else 4) if _FAST_INTEGERS else 1
# To prepare the matrix for a full product of integers takes as long as the products of about so many chains. A large matrix is prepared
# once, where that is possible; the product of a smaller one takes longer that way.
_CHAINS_OF_A_CALL = 60
_FEWEST_PACKED = 150_000
# With fewer columns, the sums over all rows cost less than finding out which rows have changed.
_FEWEST_COLUMNS = 128
# With fewer weights times chains, to call torch takes longer than the sums.
_FEWEST_TERMS = 130_000

# For every product of a batch of chains, the last states and their sums, int32 [chains, m]. Nothing else refers to them or changes
# them.
Memory = dict["BinaryProduct", tuple[np.ndarray, np.ndarray]]


class BinaryProduct(ABC):
    """`states @ matrix` for binary states, prepared once for many products; `binary_product` chooses the kind.

    `matrix` [n, m] is the matrix that is really multiplied, and `rounded` says whether it differs from the given one by rounding.
    """

    rounded = True

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix
        self._rows, self._columns = matrix.shape

    def __call__(
        self, states: Tensor, factor: Beta, offset: Tensor, memory: Memory | None = None
    ) -> Tensor:
        """`offset + factor * (states @ matrix)` for bool `states` [chains, n], a number or one for each chain, and `offset` [m] or [chains, m].

        `memory` has what is remembered of the last product with the same chains. It saves work, is updated, and does not change the result.
        """
        if states.ndim != 2 or states.shape[1] != self._rows or states.dtype is not torch.bool:
            raise InputError(
                f"states: expected bool [chains, {self._rows}], got {states.dtype} {list(states.shape)}"
            )
        one_row = offset.ndim == 1
        if offset.shape[-1] != self._columns or not (one_row or offset.shape[0] == states.shape[0]):
            raise InputError(
                f"offset: expected shape [{self._columns}] or [{len(states)}, {self._columns}], got {list(offset.shape)}"
            )
        if autocasts():
            return undisturbed(self._scaled)(states, factor, offset, memory)
        return self._scaled(states, factor, offset, memory)

    @abstractmethod
    def _scaled(
        self, states: Tensor, factor: Beta, offset: Tensor, memory: Memory | None
    ) -> Tensor:
        """The same, for arguments whose shapes fit."""


class _PlainProduct(BinaryProduct):
    """An ordinary product in the matrix's own type."""

    rounded = False

    def _scaled(
        self, states: Tensor, factor: Beta, offset: Tensor, memory: Memory | None
    ) -> Tensor:
        numbers = states.view(torch.uint8).to(self.matrix.dtype)
        if isinstance(factor, Tensor):
            return torch.addcmul(offset, numbers @ self.matrix, column(factor).to(numbers.dtype))
        return torch.addmm(offset, numbers, self.matrix, alpha=factor)


class IntegerProduct(BinaryProduct):
    """Exact sums of 16-bit integers, `rows` [n, m], for float32 on a CPU; one unit of the integers stands for `scale`."""

    def __init__(self, matrix: Tensor, scale: float) -> None:
        fixed = torch.round(matrix.double() / scale).to(torch.int32)
        super().__init__((fixed.double() * scale).float())
        self.scale = scale
        self.rows = fixed.to(torch.int16).numpy()
        # With few columns, all sums are always computed anew.
        self.narrow = matrix.shape[1] < _FEWEST_COLUMNS
        # Whether torch multiplies eight-bit integers with special instructions for them, in as many threads as it has.
        self.fast_integers = _FAST_INTEGERS
        upper = (fixed + 128) >> 8
        pieces = torch.cat([upper, fixed - 256 * upper], 1)
        self._chains_of_a_call = 0
        if not self.fast_integers:
            numbers = pieces.float()
            self._multiply = lambda states: states.float() @ numbers
        elif matrix.numel() >= _FEWEST_PACKED and multiplies_packed():
            self._multiply = packed(pieces.to(torch.int8))
        else:
            self._multiply = unpacked(pieces.to(torch.int8))
            self._chains_of_a_call = _CHAINS_OF_A_CALL

    def _scaled(
        self, states: Tensor, factor: Beta, offset: Tensor, memory: Memory | None
    ) -> Tensor:
        sums = self.sums(states.contiguous().numpy(), memory)
        factors, scale_sums = for_each_row(factor, len(sums), self.scale), compiled("scale_sums")
        if scale_sums is None:
            return reference.scale_sums(torch.from_numpy(sums), torch.from_numpy(factors), offset)
        # numpy arrays here and in `sums`, since the overhead of torch tensors is noticeable for small models
        product = np.empty(sums.shape, np.float32)
        scale_sums(sums, factors, offset.contiguous().numpy().reshape(-1, self._columns), product)
        return torch.from_numpy(product)

    def sums(self, states: np.ndarray, memory: Memory | None) -> np.ndarray:
        """`states @ matrix` in units of the scale, int32 [chains, m]; must not be changed."""
        if memory is None or self.narrow:
            return self._all_sums(states)
        remembered = memory.get(self)
        if remembered is None or remembered[0].shape != states.shape:
            memory[self] = states.copy(), self._all_sums(states)
            return memory[self][1]
        last_states, sums = remembered
        changed = states != last_states
        enough = (len(states) + self._chains_of_a_call) * self._rows
        few = np.count_nonzero(changed) * _COST_OF_A_ROW < enough
        add_changed_rows = compiled("add_changed_rows") if few else None
        if add_changed_rows is not None:
            add_changed_rows(self.rows, states, np.flatnonzero(changed), last_states, sums)
            return sums
        # Nothing is remembered while it is being changed, so that a call that is interrupted leaves nothing wrong behind.
        del memory[self]
        sums = self._all_sums(states, sums)
        # A copy, since later edits of the given states must not change what is remembered.
        np.copyto(last_states, states)
        memory[self] = last_states, sums
        return sums

    def _all_sums(self, states: np.ndarray, sums: np.ndarray | None = None) -> np.ndarray:
        """All sums anew, in the memory of the given ones if there are any."""
        few = states.size * self._columns <= _FEWEST_TERMS
        few |= self.narrow and not self.fast_integers
        add_up = compiled("sum_rows" if few else "join_pieces")
        if add_up is None:
            given = torch.from_numpy(states), torch.from_numpy(self.rows)
            return reference.integer_sums(*given).numpy()
        if sums is None:
            sums = np.empty((len(states), self._columns), np.int32)
        if few:
            add_up(self.rows, states, sums)
            return sums
        pieces = self._multiply(torch.from_numpy(states.view(np.uint8)))
        add_up(pieces.numpy(), sums)
        return sums


class _HalvesProduct(BinaryProduct):
    """Two matrices of eight significant bits, multiplied by tensor cores."""

    def __init__(self, matrix: Tensor) -> None:
        upper = matrix.bfloat16()
        lower = (matrix - upper).bfloat16()
        # exact: together these have no more bits than the element itself had
        super().__init__(upper.float() + lower.float())
        self._halves = torch.cat([upper, lower], 1)

    def _scaled(
        self, states: Tensor, factor: Beta, offset: Tensor, memory: Memory | None
    ) -> Tensor:
        upper, lower = _sum_bfloat16(states, self._halves).chunk(2, 1)
        product = upper + lower
        if isinstance(factor, Tensor):
            return torch.addcmul(offset, product, column(factor).to(product.dtype))
        return torch.add(offset, product, alpha=factor)


def binary_product(matrix: Tensor, largest: Tensor) -> BinaryProduct:
    """The fastest product with a matrix [n, m] for its type and device.

    `largest` is the largest absolute value of all elements that are rounded alike. A matrix and its transpose have to be rounded alike, so
    that the two conditionals of an RBM belong to one joint distribution.
    """
    if matrix.dtype != torch.float32 or matrix.numel() == 0:
        return _PlainProduct(matrix)
    if _multiplies_bfloat16(matrix.device):
        return _HalvesProduct(matrix)
    # for the matrix and its transpose alike, since rounding only one of them would make another model
    if matrix.is_cpu and max(matrix.shape) <= _MOST_ROWS and largest.item() > 0:
        return IntegerProduct(matrix, largest.item() / _LARGEST)
    return _PlainProduct(matrix)


def _multiplies_bfloat16(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_bf16_supported()


def _sum_bfloat16(states: Tensor, halves: Tensor) -> Tensor:
    """`states @ halves`, summed up in float32."""
    return torch.mm(states.to(torch.bfloat16), halves, out_dtype=torch.float32)
