"""What chapter 02 claims of chains, and of ways to a posterior."""

from __future__ import annotations

from boltzmann_companion.claims.checks import Claims, Rows, every
from boltzmann_companion.rows import where


def strength(rows: Rows) -> Claims:
    """Of relaxation times by the factor of all parameters."""
    times = {(row["kernel"], row["factor"]): row["time"] for row in rows}
    slower = all(times[name, 3.0] > 3 * times[name, 1.0] for name, _ in times)
    yield "from factor 1 to 3 each of the chains slows down more than threefold", slower


def inference(rows: Rows) -> Claims:
    """Of ways to a posterior."""
    settled = where(rows, propagation_settled="yes")
    better = every(row["propagation"] < row["mean_field"] for row in settled)
    yield "where belief propagation converges it beats mean field", better
