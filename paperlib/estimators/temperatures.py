"""Temperatures at which every exchange is rejected equally often.

The rejection rates of a ladder add up along it. With many rungs their sum tends to a number of the path alone, the communication barrier
Lambda, and the sum from 0 to beta, as a function of beta, says where rungs have to be so that all links are rejected alike: at equal
steps of that sum. With N rungs a replica makes about one round trip in 2 + 2 sum_k r_k / (1 - r_k) steps of all its chains. For
the chains that this costs, about 2 Lambda + 1 rungs are best (Syed, Bouchard-Cote, Deligiannidis & Doucet 2022, sections 4 and 5).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

# A rate that was never seen to be above zero still takes some room.
_SMALLEST_RATE = 1e-3
# On which the sum is inverted.
_FINE = 20_001


def equal_rejection_betas(betas: Tensor, rejection_rates: Tensor, num_rungs: int) -> Tensor:
    """Where `num_rungs` rungs are rejected equally often, judged by the rates of other rungs.

    Parameters
    ----------
    betas : Tensor, shape [N]
        float64, 0 = beta_0 < ... < beta_{N-1} = 1.
    rejection_rates : Tensor, shape [N - 1]
        Of the exchanges between neighbours.
    num_rungs : int
        At least two.

    Returns
    -------
    Tensor, shape [num_rungs]
        float64, from 0 to 1, strictly increasing.

    Notes
    -----
    The sum of the rates is interpolated by monotone cubics (Fritsch & Carlson 1980).

    Examples
    --------
    >>> betas = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    >>> placed = equal_rejection_betas(betas, torch.tensor([0.1, 0.4]), 3)
    >>> 0.6 < placed[1].item() < 0.9  # most of the barrier is in the upper half
    True
    """
    from scipy.interpolate import PchipInterpolator

    rates = np.maximum(rejection_rates.double().numpy(), _SMALLEST_RATE)
    barrier = np.concatenate([[0.0], np.cumsum(rates)])
    fine = np.linspace(0, 1, _FINE)
    along = PchipInterpolator(betas.numpy(), barrier)(fine)
    placed = np.interp(np.linspace(0, barrier[-1], num_rungs), along, fine)
    placed[0], placed[-1] = 0.0, 1.0
    return torch.from_numpy(placed)


def rungs_for(rejection_rates: Tensor, per_barrier: float = 2.1) -> int:
    """About 2 Lambda + 1 rungs, and at least three.

    Parameters
    ----------
    rejection_rates : Tensor, shape [N - 1]
        Their sum is Lambda, or a little less where the rungs are far apart.
    per_barrier : float
        In place of 2.

    Examples
    --------
    >>> rungs_for(torch.full([20], 0.5))
    22
    """
    return max(3, 1 + math.ceil(per_barrier * rejection_rates.sum().item()))
