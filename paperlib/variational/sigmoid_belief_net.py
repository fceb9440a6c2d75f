"""The sigmoid belief net with one hidden layer (Neal 1992), the model that wake-sleep was made for.

    p(h_i = 1) = s(a_i),        p(v_d = 1 | h) = s(b_d + sum_i W_di h_i)

All arrows point down. Drawing from the model takes one pass, and ln p(v, h) is a sum. Given v,
however, all hidden units depend on each other, so the posterior and ln p(v) need sums over 2^M
states. These sums are computed term by term here, which limits M.

Used in chapter: learned-inference.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paperlib.kernels import bernoulli
from paperlib.models.two_layers import TwoLayers
from paperlib.numerics import all_states, bernoulli_log_prob, resolve_generator, softplus
from paperlib.validation import (
    ArrayLike,
    as_bits,
    as_state_rows,
    parameter,
    require_count,
    require_enumerable,
)

# 2^12 states for a data set of a thousand vectors: 30 MB in float64.
_MAX_ENUMERATED_UNITS = 12


class SigmoidBeliefNet(TwoLayers):
    """One layer of binary causes and their binary effects.

    Parameters
    ----------
    weights : array or Tensor, shape [D, M]
        W; its type and device become the model's.
    visible_bias, hidden_bias : array or Tensor, shapes [D], [M]
        b and a.

    Raises
    ------
    InputError
        If a shape does not fit or a parameter is NaN or infinite.

    Examples
    --------
    >>> model = SigmoidBeliefNet([[2.0], [-1.0]], [0.0, 0.0], [0.0])
    >>> model.log_prob([[0, 0], [0, 1], [1, 0], [1, 1]]).exp()
    tensor([0.1686, 0.1410, 0.4470, 0.2434], dtype=torch.float64)
    """

    def __init__(self, weights: object, visible_bias: object, hidden_bias: object) -> None:
        self.weights = parameter("weights", weights, [None, None])
        num_visible, num_hidden = self.weights.shape
        self.visible_bias = parameter("visible_bias", visible_bias, [num_visible], self.weights)
        self.hidden_bias = parameter("hidden_bias", hidden_bias, [num_hidden], self.weights)

    def log_joint(self, v: ArrayLike, h: ArrayLike) -> Tensor:
        """ln p(v, h) in nats; leading dimensions of `v` [..., D] and `h` [..., M] broadcast."""
        v = as_bits("v", v, self.weights, self.num_visible)
        h = as_bits("h", h, self.weights, self.num_hidden)
        logits = h @ self.weights.T + self.visible_bias
        return bernoulli_log_prob(h, self.hidden_bias) + bernoulli_log_prob(v, logits)

    def log_joint_table(self, v: ArrayLike) -> Tensor:
        """ln p(v, h) for every h in the order of `all_states`; `v` [N, D] gives [N, 2^M].

        Its logsumexp over the last dimension is ln p(v), and its softmax is the exact posterior.

        Raises
        ------
        InputError
            If there are more than 12 hidden units, or the shape does not fit.
        """
        require_enumerable(self.num_hidden, _MAX_ENUMERATED_UNITS)
        v = as_bits("v", v, self.weights, self.num_visible)
        v = as_state_rows("v", v, self.weights, self.num_visible)
        states = all_states(self.num_hidden).to(self.weights)
        logits = states @ self.weights.T + self.visible_bias
        # One matrix product for all pairs; what does not depend on v is computed once per state.
        by_state = bernoulli_log_prob(states, self.hidden_bias) - softplus(logits).sum(-1)
        return v @ logits.T + by_state

    def log_prob(self, v: ArrayLike) -> Tensor:
        """ln p(v) in nats, exactly, by enumeration; `v` [N, D] gives [N]."""
        return self.log_joint_table(v).logsumexp(-1)

    def sample(self, num_samples: int, generator: torch.Generator | int) -> tuple[Tensor, Tensor]:
        """Independent draws of v, [num_samples, D], and the h of each, [num_samples, M]."""
        count = require_count("num_samples", num_samples)
        generator = resolve_generator(generator, self.weights.device)
        h = bernoulli(torch.sigmoid(self.hidden_bias).expand(count, -1), generator)
        return bernoulli(torch.sigmoid(h @ self.weights.T + self.visible_bias), generator), h
