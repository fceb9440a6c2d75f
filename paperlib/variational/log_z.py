"""ln Z of an RBM from the means of single units: naive mean field, and TAP.

Neither samples or follows a path. Each replaces the model's distribution by something with few
parameters, and evaluates a free energy there. Section 6 of Salakhutdinov & Murray (2008) names them
among the alternatives to AIS, and says that they are inaccurate.

*TAP* (Thouless, Anderson & Palmer) corrects mean field for how units respond to each other. With
the means held fixed, the free energy is expanded in the weights (Plefka 1982; Georges & Yedidia
1991). For two layers of units in {0, 1}, with means m, variances s = m (1 - m) and third central
moments k = m (1 - m) (1 - 2 m),

    ln Z = entropies + b' m_v + a' m_h + m_v' W m_h + 1/2 s_v' W^2 s_h + 1/6 k_v' W^3 k_h + ...,

where powers of W are elementwise (Gabrie, Tramel & Krzakala 2015, eq. 6 and 7). The first order is
naive mean field, and `tap_log_z` ends with the second. Higher orders are no longer bounds. Loops of
the graph first matter in the terms of fourth order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.models import RBM
from paperlib.models.bounds import distinct, mean_field_optima, search_points
from paperlib.models.rbm import as_rbm
from paperlib.torch_settings import plain_torch
from paperlib.validation import is_number, require_count

_Kind: TypeAlias = Literal["lower bound", "upper bound", "approximation"]

# Mean-field optima from which the other approximations start, beside means of one half.
_OPTIMA_AS_STARTS = 3
# Share of the old means in the new ones.
_DAMPING = 0.9


@dataclass(frozen=True)
class LogZApproximation:
    """An approximation of ln Z that was found without sampling.

    Attributes
    ----------
    value : float
        The approximation of ln Z, in nats.
    kind : str
        "lower bound" or "upper bound" if it is proven to be one, whether or not the computation
        converged; "approximation" if it may err on either side.
    converged : bool
        Whether the computation converged. An "approximation" that did not converge means little.
    iterations : int
        Number of iterations for the starting point that gave the value.
    visible_means : Tensor, shape [D]
        Approximate p(v_i = 1), float64.
    hidden_means : Tensor, shape [M]
        Approximate p(h_j = 1), float64.

    Examples
    --------
    >>> means = torch.full((2,), 0.5)
    >>> LogZApproximation(1.5, "approximation", True, 12, means, means)
    LogZApproximation(value=1.5, kind='approximation', converged=True, iterations=12)
    """

    value: float
    kind: _Kind
    converged: bool
    iterations: int
    visible_means: Tensor = field(repr=False)
    hidden_means: Tensor = field(repr=False)


@plain_torch()
def mean_field_log_z(rbm: RBM) -> LogZApproximation:
    """The naive mean-field bound on ln Z, the largest of many local optima.

    Units are treated as independent. For any means this is a lower bound (chapter 19 of Goodfellow,
    Bengio & Courville, eq. 19.7, for Z in place of p(v)). `log_z_lower_bound` also tries a sum over
    states, which is often better.

    Parameters
    ----------
    rbm : RBM
        The model; computed in float64. The search starts at random hidden states of every density,
        each unit on alone, all on, and all off.

    Raises
    ------
    InputError
        If `rbm` is not an RBM.

    Examples
    --------
    >>> rbm = RBM([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], [0.0, 0.5, -1.0], [0.2, 0.0])
    >>> bound = mean_field_log_z(rbm)
    >>> print(f"{bound.value:.4f}, {bound.kind}")
    5.0498, lower bound
    """
    model = as_double(rbm)
    means, bounds, at_rest, updates = mean_field_optima(model, search_points(model))
    best = bounds.argmax()
    return LogZApproximation(
        bounds[best].item(),
        "lower bound",
        bool(at_rest[best]),
        updates,
        model.visible_probs(means[best]),
        means[best],
    )


@plain_torch()
def tap_log_z(
    rbm: RBM, *, max_iterations: int = 2000, tolerance: float = 1e-8
) -> LogZApproximation:
    """ln Z by the TAP expansion to second order, at the best of the fixed points found.

    Parameters
    ----------
    rbm : RBM
        The model; computed in float64. The search starts at means of one half, and at the best
        optima of mean field.
    max_iterations : int
        Maximum number of updates of both layers.
    tolerance : float
        Converged when no mean moves by more than this in one update without damping.

    Returns
    -------
    LogZApproximation
        For the fixed point with the largest value; if none was reached, for the start that came
        nearest to one, with `converged` False.

    Raises
    ------
    InputError
        If `rbm` is not an RBM, or another argument is out of range.

    Notes
    -----
    The expansion assumes weights that are small compared with those of a trained model. With strong
    weights, the equations may have no fixed point that the iteration reaches, and the value at a
    fixed point may lie on either side of ln Z.

    Examples
    --------
    >>> rbm = RBM([[0.5, -0.5], [0.2, 0.8], [0.0, 0.4]], [0.0, 0.5, -1.0], [0.2, 0.0])
    >>> from paperlib.estimators import exact_log_z
    >>> print(f"{tap_log_z(rbm).value:.4f}, exact {exact_log_z(rbm):.4f}")
    3.9691, exact 3.9692
    """
    model = as_double(rbm)
    to_hidden = model.weights, model.weights.square()
    to_visible = model.weights.T, model.weights.square().T
    hidden = hidden_starts(model)
    return best_fixed_point(
        model.visible_probs(hidden),
        hidden,
        lambda v, h: _update(v, h, model.visible_bias, *to_visible),
        lambda h, v: _update(h, v, model.hidden_bias, *to_hidden),
        lambda v, h: (_expansion(model, v, h), v, h),
        _DAMPING,
        max_iterations,
        tolerance,
    )


def as_double(rbm: object) -> RBM:
    """The model in float64."""
    return as_rbm("rbm", rbm).to(dtype=torch.float64)


def require_tolerance(tolerance: object) -> None:
    """Raise unless `tolerance` is a number of at least 0."""
    if not is_number(tolerance) or not tolerance >= 0:
        raise InputError(f"tolerance: expected a number of at least 0, got {tolerance!r}")


def hidden_starts(model: RBM) -> Tensor:
    """Initial means of the hidden units, [N, M]: one half, and the best optima of mean field."""
    means, bounds, *_ = mean_field_optima(model, search_points(model))
    best = distinct(means, bounds)[:_OPTIMA_AS_STARTS]
    return torch.cat([torch.full_like(means[:1], 0.5), means[best]])


def best_fixed_point(
    first: Tensor,
    second: Tensor,
    update_first: Callable[[Tensor, Tensor], Tensor],
    update_second: Callable[[Tensor, Tensor], Tensor],
    evaluate: Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]],
    damping: float,
    max_iterations: int,
    tolerance: float,
) -> LogZApproximation:
    """The best fixed point of two updates that take turns.

    Parameters
    ----------
    first, second : Tensor, shapes [N, ...]
        The values from which N iterations start, side by side.
    update_first, update_second : callable
        New values of one side from its old values and those of the other.
    evaluate : callable
        ln Z, [N], and the means of the visible and of the hidden units, from both sides' values.
    damping : float
        Share of the old values in the new ones.
    max_iterations, tolerance
        An iteration ends when its updates without damping change nothing by more than `tolerance`.

    Returns
    -------
    LogZApproximation
        For the fixed point with the largest value; without any, for the start that came nearest to
        one.
    """
    require_tolerance(tolerance)
    first = first.clone()
    second = second.clone()
    moving = torch.arange(len(first), device=first.device)
    iterations = torch.zeros_like(moving)
    residuals = first.new_full((len(first),), torch.inf)
    for _ in range(require_count("max_iterations", max_iterations)):
        old_first = first[moving]
        old_second = second[moving]
        new_first = update_first(old_first, old_second)
        first[moving] = torch.lerp(new_first, old_first, damping)
        new_second = update_second(old_second, first[moving])
        second[moving] = torch.lerp(new_second, old_second, damping)
        residuals[moving] = torch.maximum(
            (new_first - old_first).abs().flatten(1).amax(1),
            (new_second - old_second).abs().flatten(1).amax(1),
        )
        iterations[moving] += 1
        moving = moving[residuals[moving] > tolerance]
        if len(moving) == 0:
            break
    values, visible_means, hidden_means = evaluate(first, second)
    converged = residuals <= tolerance
    if bool(converged.any()):
        best = torch.where(converged, values, -torch.inf).argmax()
    else:
        best = residuals.argmin()
    return LogZApproximation(
        values[best].item(),
        "approximation",
        bool(converged[best]),
        int(iterations[best]),
        visible_means[best],
        hidden_means[best],
    )


def _expansion(model: RBM, visible: Tensor, hidden: Tensor) -> Tensor:
    """The expansion of ln Z to second order at means [N, D] and [N, M], in nats; [N]."""
    entropies = sum(
        (torch.special.entr(m) + torch.special.entr(1 - m)).sum(1) for m in (visible, hidden)
    )
    value = entropies + (visible @ model.visible_bias + hidden @ model.hidden_bias)
    value = value + ((visible @ model.weights) * hidden).sum(1)
    second = ((_variance(visible) @ model.weights.square()) * _variance(hidden)).sum(1)
    return value + second / 2


def _update(
    means: Tensor, others: Tensor, bias: Tensor, weights: Tensor, squares: Tensor
) -> Tensor:
    """New means of a layer, [N, n], at which the derivative by them is zero.

    They follow from its old `means` [N, n], and from those of the other layer, `others` [N, m].
    """
    correction = (0.5 - means) * (_variance(others) @ squares)
    return torch.sigmoid(bias + others @ weights + correction)


def _variance(means: Tensor) -> Tensor:
    return means * (1 - means)
