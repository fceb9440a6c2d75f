"""A path from a mixture of Bernoullis to an RBM: a start that has a component for each mode.

With mixing weights pi_c, means mu_c, inputs u = W' v + a to the hidden units and biases b of the visible ones, the path walks through

    f_beta(v) = sum_c pi_c Bern(v | mu_c)^{1 - beta}  e^{beta b' v} prod_j (1 + e^{beta u_j})

that is, through the sum over components of one geometric path from each component to the RBM. At beta = 0, f_0 is the mixture itself
times 2^M, the factor of the hidden units as along a base-rate path, so that ln Z_0 = M ln 2. At beta = 1 the mixing weights sum to
one, and f_1 = p*(v).

The component c is a unit that is summed out, like the hidden units. Given v it is independent of them. A transition draws c and all
hidden units given v, then v given both, which is reversible in v alone. The weights are those of the sum, which vary less than those
of pairs (c, v) would (Yasuda & Takahashi 2022 prove this for hidden units). RAISE needs nothing new: a test vector determines all the
units that the path keeps, and its weight is that of the sum over components.

Neither paper starts a path to an RBM at a mixture.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from paperlib import storage
from paperlib.annealing.path import beta_column
from paperlib.annealing.rbm_paths import RBMInterpolation, VisibleState
from paperlib.errors import InputError
from paperlib.kernels import Beta, draw_bits, draw_categories
from paperlib.models import RBM, BernoulliMixture
from paperlib.models.rbm import as_rbm
from paperlib.numerics import softplus
from paperlib.validation import ArrayLike, as_states


@dataclass(slots=True)
class _MixtureState(VisibleState):
    """Visible units of a batch of chains, with `log_components`, ln Bern(v | mu_c) under the mixture's components, float64 [chains, C]."""

    log_components: Tensor = field(kw_only=True)


class MixturePath(RBMInterpolation):
    """A path from a mixture of Bernoullis to an RBM. States are visible units; components and hidden units are summed out.

    AIS along this path estimates ln Z of the RBM.

    Parameters
    ----------
    rbm : RBM
        The target.
    mixture : BernoulliMixture
        The start, from `paperlib.learning.train_mixture` or, without any data, from `mean_field_mixture`. It is converted to the
        target's type and moved to its device.

    Raises
    ------
    InputError
        If `rbm` is not an RBM, `mixture` is not a mixture of Bernoullis, or their numbers of visible units differ.

    Examples
    --------
    >>> rbm = RBM([[4.0, -4.0], [-4.0, 4.0]], [0.0, 0.0], [0.0, 0.0])
    >>> mixture = BernoulliMixture([[2.0, -2.0], [-2.0, 2.0]], [0.0, 0.0])
    >>> path = MixturePath(rbm, mixture)
    >>> state = path.state_at([[1, 0], [1, 1]])
    >>> path.log_f(state, 1.0).isclose(rbm.log_unnormalized([[1, 0], [1, 1]]))
    tensor([True, True])
    >>> (path.log_f(state, 0.0) - path.log_z_start).isclose(mixture.log_prob([[1, 0], [1, 1]]))
    tensor([True, True])
    """

    def __init__(self, rbm: RBM, mixture: BernoulliMixture) -> None:
        rbm = as_rbm("rbm", rbm)
        if not isinstance(mixture, BernoulliMixture):
            raise InputError(f"mixture: expected a BernoulliMixture, got {type(mixture).__name__}")
        if mixture.num_visible != rbm.num_visible:
            raise InputError(
                f"mixture: expected {rbm.num_visible} visible units as in rbm, got {mixture.num_visible}"
            )
        nowhere = torch.zeros_like(rbm.visible_bias)
        super().__init__(rbm.weights[:, :0], nowhere, rbm.hidden_bias[:0], rbm)
        self._mixture = mixture.to(rbm.device, rbm.dtype)
        logits = self._mixture.logits
        self._to_components = logits.T.contiguous()
        self._log_off = -softplus(logits.double()).sum(1)
        # Normalised in float64, since any rounding error left would be a part of Z_0.
        self._log_mixing = self._mixture.log_mixing_weights.double().log_softmax(0)
        self.log_z_start = rbm.num_hidden * math.log(2)

    def _arguments(self) -> tuple[Any, ...]:
        return self._target, self._mixture

    def checksum(self) -> str:
        """SHA-256 of everything that draws and weights along the path depend on."""
        return storage.sha256(f"{super().checksum()} {self._mixture.checksum()}".encode())

    def _state(self, v: Tensor, last: VisibleState | None = None) -> _MixtureState:
        state = super()._state(v, last)
        products = v.to(self._weights.dtype) @ self._to_components
        return _MixtureState(
            state.v,
            state.hidden_input,
            state.bias_difference,
            state.memory,
            state.first,
            log_components=products.double() + self._log_off,
        )

    def divide(self, state: VisibleState, parts: int) -> list[tuple[Tensor, VisibleState]]:
        """An empty list, since draws of components depend on more than a chain's place."""
        return []

    def _require_own(self, state: VisibleState) -> None:
        super()._require_own(state)
        if not isinstance(state, _MixtureState):
            raise InputError(
                f"state: expected a MixtureState of this path, got {type(state).__name__}"
            )

    def _log_joint(self, state: VisibleState, beta: Beta) -> Tensor:
        """ln pi_c + (1 - beta) ln Bern(v | mu_c), float64 [chains, C]."""
        assert isinstance(state, _MixtureState)
        return self._log_mixing + state.log_components * beta_column(1 - beta, torch.float64)

    def log_f(self, state: VisibleState, beta: Beta) -> Tensor:
        """ln f_beta(v) of each chain, in nats; float64 [chains]."""
        return super().log_f(state, beta) + self._log_joint(state, beta).logsumexp(1)

    def log_ratio(self, state: VisibleState, beta_from: Beta, beta_to: Beta) -> Tensor:
        """ln f_{beta_to}(v) - ln f_{beta_from}(v) of each chain; float64 [chains]."""
        ratio = super().log_ratio(state, beta_from, beta_to)
        ratio += self._log_joint(state, beta_to).logsumexp(1)
        return ratio - self._log_joint(state, beta_from).logsumexp(1)

    def _visible_bias(self, state: VisibleState, beta: Beta, generator: torch.Generator) -> Tensor:
        """The biases of a component drawn for each chain, interpolated to those of the RBM, [chains, D]."""
        component = _draw_component(self._log_joint(state, beta), generator)
        logits = self._mixture.logits[component]
        return torch.lerp(logits, self._visible_bias_b, beta_column(beta, self._weights.dtype))

    def log_start(self, v: ArrayLike) -> Tensor:
        """ln p(v) under the mixture, float64 [N], for `v` [N, D]."""
        v = as_states("v", v, self._log_mixing, self.num_visible)
        log_components = v @ self._to_components.double() + self._log_off
        return (log_components + self._log_mixing).logsumexp(1)

    def sample_start(self, num_chains: int, generator: torch.Generator) -> _MixtureState:
        """Independent draws from the mixture."""
        component = _draw_component(self._log_mixing.expand(num_chains, -1), generator)
        return self._state(draw_bits(torch.sigmoid(self._mixture.logits[component]), generator))


def _draw_component(log_weights: Tensor, generator: torch.Generator) -> Tensor:
    """One of C components for each chain, int64 [chains], with probabilities proportional to the weights [chains, C]."""
    drawn = draw_categories(log_weights, log_weights.shape[1], generator)
    return drawn.to(torch.uint8).argmax(1)
