"""Simple importance sampling: one jump from the start of a path to its target.

The estimator is eq. 8 of Salakhutdinov & Murray (2008). It is AIS without intermediate
distributions. It is unbiased, but useless unless the start and the target nearly agree: the
variance of the weights grows exponentially with the number of units.

Used in chapter: importance-sampling-and-ais.
"""

from __future__ import annotations

from typing import Any

import torch

from paperlib.annealing import AnnealingPath
from paperlib.estimators.ais import ais, summarize
from paperlib.estimators.estimate import PartitionEstimate
from paperlib.torch_settings import plain_torch

_ADVICE = "anneal instead: ais with a schedule of betas needs far fewer draws"


@plain_torch(gradients=False)
def importance_sampling(
    path: AnnealingPath[Any], num_samples: int, generator: torch.Generator | int | None = None
) -> PartitionEstimate:
    """Estimate ln Z (or a log-ratio, as `ais` does) from independent draws from the path's start.

    Parameters and errors are those of `ais`, with `num_samples` in place of `num_chains`.

    Examples
    --------
    >>> from paperlib.annealing import BaseRatePath
    >>> from paperlib.models import RBM
    >>> from paperlib.numerics import seeded_generator
    >>> rbm = RBM([[0.1, -0.1], [0.0, 0.2]], [0.0, 0.5], [0.2, 0.0])
    >>> importance_sampling(BaseRatePath(rbm), 1_000, seeded_generator(0)).log_weights.shape
    torch.Size([1000])
    """
    estimate = ais(path, [0.0, 1.0], num_samples, generator, check=False)
    # A single jump has no schedule, so the advice to use more betas does not apply.
    return summarize(path, estimate.log_weights, estimate.final_states, advice=_ADVICE)
