"""The likelihood along training in words, for machines, for a spreadsheet and as a picture."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paperlib.errors import InputError
from paperlib.evaluation.along_training import TrainingLikelihood
from paperlib.evaluation.report import finite

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BY = {
    "exact": "exact",
    "trajectory": "by chains that walk through all checkpoints",
    "ladder": "by parallel tempering for each checkpoint",
}
_COLUMNS: tuple[str, ...] = (
    "checkpoint",
    "log_z",
    "log_z_low",
    "log_z_high",
    "average",
    "low",
    "high",
    "other_images_low",
    "other_images_high",
    "behind_best",
    "behind_best_low",
    "behind_best_high",
    "told_from_best",
    "claimed_log_z",
)


def describe_training(
    found: TrainingLikelihood, claimed_log_z: Mapping[str, float] | None = None
) -> str:
    """The result in words, for a terminal.

    Examples
    --------
    >>> import torch
    >>> from paperlib.evaluation import evaluate_training
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> print(describe_training(evaluate_training([rbm, rbm], [[0, 0, 1], [1, 1, 0]])).splitlines()[1])
    ln Z exact; all numbers in nats, intervals 95 %.
    """
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
        low, high = checkpoint.average.interval
        behind = checkpoint.behind_best
        beside = (
            "best"
            if number == found.best
            else f"{behind.mean:.2f} ({behind.interval[0]:.2f} to {behind.interval[1]:.2f})"
        )
        line = f"  {checkpoint.name:<{width}} {checkpoint.log_z:>10.2f} {checkpoint.average.mean:>9.2f}   "
        line += f"{f'{low:.2f} to {high:.2f}':<20}  {beside:<22}"
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
    """A row for each checkpoint; infinite numbers become None.

    Examples
    --------
    >>> import torch
    >>> from paperlib.evaluation import evaluate_training
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> training_rows(evaluate_training([rbm], [[0, 0, 1], [1, 1, 0]]))[0]["told_from_best"]
    'best'
    """
    rows = []
    for number, checkpoint in enumerate(found.checkpoints):
        average, behind = checkpoint.average, checkpoint.behind_best
        values = (
            checkpoint.name,
            checkpoint.log_z,
            *checkpoint.log_z_interval,
            average.mean,
            *average.interval,
            *average.sample_interval,
            behind.mean,
            *behind.interval,
            "best" if number == found.best else checkpoint.told_from_best,
            (claimed_log_z or {}).get(checkpoint.name),
        )
        rows.append(dict(zip(_COLUMNS, map(finite, values), strict=True)))
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


def training_as_csv(
    found: TrainingLikelihood, claimed_log_z: Mapping[str, float] | None = None
) -> str:
    """The rows as comma-separated values, with a heading."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(training_rows(found, claimed_log_z))
    return text.getvalue()


def plot_training(found: TrainingLikelihood) -> Figure:
    """The average against training, with its interval for these images, and the best checkpoint."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise InputError(
            "plot: expected matplotlib to be installed (pip install matplotlib)"
        ) from error
    places, label, logarithmic = _places([checkpoint.name for checkpoint in found.checkpoints])
    averages = [checkpoint.average for checkpoint in found.checkpoints]
    figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
    axes.fill_between(
        places,
        [average.interval[0] for average in averages],
        [average.interval[1] for average in averages],
        color="#0072B2",
        alpha=0.25,
        label="95 % interval, these images",
    )
    means = [average.mean for average in averages]
    axes.plot(places, means, marker="o", markersize=4, color="#0072B2", label="average ln p(v)")
    axes.plot(
        places[found.best],
        means[found.best],
        marker="D",
        markersize=8,
        linestyle="none",
        color="#D55E00",
        label=f"best: {found.checkpoints[found.best].name}",
    )
    if logarithmic:
        axes.set_xscale("log")
    axes.set(xlabel=label, ylabel="average test log-probability, nats")
    axes.legend()
    return figure


def _places(names: list[str]) -> tuple[list[float], str, bool]:
    """Positions of the checkpoints on the axis: their own numbers, if each name has one and these increase."""
    numbers = [re.findall(r"\d+", name) for name in names]
    if all(numbers):
        values = [float(found[-1]) for found in numbers]
        if all(low < high for low, high in itertools.pairwise(values)):
            wide = values[0] > 0 and values[-1] > 30 * values[0]
            label = "update" if names[0].startswith("update_") else "number of the checkpoint"
            return values, label, wide
    return [float(number) for number in range(1, len(names) + 1)], "checkpoint", False
