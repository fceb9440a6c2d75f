"""Estimates of what is known, against the truth.

`errors_row` and `coverage_row` count how often intervals hold ln Z, `mean_scores` and
`transition_scores` say by how many standard errors samples differ from exact values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing import BaseRatePath
from paperlib.estimators import PartitionEstimate
from paperlib.numerics import all_states


def separate(log_weights: Tensor) -> list[PartitionEstimate]:
    """An estimate from each row of log-weights [R, M].

    Examples
    --------
    >>> [estimate.log_z for estimate in separate(torch.tensor([[1.0, 1.0], [2.0, 2.0]]))]
    [1.0, 2.0]
    """
    return [PartitionEstimate(row, torch.empty(0)) for row in log_weights]


def errors_row(log_weights: Tensor, truth: float, relative_variance: float) -> dict[str, float]:
    """The errors of R estimates, one from each row of log-weights [R, M].

    It has the mean of their Z over the true one, the mean error of ln Z with its standard error and
    the median, in nats, how many of 100 are more than a nat too low, and how many of 100 3-sigma
    intervals hold the truth or miss it. `relative_variance` is the exact Var(w) / Z^2.
    """
    estimates = separate(log_weights)
    num_runs = log_weights.shape[1]
    gaps = torch.tensor([estimate.log_z - truth for estimate in estimates], dtype=torch.float64)
    intervals = [estimate.std_interval(3) for estimate in estimates]
    share = 100 / len(estimates)
    return {
        "runs": num_runs,
        "effective": num_runs / (1 + relative_variance),
        "mean_ratio": gaps.exp().mean().item(),
        "median": gaps.quantile(0.5).item(),
        "bias": gaps.mean().item(),
        "bias_error": gaps.std().item() / math.sqrt(len(estimates)),
        "far_low": share * int((gaps < -1).sum()),
        "covered": share * sum(low <= truth <= high for low, high in intervals),
        "too_low": share * sum(high < truth for _, high in intervals),
        "too_high": share * sum(low > truth for low, _ in intervals),
    }


def interval_row(estimate: PartitionEstimate) -> dict[str, Any]:
    """An estimate with its 3-sigma interval."""
    return {
        "runs": len(estimate.log_weights),
        "log_z": estimate.log_z,
        "interval_3_sigma": estimate.std_interval(3),
        "effective_sample_size": estimate.effective_sample_size,
    }


def coverage_row(
    estimates: Sequence[PartitionEstimate], truth: float, always_warned: bool
) -> dict[str, Any]:
    """How often 3-sigma intervals hold the truth, and how many miss it without a warning.

    A start from uniform pixels always has a warning (`always_warned`): of such estimates only
    further warnings count.
    """
    covered = 0
    silent = 0
    for estimate in estimates:
        low, high = estimate.std_interval(3)
        if low <= truth <= high:
            covered += 1
        elif len(estimate.warnings) <= int(always_warned):
            silent += 1
    repeats = len(estimates)
    return {
        "repeats": repeats,
        "covered": 100 * covered / repeats,
        "effective": sum(estimate.effective_sample_size for estimate in estimates) / repeats,
        "silent": silent,
    }


def mean_scores(values: Tensor, exact: Tensor | float) -> Tensor:
    """How far means over the last axis are from their exact expectations, in standard errors.

    Examples
    --------
    >>> mean_scores(torch.tensor([1.0, 3.0]), 0.0)
    tensor(2.)
    """
    error = values.std(-1) / math.sqrt(values.shape[-1])
    return (values.mean(-1) - exact) / error


def transition_scores(
    path: BaseRatePath, exact: Tensor, draws: int, generator: torch.Generator
) -> Tensor:
    """How far a path's transitions at beta = 1 are from exact probabilities, in standard errors.

    Parameters
    ----------
    path : BaseRatePath
        A path to a model with D visible units.
    exact : Tensor, shape [2^D, 2^D]
        The probabilities from each state to each other.
    draws : int
        Transitions from each state.
    generator : torch.Generator
    """
    num_states = len(exact)
    num_visible = len(exact).bit_length() - 1
    starts = path.state_at(all_states(num_visible).repeat_interleave(draws, 0))
    ends = path.units(path.transition(starts, 1.0, generator))
    powers = 2.0 ** torch.arange(num_visible - 1, -1, -1).double()
    numbers = (ends @ powers).long().view(num_states, -1)
    frequency = torch.stack([row.bincount(minlength=num_states) for row in numbers]) / draws
    return (frequency - exact) / (exact * (1 - exact) / draws).sqrt()
