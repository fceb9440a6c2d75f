"""Chains so small that everything about them can be computed, beside what is measured of them.

Chapter 2 shows these rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from paperlib.mcmc import (
    MarkovChain,
    autocorrelation_time,
    loopy_belief_propagation,
    total_variation,
)
from paperlib.models import DBM
from paperlib.numerics import seeded_generator


def normal(*shape: int, seed: int) -> Tensor:
    """Standard normal numbers in float64."""
    return torch.randn(*shape, dtype=torch.float64, generator=seeded_generator(seed))


def uniform(*shape: int, seed: int) -> Tensor:
    """Numbers between 0 and 1 in float64."""
    return torch.rand(*shape, dtype=torch.float64, generator=seeded_generator(seed))


def word(claim: object) -> str:
    """`yes` or `no`."""
    return "yes" if claim else "no"


def draws_row(
    dimension: int, scale: float, accepted: Tensor, log_weights: Tensor
) -> dict[str, Any]:
    """Shares of N draws from a normal proposal that are accepted and that are effective.

    Both stand beside what they are by formula. `accepted` is from rejection sampling, [N], and
    `log_weights` are from importance sampling, [N].
    """
    weights = log_weights.exp()
    return {
        "dimension": dimension,
        "accepted": accepted.double().mean(),
        "accepted_exact": (1 / scale) ** dimension,
        "effective": weights.sum() ** 2 / (weights**2).sum() / len(weights),
        "effective_exact": (math.sqrt(2 * scale**2 - 1) / scale**2) ** dimension,
    }


def properties_row(name: str, chain: MarkovChain) -> dict[str, Any]:
    """The properties that decide whether a chain converges, and whether it forgets its start."""
    power = torch.linalg.matrix_power(chain.transition, 1_000)
    # All rows agree with each other and with those of the next power.
    late_rows = torch.cat([power, power @ chain.transition])
    return {
        "chain": name,
        "irreducible": word(chain.is_irreducible),
        "period": chain.periods.max(),
        "recurrent": word(chain.is_recurrent),
        "ergodic": word(chain.is_ergodic),
        "stationary": ((chain.eigenvalues - 1).abs() < 1e-9).sum(),
        "forgets": word((late_rows - power[0]).abs().max() < 1e-9),
    }


def distances(chain: MarkovChain, num_steps: int) -> Tensor:
    """How far a chain from its first state is from its stationary distribution, [num_steps + 1]."""
    start = torch.eye(chain.num_states, dtype=torch.float64)[0]
    return total_variation(chain.distributions(start, num_steps), chain.stationary)


def bounds(chain: MarkovChain, num_steps: int) -> Tensor:
    """The bounds on `distances` by the second eigenvalue of a reversible chain, [num_steps + 1]."""
    share = chain.stationary[0].item()
    times = torch.arange(num_steps + 1, dtype=torch.float64)
    return math.sqrt((1 - share) / share) / 2 * chain.convergence_rate**times


def worth_row(name: str, chain: MarkovChain, values: Tensor, runs: Tensor) -> dict[str, Any]:
    """What a chain's steps are worth for the mean of the values [S] of its states.

    `runs` has the values along R runs, [R, N].
    """
    exact = chain.autocovariance(values, 2_000)
    tau = 2 * exact.sum() / exact[0] - 1
    return {
        "kernel": name,
        "rate": chain.convergence_rate,
        "tau": tau,
        "tau_estimated": autocorrelation_time(runs),
        "worth": 1_000 / tau,
    }


def by_belief_propagation(dbm: DBM, v: Tensor) -> tuple[Tensor, bool]:
    """Marginals [M_1 + M_2] of a DBM's hidden units given an image [D]; did the messages settle?"""
    first = len(dbm.hidden_bias_1)
    num_hidden = len(dbm.hidden_bias_1) + len(dbm.hidden_bias_2)
    couplings = torch.zeros(num_hidden, num_hidden, dtype=torch.float64)
    couplings[:first, first:] = dbm.weights_2
    biases = torch.cat([v @ dbm.weights_1 + dbm.hidden_bias_1, dbm.hidden_bias_2])
    result = loopy_belief_propagation(couplings + couplings.T, biases)
    return torch.sigmoid(result.logits), result.converged


def by_mean_field(dbm: DBM, v: Tensor) -> tuple[Tensor, bool]:
    """The same by mean field; did its updates settle?"""
    field = dbm.mean_field(v[None], max_updates=2_000)
    logits = torch.cat([field.logits_1, field.logits_2], -1)
    return torch.sigmoid(logits)[0], not field.warnings


def marginals_row(
    truth: Tensor, estimates: Mapping[str, Tensor | tuple[Tensor, bool]]
) -> dict[str, Any]:
    """Mean errors of marginals [M] in percentage points, and whether iterative methods settled.

    An estimate by such a method is a pair of the marginals and whether it settled.
    """
    row: dict[str, Any] = {}
    for method, estimate in estimates.items():
        if isinstance(estimate, tuple):
            marginals, settled = estimate
            row[method] = 100 * (marginals - truth).abs().mean()
            row[f"{method}_settled"] = word(settled)
        else:
            row[method] = 100 * (estimate - truth).abs().mean()
    return row
