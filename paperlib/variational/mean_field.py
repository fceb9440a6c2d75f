"""Mean field for binary sparse coding: the best factorial q, by fixed-point equations.

This is section 19.4.1 of Goodfellow, Bengio & Courville (2016). q(h | v) = prod_i q(h_i | v) has
one number per hidden unit, its mean m_i. The evidence lower bound (eq. 19.36) is concave in each
m_i alone, with its maximum where (eq. 19.44 and 19.45)

    m_i = s(b_i + (v - sum_{j != i} W_j m_j)' beta W_i - W_i' beta W_i / 2):

each unit encodes what the others have left over. There are two ways to use it:

- One unit at a time (`mean_field`): every update maximises the bound over its unit, so the bound
  never falls.
- All units at once (`block_mean_field`): every unit responds to the *old* values of the others, so
  that two units that explain the same thing switch on together, then off together. Damping goes
  only part of the way, m <- (1 - step) m + step m*. Near a fixed point m, this multiplies errors by
  the matrix I - step (I + D C), where C is W' beta W without its diagonal and D = diag(m_i (1 -
  m_i)). At a maximum of the bound, all eigenvalues of I + D C are positive, and errors shrink if
  and only if `step` is below two over the largest one, the value that `largest_stable_step`
  computes. Aligned units that are in doubt make this eigenvalue large.

If unsure, use `mean_field`. Blocks pay only where one matrix product for all units is much cheaper
than one per unit. Used in chapter: inference-as-optimisation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, as_state_rows, as_states, require_count, require_shape
from paperlib.variational.sparse_coding import BinarySparseCoding


@dataclass(frozen=True)
class MeanFieldTrace:
    """Every iterate of a mean-field computation, for a batch of N visible vectors.

    Attributes
    ----------
    iterates : Tensor, shape [T + 1, N, M]
        Means of the hidden units, including the initial ones.
    bounds : Tensor, shape [T + 1, N]
        The evidence lower bound of each iterate, in nats.
    tolerance : float
        Largest residual that counts as converged.

    Examples
    --------
    >>> model = BinarySparseCoding([[1.0, 0.5], [0.0, 1.0]], [0.0, 0.0], [4.0, 4.0])
    >>> trace = mean_field(model, [[1.0, 0.0]])
    >>> len(trace.iterates) == len(trace.bounds), bool((trace.bounds.diff(dim=0) > -1e-12).all())
    (True, True)
    """

    iterates: Tensor
    bounds: Tensor
    tolerance: float

    @property
    def means(self) -> Tensor:
        """The last means, [N, M]."""
        return self.iterates[-1]

    @property
    def lower_bound(self) -> Tensor:
        """The last evidence lower bound, [N], in nats."""
        return self.bounds[-1]

    @property
    def residuals(self) -> Tensor:
        """Largest change of a mean in the last update of each case, [N]."""
        return (self.iterates[-1] - self.iterates[-2]).abs().amax(-1)

    @property
    def converged(self) -> Tensor:
        """Which cases have converged, bool [N]."""
        return self.residuals <= self.tolerance


@plain_torch()
def mean_field(
    model: BinarySparseCoding,
    v: ArrayLike,
    start: ArrayLike | None = None,
    max_sweeps: int = 500,
    tolerance: float = 1e-8,
) -> MeanFieldTrace:
    """Coordinate ascent on the bound: one unit after the other, eq. 19.44.

    Parameters
    ----------
    model : BinarySparseCoding
        The model.
    v : array or Tensor, shape [N, D]
        Visible vectors.
    start : array or Tensor, shape [N, M], optional
        Initial means; by default those of the prior.
    max_sweeps : int
        Maximum number of updates of all units.
    tolerance : float
        Stop when no mean has moved by more than this in a sweep.

    Returns
    -------
    MeanFieldTrace
        One iterate per sweep. Its bounds never fall.

    Raises
    ------
    InputError
        If a shape does not fit, or a mean of `start` is not in [0, 1].

    Examples
    --------
    >>> model = BinarySparseCoding([[1.0, 0.5], [0.0, 1.0]], [0.0, 0.0], [4.0, 4.0])
    >>> trace = mean_field(model, [[1.0, 0.0]])
    >>> trace.converged, bool(trace.lower_bound <= model.log_prob([[1.0, 0.0]]))
    (tensor([True]), True)
    """
    require_count("max_sweeps", max_sweeps)
    v = as_state_rows("v", v, model.weights, model.num_visible)

    def sweep(means: Tensor) -> Tensor:
        means = means.clone()
        for unit in range(model.num_hidden):
            means[:, unit] = torch.sigmoid(model.conditional_logits(v, means)[:, unit])
        return means

    return _iterate(model, v, start, sweep, max_sweeps, tolerance)


@plain_torch()
def block_mean_field(
    model: BinarySparseCoding,
    v: ArrayLike,
    step: float,
    start: ArrayLike | None = None,
    max_updates: int = 500,
    tolerance: float = 1e-8,
) -> MeanFieldTrace:
    """Damped block updates: all units move at once, each part of the way to its own optimum.

    Parameters
    ----------
    model, v, start, tolerance
        As in `mean_field`.
    step : float
        Fraction of the way, in (0, 1]; 1 means no damping.
    max_updates : int
        Maximum number of block updates.

    Returns
    -------
    MeanFieldTrace
        One iterate per update. Its bounds may fall, and it may not converge: look at `converged`.

    Raises
    ------
    InputError
        If `step` is not in (0, 1], a shape does not fit, or a mean of `start` is not in [0, 1].

    Examples
    --------
    >>> model = BinarySparseCoding([[1.0, 0.5], [0.0, 1.0]], [0.0, 0.0], [4.0, 4.0])
    >>> block_mean_field(model, [[1.0, 0.0]], step=0.5).converged
    tensor([True])
    """
    if not 0 < step <= 1:
        raise InputError(f"step: expected a number in (0, 1], got {step}")
    require_count("max_updates", max_updates)
    v = as_state_rows("v", v, model.weights, model.num_visible)

    def update(means: Tensor) -> Tensor:
        return torch.lerp(means, torch.sigmoid(model.conditional_logits(v, means)), step)

    return _iterate(model, v, start, update, max_updates, tolerance)


def largest_stable_step(model: BinarySparseCoding, means: Tensor) -> Tensor:
    """The step below which damped block updates are attracted to the fixed point `means`.

    `means` [..., M] give [...]. It holds at maxima of the bound; at other fixed points no step is
    small enough. Values above 1 mean that no damping is needed.

    Examples
    --------
    >>> model = BinarySparseCoding([[1.0, 0.5], [0.0, 1.0]], [0.0, 0.0], [4.0, 4.0])
    >>> largest_stable_step(model, torch.tensor([0.5, 0.5]).double()) > 1
    tensor(True)
    """
    couplings = model.couplings
    off_diagonal = couplings - couplings.diagonal().diag()
    # D C has the eigenvalues of the symmetric matrix with the square roots of D on both sides.
    root = (means * (1 - means)).sqrt()
    symmetric = root[..., :, None] * off_diagonal * root[..., None, :]
    return 2 / (1 + torch.linalg.eigvalsh(symmetric)[..., -1])


def _iterate(
    model: BinarySparseCoding,
    v: Tensor,
    start: ArrayLike | None,
    update: Callable[[Tensor], Tensor],
    max_updates: int,
    tolerance: float,
) -> MeanFieldTrace:
    """Apply `update` until no mean moves by more than `tolerance`, and keep every iterate."""
    if start is None:
        start = torch.sigmoid(model.hidden_bias).expand(len(v), -1)
    start = as_states("start", start, model.weights, model.num_hidden)
    require_shape("start", start, [len(v), model.num_hidden])
    if not bool(((start >= 0) & (start <= 1)).all()):
        raise InputError(f"start: expected means in [0, 1], got {start.min():g} to {start.max():g}")
    iterates = [start]
    for _ in range(max_updates):
        iterates.append(update(iterates[-1]))
        if (iterates[-1] - iterates[-2]).abs().max() <= tolerance:
            break
    means = torch.stack(iterates)
    return MeanFieldTrace(means, model.lower_bound(v, means), tolerance)
