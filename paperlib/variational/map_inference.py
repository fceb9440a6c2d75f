"""MAP inference and learning of sparse coding: the energy is minimised over codes and dictionary.

The two take turns, as in section 19.3 of Goodfellow, Bengio & Courville (2016). If q is a point
mass at h, the evidence lower bound is ln p(v, h) up to a constant, so maximising it over q is MAP
inference and maximising it over W is regression on the codes. Both problems are convex, and both
are solved here one coordinate at a time:

- Code i, with all others fixed: the residual r = v - b - sum_{j != i} W_j h_j contributes W_i' r,
  and the absolute value in the energy pulls this towards zero by lambda / beta: h_i = soft(W_i' r,
  lambda / beta) / norm(W_i)^2, which is exactly zero in a whole interval.
- Column i, with all others fixed and norm(W_i) <= 1: the least-squares column, scaled back to
  length 1 if it is longer. The constraint is needed: without it, ever smaller codes and larger
  columns would lower the energy without end.

No step can raise the energy. Used in chapter: inference-as-optimisation.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.numerics import seeded_generator
from paperlib.torch_settings import plain_torch
from paperlib.validation import (
    ArrayLike,
    as_float_tensor,
    as_state_rows,
    as_states,
    require_count,
    require_shape,
)
from paperlib.variational.sparse_coding import LaplaceSparseCoding


@plain_torch()
def map_codes(
    model: LaplaceSparseCoding,
    v: ArrayLike,
    start: ArrayLike | None = None,
    max_sweeps: int = 1_000,
    tolerance: float = 1e-8,
) -> Tensor:
    """The most probable code of each visible vector, equation 19.13, by coordinate descent.

    Parameters
    ----------
    model : LaplaceSparseCoding
        The model; none of its columns may be zero.
    v : array or Tensor, shape [N, D]
        Visible vectors.
    start : array or Tensor, shape [N, M], optional
        Initial codes; by default zero.
    max_sweeps : int
        Maximum number of updates of all units.
    tolerance : float
        Stop when no code has moved by more than this in a sweep.

    Returns
    -------
    Tensor
        Codes, [N, M].

    Raises
    ------
    InputError
        If a shape does not fit or a column of the weights is zero.

    Examples
    --------
    >>> model = LaplaceSparseCoding([[1.0, 0.6], [0.0, 0.8]], [0.0, 0.0], rate=1.0, precision=4.0)
    >>> map_codes(model, [[1.0, 0.0], [0.1, 0.0]])
    tensor([[0.7500, 0.0000],
            [0.0000, 0.0000]], dtype=torch.float64)
    """
    weights = model.weights
    v = as_state_rows("v", v, weights, model.num_visible)
    require_count("max_sweeps", max_sweeps)
    squares = weights.square().sum(0)
    if not bool((squares > 0).all()):
        raise InputError("weights: expected no column of zeros, which leaves a code undetermined")
    if start is None:
        start = weights.new_zeros(len(v), model.num_hidden)
    codes = as_states("start", start, weights, model.num_hidden).clone()
    require_shape("start", codes, [len(v), model.num_hidden])
    threshold = model.rate / model.precision
    gram = weights.T @ weights
    bottom_up = (v - model.visible_bias) @ weights
    for _ in range(max_sweeps):
        before = codes.clone()
        for unit in range(model.num_hidden):
            explained = codes @ gram[:, unit] - codes[:, unit] * squares[unit]
            residual = bottom_up[:, unit] - explained
            codes[:, unit] = torch.nn.functional.softshrink(residual, threshold) / squares[unit]
        if (codes - before).abs().max() <= tolerance:
            break
    return codes


@plain_torch()
def learn_dictionary(
    v: ArrayLike, num_hidden: int, rate: float, precision: float, num_rounds: int, seed: int
) -> tuple[LaplaceSparseCoding, Tensor, list[float]]:
    """Sparse coding learned by minimising the energy over codes and dictionary in turn.

    The initial columns are random visible vectors.

    Parameters
    ----------
    v : array or Tensor, shape [N, D]
        Visible vectors; their mean becomes the visible bias.
    num_hidden : int
        Columns of the dictionary, M.
    rate, precision : float
        lambda and beta of `LaplaceSparseCoding`.
    num_rounds : int
        Number of rounds, each for codes and dictionary.
    seed : int
        Seed for the initial columns.

    Returns
    -------
    LaplaceSparseCoding
        The model, with columns of length at most 1.
    Tensor
        The codes from which its dictionary was made, [N, M].
    list of float
        Mean energy per visible vector after every half-round, in nats; it never rises.

    Raises
    ------
    InputError
        If fewer than `num_hidden` visible vectors differ from their mean, or a number is out of
        range.

    Examples
    --------
    >>> v = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)).double()
    >>> model, codes, energies = learn_dictionary(v, 3, 1.0, 4.0, num_rounds=3, seed=0)
    >>> model
    LaplaceSparseCoding(4 visible, 3 hidden)
    >>> energies == sorted(energies, reverse=True)
    True
    """
    v = as_float_tensor("v", v)
    require_shape("v", v, [None, None])
    num_hidden = require_count("num_hidden", num_hidden)
    mean = v.mean(0)
    centred = v - mean
    usable = centred[centred.norm(dim=1) > 1e-6]
    if len(usable) < num_hidden:
        raise InputError(
            f"v: expected at least {num_hidden} vectors to start columns from, got {len(usable)}"
        )
    order = torch.randperm(len(usable), generator=seeded_generator(seed))
    columns = usable[order[:num_hidden]].T
    model = LaplaceSparseCoding(columns / columns.norm(dim=0), mean, rate, precision)
    codes: Tensor | None = None
    energies: list[float] = []
    for _ in range(require_count("num_rounds", num_rounds)):
        codes = map_codes(model, v, codes, max_sweeps=20)
        energies.append(model.energy(v, codes).mean().item())
        model = _improve_dictionary(model, v, codes)
        energies.append(model.energy(v, codes).mean().item())
    assert codes is not None  # there is at least one round
    return model, codes, energies


def _improve_dictionary(
    model: LaplaceSparseCoding, v: Tensor, codes: Tensor
) -> LaplaceSparseCoding:
    """The model with each column in turn at its optimum of length at most 1.

    `v` is [N, D] and `codes` are [N, M]. Columns that no code uses stay as they are.
    """
    weights = model.weights.clone()
    residual = v - model.visible_bias - codes @ weights.T
    for unit in range(model.num_hidden):
        code = codes[:, unit]
        strength = code.square().sum()
        if strength > 0:
            column = weights[:, unit] + residual.T @ code / strength
            column = column / column.norm().clamp(min=1)
            residual -= torch.outer(code, column - weights[:, unit])
            weights[:, unit] = column
    return LaplaceSparseCoding(weights, model.visible_bias, model.rate, model.precision)
