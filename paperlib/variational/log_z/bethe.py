"""The Bethe approximation of ln Z of an RBM, by loopy belief propagation on its bipartite graph.

A message says by how much one unit raises the logit of another. With the logit of v_i in the absence of h_j, l_{i -> j} = b_i + sum of
the messages to v_i from all other hidden units,

    m_{i -> j} = softplus(l_{i -> j} + W_ij) - softplus(l_{i -> j}),

and likewise from hidden to visible units. Where messages no longer change, the Bethe free energy is stationary (Yedidia, Freeman & Weiss
2005), and its value approximates ln Z. It is exact on a tree, and has an error of either sign elsewhere. The terms of the first three
orders in the weights are right on every bipartite graph.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paperlib.models import RBM
from paperlib.numerics import softplus
from paperlib.validation import ArrayLike, require_count
from paperlib.variational.log_z.log_z_approximation import (
    LogZApproximation,
    as_double,
    hidden_starts,
    require_damping,
    require_tolerance,
)
from paperlib.variational.log_z.pair_free_energy import PairModel


def bethe_log_z(
    rbm: RBM,
    starts: ArrayLike | None = None,
    *,
    damping: float = 0.5,
    max_iterations: int = 300,
    tolerance: float = 1e-6,
) -> LogZApproximation:
    """ln Z by loopy belief propagation, at the best of the fixed points found.

    Parameters
    ----------
    rbm : RBM
        The model; computed in float64.
    starts : array or Tensor, shape [N, M], optional
        Means of the hidden units from which the first messages are made; by default one half, and the best optima of mean field.
    damping : float
        Share of the old messages in the new ones, at least 0 and below 1.
    max_iterations : int
        Maximum number of updates of all messages, for each start.
    tolerance : float
        Converged when no message would change by more than this in one update without damping, in nats.

    Returns
    -------
    LogZApproximation
        For the fixed point with the largest value; if none was reached, for the start that came nearest to one, with `converged` False. The
        value is that of the Bethe free energy at the means of the units, with the best pair distributions for these means, so it is a value
        of that free energy even without convergence.

    Raises
    ------
    InputError
        If `rbm` is not an RBM, or another argument is out of range.

    Examples
    --------
    >>> from paperlib.estimators import exact_log_z
    >>> star = RBM([[1.0, -1.0, 2.0]], [0.5], [0.2, 0.0, -1.0])  # one visible unit: a tree
    >>> print(f"{bethe_log_z(star).value:.6f}, exact {exact_log_z(star):.6f}")
    3.744888, exact 3.744888
    """
    model = as_double(rbm)
    require_damping(damping)
    require_tolerance(tolerance)
    limit = require_count("max_iterations", max_iterations)
    pairs = PairModel(model, rho=1.0)
    found = [
        _propagate(model, pairs, means, damping, limit, tolerance)
        for means in hidden_starts(model, starts)
    ]
    reached = [result for result, _ in found if result.converged]
    if reached:
        return max(reached, key=lambda result: result.value)
    return min(found, key=lambda pair: pair[1])[0]


def _propagate(
    model: RBM,
    pairs: PairModel,
    hidden_means: Tensor,
    damping: float,
    limit: int,
    tolerance: float,
) -> tuple[LogZApproximation, float]:
    """The result of one propagation, and the largest change of a message at its end."""
    weights = model.weights
    # Messages to visible units as if the hidden ones had these means regardless of the visible ones.
    hidden_logits = torch.logit(hidden_means.clamp(1e-12, 1 - 1e-12)).expand_as(weights)
    to_visible = softplus(hidden_logits + weights) - softplus(hidden_logits)
    to_hidden = torch.zeros_like(weights)
    residual, iterations = torch.inf, 0
    while residual > tolerance and iterations < limit:
        iterations += 1
        without = (model.visible_bias + to_visible.sum(1))[:, None] - to_visible
        update = softplus(without + weights) - softplus(without)
        # There is nothing earlier to mix the first messages with.
        residual = (update - to_hidden).abs().max().item() if iterations > 1 else torch.inf
        to_hidden = torch.lerp(update, to_hidden, damping if iterations > 1 else 0.0)
        without = (model.hidden_bias + to_hidden.sum(0)) - to_hidden
        update = softplus(without + weights) - softplus(without)
        residual = max(residual, (update - to_visible).abs().max().item())
        to_visible = torch.lerp(update, to_visible, damping)
    visible_logits = model.visible_bias + to_visible.sum(1)
    final_hidden_logits = model.hidden_bias + to_hidden.sum(0)
    result = LogZApproximation(
        pairs.at(visible_logits, final_hidden_logits).value,
        "approximation",
        residual <= tolerance,
        iterations,
        torch.sigmoid(visible_logits),
        torch.sigmoid(final_hidden_logits),
    )
    return result, residual
