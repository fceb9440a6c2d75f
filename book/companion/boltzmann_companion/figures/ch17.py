"""Chapter 17: the errors of all estimators on every model, by budget and against time."""

from __future__ import annotations

import math
from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.plots import LINE_STYLES, PALETTE, label_logarithmic
from boltzmann_companion.rows import by_model, columns, where
from boltzmann_companion.studies.budgeted_estimators import ESTIMATORS
from boltzmann_companion.studies.study import WRONG

_ACROSS = 3
_LOOKS = {
    name: {"color": color, "linestyle": style, "marker": marker}
    for name, color, style, marker in zip(ESTIMATORS, PALETTE, LINE_STYLES, "osv^DP", strict=True)
}


def errors(rows: Rows) -> Figure:
    """Median errors as dots, a panel for each model and a line for each estimator; open dots are the smaller budgets."""
    *_, largest = budgets = sorted({row["budget"] for row in rows})
    names = list(ESTIMATORS)
    figure, panels = _panels(rows, 2.4, "median error (nats)", sharex=True)
    for model, panel in panels.items():
        panel.axvline(WRONG, color="0.6", linestyle=":", linewidth=1)
        for place, name in enumerate(names):
            [ends] = columns(where(rows, model=model, estimator=name), "median_error")
            panel.plot(ends, [place] * len(ends), color="0.7", linestyle="-", linewidth=1, zorder=1)
        for budget in budgets:
            own = where(rows, model=model, budget=budget)
            [found], places = (
                columns(own, "median_error"),
                [names.index(r["estimator"]) for r in own],
            )
            face = PALETTE[0] if budget == largest else "white"
            look = {"marker": "o", "markersize": 5, "color": PALETTE[0], "markerfacecolor": face}
            panel.plot(found, places, linestyle="none", label=f"{budget:,} chain-steps", **look)
        panel.set_xscale("log")
        panel.set_yticks(range(len(names)), names)
        panel.xaxis.set_tick_params(labelbottom=True)
        near = _within_two_decades(rows)
        label_logarithmic(panel.xaxis, between=near)
        if not near:
            panel.xaxis.set_major_locator(LogLocator(base=100))
    # read from the top, as the table of the estimators is
    next(iter(panels.values())).invert_yaxis()
    _name(figure, panels, ncols=len(budgets))
    return figure


def errors_by_time(rows: Rows) -> Figure:
    """Median errors against the chain-steps of AIS in the same time, a panel for each model and a line for each estimator."""
    figure, panels = _panels(rows, 2.5, "chain-steps of AIS in the same time")
    for number, (model, panel) in enumerate(panels.items()):
        for name, look in _LOOKS.items():
            own = where(rows, model=model, estimator=name)
            points = columns(own, "same_time", "median_error")
            panel.loglog(*points, markersize=4, linewidth=1, label=name, **look)
        label_logarithmic(panel.xaxis, panel.yaxis, between=_within_two_decades(rows))
        if number % _ACROSS == 0:
            panel.set_ylabel("median error (nats)", fontsize=8)
    _name(figure, panels, ncols=3)
    return figure


def _panels(
    rows: Rows, height: float, label: str, *, sharex: bool = False
) -> tuple[Figure, dict[str, Axes]]:
    """A panel of this height in inches for each model, with room below them for a legend."""
    models = list(by_model(rows))
    across = min(_ACROSS, len(models))
    lines = math.ceil(len(models) / across)
    size = (2.6 * across, height * lines + 0.9)
    figure, grid = plt.subplots(
        lines, across, figsize=size, squeeze=False, sharey=True, sharex=sharex
    )
    for panel in grid.flat[len(models) :]:
        panel.set_axis_off()
    panels = dict(zip(models, grid.flat, strict=False))
    for model, panel in panels.items():
        panel.set_title(model, fontsize=9)
        panel.set_xlabel(label, fontsize=8)
        panel.tick_params(labelsize=7)
    return figure, panels


def _within_two_decades(rows: Rows) -> bool:
    """Whether the errors are so near to each other that numbers between powers of ten can be labelled."""
    found = [row["median_error"] for row in rows if row["median_error"] > 0]
    return max(found) < 100 * min(found)


def _name(figure: Figure, panels: Mapping[str, Axes], ncols: int) -> None:
    """One legend for all panels, below them."""
    entries = next(iter(panels.values())).get_legend_handles_labels()
    figure.legend(*entries, loc="outside lower center", ncols=ncols, fontsize=8)
