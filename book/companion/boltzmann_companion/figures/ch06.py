"""Figures of chapter 06: samples, mixtures beside RBMs, and how often intervals hold the truth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.players.frames import frame_player
from boltzmann_companion.players.page import Player
from boltzmann_companion.plots import PALETTE, draw_images
from boltzmann_companion.rows import by_model, columns, pixels_on

_MARKERS = "os^"


def packed(images: Tensor) -> str:
    """Binary images [N, D] as bits, in hexadecimal, for a record.

    Examples
    --------
    >>> packed(torch.tensor([[1, 0, 0, 0], [1, 1, 1, 1]]))
    '8f'
    """
    return np.packbits(images.to(torch.uint8).numpy()).tobytes().hex()


def course_rows(model: str, looks: Sequence[float], frames: Sequence[Tensor]) -> Rows:
    """Rows of `sm2008-ais-course`, for the images [M, D] of AIS runs at each of these betas."""
    return [
        {"model": model, "beta": look, "pixels_on": pixels_on(frame), "images": packed(frame)}
        for look, frame in zip(looks, frames, strict=True)
    ]


def course_player(course: Rows, image_shape: tuple[int, int]) -> Player:
    """The player for a record of AIS runs, whose images are `packed`."""
    bits = [np.unpackbits(np.frombuffer(bytes.fromhex(row["images"]), np.uint8)) for row in course]
    return frame_player(
        [torch.from_numpy(row_bits).view(-1, math.prod(image_shape)) for row_bits in bits],
        [f"β = {row['beta']:.2f}" for row in course],
        f"Sixteen runs of annealed importance sampling for {course[0]['model']}, from "
        "noise to digits",
        image_shape,
    )


def samples(
    panels: Iterable[tuple[str, Tensor, int | None]], image_shape: tuple[int, int]
) -> Figure:
    """Twelve panels, each with a name and sixteen images [16, D].

    The number of Gibbs steps behind a panel is not shown; the record of the samples has it.
    """
    figure, grid = plt.subplots(3, 4, figsize=(7.0, 5.8))
    for axes, (name, images, _) in zip(grid.flat, panels, strict=False):
        draw_images(axes, images, image_shape, columns=4)
        axes.set_title(name, fontsize=9)
    return figure


def mixtures(rows: Rows) -> Figure:
    """The average test and training log-probability of each model, the first one at the top."""
    figure, axes = plt.subplots(figsize=(7.0, 2.8))
    for height, row in enumerate(reversed(rows)):
        ends = [row["test"], row["train"]]
        axes.plot(ends, [height] * 2, color="0.6", linestyle="-", zorder=1)
        for number, (end, name) in enumerate(zip(ends, ("test", "training"), strict=True)):
            look: dict[str, Any] = {
                "marker": "os"[number],
                "color": PALETTE[number],
                "linestyle": "none",
            }
            axes.plot(end, height, label=name if height == 0 else None, **look)
    axes.set(yticks=range(len(rows)), yticklabels=[row["model"] for row in reversed(rows)])
    axes.set_xlabel("average log-probability in nats")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def coverage(rows: Rows) -> Figure:
    """The share of experiments whose interval holds the truth, against the runs in each."""
    figure, axes = plt.subplots(figsize=(7.0, 3.2))
    axes.axhline(0.9973, color="black", linestyle="-", linewidth=1)
    for number, (model, points) in enumerate(by_model(rows).items()):
        # Beside each other, not on top.
        places = [row["runs"] * 1.12 ** (number - 1) for row in points]
        intervals, covered = columns(points, "covered_interval", "covered")
        axes.vlines(places, *zip(*intervals, strict=True), color=PALETTE[number])
        look: dict[str, Any] = {
            "marker": _MARKERS[number],
            "color": PALETTE[number],
            "linestyle": "none",
        }
        axes.plot(places, covered, label=model, **look)
    axes.set(xscale="log", xticks=[10, 100, 1_000], xticklabels=["10", "100", "1,000"])
    axes.set(xlabel="AIS runs in each experiment", ylabel="share that holds the truth")
    axes.minorticks_off()
    # Above the axes: the points may lie anywhere in them.
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
    return figure
