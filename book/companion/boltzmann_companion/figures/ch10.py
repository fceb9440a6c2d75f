"""The pictures of chapter 10: deep Boltzmann machines, RAISE's walks, and the paper's Figure 7."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.figures.brackets import draw_models
from boltzmann_companion.plots import PALETTE, arrow_of, draw_layer, join
from boltzmann_companion.rows import by_model, columns

# Lines end at the units of `layers`, which stand close together.
_TIGHT = {"shrinkA": 6, "shrinkB": 6}
# Annealing, as AIS does it, makes an image; RAISE goes back from one.
_DOWN = arrow_of("AIS") | {"linewidth": 1.4}
_UP = arrow_of("RAISE") | {"linewidth": 1.4}


def layers() -> Figure:
    """A DBN, a DBM, and the DBM as an RBM."""
    figure, panels = plt.subplots(1, 3, figsize=(7.4, 3.0), width_ratios=[1, 1, 1.7])
    for axes, title, style in ((panels[0], "DBN", "-|>"), (panels[1], "DBM", "-")):
        v = draw_layer(axes, 4, (0, 0), r"$\mathbf{v}$", -2.1, spacing=0.75)
        h1 = draw_layer(axes, 3, (0, 1.6), r"$\mathbf{h}^1$", -2.1, spacing=0.75)
        h2 = draw_layer(axes, 4, (0, 3.2), r"$\mathbf{h}^2$", -2.1, spacing=0.75)
        join(axes, product(h1, v), color=PALETTE[1], arrowstyle=style, **_TIGHT)
        join(axes, product(h2, h1), color=PALETTE[0], **_TIGHT)
        axes.set(title=title, xlim=(-2.5, 1.6), ylim=(-0.4, 3.6), aspect="equal")
    axes = panels[2]
    v = draw_layer(axes, 4, (-1.7, 0.8), r"$\mathbf{v}$", -1.7, spacing=0.75)
    h2 = draw_layer(axes, 4, (1.7, 0.8), r"$\mathbf{h}^2$", 1.7, spacing=0.75)
    for text, place in zip(axes.texts, (-1.7, 1.7), strict=True):
        text.set_position((place, 0.15))
    h1 = draw_layer(axes, 3, (0, 2.4), r"$\mathbf{h}^1$", -1.5, spacing=0.75)
    join(axes, product(h1, v), color=PALETTE[1], **_TIGHT)
    join(axes, product(h1, h2), color=PALETTE[0], **_TIGHT)
    axes.set(title="DBM as an RBM", xlim=(-3.3, 3.3), ylim=(-0.4, 3.6), aspect="equal")
    for axes in panels:
        axes.set_axis_off()
    return figure


def learning(rows: Rows, rbm_test: float) -> Figure:
    """The test average of DBMs along their joint training, beside that of an RBM in nats."""
    figure, axes = plt.subplots(figsize=(7.0, 3.2))
    models = by_model(rows)
    for name in by_model([row for row in rows if row["epoch"] > 0]):
        points = columns(models[name], "epoch", "test")
        axes.plot(*points, marker="o", markersize=3, label=f"pre-training: {name}")
    axes.axhline(rbm_test, color="black", linestyle=":", label="RBM")
    axes.set_xscale("symlog", linthresh=1)
    ticks = [0, 1, 3, 10, 30]
    axes.set(xlabel="epochs of joint training", ylabel="nats", xlim=(-0.15, 35))
    axes.set(xticks=ticks, xticklabels=ticks)
    axes.minorticks_off()
    axes.legend()
    return figure


def heating() -> Figure:
    """RAISE for a DBM: annealing, its image, the heating of h2, and the chains that walk back."""
    figure, axes = plt.subplots(figsize=(9.0, 3.4))
    columns = [
        (0, "$\\mathbf{x}_0$", "$p_0$"),
        (1.5, "$\\mathbf{x}_1$", "$p_1$"),
        (3.4, "$\\mathbf{x}_{K-1}$", "$p_{K-1}$"),
        (5.1, "$\\mathbf{x}_K$", "$p_K$"),
        (6.9, "$\\mathbf{h}'_{K-1}$", "$p_{K-1}(\\cdot|\\mathbf{v})$"),
        (8.8, "$\\mathbf{h}'_1$", "$p_1(\\cdot|\\mathbf{v})$"),
        (10.4, "$\\mathbf{h}'_0$", "$p_0(\\cdot|\\mathbf{v})$"),
    ]
    middle: dict[str, Any] = {"ha": "center", "va": "center"}
    for number, (x, name, target) in enumerate(columns):
        v_color = "0.75" if number >= 3 else "white"
        for y, color in ((1.2, "white"), (0, v_color)):
            axes.add_patch(Circle((x, y), 0.26, facecolor=color, edgecolor="black", zorder=3))
        axes.text(x, 1.2, "$\\mathbf{h}^2$", zorder=4, **middle)
        axes.text(x, 0, "$\\mathbf{v}$", zorder=4, **middle)
        axes.text(x, -0.65, name, fontsize=11, **middle)
        axes.text(x, 2.45, target, fontsize=11, **middle)
    for number, index in enumerate(["1", None, "K", "K-1", None, "0"]):
        (start, *_), (end, *_) = columns[number : number + 2]
        x = (start + end) / 2
        if index is None:
            axes.text(x, 1.2, "…", fontsize=14, **middle)
            axes.text(x, 0, "…", fontsize=14, **middle)
            continue
        heated = number >= 3
        y, reach = (1.2, 0.0) if heated else (0.6, 0.14)
        bent = {"shrinkA": 12, "shrinkB": 12, "connectionstyle": "arc3,rad=-0.45"}
        left = (start + reach, y)
        right = (end - reach, y)
        axes.annotate("", right, left, arrowprops=_DOWN | bent)
        axes.annotate("", left, right, arrowprops=_UP | bent)
        power = "^{(\\mathbf{v})}" if heated else ""
        forward = f"$T_{{{index}}}{power}$"
        back = f"$\\tilde{{T}}_{{{index}}}{power}$"
        text: dict[str, Any] = {"ha": "center", "fontsize": 10}
        axes.text(x, y + 0.52, forward, va="bottom", color=_DOWN["color"], **text)
        axes.text(x, y - 0.54, back, va="top", color=_UP["color"], **text)
    axes.axvspan(4.55, 5.65, color="0.5", alpha=0.12, linewidth=0)
    axes.text(5.1, 3.0, "the image", ha="center", fontsize=10)
    axes.text(2.2, 3.0, "annealing", ha="center", fontsize=10)
    axes.text(8.7, 3.0, "heating, $\\mathbf{v}$ held fixed", ha="center", fontsize=10)
    axes.set(xlim=(-0.6, 11.1), ylim=(-0.95, 3.3), aspect="equal")
    axes.set_axis_off()
    return figure


def unrolled() -> Figure:
    """A DBN with two hidden layers, and its annealing model as a deep stack."""
    figure, axes = plt.subplots(figsize=(6.4, 6.2))
    for y, name in ((0, "$\\mathbf{v}$"), (1.3, "$\\mathbf{h}^1$"), (2.6, "$\\mathbf{h}^2$")):
        _box(axes, 0, y, name, filled=y == 0)
    axes.plot([0, 0], [1.58, 2.32], color=_DOWN["color"], linestyle="-")
    axes.text(0.15, 1.95, "$W^2$", va="center", color=_DOWN["color"])
    _step_down(axes, 0, 1.3, 0, ("$W^1$", "$Q$"))
    first_layer = "$W^1$", "$Q = W^{1\\top}$"
    last_down = "$\\beta_{K} W^2$"
    last_up = "$\\beta_{K} W^{2\\top}$"
    first_down = "$\\beta_{1} W^2$"
    first_up = "$\\beta_{1} W^{2\\top}$"
    # From the bottom up: the height, the name, and the weights of the step down to the box below.
    stack = [
        (0, "$\\mathbf{v}$", None),
        (1.25, "$\\mathbf{x}_K$", first_layer),
        (2.5, "$\\mathbf{g}_K$", (last_down, last_up)),
        (3.75, "$\\mathbf{x}_{K-1}$", (last_up, last_down)),
        (4.6, None, None),
        (5.45, "$\\mathbf{x}_1$", None),
        (6.7, "$\\mathbf{g}_1$", (first_down, first_up)),
        (7.95, "$\\mathbf{x}_0$", (first_up, first_down)),
    ]
    for number, (y, name, _) in enumerate(stack):
        if name is None:
            axes.text(4.4, y, "⋮", ha="center", va="center", fontsize=16)
        else:
            _box(axes, 4.4, y, name, filled=number == 0)
    for (below, *_), (y, _, label) in pairwise(stack):
        if label is not None:
            _step_down(axes, 4.4, y, below, label)
    axes.text(5.1, 1.25, "$= \\mathbf{h}^1$", va="center", fontsize=11)
    axes.text(5.1, 7.95, "from $p_0$", va="center", fontsize=11)
    axes.text(0, 3.2, "DBN", ha="center", fontsize=11)
    axes.set(xlim=(-1.2, 6.8), ylim=(-0.45, 8.45), aspect="equal")
    axes.set_axis_off()
    return figure


def _box(axes: Axes, x: float, y: float, name: str, filled: bool) -> None:
    """A layer of `unrolled`, grey if it is observed."""
    color = "0.75" if filled else "white"
    look: dict[str, Any] = {"facecolor": color, "edgecolor": "black", "zorder": 3}
    axes.add_patch(Rectangle((x - 0.46, y - 0.28), 0.92, 0.56, **look))
    axes.text(x, y, name, ha="center", va="center", fontsize=11, zorder=4)


def _step_down(axes: Axes, x: float, y: float, below: float, label: tuple[str, str]) -> None:
    """An arrow down to the box below and a dashed one up, with their weights."""
    axes.annotate("", (x - 0.16, below + 0.28), (x - 0.16, y - 0.28), arrowprops=_DOWN)
    axes.annotate("", (x + 0.16, y - 0.28), (x + 0.16, below + 0.28), arrowprops=_UP)
    text: dict[str, Any] = {"va": "center", "fontsize": 10}
    axes.text(x - 0.28, (y + below) / 2, label[0], ha="right", color=_DOWN["color"], **text)
    axes.text(x + 0.28, (y + below) / 2, label[1], ha="left", color=_UP["color"], **text)


def brackets(points: Rows, shown_from: int) -> Figure:
    """Figure 7, a panel for each model, whose limits hold all points from K = `shown_from` on."""
    lines = -(-len(by_model(points)) // 2)
    figure = plt.figure(figsize=(5.2, 0.6 + 2.4 * lines))
    draw_models(figure, points, shown_from)
    return figure
