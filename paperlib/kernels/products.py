"""Products of binary states with a fixed matrix, at half the price of a float32 product.

They are most of the work of AIS and RAISE. A binary vector is exact in eight bits. A matrix is
not, but once rounded to 16-bit fixed-point numbers it is the sum of two eight-bit matrices. Sums of
integers are exact and do not drift: where few units have changed since the last product of the same
chains, adding and subtracting their rows gives the same sums, bit for bit, in less time. In a step,
one in twenty of the visible units of an RBM may change, and one in three of the hidden ones.

On processors with vector instructions for them (VNNI), torch multiplies eight-bit integers four
times as fast as float32 numbers. Compiled functions call it through its C interface. Where few
units are on, or have changed, and on other processors, they add up the 16-bit rows of these units.
The sums are the same in every case.

The matrix is rounded, by at most 2^-16 of its largest element. The rounding is the same in both
directions and along the whole path, so annealing walks, without any further error, towards a
slightly rounded model. Exact factors at both ends of the path (`AnnealingPath.end_correction`)
correct for this: AIS stays unbiased for the model itself.

On a GPU the two matrices have eight significant bits each, in bfloat16, and are multiplied by
tensor cores with float32 sums. There each element is rounded by at most 2^-16 of its own size, and
the correction is the same.

float64 models use ordinary products, and nothing is rounded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.kernels import reference
from paperlib.kernels.arguments import ProductArrays
from paperlib.kernels.capability import (
    call_of_torch,
    compiled,
    multiplies_integers,
    multiplies_tiles,
)
from paperlib.kernels.draws import Beta, column, for_each_row
from paperlib.memory import small_parts
from paperlib.torch_settings import autocasts, plain_torch

# The largest number whose upper part stays within eight bits when the lower one is between -128 and
# 127.
_LARGEST = 127 * 256 + 127
# Sums of this many terms of _LARGEST stay within 32 bits.
_MOST_ROWS = 2**31 // (_LARGEST + 1) - 1
_FAST_INTEGERS = multiplies_integers()
# Costs of the ways to bring sums up to date, in the time that it takes to add up one weight. A call
# of torch prepares the matrix anew: this is its cost for each weight,
_PREPARED = 5
# and this that of the call itself.
_CALL = 12_500
# What it costs to begin with another row.
_ROW = 50
# What the product of a chain costs, as a share of all its rows; next to nothing with instructions
# for whole tiles of a matrix (AMX).
_SHARE_OF_A_CHAIN = 0.0 if multiplies_tiles() else 0.125
# With fewer columns, the sums over all rows cost less than finding out which rows have changed.
_FEWEST_COLUMNS = 128
# With fewer rows, to add those of all units that are on costs less than to call torch.
_FEWEST_ROWS = 32


class Memory(dict["BinaryProduct", ProductArrays]):
    """What every product with a batch of chains remembers between its calls.

    Who uses something takes it out and puts it back, so that a second thread which walks on from
    the same state finds nothing, and begins anew. So does a copy.
    """

    def __reduce__(self) -> tuple[type[Memory], tuple[()]]:
        # The arrays are known to torch by their addresses, which a copy would not have.
        return Memory, ()


class BinaryProduct(ABC):
    """`states @ matrix` for binary states, prepared once for many products.

    `binary_product` chooses the kind. `rounded` says whether the matrix that is really multiplied
    differs from the given one by rounding.
    """

    rounded = True

    def __init__(self, rows: int, columns: int) -> None:
        self._rows = rows
        self._columns = columns

    @property
    @abstractmethod
    def matrix(self) -> Tensor:
        """The matrix [n, m] that is really multiplied."""

    def __call__(
        self, states: Tensor, factor: Beta, offset: Tensor, memory: Memory | None = None
    ) -> Tensor:
        """`offset + factor * (states @ matrix)` for bool `states` [chains, n].

        `factor` is a number or one for each chain, and `offset` is [m] or [chains, m]. `memory` has
        what is remembered of the last product with the same chains. It saves work, is updated, and
        does not change the result.
        """
        if states.ndim != 2 or states.shape[1] != self._rows or states.dtype is not torch.bool:
            raise InputError(
                f"states: expected bool [chains, {self._rows}], "
                f"got {states.dtype} {list(states.shape)}"
            )
        one_row = offset.ndim == 1
        if offset.shape[-1] != self._columns or not (one_row or offset.shape[0] == states.shape[0]):
            raise InputError(
                f"offset: expected shape [{self._columns}] or [{len(states)}, {self._columns}], "
                f"got {list(offset.shape)}"
            )
        if autocasts():  # asked first, since a context takes much of a small product's time
            with plain_torch():
                return self._scaled(states, factor, offset, memory)
        return self._scaled(states, factor, offset, memory)

    @abstractmethod
    def _scaled(
        self, states: Tensor, factor: Beta, offset: Tensor, memory: Memory | None
    ) -> Tensor:
        """What a call returns, for arguments whose shapes fit."""


class _PlainProduct(BinaryProduct):
    """An ordinary product in the matrix's own type."""

    rounded = False

    def __init__(self, matrix: Tensor) -> None:
        super().__init__(*matrix.shape)
        self._matrix = matrix

    @property
    def matrix(self) -> Tensor:
        """The matrix as it was given."""
        return self._matrix

    def _scaled(
        self, states: Tensor, factor: Beta, offset: Tensor, memory: Memory | None
    ) -> Tensor:
        numbers = states.view(torch.uint8).to(self._matrix.dtype)
        if isinstance(factor, Tensor):
            return torch.addcmul(offset, numbers @ self._matrix, column(factor).to(numbers.dtype))
        return torch.addmm(offset, numbers, self._matrix, alpha=factor)


class IntegerProduct(BinaryProduct):
    """A product with 16-bit integers, whose sums are exact, for float32 on a CPU.

    `rows` [n, m] are the integers, one unit of which stands for `scale`.
    """

    def __init__(self, matrix: Tensor, scale: float) -> None:
        super().__init__(*matrix.shape)
        self.scale = scale
        self.rows = np.empty(matrix.shape, np.int16)
        # The upper and the lower eight bits, by columns, as torch's product of integers reads them.
        pieces = np.empty((2, *matrix.shape[::-1]), np.int8)
        start = 0
        for block in small_parts(matrix):
            rows = slice(start, start + len(block))
            fixed = torch.round(block.double() / scale).to(torch.int32).numpy()
            upper = (fixed + 128) >> 8
            self.rows[rows] = fixed
            pieces[0, :, rows] = upper.T
            pieces[1, :, rows] = (fixed - 256 * upper).T
            start = rows.stop
        self.pieces = pieces.reshape(-1, self._rows).T
        if self._rows == 1:
            # As a row: torch misreads a single one that is said to lie by columns.
            self.pieces = pieces.reshape(1, -1)
        # With few columns, all sums are always computed anew.
        self.narrow = matrix.shape[1] < _FEWEST_COLUMNS
        # Whether torch multiplies eight-bit integers with instructions for them, in many threads.
        self.fast_integers = _FAST_INTEGERS

    @property
    def matrix(self) -> Tensor:
        """What the integers stand for, made anew at each call."""
        matrix = torch.empty(self._rows, self._columns, dtype=torch.float32, device="cpu")
        rows = torch.from_numpy(self.rows)
        for integers, part in zip(small_parts(rows), small_parts(matrix), strict=True):
            part.copy_(integers.double() * self.scale)
        return matrix

    def _scaled(
        self, states: Tensor, factor: Beta, offset: Tensor, memory: Memory | None
    ) -> Tensor:
        chains = len(states)
        factors = for_each_row(factor, chains, self.scale)
        multiply = compiled("multiply")
        scale_sums = compiled("scale_sums")
        if multiply is None or scale_sums is None:
            sums = reference.integer_sums(states, torch.from_numpy(self.rows))
            return reference.scale_sums(sums, torch.from_numpy(factors), offset)
        memory = Memory() if memory is None else memory
        arrays = self.take_arrays(chains, memory)
        # numpy arrays, since the overhead of torch tensors is noticeable for small models
        multiply(arrays, states.contiguous().numpy())
        product = np.empty(arrays.sums.shape, np.float32)
        offsets = offset.contiguous().numpy().reshape(-1, self._columns)
        scale_sums(arrays.sums, factors, offsets, product)
        memory[self] = arrays
        return torch.from_numpy(product)

    def take_arrays(self, chains: int, memory: Memory) -> ProductArrays:
        """What the memory has of products with so many chains, taken out of it, or new arrays."""
        remembered = memory.pop(self, None)
        if remembered is not None and len(remembered.last_states) == chains:
            return remembered
        # without units that are on, all sums are zero
        states = np.zeros((chains, self._rows), bool)
        sums = np.zeros((chains, self._columns), np.int32)
        most_changed = self._most_changed(chains)
        pieces = sums[:0]
        call = (0, 0, 0, 0)
        if 0 <= most_changed < states.size:
            pieces = np.zeros((chains, 2 * self._columns), np.int32)
            call = call_of_torch(pieces, states.view(np.int8), self.pieces)
        return ProductArrays(self.rows, states, sums, pieces, call, most_changed)

    def _most_changed(self, chains: int) -> int:
        """`ProductArrays.most_changed` for so many chains."""
        units = chains * self._rows
        if not self.fast_integers:
            return -1 if self.narrow else units
        worth = _PREPARED * (self.rows.size + _CALL) // (self._columns + _ROW)
        if self._rows < _FEWEST_ROWS or units <= 2 * worth:  # half of them may be on
            return -1
        return 0 if self.narrow else worth + int(_SHARE_OF_A_CHAIN * units)


class _HalvesProduct(BinaryProduct):
    """Two matrices of eight significant bits, multiplied by tensor cores."""

    def __init__(self, matrix: Tensor) -> None:
        upper = matrix.bfloat16()
        lower = (matrix - upper).bfloat16()
        super().__init__(*matrix.shape)
        self._halves = torch.cat([upper, lower], 1)

    @property
    def matrix(self) -> Tensor:
        """The sum of the halves, made anew at each call."""
        upper, lower = self._halves.chunk(2, 1)
        # exact: together these have no more bits than the element itself had
        return upper.float() + lower.float()

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

    `largest` is the largest absolute value of all elements that are rounded alike. A matrix and its
    transpose have to be rounded alike, so that the two conditionals of an RBM belong to one joint
    distribution.
    """
    if matrix.dtype != torch.float32 or matrix.numel() == 0:
        return _PlainProduct(matrix.contiguous())
    if _multiplies_bfloat16(matrix.device):
        return _HalvesProduct(matrix.contiguous())
    # for the matrix and its transpose alike, since rounding only one of them would make another
    # model
    if matrix.is_cpu and max(matrix.shape) <= _MOST_ROWS and largest.item() > 0:
        return IntegerProduct(matrix, largest.item() / _LARGEST)
    return _PlainProduct(matrix.contiguous())


def largest_size(tensor: Tensor) -> Tensor:
    """The largest absolute value of all elements, without a copy of them.

    Examples
    --------
    >>> largest_size(torch.tensor([[0.5, -2.0], [1.0, 0.0]]))
    tensor(2.)
    """
    low, high = torch.aminmax(tensor)
    return torch.maximum(high, -low)


def rounding_errors(weights: Tensor) -> Tensor:
    """What products in float32 add to each of these weights [D, M] by rounding them, float64.

    Examples
    --------
    >>> errors = rounding_errors(torch.tensor([[0.0003, 1.0]]))
    >>> bool(0 < errors.abs().max() < 2.0**-16)
    True
    """
    single = weights.float()
    product = binary_product(single, largest_size(single))
    # The matrix is float32, so that its copy in float64 belongs to nobody else.
    return product.matrix.double().sub_(weights)


def _multiplies_bfloat16(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_bf16_supported()


def _sum_bfloat16(states: Tensor, halves: Tensor) -> Tensor:
    """`states @ halves`, summed up in float32."""
    return torch.mm(states.to(torch.bfloat16), halves, out_dtype=torch.float32)
