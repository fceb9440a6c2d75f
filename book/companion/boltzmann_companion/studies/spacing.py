"""Whether AIS's log-weights vary less with the 2008 paper's betas than with evenly spaced ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing import AnnealingPath, uniform_betas
from paperlib.estimators import ais
from paperlib.numerics import seeded_generator

# Estimates whose weights are taken together.
_RUNS = 3


def spacing_rows(
    paths: Mapping[str, AnnealingPath], betas: Tensor, num_chains: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Rows of `spacing-of-betas`: the variance of the log-weights for each path and spacing.

    Parameters
    ----------
    paths : mapping of str to AnnealingPath
        Paths to the models, by name.
    betas : Tensor, shape [K + 1]
        The paper's; even spacing has as many steps.
    num_chains : int
        AIS chains of each of the three estimates.
    seed : int
        That of the first estimate; the same for all.
    """
    spacings = {"of the 2008 paper": betas, "evenly spaced": uniform_betas(len(betas) - 1)}
    for (name, path), (schedule, spacing) in product(paths.items(), spacings.items()):
        runs = [
            ais(path, spacing, num_chains, seeded_generator(seed + number), False)
            for number in range(_RUNS)
        ]
        log_w = torch.cat([run.log_weights for run in runs])
        squares = (log_w - log_w.mean()).square()
        yield {
            "model": name,
            "schedule": schedule,
            "num_steps": len(spacing) - 1,
            "runs": len(log_w),
            "variance": log_w.var().item(),
            "variance_error": squares.std().item() / len(log_w) ** 0.5,
        }
