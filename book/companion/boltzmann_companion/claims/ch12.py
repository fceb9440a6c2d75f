"""What chapter 12 claims of recognition networks, wake-sleep, and AIS of a directed model."""

from __future__ import annotations

from boltzmann_companion.claims.checks import Claims, Rows, above
from boltzmann_companion.studies.learned_inference import Assessment


def amortised(rows: Rows) -> Claims:
    """Of mean field from the prior and from three networks."""
    prior, _, _, two = rows
    claim = "from the best network mean field ends at better maxima than from the prior"
    yield claim, two["end"] < prior["end"]


def wake_sleep(rows: Rows) -> Claims:
    """Of wake-sleep beside exact learning, along training."""
    last = rows[-1]
    claim = "exact learning is ahead of wake-sleep, by less than half a nat"
    yield claim, 0 < last["exact"] - last["log_prob"] < 0.5


def directions(rows: Rows, asleep: Assessment) -> Claims:
    """Of networks for two finished models; for that of exact learning the one by the bound is then trained by sleep."""
    *_, by_bound = rows
    claim = "sleep lowers the bound of a network that was trained by it"
    yield claim, asleep.bound < by_bound["bound"] - 0.02


def directed(rows: Rows, network_gap: float) -> Claims:
    """Of AIS, from 1 to 100 steps."""
    *_, thirty, _ = rows
    claim = "30 steps and one chain are closer than the network's bound"
    yield claim, above(network_gap, -thirty["one"], thirty["one_error"])
