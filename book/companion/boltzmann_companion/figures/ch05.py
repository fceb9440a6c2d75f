"""Figures of chapter 05: estimates of ln Z against the number of runs, and the exact likelihood along training."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.plots import draw_runs
from boltzmann_companion.rows import by_model, columns, published_numbers


def more_runs(points: Rows, zeros: Mapping[str, float], ylabel: str) -> Figure:
    """A panel for each model: ln Z less its zero, with 3-sigma intervals, against the number of AIS runs."""
    groups = by_model(points)
    figure, (panels,) = plt.subplots(1, len(groups), figsize=(7.0, 3.0), squeeze=False)
    for panel, (model, own) in zip(panels, groups.items(), strict=True):
        draw_runs(panel, own, zeros[model])
        panel.set_title(model)
    panels[0].set_ylabel(ylabel)
    return figure


def training(looks: Rows) -> Figure:
    """The exact test log-probability of each model by epoch; dotted, its published value if it has one."""
    figure, axes = plt.subplots()
    for model, own in by_model(looks).items():
        axes.plot(*columns(own, "epoch", "test"), label=model)
        for value in published_numbers(model, "Avg. Test log-prob. / true"):
            axes.axhline(value, color=axes.lines[-1].get_color(), linewidth=0.8, linestyle=":")
    # the first epochs are far below everything else
    settled = [row["test"] for row in looks if row["epoch"] > 10]
    axes.set(xlabel="epoch", ylabel="test log-probability in nats")
    axes.set_ylim(min(settled) - 1, max(settled) + 1)
    axes.legend()
    return figure
