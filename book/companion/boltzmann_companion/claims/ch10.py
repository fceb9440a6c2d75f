"""What chapter 10 claims of RAISE for deep models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from boltzmann_companion.claims.checks import Claims, Rows, every, of_stored
from boltzmann_companion.rows import by_model, grouped
from boltzmann_companion.studies.bracket_tables import ends_of, gap_verdict, verdict_of
from paperlib.estimators.bracket import LARGEST_ERROR, BracketVerdict


def simulated(truth: Tensor, log_w: Tensor) -> Claims:
    """Log-weights of the chapter's loop [V, chains], beside p_ann(v) [V]."""
    weights = log_w.exp()
    error = weights.std(1) / math.sqrt(weights.shape[1])
    within = ((weights.mean(1) - truth).abs() < 4 * error).all()
    yield "the loop: mean weights within 4 standard errors of p_ann, for all images", within


def brackets(points: Rows, images: int) -> Claims:
    """The brackets of this run with the most distributions, by the rule of Table 2."""
    final = [curve[-1] for curve in grouped(points, "model", "start").values()]
    held = every(
        _holds_exact(row) if verdict_of(row, "", images) != BracketVerdict.CANNOT_TELL else None
        for row in final
        if row["exact"] is not None
    )
    yield "every exact value lies in the brackets of the largest K", held


def _holds_exact(row: Mapping[str, Any]) -> bool:
    # 4 standard errors of each side, and 0.02 nats for the estimated ln p*(v)
    high = row["ais"] + 4 / 3 * (row["ais"] - row["ais_interval"][0]) + 0.02
    return row["raise"] - 4 * row["raise_error"] - 0.02 <= row["exact"] <= high


@of_stored("raise-figure-7")
def stored_curves(points: Rows) -> Claims:
    """The curves of Figure 7 at the paper's size."""
    verdicts = []
    for rows in by_model(points).values():
        trusted = [row for row in rows if ends_of(row)[2] <= LARGEST_ERROR]
        low = min(trusted, key=lambda row: row["ais"])
        error = ends_of(low)[2]
        verdicts += [
            gap_verdict(low["ais"] - row["raise"], row["raise_error"], error, tolerance=0)
            for row in rows
        ]
    claim = (
        "at the paper's size RAISE exceeds its model's lowest AIS estimate from enough chains "
        "at no K, up to the errors"
    )
    yield claim, BracketVerdict.CROSSED not in verdicts
