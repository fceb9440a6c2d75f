"""The uniform random numbers of MATLAB 5 to 7: `rand('state', j)`.

The first paper's authors binarised their images with them. The generator is Marsaglia's
subtract-with-borrow, whose significands meet the integers of a shift register (Moler 2004,
*Numerical Computing with MATLAB*, chapter 9).
"""

from __future__ import annotations

import numpy as np

from paperlib.kernels import reference
from paperlib.kernels.capability import compiled


class MatlabUniform:
    """A stream of uniform numbers in (0, 1), those of MATLAB after `rand('state', state)`.

    Parameters
    ----------
    state : int
        The seed, at least 0 and below 2^32.

    Examples
    --------
    >>> MatlabUniform(0).draw(5).round(5)
    array([0.95013, 0.23114, 0.60684, 0.48598, 0.8913 ])
    """

    def __init__(self, state: int) -> None:
        self._counters = np.array([0, state or 2**31], np.int64)
        # The lower half of a mask is the shift register's integer. Each of the first 32 numbers
        # consists of a bit of each of 53 of these integers.
        masks = np.empty(1 + 32 * 53, np.int64)
        registers = np.zeros(33)
        numbers = np.empty(len(masks))
        reference.matlab_uniform(registers, self._counters.copy(), numbers, masks)
        bits = (masks[1:] >> 19 & 1).reshape(32, 53)
        self._registers = np.append(bits @ 0.5 ** np.arange(1, 54), 0.0)

    def draw(self, count: int) -> np.ndarray:
        """The next numbers of the stream, float64 [count]."""
        numbers = np.empty(count)
        masks = np.empty(count, np.int64)
        fill = compiled("matlab_uniform") or reference.matlab_uniform
        fill(self._registers, self._counters, numbers, masks)
        return (numbers.view(np.int64) ^ masks).view(np.float64)
