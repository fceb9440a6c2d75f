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
from paperlib.validation import ArrayLike
from paperlib.variational.log_z.log_z_approximation import (
    LogZApproximation,
    as_double,
    best_fixed_point,
    hidden_starts,
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
    rbm, starts, damping, max_iterations
        As in `tap_log_z`; the first messages are made from the starts, and the updates are of messages.
    tolerance : float
        Converged when no message would change by more than this in one update without damping, in nats.

    Returns
    -------
    LogZApproximation
        Chosen as in `tap_log_z`. The value is that of the Bethe free energy at the means of the units, with the best pair distributions for these means, so it is a value
        of that free energy even without convergence. The search takes memory for about ten arrays [N, D, M].

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
    weights, pairs = model.weights, PairModel(model, rho=1.0)

    def logits_of_visible(to_visible: Tensor) -> Tensor:
        return model.visible_bias + to_visible.sum(2)

    def logits_of_hidden(to_hidden: Tensor) -> Tensor:
        return model.hidden_bias + to_hidden.sum(1)

    def messages(without_receiver: Tensor) -> Tensor:
        return softplus(without_receiver + weights) - softplus(without_receiver)

    def update_to_hidden(_: Tensor, to_visible: Tensor) -> Tensor:
        return messages(logits_of_visible(to_visible)[:, :, None] - to_visible)

    def update_to_visible(_: Tensor, to_hidden: Tensor) -> Tensor:
        return messages(logits_of_hidden(to_hidden)[:, None] - to_hidden)

    def evaluate(to_hidden: Tensor, to_visible: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits = logits_of_visible(to_visible), logits_of_hidden(to_hidden)
        values = [pairs.at(*both).value for both in zip(*logits, strict=True)]
        return weights.new_tensor(values), torch.sigmoid(logits[0]), torch.sigmoid(logits[1])

    # Messages to visible units as if the hidden ones had these means regardless of the visible ones.
    means = hidden_starts(model, starts).clamp(1e-12, 1 - 1e-12)
    to_visible = messages(torch.logit(means)[:, None].expand(-1, *weights.shape))
    to_hidden = update_to_hidden(to_visible, to_visible)
    return best_fixed_point(
        to_hidden,
        to_visible,
        update_to_hidden,
        update_to_visible,
        evaluate,
        damping,
        max_iterations,
        tolerance,
    )
