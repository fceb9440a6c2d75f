"""A path along the training of an RBM: its steps are checkpoints instead of temperatures.

Cooling a trained RBM may lead through a transition at which modes appear all at once, and chains then stay in the wrong one.
Training has mostly found the modes one after the other, so a path through its checkpoints has no such jump (Bereux, Decelle,
Furtlehner & Seoane 2025, 2026: parallel trajectory tempering; its ancestor, which follows ln Z along training by bridge sampling,
is Desjardins, Courville & Bengio 2011).

Knots 0, 1, ..., T lie at beta = 0, 1/T, ..., 1. Knot 0 is the base-rate model, with no weights and with biases b_A of the visible
units. Knot t is the RBM of checkpoint t. Between two knots all parameters are interpolated linearly,

    f_beta(v) = e^{b' v} prod_j (1 + e^{u_j}),    b = (1 - s) b_t + s b_{t+1},    u = (1 - s) u_t + s u_{t+1},

with u_t = W_t' v + a_t and s = T beta - t. This is again a single RBM, with the same units as the checkpoints: one block Gibbs step
leaves it invariant and, with the hidden units summed out, is reversible. On the first segment it is the path of `BaseRatePath`. (The
geometric mean of two checkpoints' p*(v), the path of `RBMPairPath`, would need the hidden units of both and thus twice the draws.)

A chain keeps the inputs u_t and u_{t+1} of its segment, which are two products; no beta within the segment then needs a further
product. A transition takes one more, with W at beta, if all chains share beta, or two if each has its own. If chains are on several
segments, their products are computed segment by segment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing.path import require_beta
from paperlib.annealing.rbm_paths import VisiblePath, bias_at_start
from paperlib.errors import InputError
from paperlib.kernels import Beta, draw_bits, draw_bits_of_logits
from paperlib.models import RBM
from paperlib.models.files import tensors_checksum
from paperlib.models.rbm import as_rbm
from paperlib.numerics import bernoulli_log_prob, softplus
from paperlib.validation import ArrayLike, as_binary, as_states

_ENDS = ("inputs_from", "inputs_to", "bias_from", "bias_to")
# The exponent from which on a softplus is practically linear.
_FAR = 30.0


@dataclass(slots=True)
class _TrajectoryState:
    """Visible units of a batch of chains, with the inputs to the hidden units at both ends of each chain's segment."""

    v: Tensor  # bool [chains, D]
    segment: Tensor  # int64 [chains]: t for the segment from knot t to knot t + 1
    inputs_from: Tensor  # u_t, [chains, M]
    inputs_to: Tensor  # u_{t+1}
    bias_from: Tensor  # b_t' v, float64 [chains]
    bias_to: Tensor  # b_{t+1}' v


class TrajectoryPath(VisiblePath[_TrajectoryState]):
    """A path from independent pixels to an RBM, through the checkpoints of its training.

    AIS along this path estimates ln Z of the last RBM; `paperlib.estimators.log_z_along_training` estimates that of all of them.

    Parameters
    ----------
    rbms : sequence of RBM
        Checkpoints in the order of training, of the same sizes and type and on the same device.
    visible_bias : array or Tensor, shape [D], optional
        Biases b_A of the start, from `paperlib.datasets.base_rate_bias(train)`. None: zero, the uniform start.

    Attributes
    ----------
    knots : Tensor, shape [T + 1]
        Where the base-rate model and the checkpoints lie: 0, 1/T, ..., 1; float64.

    Raises
    ------
    InputError
        If there is no RBM, one of them is not an RBM, sizes, types or devices differ, or `visible_bias` has the wrong length or holds
        NaN or infinite values.

    Examples
    --------
    >>> early = RBM([[0.1, -0.2], [0.5, 0.0]], [0.0, 0.0], [0.0, 0.0])
    >>> late = RBM([[1.0, -2.0], [0.5, 0.0]], [0.0, 0.0], [0.0, 0.0])
    >>> path = TrajectoryPath([early, late])
    >>> path.knots.tolist()
    [0.0, 0.5, 1.0]
    >>> v = [[1, 0], [1, 1]]
    >>> [path.log_f(path.state_at(v), 0.5 * t).isclose(rbm.log_unnormalized(v)).all().item()
    ...  for t, rbm in enumerate([early, late], start=1)]
    [True, True]
    """

    def __init__(self, rbms: Sequence[RBM], visible_bias: object | None = None) -> None:
        if not isinstance(rbms, Sequence) or isinstance(rbms, str) or len(rbms) == 0:
            raise InputError(f"rbms: expected a sequence of at least one RBM, got {rbms!r:.60}")
        for number, rbm in enumerate(rbms):
            as_rbm(f"rbms[{number}]", rbm)
            for name in ("num_visible", "num_hidden", "dtype", "device"):
                if getattr(rbm, name) != getattr(rbms[0], name):
                    raise InputError(
                        f"rbms[{number}]: expected {name} {getattr(rbms[0], name)} as in rbms[0], got {getattr(rbm, name)}"
                    )
        self._rbms = tuple(rbms)
        first, self._target = self._rbms[0], self._rbms[-1]
        bias = bias_at_start("visible_bias", visible_bias, first.visible_bias)
        self._base = RBM(torch.zeros_like(first.weights), bias, torch.zeros_like(first.hidden_bias))
        self._knot_models = (self._base, *self._rbms)
        self.knots = torch.arange(len(rbms) + 1, dtype=torch.float64) / len(rbms)
        self.uniform_start = bool((bias == 0).all())
        self.log_z_start = softplus(bias.double()).sum().item() + first.num_hidden * math.log(2)

    def _arguments(self) -> tuple[Any, ...]:
        return self._rbms, self._base.visible_bias

    def checksum(self) -> str:
        """SHA-256 of everything that draws and weights along the path depend on."""
        tensors = [tensor for rbm in self._rbms for tensor in rbm.tensors().values()]
        return tensors_checksum([*tensors, self._base.visible_bias])

    def state_at(self, v: ArrayLike) -> _TrajectoryState:
        """The state of chains whose visible units are `v` [chains, D], on the last segment.

        Raises
        ------
        InputError
            If `v` has the wrong shape, is empty, or is not binary.
        """
        units = as_binary("v", v, self.num_visible).to(self.device, torch.bool, copy=True)
        return self._state(units, self._place(1.0, units)[0])

    def sample_start(self, num_chains: int, generator: torch.Generator) -> _TrajectoryState:
        """Independent draws from the base-rate model."""
        probs = torch.sigmoid(self._base.visible_bias).expand(num_chains, -1)
        v = draw_bits(probs, generator)
        return self._state(v, self._place(0.0, v)[0])

    def log_start(self, v: ArrayLike) -> Tensor:
        """ln p(v) under the base-rate model, float64 [N], for `v` [N, D]."""
        bias = self._base.visible_bias.double()
        return bernoulli_log_prob(as_states("v", v, bias, self.num_visible), bias)

    def log_f(self, state: _TrajectoryState, beta: Beta) -> Tensor:
        """ln f_beta(v) of each chain, in nats; float64 [chains]."""
        state, share = self._at(state, beta)
        inputs = torch.lerp(state.inputs_from, state.inputs_to, share[:, None].to(self.dtype))
        biases = torch.lerp(state.bias_from, state.bias_to, share)
        return biases + softplus(inputs).sum(1, dtype=torch.float64)

    def log_ratio(self, state: _TrajectoryState, beta_from: Beta, beta_to: Beta) -> Tensor:
        """ln f_{beta_to}(v) - ln f_{beta_from}(v) of each chain, without cancellation within a segment; float64 [chains]."""
        self._require_own(state)
        begin, end = (self._all(beta, state.v) * len(self._rbms) for beta in (beta_from, beta_to))
        segment = torch.minimum(begin, end).floor().clamp(0, len(self._rbms) - 1)
        within = torch.maximum(begin, end) - segment <= 1
        here = self._on(state, segment.long())
        step = end - begin
        inputs, slope = here.inputs_from, here.inputs_to - here.inputs_from
        low = inputs + slope * (begin - segment).to(self.dtype)[:, None]
        ratio = _softplus_difference(low, slope * step.to(self.dtype)[:, None])
        ratio += (here.bias_to - here.bias_from) * step
        if bool(within.all()):
            return ratio
        return torch.where(within, ratio, self.log_f(state, beta_to) - self.log_f(state, beta_from))

    def transition(
        self, state: _TrajectoryState, beta: Beta, generator: torch.Generator
    ) -> _TrajectoryState:
        """One block Gibbs step of the RBM at `beta`: all hidden units given v, then v given them."""
        state, share = self._at(state, beta)
        column = share[:, None].to(self.dtype)
        inputs = torch.lerp(state.inputs_from, state.inputs_to, column)
        h = draw_bits_of_logits(inputs, generator).to(self.dtype)

        def visible_inputs(chains: Tensor | slice, segment: int) -> tuple[Tensor]:
            low, high = self._knot_models[segment : segment + 2]
            if not isinstance(beta, Tensor):
                # one matrix for all chains
                part = beta * len(self._rbms) - segment
                weights = torch.lerp(low.weights, high.weights, part)
                bias = torch.lerp(low.visible_bias, high.visible_bias, part)
                return (torch.addmm(bias, h[chains], weights.T),)
            from_low, from_high = (
                torch.addmm(rbm.visible_bias, h[chains], rbm.weights.T) for rbm in (low, high)
            )
            return (torch.lerp(from_low, from_high, column[chains]),)

        (logits,) = self._by_segment(state.segment, visible_inputs)
        return self._state(draw_bits_of_logits(logits, generator), state.segment)

    def _all(self, beta: Beta, v: Tensor) -> Tensor:
        """The beta of each chain, float64 [chains]."""
        require_beta(beta, len(v))
        if isinstance(beta, Tensor):
            return beta.to(self.device, torch.float64).expand(len(v))
        return torch.full((len(v),), beta, dtype=torch.float64, device=self.device)

    def _place(self, beta: Beta, v: Tensor) -> tuple[Tensor, Tensor]:
        """The segment of each chain's beta, int64 [chains], and the position of beta within it, from 0 to 1."""
        count = len(self._rbms)
        place = self._all(beta, v) * count
        segment = place.floor().clamp(0, count - 1)
        return segment.long(), place - segment

    def _by_segment(
        self, segment: Tensor, function: Callable[[Tensor | slice, int], tuple[Tensor, ...]]
    ) -> list[Tensor]:
        """The rows of `function(chains, segment)` for the chains of each segment, in the order of all chains."""
        present = segment.unique().tolist()
        if len(present) == 1:
            return list(function(slice(None), present[0]))
        chosen = [torch.nonzero(segment == number).flatten() for number in present]
        parts = [function(chains, number) for chains, number in zip(chosen, present, strict=True)]
        order = torch.cat(chosen).argsort()
        return [torch.cat(part)[order] for part in zip(*parts, strict=True)]

    def _state(self, v: Tensor, segment: Tensor) -> _TrajectoryState:
        """The state of bool units to which nothing else refers."""
        numbers = v.to(self.dtype)

        def ends(chains: Tensor | slice, segment: int) -> tuple[Tensor, ...]:
            models, units = self._knot_models[segment : segment + 2], numbers[chains]
            inputs = [torch.addmm(rbm.hidden_bias, units, rbm.weights) for rbm in models]
            biases = [units.double() @ rbm.visible_bias.double() for rbm in models]
            return (*inputs, *biases)

        return _TrajectoryState(v, segment, *self._by_segment(segment, ends))

    def _on(self, state: _TrajectoryState, segment: Tensor) -> _TrajectoryState:
        """The same units on these segments."""
        moved = torch.nonzero(segment != state.segment).flatten()
        if len(moved) == 0:
            return state
        if len(moved) == len(segment):
            return self._state(state.v, segment)
        new = self._state(state.v[moved], segment[moved])
        kept = {name: getattr(state, name).clone() for name in _ENDS}
        for name, values in kept.items():
            values[moved] = getattr(new, name)
        return _TrajectoryState(state.v, segment, **kept)

    def _at(self, state: _TrajectoryState, beta: Beta) -> tuple[_TrajectoryState, Tensor]:
        """The state on the segments of beta, and the position of beta within them, float64 [chains]."""
        self._require_own(state)
        segment, share = self._place(beta, state.v)
        return self._on(state, segment), share

    def _require_own(self, state: _TrajectoryState) -> None:
        """Raise an InputError unless the state is one of a path with as many units as this one."""
        if not isinstance(state, _TrajectoryState):
            raise InputError(
                f"state: expected a TrajectoryState of this path, got {type(state).__name__}"
            )
        widths = state.v.shape[1], state.inputs_to.shape[1]
        if widths != (self.num_visible, self._base.num_hidden):
            raise InputError(
                f"state: expected {self.num_visible} units with {self._base.num_hidden} inputs, got {widths[0]} and {widths[1]}"
            )


def _softplus_difference(x: Tensor, step: Tensor) -> Tensor:
    """Sum over the last dimension of softplus(x + step) - softplus(x), without cancellation; float64."""
    # From the smaller argument to the larger, so that 1 + s(x) (e^step - 1) is at least 1.
    size, lower = step.abs(), x + step.clamp(max=0)
    # Where e^step would overflow, nothing is left to cancel.
    near = torch.log1p(torch.sigmoid(lower) * torch.expm1(size.clamp(max=_FAR)))
    far = softplus(lower + size) - softplus(lower)
    return (torch.where(size <= _FAR, near, far) * step.sign()).sum(-1, dtype=torch.float64)
