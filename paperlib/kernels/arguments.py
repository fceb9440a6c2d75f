"""What the compiled functions for whole steps take: arrays with names.

`paperlib.kernels.products`, `sampler` and `tempering` make these, and `paperlib.kernels.cpu` reads
them and writes into their arrays. Nothing here needs numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class ProductArrays(NamedTuple):
    """A product of chains' binary states with a matrix of 16-bit integers, and its last result."""

    rows: np.ndarray  # the matrix, int16 [n, m]
    last_states: np.ndarray  # bool [chains, n]
    sums: np.ndarray  # the product of the last states, int32 [chains, m]
    pieces: np.ndarray  # what torch makes of the last states, int32 [chains, 2 m]
    call: tuple[int, int, int, int]  # the addresses of torch's function and of three tensors
    # Up to so many changed units, rows are added to the last sums; if it is negative, the rows of
    # all units that are on always are.
    most_changed: int


class ModelArrays(NamedTuple):
    """An RBM at all temperatures."""

    to_hidden: ProductArrays  # with the weights [D, M]
    to_visible: ProductArrays  # with their transpose
    scale: float  # what one unit of the integers stands for
    hidden_bias: np.ndarray  # [M]
    visible_biases: np.ndarray  # at each temperature, [N, D]
    bias_difference: np.ndarray  # visible biases at beta = 1 minus those at beta = 0, [D]


class PlaceOfChains(NamedTuple):
    """Where chains stand among all that walk together, by which they draw their units.

    A part is either a range of all chains, or as many from the same places of each quarter of them.
    """

    start: int  # of a range, the place of its first chain
    total: int  # how many chains there are, or, for parts of quarters, how many the part has
    first: int  # of parts of quarters, the place of the first chain in the first quarter


class LadderArrays(NamedTuple):
    """Which chain is at which temperature, for all chains or a part of them."""

    betas: np.ndarray  # [N]
    chain_at: np.ndarray  # the chain at each temperature of each replica, [R, N]
    place: PlaceOfChains


class ChainArrays(NamedTuple):
    """The state of chains."""

    v: np.ndarray  # visible units, bool [chains, D]
    h: np.ndarray  # hidden units that they were drawn from, bool [chains, M]
    hidden_input: np.ndarray  # their inputs to the hidden units, float32 [chains, M]
    bias_sums: np.ndarray  # the bias difference summed over the units that are on, [chains]
