"""The likelihood along training in words, for machines and for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from paperlib.evaluation.along_training import TrainingLikelihood
from paperlib.evaluation.report import between, finite

_BY = {
    "exact": "exact",
    "trajectory": "by chains that walk through all checkpoints",
    "ladder": "by parallel tempering for each checkpoint",
}


def describe_training(
    found: TrainingLikelihood, claimed_log_z: Mapping[str, float] | None = None
) -> str:
    """The result in words, for a terminal."""
    claims = claimed_log_z or {}
    width = max(10, *(len(checkpoint.name) for checkpoint in found.checkpoints))
    heading = f"  {'checkpoint':<{width}} {'ln Z':>10} {'average':>9}   {'interval':<20}  {'behind the best':<22}"
    lines = [
        f"Average test log-probability of {len(found.checkpoints)} checkpoints.",
        f"ln Z {_BY[found.method]}; all numbers in nats, intervals 95 %.",
        "",
        heading + ("  the file's own ln Z" if claims else ""),
    ]
    for number, checkpoint in enumerate(found.checkpoints):
        average, behind = checkpoint.average, checkpoint.behind_best
        beside = (
            f"{behind.mean:.2f} ({between(behind.interval)})" if number != found.best else "best"
        )
        line = f"  {checkpoint.name:<{width}} {checkpoint.log_z:>10.2f} {average.mean:>9.2f}   "
        line += f"{between(average.interval):<20}  {beside:<22}"
        if checkpoint.name in claims:
            line += f"  {claims[checkpoint.name]:.2f}"
        lines.append(line.rstrip())
    lines += [
        "",
        f"Verdict: {'' if found.trustworthy else 'do not rely on it yet: '}{found.verdict}.",
    ]
    if found.as_good:
        shown = found.as_good if len(found.as_good) <= 8 else (*found.as_good[:8], "...")
        lines.append(f"These images do not tell from the best: {', '.join(shown)}.")
    lines.append(
        "The best was chosen by these images: report the average of other images, such as `paperlib evaluate` gives it."
    )
    lines += [f"  - {warning}" for warning in found.warnings]
    return "\n".join(lines)


def training_rows(
    found: TrainingLikelihood, claimed_log_z: Mapping[str, float] | None = None
) -> list[dict[str, Any]]:
    """A row for each checkpoint; infinite numbers become None."""
    rows = []
    for number, checkpoint in enumerate(found.checkpoints):
        average, behind = checkpoint.average, checkpoint.behind_best
        row = {
            "checkpoint": checkpoint.name,
            "log_z": checkpoint.log_z,
            "log_z_low": checkpoint.log_z_interval[0],
            "log_z_high": checkpoint.log_z_interval[1],
            "average": average.mean,
            "low": average.interval[0],
            "high": average.interval[1],
            "other_images_low": average.sample_interval[0],
            "other_images_high": average.sample_interval[1],
            "behind_best": behind.mean,
            "behind_best_low": behind.interval[0],
            "behind_best_high": behind.interval[1],
            "told_from_best": "best" if number == found.best else checkpoint.told_from_best,
            "claimed_log_z": (claimed_log_z or {}).get(checkpoint.name),
        }
        rows.append(finite(row))
    return rows


def training_as_dict(
    found: TrainingLikelihood, claimed_log_z: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """The result for machines."""
    return {
        "unit": "nats",
        "method": found.method,
        "chain_steps": found.chain_steps,
        "trustworthy": found.trustworthy,
        "interrupted": found.interrupted,
        "verdict": found.verdict,
        "best": found.checkpoints[found.best].name,
        "not_told_from_best": list(found.as_good),
        "findings": list(found.warnings),
        "checkpoints": training_rows(found, claimed_log_z),
    }


def training_as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as comma-separated values, with a heading."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
