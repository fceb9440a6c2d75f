"""Brackets of AIS and RAISE against the number of steps, as chapters 8, 10 and 15 draw them."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from boltzmann_companion.claims.checks import Row, Rows
from boltzmann_companion.plots import look_of
from boltzmann_companion.rows import by_model, columns, grouped
from boltzmann_likelihood.evaluation.picture import EXACT


def draw_bracket(axes: Axes, rows: Rows, start: str) -> None:
    """AIS and RAISE of one model and start against K, and the wedge between them.

    Bars are three standard errors. An arrow stands for a bar of AIS without an upper end.
    """
    steps, low, high = columns(rows, "steps", "raise", "ais")
    axes.fill_between(steps, low, high, color="0.4", alpha=0.14, linewidth=0)
    for key, name in (("ais", "AIS"), ("raise", "RAISE")):
        look = look_of(name, hollow=start == "uniform")
        axes.plot(*columns(rows, "steps", key), label=f"{name}, {start}", **look)
        bar = {"color": look["color"], "linewidth": 1}
        for row in rows:
            place = row["steps"]
            value = row[key]
            bottom, top = _ends(row, key)
            if math.isinf(top):
                arrow = {"arrowstyle": "<-", "shrinkA": 0, "shrinkB": 0} | bar
                axes.annotate(
                    "", (place, value), (0, 16), textcoords="offset points", arrowprops=arrow
                )
            ends = [end if math.isfinite(end) else value for end in (bottom, top)]
            axes.plot([place] * 2, ends, linestyle="-", **bar)
    axes.set(xscale="log", xlabel="annealing steps $K$")


def _ends(row: Row, key: str) -> tuple[float, float]:
    """The interval that a record has, or else three standard errors to either side."""
    if f"{key}_interval" in row:
        return row[f"{key}_interval"]
    reach = 3 * row[f"{key}_error"]
    return row[key] - reach, row[key] + reach


def frame_brackets(axes: Axes, rows: Rows, shown_from: int) -> None:
    """The exact value if it is known, and limits for it and all points from K = `shown_from` on."""
    exact = rows[0].get("exact")
    values = [row[key] for row in rows if row["steps"] >= shown_from for key in ("ais", "raise")]
    if exact is not None:
        axes.axhline(exact, linewidth=1, **EXACT)
        values.append(exact)
    pad = 0.15 * max(max(values) - min(values), 0.5)
    axes.set_ylim(min(values) - pad, max(values) + pad)


def second_smallest(rows: Rows) -> int:
    """The second-smallest number of steps, or the only one.

    Errors with the fewest steps dwarf all others.
    """
    return sorted({row["steps"] for row in rows})[:2][-1]


def draw_models(figure: Figure | SubFigure, rows: Rows, shown_from: int) -> None:
    """A panel for each model with its brackets from all starts, two panels abreast."""
    models = by_model(rows)
    lines = -(-len(models) // 2)
    grid = figure.subplots(lines, 2, squeeze=False)
    for axes in grid.flat[len(models) :]:
        axes.set_axis_off()
    for number, (axes, (name, points)) in enumerate(zip(grid.flat, models.items(), strict=False)):
        for start, from_start in grouped(points, "start").items():
            draw_bracket(axes, from_start, start)
        frame_brackets(axes, points, min(shown_from, max(row["steps"] for row in points)))
        axes.set_title(name)
        # The title of a panel below would touch the label.
        if number + 2 < len(models):
            axes.set_xlabel("")
    for axes in grid[:, 0]:
        axes.set_ylabel("nats")
    entries = grid[0, 0].get_legend_handles_labels()
    figure.legend(*entries, loc="outside lower center", ncols=2)


def two_starts(rows: Rows) -> Figure:
    """The brackets of one model, with a panel for each start, as in Figure 4 of the RAISE paper."""
    starts = grouped(rows, "start")
    figure, panels = plt.subplots(1, len(starts), figsize=(5.6, 3.6), sharey=True)
    for panel, (start, points) in zip(panels, starts.items(), strict=True):
        draw_bracket(panel, points, start)
        frame_brackets(panel, rows, second_smallest(rows))
        panel.set_title(f"{rows[0]['model']}, {start}", fontsize=10)
    panels[0].set_ylabel("test log-probability (nats)")
    lines = [line for panel in panels for line in panel.get_legend_handles_labels()[0]]
    figure.legend(handles=lines, loc="outside lower center", ncols=2)
    return figure
