"""Draws of binary units and sums over them, in the fastest way for a tensor's type and device.

float32 on a CPU: compiled functions, with random numbers that are a function of a key and of a
unit's place. float32 on a GPU: one kernel with a stream for every chain. Everything else: torch's
own operations and random numbers.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import overload

import numpy as np
import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.kernels import reference
from paperlib.kernels.arguments import PlaceOfChains
from paperlib.kernels.capability import compiled

_HAS_TRITON = find_spec("triton") is not None

# An inverse temperature: a number, or a tensor with one for each chain. In a walk that a GPU
# replays it is a zero-dimensional tensor, whose value must not be read.
Beta = float | Tensor


@overload
def column(beta: float) -> float: ...
@overload
def column(beta: Tensor) -> Tensor: ...
def column(beta: Beta) -> Beta:
    """`beta` as a factor of a tensor [chains, n]: one for each chain becomes [chains, 1]."""
    return beta[:, None] if isinstance(beta, Tensor) and beta.ndim else beta


def draw_bits(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """Independent draws with these probabilities of being on, bool.

    The random numbers are torch's own. Comparing uniform numbers is five times cheaper on a CPU
    than `torch.bernoulli`, and its results do not depend on the number of threads.

    Examples
    --------
    >>> import torch
    >>> draw_bits(torch.tensor([0.0, 1.0]), torch.Generator().manual_seed(0))
    tensor([False,  True])
    """
    uniform = torch.rand(
        probabilities.shape,
        dtype=probabilities.dtype,
        device=probabilities.device,
        generator=generator,
    )
    return uniform < probabilities


def bernoulli(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """Independent draws from {0, 1} with the given probabilities, in their type; see `draw_bits`.

    Examples
    --------
    >>> import torch
    >>> bernoulli(torch.tensor([0.0, 1.0]), torch.Generator().manual_seed(0))
    tensor([0., 1.])
    """
    return draw_bits(probabilities, generator).to(probabilities.dtype)


def draw_units(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """Like `bernoulli`, with the fastest random numbers, for learning.

    It draws as many units as it has weights to change. For float32 on a CPU the numbers are not
    torch's own.
    """
    if not _on_cpu_in_float32(probabilities):
        return bernoulli(probabilities, generator)
    low, high = draw_keys(generator, 1)
    probabilities = probabilities.detach().contiguous()
    draw = compiled("draw_below")
    if draw is None:
        return reference.draw_below(probabilities, int(low), int(high))
    units = np.empty(probabilities.shape, np.float32)
    draw(probabilities.numpy().reshape(-1), low, high, units.reshape(-1))
    return torch.from_numpy(units)


def draw_bits_of_logits(
    logits: Tensor, generator: torch.Generator, factor: Beta = 1.0, first: int = 0
) -> Tensor:
    """Independent draws, bool, with the probabilities sigmoid(factor * logits) of being on.

    Parameters
    ----------
    logits : Tensor, shape [chains, n]
        Floating point.
    generator : torch.Generator
        On the device of the logits.
    factor : float or Tensor
        A number, or one for each chain, [chains].
    first : int
        For a part of a block, the place of its first chain within the first quarter of the block.
        It matters for float32 on a CPU, where the draw for a unit is a function of a key and of the
        unit's place. A part has the chains from the same places of each quarter, one quarter after
        the other, and draws what it would draw within the whole block.

    Examples
    --------
    >>> import torch
    >>> draw_bits_of_logits(torch.tensor([[-99.0, 99.0]]), torch.Generator().manual_seed(0))
    tensor([[False,  True]])
    """
    in_float32 = logits.dtype == torch.float32
    if isinstance(factor, Tensor) and factor.ndim and in_float32:
        logits = logits * column(factor).to(logits.dtype)
        factor = 1.0
    if _HAS_TRITON and in_float32 and logits.is_cuda:
        return _draw_bits_on_gpu(logits, generator, factor)
    if not _on_cpu_in_float32(logits):
        return draw_bits(torch.sigmoid(logits * column(factor)), generator)
    key = draw_keys(generator, 1)
    width = logits.shape[-1]
    draw = compiled("draw_bits")
    if draw is None:
        return reference.draw_bits(logits, factor, int(key[0]), int(key[1]), first * width)
    bits = np.empty(logits.shape, bool)
    rows = logits.contiguous().numpy().reshape(-1, width)
    factors = np.array([factor], np.float32)
    no_offsets = np.zeros((1, width), np.float32)
    same_for_all = np.zeros(len(rows), np.int64)
    place = PlaceOfChains(0, len(rows), first)
    draw(rows, factors, no_offsets, same_for_all, place, key, bits.reshape(rows.shape))
    return torch.from_numpy(bits)


def draw_keys(generator: torch.Generator, count: int) -> np.ndarray:
    """Keys for `count` calls of functions that draw, uint32 [2 count], their lower halves first."""
    keys = torch.randint(2**63 - 1, (count,), generator=generator, device="cpu")
    return keys.numpy().view(np.uint32)


def _draw_bits_on_gpu(logits: Tensor, generator: torch.Generator, factor: Beta) -> Tensor:
    from paperlib.kernels import gpu

    key = torch.randint(2**63 - 1, (), generator=generator, device=logits.device)
    if not isinstance(factor, Tensor):
        factor = torch.full((), factor, device=logits.device)
    return gpu.draw_bits(logits, factor.to(logits.dtype), key)


def softplus_increment(x: Tensor, beta_from: Beta, beta_to: Beta) -> Tensor:
    """Sum over the last dimension of `softplus(beta_to * x) - softplus(beta_from * x)`.

    `reference` has the formula.

    Parameters
    ----------
    x : Tensor, shape [chains, n]
        Inputs.
    beta_from, beta_to : float or Tensor
        Two numbers of at least 0, or tensors with one for each chain, [chains].

    Returns
    -------
    Tensor, shape [chains]
        float64, in nats.

    Examples
    --------
    >>> import torch
    >>> softplus_increment(torch.zeros(1, 3), 0.2, 0.9)
    tensor([0.], dtype=torch.float64)
    """
    if isinstance(beta_to, Tensor) or isinstance(beta_from, Tensor):
        beta_from = torch.as_tensor(beta_from, dtype=torch.float64, device=x.device)
        beta_to = torch.as_tensor(beta_to, dtype=torch.float64, device=x.device)
        lower = torch.minimum(beta_from, beta_to)
        change = beta_to - beta_from
        return _softplus_increment(x, lower, change.abs()) * change.sign()
    total = _softplus_increment(x, min(beta_from, beta_to), abs(beta_to - beta_from))
    return total if beta_to >= beta_from else total.neg_()


def _softplus_increment(x: Tensor, lower: Beta, step: Beta) -> Tensor:
    add_up = compiled("softplus_increment") if _on_cpu_in_float32(x) else None
    if add_up is None:
        return reference.softplus_increment(x, column(lower), column(step))
    rows = x.contiguous().numpy()
    sums = np.empty(len(rows))
    add_up(rows, for_each_row(lower, len(rows)), for_each_row(step, len(rows)), sums)
    return torch.from_numpy(sums)


def for_each_row(number: Beta, rows: int, scale: float = 1.0) -> np.ndarray:
    """`scale * number` as float32: [1] for a number that applies to every row, else [rows]."""
    if not isinstance(number, Tensor):
        return np.array([number * scale], np.float32)
    # numpy, since parallel tempering does this six times a step, and torch takes four times as long
    # for so few numbers
    scaled = np.multiply(number.numpy(), scale, dtype=np.float64).astype(np.float32).reshape(-1)
    if len(scaled) not in (1, rows):
        raise InputError(
            f"beta: expected a number or one for each of {rows} chains, got {len(scaled)}"
        )
    return scaled


def sum_where(states: Tensor, values: Tensor) -> Tensor:
    """For each row of bool `states` [chains, n], the sum of the `values` [n] that are on.

    The sums are float64 [chains].

    Examples
    --------
    >>> import torch
    >>> sum_where(torch.tensor([[True, False, True]]), torch.tensor([1.0, 2.0, 4.0]))
    tensor([5.], dtype=torch.float64)
    """
    if states.ndim != 2 or states.shape[1] != values.shape[0]:
        raise InputError(
            f"states: expected shape [chains, {len(values)}], got {list(states.shape)}"
        )
    add_up = compiled("sum_where") if _on_cpu_in_float32(values) else None
    if add_up is None:
        return reference.sum_where(states, values)
    bits = states.contiguous().numpy()
    total = np.empty(len(bits))
    add_up(bits, values.contiguous().numpy(), total)
    return torch.from_numpy(total)


def _on_cpu_in_float32(tensor: Tensor) -> bool:
    return tensor.dtype == torch.float32 and tensor.is_cpu
