"""Chapter 15: the images, a bracket against K, and training paths."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.plots import PALETTE, draw_images, label_logarithmic
from boltzmann_companion.rows import by_model, columns, grouped
from paperlib.datasets import BinaryImages


def grey_and_binary(images: BinaryImages) -> Figure:
    """The first twelve test images, grey above binarised."""
    figure, axes = plt.subplots(2, 1, figsize=(7.0, 2.0))
    for axis, pictures, title in (
        (axes[0], images.grey.test[:12], "grey"),
        (axes[1], images.test[:12].double(), "binarised once"),
    ):
        draw_images(axis, pictures, images.grey.image_shape, columns=12)
        axis.set_title(title, fontsize=9)
    return figure


def training_paths(
    rows: Rows, printed: Mapping[str, Mapping[str, float]], marked_at: Mapping[str, int]
) -> Figure:
    """Test average and ln Z against epochs: a line for each seed, and two panels for each model."""
    models = by_model(rows)
    size = (5.2, 0.6 + 1.8 * len(models))
    figure, grid = plt.subplots(len(models), 2, figsize=size, squeeze=False)
    for axes, (label, points) in zip(grid, models.items(), strict=True):
        quantities = (("test", "test average"), ("log_z", "$\\ln Z$"))
        for axis, (key, name) in zip(axes, quantities, strict=True):
            for path in grouped(points, "seed").values():
                look = {"color": PALETTE[0], "linewidth": 0.8, "marker": "."}
                axis.plot(*columns(path, "epoch", key), **look)
            axis.axhline(printed[label][key], color="black", linestyle="--")
            axis.axvline(marked_at[label], color="0.6", linestyle=":")
            axis.set(xscale="log", title=f"{label}, {name}")
            label_logarithmic(axis.xaxis)
    for axis in grid[-1]:
        axis.set_xlabel("epochs")
    for axis in grid[:, 0]:
        axis.set_ylabel("nats")
    return figure
