"""Estimates of what is known: their errors, how often their intervals hold it, and how far samples are from exact means."""

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
    """Of an estimate from each row of log-weights [R, M], whose exact Var(w) / Z^2 is known.

    It has the mean of their Z over the true one, the mean error of ln Z with its standard error and
    the median, in nats, how many of 100 are more than a nat too low, and how many of 100 3-sigma
    intervals hold the truth or miss it.
    """
    estimates = separate(log_weights)
    num_runs = log_weights.shape[1]
    gaps = _gaps(estimates, truth)
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
    """How often 3-sigma intervals hold the truth, and how often one that misses it comes without a warning.

    A start from uniform pixels is warned about whatever comes out: of such estimates only further
    warnings count.
    """
    intervals = [estimate.std_interval(3) for estimate in estimates]
    covered = [low <= truth <= high for low, high in intervals]
    warned = [len(estimate.warnings) > int(always_warned) for estimate in estimates]
    repeats = len(estimates)
    return {
        "repeats": repeats,
        "covered": 100 * sum(covered) / repeats,
        "effective": sum(estimate.effective_sample_size for estimate in estimates) / repeats,
        "silent": sum(not (held or told) for held, told in zip(covered, warned, strict=True)),
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
    """How far a path's transitions at beta = 1 are from their exact probabilities [2^D, 2^D], in standard errors."""
    num_states = len(exact)
    num_visible = len(exact).bit_length() - 1
    starts = path.state_at(all_states(num_visible).repeat_interleave(draws, 0))
    ended = path.units(path.transition(starts, 1.0, generator))
    powers = 2.0 ** torch.arange(num_visible - 1, -1, -1).double()
    number = (ended @ powers).long().view(num_states, -1)
    frequency = torch.stack([row.bincount(minlength=num_states) for row in number]) / draws
    return (frequency - exact) / (exact * (1 - exact) / draws).sqrt()


def _gaps(estimates: Sequence[PartitionEstimate], truth: float) -> Tensor:
    return torch.tensor([estimate.log_z - truth for estimate in estimates], dtype=torch.float64)
