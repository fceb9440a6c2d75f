"""What chapter 15 claims of its tables about the authors' images, weights and recipe."""

from __future__ import annotations

import statistics

from boltzmann_companion.claims.checks import Check, Claims, Row, Rows
from boltzmann_companion.studies.same_recipe import QUANTITIES


def coin_flips(rows: Rows) -> Claims:
    """Of `exact-binarization`: the first row is the binarisation of the training, the others are fresh."""
    as_trained, *anew = rows
    claim = "the training images are more probable as they were seen than ever anew"
    yield claim, as_trained["train"] > max(row["train"] for row in anew)
    claim = "the gap is wider as they were seen than ever anew"
    yield claim, as_trained["gap"] > max(row["gap"] for row in anew)


def repeats_agree(rows: Rows) -> Claims:
    """Of `own-weights-repeats`: 4 standard errors for the largest of a few differences."""
    values = [row["log_z"] for row in rows]
    mean = statistics.fmean(values)
    far = max(abs(value - mean) for value in values) / max(row["log_z_error"] for row in rows)
    yield "the repeats agree within 4 of their standard errors", far < 4


def pilot_helps(rows: Rows, required: bool) -> Claims:
    """Of `own-weights-schedules`: even spacing comes first, the pilot's last; at the papers' size it comes close and no nearer."""
    evenly, _, piloted = rows
    claim = "the pilot's schedule has less variance of ln w than even spacing"
    yield Check(claim, piloted["variance"] < evenly["variance"], required=required)


def extra_seed(judged: Row) -> Claims:
    """Of a row of `same_recipe.length_rows` on `digits`: one more seed of the same recipe, after 20 epochs, is not set apart."""
    for key in QUANTITIES:
        yield f"the {key} of the extra seed is typical after 20 epochs", "20" in str(judged[key])
