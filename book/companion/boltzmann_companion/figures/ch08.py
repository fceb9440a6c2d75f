"""The pictures of chapter 8: annealing models, and brackets of AIS and RAISE against the number of steps."""

from __future__ import annotations

import math
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
    draw_models,
    frame_brackets,
    second_smallest,
)
from boltzmann_companion.players.brackets import bracket_player
from boltzmann_companion.players.page import Player
from boltzmann_companion.players.particles import particle_player, particle_run
from boltzmann_companion.plots import LINE_STYLES, arrow_of, draw_images
from boltzmann_companion.rows import by_model, columns, where
from boltzmann_companion.studies.bracket_tables import STARTS
from boltzmann_companion.studies.two_bumps import Particles, TwoBumpPath
from boltzmann_companion.tables import Table


def course(
    chains: Mapping[str, Sequence[Tensor]],
    betas: Sequence[float],
    looks: Sequence[int],
    image_shape: tuple[int, int],
) -> Figure:
    """The scheme of the annealing model, and the chains `forward` and `backward`, [steps][chains, pixels], at some of the steps."""
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
        place, label = (part + 0.5) * (width + 1), f"β = {betas[look]:.2f}"
        lower.text(place, below, label, ha="center", va="top", fontsize=8)
    return figure


def _draw_scheme(axes: Axes) -> None:
    """The states x_0 to x_K with the transitions above them, and their reversals below."""
    names = ["\\mathbf{x}_0", "\\mathbf{x}_1", "\\mathbf{x}_2", "", "\\mathbf{x}_{K-1}"]
    names.append("\\mathbf{x}_K")
    middle: dict[str, Any] = {"ha": "center", "va": "center"}
    for place, name in enumerate(names):
        if not name:
            axes.text(place, 0, "…", fontsize=14, **middle)
            continue
        face = "0.85" if place == len(names) - 1 else "white"
        axes.add_patch(Circle((place, 0), 0.24, facecolor=face, edgecolor="black", zorder=3))
        axes.text(place, 0, f"${name}$", fontsize=9, zorder=4, **middle)
    for place, kernel in enumerate(["1", "2", None, None, "K"]):
        # annealing as AIS does it, and RAISE's way back
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


def melting(line: TwoBumpPath, runs: Mapping[str, Particles]) -> Player:
    """A player for reverse chains on a line, each run from one place."""
    return particle_player(
        [
            particle_run(label, run.betas, run.places, run.log_weights, _captions(line, run))
            for label, run in runs.items()
        ],
        line.log_density(0.0),
        line.log_density(1.0),
        "Twelve reverse chains from a test point back to the start",
        "RAISE",
    )


def _captions(line: TwoBumpPath, run: Particles) -> list[str]:
    """For how many chains the largest weights count at each moment, and the estimate at the last."""
    number = run.places.shape[1]
    means = run.log_weights.logsumexp(1) - math.log(number)
    counts = 1 / run.log_weights.softmax(1).square().sum(1)
    captions = [
        f"beta = {beta:.2f}: the largest weights count as {count:.1f} of {number} chains"
        for beta, count in zip(run.betas, counts.tolist(), strict=True)
    ]
    exact = line.log_density(1.0)[run.places[0, 0]]
    captions[-1] += f"; ln p of the point: {means[-1]:.2f} by RAISE, {exact:.2f} exactly".replace(
        "-", "−"
    )
    return captions


def sums_of_weights(
    steps: Sequence[int], right: Sequence[float], printed: Sequence[float]
) -> Table:
    """Sums of the mean weights with the kernel of equation 12 and with the one that is printed, for these numbers of steps."""
    return Table(
        ["$K$", "$\\widetilde T_{k+1}$", "$\\widetilde T_k$, as printed"],
        [
            [f"{k:,}", f"{one:.2f}", f"{other:,.{2 if other < 10 else 0}f}"]
            for k, one, other in zip(steps, right, printed, strict=True)
        ],
    )


def wedge(rows: Rows) -> Player | None:
    """A player for the bracket of one enumerated model from one start; None if there is nothing to step through."""
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


def brackets(rows: Rows) -> Figure:
    """The gaps of up to six models against K, and their brackets, one panel each, as in the paper's Figure 3."""
    names = list(by_model(rows))
    lines = -(-len(names) // 2)
    figure = plt.figure(figsize=(5.2, 5.4 + 2.1 * lines))
    [above], [below] = figure.subfigures(
        2, 1, squeeze=False, height_ratios=[4.8, 0.6 + 2.1 * lines]
    )
    panels = above.subplots(2, 1, sharex=True, sharey=True)
    for panel, start in zip(panels, STARTS, strict=True):
        _draw_gaps(panel, {name: where(rows, model=name, start=start) for name in names})
        panel.set(title=start, ylabel="AIS less RAISE (nats)")
    panels[-1].set_xlabel("annealing steps $K$")
    entries = panels[0].get_legend_handles_labels()
    above.legend(*entries, loc="outside lower center", ncols=2)
    draw_models(below, rows, second_smallest(rows))
    return figure


def _draw_gaps(axes: Axes, models: Mapping[str, Rows]) -> None:
    """AIS less RAISE of several models against K, with a band of a nat; below a nat the scale is linear, above it logarithmic."""
    axes.axhspan(-1, 1, color="0.9")
    axes.axhline(0, color="black", linestyle="-", linewidth=1)
    for number, (name, rows) in enumerate(models.items()):
        # side by side, where all have the same K
        across = [row["steps"] * 10 ** (0.06 * (number - len(models) / 2)) for row in rows]
        # black and grey: colours are for estimators
        look = {"color": ("black", "0.5")[number % 2], "linewidth": 1}
        mark = look | {"marker": "osDPX*"[number], "markersize": 5}
        gaps = [row["gap"] for row in rows]
        axes.plot(across, gaps, linestyle=LINE_STYLES[number // 2], label=name, **mark)
        for x, row in zip(across, rows, strict=True):
            if math.isinf(row["gap_error"]):
                axes.plot(x, row["gap"], markerfacecolor="white", **mark)
            else:
                ends = [row["gap"] + sign * 3 * row["gap_error"] for sign in (-1, 1)]
                axes.plot([x] * 2, ends, linestyle="-", **look)
    axes.set(xscale="log")
    axes.set_yscale("symlog", linthresh=1, linscale=1.5)
    axes.yaxis.set_major_formatter("{x:,g}")


def bad_mode(rows: Rows, fives: Mapping[str, Tensor], image_shape: tuple[int, int]) -> Figure:
    """A bracket beside its exact value, and two rows of five images [10, D] for each label, as in the paper's Figure 5."""
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
    """The bracket of a model from the uniform start, beside two sets of 32 images [32, D], as in the paper's Figure 6."""
    figure, (left, *panels) = plt.subplots(1, 3, figsize=(7.0, 3.6), width_ratios=[1.25, 1, 1])
    draw_bracket(left, rows, "uniform")
    frame_brackets(left, rows, second_smallest(rows))
    left.set(title=rows[0]["model"], ylabel="test log-probability (nats)")
    left.legend(loc="lower right", fontsize=8)
    for axes, (title, images) in zip(panels, pictures.items(), strict=True):
        draw_images(axes, images.float(), image_shape, columns=4)
        axes.set_title(title, fontsize=10)
    return figure
