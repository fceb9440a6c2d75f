"""What chapter 04 claims of what it has just computed: the errors of AIS, and missed modes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from scipy.stats import binomtest
from torch import Tensor

from boltzmann_companion.claims.checks import Claims, Rows, above, interval_above
from boltzmann_companion.rows import where
from paperlib.estimators import PartitionEstimate
from paperlib.numerics import softplus


def same_runs(log_weights: Tensor, final_states: Tensor, estimate: PartitionEstimate) -> Claims:
    """Of AIS by hand and by the library, from the same random numbers."""
    close = torch.allclose(log_weights, estimate.log_weights, rtol=0, atol=1e-9)
    same = close and torch.equal(final_states, estimate.final_states)
    yield "the loop above and paperlib's ais give the same weights and final states", same


def biased(errors: Mapping[int, Tensor]) -> Claims:
    """Of many errors of ln Z, by the number of runs."""
    twenty = errors[20]
    standard_error = twenty.std().item() / math.sqrt(len(twenty))
    too_low = above(-twenty.mean().item(), 0, standard_error, errors=4)
    yield "with M = 20 runs ln Z is underestimated, by more than four standard errors", too_low


def coverage(rows: Rows, repetitions: int) -> Claims:
    """Of so many repeated estimates, from the fewest steps and runs to the most."""
    held = round(repetitions * rows[-1]["covered"] / 100)
    share = binomtest(held, repetitions).proportion_ci()
    claim = "50 steps, 100 runs: the 3-sigma interval holds in more than 96 %"
    yield claim, interval_above((share.low, share.high), 0.96)


def noise(states: Mapping[str, Mapping[str, Tensor]], rates: Tensor) -> Claims:
    """Of states [M, D] after 3 and after 5 epochs, given the base rates [D] of the training images."""
    early, late = states.values()
    most = _noise_share(early["exact draws"], rates) > 0.95
    few = _noise_share(late["exact draws"], rates) < 0.01
    claim = "3 epochs: more than 95 % of the exact draws are noise; 5 epochs: less than 1 %"
    yield claim, most and few


def missed(rows: Rows) -> Claims:
    """Of each model from the uniform and from the base-rate start."""
    wrong = where(rows, proven="yes")
    silent = [row["model"] for row in wrong if row["effective_sample_size"] > 80]
    claim = "the narrow mode and 5 epochs are proven too low although more than 80 of 100 runs look effective"
    yield claim, silent == ["narrow mode", "5 epochs"]


def _noise_share(states: Tensor, rates: Tensor) -> float:
    """The share of states [M, D] that fair coins explain better than base rates [D]."""
    log_base_rate = states.double() @ rates - softplus(rates).sum()
    return (log_base_rate < -states.shape[1] * math.log(2)).double().mean().item()
