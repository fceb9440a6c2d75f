"""What chapter 04 claims of its runs: the library's AIS, error bars, and a missed mode."""

from __future__ import annotations

import torch
from scipy.stats import binomtest
from torch import Tensor

from boltzmann_companion.claims.checks import Claims, Rows, inside, interval_above
from paperlib.estimators import PartitionEstimate


def same_runs(log_weights: Tensor, final_states: Tensor, estimate: PartitionEstimate) -> Claims:
    """Of AIS by hand and by the library, from the same random numbers."""
    close = torch.allclose(log_weights, estimate.log_weights, rtol=0, atol=1e-9)
    same = close and torch.equal(final_states, estimate.final_states)
    yield "the loop above and paperlib's ais give the same weights and final states", same


def coverage(rows: Rows, repetitions: int) -> Claims:
    """Of so many repeated estimates, from the fewest effective runs to the most."""
    held = round(repetitions * rows[-1]["covered"] / 100)
    share = binomtest(held, repetitions).proportion_ci()
    claim = "with the most effective runs the 3-sigma interval holds in more than 96 %"
    yield claim, interval_above((share.low, share.high), 0.96)


def missed(rows: Rows) -> Claims:
    """Of the line, from the start that misses a bump and from another one."""
    wrong, right = rows
    silent = wrong["effective_sample_size"] > 0.9 * wrong["runs"]
    too_low = wrong["interval_3_sigma"][1] < wrong["exact_log_z"]
    claim = "from the left more than 90 of 100 runs are effective and the interval is too low"
    yield claim, silent and too_low
    holds = inside(right["interval_3_sigma"], right["exact_log_z"])
    yield "from the middle the interval holds the truth", holds
