"""What chapter 16 claims of its tables about parallel tempering and Bennett's ratio."""

from __future__ import annotations

from boltzmann_companion.claims.checks import Claims, Rows, every


def one_link(rows: Rows) -> Claims:
    """Of `tempering-link`: which estimate errs least."""
    best = min(rows, key=lambda row: row["rmse"])
    yield "Bennett's ratio has the smallest error", best["estimate"] == "Bennett's ratio"


def stated_errors(rows: Rows) -> Claims:
    """Of `tempering-link-errors`: the error from batches."""
    # 100 intervals; fewer than 88 of them would be 3 standard errors short of 95
    enough = every(row["blocks_coverage"] >= 0.88 for row in rows)
    yield "intervals from batches hold the truth in all links", enough


def missed_mode(rows: Rows) -> Claims:
    """Of `tempering-hidden-modes`: the last row is the mode that no temperature leads to."""
    strong = rows[-1]
    silent = strong["error"] < -2 and strong["warnings"] == "none"
    yield "parallel tempering misses the strong mode, without a warning of its own", silent
