"""The form of all planted models, and exact draws from a table of log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.models.rbm import RBM
from paperlib.numerics import resolve_generator
from paperlib.torch_settings import plain_torch
from paperlib.validation import is_number, require_count


@dataclass(frozen=True)
class Draws:
    """Draws visible vectors, independent and exactly from the model.

    `draws(1_000, generator)` gives [1000, D].
    """

    draw: Callable[[int, torch.Generator], Tensor]  # the same, without checks

    @plain_torch()
    def __call__(self, num_draws: int, generator: torch.Generator | int | None = None) -> Tensor:
        """Visible vectors, [num_draws, D]."""
        return self.draw(require_count("num_draws", num_draws), resolve_generator(generator))


class Planted(NamedTuple):
    """An RBM whose ln Z is known exactly.

    Attributes
    ----------
    rbm : RBM
        The model, on the CPU.
    log_z : float
        Its ln Z in nats, for the parameters as they are stored.
    draws : callable
        `draws(num_draws, generator=None)` gives independent exact draws of the visible units,
        [num_draws, D], binary, in the model's type, on the CPU. It is a function rather than a
        tensor, since some tests need ten draws and others a million. It can be pickled.

    Examples
    --------
    >>> from boltzmann_likelihood import planted
    >>> from paperlib.numerics import seeded_generator
    >>> rbm, log_z, draws = planted.block_diagonal(40, 30, 5, generator=seeded_generator(0))
    >>> rbm
    RBM(40 visible, 30 hidden, torch.float64, cpu)
    >>> draws(3, seeded_generator(1)).shape
    torch.Size([3, 40])
    """

    rbm: RBM
    log_z: float
    draws: Draws


def require_number(
    name: str, value: object, low: float = -math.inf, high: float = math.inf
) -> float:
    """`value` as a float; raise unless it is finite and from `low` to `high`, ends included."""
    number = float(value) if is_number(value) else math.nan
    if not math.isfinite(number) or not low <= number <= high:
        bounds = "" if (low, high) == (-math.inf, math.inf) else f" from {low:g} to {high:g}"
        raise InputError(f"{name}: expected a finite number{bounds}, got {value!r}")
    return number


def require_type(dtype: object) -> torch.dtype:
    """`dtype`; raise unless it is one in which models compute."""
    if dtype not in (torch.float32, torch.float64) or not isinstance(dtype, torch.dtype):
        raise InputError(f"dtype: expected torch.float32 or torch.float64, got {dtype}")
    return dtype


def draw_indices(log_weights: Tensor, num_draws: int, generator: torch.Generator) -> Tensor:
    """Draw indices with probabilities proportional to e^{log_weights}: int64 [..., num_draws].

    There are `num_draws` into each row of the table `log_weights` [..., S].
    """
    weights = torch.exp(log_weights - log_weights.amax(-1, keepdim=True))
    cumulative = weights.cumsum(-1)
    total = cumulative[..., -1:]
    shape = (*log_weights.shape[:-1], num_draws)
    uniform = torch.rand(shape, dtype=torch.float64, generator=generator) * total
    # If rounded up to the total, it would select the last entry, even if that has no weight.
    uniform = torch.minimum(uniform, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, uniform, right=True)
