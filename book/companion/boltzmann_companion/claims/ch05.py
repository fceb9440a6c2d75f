"""What chapter 05 claims of its tables: AIS beside the exact ln Z, ratios, and the exact likelihood along training."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from scipy.special import chdtri

from boltzmann_companion.claims.checks import Check, Claims, Rows, inside, of_stored
from boltzmann_companion.rows import by_model, published_numbers, where

# Of a right AIS, how often chance alone makes `unbiased` fail.
_FALSE_ALARMS = 1e-3


def intervals_and_bounds(table: Rows) -> Claims:
    """Of this run's Table 1: the exact ln Z beside AIS's intervals and the proven bounds."""
    for row in table:
        held = inside(row["interval_3_sigma"], row["exact_log_z"])
        bounded = row["lower_bound"] <= row["exact_log_z"] + 1e-9
        claim = f"{row['model']}: true ln Z inside the 3-sigma interval"
        yield Check(claim, held, required=row["warnings"] == "none")
        yield f"{row['model']}: true ln Z above the proven bound", bounded


def more_runs(points: Rows) -> Claims:
    """Of this run's Figure 3: what more runs do to the intervals."""
    for model, own in by_model(points).items():
        width = [point["interval_3_sigma"][1] - point["log_z"] for point in own]
        covered = all(
            inside(point["interval_3_sigma"], point["exact_log_z"]) or point["warned"] == "yes"
            for point in own
        )
        yield f"{model}: more runs, shorter upper error bar", width[-1] < width[0]
        yield Check(f"{model}: every interval holds the truth or warns", covered, required=False)


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


@of_stored("sm2008-table-1")
def intervals_on_mnist(table: Rows) -> Claims:
    """The exact ln Z of the MNIST models beside AIS's intervals."""
    for row in table:
        held = inside(row["interval_3_sigma"], row["exact_log_z"])
        claim = f"{row['model']} on MNIST: true ln Z {row['exact_log_z']:.2f}"
        claim += "; inside AIS's 3-sigma interval"
        yield Check(claim, held, required=row["warnings"] == "none")


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
    honest = all(
        low <= truth <= high or row["warnings"] != "none"
        for row, (low, high) in zip(exact_starts, intervals, strict=True)
    )
    # at the paper's size the path is too long for 100 runs, as the chapter says
    claim = "from exact draws, each interval holds the truth or the library warns"
    yield Check(claim, honest, required=on_digits)
    if on_digits:
        missed = all(
            abs(row["without_correction"] - truth) > high - low
            for row, (low, high) in zip(exact_starts, intervals, strict=True)
        )
        yield "without the correction the truth is missed by more than the whole interval", missed


def held_or_warned(ratios: Rows) -> Iterator[str]:
    """A line for each estimate of the ratio: whether its interval holds the truth, and whether the library warns."""
    for row in ratios:
        low, high = row["interval_3_sigma"]
        answers = (low <= row["exact"] <= high, row["warnings"] != "none")
        inside, warned = ("yes" if found else "no" for found in answers)
        yield f"{row['start']}: truth inside: {inside}; warned: {warned}"


@of_stored("sm2008-ratios")
def ratio_on_mnist(ratios: Rows) -> Claims:
    """One direction is wrong, and the other says so."""
    _, forward, backward = ratios
    too_low = forward["log_ratio"] - forward["exact"] < -3
    yield "from exact draws of CD1(25), more than 3 nats too low", too_low
    # of its weights, as no other warning would give the error away
    warned = backward["warnings"] != "none" and backward["effective_sample_size"] < 9
    yield "the other way round, the library warns", warned


def falls(looks: Rows) -> Claims:
    """Of this run's training: the exact likelihood does not only rise."""
    for model, own in by_model(looks).items():
        late = [row["test"] for row in own if row["epoch"] >= 100]
        claim = f"{model}: after epoch 100 the test log-probability also falls between two looks"
        yield claim, min(after - before for before, after in pairwise(late)) < 0


def visited(looks: Rows) -> Iterator[str]:
    """A line for each model on MNIST: the values of its looks from epoch 100 on, beside the published one."""
    for model, late in _late(looks).items():
        value = published_numbers(model, "Avg. Test log-prob. / true")[0]
        place = "within" if min(late) <= value <= max(late) else "outside"
        yield f"{model}, epochs 100 to 300: {min(late):.1f} to {max(late):.1f} nats; published {value}: {place}"


@of_stored("sm2008-training-path")
def late_looks(looks: Rows) -> Claims:
    """The exact likelihood of the MNIST models goes on to move."""
    moves = all(max(late) - min(late) > 5 for late in _late(looks).values())
    yield "for every model these looks are more than 5 nats apart", moves


def _late(looks: Rows) -> dict[str, list[float]]:
    """The test log-probabilities of each model from epoch 100 on."""
    return {
        model: [row["test"] for row in own if row["epoch"] >= 100]
        for model, own in by_model(looks).items()
    }
