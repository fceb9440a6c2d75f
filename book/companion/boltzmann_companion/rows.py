"""Rows of records that several chapters make, and rows of records by their model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from boltzmann_companion.published import find, load_published
from paperlib.validation import as_binary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from torch import Tensor

    from boltzmann_companion.claims.checks import Rows
    from paperlib.datasets import BinaryImages
    from paperlib.estimators import PartitionEstimate


def ais_row(result: PartitionEstimate) -> dict[str, Any]:
    """What a table says about an estimate of ln Z by AIS."""
    return {
        "log_z": result.log_z,
        "interval_1_sigma": result.std_interval(1),
        "interval_3_sigma": result.std_interval(3),
        "effective_sample_size": result.effective_sample_size,
        "lower_bound": result.lower_bound,
        "warnings": words(result.warnings),
    }


def runs_row(result: PartitionEstimate) -> dict[str, Any]:
    """What a picture of estimates against the number of AIS runs shows of one of them."""
    return {
        "runs": len(result.log_weights),
        "log_z": result.log_z,
        "interval_3_sigma": result.std_interval(3),
        "effective_sample_size": result.effective_sample_size,
        "warned": "yes" if result.warnings else "no",
    }


def ratio_row(result: PartitionEstimate, sign: int = 1) -> dict[str, Any]:
    """What a table says about an estimate of ln(Z_B / Z_A) along a path from A to B.

    With sign -1, the estimate is along a path from B to A.
    """
    low, high = sorted(sign * end for end in result.std_interval(3))
    return {
        "log_ratio": sign * result.log_z,
        "interval_3_sigma": [low, high],
        "effective_sample_size": result.effective_sample_size,
        "warnings": words(result.warnings),
    }


def words(warnings: Iterable[str]) -> str:
    """The warnings of an estimate as one text.

    Examples
    --------
    >>> words(())
    'none'
    """
    return " ".join(warnings) or "none"


def by_blocks(log_values: Callable[[Tensor], Tensor], data: Tensor, dtype: torch.dtype) -> Tensor:
    """A value for each image [N, D], float64 [N].

    The images are taken in blocks, since 60,000 of them fill too much memory as floats. A reader's
    own images may be an array, and are refused if they are not binary.
    """
    binary = as_binary("images", data)
    return torch.cat([log_values(block.to(dtype)).double() for block in binary.split(5_000)])


def average(log_values: Callable[[Tensor], Tensor], data: Tensor, dtype: torch.dtype) -> float:
    """The mean of `by_blocks`."""
    return by_blocks(log_values, data, dtype).mean().item()


def averages(
    log_values: Callable[[Tensor], Tensor],
    images: BinaryImages,
    dtype: torch.dtype,
    log_z: float = 0.0,
) -> dict[str, float]:
    """Average log-probabilities of the test and of the training images, given ln p* and ln Z."""
    return {
        "test": average(log_values, images.test, dtype) - log_z,
        "train": average(log_values, images.train, dtype) - log_z,
    }


def pixels_on(images: Tensor) -> float:
    """How many pixels of an image are on, on average over images [N, D]."""
    return images.sum(1).double().mean().item()


def samples_row(kind: str, images: Tensor) -> dict[str, Any]:
    """The row of a record of samples for those of one kind, [N, D]."""
    return {"model": kind, "images": len(images), "pixels_on": pixels_on(images)}


def published_numbers(model: str, column: str) -> list[float]:
    """The numbers that the papers print for a model in a column, if any."""
    entries = find(load_published(), row=model, column=column)
    return [entry.value for entry in entries if entry.value is not None]


def by_model(rows: Rows) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of each model, in the order in which the models first appear.

    Examples
    --------
    >>> by_model([{"model": "A", "runs": 1}, {"model": "B", "runs": 1}])["B"]
    [{'model': 'B', 'runs': 1}]
    """
    return grouped(rows, "model")


def grouped(rows: Rows, *names: str) -> dict[Any, list[Mapping[str, Any]]]:
    """The rows by their value in a column, or their values in several.

    The values are in the order in which they first appear.

    Examples
    --------
    >>> list(grouped([{"runs": 1, "model": "A"}, {"runs": 1, "model": "B"}], "runs", "model"))
    [(1, 'A'), (1, 'B')]
    """
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        values = tuple(row[name] for name in names)
        key = values if len(names) > 1 else values[0]
        groups.setdefault(key, []).append(row)
    return groups


def where(rows: Rows, **values: Any) -> list[Mapping[str, Any]]:
    """The rows that have these values.

    Examples
    --------
    >>> where([{"runs": 1, "log_z": 2.5}, {"runs": 10, "log_z": 2.0}], runs=10)
    [{'runs': 10, 'log_z': 2.0}]
    """
    return [row for row in rows if values.items() <= row.items()]


def columns(rows: Rows, *names: str) -> list[list[Any]]:
    """The values of these columns, each as a list.

    Examples
    --------
    >>> columns([{"runs": 1, "log_z": 2.5}, {"runs": 10, "log_z": 2.0}], "runs", "log_z")
    [[1, 10], [2.5, 2.0]]
    """
    return [[row[name] for row in rows] for name in names]
