"""Products of binary states with a fixed matrix: most of the work of AIS and RAISE, at half the price of a float32 product.

A binary vector is exact in eight bits. A matrix is not, but rounded to fixed-point numbers of 16 bits it is the sum of two matrices
of eight bits. Sums of integers are exact, and do not drift: where few units have changed since the last product of the same chains,
adding and subtracting their rows gives the same sums bit for bit, and sooner. Of the visible units of an RBM one in twenty may
change in a step, of the hidden ones one in three.

The products of eight-bit integers run four times as fast as float32 ones on processors with vector instructions for them (VNNI).
Others multiply the two matrices in float32, in which these sums are exact as well, and do so as seldom as they can; a matrix of few
columns they do not split, and sum up the 16-bit numbers themselves.

What is lost is the rounding of the matrix, by at most 2^-16 of its largest element. It is the same in both directions and for
the whole path, so that annealing walks, without any further error, towards a slightly rounded model.
`paperlib.estimators.ais` puts that right with exact factors at both ends of the path, and stays unbiased for the model itself.

On a GPU the two matrices are of eight significant bits each, in bfloat16, and are multiplied by tensor cores with float32 sums; what is
lost there is the rounding of each element by at most 2^-16 of its own size, put right in the same way.

float64 models use ordinary products, and nothing is rounded.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from paperlib.numerics import Beta

# The largest number whose upper part stays within eight bits when the lower one is between -128 and 127.
_LARGEST = 127 * 256 + 127
# Sums of so many terms of _LARGEST stay within 32 bits, and of so many of eight bits within the 24 of a float32 number.
_MOST_ROWS = 2**31 // (_LARGEST + 1) - 1
_FAST_INTEGERS = torch.cpu._is_vnni_supported()
# Adding single rows is slower than a full product, for each of them, by about this factor, most with instructions for whole tiles
# of a matrix (AMX).
_COST_OF_A_ROW = (20 if torch.cpu._is_amx_tile_supported() else 4) if _FAST_INTEGERS else 1
# With fewer columns the sums over all rows cost less than finding out which of them have changed.
_FEWEST_COLUMNS = 128

# For every product of a batch of chains the last states and their sums, int32 [chains, m].
Memory = dict["BinaryProduct", tuple[np.ndarray, np.ndarray]]


class BinaryProduct:
    """`states @ matrix` for binary states, prepared once for many products.

    Parameters
    ----------
    matrix : Tensor, shape [n, m]
        Its type is that of the products.
    largest : Tensor, scalar
        The largest absolute value of all elements that are rounded alike: those of a matrix and of its transpose have to be, so
        that the two conditionals of an RBM belong to one joint distribution.

    Attributes
    ----------
    matrix : Tensor, shape [n, m]
        What is really multiplied.
    rounded : bool
        Whether that is a rounded matrix: if it is float32.
    columns : ndarray, shape [m, n], optional
        int16: the columns of a matrix of few, in units of `scale`, where it is multiplied in integers.
    scale : float
        Of a matrix that is multiplied in integers.
    """

    def __init__(self, matrix: Tensor, largest: Tensor) -> None:
        self.matrix = matrix
        self.rounded = False
        self.columns = None
        self._halves = None
        if matrix.dtype != torch.float32 or matrix.numel() == 0:
            return
        if _multiplies_bfloat16(matrix.device):
            self._round_to_halves()
        # of the matrix and of its transpose alike: one of them rounded alone would be another model
        elif matrix.device.type == "cpu" and max(matrix.shape) <= _MOST_ROWS and largest.item() > 0:
            self._round_to_integers(largest.item() / _LARGEST)

    def _round_to_halves(self) -> None:
        upper = self.matrix.bfloat16()
        lower = (self.matrix - upper).bfloat16()
        self._halves = torch.cat([upper, lower], 1)
        # exact: together these have no more bits than the element itself had
        self.matrix = upper.float() + lower.float()
        self.rounded = True

    def _round_to_integers(self, scale: float) -> None:
        self.scale = scale
        self.rounded = True
        fixed = torch.round(self.matrix.double() / scale).to(torch.int32)
        self.matrix = (fixed.double() * scale).float()
        if self.matrix.shape[1] < _FEWEST_COLUMNS:
            self.columns = fixed.T.contiguous().to(torch.int16).numpy()
            if not _FAST_INTEGERS:
                return
        else:
            self._fixed = fixed.to(torch.int16).numpy()
        upper = (fixed + 128) >> 8
        lower = fixed - 256 * upper
        self._pieces = torch.cat([upper, lower], 1).to(
            torch.int8 if _FAST_INTEGERS else torch.float32
        )

    def __call__(
        self, states: Tensor, factor: Beta, offset: Tensor, memory: Memory | None = None
    ) -> Tensor:
        """`offset + factor * (states @ matrix)`: bool states [chains, n] and an offset [m] give [chains, m].

        `memory` holds what the last product with the same chains can spare this one, and is brought up to date.
        """
        if self._halves is not None or isinstance(factor, Tensor):
            product = self._product(states)
            if isinstance(factor, Tensor):
                return torch.addcmul(offset, product, factor.to(product.dtype))
            return torch.add(offset, product, alpha=factor)
        if not self.rounded:
            return torch.addmm(
                offset, states.view(torch.uint8).to(self.matrix.dtype), self.matrix, alpha=factor
            )
        from paperlib import fused

        bits = states.contiguous().numpy()
        sums = self._sums(bits, None if memory is None else memory.get(self))
        if memory is not None and self.columns is None:
            memory[self] = bits, sums
        # numpy's arrays here and in `_sums`: for small models the price of torch's is felt
        product = np.empty(sums.shape, np.float32)
        factor = np.float32(factor * self.scale)
        fused.scale_sums(sums, factor, offset.contiguous().numpy(), product)
        return torch.from_numpy(product)

    def _product(self, states: Tensor) -> Tensor:
        """`states @ matrix` in the matrix's type."""
        if self._halves is None:
            return states.view(torch.uint8).to(self.matrix.dtype) @ self.matrix
        upper, lower = _sum_bfloat16(states, self._halves).chunk(2, 1)
        return upper + lower

    def _sums(self, states: np.ndarray, last: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
        """`states @ matrix` in units of the scale, int32 [chains, m]; the `last` sums may be overwritten."""
        from paperlib import fused

        if last is not None:
            last_states, last_sums = last
            changed = states != last_states
            if np.count_nonzero(changed) * _COST_OF_A_ROW < states.size:
                fused.add_changed_rows(self._fixed, states, np.flatnonzero(changed), last_sums)
                return last_sums
        sums = np.empty((len(states), self.matrix.shape[1]), np.int32)
        if _FAST_INTEGERS:
            pieces = torch._int_mm(torch.from_numpy(states.view(np.int8)), self._pieces)
        elif self.columns is not None:
            fused.sum_selected(self.columns, states, sums)
            return sums
        else:
            pieces = torch.from_numpy(states.view(np.uint8)).float() @ self._pieces
        fused.join_pieces(pieces.numpy(), sums)
        return sums


def _multiplies_bfloat16(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_bf16_supported()


def _sum_bfloat16(states: Tensor, halves: Tensor) -> Tensor:
    """`states @ halves`, summed up in float32."""
    return torch.mm(states.to(torch.bfloat16), halves, out_dtype=torch.float32)
