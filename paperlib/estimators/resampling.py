"""Resampling: which chains of a population go on."""

from __future__ import annotations

import torch
from torch import Tensor


def systematic(log_weights: Tensor, generator: torch.Generator) -> Tensor:
    """Systematic resampling: for each new chain, the number of the chain in its population that it continues, [R, N].

    Each chain is continued as often as its share of the weights, float64 `log_weights` [R, N],
    demands, up to rounding.
    """
    populations, chains = log_weights.shape
    device = log_weights.device
    # One random number per population: of all schemes that need no sorting, this one adds the least
    # noise in practice.
    start = torch.rand(populations, 1, dtype=torch.float64, device=device, generator=generator)
    places = (torch.arange(chains, device=device) + start) / chains
    index = torch.searchsorted(log_weights.softmax(1).cumsum(1), places)
    return index.clamp_(max=chains - 1)
