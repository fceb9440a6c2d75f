"""The log domain in one place: sums of exponentials, softplus, entropies, random generators."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.torch_settings import plain_torch
from paperlib.validation import is_whole, require_fraction

# The states of as many units take 3 GB.
_MOST_UNITS = 24


def log_mean_exp(log_values: Tensor, dim: int = -1) -> Tensor:
    """ln of the mean of `exp(log_values)` along `dim`, without overflow; minus infinity is ln 0."""
    return torch.logsumexp(log_values, dim) - math.log(log_values.shape[dim])


def leave_one_out(log_values: Tensor) -> Tensor:
    """How far the logarithm of a mean moves if one of its M values is left out; M of at least 2.

    From ln of the values, [..., M], to one move for each, [..., M], less the average move. The
    moves are scaled so that the sum of their squares is the jackknife's variance of the logarithm.
    For a few log-normal values it is right on average however widely they spread. The delta rule,
    which takes their relative variance over M, states as little as a fiftieth of the variance.

    Examples
    --------
    >>> leave_one_out(torch.tensor([1.0, 3.0]).double().log()).exp()
    tensor([1.4746, 0.6781], dtype=torch.float64)
    """
    count = log_values.shape[-1]
    nothing = torch.full_like(log_values[..., :1], -math.inf)
    # The rest is the sum of all values before and of all values behind, since the difference
    # between the whole sum and a large value would lose small ones.
    before = torch.cat([nothing, log_values[..., :-1].logcumsumexp(-1)], -1)
    behind = torch.cat([nothing, log_values.flip(-1)[..., :-1].logcumsumexp(-1)], -1)
    without = torch.logaddexp(before, behind.flip(-1))
    return math.sqrt((count - 1) / count) * (without - without.mean(-1, keepdim=True))


def effective_sample_size(log_weights: Tensor) -> Tensor:
    """(sum w)^2 / sum w^2 along the last dimension: from 1, if one weight dominates, to M."""
    return (2 * log_weights.logsumexp(-1) - (2 * log_weights).logsumexp(-1)).exp()


def weighted_mean(values: Tensor, weights: Tensor | None) -> Tensor:
    """Mean over the first dimension, with weights [N] or without; [N, ...] gives [...].

    Examples
    --------
    >>> weighted_mean(torch.tensor([1.0, 4.0]).double(), torch.tensor([2.0, 1.0]).double())
    tensor(2., dtype=torch.float64)
    """
    if weights is None:
        return values.mean(0)
    return weights.to(values) @ values / weights.sum().to(values)


def softplus(x: Tensor) -> Tensor:
    """Elementwise `ln(1 + e^x)`, to full precision for every `x`.

    torch's default threshold of 20, beyond which it returns `x` itself, costs 2e-9 per unit in
    float64, which is visible in a test by enumeration.
    """
    return torch.nn.functional.softplus(x, threshold=40)


@plain_torch()
def all_states(width: int) -> Tensor:
    """Every binary vector of length `width`, at most 24, in order: float64 [2^width, width]."""
    if width > _MOST_UNITS:
        raise InputError(
            f"width: expected at most {_MOST_UNITS} units, whose states fit into memory, "
            f"got {width}"
        )
    return bits(torch.arange(2**width), width).double()


def bits(index: Tensor, width: int) -> Tensor:
    """Binary digits of whole numbers, most significant first: int64 [...] to [..., width].

    Examples
    --------
    >>> bits(torch.tensor([1, 6]), 3)
    tensor([[0, 0, 1],
            [1, 1, 0]])
    """
    shifts = torch.arange(width - 1, -1, -1, device=index.device)
    return (index[..., None] >> shifts) & 1


def bernoulli_log_prob(values: Tensor, logits: Tensor) -> Tensor:
    """ln p of binary `values` [..., n] of independent units with these logits; [...], in nats."""
    return (values * logits - softplus(logits)).sum(-1)


def bernoulli_entropy(logits: Tensor) -> Tensor:
    """Entropy of independent binary units with these logits; [..., n] gives [...], in nats."""
    magnitude = logits.abs()
    # -p ln p - (1 - p) ln(1 - p) with p = sigmoid(|x|), without the logarithm of a rounded 1
    return (softplus(-magnitude) + magnitude * torch.sigmoid(-magnitude)).sum(-1)


def student_quantile(level: float, degrees_of_freedom: float) -> float:
    """How many standard errors an estimate may be off to either side at this level.

    From Student's t distribution, or from the normal one for infinite degrees of freedom; infinite
    if there are none.

    Examples
    --------
    >>> print(f"{student_quantile(0.95, math.inf):.3f} {student_quantile(0.95, 9):.3f}")
    1.960 2.262
    """
    from scipy.special import ndtri, stdtrit

    upper = (1 + require_fraction("level", level)) / 2
    if degrees_of_freedom <= 0:
        return math.inf
    if math.isinf(degrees_of_freedom):
        return float(ndtri(upper))
    return float(stdtrit(degrees_of_freedom, upper))


def resolve_generator(
    generator: torch.Generator | int | None, device: torch.device | str = "cpu"
) -> torch.Generator:
    """The generator that an argument stands for: a generator itself, or a new one with this seed.

    For `None` the seed comes from system entropy. Every public function that takes a `generator`
    calls this, so that nothing uses torch's global random state.

    Raises
    ------
    InputError
        If it is none of these, the seed has more than 64 bits, or the generator is on another
        device.

    Examples
    --------
    >>> draws = torch.rand(2, generator=resolve_generator(0))
    >>> draws == torch.rand(2, generator=seeded_generator(0))
    tensor([True, True])
    """
    device = torch.device(device)
    if generator is None:
        generator = torch.Generator(device)
        generator.seed()
        return generator
    if is_whole(generator):
        return seeded_generator(int(generator), device)
    if not isinstance(generator, torch.Generator):
        raise InputError(
            f"generator: expected a torch.Generator, a seed or None, got {type(generator).__name__}"
        )
    if _place(generator.device) != _place(device):
        raise InputError(
            f"generator: expected one on device {device}, where the model is, "
            f"got {generator.device}"
        )
    return generator


def _place(device: torch.device) -> tuple[str, int]:
    """A device's type and number, which torch may leave out."""
    if device.type == "cpu":
        return device.type, 0
    if device.type == "cuda" and device.index is None:
        return device.type, torch.cuda.current_device()
    return device.type, device.index or 0


def seeded_generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    """A new generator with the given seed."""
    try:
        return torch.Generator(device).manual_seed(seed)
    except (ValueError, OverflowError) as error:
        raise InputError(f"seed: expected a number of at most 64 bits, got {seed}") from error
