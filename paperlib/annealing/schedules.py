"""Schedules: 0 = beta_0 < beta_1 < ... < beta_K = 1, as float64 tensors of K + 1 numbers.

If unsure: `uniform_betas(10_000)`. `salakhutdinov_murray_betas`, the schedule of the 2008 paper,
has most of its steps near 1, where models trained with few CD steps change fastest.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.torch_settings import plain_torch
from paperlib.validation import as_float_tensor, require_count, require_finite


@plain_torch(gradients=False)
def uniform_betas(num_steps: int) -> Tensor:
    """K = `num_steps` equal steps from 0 to 1; shape [K + 1].

    Raises
    ------
    InputError
        If `num_steps` is not a whole number of at least 1.

    Examples
    --------
    >>> uniform_betas(4).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    num_steps = require_count("num_steps", num_steps)
    return torch.arange(num_steps + 1, dtype=torch.float64) / num_steps


@plain_torch(gradients=False)
def salakhutdinov_murray_betas(fraction: float = 1.0) -> Tensor:
    """The 14,500 steps of Salakhutdinov & Murray (2008), section 5.1; shape [14501].

    500 steps of 1/1,000 on [0, 0.5], 4,000 of 1/10,000 on [0.5, 0.9] and 10,000 of 1/100,000 on
    [0.9, 1].

    Parameters
    ----------
    fraction : float
        If below 1, the same schedule with that fraction of the steps in each part, for quick looks.

    Raises
    ------
    InputError
        If `fraction` is not in (0, 1].

    Examples
    --------
    >>> betas = salakhutdinov_murray_betas()
    >>> len(betas) - 1, betas[500].item(), betas[4_500].item()
    (14500, 0.5, 0.9)
    """
    if not 0 < fraction <= 1:
        raise InputError(f"fraction: expected a number in (0, 1], got {fraction}")
    parts = [(0.0, 0.5, 500), (0.5, 0.9, 4_000), (0.9, 1.0, 10_000)]
    pieces = [torch.zeros(1, dtype=torch.float64)]
    for low, high, full_steps in parts:
        steps = max(1, round(full_steps * fraction))
        position = torch.arange(1, steps + 1, dtype=torch.float64) / steps
        pieces.append(low * (1 - position) + high * position)
    return torch.cat(pieces)


def check_betas(betas: object) -> Tensor:
    """A schedule, float64 on the CPU, from a sequence of numbers or from a number of equal steps.

    Raises
    ------
    InputError
        If there are fewer than two numbers, they do not run from 0 to 1, or they do not strictly
        increase; or if the number of steps is below 1.

    Examples
    --------
    >>> check_betas([0, 0.5, 1])
    tensor([0.0000, 0.5000, 1.0000], dtype=torch.float64)
    >>> check_betas(2)
    tensor([0.0000, 0.5000, 1.0000], dtype=torch.float64)
    """
    if isinstance(betas, int | np.integer):
        return uniform_betas(require_count("betas", betas))
    schedule = as_float_tensor("betas", betas, torch.float64).detach().cpu()
    if schedule.ndim != 1 or len(schedule) < 2:
        raise InputError(
            "betas: expected at least two numbers in one dimension, "
            f"got shape {list(schedule.shape)}"
        )
    require_finite("betas", schedule)
    first = schedule[0].item()
    last = schedule[-1].item()
    if first != 0 or last != 1:
        raise InputError(
            f"betas: expected to run from 0 to 1, got {first:g} first and {last:g} last"
        )
    falls = torch.nonzero(schedule.diff() <= 0).flatten()
    if len(falls):
        k = int(falls[0]) + 1
        raise InputError(
            "betas: expected strictly increasing numbers, "
            f"got {schedule[k - 1]:g} then {schedule[k]:g} at index {k}"
        )
    return schedule
