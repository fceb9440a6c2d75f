"""The error of a mean over a Markov chain: batch means, and where the chain has equilibrated.

Values at neighbouring steps are alike, so the naive standard error is too small. Means over long
batches of consecutive steps are nearly independent. To see how long is long enough, make the
batches longer until the error stops growing (Flyvbjerg & Petersen 1989).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

# A standard error from fewer batches is itself too uncertain.
_FEWEST_BATCHES = 8
# Fewer batches of a replica say nothing about how alike neighbours are.
_FEWEST_NEIGHBOURS = 6
_MOST_CORRELATION = 0.8
# Number of parts of a series among which its beginning is looked for.
_PARTS = 40


def batch_means(series: Tensor, num_batches: int) -> Tensor:
    """Means over batches of consecutive steps, of nearly equal lengths: `series` [T, ...] gives [num_batches, ...]."""
    length, num_longer = divmod(len(series), num_batches)
    longer, others = series.tensor_split([num_longer * (length + 1)])
    sizes = (num_longer, length + 1), (num_batches - num_longer, length)
    batches = (part.unflatten(0, size) for part, size in zip((longer, others), sizes, strict=True))
    return torch.cat([part.mean(1) for part in batches])


def equilibration(series: Tensor) -> int:
    """Where a series [T] has equilibrated: leaving out what is before it gives the rest the smallest standard error (White 1997)."""
    parts = series.tensor_split(min(_PARTS, len(series)))
    means = torch.stack([part.mean() for part in parts])
    count = len(means)
    errors = [means[first:].var(correction=0) / (count - first) for first in range(count // 2 + 1)]
    best = int(torch.stack(errors).argmin())
    return sum(len(part) for part in parts[:best])


def mean_error(series: Tensor) -> tuple[float, float]:
    """The standard error of the mean of a stationary series of R independent replicas [T, R], and its degrees of freedom."""
    length, replicas = series.shape
    if series.numel() < _FEWEST_BATCHES:
        return math.inf, 1.0
    best = 0.0
    freedom = 1.0
    num_batches = length
    while num_batches * replicas >= _FEWEST_BATCHES:
        means = batch_means(series, num_batches) if num_batches < length else series
        error = math.sqrt(means.var().item() / means.numel())
        if num_batches // 2 < _FEWEST_NEIGHBOURS <= num_batches:
            error *= _left_between(means)
        best = max(best, error)
        freedom = means.numel() - 1.0
        num_batches //= 2
    return best, freedom


def _left_between(means: Tensor) -> float:
    """The factor by which the error grows because neighbouring batches [B, R] are alike, as for an autoregressive process."""
    centred = means - means.mean()
    variance = centred.square().mean().item()
    if variance == 0:
        return 1.0
    correlation = (centred[1:] * centred[:-1]).mean().item() / variance
    correlation = min(max(correlation, 0.0), _MOST_CORRELATION)
    return math.sqrt((1 + correlation) / (1 - correlation))
