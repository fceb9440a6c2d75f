"""What chapter 11 claims of its small models, whose truth is known."""

from __future__ import annotations

from boltzmann_companion.claims.checks import Claims, Rows
from boltzmann_companion.rows import grouped


def poor_q(rows: Rows) -> Claims:
    """Of `inference-poor-q`: what EM learned with the exact posterior and with mean field."""
    _, exact, mean_field = grouped(rows, "model").values()
    pairs = zip(mean_field, exact, strict=True)
    worse = all(em["log_prob"] - field["log_prob"] > 0.1 for field, em in pairs)
    claim = "what mean field learned has a lower likelihood than exact EM's, by 0.1 nats or more"
    yield claim, worse
