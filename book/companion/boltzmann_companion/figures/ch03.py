"""Figures and tables of chapter 3: the bias of CD-T, a field without a potential, and training."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.plots import LINE_STYLES, PALETTE, draw_images
from boltzmann_companion.rows import columns, grouped
from boltzmann_companion.studies.contrastive_divergence import Bias, Course
from boltzmann_companion.tables import Record, Table
from paperlib.learning import ContrastiveDivergence

_MARKERS = "os^"


def training_set(images: Tensor, side: int) -> Figure:
    """Square images [N, side ** 2], seven in a row."""
    figure, axes = plt.subplots(figsize=(7, 1.3))
    draw_images(axes, images, (side, side), columns=7)
    return figure


def bias(rows: Rows, slowest: Mapping[str, float]) -> Figure:
    """Bias and angle of CD-T against T, and the contribution of the slowest eigenvalue.

    `slowest` has its share of the gradient at T = 0 by the name of the model.
    """
    figure, left, right = _side_by_side(3.4)
    steps = list(grouped(rows, "steps"))
    stages = grouped(rows, "stage")
    for (name, share), marker in zip(slowest.items(), _MARKERS, strict=True):
        points = stages[name]
        look: dict[str, Any] = {"marker": marker, "markersize": 5, "label": name}
        (line,) = left.loglog(steps, [row["bias"] / 100 for row in points], **look)
        slow = [share * row["lambda_2"] ** row["steps"] for row in points]
        left.loglog(steps, slow, color="0.5", linestyle=(0, (2, 2)), linewidth=1, zorder=0)
        right.semilogx(steps, *columns(points, "angle"), color=line.get_color(), **look)
    left.set(ylim=(1e-6, 5), xlabel="Gibbs steps $T$", ylabel="norm of bias / norm of gradient")
    _angle_by_steps(right)
    for axes in (left, right):
        _label_steps(axes, steps)
    left.legend(fontsize=8, loc="lower left")
    return figure


def bias_table(record: Record) -> Table:
    """A row for the bias and one for the angle of each model, a column for each T."""
    rows = record["rows"]
    lines = []
    for name, points in grouped(rows, "stage").items():
        relaxation = f"{points[0]['relaxation']:.1f}"
        biases = [f"{row['bias']:.1f}" for row in points]
        angles = [f"{row['angle']:.1f}" for row in points]
        lines.append([name, relaxation, "bias, %", *biases])
        lines.append(["", "", "angle, degrees", *angles])
    steps = grouped(rows, "steps")
    heading = ["model", r"$-1/\ln \lambda_2$", "", *(f"$T = {t}$" for t in steps)]
    return Table(heading, lines, record.view().source)


def curl(works: Mapping[str, Tensor], asymmetries: Mapping[str, float]) -> Figure:
    """Work [A] along a loop by the name of the field, and the asymmetry of the Jacobian of CD-T."""
    figure, left, right = _side_by_side(3.2)
    for name, work in works.items():
        degrees = torch.linspace(0, 360, len(work) + 1)
        left.plot(degrees, torch.cat([torch.zeros(1), work]), label=name)
    left.axhline(0, color="0.6", linewidth=0.8, linestyle="-")
    left.margins(y=0.25)
    left.set(xlabel="angle along the loop (degrees)", xticks=range(0, 361, 90))
    left.set_ylabel("accumulated work (nats)")
    left.legend(fontsize=8, ncols=3, loc="upper center", columnspacing=1, handlelength=1.8)
    by_steps = {
        int(name.removeprefix("CD-")): value
        for name, value in asymmetries.items()
        if name.startswith("CD-")
    }
    right.loglog(list(by_steps), list(by_steps.values()), marker="o")
    _label_steps(right, list(by_steps))
    right.set(xlabel="Gibbs steps $T$", ylabel="asymmetry of the Jacobian")
    return figure


def masses(probs: Mapping[str, Tensor], images: Tensor, side: int) -> Figure:
    """Probabilities [N] of images after the gradient and after CD-1, above the images [N, D]."""
    figure, (axes, strip) = plt.subplots(2, 1, figsize=(7, 3.6), height_ratios=[4, 1])
    positions = torch.arange(len(images))
    for offset, name, color, hatch in (
        (-0.2, "gradient", PALETTE[0], ""),
        (0.2, "CD-1", PALETTE[1], "///"),
    ):
        look = {"color": color, "hatch": hatch, "edgecolor": "white"}
        axes.bar(positions + offset, probs[name], width=0.4, label=name, **look)
    axes.axhline(1 / len(images), color="0.3", linewidth=0.9, linestyle="--")
    axes.set(ylabel="probability", xticks=[], xlim=(-0.6, len(images) - 0.4))
    axes.legend()
    draw_images(strip, images, (side, side), columns=len(images))
    return figure


def masses_table(probs: Mapping[str, Tensor]) -> Table:
    """How probable all training images are together, and how uneven their probabilities [N] are.

    Runs with a weight cost are left out.
    """
    heading = ["run", "all training images", "most over least probable"]
    lines = [
        [name, f"{images.sum():.2f}", f"{images.max() / images.min():.3g}"]
        for name, images in probs.items()
        if "cost" not in name
    ]
    return Table(heading, lines)


def whereabouts_table(shares: Mapping[int, tuple[float, float, float]]) -> Table:
    """The shares of chains at the same image, at another one, and elsewhere, after T steps."""
    lines = [[f"{t}", *(f"{share:.2f}" for share in at_t)] for t, at_t in shares.items()]
    return Table(["$T$", "same image", "another training image", "elsewhere"], lines)


def sampled(runs: Mapping[str, Course], steps: Tensor, gradient: Tensor) -> Figure:
    """Likelihood and smoothed reconstruction error of runs with samples.

    Beside them is the likelihood [U] that the gradient reaches at the updates `steps` [U].
    """
    figure, left, right = _side_by_side(3.3)
    within_runs = steps <= max(int(run.epochs[-1]) for run in runs.values())
    look: dict[str, Any] = {"color": "0.5", "linewidth": 1, "linestyle": "-"}
    left.plot(steps[within_runs], gradient[within_runs], label="gradient", **look)
    for (name, run), color, style in zip(runs.items(), PALETTE[1:], LINE_STYLES[1:], strict=False):
        look = {"color": color, "linestyle": style, "linewidth": 1.2}
        left.plot(run.epochs, run.log_likelihood, label=name, **look)
        right.plot(run.epochs, run.smoothed_errors, **look)
    left.set(xlabel="updates", ylabel="log-likelihood (nats)", ylim=(-5.2, -3.3))
    right.set(xlabel="updates", ylabel="reconstruction error", ylim=(0.03, 0.06))
    left.legend(fontsize=8, loc="lower right")
    return figure


def digits(constant: Mapping[str, Course], falling: Mapping[str, Sequence[Course]]) -> Figure:
    """Test log-probability against epochs, at a constant and at a falling rate.

    Of the runs at a falling rate it has the first. The lower panels magnify the upper ends.
    """
    figure, grid = plt.subplots(2, 2, figsize=(7, 5.2), sharex=True, sharey="row")
    pairs = {name: (run, falling[name][0]) for name, run in constant.items()}
    for name, runs in pairs.items():
        for column, run in zip(grid.T, runs, strict=True):
            for axes in column:
                axes.plot(run.epochs, run.log_likelihood, linewidth=1.2, label=name)
    curves = {
        name: torch.stack([run.log_likelihood for run in runs]) for name, runs in pairs.items()
    }
    lowest = {
        name: values[:, values.shape[1] // 3 :].min().item() for name, values in curves.items()
    }
    top = max(values.max().item() for values in curves.values())
    grid[0, 0].set_ylim(min(lowest.values()) - 0.3, top + 0.3)
    lowest_cd = min(value for name, value in lowest.items() if name != "persistent")
    grid[1, 0].set_ylim(lowest_cd - 0.05, top + 0.05)
    titles = ("constant rate", "rate falling to zero")
    for axes, title in zip(grid[0], titles, strict=True):
        axes.set_title(title)
    for axes in grid[:, 0]:
        axes.set_ylabel("test log-probability (nats)")
    for axes in grid[1]:
        axes.set_xlabel("epoch")
    grid[0, 0].legend(fontsize=8, loc="lower right")
    return figure


def gains_table(falling: Mapping[str, Sequence[Course]], seed: int) -> Table:
    """The last look of CD-1 with a falling rate, and what other methods gain on it by seed."""
    last = {
        name: torch.stack([run.log_likelihood[-1] for run in runs])
        for name, runs in falling.items()
    }
    cd1 = last.pop("CD-1")
    lines = [["CD-1", *(_signed(value, ".2f") for value in [*cd1, cd1.mean()])]]
    for name, values in last.items():
        gains = values - cd1
        cells = [_signed(gain, "+.3f") for gain in [*gains, gains.mean()]]
        lines.append([f"{name} minus CD-1", *cells])
    return Table(["method", *(f"seed {seed + k}" for k in range(len(cd1))), "mean"], lines)


def digits_bias(steps: Sequence[int], biases: Mapping[int, Bias]) -> Figure:
    """Norm and angle of the bias of CD-T by epoch, and a band for what noise alone would show."""
    figure, left, right = _side_by_side(3.3)
    for (epoch, measured), marker in zip(biases.items(), _MARKERS, strict=False):
        look: dict[str, Any] = {"marker": marker, "markersize": 5}
        left.loglog(steps, measured.norms, label=f"epoch {epoch}", **look)
        right.semilogx(steps, measured.angles, **look)
    floors = [measured.noise_floor for measured in biases.values()]
    left.axhspan(min(floors), max(floors), color="0.8", zorder=0)
    left.set(xlabel="Gibbs steps $T$", ylabel="norm of bias")
    _angle_by_steps(right)
    for axes in (left, right):
        _label_steps(axes, steps)
    left.legend(fontsize=8)
    return figure


def recipe_table() -> Table:
    """Settings of the class `ContrastiveDivergence`, with their meaning."""
    meaning = {
        "batch_size": "data vectors in a minibatch",
        "learning_rate": r"step size $\epsilon$",
        "weight_cost": "pull of the weights towards zero, relative to the rate; biases are exempt",
        "initial_momentum": "share of the previous step that is kept, at first",
        "final_momentum": "the same, later on",
        "momentum_switch_epoch": "last epoch with the initial momentum",
        "initial_weight_std": (
            "weights start at normal draws with this standard deviation, biases at zero"
        ),
    }
    defaults = {field.name: field.default for field in dataclasses.fields(ContrastiveDivergence)}
    lines = [[f"`{name}`", f"{defaults[name]:g}", text] for name, text in meaning.items()]
    return Table(["setting", "default", "meaning"], lines)


def schedule_table(recipe: ContrastiveDivergence, epochs: Sequence[int]) -> Table:
    """Gibbs steps, learning rate and momentum in some epochs of a training."""
    lines = []
    for epoch in epochs:
        rate = f"{recipe.learning_rate_in(epoch):.3g}"
        lines.append(
            [f"{epoch}", f"{recipe.steps_in(epoch)}", rate, f"{recipe.momentum_in(epoch)}"]
        )
    return Table(["epoch", "$T$", "learning rate", "momentum"], lines)


def _signed(value: float | Tensor, digits: str) -> str:
    """A number with a proper minus sign."""
    return f"{value:{digits}}".replace("-", "−")


def _side_by_side(height: float) -> tuple[Figure, Axes, Axes]:
    """Two panels with some space between them."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, height))
    figure.set_layout_engine("constrained", wspace=0.06)
    return figure, left, right


def _angle_by_steps(axes: Axes) -> None:
    axes.set(xlabel="Gibbs steps $T$", ylabel="angle to the gradient (degrees)", ylim=(0, 90))


def _label_steps(axes: Axes, steps: Sequence[int]) -> None:
    axes.set_xticks(steps, [str(t) for t in steps])
    axes.minorticks_off()
