"""Rows of records that several chapters make, and rows of records by their model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boltzmann_companion.claims.checks import Rows
    from paperlib.estimators import PartitionEstimate


def ais_row(result: PartitionEstimate) -> dict[str, Any]:
    """What a table says about an estimate of ln Z by AIS."""
    return {
        "log_z": result.log_z,
        "interval_1_sigma": result.interval(1),
        "interval_3_sigma": result.interval(3),
        "effective_sample_size": result.effective_sample_size,
        "lower_bound": result.lower_bound,
        "warnings": words(result.warnings),
    }


def runs_row(result: PartitionEstimate) -> dict[str, Any]:
    """What a picture of estimates against the number of AIS runs shows of one of them."""
    return {
        "runs": len(result.log_weights),
        "log_z": result.log_z,
        "interval_3_sigma": result.interval(3),
        "effective_sample_size": result.effective_sample_size,
        "warned": "yes" if result.warnings else "no",
    }


def words(warnings: tuple[str, ...]) -> str:
    """The warnings of an estimate as one text.

    Examples
    --------
    >>> words(())
    'none'
    """
    return " ".join(warnings) or "none"


def by_model(rows: Rows) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of each model, in the order in which the models come first.

    Examples
    --------
    >>> by_model([{"model": "A", "runs": 1}, {"model": "B", "runs": 1}])["B"]
    [{'model': 'B', 'runs': 1}]
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["model"], []).append(row)
    return groups
