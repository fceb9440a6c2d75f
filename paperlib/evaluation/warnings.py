"""Warnings about AIS and RAISE, and about the training images, each a sentence."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paperlib.datasets import base_rate_bias
from paperlib.evaluation.result import FinishedRuns
from paperlib.models.unnormalized_model import UnnormalizedModel

# An open bracket and an estimate that moves are reported only beyond these values, in nats.
_TOLERANCE = 1.0
_MOVING = 0.5
# Largest tolerated divergence between two sets of base rates, in nats.
_FAR = 5.0


def rounded_up(nats: float) -> str:
    """Nats rounded up to two decimals, for statements that something lies within them."""
    hundredths = math.ceil(round(abs(nats) * 100, 6))
    return f"{max(hundredths, 1) / 100:.2f}"


def find_warnings(finished: FinishedRuns, estimated: bool = False) -> tuple[str, ...]:
    """Warnings about the last run of AIS and RAISE; `estimated` says that ln p*(v) is itself an estimate."""
    runs = finished.runs
    or_else = ", or the estimates of ln p*(v) are too low" if estimated else ""
    best = runs[-1]
    gap, found = best.bracket.gap, list(best.bracket.warnings)
    word = best.bracket.verdict(_TOLERANCE)
    if word == "open":
        where = ""
        if abs(best.bracket.median_gap) <= _TOLERANCE:
            where = (
                f" For half of the images the two are within {rounded_up(best.bracket.median_gap)} nats: the gap is due to a few "
                "to which annealing hardly finds the way, and more time may not close it."
            )
        found.append(
            f"The bracket is open by {gap:.1f} nats: AIS says {best.bracket.upper:.2f}, RAISE {best.bracket.lower.mean:.2f}. "
            f"The truth lies between them as far as RAISE is conservative.{where}"
        )
    elif word == "crossed":
        found.append(
            f"RAISE lies above AIS by {-gap:.1f} nats, so that there is no bracket: the annealing model fits these images "
            f"better than the model itself{or_else}."
        )
    # Where AIS's error is infinite, its own warning says so already.
    if _TOLERANCE / 2 < best.bracket.gap_std_error < math.inf:
        found.append(
            f"The two ends of the bracket are known to {best.bracket.gap_std_error:.1f} nats only "
            "(one standard error); their agreement means little."
        )
    if len(runs) > 1:
        moved = best.bracket.upper - runs[-2].bracket.upper
        noise = max(run.bracket.upper_slack for run in runs[-2:])
        if abs(moved) > max(_MOVING, noise):
            found.append(
                f"AIS's estimate still moves: by {moved:+.1f} nats from "
                f"K = {runs[-2].num_steps:,} to {best.num_steps:,}."
            )
    return tuple(found)


def far_off(
    model: UnnormalizedModel, train: Tensor, test: Tensor, weights: Tensor | None = None
) -> tuple[str, ...]:
    """A sentence if independent units with the training images' rates explain the test images [N, D], which may have weights, badly."""
    own, given = (
        model.by_site(torch.sigmoid(base_rate_bias(rows, pseudo_off=0.05, weights=of_rows)))
        for rows, of_rows in ((test, weights), (train, None))
    )
    divergence = torch.xlogy(own, own / given).sum().item()
    if divergence <= _FAR:
        return ()
    return (
        f"The training images' base rates are far from the test images': {divergence:.0f} nats of divergence. Are these the "
        "images that the model was trained on? Annealing may start in the wrong place.",
    )
