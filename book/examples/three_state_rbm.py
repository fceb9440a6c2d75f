"""An RBM whose hidden units have three states each: a new kind of model."""

import torch
from torch import Tensor

from paperlib.annealing import BaseRatePath, path_to
from paperlib.models import RBM
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.validation import ArrayLike, as_states, parameter


class ThreeStateRBM(UnnormalizedModel):
    """Hidden units are off, or on in one of two ways with the same weights.

    E(v, h) = - b'v - sum_j [h_j > 0] (W_j'v + a_j[h_j]),
    where v_i is 0 or 1, and h_j is 0, 1 or 2.
    """

    tensor_names = ("weights", "visible_bias", "biases_of_ways")
    called = "a three-state RBM"

    def __init__(
        self, weights: object, visible_bias: object, biases_of_ways: object
    ) -> None:
        self.weights = parameter("weights", weights, [None, None])
        visible, hidden = self.weights.shape
        self.visible_bias = parameter(
            "visible_bias", visible_bias, [visible], self.weights
        )
        self.biases_of_ways = parameter(
            "biases_of_ways", biases_of_ways, [hidden, 2], self.weights
        )

    @property
    def num_visible(self) -> int:
        """Number of pixels."""
        return self.weights.shape[0]

    @property
    def hidden_layers(self) -> tuple[int, ...]:
        """Number of hidden units."""
        return (self.weights.shape[1],)

    @property
    def annealed(self) -> RBM:
        """The RBM in which each unit's two ways of being on are one."""
        hidden_bias = self.biases_of_ways.logsumexp(-1)
        return RBM(self.weights, self.visible_bias, hidden_bias)

    def log_unnormalized(self, v: ArrayLike) -> Tensor:
        """ln p*(v), [...]."""
        v = as_states("v", v, self.weights, self.num_visible)
        on = (v @ self.weights)[..., None] + self.biases_of_ways
        off = torch.zeros_like(on[..., :1])
        log_sums = torch.cat([off, on], dim=-1).logsumexp(-1)
        return v @ self.visible_bias + log_sums.sum(-1)


@path_to.register
def _(model: ThreeStateRBM, bias: Tensor | None) -> BaseRatePath:
    return BaseRatePath(model.annealed, bias)
