"""What chapter 8 claims: RAISE on a model that can be enumerated, and the brackets of its tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from boltzmann_companion.claims.checks import Check, Claims, Rows, of_stored
from boltzmann_companion.rows import by_model, pixels_on, where
from boltzmann_companion.studies.bracket_tables import (
    STARTS,
    closer_verdict,
    ends_of,
    gap_verdict,
)
from paperlib.datasets import BinaryImages
from paperlib.estimators import BracketVerdict


def exact_weights(expected: Mapping[int, tuple[Tensor, Tensor, Tensor]]) -> Claims:
    """By the number of steps: the annealing model, and E[w] and E[ln w] of RAISE, each for all visible vectors, [2^D]."""
    theorem = all(
        torch.allclose(mean, p_ann, rtol=1e-11, atol=0) and bool((mean_log < p_ann.log()).all())
        for p_ann, mean, mean_log in expected.values()
    )
    counts = ", ".join(map(str, expected))
    yield f"K = {counts}: E[w] = p_ann(v) and E[ln w] < ln p_ann(v), for all 64 v", theorem


def printed_index(steps: Sequence[int], printed: Sequence[float]) -> Claims:
    """Sums of the mean weights for these numbers of steps, with the kernel that is printed."""
    more = all(s > 1 + 1 / k for s, k in zip(printed, steps, strict=True))
    yield "with T~_k the sum of the mean weights is above 1 + 1 / K for every K", more


def exact_expectations(rows: Rows) -> Claims:
    """Of `raise-expectations`: what one chain of AIS and of RAISE expects, for data from the model and for a mode off the data."""
    on_model, on_data = (where(rows, model=name) for name in ("little", "spoilt"))
    widths = {row["steps"]: row["ais"] - row["raise"] for row in on_model}
    claim = "data from the model: three times the steps, about a third of the gap"
    yield claim, 0.3 < widths[300] / widths[100] < 0.37
    above = all(row["annealing_model"] > row["raise"] > 0 for row in on_data)
    yield "a mode off the data: RAISE above ln p and below ln p_ann for every K", above


def brackets_close(rows: Rows, required: bool) -> Claims:
    """Of `raise-figure-3`, whose rows are in the order of K."""
    models = by_model(rows)
    final = [where(own, start=start)[-1] for own in models.values() for start in STARTS]
    held = all(_holds_exact(row) for row in final if row["exact"] is not None)
    claim = "at the largest K every exact value is inside both brackets, up to errors"
    yield Check(claim, held, required=required)
    uniform = [where(own, start="uniform") for own in models.values()]
    closes = all(own[0]["gap"] > 0 and abs(own[-1]["gap"]) < own[0]["gap"] for own in uniform)
    claim = "from the uniform start every gap begins open and closes"
    yield Check(claim, closes, required=required)


def _holds_exact(row: Mapping[str, Any]) -> bool:
    """Whether the exact value is inside a bracket, up to errors."""
    # 4 standard errors, in each direction, for this many comparisons
    low = row["raise"] - 4 * row["raise_error"]
    high = row["ais"] + 4 * (row["ais"] - row["ais_interval"][0]) / 3
    return low <= row["exact"] <= high


def less_exact(table: Rows) -> list[str]:
    """What RAISE from the base rates is off by, for the models of `raise-table-1` that are enumerated."""
    return [
        f"{row['model']}: RAISE from the base rates less the exact value: "
        f"{row['base_rate_raise'] - row['exact']:+.1f} nats"
        for row in table
        if row["exact"] is not None
    ]


def csl_below(table: Rows) -> str:
    """For how many models of `raise-table-1` CSL is the lower one of the two."""
    below = sum(row["csl"] < row["base_rate_raise"] for row in table)
    return f"CSL below RAISE from the base rates: {below} of {len(table)} models"


def base_rates_against_uniform(rows: Rows, required: bool) -> Claims:
    """Of `raise-figure-4`, for every K that has both starts."""
    wide, narrow = ({row["steps"]: row for row in rows if row["start"] == s} for s in STARTS)
    pairs = [(ends_of(narrow[k]), ends_of(wide[k])) for k in wide.keys() & narrow.keys()]
    smaller = all(closer_verdict(*pair) != BracketVerdict.CROSSED for pair in pairs)
    claim = "at no K is the gap from base rates larger than that from uniform pixels, up to errors"
    yield Check(claim, smaller, required=required)


def peak_above_exact(rows: Rows) -> str:
    """Where RAISE of `raise-figure-5` is highest above the exact value, and how high it is at the largest K."""
    over = {row["steps"]: row["raise"] - row["exact"] for row in rows}
    peak, last = max(over, key=over.__getitem__), rows[-1]["steps"]
    return (
        f"RAISE is highest above the exact value at K = {peak:,}, by {over[peak]:.1f} nats\n"
        f"at K = {last:,}: {over[last]:+.1f} nats (published -164.11 against -164.50: +0.4)"
    )


@of_stored("raise-figure-5", required=False)
def exception_is_seen(rows: Rows) -> Claims:
    """Whether RAISE exceeds the exact value by more than its error where it is furthest above."""
    peak = max(rows, key=lambda row: row["raise"] - row["exact"])
    said = gap_verdict(peak["exact"] - peak["raise"], peak["raise_error"], 0.0, tolerance=0)
    yield (
        "the exception of the paper's Figure 5 is seen in our model, too",
        said == BracketVerdict.CROSSED,
    )


def bad_mode(rows: Rows, required: bool) -> Claims:
    """Of `raise-figure-5`, for a model with a bad mode."""
    exceeds = any(row["raise"] - row["exact"] > 4 * row["raise_error"] for row in rows)
    claim = "RAISE exceeds the exact value by more than 4 standard errors at some K"
    yield Check(claim, exceeds, required=required)
    low, high = rows[-1]["ais_interval"]
    claim = "at the largest K the AIS interval holds the exact value"
    yield Check(claim, low <= rows[-1]["exact"] <= high, required=required)


def pixels_of_draws(own: Tensor, annealed: Tensor, digits: BinaryImages) -> Claims:
    """How many pixels are on in exact draws of the RBM [N, D], in draws of its annealing model [M, D], and in the images."""
    of_rbm, of_annealed, of_test = (pixels_on(draws) for draws in (own, annealed, digits.test))
    claim = "draws of the annealing model have about as many pixels on as test images, those of the RBM far fewer"
    yield claim, abs(of_annealed - of_test) < abs(of_rbm - of_test)
