"""What chapter 11 claims of its small models, whose truth is known."""

from __future__ import annotations

from torch import Tensor

from boltzmann_companion.claims.checks import Claims, Rows
from boltzmann_companion.rows import grouped


def undamped_updates(stable: Tensor) -> Claims:
    """Of the largest stable steps of vectors that cycle without damping [N]."""
    claim = (
        "undamped, most of the vectors that never converge have a fixed point that needs no damping"
    )
    yield claim, (stable > 1).double().mean().item() > 0.5 if len(stable) else None


def poor_q(rows: Rows) -> Claims:
    """Of `inference-poor-q`: the truth, and what EM learned with the exact posterior and with mean field."""
    _, exact, fields = grouped(rows, "model").values()
    pairs = zip(fields, exact, strict=True)
    worse = all(em["log_prob"] - field["log_prob"] > 0.1 for field, em in pairs)
    claim = "what mean field learned has a lower likelihood than exact EM's, by 0.1 nats or more"
    yield claim, worse
