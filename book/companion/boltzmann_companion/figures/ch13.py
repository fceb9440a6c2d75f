"""Chapter 13: what became of the papers' claims, and models on a scale of nats."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.tables import Table

# A verdict has no estimator's colour. The hatch tells what failed from what could not be judged.
_SHADES = (("0.3", ""), ("0.75", ""), ("white", "////"), ("white", ""))


def conclusions(counts: Table) -> Figure:
    """A bar for each subject of `conclusion_table`, with the number of claims of each outcome."""
    figure, axes = plt.subplots(figsize=(5.6, 2.5))
    subjects, _, *columns = zip(*counts.rows, strict=True)
    ends = [0] * len(subjects)
    for name, column, (color, hatch) in zip(counts.heading[2:], columns, _SHADES, strict=True):
        numbers = [int(number) for number in column]
        bars = axes.barh(
            subjects, numbers, left=ends, label=name, color=color, hatch=hatch, edgecolor="0.3"
        )
        shown = [str(number or "") for number in numbers]
        axes.bar_label(bars, shown, label_type="center", bbox={"color": "white", "pad": 1})
        ends = [end + number for end, number in zip(ends, numbers, strict=True)]
    axes.set(xlabel="claims", ylim=(len(subjects) - 0.5, -0.5))
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside lower center", ncols=4, fontsize=9)
    return figure


def scale(rows: Rows) -> Figure:
    """Average log-probabilities of models, and the upper end of their scale; the first two rows need no training."""
    figure, (whole, upper_end) = plt.subplots(
        1, 2, figsize=(7.0, 0.6 + 0.28 * len(rows)), sharey=True
    )
    for axes in (whole, upper_end):
        axes.plot([row["test"] for row in rows], range(len(rows)), "o", linestyle="")
        axes.set_yticks(range(len(rows)), [row["model"] for row in rows])
        axes.set_xlabel("nats")
    # of the models that were trained, if there are any
    trained = [row["test"] for row in rows[2:] or rows]
    margin = 0.06 * (max(trained) - min(trained))
    upper_end.set_xlim(min(trained) - margin, max(trained) + margin)
    upper_end.locator_params(axis="x", nbins=4)
    return figure
