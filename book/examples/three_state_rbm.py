"""An RBM whose hidden units have three states each: a new kind of model."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from paperlib.annealing import PottsPath, path_to, start_bias
from paperlib.annealing.rbm_paths import VisibleState
from paperlib.models import PottsRBM
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import bernoulli_log_prob
from paperlib.validation import ArrayLike, parameter


class ThreeStateRBM(UnnormalizedModel):
    """E(v, h) = - b'v - sum_j (W_j'v + a_j)[h_j]; v_i is 0 or 1, h_j is 0, 1 or 2."""

    tensor_names = ("weights", "visible_bias", "hidden_bias")
    called = "a three-state RBM"

    def __init__(
        self, weights: object, visible_bias: object, hidden_bias: object
    ) -> None:
        self.weights = parameter("weights", weights, [None, None, 3])
        visible, hidden, states = self.weights.shape
        self.visible_bias = parameter(
            "visible_bias", visible_bias, [visible], self.weights
        )
        self.hidden_bias = parameter(
            "hidden_bias", hidden_bias, [hidden, states], self.weights
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
    def annealed(self) -> PottsRBM:
        """The same with layers exchanged: h are sites of three states, v hidden bits."""
        return PottsRBM(
            self.weights.permute(1, 2, 0), self.hidden_bias, self.visible_bias
        )

    def log_unnormalized(self, v: ArrayLike) -> Tensor:
        """ln p*(v), [...]."""
        return self.annealed.log_unnormalized_hidden(v)


class ThreeStatePath(PottsPath):
    """From independent hidden units to the model.

    RAISE begins with h drawn from p(h | v), which is known here.
    """

    def __init__(
        self, model: ThreeStateRBM, bias: Tensor | None = None
    ) -> None:
        super().__init__(
            model.annealed,
            None if bias is None else bias.view(model.hidden_bias.shape),
        )
        self._rbm = model

    @property
    def num_visible(self) -> int:
        """Number of pixels."""
        return self._rbm.num_visible

    def begin_reverse(
        self,
        v: Tensor,
        schedule: Sequence[float],
        generator: torch.Generator,
        on_step: Callable[[int], object],
    ) -> tuple[VisibleState, Tensor]:
        """A draw of h for each row of `v` [chains, D], and its log-weight."""
        v, upside_down = v.to(self.dtype), self._rbm.annealed
        rates = upside_down.visible_probs(v)
        h = upside_down.draw_visible(rates, generator)
        state = self._state(h.bool())
        inputs = h @ upside_down.flat.weights + upside_down.hidden_bias
        # ln p*(h) + ln p(v | h) - ln p(h | v), and the start's ln Z
        log_weights = (
            self.log_f(state, 1.0) + bernoulli_log_prob(v, inputs).double()
        )
        return state, log_weights - (h * rates.log()).sum(
            -1
        ).double() - self.log_z_start


@path_to.register
def _(model: ThreeStateRBM, bias: Tensor | None) -> ThreeStatePath:
    return ThreeStatePath(model, bias)


@start_bias.register
def _(
    model: ThreeStateRBM,
    images: Tensor,
    generator: torch.Generator,
    weights: Tensor | None = None,
    pseudo_off: float = 0.05,
) -> Tensor:
    """How often each hidden unit is in each state, given the images."""
    rates = (
        model.annealed.visible_probs(images.to(model.dtype)).double().mean(0)
    )
    return rates.log().round(decimals=2)
