"""The pictures of chapter 7: an RBM and a DBN, the learning of a third layer, the scatter of the bound, and samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from torch import Tensor

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.plots import LINE_STYLES, PALETTE, draw_images, draw_layer, join
from boltzmann_companion.rows import by_model, columns, grouped


def layers() -> Figure:
    """An RBM, and a DBN with a second RBM on top."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.6))
    undirected = {"arrowstyle": "-", "color": PALETTE[0]}
    directed = {"arrowstyle": "-|>", "color": PALETTE[1]}
    middle: dict[str, Any] = {"fontsize": 12, "ha": "center", "va": "center"}
    hidden = []
    for axes, title, look in (
        (left, "RBM", undirected),
        (right, "deep belief network", directed),
    ):
        visible = draw_layer(axes, 5, (0, 0), r"$\mathbf{v}$", -3.0)
        hidden = draw_layer(axes, 3, (0, 1.7), r"$\mathbf{h}^1$", -3.0)
        join(axes, product(hidden, visible), **look)
        axes.text(2.55, 0.85, "$W^1$", **middle)
        axes.set(title=title, xlim=(-3.6, 4.1), ylim=(-0.5, 3.9), aspect="equal")
        axes.set_axis_off()
    top = draw_layer(right, 5, (0, 3.4), "$\\mathbf{h}^2$", -3.0)
    join(right, product(top, hidden), **undirected)
    right.text(2.55, 2.55, "$W^2$", **middle)
    upwards = {"arrowstyle": "-|>", "linestyle": "--", "color": "black"}
    right.annotate("", (3.2, 1.7), (3.2, 0), arrowprops=upwards)
    right.text(3.75, 0.85, "$Q$", **middle)
    return figure


def fall(course: Sequence[tuple[float, float]]) -> Figure:
    """The change of the bound and of ln p(v) along the learning of a third layer."""
    figure, axes = plt.subplots(figsize=(7.0, 2.8))
    for index, label in enumerate(["bound", "$\\ln p(\\mathbf{v})$"]):
        axes.plot([values[index] - course[0][index] for values in course], label=label)
    axes.set(xlabel="gradient steps", ylabel="change in nats")
    axes.legend()
    return figure


def scatter(rows: Rows) -> Figure:
    """How the bound scatters against the number of draws, beside its error over images, for up to three models."""
    figure, axes = plt.subplots(figsize=(7.0, 3.6))
    counts = list(grouped(rows, "draws"))
    for number, (name, own) in enumerate(by_model(rows).items()):
        measured = [row for row in own if row["scatter"] is not None]
        style: dict[str, Any] = {"color": PALETTE[number]}
        axes.loglog(counts, *columns(own, "predicted"), linestyle="-", **style)
        points = columns(measured, "draws", "scatter")
        axes.plot(*points, linestyle="", marker="os^"[number], label=name, **style)
        line = LINE_STYLES[number + 1]
        axes.axhline(own[0]["between_images"], linestyle=line, linewidth=1, **style)
    axes.set(xlabel="draws $M$ for each image", ylabel="standard deviation in nats")
    axes.set(xticks=counts, xticklabels=counts)
    low, high = axes.get_ylim()
    candidates = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)
    ticks = [tick for tick in candidates if low <= tick <= high]
    axes.set(yticks=ticks, yticklabels=[f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.legend()
    return figure


def samples(columns: Sequence[Mapping[str, Tensor]], image_shape: tuple[int, int]) -> Figure:
    """Eight images [8, D] by the name of their model: above those of the RBM, below those of the DBN on it."""
    figure, grid = plt.subplots(2, len(columns), figsize=(7.0, 3.5))
    for panels, column in zip(grid.T, columns, strict=True):
        for panel, (name, images) in zip(panels, column.items(), strict=True):
            draw_images(panel, images, image_shape, columns=4)
            panel.set_title(name)
    return figure
