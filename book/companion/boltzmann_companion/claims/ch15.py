"""What chapter 15 prints of footnote 2 of the RAISE paper, and of CSL."""

from __future__ import annotations

from collections.abc import Iterator

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.published import find, load_published


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
