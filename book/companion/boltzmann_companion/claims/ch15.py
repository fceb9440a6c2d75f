"""What chapter 15 claims of its tables about the authors' images, weights and recipe."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from itertools import pairwise

from boltzmann_companion.claims.checks import Check, Claims, Row, Rows
from boltzmann_companion.published import find, load_published
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


def readings(rows: Rows) -> Iterator[str]:
    """How far each set of images of `one-minus-eight` is from the RAISE paper's footnote 2, and which sets reach it."""
    printed = _printed(where="Footnote 2")
    for row in rows:
        off = row["one_minus_eight"] - printed
        yield f"{row['model']}: {off:+.1f} nats from the printed {printed}"
    # as rounded to a tenth of a nat
    reached = [r["model"] for r in rows if r["lowest"] - 0.05 <= printed <= r["highest"] + 0.05]
    yield f"binarisations below it and above it: {', '.join(reached) or 'none'}"


def where_csl_is_met(rows: Rows) -> str:
    """Between which numbers of states of `csl-kept-states` CSL passes what the RAISE paper prints."""
    printed = _printed(where="Table 1", column="CSL")
    fewer = max(row["csl_states"] for row in rows if row["csl"] < printed)
    more = min(row["csl_states"] for row in rows if row["csl"] >= printed)
    return (
        f"CSL with every state passes the printed {printed} between {fewer:,} and {more:,} states"
    )


def _printed(**where: str) -> float:
    """What the RAISE paper prints for the authors' model."""
    [entry] = find(load_published(), paper="raise2015", row="mnistCD25-500", **where)
    assert entry.value is not None
    return entry.value


def more_states_are_better(kept: Rows, exact: Rows) -> Claims:
    """Of `csl-kept-states` and `csl-exact-draws`."""
    values = [row["csl"] for row in kept]
    yield "CSL is higher with every larger number of kept states", values == sorted(values)
    below = all(row["csl"] - 3 * row["csl_error"] < row["ais"] for row in kept)
    yield "it nowhere exceeds AIS by three of its errors", below
    shorter = all(
        few["short"] > many["short"]
        for few, many in pairwise(exact)
        if few["model"] == many["model"]
    )
    yield "with more exact draws it falls short by less", shorter


def extra_seed(judged: Row) -> Claims:
    """Of a row of `same_recipe.length_rows` on `digits`: one more seed of the same recipe, after 20 epochs, is not set apart."""
    for key in QUANTITIES:
        yield f"the {key} of the extra seed is typical after 20 epochs", "20" in str(judged[key])
