"""The player of chapter 04: runs of AIS on a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from boltzmann_companion.players.page import Player
from boltzmann_companion.players.particles import ParticleRun, particle_player, particle_run
from boltzmann_companion.studies.two_bumps import anneal
from paperlib.annealing import AnnealingPath, uniform_betas

# Moments that are shown of a run, beside its start.
_MOMENTS = 40


def particles(path: AnnealingPath[Any], steps: Sequence[int], number: int, seed: int) -> Player:
    """`number` runs of AIS on the line of `path`, with each of these numbers of steps.

    The numbers of steps are multiples of 40.
    """
    runs = [_run(path, num_steps, number, seed) for num_steps in steps]
    line = torch.arange(201)
    return particle_player(
        runs,
        path.log_f(line, 0.0),
        path.log_f(line, 1.0),
        f"{number} runs of AIS on their way from the start to the target",
        "AIS",
        # Early, while the density divides.
        opening=_MOMENTS // 4,
    )


def _run(path: AnnealingPath[Any], num_steps: int, number: int, seed: int) -> ParticleRun:
    betas = uniform_betas(num_steps).tolist()
    run = anneal(path, betas, number, seed)
    moments = slice(None, None, num_steps // _MOMENTS)
    log_weights = run.log_weights[moments]
    assert path.log_z_start is not None
    estimates = log_weights.logsumexp(1) - math.log(number) + path.log_z_start
    line = torch.arange(201)
    captions = [
        f"beta = {beta:.3f}: ln of Z_beta is estimated as {estimate:.2f}, "
        f"and is {path.log_f(line, beta).logsumexp(0).item():.2f}"
        for beta, estimate in zip(betas[moments], estimates.tolist(), strict=True)
    ]
    return particle_run(
        f"{num_steps:,} steps", betas[moments], run.places[moments], log_weights, captions
    )
