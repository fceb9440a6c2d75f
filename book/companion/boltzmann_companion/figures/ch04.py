"""Figures of chapter 04: importance sampling, the course of runs of AIS, and a mode that they miss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from torch import Tensor

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.players.page import Player
from boltzmann_companion.players.particles import particle_player, particle_run
from boltzmann_companion.plots import PALETTE, draw_images, look_of
from boltzmann_companion.rows import columns, where
from boltzmann_companion.studies.two_bumps import TwoBumpPath, anneal
from paperlib.numerics import log_mean_exp


def dimension(rows: Rows, num_samples: int) -> Figure:
    """The relative variance of importance weights, and the effective sample size, against the number of units."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.1))
    units, predicted, measured = columns(
        where(rows, model="independent units"), "units", "predicted", "measured"
    )
    left.plot(units, predicted, label="formula")
    left.plot(units, measured, "o", color=PALETTE[1], label="measured")
    left.set(xlabel="visible units", ylabel="log$_{10}$ relative variance")
    left.legend()
    looks = {
        "independent units": {"color": "black", "marker": "."},
        "RBM, uniform start": look_of("importance sampling", hollow=True),
        "RBM, base-rate start": look_of("importance sampling"),
    }
    for kind, look in looks.items():
        points = columns(where(rows, model=kind), "units", "effective_sample_size")
        right.plot(*points, label=kind, **look)
    right.axhline(num_samples, color="black", linestyle=":", linewidth=1)
    right.set(xlabel="visible units", ylabel="effective sample size", yscale="log")
    right.legend(fontsize=8)
    return figure


def two_bumps_player(
    moves: Sequence[int], betas: list[float], num_particles: int, seed: int
) -> Player:
    """Particles on a line, on their way from one wide bump to two narrow ones, with so many moves at each temperature."""
    runs, line = [], TwoBumpPath(1)
    for number in moves:
        line = TwoBumpPath(number)
        assert line.log_z_start is not None
        particles = anneal(line, betas, num_particles, seed)
        means = particles.log_weights.logsumexp(1) - math.log(num_particles) + line.log_z_start
        counts = 1 / particles.log_weights.softmax(1).square().sum(1)
        said = [
            f"beta = {beta:.2f}: ln Z_beta estimated {mean:.2f}, exactly "
            f"{line.log_z_at(beta):.2f}; as good as {count:.1f} of {num_particles} particles"
            for beta, mean, count in zip(betas, means.tolist(), counts.tolist(), strict=True)
        ]
        label = f"{number} move{'s' if number > 1 else ''} at each temperature"
        runs.append(particle_run(label, betas, particles.places, particles.log_weights, said))
    return particle_player(
        runs,
        line.log_density(0.0),
        line.log_density(1.0),
        "Twelve particles on their way from one wide bump to two narrow ones",
        "AIS",
        # half-way, where neither density hides the other
        opening=len(betas) // 2,
    )


def course(pictures: Sequence[Mapping[float, Tensor]], image_shape: tuple[int, int]) -> Figure:
    """A row for each start, with the images [M, D] of its first 16 runs at each beta."""
    figure, grid = plt.subplots(2, len(pictures[0]), figsize=(7.0, 3.3))
    for number, (row, own) in enumerate(zip(grid, pictures, strict=True)):
        for axes, (beta, images) in zip(row, own.items(), strict=True):
            draw_images(axes, images[:16], image_shape, 4)
            axes.set_title(f"$\\beta = {beta:g}$" if number == 0 else "", fontsize=9)
    return figure


def trajectories(
    betas: Tensor, relative: Mapping[str, Tensor], all_betas: Tensor, speed: Mapping[str, Tensor]
) -> Figure:
    """Log-weights [len(betas), M] of each start, relative to the truth, and the cost of every step."""
    figure, panels = plt.subplots(1, 3, figsize=(7.0, 3.0))
    span = max(own.abs().max().item() for own in relative.values())
    for panel, (start, own) in zip(panels, relative.items(), strict=False):
        look = look_of("AIS", hollow=start == "uniform") | {"markevery": 0.1}
        panel.plot(betas, own[:, :16], color=look["color"], linestyle="-", linewidth=0.6)
        panel.plot(betas, log_mean_exp(own), color="black", linestyle="-", linewidth=2)
        panel.set(title=f"{start} start", xlabel="$\\beta$", ylim=(-1.05 * span, 1.05 * span))
        neighbours = (all_betas[1:].view(-1, 20).mean(1), speed[start].view(-1, 20).mean(1))
        panels[2].plot(*neighbours, label=start, **look)
    panels[0].set_ylabel("$\\ln w - \\ln Z_\\beta$ in nats")
    panels[2].set(title="cost of a step", xlabel="$\\beta$", ylim=(0, None))
    panels[2].legend()
    return figure


def schedules(rows: Rows) -> Figure:
    """The error and the reported one against the number of steps, a panel for each start."""
    figure, panels = plt.subplots(1, 2, figsize=(7.0, 3.2), sharey=True)
    for panel, start in zip(panels, ("uniform", "base-rate"), strict=True):
        for color, schedule in zip(("black", "0.55"), ("equal steps", "2008"), strict=True):
            own = where(rows, start=start, schedule=schedule)
            steps, error, sigma = columns(own, "steps", "error", "sigma")
            look = look_of("AIS", hollow=start == "uniform") | {"color": color}
            panel.loglog(steps, error, label=f"{schedule}: error", **look)
            label = f"{schedule}: reported $\\hat\\sigma$"
            panel.loglog(steps, sigma, color=color, linestyle=":", label=label)
        panel.set(title=f"{start} start", xlabel="steps $K$ (at fixed $MK$)")
    panels[0].set_ylabel("nats")
    panels[1].legend(fontsize=8)
    return figure


def transition(betas: Sequence[float], advantages: Mapping[str, Sequence[float]]) -> Figure:
    """How much more the deep mode holds than the rest, from each start, against beta."""
    figure, axes = plt.subplots(figsize=(7.0, 3.0))
    for label, advantage in advantages.items():
        look = look_of("AIS", hollow=label == "uniform start")
        axes.plot(betas, advantage, label=label, markevery=4, **look)
    axes.axhline(0, color="black", linestyle="-", linewidth=1)
    axes.set(xlabel="$\\beta$", ylabel="deep mode over the rest, in nats")
    axes.legend()
    return figure


def phases(states: Mapping[str, Mapping[str, Tensor]], image_shape: tuple[int, int]) -> Figure:
    """Sixteen states [M, D] of each kind, a row for each model."""
    figure, grid = plt.subplots(2, 3, figsize=(7.0, 4.8))
    for row, (name, kinds) in zip(grid, states.items(), strict=True):
        for axes, (title, own) in zip(row, kinds.items(), strict=True):
            draw_images(axes, own[:16], image_shape, 4)
            axes.set_title(f"{name}: {title}", fontsize=8)
    return figure
