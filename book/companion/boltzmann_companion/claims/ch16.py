"""What chapter 16 claims of its tables about parallel tempering and Bennett's ratio."""

from __future__ import annotations

from boltzmann_companion.claims.checks import Check, Claims, Rows
from boltzmann_companion.rows import where


def one_link(rows: Rows) -> Claims:
    """Of `tempering-link`: which way the averages err, and which estimate errs least."""
    of_link = {row["estimate"]: row for row in rows}
    yield "the forward average is too low", of_link["forward average"]["mean_error"] < 0
    yield "the reverse average is too high", of_link["reverse average"]["mean_error"] > 0
    best = min(of_link, key=lambda name: of_link[name]["rmse"])
    yield "Bennett's ratio has the smallest error", best == "Bennett's ratio"


def stated_errors(rows: Rows) -> Claims:
    """Of `tempering-link-errors`: the naive error against that from batches."""
    last = rows[-1]
    rarely = last["naive_coverage"] < 0.9
    yield "naive intervals of the last link hold the truth too rarely", rarely
    # 100 intervals; fewer than 88 of them would be 3 standard errors short of 95
    enough = all(row["blocks_coverage"] >= 0.88 for row in rows)
    yield "intervals from batches hold the truth in all links", enough


def placed_temperatures(rows: Rows) -> Claims:
    """Of `tempering-rungs`: evenly spaced temperatures against those that the run has placed."""
    evenly, by_the_run = rows
    smaller = by_the_run["largest_rate"] < evenly["largest_rate"]
    yield "placed temperatures have the smaller largest rejection rate", smaller
    more = by_the_run["round_trips"] > evenly["round_trips"]
    yield "they make more round trips, the pilots' cost included", more


def equal_cost(rows: Rows, required: bool) -> Claims:
    """Of `tempering-error`: errors against chain-steps, and the first model at the smallest budget."""
    few, many = (choose(row["chain_steps"] for row in rows) for choose in (min, max))
    model = rows[0]["model"]
    own = where(rows, model=model, chain_steps=few)
    tempering_error, ais_error = (row["rmse"] for row in own)
    claim = f"{model}: parallel tempering's error is the smaller at {few:,} chain-steps"
    yield Check(claim, tempering_error < ais_error, required=required)
    tempering_warned, ais_warned = (row["warned"] for row in rows[-2:])
    fewer = tempering_warned < ais_warned or few == many
    yield Check("parallel tempering has fewer warnings at last", fewer, required=required)


def closed_brackets(rows: Rows, on_digits: bool) -> Claims:
    """Of `tempering-brackets` with readings: on `digits` no bracket is open."""
    found = any("wrong" in row["reading"] for row in rows)
    yield Check("no end of a bracket is found wrong", not found, required=on_digits)


def missed_mode(rows: Rows) -> Claims:
    """Of `tempering-hidden-modes`: the last row is the mode that no temperature leads to."""
    strong = rows[-1]
    yield "parallel tempering misses the strong mode", strong["error"] < -2
    yield "it makes more than a hundred round trips", strong["round_trips"] > 100
    yield "it has no warning of its own", strong["warnings"] == "none"
    yield "the proven bound exceeds the estimate", strong["bound_off"] > 1
