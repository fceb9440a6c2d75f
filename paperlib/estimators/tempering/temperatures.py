"""Placing the temperatures, by where swaps are rejected and where chains are slow.

With many temperatures, the sum of the rejection rates tends to a number that depends on the path
alone, the communication barrier Lambda, and temperatures at equal steps of that sum have equal
rejection rates (Syed, Bouchard-Cote, Deligiannidis & Doucet 2022, sections 4 and 5). About 2 Lambda
+ 1 temperatures make the most round trips for the number of chains that they cost. A rejection rate
is at most one, however far apart its temperatures are, so what a link adds to Lambda is computed
from its rate (`link_barriers`).

This assumes that chains forget their state from one swap to the next. Near the start they do. Near
the target of a trained RBM they need tens of steps, and the links there dominate the total error.
If a link contributes the variance lambda^2 tau / n, where lambda is its share of the barrier, tau
the number of steps that chains take to forget, and n the number of chains, then the sum over all
links is smallest for n proportional to lambda sqrt(tau). Temperatures are therefore placed at equal
steps of the sum of lambda sqrt(tau).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from paperlib.estimators.tempering.bennett import bennett_roots
from paperlib.mcmc.series import batch_means

# A link whose swaps were never rejected still gets some room.
_SMALLEST_BARRIER = 1e-3
# So that a link whose swaps were all rejected has a finite barrier, 5.7.
_LARGEST_RATE = 1 - 1e-12
# Memory is measured over a sixteenth of a round. On two RBMs of 784 x 500 units with 10^5
# chain-steps, these limits halve the variance of ln Z compared with temperatures of equal rejection
# rates. A longer memory, and links up to 3.5 times as wide as the average, gave no less.
_MEMORY_BATCHES = 16
_LONGEST_MEMORY = 25.0
# No link is wider than the average link by more than this factor.
_WIDEST = 2.5
_TEMPERATURES_PER_BARRIER = 2.0
# So that there is one between the start and the target.
FEWEST_TEMPERATURES = 3
# Grid points on which the sum is inverted.
_GRID_POINTS = 20_001


def place_temperatures(betas: Tensor, shares: Tensor, num_temperatures: int) -> Tensor:
    """Temperatures that cut the sum of the links' shares into equal steps, float64 from 0 to 1.

    They strictly increase. The sum over the links between the given `betas` is interpolated with
    monotone cubics (Fritsch & Carlson 1980).
    """
    from scipy.interpolate import PchipInterpolator

    steps = np.maximum(shares.double().numpy(), _SMALLEST_BARRIER)
    sums = np.concatenate([[0.0], np.cumsum(steps)])
    grid = np.linspace(0, 1, _GRID_POINTS)
    sums_on_grid = PchipInterpolator(betas.numpy(), sums)(grid)
    temperatures = np.interp(np.linspace(0, sums[-1], num_temperatures), sums_on_grid, grid)
    temperatures[0] = 0.0
    temperatures[-1] = 1.0
    return torch.from_numpy(temperatures)


def link_barriers(rejection_rates: Tensor) -> Tensor:
    """What each link adds to the communication barrier Lambda.

    That is a little more than its rejection rate, and far more where nearly all swaps are rejected.
    Let the log-ratio of a link have the same normal distribution at both of its temperatures but
    for the mean, with the standard deviation s. Then erf(s / 2) of all swaps are rejected. If the
    link is cut into many parts, the rates of these add up to s / sqrt(pi).
    """
    rates = rejection_rates.double().clamp(0, _LARGEST_RATE)
    return torch.erfinv(rates) * (2 / math.sqrt(math.pi))


def temperatures_for(barriers: Tensor) -> int:
    """About 2 Lambda + 1 temperatures, and at least three, for what each link adds to Lambda."""
    steps = math.ceil(_TEMPERATURES_PER_BARRIER * barriers.sum().item())
    return max(FEWEST_TEMPERATURES, 1 + steps)


def link_shares(barriers: Tensor, memory: Tensor) -> Tensor:
    """lambda sqrt(tau) of each link, limited so that none becomes much wider than the average."""
    slowness = memory.sqrt()
    average = (barriers * slowness).sum() / barriers.sum().clamp(min=_SMALLEST_BARRIER)
    return barriers * slowness.clamp(min=average.item() / _WIDEST)


def link_memory(lower: Tensor, upper: Tensor) -> Tensor:
    """How many steps chains take to forget at each link, [N - 1], between 1 and 25.

    That is the variance of batch means relative to that of single steps, smoothed over neighbours.
    `lower` and `upper` are the log-ratios [T, R, N - 1] of the chains at the lower and at the upper
    beta of each link.

    Examples
    --------
    >>> noise = torch.randn(2, 320, 1, 4, generator=torch.Generator().manual_seed(0)).double()
    >>> bool((link_memory(*noise) < 3).all())
    True
    """
    steps, _, links = lower.shape
    if steps < 2 * _MEMORY_BATCHES:
        return torch.ones(links, dtype=torch.float64)
    roots = bennett_roots(lower.flatten(0, 1).T, upper.flatten(0, 1).T)
    scores = torch.sigmoid(lower - roots) - torch.sigmoid(roots - upper)
    means = batch_means(scores, _MEMORY_BATCHES)
    length = steps / _MEMORY_BATCHES
    variance = scores.var((0, 1)).clamp(min=1e-300)
    memory = (length * means.var((0, 1)) / variance).clamp(1, _LONGEST_MEMORY)
    padded = torch.cat([memory[:1], memory, memory[-1:]])
    return padded.unfold(0, 3, 1).mean(1)
