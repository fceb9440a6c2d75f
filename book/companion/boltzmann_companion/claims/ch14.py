"""What chapter 14 claims: exact answers of a small model, when intervals cover, broken libraries, and the study of `evaluate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from boltzmann_companion.claims.checks import Claims, Rows, of_stored
from boltzmann_companion.rows import grouped, where
from boltzmann_companion.studies.study import WRONG, holds_truth, trusted_rows


def brute_force(rows: Rows, probs: Tensor) -> Claims:
    """Of `trust-enumeration`, and of the library's probabilities of all visible vectors [2^D]."""
    agree = all(row["agrees"] == "yes" for row in rows)
    yield "every quantity of the model agrees with brute force", agree
    claim = "and the probabilities of all visible vectors add up to one"
    yield claim, abs(probs.sum() - 1) < 1e-13


def expectations(rows: Rows) -> Claims:
    """Of `trust-expectations`: exact mean weights, and what the library samples."""
    exact = all(abs(row["exact"]) < 1e-12 for row in rows)
    yield "the mean weight of AIS is Z for every K, to machine precision", exact
    has_mean = all(abs(row["ais"]) < 4 for row in rows)
    yield "the library's AIS has that mean", has_mean
    # 64 means in all: beyond 4.5 standard errors with probability 4e-4, if the weights were normal
    has_mean = all(abs(row["raise"]) < 4.5 for row in rows)
    yield "the library's RAISE has the mean p_ann(v) at every v", has_mean
    # 1,024 entries: beyond 5.5 with probability 4e-5
    right = all(abs(row["transition"]) < 5.5 for row in rows)
    yield "and its transitions have the probabilities of eq. 15 to 17", right


def direction(rows: Rows) -> Claims:
    """Of `trust-direction`: the means of many estimates by AIS and by RAISE."""
    of_ais, of_raise = rows
    high = of_ais["mean"] > 4 * of_ais["std_error"]
    yield "AIS errs high on average, by more than four standard errors", high
    low = of_raise["mean"] < -4 * of_raise["std_error"]
    yield "RAISE errs low on average, by more than four standard errors", low
    both_sides = max(of_ais["right_side"], of_raise["right_side"]) < 100
    yield "neither does so in every repeat", both_sides


def coverage(rows: Rows) -> Claims:
    """Of `trust-coverage`: many and few steps and chains, and a mode that no chain meets."""
    many, _, _, few, mode = rows
    # 99.7 % nominal: fewer than 196 of 200 with probability 2e-4
    yield "many steps, many chains: it covers as it says", many["covered"] >= 98
    less = few["covered"] < many["covered"]
    yield "fewer chains or steps: it covers less often than that", less
    yield "a mode that no chain meets: it never covers", mode["covered"] == 0
    yield "and every such miss is warned about", mode["silent"] == 0


def broken(rows: Rows) -> Claims:
    """Of `trust-mutants`: the library as it is, and broken ones."""
    intact, *mutated = rows
    yield "the library as it is passes", intact["caught"] == "none"
    caught = all(row["caught"] != "none" for row in mutated)
    yield "every broken one is caught", caught


def caught_by(rows: Rows) -> Iterator[str]:
    """A line for each broken library of `trust-mutants`."""
    for row in rows[1:]:
        yield f"{row['changed']}: caught by {row['caught']}"


@of_stored("evaluate-study")
def trusted(rows: Rows) -> Claims:
    """Of evaluations of models with a known answer."""
    right = all(abs(row["value_error"]) <= WRONG for row in trusted_rows(rows))
    yield "every trusted estimate is within a nat of the truth", right


@of_stored("evaluate-study-held-out")
def trusted_of_drawn(rows: Rows) -> Claims:
    """The same of models that were drawn at random."""
    yield from trusted(rows)


@of_stored("evaluate-study-deep")
def trusted_of_deep(rows: Rows) -> Claims:
    """The same of deep models."""
    yield from trusted(rows)


def wrong_but_trusted(rows: Rows) -> str:
    """A line that counts the evaluations that mislead."""
    silent = sum(abs(row["value_error"]) > WRONG for row in trusted_rows(rows))
    return f"wrong estimates that were trusted: {silent}"


def alarms_and_intervals(rows: Rows) -> Iterator[str]:
    """Lines that count the false alarms, and how often the interval of a trusted value holds the truth."""
    alarms = sum(row["outcome"] == "right, suspected" for row in rows)
    yield f"right estimates that were suspected: {alarms}"
    worst = max(abs(row["value_error"]) for row in trusted_rows(rows))
    yield f"largest error of a trusted estimate: {worst:.2f} nats"
    within = sum(map(holds_truth, trusted_rows(rows)))
    number = len(trusted_rows(rows))
    yield f"trusted values: {number}, of which the 95 % interval holds the truth: {within}"


def caught_by_modes_alone(rows: Rows) -> list[Mapping[str, Any]]:
    """Wrong evaluations against which nothing but a run of parallel tempering from a mode of the model's own spoke."""
    return [
        row
        for row in rows
        if abs(row["value_error"]) > WRONG
        and row["findings"]
        and all("starts at a mode" in text for text in row["findings"])
    ]


@of_stored("evaluate-study")
def modes(rows: Rows) -> Claims:
    """Of the search for modes: what it says is missing, and what nothing else noticed."""
    told = [
        row
        for row in rows
        if any(text.startswith("A ladder that starts at a mode") for text in row["findings"])
    ]
    claim = "parallel tempering that is said to have missed a mode is off by a quarter of a nat"
    yield claim, all(abs(row["value_error"]) > 0.25 for row in told)
    yield "it alone caught at least one", len(caught_by_modes_alone(rows)) > 0


@of_stored("evaluate-full-size")
def full_size(rows: Rows) -> Claims:
    """Of models whose ln Z long runs know."""
    trusted = trusted_rows(rows)
    near = all(abs(row["value_error"]) <= 0.5 for row in trusted)
    yield "every trusted estimate is within half a nat of long runs", near
    held = sum(map(holds_truth, trusted)) / len(trusted)
    yield "its 95 % interval holds at least nine times in ten", held >= 0.9
    for minutes, least in ((2, 0.5), (6, 0.8)):
        right = [r for r in where(rows, minutes=minutes) if abs(r["value_error"]) <= 0.5]
        share = len(trusted_rows(right)) / max(1, len(right))
        claim = f"with {minutes} minutes {least:.0%} or more of the right ones are trusted"
        yield claim, share >= least
    off = [row for row in trusted if abs(row["ais_error"]) > 1]
    claim = "AIS is off by more than a nat in some of the trusted evaluations"
    yield claim, len(off) > 0


def full_size_counts(rows: Rows) -> Iterator[str]:
    """A line for each number of minutes."""
    for minutes, members in grouped(rows, "minutes").items():
        trusted = trusted_rows(members)
        held = sum(map(holds_truth, trusted))
        counts = f"{len(members)} evaluations, {len(trusted)} trusted"
        yield f"{minutes} minutes: {counts}, of which the interval holds: {held}"
