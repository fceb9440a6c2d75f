"""What the fast kernels compute, in plain torch: the definition, and the fallback.

Every function here works on any device. `paperlib.kernels.cpu` has compiled versions, which are
compared with these once in each process (`paperlib.kernels.capability`), and by the tests.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

_LOW = 0xFFFFFFFF
_ROUNDS = 10


def philox(counter: Tensor, key_low: int, key_high: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Philox4x32-10 of the counters (counter, 0, 0, 0), [n]: four 32-bit integers each, as int64.

    The generator is that of Salmon, Moraes, Dror & Shaw (2011).
    """
    a = counter
    c = torch.zeros_like(counter)
    b = c
    d = c
    for _ in range(_ROUNDS):
        # A product of two 32-bit numbers fits into 64 bits; as a signed number its bits are the
        # same.
        product_a = a * 0xD2511F53
        product_c = c * 0xCD9E8D57
        a = ((product_c >> 32) & _LOW) ^ b ^ key_low
        b = product_c & _LOW
        c = ((product_a >> 32) & _LOW) ^ d ^ key_high
        d = product_a & _LOW
        key_low = (key_low + 0x9E3779B9) & _LOW
        key_high = (key_high + 0xBB67AE85) & _LOW
    return a, b, c, d


def _uniform_numbers(
    count: int, key_low: int, key_high: int, device: torch.device, first: int = 0
) -> Tensor:
    """Uniform numbers in [0, 1], float32 [count], one for each place.

    The four numbers of a counter go to four places a quarter of the whole apart. The places left
    over after the quarters take the numbers of one more counter. Counters run from `first`.
    """
    quarter = count // 4
    counter = torch.arange(first, first + quarter + 1, device=device)
    numbers = philox(counter, key_low, key_high)
    rest = [number[quarter:] for number in numbers]
    bits = torch.cat([*(number[:quarter] for number in numbers), *rest])[:count]
    # Rounded once: each half is exact in float32.
    return (bits >> 16).float() * 2.0**-16 + (bits & 0xFFFF).float() * 2.0**-32


def draw_bits(
    logits: Tensor, factor: float | Tensor, key_low: int, key_high: int, first: int = 0
) -> Tensor:
    """Independent draws, bool, with probabilities sigmoid(factor * logits) of being on.

    They have the shape of the float32 `logits`.
    """
    uniform = _uniform_numbers(logits.numel(), key_low, key_high, logits.device, first)
    return uniform.view(logits.shape) < torch.sigmoid(factor * logits)


def draw_below(probabilities: Tensor, key_low: int, key_high: int) -> Tensor:
    """Independent draws from {0, 1}, float32, with the given probabilities of 1; of their shape."""
    uniform = _uniform_numbers(probabilities.numel(), key_low, key_high, probabilities.device)
    return (uniform.view(probabilities.shape) < probabilities).float()


def softplus_increment(x: Tensor, lower: float | Tensor, step: float | Tensor) -> Tensor:
    """Sum over the last dimension of softplus((lower + step) x) - softplus(lower x), float64.

    `lower` and `step` are at least 0. Each term is

        step max(x, 0) + ln(1 + s(-lower abs(x)) (e^{-step abs(x)} - 1))

    with s the logistic function. Nothing cancels, so a float32 sum over thousands of annealing
    steps does not lose the digits in which neighbouring betas differ.

    Parameters
    ----------
    x : Tensor, shape [..., n]
        Inputs.
    lower, step : float or Tensor
        Tensors have the shape [..., 1] or no dimensions.
    """
    magnitude = x.abs()
    curved = torch.expm1(magnitude * -step)
    curved.mul_(torch.sigmoid(magnitude * -lower)).log1p_()
    # 2 max(x, 0) = x + |x|
    linear = magnitude.add_(x).sum(-1, dtype=torch.float64)
    half = 0.5 * (step.squeeze(-1) if isinstance(step, Tensor) and step.ndim else step)
    return linear.mul_(half).add_(curved.sum(-1, dtype=torch.float64))


def sum_where(states: Tensor, values: Tensor) -> Tensor:
    """For each row of bool `states` [chains, n], the sum of the `values` [n] that are on.

    The sums are float64 [chains]. float32 values are added up in float64, others with a product in
    their own type.
    """
    exact = values.double() if values.dtype == torch.float32 else values
    return (states.to(exact.dtype) @ exact).double()


def integer_sums(states: Tensor, matrix: Tensor) -> Tensor:
    """`states @ matrix`, int32 [chains, m], exact.

    `states` are bool [chains, n], and the matrix [n, m] has whole numbers.
    """
    return (states.double() @ matrix.double()).to(torch.int32)


def scale_sums(sums: Tensor, factor: Tensor, offset: Tensor) -> Tensor:
    """`offset + factor * sums` in float32, for int32 `sums` [chains, m].

    `factor` is [chains], and `offset` [m] or [chains, m].
    """
    return offset + factor[:, None] * sums.float()


def swap(ratios: Tensor, uniform: Tensor, parity: int, chain_at: Tensor) -> None:
    """Swap the chains of temperatures k and k + 1 in `chain_at` [R, N], for all k of this parity.

    A pair swaps if its number in `uniform`, float64 [R, pairs], is below exp of the sum of its two
    `ratios`, float64 [R, N].
    """
    end = ratios.shape[1] - (ratios.shape[1] - parity) % 2
    lower = slice(parity, end, 2)
    upper = slice(parity + 1, end, 2)
    accept = (ratios[:, lower] + ratios[:, upper]).exp_()
    # In place and without a branch, to add only a few small operations to each transition.
    below = chain_at[:, lower]
    above = chain_at[:, upper]
    moved = (above - below).mul_(uniform < accept)
    below.add_(moved)
    above.sub_(moved)


def matlab_uniform(
    registers: np.ndarray, counters: np.ndarray, out: np.ndarray, masks: np.ndarray
) -> None:
    """Marsaglia's subtract-with-borrow generator and a shift register, as in MATLAB 5.

    Fills `out` and `masks`, and advances the state.

    Parameters
    ----------
    registers : float64 [33]
        The 32 latest numbers, and the borrow.
    counters : int64 [2]
        The place of the oldest number, and the shift register.
    out : float64 [n]
        Numbers in [0, 1), before their significands meet the masks.
    masks : int64 [n]
        Integers of 52 bits.
    """
    place = int(counters[0])
    shift = int(counters[1])
    for n in range(len(out)):
        number = registers[(place + 20) % 32] - registers[(place + 5) % 32] - registers[32]
        registers[32] = 2.0**-53 if number < 0 else 0.0
        out[n] = registers[place] = number + (number < 0)
        place = (place + 1) % 32
        following = shift ^ (shift << 13) & 0xFFFFFFFF
        following ^= following >> 17
        following ^= (following << 5) & 0xFFFFFFFF
        masks[n] = ((following << 32) & (2**52 - 1)) ^ shift
        shift = following
    counters[0] = place
    counters[1] = shift
