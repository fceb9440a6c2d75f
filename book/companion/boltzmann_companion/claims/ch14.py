"""What chapter 14 claims: which way estimates err, when intervals cover, broken libraries, and the study of `evaluate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from boltzmann_companion.claims.checks import Check, Claims, Rows, of_stored
from boltzmann_companion.rows import grouped
from boltzmann_companion.studies.study import WRONG, holds_truth, trusted_rows


def direction(rows: Rows) -> Claims:
    """Of `trust-direction`: the means of many estimates by AIS and by RAISE."""
    of_ais, of_raise = rows
    high = of_ais["mean"] > 4 * of_ais["std_error"]
    yield "AIS errs high on average, by more than four standard errors", high
    low = of_raise["mean"] < -4 * of_raise["std_error"]
    yield "RAISE errs low on average, by more than four standard errors", low


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
    caught = all(row["caught"] != "none" for row in rows[1:])
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
    told = [row for row in rows if any("starts at a mode" in text for text in row["findings"])]
    claim = "parallel tempering that is said to have missed a mode is off by a quarter of a nat"
    yield claim, all(abs(row["value_error"]) > 0.25 for row in told)
    yield "it alone caught at least one", len(caught_by_modes_alone(rows)) > 0


@of_stored("evaluate-full-size")
def full_size(rows: Rows) -> Claims:
    """Of models whose ln Z long runs know."""
    trusted = trusted_rows(rows)
    near = all(abs(row["value_error"]) <= 0.5 for row in trusted)
    yield Check("every trusted estimate is within half a nat of long runs", near, expected=False)
    held = sum(map(holds_truth, trusted)) / len(trusted)
    yield "its 95 % interval holds at least nine times in ten", held >= 0.9
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
