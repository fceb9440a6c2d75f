"""How RAISE's value depends on the number of chains of an image, on images on which it falls short.

RAISE's mean weight is right on average for any number of chains. Its logarithm is too low, but less
so the more chains there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from boltzmann_companion.profiles import Profile
from boltzmann_companion.studies.blank_pages import longest_bracket
from boltzmann_companion.studies.bracket_tables import TABLES
from paperlib.annealing import uniform_betas
from paperlib.numerics import effective_sample_size, leave_one_out, log_mean_exp

_START = "base rates"


def raise_chain_rows(
    size: Profile, model_id: str, counts: Mapping[int, Sequence[int]], share: float, seed: int
) -> list[dict[str, Any]]:
    """Rows of `raise-chains`, for the images with the largest gaps between AIS and RAISE.

    The images are chosen by the stored run of chapter 8 with the largest K; all chains here are new
    ones.

    Parameters
    ----------
    size : Profile
        The size.
    model_id : str
        A model of the table of chapter 8.
    counts : mapping of int to sequence of int
        For each K, numbers of chains in increasing order. The last is how many are run for each
        image; the others take disjoint groups of these.
    share : float
        Share of the images of chapter 8 that are taken.
    seed : int
        The chapter's seed.
    """
    entry, above, below = longest_bracket(size, model_id, seed)
    ais_values = entry.log_p[entry.cases] - above.log_z
    gaps = ais_values - below.log_prob
    worst = gaps.argsort(descending=True)[: max(2, round(share * len(gaps)))]
    rows = [
        {
            "model": entry.name,
            "steps": TABLES[size.name]["raise-table-1"].steps[-1],
            "chosen_by": "yes",
            **_row(ais_values[worst], below.log_weights[worst], below.log_weights.shape[1]),
            # the images were chosen because their gaps are large here, which no error describes
            "gap_error": None,
        }
    ]
    path = entry.path(_START)
    for number, (steps, chains) in enumerate(counts.items()):
        betas = uniform_betas(steps)
        first = seed + 500 + 10 * number
        estimate = size.raise_log_prob(path, entry.v[worst], betas, chains[-1], first)
        for count in chains:
            row = {"model": entry.name, "steps": steps, "chosen_by": "no"}
            rows.append(row | _row(ais_values[worst], estimate.log_weights, count))
    return rows


def _row(ais_values: Tensor, log_weights: Tensor, count: int) -> dict[str, Any]:
    """The mean gap with `count` chains for each image, from disjoint groups of all chains."""
    groups = log_weights[:, : log_weights.shape[1] // count * count].unflatten(1, (-1, count))
    gaps = ais_values[:, None] - log_mean_exp(groups)
    # images have chains of their own
    if gaps.shape[1] > 1:
        errors = gaps.std(1) / math.sqrt(gaps.shape[1])
    else:
        errors = leave_one_out(log_weights).norm(dim=1)
    return {
        "raise_chains": count,
        "images": len(gaps),
        "gap": gaps.mean().item(),
        "gap_error": errors.norm().item() / len(errors),
        "effective_runs": effective_sample_size(groups).mean().item(),
    }
