"""The Thouless-Anderson-Palmer (TAP) free energy of an RBM: mean field with corrections for how units respond to each other.

With the means held fixed, the free energy is expanded in the weights (Plefka 1982; Georges & Yedidia 1991). For two layers of units in {0, 1}, with
means m, variances s = m (1 - m) and third central moments k = m (1 - m) (1 - 2 m),

    ln Z = entropies + b' m_v + a' m_h + m_v' W m_h + 1/2 s_v' W^2 s_h + 1/6 k_v' W^3 k_h + ...,

where powers of W are elementwise (Gabrie, Tramel & Krzakala 2015, eq. 6 and 7). The first order is naive mean field. Higher orders are no
longer bounds. Loops of the graph first matter in the terms of fourth order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.models import RBM
from paperlib.validation import ArrayLike, require_count
from paperlib.variational.log_z.log_z_approximation import (
    LogZApproximation,
    as_double,
    best_fixed_point,
    hidden_starts,
)


def tap_log_z(
    rbm: RBM,
    order: int = 2,
    starts: ArrayLike | None = None,
    *,
    damping: float = 0.9,
    max_iterations: int = 2000,
    tolerance: float = 1e-8,
) -> LogZApproximation:
    """ln Z by the TAP expansion to second or third order, at the best of the fixed points found.

    Parameters
    ----------
    rbm : RBM
        The model; computed in float64.
    order : int
        2 or 3.
    starts : array or Tensor, shape [N, M], optional
        Initial means of the hidden units; by default one half, and the best optima of mean field.
    damping : float
        Share of the old means in the new ones, at least 0 and below 1.
    max_iterations : int
        Maximum number of updates of both layers.
    tolerance : float
        Converged when no mean moves by more than this in one update without damping.

    Returns
    -------
    LogZApproximation
        For the fixed point with the largest value; if none was reached, for the start that came nearest to one, with `converged` False.

    Raises
    ------
    InputError
        If `rbm` is not an RBM, or another argument is out of range.

    Notes
    -----
    The expansion assumes weights that are small compared with those of a trained model. With strong weights, the equations may have no fixed
    point that the iteration reaches, and the value at a fixed point may lie on either side of ln Z.

    Examples
    --------
    >>> rbm = RBM([[0.5, -0.5], [0.2, 0.8], [0.0, 0.4]], [0.0, 0.5, -1.0], [0.2, 0.0])
    >>> from paperlib.estimators import exact_log_z
    >>> print(f"{tap_log_z(rbm).value:.4f} {tap_log_z(rbm, 3).value:.4f}, exact {exact_log_z(rbm):.4f}")
    3.9691 3.9695, exact 3.9692
    """
    model = as_double(rbm)
    if require_count("order", order, 2) > 3:
        raise InputError(f"order: expected 2 or 3, got {order!r}")
    to_hidden = [model.weights, model.weights.square(), model.weights**3][:order]
    to_visible = [power.T for power in to_hidden]
    hidden = hidden_starts(model, starts)
    return best_fixed_point(
        model.visible_probs(hidden),
        hidden,
        lambda v, h: _update(v, h, model.visible_bias, to_visible),
        lambda h, v: _update(h, v, model.hidden_bias, to_hidden),
        lambda v, h: (_expansion(model, to_hidden, v, h), v, h),
        damping,
        max_iterations,
        tolerance,
    )


def _expansion(model: RBM, powers: list[Tensor], visible: Tensor, hidden: Tensor) -> Tensor:
    """The expansion itself at means [N, D] and [N, M], to as many orders as there are powers of the weights: [N]."""
    entropies = sum(
        (torch.special.entr(m) + torch.special.entr(1 - m)).sum(1) for m in (visible, hidden)
    )
    value = entropies + (visible @ model.visible_bias + hidden @ model.hidden_bias)
    moments = (lambda means: means, 1), (_variance, 2), (_skew, 6)
    for power, (moment, factorial) in zip(powers, moments, strict=False):
        value = value + ((moment(visible) @ power) * moment(hidden)).sum(1) / factorial
    return value


def _update(means: Tensor, others: Tensor, bias: Tensor, powers: list[Tensor]) -> Tensor:
    """Means at which the derivative with respect to this layer's means is zero, with means on the right side held fixed."""
    weights, squares, *cubes = powers
    logits = bias + others @ weights + (0.5 - means) * (_variance(others) @ squares)
    if cubes:
        # the derivative of m (1 - m) (1 - 2 m)
        logits = logits + (1 - 6 * _variance(means)) * (_skew(others) @ cubes[0]) / 6
    return torch.sigmoid(logits)


def _variance(means: Tensor) -> Tensor:
    return means * (1 - means)


def _skew(means: Tensor) -> Tensor:
    """Third central moment of a binary unit."""
    return means * (1 - means) * (1 - 2 * means)
