"""Chapter 11: graphs, bounds, modes, fixed points and densities of its small models."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise, product
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.players.page import Player
from boltzmann_companion.players.traces import trace_player
from boltzmann_companion.plots import LINE_STYLES, PALETTE, draw_layer, join
from boltzmann_companion.rows import columns, grouped
from boltzmann_companion.studies.small_inference import (
    log_normal,
    two_modes,
)
from paperlib.variational.sparse_coding import BinarySparseCoding

Places = list[tuple[float, float]]


def three_graphs() -> Figure:
    """A semi-restricted, a deep and a directed model; colours mark what couples hidden units."""
    figure, panels = plt.subplots(1, 3, figsize=(7.4, 2.9))
    for axes in panels:
        axes.set(xlim=(-2.4, 1.6), ylim=(-0.5, 3.9), aspect="equal")
        axes.set_axis_off()
    semi, deep, directed = panels
    v_layer, h_layer = _two_layers(semi, "$\\mathbf{h}$")
    _connect(semi, product(h_layer, v_layer))
    _lateral(semi, h_layer)
    semi.set_title("semi-restricted")
    v_layer, h_layer = _two_layers(deep, "$\\mathbf{h}^1$")
    upper = _layer(deep, 3.2, "$\\mathbf{h}^2$", count=2)
    _connect(deep, product(h_layer, v_layer))
    _connect(deep, product(upper, h_layer), PALETTE[1])
    deep.set_title("deep")
    v_layer, h_layer = _two_layers(directed, "$\\mathbf{h}$")
    _connect(directed, product(h_layer, v_layer), arrowstyle="-|>")
    _lateral(directed, h_layer, linestyle=":")
    directed.set_title("directed")
    return figure


def _layer(axes: Axes, y: float, name: str, count: int = 3, **look: Any) -> Places:
    """A layer of these small graphs; where its units are."""
    return draw_layer(axes, count, (0, y), name, -2.0, spacing=1.1, radius=0.22, **look)


def _two_layers(axes: Axes, name: str) -> tuple[Places, Places]:
    """Grey visible units and a layer above them."""
    return _layer(axes, 0, "$\\mathbf{v}$", facecolor="0.8"), _layer(axes, 1.6, name)


def _connect(
    axes: Axes,
    pairs: Iterable[tuple[tuple[float, float], tuple[float, float]]],
    color: str = "0.4",
    bend: float = 0.0,
    **look: Any,
) -> None:
    bent = f"arc3,rad={bend}"
    join(axes, pairs, color=color, linewidth=1.1, connectionstyle=bent, **look)


def _lateral(axes: Axes, layer: Places, **look: Any) -> None:
    """Neighbours by straight lines, the two ends by an arc above them."""
    _connect(axes, pairwise(layer), PALETTE[1], **look)
    _connect(axes, [(layer[0], layer[-1])], PALETTE[1], bend=-0.45, **look)


def two_directions(rows: Rows, line: Tensor) -> Figure:
    """Two modes on a line, one panel for each separation, and the Gaussians fitted to them."""
    separations = grouped(rows, "separation")
    names = list(grouped(rows, "divergence"))
    figure, (panels,) = plt.subplots(
        1, len(separations), figsize=(7.0, 3.0), sharey=True, squeeze=False
    )
    for panel, (separation, fits) in zip(panels, separations.items(), strict=True):
        panel.fill_between(line, two_modes(line, separation).exp(), color="0.8", label="$p$")
        for row in fits:
            number = names.index(row["divergence"])
            mean = torch.tensor(row["mean"]).double()
            width = torch.tensor(row["width"]).double()
            look = {"color": PALETTE[number], "linestyle": LINE_STYLES[number + 1]}
            label = row["divergence"] if row["start"] < 0 else None
            panel.plot(line, log_normal(line, mean, width.log()).exp(), label=label, **look)
        panel.set(xlim=(-6, 6), xlabel="$h$", title=f"modes {separation:g} apart")
    panels[0].set_ylabel("density")
    panels[-1].legend(loc="upper right")
    return figure


def coordinate_ascent(gaps: Tensor, gap: Tensor, best_gap: Tensor) -> Figure:
    """Gaps [T, N] of ten vectors after each sweep, and the last against those of the best start."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.1))
    first_gaps = gaps[:16]  # a model of one unit needs three sweeps
    for n in range(10):
        look = {"color": PALETTE[n % 6], "linestyle": LINE_STYLES[n // 6]}
        left.plot(range(len(first_gaps)), first_gaps[:, n], **look)
    left.set(xlabel="sweep", ylabel="gap in nats", yscale="log")
    diagonal = [0, gap.max()]
    right.plot(diagonal, diagonal, color="black", linewidth=0.8, linestyle="--")
    right.plot(gap, best_gap, "o", markersize=3, color=PALETTE[0])
    right.set(xlabel="gap from the prior's means", ylabel="gap, best of 21 starts")
    return figure


def damping_player(
    runs: dict[str, tuple[Tensor, Tensor]], exact_means: Tensor, goal: float
) -> Player:
    """A player of damped updates: their means [T, M] and bounds [T].

    They stand beside the exact means [M] and a bound to reach.
    """
    lowest = min(bound[1:].min().item() for _, bound in runs.values())
    limits = (math.floor(max(lowest, goal - 30)), math.ceil(goal + 0.5))
    title = "Damped block updates of mean field on one visible vector"
    return trace_player(runs, exact_means, goal, limits, title)


def learned_densities(
    data: Mapping[float, Tensor],
    models: Mapping[float, Mapping[str, BinarySparseCoding]],
    course: Rows,
) -> Figure:
    """For each noise the data [N, 1] and the densities of learned models.

    `course` has the rounds of mean-field EM from the truth.
    """
    figure, (*densities, right) = plt.subplots(1, 1 + len(data), figsize=(8.4, 3.1))
    x_axis = torch.linspace(-1.2, 4.2, 400, dtype=torch.float64)
    for panel, noise in zip(densities, data, strict=True):
        panel.hist(data[noise][:, 0], bins=50, density=True, color="0.8", label="data")
        for label in ("EM, exact posterior", "EM, mean field"):
            panel.plot(x_axis, models[noise][label].log_prob(x_axis[:, None]).exp(), label=label)
        panel.set(xlabel="$v$", ylim=(0, 1.1), title=f"noise {noise:g}")
    densities[0].set_ylabel("density")
    densities[0].legend(loc="upper right", fontsize=8)
    likelihoods, bounds = columns(course, "likelihood", "bound")
    right.plot(likelihoods, color=PALETTE[1], linestyle="--", label="log-likelihood")
    right.plot(bounds, color=PALETTE[0], linestyle="-", label="bound")
    right.set(xlabel="round of mean-field EM", ylabel="nats")
    right.legend(loc="center right")
    return figure
