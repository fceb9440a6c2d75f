"""Simple importance sampling: one jump from the start of a path to its target (Salakhutdinov & Murray 2008, eq. 8).

Unbiased, and useless unless start and target nearly agree: the variance of the weights grows exponentially with the
number of units. It is AIS without intermediate distributions, and chapter 04 shows how it fails.
"""

from __future__ import annotations

import torch

from paperlib.annealing import AnnealingPath
from paperlib.estimators.ais import ais
from paperlib.estimators.estimate import PartitionEstimate


def importance_sampling(
    path: AnnealingPath, num_samples: int, generator: torch.Generator | None = None
) -> PartitionEstimate:
    """Estimate ln Z (or a log-ratio, as `ais`) from independent draws of the path's start.

    Parameters and errors are those of `ais`, with `num_samples` in the place of `num_chains`.
    """
    return ais(path, [0.0, 1.0], num_samples, generator)
