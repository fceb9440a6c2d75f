"""What some of many AIS runs give alone: how often their intervals hold the truth, and where the chains of another start have got to."""

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
    """The estimates that so many runs of an estimate give alone, each part behind the one before it.

    Examples
    --------
    >>> estimate = PartitionEstimate(torch.arange(5.0), torch.zeros(5, 3))
    >>> [part.log_weights.tolist() for part in consecutive_parts(estimate, [2, 3])]
    [[0.0, 1.0], [2.0, 3.0, 4.0]]
    """
    parts = []
    for start, count in zip(accumulate(counts, initial=0), counts, strict=False):
        chosen = slice(start, start + count)
        alone = replace(
            estimate,
            log_weights=estimate.log_weights[chosen],
            final_states=estimate.final_states[chosen],
            warnings=(),
        )
        parts.append(replace(alone, warnings=find_warnings(alone, uniform_start=False)))
    return parts


def coverage_row(groups: Sequence[PartitionEstimate], truth: float) -> dict[str, Any]:
    """How many of these estimates have a 3-sigma interval that holds the true ln Z, and how many warn."""
    too_low = [group for group in groups if group.std_interval(3)[1] < truth]
    too_high = [group for group in groups if group.std_interval(3)[0] > truth]
    held = len(groups) - len(too_low) - len(too_high)
    share = binomtest(held, len(groups)).proportion_ci()
    return {
        "runs": len(groups[0].log_weights),
        "groups": len(groups),
        "covered": held / len(groups),
        "covered_interval": [share.low, share.high],
        "too_low": len(too_low),
        "too_high": len(too_high),
        "missed_and_warned": sum(bool(group.warnings) for group in too_low + too_high),
        "warned": sum(bool(group.warnings) for group in groups) / len(groups),
    }


def start_row(rbm: RBM, chains: Tensor, annealed: PartitionEstimate) -> dict[str, float]:
    """Mean ln p* of the states of Gibbs chains, [M, D], beside that of weighted AIS runs, which know of no burn-in."""
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
    """Averages of training and test images as a model was trained on them, and of several other binarisations, [N, 2]."""
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
