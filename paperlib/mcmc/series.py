"""The error of a mean over a Markov chain: batch means, and where the chain has equilibrated.

Values at neighbouring steps are alike, so the naive standard error is too small. Means over long
batches of consecutive steps are nearly independent. To see how long is long enough, make the
batches longer until the error stops growing (Flyvbjerg & Petersen 1989).

A series holds one value for each step, [T], or for each step of R independent replicas, [T, R].
`equilibration` says how much of its beginning to leave out, and `mean_error` is the error of the
mean of the rest. `paperlib.mcmc.diagnostics` has the autocorrelation time, another way to the same
error.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

# A standard error from fewer batches is itself too uncertain.
_FEWEST_BATCHES = 8
# Fewer batches of a replica say nothing about how alike neighbours are.
_FEWEST_NEIGHBOURS = 6
# A larger correlation of neighbours is taken to be this one.
_MOST_CORRELATION = 0.8
# Number of parts of a series at whose borders it may have equilibrated.
_PARTS = 40


def batch_means(series: Tensor, num_batches: int) -> Tensor:
    """Means over batches of consecutive steps; `series` [T, ...] gives [num_batches, ...].

    The batches have nearly equal lengths, and the longer ones come first.
    """
    length, num_longer = divmod(len(series), num_batches)
    longer, others = series.tensor_split([num_longer * (length + 1)])
    longer_means = longer.unflatten(0, (num_longer, length + 1)).mean(1)
    other_means = others.unflatten(0, (num_batches - num_longer, length)).mean(1)
    return torch.cat([longer_means, other_means])


def equilibration(series: Tensor) -> int:
    """The step from which a series [T] counts as equilibrated (White 1997).

    Without the steps before it, the mean of the rest has the smallest standard error.
    """
    parts = series.tensor_split(min(_PARTS, len(series)))
    means = torch.stack([part.mean() for part in parts])
    count = len(means)
    errors = [means[first:].var(correction=0) / (count - first) for first in range(count // 2 + 1)]
    best = int(torch.stack(errors).argmin())
    return sum(len(part) for part in parts[:best])


def mean_error(series: Tensor) -> tuple[float, float]:
    """The standard error of the mean of a stationary series, and its degrees of freedom.

    `series` [T, R] holds R independent replicas.
    """
    length, replicas = series.shape
    if series.numel() < _FEWEST_BATCHES:
        return math.inf, 1.0
    largest = 0.0
    freedom = 1.0
    num_batches = length
    while num_batches * replicas >= _FEWEST_BATCHES:
        means = batch_means(series, num_batches) if num_batches < length else series
        error = math.sqrt(means.var().item() / means.numel())
        if num_batches // 2 < _FEWEST_NEIGHBOURS <= num_batches:
            error *= _correlation_factor(means)
        largest = max(largest, error)
        freedom = means.numel() - 1.0
        num_batches //= 2
    return largest, freedom


def _correlation_factor(means: Tensor) -> float:
    """How much larger the error is for alike neighbours [B, R], as in an AR(1) process."""
    centred = means - means.mean()
    variance = centred.square().mean().item()
    if variance == 0:
        return 1.0
    correlation = (centred[1:] * centred[:-1]).mean().item() / variance
    correlation = min(max(correlation, 0.0), _MOST_CORRELATION)
    return math.sqrt((1 + correlation) / (1 - correlation))
