"""Chapter 12: recognition networks, wake-sleep, AIS of a directed model, starts of mean field, and a VAE."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure
from torch import Tensor

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.plots import PALETTE
from boltzmann_companion.rows import columns
from paperlib.variational.mean_field import MeanFieldTrace
from paperlib.variational.vae import VAE

Gaussian = tuple[Tensor, Tensor]


def amortised(rows: Rows, traces: Mapping[str, MeanFieldTrace], log_evidence: Tensor) -> Figure:
    """The two parts of the gap of each network, and the gap along mean field from each start; the first is no network."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2))
    networks = rows[1:]
    names, family, network = columns(networks, "start", "family", "network")
    left.bar(names, family, color=PALETTE[0], label="family")
    look: dict[str, Any] = {"color": PALETTE[1], "hatch": "//", "edgecolor": "white"}
    left.bar(names, network, bottom=family, label="network", **look)
    left.set(ylabel="gap in nats")
    left.tick_params(axis="x", labelsize=8)
    left.legend()
    for name, trace in traces.items():
        sweeps = min(13, len(trace.bounds))
        gaps = (log_evidence - trace.bounds[:sweeps]).mean(1)
        right.plot(range(sweeps), gaps, label=name)
    right.set(xlabel="sweep of mean field", ylabel="average gap in nats", yscale="log")
    right.legend(fontsize=8)
    return figure


def wake_sleep(rows: Rows) -> Figure:
    """Log-probability and bound against epochs, beside exact learning, and the network's divergences."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2))
    for panel, key, label, marker in (
        (left, "exact", "exact posterior", "s"),
        (left, "log_prob", "wake-sleep", "o"),
        (left, "bound", "its bound", "^"),
        (right, "gap", "$D(q \\Vert p)$, images: the gap", "o"),
        (right, "dreamt", "$D(p \\Vert q)$, dreams", "s"),
    ):
        panel.plot(*columns(rows, "epoch", key), marker=marker, markersize=3, label=label)
    left.set(xlabel="epoch", ylabel="nats per test image")
    left.legend(loc="lower right")
    right.set(xlabel="epoch", ylabel="nats", ylim=(0, None))
    right.legend(loc="lower right", fontsize=8)
    return figure


def directed(rows: Rows, network_gap: float) -> Figure:
    """Errors of AIS against its steps, for an RBM and a belief net, and how far the latter is too low."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2))
    steps = [row["steps"] for row in rows]
    for panel, sign, key, label, marker in (
        (left, 1, "rbm", "RBM: too high", "s"),
        (left, 1, "one", "belief net: too low", "o"),
        (right, -1, "one", "AIS, 1 chain", "o"),
        (right, -1, "ten", "AIS, 10 chains", "^"),
    ):
        values = [sign * row[key] for row in rows]
        panel.plot(steps, values, marker=marker, markersize=4, label=label)
    look: dict[str, Any] = {"color": "black", "linewidth": 1}
    left.axhline(0, linestyle=":", label="truth", **look)
    left.set(xscale="log", xlabel="steps $K$", ylabel="estimate less truth, nats")
    left.set_yscale("symlog", linthresh=0.1)
    left.set_ylim(-30, 100)
    left.legend(fontsize=8)
    right.axhline(network_gap, linestyle="--", label="bound of a network", **look)
    right.set(xscale="log", yscale="log", xlabel="steps $K$", ylabel="below the truth, nats")
    right.legend(fontsize=8)
    return figure


def starts(remaining: Mapping[str, Sequence[Tensor]]) -> Figure:
    """What the bound has still to gain, [N] after each update of mean field, from each start."""
    figure, axes = plt.subplots(figsize=(6.4, 3.4))
    for name, values in remaining.items():
        axes.plot([value.mean() for value in values], marker="o", markersize=3, label=name)
    axes.set(xlabel="updates of both layers", ylabel="bound still to gain in nats", yscale="log")
    axes.legend()
    return figure


def vae(
    model: VAE,
    images: Tensor,
    truth: Tensor,
    bounds: Mapping[int, Tensor],
    gaps: Mapping[str, Tensor],
    gaussians: Mapping[str, Gaussian],
) -> Figure:
    """Bounds [N] by the number of weights below the truth [N], gaps [N] of two Gaussians, and both at the image with the widest gap."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(8.6, 3.1))
    below = {k: (truth - value).mean().item() for k, value in bounds.items()}
    left.plot(list(below)[:3], list(below.values())[:3], marker="o")
    left.set(xscale="log", yscale="log", xlabel="weights $K$", ylabel="below the truth in nats")
    top = gaps["encoder"].max().item() * 1.05
    middle.plot([0, top], [0, top], color="black", linestyle="--", linewidth=0.8)
    middle.plot(gaps["encoder"], gaps["own Gaussian"], "o", markersize=3, color=PALETTE[0])
    middle.set(xlabel="gap of the encoder", ylabel="gap of its own Gaussian")
    worst = int(gaps["encoder"].argmax())
    grid, _ = model.grid(4.0, 160)
    with torch.no_grad():
        density = (model.log_joint(images[worst], grid) - truth[worst]).exp().view(160, 160)
    right.imshow(density.T, origin="lower", extent=(-4, 4, -4, 4))
    angle = torch.linspace(0, 2 * math.pi, 100)
    for name, (means, log_widths) in gaussians.items():
        mean, width = means[worst], log_widths[worst].exp()
        across = mean[0] + 2 * width[0] * angle.cos()
        upwards = mean[1] + 2 * width[1] * angle.sin()
        right.plot(across, upwards, label=name)
    x, y = gaussians["encoder"][0][worst].tolist()
    right.set(xlabel="$z_1$", ylabel="$z_2$", xlim=(x - 2, x + 2), ylim=(y - 2, y + 2))
    right.grid(False)
    right.legend(fontsize=8)
    return figure
