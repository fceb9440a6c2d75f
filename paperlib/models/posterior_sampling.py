"""Importance sampling of ln p*(v) in models whose hidden units cannot be summed out.

With hidden states h drawn from a proposal Q(h | v), the mean of p*(v, h) / Q(h | v) is an unbiased
estimate of p*(v), but its logarithm is too low on average (RAISE paper, sections 5.2 and 5.3). A DBM
uses mean field as its proposal, and a DBN its recognition distribution.

Used in chapter: deep-boltzmann-machines.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from paperlib.numerics import log_mean_exp

# Vectors times draws handled at once.
_BLOCK = 5_000


def log_mean_weights(
    num_vectors: int, num_samples: int, log_weights: Callable[[slice], Tensor], device: torch.device
) -> Tensor:
    """ln of the mean importance weight of each vector, float64 [num_vectors]; `log_weights` gives those of a slice."""
    # Results go into one tensor allocated at the start. A list of small results, each allocated
    # between large tensors that are freed again, would fragment the memory of the large ones.
    estimates = torch.empty(num_vectors, dtype=torch.float64, device=device)
    size = max(1, _BLOCK // num_samples)
    for start in range(0, num_vectors, size):
        part = slice(start, start + size)
        weights = log_weights(part).double().view(-1, num_samples)
        estimates[part] = log_mean_exp(weights)
    return estimates
