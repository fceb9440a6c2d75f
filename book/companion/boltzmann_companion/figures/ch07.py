"""The pictures of chapter 7: an RBM and a DBN, and samples of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from torch import Tensor

from boltzmann_companion.plots import PALETTE, draw_images, draw_layer, join


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


def samples(columns: Sequence[Mapping[str, Tensor]], image_shape: tuple[int, int]) -> Figure:
    """Eight images [8, D] by their model: those of an RBM above those of the DBN on it."""
    figure, grid = plt.subplots(2, len(columns), figsize=(7.0, 3.5))
    for panels, column in zip(grid.T, columns, strict=True):
        for panel, (name, images) in zip(panels, column.items(), strict=True):
            draw_images(panel, images, image_shape, columns=4)
            panel.set_title(name)
    return figure
