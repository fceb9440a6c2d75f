"""Chapter 14: what became of the evaluations of models with a known answer."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt

from boltzmann_companion.rows import grouped, where
from boltzmann_companion.studies.study import OUTCOMES, STARTS, holds_truth, trusted_rows
from boltzmann_companion.tables import Table, format_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from boltzmann_companion.claims.checks import Rows


def squares(studies: Mapping[str, Rows]) -> Figure:
    """How many evaluations of each study are right or wrong, trusted or suspected, as squares."""
    figure, panels = plt.subplots(1, len(studies), figsize=(5.6, 2.3), sharey=True)
    words = ("trusted", "suspected")
    truths = ("wrong", "right")
    for axes, (name, rows) in zip(panels, studies.items(), strict=True):
        counts = Counter(row["outcome"] for row in rows)
        for (x, word), (y, truth) in product(enumerate(words), enumerate(truths)):
            count = counts[f"{truth}, {word}"]
            shade = "0.8" if truth == "right" else "0.55"
            axes.scatter(x, y, 3_500 * count / len(rows), color=shade, marker="s")
            axes.text(x, y, str(count), ha="center", va="center")
        axes.set(xlim=(-0.5, 1.5), ylim=(-0.6, 1.6))
        axes.set_xticks(range(2), words, fontsize=9)
        axes.set_yticks(range(2), truths, fontsize=9)
        axes.set_title(f"{name},\n{len(rows)} evaluations", fontsize=9)
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
    return figure


def outcomes(studies: Mapping[str, Rows]) -> Table:
    """How often the bracket holds the truth, and each outcome, by study, start and K."""
    lines = []
    for name, rows in studies.items():
        in_order = sorted(rows, key=lambda row: (STARTS.index(row["start"]), row["steps"]))
        for (start, steps), members in grouped(in_order, "start", "steps").items():
            counts = Counter(row["outcome"] for row in members)
            covered = sum(row["held"] == "yes" for row in members)
            numbers = [steps, len(members), covered, *(counts[outcome] for outcome in OUTCOMES)]
            lines.append([name, start, *map(format_value, numbers)])
    heading = ["study", "start", "K", "evaluations", "bracket holds the truth", *OUTCOMES]
    return Table(heading, lines)


def wrong_models(rows: Rows) -> Table:
    """The models on which `evaluate` is wrong from the base rates of the training images.

    By start, it has what `evaluate` reports at the larger number of steps less the exact value.
    """
    largest = max(row["steps"] for row in rows)
    lines = []
    for names, members in grouped(where(rows, steps=largest), "data", "model").items():
        by_start = {row["start"]: row for row in members}
        base_rates = by_start[STARTS[0]]
        if "wrong" in base_rates["outcome"]:
            cells = [_error_cell(by_start.get(start)) for start in STARTS]
            lines.append([*names, format_value(base_rates["exact"]), *cells])
    return Table(["data", "model", "exact (nats)", *STARTS], lines)


def _error_cell(row: Mapping[str, Any] | None) -> str:
    """The error of an evaluation, bold if it is wrong, with a question mark if it was suspected."""
    if row is None:
        return "–"
    error = format_value(row["value_error"])
    if "wrong" in row["outcome"]:
        error = f"**{error}**"
    if "suspected" in row["outcome"]:
        error += "?"
    return error


def full_size(rows: Rows) -> Table:
    """Evaluations of models of full size, by time and model."""
    lines = []
    for (minutes, model, size), members in grouped(rows, "minutes", "model", "size").items():
        trusted = trusted_rows(members)
        worst = max((abs(row["value_error"]) for row in trusted), default=None)
        worst_ais = max(members, key=lambda row: abs(row["ais_error"]))["ais_error"]
        numbers = [len(members), len(trusted), worst, sum(map(holds_truth, trusted)), worst_ais]
        lines.append([format_value(minutes), model, size, *map(format_value, numbers)])
    heading = ["minutes", "model", "$D \\times M$", "evaluations", "trusted"]
    heading += ["largest error", "intervals hold", "AIS, largest error"]
    return Table(heading, lines)
