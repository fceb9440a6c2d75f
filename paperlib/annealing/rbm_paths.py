"""Annealing paths over the visible units: from independent pixels to an RBM, and from one RBM to another.

With u^A = W_A' v + a_A and u^B = W_B' v + a_B the inputs to the hidden units, both paths walk through
(Salakhutdinov & Murray 2008, eq. 13-17)

    f_beta(v) = exp((1 - beta) b_A' v + beta b_B' v) prod_j (1 + e^{(1 - beta) u^A_j}) prod_j (1 + e^{beta u^B_j})

The base-rate path is the case in which A has no weights. A transition draws all hidden units given v, then a new v
given them. With the hidden units summed out that is reversible, hence its own reversal.

Two slips of the paper are avoided here. It prints p*_k with e^{+E}; the product form, used above, is right. And since
f_beta sums over both hidden layers, f_0 carries a factor 2^{M_B} and f_1 a factor 2^{M_A}: the mean weight estimates
2^{M_A - M_B} Z_B / Z_A, which `RBMPairPath.log_z_start` corrects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from paperlib import storage
from paperlib.binary_products import BinaryProduct, Memory
from paperlib.models import RBM
from paperlib.models.files import tensors_checksum
from paperlib.numerics import (
    Beta,
    bernoulli,
    draw_bits_of_logits,
    draw_keys,
    softplus,
    softplus_increment,
    sum_where,
)
from paperlib.validation import (
    as_float_tensor,
    parameter,
    require_binary,
    require_count,
    require_shape,
)

StartSampler = Callable[[int, torch.Generator], Tensor]


@dataclass
class VisibleState:
    """Visible units of a batch of chains, with the products that a weight and the next transition share.

    Attributes
    ----------
    v : Tensor, shape [chains, D]
        bool.
    hidden_input : Tensor, shape [chains, M_A + M_B]
        Inputs u^A and u^B to the hidden units, not yet scaled by beta.
    bias_difference : Tensor, shape [chains]
        float64, (b_B - b_A)' v.
    memory : dict
        Of the chains' last products, see `paperlib.binary_products`; it changes no result.
    """

    v: Tensor
    hidden_input: Tensor
    bias_difference: Tensor
    memory: Memory


class _RBMInterpolation:
    """The common part: A may have any number of hidden units, none included."""

    log_z_start: float
    target: RBM | None
    uniform_start: bool
    reverse_passes = 1

    def __init__(
        self, weights_a: Tensor, visible_bias_a: Tensor, hidden_bias_a: Tensor, rbm_b: RBM
    ) -> None:
        self._num_hidden_a = weights_a.shape[1]
        self._visible_bias_a = visible_bias_a
        self._visible_bias_b = rbm_b.visible_bias
        self._bias_difference = rbm_b.visible_bias - visible_bias_a
        self._weights = torch.cat([weights_a, rbm_b.weights], dim=1)
        self._hidden_offset = torch.cat([hidden_bias_a, rbm_b.hidden_bias])
        self._largest = self._weights.abs().max()
        split = self._num_hidden_a
        self._to_hidden = BinaryProduct(self._weights, self._largest)
        self._to_visible_a = self._to_visible(slice(None, split), slice(None))
        self._to_visible_b = self._to_visible(slice(split, None), slice(None))

    def _to_visible(self, hidden: slice, visible: slice) -> BinaryProduct:
        """Products with the weights from some hidden to some visible units."""
        return BinaryProduct(self._weights[visible, hidden].T.contiguous(), self._largest)

    @property
    def device(self) -> torch.device:
        """Where states live."""
        return self._weights.device

    @property
    def num_visible(self) -> int:
        """Number of visible units, D."""
        return self._weights.shape[0]

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type of the states."""
        return self._weights.dtype

    def checksum(self) -> str:
        """SHA-256 of all that draws and weights along the path depend on."""
        return tensors_checksum(
            [
                self._weights,
                self._hidden_offset,
                self._visible_bias_a,
                self._visible_bias_b,
                torch.tensor(self._num_hidden_a),
            ]
        )

    def state_at(self, v: Tensor, last: VisibleState | None = None) -> VisibleState:
        """The state of chains whose visible units are `v` [chains, D], of any type; their `last` state saves work."""
        v = v.to(self.device, torch.bool)
        memory = {} if last is None else last.memory
        hidden_input = self._to_hidden(v, 1.0, self._hidden_offset, memory)
        return VisibleState(v, hidden_input, sum_where(v, self._bias_difference), memory)

    def log_ratio(self, state: VisibleState, beta_from: Beta, beta_to: Beta) -> Tensor:
        """ln f_{beta_to}(v) - ln f_{beta_from}(v) for each chain, float64 [chains]."""
        split = self._num_hidden_a
        ratio = softplus_increment(state.hidden_input[:, split:], beta_from, beta_to)
        if split:
            ratio += softplus_increment(state.hidden_input[:, :split], 1 - beta_from, 1 - beta_to)
        if isinstance(beta_to, Tensor):
            return ratio.addcmul_(state.bias_difference, beta_to - beta_from)
        return ratio.add_(state.bias_difference, alpha=beta_to - beta_from)

    def log_rounding(self, state: VisibleState, beta: float) -> Tensor:
        """ln f_beta(v) of the models themselves minus that of the rounded ones, float64 [chains]; for beta 0 or 1.

        Zero where nothing is rounded; see `paperlib.binary_products`.
        """
        split = self._num_hidden_a
        hidden = slice(None, split) if beta == 0 else slice(split, None)
        if not self._to_hidden.rounded:
            return torch.zeros(len(state.v), dtype=torch.float64, device=self.device)
        exact_input = torch.addmm(
            self._hidden_offset[hidden], state.v.to(self.dtype), self._weights[:, hidden]
        )
        difference = softplus(exact_input) - softplus(state.hidden_input[:, hidden])
        return difference.sum(-1, dtype=torch.float64)

    def begin_reverse(
        self,
        v: Tensor,
        schedule: Sequence[float],
        generator: torch.Generator,
        on_step: Callable[[], object],
    ) -> tuple[VisibleState, Tensor]:
        """The state at `v` [chains, D] and ln f_1(v) - ln Z_0, float64 [chains]; nothing is unobserved, nothing drawn."""
        state = self.state_at(v)
        return state, self._log_target(state) - self.log_z_start

    def _log_target(self, state: VisibleState) -> Tensor:
        """ln f_1(v) of each chain, float64; the hidden units of A contribute ln 2 each."""
        biases = sum_where(state.v, self._visible_bias_b)
        hidden = softplus(state.hidden_input[:, self._num_hidden_a :]).sum(-1, dtype=torch.float64)
        return biases + hidden + self._num_hidden_a * math.log(2)

    def transition(
        self, state: VisibleState, beta: Beta, generator: torch.Generator
    ) -> VisibleState:
        """One block Gibbs step at `beta`: all hidden units given v (eq. 15, 16), then v given them (eq. 17)."""
        split = self._num_hidden_a
        if self._to_hidden.columns is not None and not split:
            return self.state_at(self._draw_visible(state, beta, generator), state)
        bias = self._visible_bias(beta)
        hidden_b = draw_bits_of_logits(state.hidden_input[:, split:], generator, beta)
        visible_input = self._to_visible_b(hidden_b, beta, bias, state.memory)
        if split:
            hidden_a = draw_bits_of_logits(state.hidden_input[:, :split], generator, 1 - beta)
            no_bias = torch.zeros_like(bias)
            visible_input += self._to_visible_a(hidden_a, 1 - beta, no_bias, state.memory)
        return self.state_at(draw_bits_of_logits(visible_input, generator), state)

    def _draw_visible(self, state: VisibleState, beta: float, generator: torch.Generator) -> Tensor:
        """The same draws, bit for bit, in one function: the interpreter would take a third of the time where hidden units are few."""
        from paperlib import fused

        v = np.empty(state.v.shape, bool)
        fused.draw_visible(
            state.hidden_input.numpy(),
            np.float32(beta),
            draw_keys(generator, 2),
            self._to_hidden.columns,
            np.float32(beta * self._to_hidden.scale),
            self._visible_bias(beta).numpy(),
            v,
        )
        return torch.from_numpy(v)

    def _visible_bias(self, beta: Beta) -> Tensor:
        if isinstance(beta, Tensor):
            beta = beta.to(self.dtype)
        return torch.lerp(self._visible_bias_a, self._visible_bias_b, beta)

    def reverse_transition(
        self, state: VisibleState, beta: Beta, generator: torch.Generator
    ) -> VisibleState:
        """The reversal of `transition`, which is reversible."""
        return self.transition(state, beta, generator)

    def visible(self, state: VisibleState) -> Tensor:
        """The visible units of a state in the model's type, [chains, D]."""
        return state.v.to(self.dtype)


def start_bias(name: str, given: object | None, target: Tensor) -> Tensor:
    """Biases at which a path starts, in the type and on the device of those at which it ends.

    Parameters
    ----------
    name : str
        The argument to blame.
    given : array-like of shape [n], optional
        Biases of the start; None: zero, the uniform distribution.
    target : Tensor of shape [n]
        Biases of the end.

    Returns
    -------
    Tensor of shape [n]

    Raises
    ------
    ValueError
        If those given have another length or hold NaN or infinite values.
    """
    return (
        torch.zeros_like(target) if given is None else parameter(name, given, target.shape, target)
    )


class BaseRatePath(_RBMInterpolation):
    """From independent pixels to an RBM (Salakhutdinov & Murray 2008, section 3.3).

    An AIS estimate along this path is one of ln Z of the RBM.

    Parameters
    ----------
    rbm : RBM
        The target.
    visible_bias : array or Tensor, shape [D], optional
        Biases b_A of the start, from `paperlib.datasets.base_rate_bias(train)`. None: zero, the uniform start, which
        often misses the mode that holds nearly all of Z.

    Raises
    ------
    ValueError
        If `visible_bias` has another length or holds NaN or infinite values.
    """

    def __init__(self, rbm: RBM, visible_bias: object | None = None) -> None:
        bias = start_bias("visible_bias", visible_bias, rbm.visible_bias)
        super().__init__(rbm.weights[:, :0], bias, rbm.hidden_bias[:0], rbm)
        self.target = rbm
        self.uniform_start = bool((bias == 0).all())
        # eq. 18; the target's hidden units, which carry weight zero at the start, contribute ln 2 each
        self.log_z_start = softplus(bias.double()).sum().item() + rbm.num_hidden * math.log(2)

    def to(self, device: torch.device | str) -> Self:
        """The same path on another device."""
        return type(self)(self.target.to(device), self._visible_bias_a)

    def log_start(self, v: Tensor) -> Tensor:
        """ln p(v) under the base-rate model, float64 [N], for `v` [N, D]."""
        bias = self._visible_bias_a.double()
        return v.double() @ bias - softplus(bias).sum()

    def sample_start(self, num_chains: int, generator: torch.Generator) -> VisibleState:
        """Independent draws from the base-rate model."""
        probs = torch.sigmoid(self._visible_bias_a).expand(num_chains, -1)
        return self.state_at(bernoulli(probs, generator))


class RBMPairPath(_RBMInterpolation):
    """From one RBM to another over the same visible units (Salakhutdinov & Murray 2008, section 3.2).

    An AIS estimate along this path is one of ln(Z_B / Z_A), whatever the two numbers of hidden units.

    Parameters
    ----------
    rbm_a, rbm_b : RBM
        Start and target, of one floating-point type, on one device.
    sample_a : callable, optional
        `sample_a(num_chains, generator)` gives draws [num_chains, D] from `rbm_a`. By default each chain is an
        independent Gibbs chain from uniformly random pixels; if it has not converged, the estimate is biased and no
        diagnostic of the weights can tell.
    burn_in : int
        Gibbs steps of the default sampler.

    Raises
    ------
    ValueError
        If the models differ in visible units, type or device, or `burn_in` is not a whole number of at least 1.
    """

    log_z_start: float
    target = None
    uniform_start = False

    def __init__(
        self, rbm_a: RBM, rbm_b: RBM, sample_a: StartSampler | None = None, burn_in: int = 1_000
    ) -> None:
        for name in ("num_visible", "dtype", "device"):
            if getattr(rbm_a, name) != getattr(rbm_b, name):
                raise ValueError(
                    f"rbm_b: expected {name} {getattr(rbm_a, name)} as in rbm_a, got {getattr(rbm_b, name)}"
                )
        super().__init__(rbm_a.weights, rbm_a.visible_bias, rbm_a.hidden_bias, rbm_b)
        self._rbm_a, self._rbm_b = rbm_a, rbm_b
        self._sample_a = sample_a
        self._burn_in = require_count("burn_in", burn_in)
        self.log_z_start = (rbm_b.num_hidden - rbm_a.num_hidden) * math.log(2)

    def to(self, device: torch.device | str) -> Self:
        """The same path on another device."""
        rbm_a, rbm_b = self._rbm_a.to(device), self._rbm_b.to(device)
        return type(self)(rbm_a, rbm_b, self._sample_a, self._burn_in)

    def sample_start(self, num_chains: int, generator: torch.Generator) -> VisibleState:
        """Draws from `rbm_a`, by `sample_a` or by Gibbs chains."""
        if self._sample_a is not None:
            v = as_float_tensor(
                "sample_a", self._sample_a(num_chains, generator), self._rbm_a.dtype
            )
            require_shape("sample_a", v, [num_chains, self._rbm_a.num_visible])
            require_binary("sample_a", v)
            return self.state_at(v.to(self.device))
        half = self._rbm_a.weights.new_full((num_chains, self._rbm_a.num_visible), 0.5)
        v = bernoulli(half, generator)
        for _ in range(self._burn_in):
            v = self._rbm_a.gibbs_step(v, generator)
        return self.state_at(v)

    def checksum(self) -> str:
        """SHA-256 of all that draws and weights along the path depend on.

        Raises
        ------
        ValueError
            If the start is drawn by a function, of which nothing is known.
        """
        if self._sample_a is not None:
            raise ValueError(
                "path: expected a path that can be identified, got one whose start is drawn by a function (sample_a)"
            )
        return storage.sha256(f"{super().checksum()} {self._burn_in}".encode())
