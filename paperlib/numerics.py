"""The log domain in one place: sums of exponentials, softplus sums, Bernoulli draws, random generators."""

from __future__ import annotations

import math
from importlib.util import find_spec

import numpy as np
import torch
from torch import Tensor

_HAS_TRITON = find_spec("triton") is not None

# What torch.Generator.get_state returns for a CPU: a Mersenne Twister, and numbers left over from normal draws.
_GENERATOR_STATE = np.dtype(
    [
        ("seed", np.uint64),
        ("left", np.int32),  # words not given out yet, plus one
        ("seeded", np.int32),
        ("next", np.uint64),
        ("words", np.uint64, 624),
        ("normal", np.uint8, 40),
    ]
)


def log_mean_exp(log_values: Tensor, dim: int = -1) -> Tensor:
    """Logarithm of the mean of `exp(log_values)` along `dim`, without overflow.

    Parameters
    ----------
    log_values : Tensor
        Logarithms of non-negative numbers; minus infinity stands for zero.
    dim : int
        Dimension over which the mean is taken.
    """
    return torch.logsumexp(log_values, dim) - math.log(log_values.shape[dim])


def softplus(x: Tensor) -> Tensor:
    """Elementwise `ln(1 + e^x)`, to full precision for every `x`.

    torch's default threshold of 20, beyond which it returns `x` itself, costs 2e-9 a unit in float64: visible in a
    test by enumeration.
    """
    return torch.nn.functional.softplus(x, threshold=40)


# An inverse temperature: a number, or in a walk that a GPU replays a tensor without dimensions, which nobody looks into.
Beta = float | Tensor


def softplus_increment(x: Tensor, beta_from: Beta, beta_to: Beta) -> Tensor:
    """Sum over the last dimension of `softplus(beta_to * x) - softplus(beta_from * x)`, for betas >= 0.

    With the smaller beta a and the larger one b, each term is (b - a) max(x, 0) + ln(1 + s(-a|x|) (e^{-(b-a)|x|} - 1)), s the
    logistic function: nothing cancels, so that a float32 sum over thousands of annealing steps does not lose the digits in
    which neighbouring betas differ.

    Returns
    -------
    Tensor
        float64, the shape of `x` without its last dimension.
    """
    if isinstance(beta_to, Tensor):
        difference = beta_to - beta_from
        lower, step = torch.minimum(beta_from, beta_to), difference.abs()
        return _softplus_increment(x, lower, step) * difference.sign()
    lower, step = min(beta_from, beta_to), abs(beta_to - beta_from)
    if can_fuse(x):
        from paperlib import fused

        sums = np.empty(x.shape[:-1])
        rows = x.contiguous().numpy().reshape(-1, x.shape[-1])
        fused.softplus_increment(rows, np.float32(lower), np.float32(step), sums.reshape(-1))
        total = torch.from_numpy(sums)
    else:
        total = _softplus_increment(x, lower, step)
    return total if beta_to >= beta_from else total.neg_()


def _softplus_increment(x: Tensor, lower: Beta, step: Beta) -> Tensor:
    magnitude = x.abs()
    curved = torch.expm1(magnitude * -step)
    curved.mul_(torch.sigmoid(magnitude * -lower)).log1p_()
    # 2 max(x, 0) = x + |x|
    linear = magnitude.add_(x).sum(-1, dtype=torch.float64)
    return linear.mul_(0.5 * step).add_(curved.sum(-1, dtype=torch.float64))


def can_fuse(tensor: Tensor) -> bool:
    """Whether `paperlib.fused` takes this tensor. It is imported only then: compiling takes a second, which float64 never needs."""
    return tensor.is_cpu and tensor.dtype == torch.float32


def sum_where(states: Tensor, values: Tensor) -> Tensor:
    """For each row of bool `states` [chains, n] the sum of the `values` [n] of units that are on, float64 [chains]."""
    if not can_fuse(values):
        return (states.to(values.dtype) @ values).double()
    from paperlib import fused

    total = np.empty(len(states))
    fused.sum_where(states.contiguous().numpy(), values.contiguous().numpy(), total)
    return torch.from_numpy(total)


def all_states(width: int) -> Tensor:
    """Every binary vector of a length, counting upwards: float64 [2^width, width]."""
    bit = torch.tensor([0.0, 1.0], dtype=torch.float64)
    return torch.cartesian_prod(*[bit] * width).view(-1, width)


def bernoulli_log_prob(values: Tensor, logits: Tensor) -> Tensor:
    """ln of the probability of binary `values` [..., n] under independent units with these logits; [...], in nats."""
    return (values * logits - softplus(logits)).sum(-1)


def bernoulli_entropy(logits: Tensor) -> Tensor:
    """Entropy of independent binary units with these logits; [..., n] gives [...], in nats."""
    magnitude = logits.abs()
    # -p ln p - (1 - p) ln(1 - p) with p = sigmoid(|x|), without the logarithm of a rounded 1
    return (softplus(-magnitude) + magnitude * torch.sigmoid(-magnitude)).sum(-1)


def draw_bits(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """Independent draws with the given probabilities of being on, bool.

    Comparing uniform numbers is five times cheaper on a CPU than `torch.bernoulli`, and its results do not
    depend on the number of threads.
    """
    uniform = torch.rand(
        probabilities.shape,
        dtype=probabilities.dtype,
        device=probabilities.device,
        generator=generator,
    )
    return uniform < probabilities


def draw_bits_of_logits(logits: Tensor, generator: torch.Generator, factor: Beta = 1.0) -> Tensor:
    """Independent draws, bool, with the probabilities sigmoid(factor * logits) of being on, for logits [chains, n]."""
    if _HAS_TRITON and logits.is_cuda and logits.dtype == torch.float32:
        return _draw_bits_on_gpu(logits, generator, factor)
    if not can_fuse(logits):
        return draw_bits(torch.sigmoid(logits * factor), generator)
    from paperlib import fused

    bits = np.empty(logits.shape, bool)
    fused.draw_bits(
        logits.contiguous().numpy().reshape(-1),
        np.float32(factor),
        *draw_keys(generator, 1),
        bits.reshape(-1),
    )
    return torch.from_numpy(bits)


def draw_keys(generator: torch.Generator, count: int) -> tuple[np.uint32, ...]:
    """The keys of so many calls of functions of `paperlib.fused` that draw: of each its lower and its upper half."""
    keys = torch.randint(2**63 - 1, (count,), generator=generator).tolist()
    return tuple(np.uint32(half) for key in keys for half in (key & 0xFFFFFFFF, key >> 32))


def _draw_bits_on_gpu(logits: Tensor, generator: torch.Generator, factor: Beta) -> Tensor:
    from paperlib import fused_gpu

    key = torch.randint(2**63 - 1, (), generator=generator, device=logits.device)
    if not isinstance(factor, Tensor):
        factor = torch.full((), factor, device=logits.device)
    return fused_gpu.draw_bits(logits, factor.to(logits.dtype), key)


def bernoulli(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """Independent draws from {0, 1} with the given probabilities, in their dtype; see `draw_bits`.

    For float32 on a CPU the same draws come out in a seventh of the time: torch computes its uniform numbers one by one.
    """
    if not can_fuse(probabilities):
        return draw_bits(probabilities, generator).to(probabilities.dtype)
    from paperlib import fused

    drawn = np.empty(probabilities.shape, np.float32)
    state = generator.get_state()
    twister = state.numpy().view(_GENERATOR_STATE)[0]
    unused = fused.draw_bernoulli(
        probabilities.detach().contiguous().numpy().reshape(-1),
        twister["words"],
        int(twister["left"]) - 1,
        drawn.reshape(-1),
    )
    twister["left"], twister["next"] = unused + 1, len(twister["words"]) - unused
    generator.set_state(state)
    return torch.from_numpy(drawn)


def resolve_generator(
    generator: torch.Generator | None, device: torch.device | str = "cpu"
) -> torch.Generator:
    """`generator` itself, or for `None` a fresh one from system entropy; never the global state.

    Raises
    ------
    ValueError
        If `generator` is not a `torch.Generator` or lives on another device than `device`.
    """
    device = torch.device(device)
    if generator is None:
        generator = torch.Generator(device)
        generator.seed()
        return generator
    if not isinstance(generator, torch.Generator):
        raise ValueError(
            f"generator: expected a torch.Generator or None, got {type(generator).__name__} "
            "(torch.Generator().manual_seed(...) makes one from a seed)"
        )
    if generator.device.type != device.type:
        raise ValueError(
            f"generator: expected one on device {device}, where the model is, got {generator.device}"
        )
    return generator


def seeded_generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    """A new generator with the given seed."""
    return torch.Generator(device).manual_seed(seed)
