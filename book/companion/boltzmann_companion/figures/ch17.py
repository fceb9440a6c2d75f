"""Chapter 17: the errors of all estimators on every model, by budget and against time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.plots import label_logarithmic, look_of
from boltzmann_companion.rows import by_model, columns, where
from boltzmann_companion.studies.budgeted_estimators import ESTIMATORS
from boltzmann_companion.studies.study import WRONG


def _look(estimator: str) -> dict[str, Any]:
    """The look of an estimator; AIS from mean field's means is AIS with a marker of its own."""
    name, comma, _ = estimator.partition(",")
    return look_of(name) | {"marker": "<"} if comma else look_of(name)


_LOOKS = {estimator: _look(estimator) for estimator in ESTIMATORS}


def errors(rows: Rows) -> Figure:
    """Median errors at the larger budget, a band for each model and a marker for each estimator.

    The tail of a marker ends at the smaller budget.
    """
    largest = max(row["budget"] for row in rows)
    names = list(by_model(rows))
    figure, axes = plt.subplots(figsize=(5.2, 1.6 + 0.62 * len(names)))
    axes.axvline(WRONG, color="0.4", linestyle=":", linewidth=1)
    for band, model in enumerate(names):
        if band % 2:
            axes.axhspan(band - 0.5, band + 0.5, color="0.94")
        for number, (name, look) in enumerate(_LOOKS.items()):
            budgets = where(rows, model=model, estimator=name)
            medians = {row["budget"]: row["median_error"] for row in budgets}
            place = band + 0.8 * ((number + 0.5) / len(_LOOKS) - 0.5)
            tail = list(medians.values())
            axes.plot(tail, [place] * len(tail), "-", color=look["color"], linewidth=1)
            [point] = axes.plot(medians[largest], place)
            point.set(**{**look, "linestyle": "none"}, label=name if band == 0 else None)
    axes.set(xscale="log", xlabel="median error (nats)", ylim=(len(names) - 0.5, -0.5))
    axes.set_yticks(range(len(names)), names)
    axes.grid(axis="y", visible=False)
    label_logarithmic(axes.xaxis, between=_within_two_decades(rows))
    if not _within_two_decades(rows):
        axes.xaxis.set_major_locator(LogLocator(base=100))
    _name(figure, axes)
    return figure


def errors_by_time(rows: Rows, models: Sequence[str]) -> Figure:
    """Median errors against the chain-steps of AIS in the same time, a panel for each model."""
    size = (5.2, 1.2 + 2.2 * len(models))
    figure, panels = plt.subplots(len(models), 1, figsize=size, squeeze=False, sharex=True)
    for panel, model in zip(panels.flat, models, strict=True):
        for name, look in _LOOKS.items():
            points = columns(where(rows, model=model, estimator=name), "same_time", "median_error")
            panel.loglog(*points, label=name, **look)
        label_logarithmic(panel.xaxis, panel.yaxis, between=_within_two_decades(rows))
        panel.set(title=model, ylabel="median error (nats)")
    panels[-1, 0].set_xlabel("chain-steps of AIS in the same time")
    _name(figure, panels[0, 0])
    return figure


def _within_two_decades(rows: Rows) -> bool:
    """Whether numbers between powers of ten can be labelled on an axis of the errors."""
    errors = [row["median_error"] for row in rows if row["median_error"] > 0]
    return max(errors) < 100 * min(errors)


def _name(figure: Figure, axes: Axes) -> None:
    """A legend below everything."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
