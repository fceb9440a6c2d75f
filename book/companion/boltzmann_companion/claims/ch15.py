"""What chapter 15 claims of its repeats of one estimate, and lines about footnote 2 and CSL."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from boltzmann_companion.claims.checks import Claims, Rows
from boltzmann_companion.published import find, load_published


def repeats_agree(rows: Rows) -> Claims:
    """Of `own-weights-repeats`: 4 standard errors for the largest of a few differences."""
    values = [row["log_z"] for row in rows]
    mean = statistics.fmean(values)
    error = max(row["log_z_error"] for row in rows)
    agree = max(abs(value - mean) for value in values) < 4 * error
    yield (
        "the repeats agree within 4 of their standard errors",
        agree if math.isfinite(error) else None,
    )


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
