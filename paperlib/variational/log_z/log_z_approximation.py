"""The result of a deterministic approximation of ln Z, and the simplest such approximation, naive mean field.

None of these approximations samples or follows a path. Each replaces the model's distribution by something with few parameters, and
evaluates a free energy there. Section 6 of Salakhutdinov & Murray (2008) names them as the alternatives to AIS and says that they are
inaccurate.
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
from paperlib.validation import ArrayLike, as_states, is_number, require_count, require_shape

_Kind: TypeAlias = Literal["lower bound", "upper bound", "approximation"]

# Number of mean-field optima from which the other approximations start, in addition to means of one half.
_OPTIMA_AS_STARTS = 3


@dataclass(frozen=True)
class LogZApproximation:
    """An approximation of ln Z that was found without sampling.

    Attributes
    ----------
    value : float
        The approximation of ln Z, in nats.
    kind : str
        "lower bound" or "upper bound" if it is proven to be one, whether or not the computation converged; "approximation" if it may err on
        either side.
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


def mean_field_log_z(rbm: RBM, starts: ArrayLike | None = None) -> LogZApproximation:
    """The naive mean-field bound on ln Z, the largest of many local optima.

    Units are treated as independent. For any means this is a lower bound (chapter 19 of Goodfellow, Bengio & Courville, eq. 19.7, for Z in place
    of p(v)). `log_z_lower_bound` also tries a sum over states, which is often better.

    Parameters
    ----------
    rbm : RBM
        The model; computed in float64.
    starts : array or Tensor, shape [N, M], optional
        Initial means of the hidden units; by default random states of every density, each unit on alone, all on, and all off.

    Raises
    ------
    InputError
        If `rbm` is not an RBM, or `starts` has the wrong shape or holds numbers outside [0, 1].

    Examples
    --------
    >>> rbm = RBM([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], [0.0, 0.5, -1.0], [0.2, 0.0])
    >>> bound = mean_field_log_z(rbm)
    >>> print(f"{bound.value:.4f}, {bound.kind}")
    5.0498, lower bound
    """
    model = as_double(rbm)
    given = search_points(model) if starts is None else hidden_starts(model, starts)
    means, bounds, at_rest, updates = mean_field_optima(model, given)
    best = bounds.argmax()
    return LogZApproximation(
        bounds[best].item(),
        "lower bound",
        bool(at_rest[best]),
        updates,
        model.visible_probs(means[best]),
        means[best],
    )


def as_double(rbm: object) -> RBM:
    """The model in float64."""
    return as_rbm("rbm", rbm).to(dtype=torch.float64)


def require_tolerance(tolerance: object) -> None:
    """Raise unless `tolerance` is a number of at least 0."""
    if not is_number(tolerance) or not tolerance >= 0:
        raise InputError(f"tolerance: expected a number of at least 0, got {tolerance!r}")


def hidden_starts(model: RBM, starts: ArrayLike | None) -> Tensor:
    """Initial means of the hidden units, [N, M]: those given, or one half and the best optima of mean field."""
    if starts is None:
        means, bounds, *_ = mean_field_optima(model, search_points(model))
        best = distinct(means, bounds)[:_OPTIMA_AS_STARTS]
        return torch.cat([torch.full_like(means[:1], 0.5), means[best]])
    given = as_states("starts", starts, model.weights, model.num_hidden)
    require_shape("starts", given, [None, model.num_hidden])
    if not bool(((given >= 0) & (given <= 1)).all()):
        raise InputError(
            f"starts: expected means in [0, 1], got {given.min():g} to {given.max():g}"
        )
    return given


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
    """The best fixed point of two updates that take turns, each from the old values and those of the other side.

    Starts, [N, ...], move together, each until its own updates without damping change nothing by more than the tolerance. `evaluate` gives
    ln Z [N] and the means of both layers. Without a fixed point, the start that came nearest to one is returned.
    """
    if not is_number(damping) or not 0 <= damping < 1:
        raise InputError(f"damping: expected a number of at least 0 and below 1, got {damping!r}")
    require_tolerance(tolerance)
    first, second = first.clone(), second.clone()
    moving = torch.arange(len(first), device=first.device)
    iterations, residuals = torch.zeros_like(moving), first.new_full((len(first),), torch.inf)
    for _ in range(require_count("max_iterations", max_iterations)):
        one, other = first[moving], second[moving]
        wanted_one = update_first(one, other)
        first[moving] = torch.lerp(wanted_one, one, damping)
        wanted_other = update_second(other, first[moving])
        second[moving] = torch.lerp(wanted_other, other, damping)
        changes = [(wanted_one - one).abs(), (wanted_other - other).abs()]
        residuals[moving] = torch.maximum(*(change.flatten(1).amax(1) for change in changes))
        iterations[moving] += 1
        moving = moving[residuals[moving] > tolerance]
        if len(moving) == 0:
            break
    values, visible_means, hidden_means = evaluate(first, second)
    converged = residuals <= tolerance
    reached = torch.where(converged, values, -torch.inf)
    best = reached.argmax() if bool(converged.any()) else residuals.argmin()
    return LogZApproximation(
        values[best].item(),
        "approximation",
        bool(converged[best]),
        int(iterations[best]),
        visible_means[best],
        hidden_means[best],
    )
