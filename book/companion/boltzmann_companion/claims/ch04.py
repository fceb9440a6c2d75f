"""What chapter 04 claims of what it has just computed: importance sampling, the errors of AIS, its start and schedule, and missed modes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

import torch
from torch import Tensor

from boltzmann_companion.claims.checks import Claims, Rows, inside, largest_gap
from boltzmann_companion.rows import where
from paperlib.estimators import PartitionEstimate
from paperlib.numerics import softplus


def formula(rows: Rows) -> Claims:
    """Of independent units, from few to many."""
    few = rows[-1]["measured"] - rows[-1]["predicted"] < -5
    yield "with the most units the draws show hardly any of the variance", few


def patches(rows: Rows, num_samples: int) -> Claims:
    """Of RBMs on growing patches, from the uniform start."""
    whole = where(rows, model="RBM, uniform start")[-1]
    wrong = abs(whole["log_z"] - whole["exact_log_z"]) > 1
    large_off = wrong and whole["effective_sample_size"] < num_samples / 1_000
    yield "whole image: off by over a nat, under 0.1 % of the draws effective", large_off


def same_runs(log_weights: Tensor, final_states: Tensor, estimate: PartitionEstimate) -> Claims:
    """Of AIS by hand and by the library, from the same random numbers."""
    close = largest_gap(log_weights, estimate.log_weights) < 1e-9
    same = close and torch.equal(final_states, estimate.final_states)
    yield "the loop above and paperlib's ais give the same weights and final states", same


def biased(errors: Mapping[int, Tensor]) -> Claims:
    """Of many errors of ln Z, by the number of runs."""
    twenty = errors[20]
    standard_error = twenty.std().item() / math.sqrt(len(twenty))
    too_low = twenty.mean().item() < -4 * standard_error
    yield "with M = 20 runs ln Z is significantly underestimated", too_low


def coverage(rows: Rows) -> Claims:
    """Of repeated estimates, from the fewest steps and runs to the most."""
    yield "1 step, 20 runs: the 3-sigma interval holds in less than 90 %", rows[0]["covered"] < 90
    yield "50 steps, 100 runs: it holds in at least 97 %", rows[-1]["covered"] >= 97
    low, high = (sum(row[key] for row in rows) for key in ("too_low", "too_high"))
    yield "of all misses, more than five in six lie below the truth", low > 5 * high


def on_the_way(speed: Mapping[str, Tensor]) -> Claims:
    """Of the spread of all steps of the runs from either start."""
    cheaper = speed["base-rate"].square().mean() < speed["uniform"].square().mean()
    yield "the base-rate path is the shorter one", cheaper


def schedules(rows: Rows) -> Claims:
    """Of starts and schedules at the same work, on the small digits."""
    starts, kinds = ("uniform", "base-rate"), ("equal steps", "2008")
    cells = {each: where(rows, start=each[0], schedule=each[1]) for each in product(starts, kinds)}
    better = all(
        near["error"] < far["error"]
        for kind in kinds
        for near, far in zip(cells["base-rate", kind], cells["uniform", kind], strict=True)
    )
    yield "base rates beat the uniform start in every row", better
    better = all(
        equal["error"] < published["error"]
        for start in starts
        for equal, published in zip(cells[start, "equal steps"], cells[start, "2008"], strict=True)
    )
    yield "equal steps beat the 2008 schedule on this model in every row", better
    hasty = cells["uniform", "2008"][0]
    overconfident = hasty["error"] > 3 * hasty["sigma"]
    yield "hastiest setting: error more than 3 times the reported sigma", overconfident


def noise(states: Mapping[str, Mapping[str, Tensor]], rates: Tensor) -> Claims:
    """Of states [M, D] after 3 and after 5 epochs, given the base rates [D] of the training images."""
    early, late = states.values()
    most = _noise_share(early["exact draws"], rates) > 0.95
    few = _noise_share(late["exact draws"], rates) < 0.01
    claim = "3 epochs: more than 95 % of the exact draws are noise; 5 epochs: less than 1 %"
    yield claim, most and few
    stuck = _noise_share(late["AIS, uniform start"], rates) == 1
    sound = _noise_share(late["AIS, base-rate start"], rates) == 0
    claim = "5 epochs: all runs from the uniform start end in noise, none from the base-rate start"
    yield claim, stuck and sound


def missed(rows: Rows) -> Claims:
    """Of each model from the uniform and from the base-rate start."""
    wrong = where(rows, proven="yes")
    silent = [row["model"] for row in wrong if row["effective_sample_size"] > 80]
    claim = "the narrow mode and 5 epochs are proven too low although more than 80 of 100 runs look effective"
    yield claim, silent == ["narrow mode", "5 epochs"]
    repaired = all(
        inside(row["interval_3_sigma"], row["exact_log_z"])
        or abs(row["log_z"] - row["exact_log_z"]) < 2
        for row in where(rows, start="base-rate")
    )
    yield "from base rates, within 2 nats or the interval", repaired


def _noise_share(states: Tensor, rates: Tensor) -> float:
    """The share of states [M, D] that fair coins explain better than base rates [D]."""
    log_base_rate = states.double() @ rates - softplus(rates).sum()
    return (log_base_rate < -states.shape[1] * math.log(2)).double().mean().item()
