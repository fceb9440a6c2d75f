"""What chapter 8 claims: of RAISE by enumeration, of brackets, and of models with a bad mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from boltzmann_companion.claims.checks import Claims, Rows, above, every
from boltzmann_companion.rows import by_model, where
from boltzmann_companion.studies.bracket_tables import STARTS, verdict_of
from paperlib.estimators import Bracket, BracketVerdict


def exact_weights(expected: Mapping[int, tuple[Tensor, Tensor, Tensor]]) -> Claims:
    """Of the annealing model, E[w] and E[ln w] of RAISE for all v [2^D], by the number of steps."""
    theorem = all(
        torch.allclose(mean, p_ann, rtol=1e-11, atol=0) and bool((mean_log < p_ann.log()).all())
        for p_ann, mean, mean_log in expected.values()
    )
    counts = ", ".join(map(str, expected))
    yield f"K = {counts}: E[w] = p_ann(v) and E[ln w] < ln p_ann(v), for every v", theorem


def brackets_close(rows: Rows, images: int, tolerance: float) -> Claims:
    """Of `raise-figure-3`: the brackets of the largest K, which comes last, by Table 1's rule."""
    models = by_model(rows).values()
    final = [where(curves, start=start)[-1] for curves in models for start in STARTS]
    verdicts = [verdict_of(row, "", images, tolerance) for row in final]
    held = every(
        every([_closed(verdict), row["exact"] is None or _holds_exact(row)])
        for row, verdict in zip(final, verdicts, strict=True)
    )
    claim = "at the largest K every bracket is closed, and around the exact value where it is known"
    yield claim, held


def _closed(verdict: BracketVerdict) -> bool | None:
    """Whether a bracket is closed; None if its verdict is that it cannot be told."""
    if verdict == BracketVerdict.CANNOT_TELL:
        return None
    return verdict == BracketVerdict.CLOSED


def _holds_exact(row: Mapping[str, Any]) -> bool:
    """Whether the exact value is inside a bracket, up to errors."""
    # 4 standard errors in each direction, since there are so many comparisons
    low = row["raise"] - 4 * row["raise_error"]
    high = row["ais"] + 4 * (row["ais"] - row["ais_interval"][0]) / 3
    return low <= row["exact"] <= high


def bad_mode(rows: Rows) -> Claims:
    """Of `raise-figure-5`, for a model with a bad mode."""
    answers = [above(row["raise"], row["exact"], row["raise_error"], errors=4) for row in rows]
    if True in answers:
        exceeds = True
    elif None in answers:
        exceeds = None
    else:
        exceeds = False
    yield "RAISE exceeds the exact value by more than 4 standard errors at some K", exceeds


def lost_mode(bracket: Bracket, exact: float, tolerance: float) -> Claims:
    """Of a bracket around a model with a mode that no chain finds."""
    verdict = bracket.verdict(tolerance)
    too_high = above(bracket.lower.mean, exact + 10, bracket.lower.test_set_std_error)
    claim = "AIS and RAISE agree, on a value that is too high by more than 10 nats"
    yield claim, every([_closed(verdict), too_high])
