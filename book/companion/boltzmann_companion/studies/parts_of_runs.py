"""What parts of many AIS runs give alone, and other comparisons of chapter 6."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import torch
from scipy.stats import binomtest
from torch import Tensor

from paperlib.estimators import PartitionEstimate
from paperlib.estimators.estimate import find_warnings
from paperlib.models import RBM


def consecutive_parts(
    estimate: PartitionEstimate, counts: Sequence[int]
) -> list[PartitionEstimate]:
    """The estimates that consecutive parts of the runs of an estimate give alone.

    Examples
    --------
    >>> estimate = PartitionEstimate(torch.arange(5.0), torch.zeros(5, 3))
    >>> [part.log_weights.tolist() for part in consecutive_parts(estimate, [2, 3])]
    [[0.0, 1.0], [2.0, 3.0, 4.0]]
    """
    parts = []
    for start, count in zip(accumulate(counts, initial=0), counts, strict=False):
        runs = slice(start, start + count)
        part = replace(
            estimate,
            log_weights=estimate.log_weights[runs],
            final_states=estimate.final_states[runs],
            warnings=(),
        )
        parts.append(replace(part, warnings=find_warnings(part, uniform_start=False)))
    return parts


def coverage_row(groups: Sequence[PartitionEstimate], truth: float) -> dict[str, Any]:
    """How many of the estimates have a 3-sigma interval that holds the true ln Z, or a warning."""
    too_low = [group for group in groups if group.std_interval(3)[1] < truth]
    too_high = [group for group in groups if group.std_interval(3)[0] > truth]
    covered = len(groups) - len(too_low) - len(too_high)
    interval = binomtest(covered, len(groups)).proportion_ci()
    return {
        "runs": len(groups[0].log_weights),
        "groups": len(groups),
        "covered": covered / len(groups),
        "covered_interval": [interval.low, interval.high],
        "too_low": len(too_low),
        "too_high": len(too_high),
        "missed_and_warned": sum(bool(group.warnings) for group in too_low + too_high),
        "warned": sum(bool(group.warnings) for group in groups) / len(groups),
    }


def start_row(rbm: RBM, chains: Tensor, annealed: PartitionEstimate) -> dict[str, float]:
    """Mean ln p* of the states of Gibbs chains [M, D], beside that of weighted ends of AIS runs."""
    equal = torch.zeros(len(chains), dtype=torch.float64)
    chain_mean, chain_error = _mean_and_error(rbm.log_unnormalized(chains), equal)
    ends = rbm.log_unnormalized(annealed.final_states)
    ais_mean, ais_error = _mean_and_error(ends, annealed.log_weights)
    return {
        "start_chains": chain_mean,
        "start_annealed": ais_mean,
        "start_error": math.hypot(chain_error, ais_error),
    }


def binarization_row(fixed: Mapping[str, float], fresh: Tensor) -> dict[str, Any]:
    """Averages of training and test images, as binarised for a model and by N others [N, 2]."""
    gaps = fresh[:, 0] - fresh[:, 1]
    return {
        "fixed_train": fixed["train"],
        "fixed_test": fixed["test"],
        "fixed_gap": fixed["train"] - fixed["test"],
        "fresh_train": fresh[:, 0].mean(),
        "fresh_test": fresh[:, 1].mean(),
        "fresh_gap": gaps.mean(),
        "fresh_gap_spread": gaps.std(),
    }


def _mean_and_error(values: Tensor, log_weights: Tensor) -> tuple[float, float]:
    """Weighted mean of values [M], and its standard error."""
    values = values.double()
    weights = log_weights.softmax(0)
    mean = (weights * values).sum()
    return mean.item(), ((weights * (values - mean)) ** 2).sum().sqrt().item()
