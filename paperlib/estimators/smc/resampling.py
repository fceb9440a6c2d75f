"""Resampling: which chains of a population go on, and when that is due."""

from __future__ import annotations

import torch
from torch import Tensor


def effective_part(log_weights: Tensor) -> Tensor:
    """The effective sample size of each population as a fraction of its size, from log-weights [R, N]; between 1 / N and 1, [R]."""
    return 1 / (log_weights.softmax(1).square().sum(1) * log_weights.shape[1])


def systematic(log_weights: Tensor, uneven: Tensor, generator: torch.Generator) -> Tensor:
    """Systematic resampling of the `uneven` [R] populations: for each new chain, the number of the chain in its population that it continues.

    Each chain is continued as often as its share of the weights, float64 `log_weights` [R, N], demands, up to rounding.
    """
    populations, chains = log_weights.shape
    device = log_weights.device
    # One random number per population: of all schemes that need no sorting, this one adds the least noise in practice.
    start = torch.rand(populations, 1, dtype=torch.float64, device=device, generator=generator)
    stay = torch.arange(chains, device=device)
    places = (stay + start) / chains
    found = torch.searchsorted(log_weights.softmax(1).cumsum(1), places)
    return torch.where(uneven[:, None], found.clamp_(max=chains - 1), stay)
