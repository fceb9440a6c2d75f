"""The draws of every step on a GPU, in one pass over memory, compiled by triton.

Random numbers are Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011), as on a CPU
(`paperlib.kernels.cpu`): a function of a key, of the chain's place in its block and of the unit's
place in the chain. The key of every call comes from the caller's generator. Every chain thus has a
stream of its own, and what it draws does not depend on how many others walk beside it.

triton comes with torch for CUDA on Linux; `paperlib.kernels.draws` decides when this module is
used.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

# Random numbers come four at a time, so one program draws up to four times as many units.
_BLOCK = 128


@triton.jit
def _draw_kernel(logits, row_stride, columns, factor, key, out, BLOCK: tl.constexpr):  # noqa: N803
    """`out[i, j]` is True with probability sigmoid(factor * logits[i, j]).

    A program draws up to 4 BLOCK units j of a chain i.
    """
    chain = tl.program_id(0)
    quarter = (columns + 3) // 4
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    none = place * 0
    numbers = tl.philox(tl.load(key), place, none + chain, none, none)
    scale = tl.load(factor)
    # The four numbers of a block go to four places far apart, so that all stores are to consecutive
    # addresses.
    for k in tl.static_range(4):
        unit = place + k * quarter
        inside = (place < quarter) & (unit < columns)
        x = tl.load(logits + chain.to(tl.int64) * row_stride + unit, inside, 0.0)
        uniform = numbers[k].to(tl.float32) * 2.0**-32
        on = uniform < 1.0 / (1.0 + tl.exp(-scale * x))
        tl.store(out + chain.to(tl.int64) * columns + unit, on, inside)


def draw_bits(logits: Tensor, factor: Tensor, key: Tensor) -> Tensor:
    """Independent draws, bool, with the probabilities sigmoid(factor * logits) of being on.

    The logits are float32 [chains, n]. `factor` and `key` are scalars on their device, since a
    recorded step reads them anew each time.
    """
    chains, columns = logits.shape
    out = torch.empty(chains, columns, dtype=torch.bool, device=logits.device)
    if out.numel() == 0:
        return out
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    grid = (chains, triton.cdiv(triton.cdiv(columns, 4), _BLOCK))
    # triton launches on the current GPU, which need not be that of the tensors
    with torch.cuda.device_of(logits):
        # triton turns the number into a constant of the program
        sizes: Any = {"BLOCK": _BLOCK}
        _draw_kernel[grid](logits, logits.stride(0), columns, factor, key, out, **sizes)
    return out
