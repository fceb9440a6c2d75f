"""Chapter 13: the papers' tables beside ours, the authors' weights, and a scale of nats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.claims.report import ALLOWED, Compared

# The paper's number is an open circle, ours a filled one; the authors' weights have a colour.
_PAPER: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "color": "0.3", "linestyle": ""}
_OURS = "C0"
_AUTHORS = "C3"


def second_paper(models: Mapping[str, Mapping[str, Compared]]) -> Figure:
    """Gaps of the RAISE paper's two tables and ours; of `report.second_paper`."""
    figure, panels = plt.subplots(1, 2, figsize=(7.0, 1.1 + 0.3 * len(models)), sharey=True)
    for axes, start in zip(panels, ("base_rate", "uniform"), strict=True):
        for place, numbers in enumerate(models.values()):
            row = numbers.get(f"{start}_gap")
            if row is None:
                continue
            color = _AUTHORS if row.authors else _OURS
            axes.plot(row.entry.printed, place, **_PAPER)
            error = 3 * (row.std_error or 0.0)
            axes.errorbar(row.value, place, xerr=error, fmt="o", color=color, markersize=4)
        axes.axvspan(-1, 1, color="0.92", zorder=0)
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xticks([-10, -1, 0, 1, 10], ["−10", "−1", "0", "1", "10"])
        axes.set_xlim(-12, 80)
        axes.set(title=start.replace("_", " ") + "s" * (start == "base_rate"))
        axes.set_xlabel("AIS less RAISE (nats)")
    _name_rows(panels[0], [name.replace(", ", ",\n") for name in models])
    _explain(panels[1])
    return figure


def differences(estimates: Mapping[str, Compared]) -> Figure:
    """A point for each independent estimate on the authors' weights, of `report.independent`."""
    figure, axes = plt.subplots(figsize=(7.0, 0.9 + 0.3 * len(estimates)))
    axes.axvspan(-1, 1, color="0.92", zorder=0)
    for side in (-ALLOWED, ALLOWED):
        axes.axvline(side, color="0.6", linestyle="--", linewidth=1)
    for place, row in enumerate(estimates.values()):
        if row.errors is not None:
            axes.plot(row.errors, place, "o", color=_AUTHORS)
    _name_rows(axes, list(estimates))
    axes.set(xlim=(-4, 4), xlabel="ours less theirs, in standard errors of the difference")
    return figure


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _explain(axes: Axes) -> None:
    """What the markers mean, below the picture."""
    labels: dict[str, dict[str, Any]] = {"the paper": _PAPER}
    for name, color in (("ours", _OURS), ("ours, with the authors' weights", _AUTHORS)):
        labels[name] = {"marker": "o", "color": color, "linestyle": "", "markersize": 4}
    handles = [axes.plot([], [], **style)[0] for style in labels.values()]
    axes.figure.legend(handles, list(labels), loc="outside lower center", ncols=3, fontsize=9)


def scale(rows: Rows) -> Figure:
    """Average log-probabilities; the right part has the upper end, of models that were trained."""
    figure, (whole, upper_end) = plt.subplots(
        1, 2, figsize=(7.0, 0.6 + 0.28 * len(rows)), sharey=True
    )
    for axes in (whole, upper_end):
        axes.plot([row["test"] for row in rows], range(len(rows)), "o", linestyle="")
        axes.set_yticks(range(len(rows)), [row["model"] for row in rows])
        axes.set_xlabel("nats")
    # The first two rows are models that were not trained.
    trained = [row["test"] for row in rows[2:] or rows]
    margin = 0.06 * (max(trained) - min(trained))
    upper_end.set_xlim(min(trained) - margin, max(trained) + margin)
    upper_end.locator_params(axis="x", nbins=4)
    return figure
