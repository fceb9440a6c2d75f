"""Resampling: which chains of a population go on."""

from __future__ import annotations

import torch
from torch import Tensor


def systematic(log_weights: Tensor, generator: torch.Generator) -> Tensor:
    """Systematic resampling: which chain of its population each new chain continues, [R, N].

    Each chain is continued as often as its share of the weights demands, up to rounding. Their
    logarithms are `log_weights`, float64 [R, N].
    """
    populations, chains = log_weights.shape
    device = log_weights.device
    # One random number per population: of all schemes that need no sorting, this one adds the least
    # noise in practice.
    start = torch.rand(populations, 1, dtype=torch.float64, device=device, generator=generator)
    places = (torch.arange(chains, device=device) + start) / chains
    index = torch.searchsorted(log_weights.softmax(1).cumsum(1), places)
    return index.clamp_(max=chains - 1)
