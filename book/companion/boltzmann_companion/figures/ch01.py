"""Figures of chapter 1: a tiny RBM in full; a trained one with its filters, chains and scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from torch import Tensor

from boltzmann_companion.plots import PALETTE, draw_frame, draw_images
from paperlib.models import RBM
from paperlib.numerics import all_states


def duration(log10_seconds: float) -> str:
    """Seconds, given as a logarithm, in words."""
    if log10_seconds < 0:
        return "below 1 second"
    units = [("seconds", 1), ("minutes", 60), ("hours", 3600), ("days", 86_400)]
    for name, unit in units:
        if log10_seconds - math.log10(unit) < 2:
            return f"{10 ** (log10_seconds - math.log10(unit)):.0f} {name}"
    return f"$10^{{{log10_seconds - math.log10(3.156e7):.0f}}}$ years"


def terms_row(name: str, visible: int, hidden: int) -> dict[str, Any]:
    """A row of `rbm-number-of-terms`: log10 of how many terms Z has.

    `joint` counts them before one layer is summed out, `reduced` after.
    """
    reduced = min(visible, hidden) * math.log10(2)
    return {
        "model": name,
        "visible": visible,
        "hidden": hidden,
        "joint": (visible + hidden) * math.log10(2),
        "reduced": reduced,
        "duration": duration(reduced - 6),
    }


def graph(rbm: RBM) -> Figure:
    """The units of a small RBM with their biases, and its weights.

    Large weights are wide lines, and negative ones are dashed.
    """
    figure, axes = plt.subplots(figsize=(6.0, 2.7))
    indent = (rbm.num_visible - rbm.num_hidden) / 2
    visible_x = [float(i) for i in range(rbm.num_visible)]
    hidden_x = [indent + j for j in range(rbm.num_hidden)]
    for i, x_low in enumerate(visible_x):
        for j, x_high in enumerate(hidden_x):
            weight = rbm.weights[i, j].item()
            color, line = (PALETTE[0], "-") if weight > 0 else (PALETTE[1], "--")
            look = {"color": color, "linestyle": line, "linewidth": 0.6 * abs(weight), "zorder": 1}
            axes.plot([x_low, x_high], [0, 1], **look)
    for layer, name, y, xs, marker, bias in [
        ("v", "b", 0.0, visible_x, "s", rbm.visible_bias),
        ("h", "a", 1.0, hidden_x, "o", rbm.hidden_bias),
    ]:
        look = {"markersize": 27, "color": "white", "markeredgecolor": "black", "zorder": 2}
        axes.plot(xs, [y] * len(xs), marker, linestyle="", **look)
        for unit, x in enumerate(xs, start=1):
            axes.text(x, y, f"${layer}_{unit}$", ha="center", va="center", fontsize=12)
            label = f"${name}_{unit} = {bias[unit - 1]:g}$"
            axes.text(x, y + (0.3 if y else -0.34), label, ha="center", va="center", fontsize=9)
    axes.text(-0.55, 1, "hidden", ha="right", va="center")
    axes.text(-0.55, 0, "visible", ha="right", va="center")
    axes.set(xlim=(-1.2, rbm.num_visible - 0.5), ylim=(-0.5, 1.45))
    axes.set_axis_off()
    return figure


def in_full(rbm: RBM, p_joint: Tensor) -> Figure:
    """The joint distribution [2^D, 2^M] of a tiny RBM, and that of its images."""
    all_v = all_states(rbm.num_visible)
    all_h = all_states(rbm.num_hidden)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 2.9), width_ratios=[1, 1.5])
    left.imshow(p_joint.T, cmap="gray_r", aspect="auto", vmin=0)
    names = ["".join(str(int(unit)) for unit in h) for h in all_h]
    left.set_yticks(range(len(all_h)), names, fontsize=8, family="monospace")
    left.set_xticks([])
    left.grid(False)
    left.set(ylabel="hidden state", xlabel="image", title="$p(\\mathbf{v}, \\mathbf{h})$")
    right.bar(range(len(all_v)), p_joint.sum(1), color=PALETTE[0])
    _image_ticks(right, all_v)
    right.set(title="$p(\\mathbf{v})$", xlim=(-0.7, 15.7))
    right.grid(False, axis="x")
    return figure


def gibbs_step(h_given_v: Tensor, v_given_h: Tensor, p_v: Tensor) -> Figure:
    """Both halves of a step, [2^D, 2^M] and [2^M, 2^D], their product, and its flow."""
    transition = h_given_v @ v_given_h
    matrices = {
        "$p(\\mathbf{h} \\mid \\mathbf{v})$": h_given_v,
        "$p(\\mathbf{v}' \\mid \\mathbf{h})$": v_given_h,
        "$T(\\mathbf{v}' \\mid \\mathbf{v})$": transition,
        "$p(\\mathbf{v})\\,T(\\mathbf{v}' \\mid \\mathbf{v})$": p_v[:, None] * transition,
    }
    figure, panels = plt.subplots(1, 4, figsize=(7.0, 2.2), width_ratios=[8, 16, 16, 16])
    for panel, (title, matrix) in zip(panels, matrices.items(), strict=True):
        panel.imshow(matrix, vmin=0)
        panel.set_title(title)
        draw_frame(panel)
    return figure


def binarised(rows: Iterable[tuple[str, Tensor]], image_shape: tuple[int, int]) -> Figure:
    """A row of ten images [10, D] for each name."""
    named_rows = list(rows)
    figure, axes = plt.subplots(figsize=(6.8, 2.6))
    draw_images(axes, torch.cat([images.float() for _, images in named_rows]), image_shape, 10)
    for number, (name, _) in enumerate(named_rows):
        height = (number + 0.5) * (image_shape[0] + 1)
        axes.text(-1, height, name, ha="right", va="center", fontsize=9)
    return figure


def filters(rbm: RBM, image_shape: tuple[int, int]) -> Figure:
    """The weights of every hidden unit as an image, and the pixels' probabilities with all off."""
    across = -(-rbm.num_hidden // 2)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 1.9), width_ratios=[across / 2, 1])
    shades = 0.5 + 0.5 * rbm.weights.T / rbm.weights.abs().max()
    draw_images(left, shades, image_shape, across)
    left.set_title(f"filters of the {rbm.num_hidden} hidden units", fontsize=10)
    draw_images(right, torch.sigmoid(rbm.visible_bias)[None], image_shape, 1)
    right.set_title("visible biases", fontsize=10)
    return figure


def chains(frames: Mapping[int, tuple[Tensor, Tensor]], image_shape: tuple[int, int]) -> Figure:
    """Two rows for each chain: visible [C, D] and hidden units [C, M] by the number of steps."""
    visible = torch.stack([v for v, _ in frames.values()], dim=1)
    hidden = torch.stack([h for _, h in frames.values()], dim=1)
    shapes = {"v": image_shape, "h": _near_square(hidden.shape[-1])}
    num_chains, num_frames = visible.shape[:2]
    heights = [_row_height(shape) for shape in shapes.values()] * num_chains
    figure, panels = plt.subplots(
        2 * num_chains, 1, figsize=(6.8, 1.8 * num_chains), height_ratios=heights
    )
    for chain in range(num_chains):
        pair = panels[2 * chain : 2 * chain + 2]
        layers = (visible, hidden)
        for panel, layer, (letter, shape) in zip(pair, layers, shapes.items(), strict=True):
            draw_images(panel, layer[chain], shape, num_frames)
            place = (-0.06 * (shape[1] + 1), 0.5 * (shape[0] + 1))
            panel.text(*place, f"$\\mathbf{{{letter}}}$", ha="right", va="center")
    for k, step in enumerate(frames):
        place = ((k + 0.5) * (image_shape[1] + 1), -0.7)
        panels[0].text(*place, str(step), ha="center", va="bottom", fontsize=9)
    return figure


def traces(
    steps: Sequence[int], means: Mapping[str, Sequence[float]], exact: Tensor, on_test: Tensor
) -> Figure:
    """Means of ln p*(v) along chains by their start, beside those of exact draws and images [N]."""
    figure, axes = plt.subplots(figsize=(6.0, 3.0))
    for name, trace in means.items():
        axes.plot([1 + step for step in steps], trace, label=name)
    exact_level = exact.mean().item()
    test_level = on_test.mean().item()
    axes.axhline(exact_level, color="black", linestyle="-.", linewidth=1, label="exact draws")
    axes.set(xscale="log", xlabel="1 + Gibbs steps", ylabel="mean $\\ln p^*(\\mathbf{v})$ in nats")
    spread = exact.std().item()
    axes.set_ylim(min(exact_level, test_level) - 2 * spread, max(exact_level, test_level) + spread)
    axes.legend(loc="lower right")
    return figure


def scores(values: Mapping[str, Tensor]) -> Figure:
    """The middle half, the median and the extremes of ln p*(v) [N] for each kind of image."""
    figure, axes = plt.subplots(figsize=(6.6, 2.9))
    look = {"orientation": "horizontal", "whis": (0, 100), "widths": 0.55, "patch_artist": True}
    boxes = axes.boxplot(list(values.values()), **look)
    for box in boxes["boxes"]:
        box.set(facecolor="0.85", edgecolor="black")
    for line in boxes["medians"]:
        line.set(color=PALETTE[1], linewidth=2, linestyle="-")
    axes.set_yticks(range(1, len(values) + 1), list(values))
    axes.set(xlabel="$\\ln p^*(\\mathbf{v})$ in nats")
    axes.grid(False, axis="y")
    return figure


def gradient(data_term: Tensor, model_term: Tensor) -> Figure:
    """Both terms [D, M] of the gradient and their difference, in numbers."""
    terms = {"data": data_term, "\u2212 model": model_term, "= gradient": data_term - model_term}
    num_visible, num_hidden = data_term.shape
    figure, panels = plt.subplots(1, 3, figsize=(6.4, 2.6))
    for panel, (title, matrix) in zip(panels, terms.items(), strict=True):
        panel.imshow(matrix, cmap="gray_r", vmin=-0.5, vmax=1.2, aspect="auto")
        for i, row in enumerate(matrix.tolist()):
            for j, value in enumerate(row):
                label = f"{value:.2f}".replace("-", "\u2212")
                panel.text(j, i, label, ha="center", va="center", fontsize=9)
        panel.set(title=title, xticks=range(num_hidden), yticks=range(num_visible))
        panel.set_xticklabels([f"$h_{j + 1}$" for j in range(num_hidden)])
        panel.set_yticklabels([f"$v_{i + 1}$" for i in range(num_visible)])
        panel.grid(False)
    return figure


def _image_ticks(axes: Axes, states: Tensor) -> None:
    """Draw each 2 x 2 image of [N, 4] below its place on the horizontal axis."""
    axes.set_xticks(range(len(states)), [""] * len(states))
    look = {"cmap": "gray_r", "norm": Normalize(0, 1), "interpolation": "nearest"}
    for place, state in enumerate(states):
        axes.add_artist(
            AnnotationBbox(
                OffsetImage(state.reshape(2, 2), zoom=4.5, **look),
                (place, 0),
                xybox=(0, -6),
                xycoords=("data", "axes fraction"),
                boxcoords="offset points",
                box_alignment=(0.5, 1),
                pad=0.08,
                bboxprops={"edgecolor": "0.4", "linewidth": 0.8},
                annotation_clip=False,
            )
        )


def _near_square(num_units: int) -> tuple[int, int]:
    """Units as a rectangle that is as square as possible."""
    rows = max(r for r in range(1, math.isqrt(num_units) + 1) if num_units % r == 0)
    return rows, num_units // rows


def _row_height(shape: tuple[int, int], columns: int = 10) -> float:
    """Height of a row of grids in widths of the row, so that rows of different grids line up."""
    return (shape[0] + 2) / (columns * (shape[1] + 1) + 1)
