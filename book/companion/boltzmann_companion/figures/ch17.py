"""Chapter 17: the errors of all estimators on every model, by budget and against time."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.plots import label_logarithmic, look_of
from boltzmann_companion.rows import by_model, columns, where
from boltzmann_companion.studies.budgeted_estimators import ESTIMATORS
from boltzmann_companion.studies.study import WRONG

# The start of AIS at mean field's answer has AIS's look, with a marker of its own.
_LOOKS = {
    name: look_of(name.partition(",")[0]) | ({"marker": "<"} if "," in name else {})
    for name in ESTIMATORS
}


def errors(rows: Rows) -> Figure:
    """Median errors at the larger budget, a band for each model with a marker for each estimator; its tail ends at the smaller budget."""
    *_, largest = sorted({row["budget"] for row in rows})
    names = list(by_model(rows))
    figure, axes = plt.subplots(figsize=(5.2, 1.6 + 0.62 * len(names)))
    axes.axvline(WRONG, color="0.4", linestyle=":", linewidth=1)
    for band, model in enumerate(names):
        if band % 2:
            axes.axhspan(band - 0.5, band + 0.5, color="0.94")
        for number, (name, look) in enumerate(_LOOKS.items()):
            found = where(rows, model=model, estimator=name)
            own = {row["budget"]: row["median_error"] for row in found}
            place = band + 0.8 * ((number + 0.5) / len(_LOOKS) - 0.5)
            axes.plot([*own.values()], [place] * len(own), "-", color=look["color"], linewidth=1)
            [point] = axes.plot(own[largest], place)
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
    """Median errors of some models against the chain-steps of AIS in the same time, a panel for each and a line for each estimator."""
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
    """Whether the errors are so near to each other that numbers between powers of ten can be labelled."""
    found = [row["median_error"] for row in rows if row["median_error"] > 0]
    return max(found) < 100 * min(found)


def _name(figure: Figure, axes: Axes) -> None:
    """A legend below everything."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
