"""Bounds of deep belief networks: parts of chapter 7's experiments, and the rows of its tables."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from boltzmann_companion.profiles import Profile
from boltzmann_companion.recipes import recipe
from boltzmann_companion.records import load_result
from boltzmann_companion.rows import words
from boltzmann_likelihood.store import shards_used
from paperlib.annealing import BaseRatePath
from paperlib.estimators import PartitionEstimate
from paperlib.estimators.dbn_bound import DBNBoundEstimate

# Averages of the bound, of its gap and of ln p(v) before each step, by the RBM below and the start
# of the second layer.
Courses: TypeAlias = Mapping[tuple[str, str], Sequence[Sequence[float]]]


def paper_betas(share: float) -> Tensor:
    """Table 1's schedule with 500 steps more at its end, or a share of them, float64 [K + 1]."""
    pieces = [torch.zeros(1, dtype=torch.float64)]
    for low, high, full_steps in ((0.0, 0.5, 500), (0.5, 0.9, 4_000), (0.9, 1.0, 10_500)):
        steps = max(1, round(full_steps * share))
        pieces.append(torch.linspace(low, high, steps + 1, dtype=torch.float64)[1:])
    return torch.cat(pieces)


def timed_ais(
    size: Profile, path: BaseRatePath, betas: Tensor, chains: int, seed: int
) -> tuple[PartitionEstimate, float | None]:
    """An estimate and its minutes; None if a shard of it was on disk already."""
    before = len(shards_used())
    started = time.perf_counter()
    result = size.ais(path, betas, chains, seed)
    minutes = (time.perf_counter() - started) / 60
    return result, None if any(use.is_stored for use in shards_used()[before:]) else minutes


def recorded_log_z(size: Profile, record_name: str, model_id: str) -> float | None:
    """ln Z of an RBM from a record at the paper's size; None where there is none."""
    record = load_result(record_name, size.name) if size.name == "paper" else None
    if record is None:
        return None
    for row in record["rows"]:
        if row["model"] == recipe(model_id).label:
            return row["log_z"]
    return None


def course_rows(
    courses: Courses, rbm_averages: Mapping[str, float], ceilings: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Every twentieth step, beside the average of the RBM and the highest possible bound."""
    return [
        {
            "model": name,
            "start": start,
            "step": step,
            "bound": course[step][0],
            "truth": course[step][2],
            "rbm": rbm_averages[name],
            "ceiling": ceilings[name],
        }
        for (name, start), course in courses.items()
        for step in range(0, len(course), 20)
    ]


def bound_row(name: str, estimate: DBNBoundEstimate, result: PartitionEstimate) -> dict[str, Any]:
    """A bound with its errors, and the estimate of ln Z that it rests on."""
    return {
        "model": name,
        "bound": estimate.bound,
        "error_bound": 3 * estimate.std_error,
        "monte_carlo_error": 3 * estimate.monte_carlo_std_error,
        "ais_error": [end - result.log_z for end in result.std_interval(3)],
        "log_z": result.log_z,
        "warnings": words(result.warnings),
    }


def side_columns(side: str, result: PartitionEstimate) -> dict[str, Any]:
    """An estimate of ln Z by annealing the `lower` or the `upper` layer."""
    return {
        f"{side}_log_z": result.log_z,
        f"{side}_interval": result.std_interval(3),
        f"{side}_effective": result.effective_sample_size,
        f"{side}_warned": "yes" if result.warnings else "no",
    }
