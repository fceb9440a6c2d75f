"""The Bethe free energy of an RBM and its tree-reweighted relative, as functions of the means of single units.

Both keep the mean of each unit and the joint distribution of each pair of connected units. With mutual informations I_ij of the pairs,

    F = b' m_v + a' m_h + sum_ij W_ij p(v_i = 1, h_j = 1) + sum of entropies of single units - rho sum_ij I_ij.

rho = 1 gives the Bethe free energy (Yedidia, Freeman & Weiss 2005), and rho = (D + M - 1) / (D M) the tree-reweighted one (Wainwright,
Jaakkola & Willsky 2005). For given means, the best joint distribution of a pair is known in closed form (Welling & Teh 2001): its odds
ratio is exp(W_ij / rho). This leaves a function of D + M numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.models import RBM
from paperlib.numerics import bernoulli_entropy

_LARGEST_LOGIT = 300.0


@dataclass(frozen=True)
class PairFreeEnergy:
    """F at given means, in nats, and its first and second derivatives there."""

    value: float
    visible_gradient: Tensor  # by the means, [D]
    hidden_gradient: Tensor  # [M]
    visible_curvature: Tensor  # minus the second derivative by each mean, [D]
    hidden_curvature: Tensor  # [M]
    # by a visible and a hidden mean, [D, M]; derivatives by two means of one layer are zero
    cross: Tensor


class PairModel:
    """An RBM in float64 as pairs of units, with the mutual information of each pair counted `rho` times.

    Pairs with negative weight are written with the hidden unit replaced by its negation, so that all weights are positive and all odds ratios
    at least 1. Cells of a pair's table are computed by formulas without cancellation. Those that may be as small as exp(-abs(W) / rho) are
    kept as logarithms: with rho = 0.003, no floating-point number can hold them.
    """

    def __init__(self, model: RBM, rho: float) -> None:
        self._rho = rho
        self._negative = model.weights < 0
        self._log_odds = model.weights.abs() / rho
        self._visible_bias = model.visible_bias + model.weights.clamp(max=0).sum(1)
        self._hidden_bias = model.hidden_bias
        self._degrees = model.num_hidden, model.num_visible

    def at(
        self, visible_logits: Tensor, hidden_logits: Tensor, temperature: float = 1.0
    ) -> PairFreeEnergy:
        """F at means with these logits, [D] and [M], with all entropies and informations multiplied by `temperature`."""
        # Clamped, since products of two means must not be zero.
        visible_logits, hidden_logits = inner(visible_logits), inner(hidden_logits)
        rho = temperature * self._rho
        log_odds = self._log_odds / temperature
        x, x_off = torch.sigmoid(visible_logits)[:, None], torch.sigmoid(-visible_logits)[:, None]
        y_on, y_off = torch.sigmoid(hidden_logits), torch.sigmoid(-hidden_logits)
        y, y_not = (
            torch.where(self._negative, y_off, y_on),
            torch.where(self._negative, y_on, y_off),
        )

        # Cells of the table of each pair: both on, only x on, only y on, both off.
        rarity = torch.exp(-log_odds)
        excess = -torch.expm1(-log_odds)
        difference = x - y
        root = torch.sqrt(
            (excess * difference).square()
            + rarity * (rarity + 2 * excess * (x * y_not + x_off * y))
        )
        both = 2 * x * y / (rarity + excess * (x + y) + root)
        neither = 2 * x_off * y_not / (rarity + excess * (x_off + y_not) + root)
        log_neither = torch.log(neither)
        # x alone minus y alone is `difference`; their product is both * neither / odds ratio.
        log_product = torch.log(both) + log_neither - log_odds
        scale = torch.exp(log_product / 2)
        size = difference.abs()
        # if the difference is zero and the product below the smallest number, the two are equal
        log_larger = torch.where(
            scale > 1e-150 * size,
            log_product / 2 + torch.asinh(size / (2 * scale.clamp(min=1e-300))),
            torch.log(size.clamp(min=1e-300)),
        )
        log_larger = torch.where((size == 0) & (scale == 0), log_product / 2, log_larger)
        log_smaller = log_product - log_larger
        x_larger = difference > 0
        log_x_alone = torch.where(x_larger, log_larger, log_smaller)
        log_y_alone = torch.where(x_larger, log_smaller, log_larger)

        visible_entropy, hidden_entropy = _entropies(visible_logits), _entropies(hidden_logits)
        degree_v, degree_h = self._degrees
        # With the odds ratio inserted, the weight and the information of a pair combine to this.
        pairs = x * log_x_alone + y * log_y_alone + (x_off - y) * log_neither
        value = (
            self._visible_bias @ x[:, 0]
            + self._hidden_bias @ y_on
            + temperature * (visible_entropy.sum() + hidden_entropy.sum())
            - rho
            * (pairs.sum() + degree_v * visible_entropy.sum() + degree_h * hidden_entropy.sum())
        )
        visible_gradient = self._visible_bias + rho * (log_neither - log_x_alone).sum(1)
        visible_gradient = visible_gradient - (temperature - rho * degree_v) * visible_logits
        towards = rho * (log_neither - log_y_alone)
        hidden_gradient = self._hidden_bias + torch.where(self._negative, -towards, towards).sum(0)
        hidden_gradient = hidden_gradient - (temperature - rho * degree_h) * hidden_logits

        # Variances of each unit of a pair given the other, which determine the curvature of the free energy.
        x_alone, y_alone = log_x_alone.exp(), log_y_alone.exp()
        x_spread = (x_alone * neither / y_not + both * y_alone / y).clamp(min=1e-300)
        y_spread = (y_alone * neither / x_off + both * x_alone / x).clamp(min=1e-300)
        covariance = both * neither * excess
        cross = rho * covariance / (y * y_not * x_spread)
        spread_v, spread_h = (x * x_off)[:, 0], y_on * y_off
        return PairFreeEnergy(
            value.item(),
            visible_gradient,
            hidden_gradient,
            (temperature - rho * degree_v) / spread_v + rho * (1 / x_spread).sum(1),
            (temperature - rho * degree_h) / spread_h + rho * (1 / y_spread).sum(0),
            torch.where(self._negative, -cross, cross),
        )


def inner(logits: Tensor) -> Tensor:
    """The nearest logits whose means are far enough from 0 and 1 for floating-point numbers."""
    return logits.clamp(-_LARGEST_LOGIT, _LARGEST_LOGIT)


def _entropies(logits: Tensor) -> Tensor:
    return bernoulli_entropy(logits[:, None])
