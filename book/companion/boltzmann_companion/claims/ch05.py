"""What chapter 05 claims of its tables: AIS beside the exact ln Z, ratios, and the exact likelihood along training."""

from __future__ import annotations

import math
from itertools import pairwise

from scipy.special import chdtri

from boltzmann_companion.claims.checks import Check, Claims, Rows, inside, of_stored
from boltzmann_companion.rows import by_model, published_numbers, where

# Of a right AIS, how often chance alone makes `unbiased` fail.
_FALSE_ALARMS = 1e-3


@of_stored("sm2008-table-1")
def intervals(table: Rows) -> Claims:
    """Of Table 1: AIS's intervals beside the exact ln Z."""
    held = all(inside(row["interval_3_sigma"], row["exact_log_z"]) for row in table)
    sure = all(row["warnings"] == "none" for row in table)
    yield Check("every 3-sigma interval holds the true ln Z", held, required=sure)


def more_runs(points: Rows) -> Claims:
    """Of this run's Figure 3: its intervals beside the exact ln Z."""
    honest = all(
        inside(point["interval_3_sigma"], point["exact_log_z"]) or point["warned"] == "yes"
        for point in points
    )
    yield Check("every interval holds the truth or warns", honest, required=False)


@of_stored("sm2008-figure-3")
def unbiased(points: Rows) -> Claims:
    """Of Figure 3: the mean weight of all runs of a model less Z, in standard errors, for all models together."""
    errors = [_pooled_error(own) for own in by_model(points).values()]
    # The mean weight is unbiased, so each of them is standard normal but for the skewness of the weights.
    chance = chdtri(len(errors), _FALSE_ALARMS)
    claim = "all runs together pass a chi-square test with 1 false alarm in 1,000"
    yield claim, sum(error**2 for error in errors) < chance


def _pooled_error(points: Rows) -> float:
    """The mean weight of independent sets of runs less the exact Z, in standard errors."""
    mean = variance = 0.0
    for row in points:
        share = row["runs"] * math.exp(row["log_z"] - row["exact_log_z"])
        relative_std = math.expm1(row["interval_3_sigma"][1] - row["log_z"]) / 3
        mean, variance = mean + share, variance + (share * relative_std) ** 2
    return (mean - sum(row["runs"] for row in points)) / math.sqrt(variance)


@of_stored("sm2008-figure-3")
def ten_thousand_runs(points: Rows) -> Claims:
    """The largest numbers of runs on MNIST."""
    many = where(points, runs=10_000)
    closer = bool(many) and all(abs(row["log_z"] - row["exact_log_z"]) < 0.1 for row in many)
    yield "with 10,000 runs every estimate is within 0.1 nats of the truth", closer


def both_directions(ratios: Rows, on_digits: bool) -> Claims:
    """Of this run's ratios, one from a long chain and two from exact draws: the last two beside the true ratio."""
    exact_starts = ratios[1:]
    intervals = [row["interval_3_sigma"] for row in exact_starts]
    truth = exact_starts[0]["exact"]
    bracketed = min(low for low, _ in intervals) <= truth <= max(high for _, high in intervals)
    yield "the intervals of the two directions bracket the true log-ratio", bracketed
    # at the paper's size the path is too long for 100 runs, as the chapter says
    if on_digits:
        missed = all(
            abs(row["without_correction"] - truth) > high - low
            for row, (low, high) in zip(exact_starts, intervals, strict=True)
        )
        yield "without the correction the truth is missed by more than the whole interval", missed


@of_stored("sm2008-ratios")
def ratio_on_mnist(ratios: Rows) -> Claims:
    """One direction is wrong from either start, and the other says so."""
    *forward, backward = ratios
    silent = all(
        not inside(row["interval_3_sigma"], row["exact"]) and row["warnings"] == "none"
        for row in forward
    )
    yield "from CD1(25) neither interval holds the truth, and nothing warns", silent
    too_low = forward[-1]["log_ratio"] - forward[-1]["exact"] < -3
    yield "from exact draws of CD1(25), more than 3 nats too low", too_low
    # of its weights, as no other warning would give the error away
    warned = backward["warnings"] != "none" and backward["effective_sample_size"] < 9
    yield "the other way round, the library warns", warned


def falls(looks: Rows) -> Claims:
    """Of this run's training: the exact likelihood does not only rise."""
    late = [[row["test"] for row in own if row["epoch"] >= 100] for own in by_model(looks).values()]
    fallen = all(any(b < a for a, b in pairwise(values)) for values in late)
    yield "after epoch 100 every model's test log-probability also falls between two looks", fallen


@of_stored("sm2008-training-path")
def late_looks(looks: Rows) -> Claims:
    """The exact likelihood of the MNIST models from epoch 100 on, beside the published one."""
    below = {}
    for model, own in by_model(looks).items():
        published = published_numbers(model, "Avg. Test log-prob. / true")[0]
        below[model] = [published < row["test"] for row in own if row["epoch"] >= 100]
    among = all({*below[model]} == {True, False} for model in ("CD1(25)", "CD3(25)"))
    claim = "from epoch 100 on CD1(25) and CD3(25) pass their published values; CD1(20) lies above"
    yield claim, among and all(below["CD1(20)"])
