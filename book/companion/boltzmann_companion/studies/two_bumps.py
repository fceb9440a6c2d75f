"""Runs of AIS on the line of two bumps of chapter 4, with every state on the way.

`ais` keeps the last states alone. The chapter's player draws all of them, so they are walked here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing import AnnealingPath


@dataclass(frozen=True)
class Particles:
    """Particles on their way along a path, with their weights so far.

    Attributes
    ----------
    betas : list of float
        The betas at T + 1 moments.
    places : Tensor, shape [T + 1, N]
        Places of the particles, int64.
    log_weights : Tensor, shape [T + 1, N]
        float64. The mean of the weights at a moment estimates Z_beta / Z_0.
    """

    betas: list[float]
    places: Tensor
    log_weights: Tensor


def anneal(path: AnnealingPath[Any], betas: list[float], number: int, seed: int) -> Particles:
    """Runs of AIS: from the start to the target (Salakhutdinov & Murray 2008, section 3).

    Parameters
    ----------
    path : AnnealingPath
        A path whose states are places.
    betas : list of float
        From 0 to 1.
    number : int
        Number of particles.
    seed : int
        Seed of all draws.
    """
    generator = torch.Generator().manual_seed(seed)
    state = path.sample_start(number, generator)
    places = [state]
    weights = [torch.zeros(number, dtype=torch.float64)]
    for beta, following in pairwise(betas):
        weights.append(weights[-1] + path.log_ratio(state, beta, following))
        state = path.transition(state, following, generator)
        places.append(state)
    return Particles(betas, torch.stack(places), torch.stack(weights))
