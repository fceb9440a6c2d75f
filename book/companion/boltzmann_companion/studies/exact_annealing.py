"""Annealing of a tiny RBM without sampling, by enumeration of all visible vectors.

It shares no code with the paths of the library, so that chapter 8 can check these with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from paperlib.models import RBM
from paperlib.numerics import all_states, bernoulli_log_prob, softplus


@dataclass(frozen=True, eq=False)
class ExactAnnealing:
    """The annealing path from independent pixels to a tiny RBM.

    Attributes
    ----------
    rbm : RBM
        The model at beta = 1, with D visible units.
    start_bias : Tensor, shape [D]
        The biases of the start.
    """

    rbm: RBM
    start_bias: Tensor

    @property
    def start(self) -> Tensor:
        """The probabilities of all visible vectors at beta = 0, [2^D]."""
        return bernoulli_log_prob(all_states(self.rbm.num_visible), self.start_bias).exp()

    @property
    def log_z_start(self) -> float:
        """ln Z at beta = 0, in nats."""
        return softplus(self.start_bias).sum().item() + self.rbm.num_hidden * math.log(2)

    def log_f(self, beta: float) -> Tensor:
        """ln f_beta of all visible vectors, [2^D]."""
        v = all_states(self.rbm.num_visible)
        rbm = self.rbm
        hidden = softplus(beta * (v @ rbm.weights + rbm.hidden_bias)).sum(-1)
        return v @ ((1 - beta) * self.start_bias + beta * rbm.visible_bias) + hidden

    def transition(self, beta: float) -> Tensor:
        """T[v, v'] of a Gibbs step at beta, summed over all hidden states, [2^D, 2^D]."""
        v = all_states(self.rbm.num_visible)
        h = all_states(self.rbm.num_hidden)
        to_hidden = beta * (v @ self.rbm.weights + self.rbm.hidden_bias)
        target_logits = h @ self.rbm.weights.T + self.rbm.visible_bias
        to_visible = (1 - beta) * self.start_bias + beta * target_logits
        return (
            bernoulli_log_prob(h[None], to_hidden[:, None]).exp()
            @ bernoulli_log_prob(v[None], to_visible[:, None]).exp()
        )
