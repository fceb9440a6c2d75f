"""The pictures of chapter 8: annealing models, and brackets of AIS and RAISE against K."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.figures.brackets import (
    draw_bracket,
    frame_brackets,
    second_smallest,
)
from boltzmann_companion.players.brackets import bracket_player
from boltzmann_companion.players.page import Player
from boltzmann_companion.plots import arrow_of, draw_images
from boltzmann_companion.rows import columns
from boltzmann_companion.tables import Table


def course(
    chains: Mapping[str, Sequence[Tensor]],
    betas: Sequence[float],
    looks: Sequence[int],
    image_shape: tuple[int, int],
) -> Figure:
    """The scheme of the annealing model, and its chains at some of the steps.

    `chains` has the kinds `forward` and `backward`, [steps][chains, pixels].
    """
    figure, (scheme, upper, lower) = plt.subplots(
        3, 1, figsize=(7.0, 6.6), height_ratios=[1.0, 2.0, 2.0]
    )
    _draw_scheme(scheme)
    for axes, frames, title in (
        (upper, chains["forward"], "annealing: draws from the annealing model"),
        (lower, chains["backward"], "melting: reverse chains from test images"),
    ):
        count = len(frames[0])
        rows = [torch.stack([frames[look][chain] for look in looks]) for chain in range(count)]
        draw_images(axes, torch.cat(rows), image_shape, columns=len(looks))
        axes.set_title(title, fontsize=10)
    height, width = image_shape
    below = len(chains["backward"][0]) * (height + 1) + 0.5
    for part, look in enumerate(looks):
        place = (part + 0.5) * (width + 1)
        label = f"β = {betas[look]:.2f}"
        lower.text(place, below, label, ha="center", va="top", fontsize=8)
    return figure


def _draw_scheme(axes: Axes) -> None:
    """The states x_0 to x_K with the transitions above them, and their reversals below."""
    states = ["_0", "_1", "_2", None, "_{K-1}", "_K"]
    middle: dict[str, Any] = {"ha": "center", "va": "center"}
    for place, index in enumerate(states):
        if index is None:
            axes.text(place, 0, "…", fontsize=14, **middle)
            continue
        face = "0.85" if place == len(states) - 1 else "white"
        axes.add_patch(Circle((place, 0), 0.24, facecolor=face, edgecolor="black", zorder=3))
        axes.text(place, 0, f"$\\mathbf{{x}}{index}$", fontsize=9, zorder=4, **middle)
    for place, kernel in enumerate(["1", "2", None, None, "K"]):
        # Annealing as AIS does it, and RAISE's way back.
        for sign, estimator, name in ((1, "AIS", "T"), (-1, "RAISE", "\\widetilde{T}")):
            ends = ((place + 0.2, 0.16 * sign), (place + 0.8, 0.16 * sign))
            look = arrow_of(estimator)
            bent = {"connectionstyle": "arc3,rad=-0.25"}
            start, end = ends[::sign]
            axes.annotate("", end, start, arrowprops=look | bent)
            if kernel:
                label = f"${name}_{{{kernel}}}$"
                axes.text(place + 0.5, 0.46 * sign, label, color=look["color"], **middle)
    axes.text(-0.3, 0, "$p_0 \\rightarrow$", ha="right", va="center")
    axes.text(5.3, 0, "test image", ha="left", va="center")
    axes.set(xlim=(-0.9, 6.1), ylim=(-0.65, 0.65), aspect="equal")
    axes.set_axis_off()


def sums_of_weights(sums: Mapping[int, tuple[float, float]]) -> Table:
    """Sums of the mean weights with the kernel of equation 12 and with the printed one, by K."""
    lines = [
        [f"{steps:,}", f"{derived:.2f}", f"{printed:,.2f}"]
        for steps, (derived, printed) in sums.items()
    ]
    return Table(["$K$", "$\\widetilde T_{k+1}$", "$\\widetilde T_k$, as printed"], lines)


def wedge(rows: Rows) -> Player | None:
    """A player for the bracket of one enumerated model from one start; None with a single row."""
    if len(rows) == 1:
        return None
    steps, high, low, errors = columns(rows, "steps", "ais", "raise", "raise_error")
    intervals = [row["ais_interval"] for row in rows]
    above = [(bottom, ais, top) for ais, (bottom, top) in zip(high, intervals, strict=True)]
    below = [
        (end - 3 * error, end, end + 3 * error) for end, error in zip(low, errors, strict=True)
    ]
    title = f"The bracket of {rows[0]['model']} from the {rows[0]['start']}"
    return bracket_player(steps, above, below, rows[0]["exact"], title)


def bad_mode(rows: Rows, fives: Mapping[str, Tensor], image_shape: tuple[int, int]) -> Figure:
    """A bracket with its exact value, and ten images [10, D] for each label, as in Figure 5."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.4), width_ratios=[1.1, 1.0])
    draw_bracket(left, rows, "base rates")
    frame_brackets(left, rows, rows[0]["steps"])
    left.set(title=rows[0]["model"], ylabel="test log-probability (nats)")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=2)
    draw_images(right, torch.cat(list(fives.values())), image_shape, columns=5)
    height = image_shape[0] + 1
    for number, label in enumerate(fives):
        place = 1 - (2 * number + 1) / (2 * len(fives))
        look: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": 9}
        right.text(-0.02, place, label, transform=right.transAxes, **look)
        if number:
            right.axhline(2 * number * height, color="black", linestyle="-", linewidth=1.5)
    return figure


def samples(rows: Rows, pictures: Mapping[str, Tensor], image_shape: tuple[int, int]) -> Figure:
    """A bracket from the uniform start, beside two sets of images [32, D], as in Figure 6."""
    figure, (left, *panels) = plt.subplots(1, 3, figsize=(7.0, 3.6), width_ratios=[1.25, 1, 1])
    draw_bracket(left, rows, "uniform")
    frame_brackets(left, rows, second_smallest(rows))
    left.set(title=rows[0]["model"], ylabel="test log-probability (nats)")
    left.legend(loc="lower right", fontsize=8)
    for axes, (title, images) in zip(panels, pictures.items(), strict=True):
        draw_images(axes, images.float(), image_shape, columns=4)
        axes.set_title(title, fontsize=10)
    return figure
