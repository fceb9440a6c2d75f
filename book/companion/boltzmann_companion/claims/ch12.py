"""What chapter 12 claims of wake-sleep, and of AIS of a directed model."""

from __future__ import annotations

from boltzmann_companion.claims.checks import Claims, Rows, above


def wake_sleep(rows: Rows) -> Claims:
    """Of wake-sleep beside exact learning, along training."""
    last = rows[-1]
    claim = "exact learning is ahead of wake-sleep, by less than half a nat"
    yield claim, 0 < last["exact"] - last["log_prob"] < 0.5


def directed(rows: Rows, network_gap: float) -> Claims:
    """Of AIS, from 1 to 100 steps."""
    *_, thirty, _ = rows
    claim = "30 steps and one chain are closer than the network's bound"
    yield claim, above(network_gap, -thirty["one"], thirty["one_error"])
