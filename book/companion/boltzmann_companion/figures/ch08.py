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
from boltzmann_companion.players.brackets import bracket_player
from boltzmann_companion.players.page import Player
from boltzmann_companion.players.particles import particle_player, particle_run
from boltzmann_companion.plots import LINE_STYLES, PALETTE, draw_images
from boltzmann_companion.rows import by_model, columns, where
from boltzmann_companion.studies.bracket_tables import STARTS
from boltzmann_companion.studies.two_bumps import Particles, TwoBumpPath
from boltzmann_companion.tables import Table

_START_COLORS: dict[str, str] = dict(zip(STARTS, PALETTE[:2], strict=True))


def _draw_bracket(axes: Axes, rows: Rows, start: str) -> None:
    """AIS and RAISE of one model and start against K, and the wedge between them."""
    color, (across, high, low) = _START_COLORS[start], columns(rows, "steps", "ais", "raise")
    axes.fill_between(across, low, high, color=color, alpha=0.12, linewidth=0)
    for values, line, marker, name in ((high, "-", "v", "AIS"), (low, "--", "^", "RAISE")):
        look = {"color": color, "linestyle": line, "marker": marker, "markersize": 4}
        axes.plot(across, values, label=f"{name}, {start}", **look)
    span = max(max(high) - min(low), 1.0)
    for row in rows:
        bottom, top = row["ais_interval"]
        ends = [bottom, min(top, row["ais"] + 2 * span)]
        axes.plot([row["steps"]] * 2, ends, color=color, linestyle="-", linewidth=1)
        ends = [row["raise"] + sign * 3 * row["raise_error"] for sign in (-1, 1)]
        axes.plot([row["steps"]] * 2, ends, color=color, linestyle="-", linewidth=2.5, alpha=0.5)


def _frame_brackets(axes: Axes, rows: Rows, title: str) -> None:
    """The exact value if it is known, and limits that leave out the smallest K, unless there is no other."""
    smallest = min(row["steps"] for row in rows)
    late = [row for row in rows if row["steps"] > smallest] or rows
    low, high = min(row["raise"] for row in late), max(row["ais"] for row in late)
    pad = 0.15 * max(high - low, 0.5)
    if rows[0]["exact"] is not None:
        axes.axhline(rows[0]["exact"], color="black", linestyle="-", linewidth=1)
    limits = (low - pad, high + pad)
    axes.set(xscale="log", title=title, ylim=limits, xlabel="annealing steps $K$")


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
        for sign, color, line, name in (
            (1, PALETTE[0], "-", "T"),
            (-1, PALETTE[1], "--", "\\widetilde{T}"),
        ):
            ends = ((place + 0.2, 0.16 * sign), (place + 0.8, 0.16 * sign))
            look = {"arrowstyle": "-|>", "color": color, "linestyle": line}
            bent = {"connectionstyle": "arc3,rad=-0.25"}
            start, end = ends[::sign]
            axes.annotate("", end, start, arrowprops=look | bent)
            if kernel:
                label = f"${name}_{{{kernel}}}$"
                axes.text(place + 0.5, 0.46 * sign, label, color=color, **middle)
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


def expectations(rows: Rows) -> Figure:
    """What one chain of AIS and of RAISE expects, and the annealing model, for data from the model and for a mode off the data."""
    figure, panels = plt.subplots(1, 2, figsize=(7.0, 3.2))
    titles = {"little": "data from the model", "spoilt": "a mode off the data"}
    for panel, (name, title) in zip(panels, titles.items(), strict=True):
        own = where(rows, model=name)
        panel.axhline(0, color="black", linestyle="-", linewidth=1)
        for key, label, number in (
            ("ais", "AIS", 0),
            ("annealing_model", "annealing model", 2),
            ("raise", "RAISE", 1),
        ):
            look = {"color": PALETTE[number], "linestyle": LINE_STYLES[number]}
            panel.plot(*columns(own, "steps", key), label=label, **look)
        panel.set(title=title, xscale="log", xlabel="annealing steps $K$")
    panels[0].set_ylabel("nats above average $\\ln p(\\mathbf{v})$")
    panels[0].legend()
    return figure


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
    figure = plt.figure(figsize=(7.0, 11.3))
    [above], [below] = figure.subfigures(2, 1, squeeze=False, height_ratios=[3.3, 8])
    for panel, start in zip(above.subplots(1, 2, sharey=True), STARTS, strict=True):
        _draw_gaps(panel, {name: where(rows, model=name, start=start) for name in names})
        panel.set(title=start, xlabel="annealing steps $K$")
    above.axes[0].set_ylabel("AIS less RAISE (nats)")
    lines = above.axes[0].get_legend_handles_labels()
    above.legend(*lines, loc="outside lower center", ncols=3)
    grid = below.subplots(3, 2)
    for axes, name in zip(grid.flat, names, strict=False):
        for start in STARTS:
            _draw_bracket(axes, where(rows, model=name, start=start), start)
        _frame_brackets(axes, where(rows, model=name), name)
    # the others have a panel below them, whose title would touch the label
    for axes in grid.flat[: len(names) - 2]:
        axes.set_xlabel("")
    for axes in grid[:, 0]:
        axes.set_ylabel("test log-probability (nats)")
    handles, labels = grid.flat[0].get_legend_handles_labels()
    if len(names) < grid.size:
        grid.flat[-1].set_axis_off()
        grid.flat[-1].legend(handles, labels, loc="center")
    else:
        below.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def _draw_gaps(axes: Axes, models: Mapping[str, Rows]) -> None:
    """AIS less RAISE of several models against K, with a band of a nat; below a nat the scale is linear, above it logarithmic."""
    axes.axhspan(-1, 1, color="0.9")
    axes.axhline(0, color="black", linestyle="-", linewidth=1)
    for number, (name, rows) in enumerate(models.items()):
        # side by side, where all have the same K
        across = [row["steps"] * 10 ** (0.06 * (number - len(models) / 2)) for row in rows]
        look = {"color": PALETTE[number], "markersize": 4}
        gaps = [row["gap"] for row in rows]
        axes.plot(across, gaps, "o", linestyle=LINE_STYLES[number], label=name, **look)
        for x, row in zip(across, rows, strict=True):
            if math.isinf(row["gap_error"]):
                axes.plot(x, row["gap"], "o", markerfacecolor="white", **look)
            else:
                ends = [row["gap"] + sign * 3 * row["gap_error"] for sign in (-1, 1)]
                axes.plot([x] * 2, ends, color=PALETTE[number], linestyle="-", linewidth=1)
    axes.set(xscale="log")
    axes.set_yscale("symlog", linthresh=1, linscale=1.5)
    axes.yaxis.set_major_formatter("{x:,g}")


def two_starts(rows: Rows) -> Figure:
    """The brackets of one model, with a panel for each start, as in the paper's Figure 4."""
    figure, panels = plt.subplots(1, 2, figsize=(7.0, 3.4), sharey=True)
    for panel, start in zip(panels, STARTS, strict=True):
        _draw_bracket(panel, where(rows, start=start), start)
        _frame_brackets(panel, rows, f"{rows[0]['model']}, {start}")
        panel.legend(loc="lower right")
    panels[0].set_ylabel("test log-probability (nats)")
    return figure


def bad_mode(rows: Rows, fives: Mapping[str, Tensor], image_shape: tuple[int, int]) -> Figure:
    """A bracket beside its exact value, and two rows of five images [10, D] for each label, as in the paper's Figure 5."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.4), width_ratios=[1.1, 1.0])
    _draw_bracket(left, rows, "base rates")
    exact = rows[0]["exact"]
    left.axhline(exact, color="black", linestyle="-", linewidth=1)
    everything = [row[key] for row in rows for key in ("ais", "raise")]
    pad = 0.1 * (max(everything) - min(everything))
    left.set(xscale="log", title=rows[0]["model"], xlabel="annealing steps $K$")
    left.set_ylabel("test log-probability (nats)")
    left.set_ylim(min(*everything, exact) - pad, max(everything) + pad)
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
    _draw_bracket(left, rows, "uniform")
    _frame_brackets(left, rows, rows[0]["model"])
    left.set_ylabel("test log-probability (nats)")
    left.legend(loc="lower right", fontsize=8)
    for axes, (title, images) in zip(panels, pictures.items(), strict=True):
        draw_images(axes, images.float(), image_shape, columns=4)
        axes.set_title(title, fontsize=10)
    return figure
