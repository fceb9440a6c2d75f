"""What chapter 10 claims of deep Boltzmann machines, of RAISE for deep models, and of Table 2 and Figure 7."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from boltzmann_companion.claims.checks import Check, Claims, Rows, of_stored
from boltzmann_companion.rows import by_model, grouped
from boltzmann_companion.studies.bracket_tables import ends_of, gap_verdict
from paperlib.estimators.bracket import LARGEST_ERROR, BracketVerdict


def draws(bound_error: float, errors: Mapping[int, Tensor]) -> Claims:
    """The average error of the bound, and the errors [N] of importance sampling for each number of draws."""
    few, many = errors[1].mean().item(), errors[500].mean().item()
    yield "a single draw of h2 is closer on average than the bound", abs(few) < abs(bound_error) / 2
    yield "500 draws are within 0.01 nats on average", abs(many) < 0.01


def levels(rows: Rows) -> Iterator[str]:
    """A line for each level of the test average that the text names."""
    labels = {
        "pre-trained": ("100 epochs", 0),
        "after joint training": ("100 epochs", 30),
        "pre-trained for one epoch": ("1 epoch", 0),
        "after joint training from there": ("1 epoch", 30),
        "RBM with 16 hidden units": ("RBM of the first layer", 0),
        "put together without doubling": ("put together without doubling", 0),
    }
    test = _by_epoch(rows, "test")
    yield from (f"{label}: about {test[key]:.0f} nats" for label, key in labels.items())


def learning(rows: Rows) -> Claims:
    """What joint training and pre-training are worth."""
    test, spread = _by_epoch(rows, "test"), _by_epoch(rows, "weights_2")
    before, after = test["100 epochs", 0], test["100 epochs", 30]
    passes = before < test["RBM of the first layer", 0] < after
    yield (
        "joint training adds more than half a nat, and passes the RBM",
        passes and after > before + 0.5,
    )
    silent = spread["1 epoch", 30] < 0.1 * spread["100 epochs", 30]
    yield "without pre-training h2 stays silent: W2 is less than a tenth", silent


def centred(test: float, without: float) -> Claims:
    """The test averages in nats by the centred gradient and by the plain one."""
    claim = "after 100 epochs of pre-training both gradients end within 0.2 nats of each other"
    yield claim, abs(test - without) < 0.2


def _by_epoch(rows: Rows, column: str) -> dict[tuple[str, int], float]:
    return {(row["model"], row["epoch"]): row[column] for row in rows if column in row}


def expected_weights(truth: Tensor, expected: Tensor) -> Claims:
    """p_ann(v) and E[w] for all images [V], by matrices."""
    same = torch.allclose(expected, truth, rtol=1e-12, atol=0)
    yield "the expected weight is p_ann(v), for all 8 images", same


def indices(rows: Rows) -> Claims:
    """The expected weight with the indices of the proof (first row) and with the printed ones."""
    _, *wrong = rows
    claim = "each of the other three combinations errs by more than 0.1 nats at K = 4, and its weights add up to more than 1"
    yield claim, all(row["error_4"] > 0.1 and row["total_4"] > 1.1 for row in wrong)


def simulated(truth: Tensor, log_w: Tensor) -> Claims:
    """Log-weights of the chapter's loop [V, chains], beside p_ann(v) [V]."""
    weights = log_w.exp()
    error = weights.std(1) / math.sqrt(weights.shape[1])
    within = ((weights.mean(1) - truth).abs() < 4 * error).all()
    yield "the loop: mean weights within 4 standard errors of p_ann, for all images", within


def heating(rows: Rows, on_digits: bool) -> Claims:
    """Heating beside importance sampling."""
    # both logarithms err low; a difference of a quarter of a nat would show that one of them is at its end
    agree = all(abs(row["difference"]) < 0.25 for row in rows)
    claim = "heating and importance sampling agree to a quarter of a nat"
    yield Check(claim, agree, required=on_digits)


@of_stored("dbm-starts", required=False)
def stored_starts(rows: Rows) -> Claims:
    """ln Z-hat from the other starts beside that from the base rates of both layers."""
    log_z = {(row["model"], row["start"], row["steps"]): row["log_z"] for row in rows}
    both = "base rates of v and h2"
    highest = max(value - log_z[name, both, steps] for (name, _, steps), value in log_z.items())
    claim = "at the paper's size no other start has a ln Z-hat that is half a nat higher"
    yield claim, highest < 0.5


def table(points: Rows, on_digits: bool) -> Claims:
    """The brackets of this run, of which those with the most distributions are in Table 2."""
    found = grouped(points, "model", "start").values()
    smaller = all(own[-1]["gap"] < own[0]["gap"] for own in found)
    claim = "with more distributions every gap is smaller"
    yield Check(claim, smaller, required=on_digits)
    if on_digits:
        held = all(_holds_exact(own[-1]) for own in found if own[-1]["exact"] is not None)
        yield "every exact value lies in the brackets of the largest K", held


def _holds_exact(row: Mapping[str, Any]) -> bool:
    # 4 standard errors of each side, and 0.02 nats for the estimated ln p*(v)
    high = row["ais"] + 4 / 3 * (row["ais"] - row["ais_interval"][0]) + 0.02
    return row["raise"] - 4 * row["raise_error"] - 0.02 <= row["exact"] <= high


def curves(points: Rows, required: bool) -> Claims:
    """The curves of Figure 7 from this run."""
    found = grouped(points, "model", "start")
    rises = all(
        own[0]["raise"]
        < own[-1]["raise"] + 3 * math.hypot(*(row["raise_error"] for row in (own[0], own[-1])))
        for own in found.values()
    )
    claim = "RAISE with the smallest K is nowhere above its final value"
    yield Check(claim, rises, required=required)


@of_stored("raise-figure-7", required=False)
def stored_curves(points: Rows) -> Claims:
    """The curves of Figure 7 at the paper's size."""
    said = []
    for own in by_model(points).values():
        trusted = [row for row in own if ends_of(row)[2] <= LARGEST_ERROR]
        low = min(trusted, key=lambda row: row["ais"])
        error = ends_of(low)[2]
        said += [
            gap_verdict(low["ais"] - row["raise"], row["raise_error"], error, tolerance=0)
            for row in own
        ]
    claim = "at the paper's size RAISE exceeds its model's lowest AIS estimate from enough chains at no K, up to the errors"
    yield claim, BracketVerdict.CROSSED not in said


def published_excess(averages: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """A line for each of the published averages of the Omniglot DBM, by method and start."""
    lowest = min(averages["AIS"].values())
    yield f"published, lowest AIS average: {lowest} nats, from the uniform start"
    for start, average in averages["RAISE"].items():
        yield f"RAISE from {start}: {average - lowest:.1f} nats above it"


def published_crossed(averages: Mapping[str, Mapping[str, float]]) -> Claims:
    """The published averages of the Omniglot DBM, by method and start."""
    above, below = averages["AIS"], averages["RAISE"]
    lowest = above["uniform"]
    crossed = lowest == min(above.values()) and min(below.values()) - lowest > 6
    yield "both of them are more than 6 nats above that estimate", crossed
