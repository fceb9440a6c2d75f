"""The Ising model on a square lattice with periodic boundaries, as an RBM: ln Z by Kaufman's formula.

A hidden unit that sees two spins s = 2 v - 1 with the same weight w represents a bond between them: summing it out leaves

    2 cosh(w (s_1 + s_2)) = A e^{J s_1 s_2},        cosh(2 w) = e^{2 J},        A = 2 e^J

(decimation). In units that are 0 or 1, the weights are 4 w, the hidden biases -4 w and the visible biases -8 w, and ln Z of the RBM is
that of the Ising model plus ln 2 + J - 2 w for each bond. Kaufman (1949) gave Z of a finite torus in closed form; the critical point of
the infinite lattice is J = ln(1 + sqrt 2) / 2.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from paperlib.models.planted.ising_draws import draw_spins
from paperlib.models.planted.planted_model import Draws, Planted, require_number, require_type
from paperlib.models.rbm import RBM
from paperlib.validation import require_count

CRITICAL_COUPLING = math.log1p(math.sqrt(2)) / 2


def ising_2d(
    side: int = 28, coupling: float | None = None, dtype: torch.dtype = torch.float64
) -> Planted:
    """The Ising model on a `side` x `side` torus as an RBM with a hidden unit for each bond.

    Parameters
    ----------
    side : int
        L, at least 2: L^2 visible and 2 L^2 hidden units. For L = 2 each pair of neighbours has two bonds.
    coupling : float, optional
        J, between 0.001 and 20: the energy of a bond is -J s_1 s_2. By default the critical coupling, 0.4407. It is
        rounded to a value that weights of the given type can express.
    dtype : torch.dtype
        Type of the model, float32 or float64.

    Returns
    -------
    Planted
        Visible unit r L + c is the site in row r and column c. Draws are made by coupling from the past (see
        `paperlib.models.planted.ising_draws`) and are exact at every coupling. They take longest at the critical coupling.

    Raises
    ------
    InputError
        If a number does not fit. Also raised by `draws` if chains do not meet within 100,000 sweeps, which can happen on large lattices
        close to the critical point.

    Examples
    --------
    >>> from paperlib.estimators import exact_log_z
    >>> model = ising_2d(3)
    >>> model.rbm
    RBM(9 visible, 18 hidden, torch.float64, cpu)
    >>> abs(model.log_z - exact_log_z(model.rbm)) < 1e-10
    True
    """
    side = require_count("side", side, 2)
    coupling = CRITICAL_COUPLING if coupling is None else coupling
    coupling = require_number("coupling", coupling, 1e-3, 20.0)
    dtype = require_type(dtype)
    weight = torch.tensor(2 * _acosh_exp(2 * coupling), dtype=dtype)
    sites = torch.arange(side * side).view(side, side)
    here = sites.flatten().repeat(2)
    there = torch.cat([sites.roll(-1, 1).flatten(), sites.roll(-1, 0).flatten()])
    bonds = torch.arange(2 * side * side)
    weights = torch.zeros(side * side, 2 * side * side, dtype=dtype)
    weights[here, bonds] = weights[there, bonds] = weight
    rbm = RBM(
        weights, (-2 * weight).expand(side * side).clone(), (-weight).expand(len(bonds)).clone()
    )
    stored = weight.item()
    coupling = _log_cosh(stored / 2) / 2
    of_bonds = len(bonds) * (math.log(2) + coupling - stored / 2)
    log_z = ising_log_z(side, coupling) + of_bonds
    return Planted(rbm, log_z, Draws(partial(_draw, side, coupling, dtype)))


def ising_log_z(side: int, coupling: float) -> float:
    """ln Z = ln sum_s exp(J sum_bonds s_1 s_2) on a torus in nats: Kaufman (1949), in the form of Ferdinand & Fisher (1969)."""
    # With n = side, Z = (2 sinh 2J)^{n^2 / 2} (Z_1 + Z_2 + Z_3 + Z_4) / 2, each Z_i a product over r of 2 cosh or 2 sinh of n gamma / 2.
    log_sinh = _log_2_sinh(2 * coupling) - math.log(2)
    # (1 - S)^2 / S is cosh 2J coth 2J - 2, without cancellation; S = sinh 2J
    excess = 4 * math.sinh(log_sinh / 2) ** 2
    # cosh gamma_k = cosh 2J coth 2J - cos(pi k / n)
    gammas = [
        2 * math.asinh(math.sqrt(excess / 2 + math.sin(math.pi * k / (2 * side)) ** 2))
        for k in range(2 * side)
    ]
    # gamma_0 has the sign of the distance from the critical point
    gammas[0] = 2 * coupling + math.log(math.tanh(coupling))
    halves = [side * gamma / 2 for gamma in gammas]
    odd, even = halves[1::2], halves[0::2]
    log_terms = [
        sum(_log_2_cosh(x) for x in odd),
        sum(_log_2_sinh(abs(x)) for x in odd),
        sum(_log_2_cosh(x) for x in even),
        sum(_log_2_sinh(abs(x)) for x in even),
    ]
    largest = max(log_terms)
    scaled = [math.exp(term - largest) for term in log_terms]
    total = sum(scaled[:3]) + math.copysign(scaled[3], even[0])
    log_prefactor = side * side / 2 * (log_sinh + math.log(2)) - math.log(2)
    return log_prefactor + largest + math.log(total)


def _acosh_exp(x: float) -> float:
    """The y >= 0 with cosh y = e^x."""
    return x + math.log1p(math.sqrt(-math.expm1(-2 * x)))


def _log_cosh(x: float) -> float:
    return math.log1p(2 * math.sinh(x / 2) ** 2) if x < 1 else _log_2_cosh(x) - math.log(2)


def _log_2_cosh(x: float) -> float:
    return abs(x) + math.log1p(math.exp(-2 * abs(x)))


def _log_2_sinh(x: float) -> float:
    """ln(2 sinh x) for x >= 0."""
    return x + math.log(-math.expm1(-2 * x)) if x > 0 else -math.inf


def _draw(
    side: int, coupling: float, dtype: torch.dtype, num_draws: int, generator: torch.Generator
) -> Tensor:
    """A site is 1 where the spin is up."""
    return draw_spins(side, coupling, num_draws, generator).flatten(1).to(dtype)
