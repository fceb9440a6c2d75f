"""The pictures of chapter 9: variances, errors by the number of steps, and classes of digits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure
from torch import Tensor

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.plots import LINE_STYLES, PALETTE
from boltzmann_companion.rows import columns, where


def variance(
    rows: Rows,
    formulas: Mapping[str, Callable[[float], float]],
    biases: Mapping[str, tuple[float, Rows]],
) -> Figure:
    """The variance against alpha, simulated and by formulas; the bias of an estimated alpha."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.3))
    grid = torch.linspace(0, 1.5, 61).tolist()
    left.axhline(0, color="black", linestyle="-", linewidth=0.8)
    for (name, formula), color, style in zip(formulas.items(), PALETTE, LINE_STYLES, strict=False):
        left.plot(grid, [formula(a) for a in grid], color=color, linestyle=style, label=name)
    look = {"color": "black", "marker": "o", "linestyle": "", "label": "simulated"}
    left.plot(*columns(rows, "alpha", "simulated"), **look)
    left.set(xlabel="$\\alpha$", ylabel="variance, nats²")
    left.legend(fontsize=8)
    looks = zip(biases.items(), PALETTE[:2], "os", strict=True)
    for (name, (kappa, points)), color, marker in looks:
        counts, spreads = columns(points, "images", "spread")
        right.plot(counts, spreads, color=color, linestyle="-")
        right.plot(counts, [abs(kappa) / count for count in counts], color=color, linestyle="--")
        sizes = [abs(row["bias"]) for row in points]
        errors = [3 * row["error"] for row in points]
        look = {"color": color, "marker": marker, "markersize": 4, "linestyle": ""}
        right.errorbar(counts, sizes, errors, label=f"{name} $\\ln p^*$", **look)
    right.set(xscale="log", yscale="log", xlabel="images $n$", ylabel="nats")
    right.legend(fontsize=8, loc="lower left")
    return figure


def reductions(rows: Rows, panels: Mapping[str, Collection[str]]) -> Figure:
    """By how much the control variate reduces the variance, against K, in panels of some models."""
    figure, grid = plt.subplots(1, len(panels), figsize=(7.0, 4.0), sharey=True)
    for axes, (title, names) in zip(grid, panels.items(), strict=True):
        for name in names:
            points = columns(where(rows, model=name), "steps", "reduction")
            axes.plot(*points, marker="o", markersize=3, label=name)
        axes.axhline(1, color="0.4", linestyle="-", linewidth=0.8)
        label = "intermediate distributions $K$"
        axes.set(xscale="log", yscale="log", xlabel=label, title=title)
        # Below the axes: no corner of them is free of curves in both profiles.
        axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    grid[0].set_ylabel("Var $Y$ / Var $(Y - X)$")
    return figure


def classes(rows: Rows, x: Tensor, y: Tensor, digit: Tensor, name: str) -> Figure:
    """RAISE's values y against ln p*(v), x, by digit, all [n], for one model.

    Beside it are averages of every second model of the rows by digit.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.6))
    constant = (y - x).mean().item()
    ends = torch.stack([x.min(), x.max()])
    left.plot(ends, ends + constant, color="0.5", linestyle="-", linewidth=1, zorder=1)
    for shown, color, marker, label in (
        ((digit != 1) & (digit != 8), "0.7", ".", "other digits"),
        (digit == 1, PALETTE[0], "o", "1"),
        (digit == 8, PALETTE[1], "^", "8"),
    ):
        left.plot(x[shown], y[shown], marker=marker, linestyle="", color=color, label=label)
    left.set(xlabel="$\\ln p^*(\\mathbf{v})$, nats", ylabel="RAISE, nats", title=name)
    left.legend(fontsize=8)
    for number, row in enumerate(rows[::2]):
        places = [d + 0.12 * (2 * number - 3) / 2 for d in range(10)]
        look = {"marker": "o^sDvP"[number], "markersize": 4, "color": PALETTE[number]}
        values = [row[f"digit_{d}"] for d in range(10)]
        right.plot(places, values, linestyle="", label=row["model"], **look)
    right.axhline(0, color="black", linestyle="-", linewidth=0.8)
    right.set(xlabel="digit", ylabel="average less that of all, nats", xticks=range(10))
    right.legend(fontsize=7)
    return figure
