"""Exact partition functions of RBMs with categorical visible units, by enumeration of the hidden layer.

With the hidden layer cut into two halves, h = (h1, h2), the sum over the q states of a site is a product of two tables, one of which depends
on h1 and the other on h2: sum_s A_s(h1) B_s(h2). One small matrix product per site therefore serves all pairs of halves.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.estimators.blocks import step_bar
from paperlib.models import PottsRBM
from paperlib.numerics import all_states

# Numbers in a block of sums, to which the sites are added one by one; 32 MiB.
_BLOCK = 2**22
# With a wider range of exponents, the sums are taken in logarithms, so that no product underflows.
_WIDEST = 300.0


def potts_log_z(model: PottsRBM, max_units: int = 25, progress: bool | None = None) -> float:
    """ln Z in nats, by summing over every state of the hidden layer; `exact_log_z` calls it.

    Parameters
    ----------
    model : PottsRBM
        The model, of any type; the computation uses float64.
    max_units : int
        Refuse if there are more hidden units.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal and the run takes more than two seconds.

    Raises
    ------
    InputError
        If there are more hidden units than `max_units`.

    Notes
    -----
    Memory holds two tables of 2^{M/2} L q numbers each, plus 64 MiB.

    Examples
    --------
    >>> model = PottsRBM(torch.zeros(2, 3, 1), torch.zeros(2, 3), [0.0])
    >>> print(f"{potts_log_z(model):.4f}")  # ln(3^2 2)
    2.8904
    """
    if model.num_hidden > max_units:
        raise InputError(
            f"rbm: expected at most {max_units} hidden units to enumerate, got {model.num_hidden}: "
            f"2^{model.num_hidden} states. Estimate ln Z with parallel_tempering instead."
        )
    model = model.to(dtype=torch.float64)
    cut = model.num_hidden // 2
    first, second = (
        _Half(model, units) for units in (slice(None, cut), slice(cut, model.num_hidden))
    )
    first.log_table += model.visible_bias
    for half in (first, second):
        half.scale()
    narrow = first.widest + second.widest < _WIDEST
    rows = max(1, _BLOCK // len(second.states))
    sums = []
    with step_bar(len(first.states), "exact ln Z", progress) as bar:
        for start in range(0, len(first.states), rows):
            block = slice(start, start + rows)
            log_masses = first.offset[block, None] + second.offset[None]
            for site in range(model.num_sites):
                a, b = first.log_table[block, site], second.log_table[:, site]
                if narrow:
                    log_masses += (a.exp() @ b.exp().T).log_()
                else:
                    log_masses += _log_products(a, b)
            sums.append(log_masses.logsumexp((0, 1)))
            bar.update(len(log_masses))
    return torch.stack(sums).logsumexp(0).item()


class _Half:
    """One half of the hidden layer: tables over its 2^m states."""

    def __init__(self, model: PottsRBM, units: slice) -> None:
        weights, bias = model.weights[:, :, units], model.hidden_bias[units]
        count = weights.shape[2]
        states = all_states(count) if count else torch.zeros(1, 0, dtype=torch.float64)
        self.states = states.to(model.device)
        # [2^m, L, q], and the terms that depend on this half alone, [2^m]
        self.log_table = torch.einsum("hj,isj->his", self.states, weights)
        self.offset = self.states @ bias

    def scale(self) -> None:
        """Move the largest entry of each site into the offset."""
        largest = self.log_table.amax(-1, keepdim=True)
        self.log_table = self.log_table - largest
        self.offset = self.offset + largest.sum((1, 2))

    @property
    def widest(self) -> float:
        """How far the smallest entry lies below the largest entry of its site."""
        return -self.log_table.min().item()


def _log_products(a: Tensor, b: Tensor) -> Tensor:
    """ln sum_s e^{a_s + b_s} for all rows of `a` and of `b`."""
    return torch.stack([row + b for row in a]).logsumexp(-1)
