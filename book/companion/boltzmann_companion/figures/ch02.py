"""Figures of chapter 2: small chains as graphs and matrices, and what their samples are worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.plots import LINE_STYLES, PALETTE, draw_chain, draw_frame
from boltzmann_companion.rows import columns, grouped
from paperlib.mcmc import MarkovChain, acceptance_matrix, autocorrelation, total_variation
from paperlib.numerics import all_states

# Where the states are drawn, if not on a circle.
_PLACES = {
    "two islands": [[-0.9, 0.55], [-0.9, -0.55], [0.35, 0.55], [1.35, 0.55], [0.85, -0.4]],
    "trapdoor": [[0.0, 1.0], [0.0, 0.0], [1.3, 1.0], [1.3, 0.0]],
}
# The states of three units as corners of a cube: unit 1 leads to the back, 2 to the right, 3
# upwards.
_DIRECTIONS = [[0.75, 0.6], [1.6, 0.0], [0.0, 1.6]]


def dimension(rows: Rows) -> Figure:
    """The shares of draws that are accepted and effective against the dimension, and by formula."""
    figure, axes = plt.subplots(figsize=(6.0, 3.2))
    names = {"accepted": "rejection: accepted", "effective": "importance: effective"}
    for number, (key, name) in enumerate(names.items()):
        color = PALETTE[number]
        axes.plot(*columns(rows, "dimension", f"{key}_exact"), color=color, label=name)
        # A logarithmic axis has no place for zero.
        measured = columns([row for row in rows if row[key] > 0], "dimension", key)
        axes.plot(*measured, marker="os"[number], linestyle="", color=color)
    axes.set(yscale="log", xlabel="dimensions", ylabel="share of the draws")
    axes.legend()
    return figure


def zoo(chains: Mapping[str, MarkovChain]) -> Figure:
    """Chains as graphs and as matrices, and the distance of two walkers from different states."""
    figure = plt.figure(figsize=(7.0, 5.6))
    grid = figure.add_gridspec(3, len(chains), height_ratios=[1.25, 1, 2])
    below = figure.add_subplot(grid[2, :])
    for number, (name, chain) in enumerate(chains.items()):
        graph = figure.add_subplot(grid[0, number])
        matrix = figure.add_subplot(grid[1, number])
        labels = [str(state) for state in range(1, chain.num_states + 1)]
        places = torch.tensor(_PLACES[name]) if name in _PLACES else None
        draw_chain(graph, chain.transition, places, labels)
        graph.set_title(name, fontsize=9)
        _matrix(matrix, chain.transition, "")
        starts = torch.eye(chain.num_states, dtype=torch.float64)
        other = starts[-1] if name == "two islands" else starts[1]
        distances = total_variation(
            chain.distributions(starts[0], 40), chain.distributions(other, 40)
        )
        below.plot(distances, label=name)
    below.set(yscale="log", ylim=(1e-4, 2), xlabel="steps $t$", ylabel="distance")
    below.legend(fontsize=8, loc=(0.66, 0.42))
    return figure


def metropolis(
    log_target: Tensor, proposal: MarkovChain, chain: MarkovChain, names: Sequence[str]
) -> Figure:
    """What is proposed between the states, what is accepted, the resulting chain, and its flow."""
    accepted = acceptance_matrix(log_target, proposal) * (proposal.transition > 0)
    matrices = {
        "proposal $q(x^* \\mid x)$": proposal.transition,
        "acceptance $A(x^* \\mid x)$": accepted,
        "chain $T(x' \\mid x)$": chain.transition,
        "flow $p(x)\\,T(x' \\mid x)$": chain.flow(log_target.softmax(0)),
    }
    figure, panels = plt.subplots(1, len(matrices), figsize=(7.0, 2.3))
    for panel, (title, matrix) in zip(panels, matrices.items(), strict=True):
        _matrix(panel, matrix, title)
    panels[0].set_yticks(range(len(names)), names, fontsize=7, family="monospace")
    return figure


def gibbs(chains: Mapping[str, MarkovChain], target: Tensor) -> Figure:
    """Chains on the eight states of three units, as graphs on a cube and as matrices.

    A corner is the darker the more probable its state is.
    """
    corners = all_states(3) @ torch.tensor(_DIRECTIONS).double()
    figure, grid = plt.subplots(
        2, len(chains), figsize=(7.0, 3.2), height_ratios=[1.25, 1], squeeze=False
    )
    for (graph, panel), (title, chain) in zip(grid.T, chains.items(), strict=True):
        draw_chain(graph, chain.transition, corners, shades=0.85 * target / target.max())
        graph.set_title(title, fontsize=9)
        _matrix(panel, chain.transition, "")
    return figure


def strength(rows: Rows) -> Figure:
    """The relaxation time of each chain against the factor of all parameters."""
    figure, axes = plt.subplots(figsize=(6.0, 3.2))
    for name, points in grouped(rows, "kernel").items():
        axes.plot(*columns(points, "factor", "time"), label=name)
    axes.set(yscale="log", xlabel="factor of all parameters", ylabel="single-unit updates")
    axes.legend(fontsize=8)
    return figure


def variance(
    chains: Mapping[str, MarkovChain],
    runs: Mapping[str, Tensor],
    values: Tensor,
    rows: Rows,
    num_chains: int,
) -> Figure:
    """Autocorrelations of the values [S] of the states, exact and along runs [R, N].

    Beside them is the variance of means of the last chain.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.3))
    for number, (name, chain) in enumerate(chains.items()):
        exact = chain.autocovariance(values, 15)
        color = PALETTE[number]
        left.plot(exact / exact[0], color=color, linestyle=LINE_STYLES[number], label=name)
        look = {"marker": "os^v"[number], "markersize": 3, "linestyle": "", "color": color}
        left.plot(autocorrelation(runs[name])[:16], **look)
    left.set(xlabel="lag $k$ (steps)", ylabel="$\\rho_k$")
    left.legend(fontsize=8)
    last = list(chains.values())[-1]
    lengths, simulated = columns(rows, "length", "simulated")
    every = range(1, lengths[-1] + 1)
    single = last.variance_of_mean(values, 1)
    predicted = [n * last.variance_of_mean(values, n) / single for n in every]
    right.plot(every, predicted, color=PALETTE[0])
    # Two standard errors of the variance of nearly normal means.
    errors = [2 * math.sqrt(2 / (num_chains - 1)) * value for value in simulated]
    look = {"fmt": "o", "color": PALETTE[1], "markersize": 4}
    right.errorbar(lengths, simulated, yerr=errors, **look)
    exact = last.autocovariance(values, 2_000)
    limit = (2 * exact.sum() / exact[0] - 1).item()
    right.axhline(limit, color="black", linewidth=1, linestyle=":")
    right.set(xlabel="length $N$", ylabel="$N \\, \\mathrm{Var}$ / $c_0$", xscale="log")
    right.set_ylim(0, None)
    return figure


def inference(rows: Rows) -> Figure:
    """Mean errors of three ways to a posterior against the strength of the couplings.

    Each image has a panel. A hollow marker is a method that did not settle.
    """
    images = grouped(rows, "image")
    names = {
        "mean_field": "mean field",
        "propagation": "belief propagation",
        "gibbs": "Gibbs sampling",
    }
    figure, (panels,) = plt.subplots(1, len(images), figsize=(7.0, 3.3), sharey=True, squeeze=False)
    for panel, (image, points) in zip(panels, images.items(), strict=True):
        for number, (key, name) in enumerate(names.items()):
            errors = [max(row[key], 1e-5) for row in points]
            color = PALETTE[number]
            [strengths] = columns(points, "strength")
            panel.plot(strengths, errors, color=color, linestyle=LINE_STYLES[number], label=name)
            for row, error in zip(points, errors, strict=True):
                settled = row.get(f"{key}_settled", "yes") == "yes"
                face = color if settled else "white"
                look = {"marker": "os^"[number], "markersize": 5, "linestyle": "", "color": color}
                panel.plot(row["strength"], error, markerfacecolor=face, **look)
        panel.set(title=f"{image} image", xlabel="strength of the couplings")
        panel.set(yscale="log", ylim=(1e-4, 100))
    panels[0].set_ylabel("mean error, percentage points")
    panels[-1].legend(fontsize=8, loc="lower right")
    return figure


def _matrix(panel: Axes, matrix: Tensor, title: str) -> None:
    """A matrix in shades of grey, the largest entry black, in a frame."""
    panel.imshow(matrix, vmin=0, vmax=max(1e-9, matrix.max().item()))
    panel.set_title(title, fontsize=9)
    draw_frame(panel)
