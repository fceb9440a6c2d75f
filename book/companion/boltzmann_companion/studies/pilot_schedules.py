"""Placing betas along a path: a pilot population finds betas at equal distances.

The next beta is where the conditional effective sample size (Zhou, Johansen & Aston 2016)

    CESS = N (sum_i W_i u_i)^2 / sum_i W_i u_i^2,      u_i = f_{beta'}(x_i) / f_beta(x_i),

with normalised weights W, has fallen to a set fraction of N. Bisection finds it. -ln(CESS / N) is
close to the variance of ln u, and hence to the square of a distance along the path, so a schedule
with another number of steps divides the same distance equally.

The chains that walk afterwards are new ones and follow a fixed schedule, so the choice of betas
causes no bias.

Used in chapters: own-images-weights-and-seeds, which-estimator-tells-the-truth,
tempering-and-bennetts-ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paperlib.annealing import AnnealingPath
from paperlib.errors import InputError
from paperlib.estimators.resampling import systematic
from paperlib.numerics import effective_sample_size

_MAX_BISECTIONS = 60
# The step need only be accurate to a few per cent.
_TOLERANCE = 0.02
_SHORTEST_STEP = 1e-9


@dataclass(frozen=True)
class PilotSchedule:
    """The betas of a pilot population, and the distances between them."""

    betas: list[float]  # from 0 up to 1, or to where the pilot had to stop
    distances: list[float]  # sqrt(-ln(CESS / N)) of each step
    chain_steps: int  # transitions of single chains that the pilot took

    @property
    def complete(self) -> bool:
        """Whether the pilot reached the end of the path."""
        return self.betas[-1] == 1

    def spread(self, num_steps: int) -> list[float]:
        """A schedule from 0 to 1 with this many steps, all of the same distance.

        If the pilot had to stop early, the rest of the way to 1 is assumed to consist of steps like
        its last one.
        """
        betas = list(self.betas)
        distances = list(self.distances)
        if not self.complete:
            steps = (1 - betas[-1]) / (betas[-1] - betas[-2])
            betas.append(1.0)
            distances.append(distances[-1] * steps)
        places = np.concatenate([[0.0], np.cumsum(distances)])
        evenly = np.linspace(0, places[-1], num_steps + 1)
        spread = np.interp(evenly, places, betas).tolist()
        # Equal distances where the chains hardly change may give equal betas.
        distinct = [low for low, high in pairwise(spread) if low < high]
        return [*distinct, 1.0]


def pilot_schedule(
    path: AnnealingPath[Any],
    num_chains: int,
    generator: torch.Generator,
    most_steps: int | None = None,
    fraction: float = 0.9,
    threshold: float = 0.5,
) -> PilotSchedule:
    """Walk one population, finding its betas on the way.

    CESS / N falls to `fraction` in each step. The population is resampled when fewer effective
    chains than `threshold` of all are left.
    """
    state = path.sample_start(num_chains, generator)
    log_weights = torch.zeros(1, num_chains, dtype=torch.float64, device=path.device)
    betas = [0.0]
    distances = []
    while betas[-1] < 1 and (most_steps is None or len(distances) < most_steps):
        beta, ratio, part = _next_beta(path, state, log_weights, betas, fraction)
        betas.append(beta)
        distances.append(float(np.sqrt(max(-np.log(part), 1e-30))))
        log_weights = log_weights + ratio
        if effective_sample_size(log_weights).item() < threshold * num_chains:
            state = path.select(state, systematic(log_weights, generator).flatten())
            log_weights = torch.zeros_like(log_weights)
        state = path.transition(state, beta, generator)
    return PilotSchedule(betas, distances, num_chains * len(distances))


def _next_beta(
    path: AnnealingPath[Any],
    state: Any,
    log_weights: Tensor,
    betas: list[float],
    fraction: float,
) -> tuple[float, Tensor, float]:
    """The next beta, ln u of each chain there, [1, N], and CESS / N."""
    beta = betas[-1]
    # Neighbouring steps are of similar length, so starting the search nearby saves bisections.
    last_step = beta - betas[-2] if len(betas) > 1 else 1.0
    trial = min(1.0, beta + 2 * last_step)
    low = beta
    high = trial
    bracketed = False
    best = None
    for _ in range(_MAX_BISECTIONS):
        ratio = path.log_ratio(state, beta, trial).view(1, -1)
        part = conditional_effective_part(log_weights, ratio)
        if part >= fraction:
            low = trial
            best = (trial, ratio, part)
            if trial == 1:
                break
        else:
            high = trial
            bracketed = True
        if bracketed and high - low <= _TOLERANCE * (low - beta):
            break
        trial = (low + high) / 2 if bracketed else min(1.0, beta + 2 * (trial - beta))
    if best is None or best[0] < min(beta + _SHORTEST_STEP, 1.0):
        raise InputError(
            "path: expected ln f to change continuously with beta and to be finite, "
            f"got a jump or NaN near beta = {beta:g}"
        )
    return best


def conditional_effective_part(log_weights: Tensor, ratio: Tensor) -> float:
    """CESS / N of one population, between 1 / N and 1, from ln W and ln u, [1, N].

    NaN if a ratio is NaN or infinite.
    """
    log_shares = log_weights.log_softmax(1)
    first = torch.logsumexp(log_shares + ratio, 1)
    second = torch.logsumexp(log_shares + 2 * ratio, 1)
    return (2 * first - second).exp().item()
