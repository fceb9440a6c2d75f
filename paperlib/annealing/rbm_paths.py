"""Annealing paths to an RBM: from independent pixels, and from another RBM.

With u^A = W_A' v + a_A and u^B = W_B' v + a_B the inputs to the hidden units, both paths walk
through (Salakhutdinov & Murray 2008, eq. 13-17)

    f_beta(v) = exp((1 - beta) b_A' v + beta b_B' v)
                * prod_j (1 + e^{(1 - beta) u^A_j})
                * prod_j (1 + e^{beta u^B_j})

The base-rate path is the case in which A has no weights. A transition draws all hidden units given
v, then a new v given them. With the hidden units summed out this is reversible, hence its own
reversal.

Two slips in the paper are avoided here. First, it prints p*_k with e^{+E}; the product form, used
above, is right. Second, since f_beta sums over both hidden layers, f_0 carries a factor 2^{M_B} and
f_1 a factor 2^{M_A}. The mean weight therefore estimates 2^{M_A - M_B} Z_B / Z_A, which
`RBMPairPath.end_correction` corrects.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from paperlib import storage
from paperlib.annealing.path import AnnealingPath, beta_column, require_beta
from paperlib.errors import InputError
from paperlib.kernels import (
    Beta,
    BipartiteSampler,
    Ladder,
    Memory,
    bernoulli,
    draw_bits,
    parts_for,
    sum_where,
)
from paperlib.kernels.tempering import TemperingSteps
from paperlib.models import RBM
from paperlib.models.bounds import log_z_lower_bound
from paperlib.models.files import tensors_checksum
from paperlib.models.tensor_model import TensorModel
from paperlib.numerics import softplus
from paperlib.validation import (
    ArrayLike,
    as_binary,
    as_bits,
    as_tensor,
    blocks,
    parameter,
    require_binary,
    require_count,
    require_instance,
    require_shape,
)


@dataclass(slots=True)
class VisibleState:
    """Visible units of a batch of chains, with what a weight and the next transition share.

    A state belongs to the path that made it. Its tensors must not be edited; `state_at` makes a
    state with other units.
    """

    v: Tensor  # bool [chains, D]
    hidden_input: Tensor  # u^A and u^B, [chains, M_A + M_B], not yet scaled by beta
    bias_difference: Tensor  # (b_B - b_A)' v, float64 [chains]
    # The chains' last products, which save work and change no result (`paperlib.kernels.products`).
    memory: Memory = field(default_factory=Memory, repr=False, compare=False)
    first: int = 0  # in a part of a block of chains, the place of its first chain in the block


class RBMInterpolation(AnnealingPath[VisibleState]):
    """What both paths share: the walk from the parameters of A to those of B.

    A may have any number of hidden units, including none. All hidden units are summed out, so that
    a Gibbs step is reversible.
    """

    reversible: ClassVar[bool] = True
    replayable: ClassVar[bool] = True

    @torch.no_grad()
    def __init__(
        self, weights_a: Tensor, visible_bias_a: Tensor, hidden_bias_a: Tensor, rbm_b: RBM
    ) -> None:
        self._target = rbm_b
        self._remember(rbm_b)
        split = weights_a.shape[1]  # the hidden units of A come first
        self._num_hidden_a = split
        # a walk takes no gradients, whatever else the model's parameters are for
        self._visible_bias_b = rbm_b.visible_bias.detach()
        # The rest of the path does not depend on these biases.
        self._begin_at(visible_bias_a)
        # Where A has no hidden units, these are the model's weights themselves, not a copy.
        self._weights = rbm_b.weights.detach().contiguous()
        if split:
            self._weights = torch.cat([weights_a, self._weights], dim=1)
        self._hidden_bias = torch.cat([hidden_bias_a, rbm_b.hidden_bias])
        self._widths = tuple(self._weights.shape)
        self._hidden_b = slice(split, None)
        groups = [self._hidden_b, slice(None, split)] if split else [self._hidden_b]
        self._sampler = BipartiteSampler(self._weights, self._hidden_bias, groups)

    @abstractmethod
    def _arguments(self) -> tuple[Any, ...]:
        """The arguments of the constructor."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The path is rebuilt where it is unpickled: what was prepared for this processor may not
        # suit the one there.
        return type(self), self._arguments()

    def to(self, device: torch.device | str) -> Self:
        """The same path on another device."""
        moved: list[Any] = [
            each.to(device) if isinstance(each, Tensor | TensorModel) else each
            for each in self._arguments()
        ]
        return type(self)(*moved)

    @property
    def device(self) -> torch.device:
        """Where states live."""
        return self._target.device

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type of the models."""
        return self._target.dtype

    @property
    def num_visible(self) -> int:
        """Number of visible units, D."""
        return self._target.num_visible

    def units(self, state: VisibleState) -> Tensor:
        """The visible units of a state in the models' type, [chains, D]."""
        return state.v.to(self.dtype)

    def log_z_lower_bound(self, units: Tensor) -> float | None:
        """A lower bound on ln Z of the target, by `paperlib.models.bounds`; None for a ratio.

        It is searched for near the given units [N, D].
        """
        return None if self.log_z_start is None else log_z_lower_bound(self._target, units)

    def checksum(self) -> str:
        """SHA-256 of everything that draws and weights along the path depend on."""
        return tensors_checksum(
            [
                self._weights,
                self._hidden_bias,
                self._visible_bias_a,
                self._visible_bias_b,
                torch.tensor(self._num_hidden_a, device="cpu"),
            ]
        )

    def state_at(self, v: ArrayLike, last: VisibleState | None = None) -> VisibleState:
        """The state of chains with the given binary units [chains, D], which are copied.

        `last`, the last state of the same chains, saves work where few units have changed and does
        not change the result.
        """
        if last is not None and not isinstance(last, VisibleState):
            raise InputError(
                f"last: expected a VisibleState of this path, got {type(last).__name__}"
            )
        units = as_binary("v", v, self._weights.shape[0])
        return self._state(units.to(self.device, torch.bool, copy=True), last)

    def _state(self, v: Tensor, last: VisibleState | None = None) -> VisibleState:
        """`state_at` for bool units to which nothing else refers."""
        if last is None:
            self._require_unchanged()
        memory = Memory() if last is None else last.memory
        first = 0 if last is None else last.first
        hidden_input = self._sampler.hidden_input(v, memory)
        return VisibleState(v, hidden_input, sum_where(v, self._bias_difference), memory, first)

    def select(self, state: VisibleState, index: Tensor) -> VisibleState:
        """The state of the chains with these indices.

        It begins without a memory, since that of the last products is of all chains together.
        """
        return VisibleState(state.v[index], state.hidden_input[index], state.bias_difference[index])

    def divide(self, state: VisibleState, parts: int) -> list[tuple[Tensor, VisibleState]]:
        """Parts of at least 24 chains, if steps are taken at once.

        Random numbers come four at a time, for chains a quarter of the block apart, so a part has
        as many chains from each quarter.
        """
        chains = len(state.v)
        parts = parts_for(chains, require_count("parts", parts))
        if not self.steps_at_once or parts < 2 or chains % 4:
            return []
        quarters = torch.arange(chains).view(4, -1)
        divided = []
        for places in torch.arange(chains // 4).tensor_split(parts):
            index = quarters[:, places].flatten()
            first = int(places[0])
            divided.append((index, replace(self.select(state, index), first=first)))
        return divided

    def join(self, parts: Sequence[tuple[Tensor, VisibleState]]) -> VisibleState:
        """The whole block's state."""
        v = torch.cat([part.v for _, part in parts])
        whole = torch.empty_like(v)
        whole[torch.cat([index for index, _ in parts])] = v
        return self._state(whole)

    def _remember(self, *models: TensorModel) -> None:
        """Remember the parameters of all models that the path is made from."""
        self._made_from = [
            (model, {name: (t, _version_of(t)) for name, t in model.tensors().items()})
            for model in models
        ]

    def _require_unchanged(self) -> None:
        """Raise an InputError if a model's parameters are no longer those of the path."""
        for model, tensors in self._made_from:
            present = model.tensors()
            for name, (tensor, version) in tensors.items():
                if present[name] is not tensor or _version_of(tensor) != version:
                    raise InputError(
                        f"path: expected the {name} that it was made from, got a model whose "
                        f"{name} changed since; make a path of the model as it is now"
                    )

    def _require_own(self, state: VisibleState) -> None:
        """Raise an InputError unless the state is one of a path with as many units as this one."""
        if not isinstance(state, VisibleState):
            raise InputError(
                f"state: expected a VisibleState of this path, got {type(state).__name__}"
            )
        visible, hidden = self._widths
        chains = state.bias_difference.shape[0]
        if state.v.shape != (chains, visible) or state.hidden_input.shape != (chains, hidden):
            raise InputError(
                f"state: expected {visible} units with {hidden} inputs for each of {chains} "
                f"chains, got shapes {list(state.v.shape)} and {list(state.hidden_input.shape)}"
            )

    def _betas(self, beta: Beta, state: VisibleState) -> tuple[Beta, ...]:
        """The inverse temperatures of the hidden units of B and, if there are any, of A."""
        require_beta(beta, state.v.shape[0])
        return (beta, 1 - beta) if self._num_hidden_a else (beta,)

    def _visible_bias(self, beta: Beta) -> Tensor:
        """(1 - beta) b_A + beta b_B, [D], or [chains, D] if each chain has its own beta."""
        return torch.lerp(self._visible_bias_a, self._visible_bias_b, beta_column(beta, self.dtype))

    def log_f(self, state: VisibleState, beta: Beta) -> Tensor:
        """ln f_beta(v) of each chain, in nats; float64 [chains]."""
        self._require_own(state)
        sums = self._sampler.log_sums(state.hidden_input, self._betas(beta, state))
        biases = sum_where(state.v, self._visible_bias_a) * (1 - beta)
        biases += sum_where(state.v, self._visible_bias_b) * beta
        return biases + sums

    def log_ratio(self, state: VisibleState, beta_from: Beta, beta_to: Beta) -> Tensor:
        """ln f_{beta_to}(v) - ln f_{beta_from}(v), without cancellation; float64 [chains]."""
        self._require_own(state)
        ratio = self._sampler.increment(
            state.hidden_input, self._betas(beta_from, state), self._betas(beta_to, state)
        )
        difference = beta_to - beta_from
        if isinstance(difference, Tensor):
            return ratio.addcmul_(state.bias_difference, difference)
        return ratio.add_(state.bias_difference, alpha=difference)

    def transition(
        self, state: VisibleState, beta: Beta, generator: torch.Generator
    ) -> VisibleState:
        """One block Gibbs step at `beta`: all hidden units given v, then v (eq. 15-17)."""
        self._require_own(state)
        v = self._sampler.draw_visible(
            state.hidden_input,
            self._betas(beta, state),
            self._visible_bias(beta),
            generator,
            state.memory,
            state.first,
        )
        return self._state(v, state)

    @property
    def walks_in_threads(self) -> bool:
        """Whether blocks are faster when they walk side by side in threads."""
        return self.steps_at_once or super().walks_in_threads

    @property
    def steps_at_once(self) -> bool:
        """Whether steps are taken at once, with integer products.

        Steps at once would not call the verbs that a subclass may define.
        """
        return self._sampler.steps_at_once and not self._has_other_verbs()

    def _has_other_verbs(self) -> bool:
        """Whether a subclass defines another transition or another ratio."""
        kinds = type(self).__mro__
        subclasses = kinds[: kinds.index(RBMInterpolation)]
        verbs = {"transition", "reverse_transition", "log_ratio"}
        return any(verbs & vars(kind).keys() for kind in subclasses)

    def forward_steps(
        self,
        state: VisibleState,
        log_weights: Tensor,
        betas: Sequence[Beta],
        generator: torch.Generator,
    ) -> VisibleState:
        """Steps of AIS, by a single call where it can."""
        if not self._anneals_at_once(betas):
            return super().forward_steps(state, log_weights, betas, generator)
        return self._anneal(state, log_weights, betas, generator, moving_first=False)

    def reverse_steps(
        self,
        state: VisibleState,
        log_weights: Tensor,
        betas: Sequence[Beta],
        generator: torch.Generator,
    ) -> VisibleState:
        """Steps of RAISE, by a single call where it can."""
        if not self._anneals_at_once(betas):
            return super().reverse_steps(state, log_weights, betas, generator)
        return self._anneal(state, log_weights, betas, generator, moving_first=True)

    def _anneals_at_once(self, betas: Sequence[Beta]) -> bool:
        """Whether steps can be taken at once, which all chains take at the same betas."""
        return self.steps_at_once and not any(
            isinstance(beta, Tensor) and beta.ndim for beta in betas
        )

    def _anneal(
        self,
        state: VisibleState,
        log_weights: Tensor,
        betas: Sequence[Beta],
        generator: torch.Generator,
        moving_first: bool,
    ) -> VisibleState:
        """Steps of AIS or of RAISE by a single call."""
        self._require_own(state)
        schedule = as_tensor("betas", betas).double()
        require_shape("betas", schedule, [None])
        moves = schedule[:-1] if moving_first else schedule[1:]
        v, inputs, bias_sums = self._sampler.anneal(
            state.hidden_input,
            state.bias_difference,
            log_weights,
            schedule,
            moving_first,
            self._visible_bias(moves),
            self._bias_difference,
            generator,
            state.memory,
            state.first,
        )
        return VisibleState(v, inputs, bias_sums, state.memory, state.first)

    def tempering_steps(self, ladder: Ladder) -> TemperingSteps[VisibleState]:
        """A function that takes steps of parallel tempering, by a single call where it can."""
        if not self.steps_at_once:
            return super().tempering_steps(ladder)
        temper = self._sampler.temper(
            ladder, self._visible_bias(ladder.betas), self._bias_difference
        )

        def take(
            state: VisibleState, generator: torch.Generator, count: int
        ) -> tuple[VisibleState, Tensor, Tensor]:
            self._require_own(state)
            v, inputs, bias_sums, ratios, ends = temper(
                state.hidden_input, generator, state.memory, count
            )
            return VisibleState(v, inputs, bias_sums, state.memory), ratios, ends

        return take

    @torch.no_grad()
    def _begin_at(self, bias: Tensor) -> None:
        """Set all that depends on the visible biases [D] at the start."""
        self._visible_bias_a = bias.detach()
        self._bias_difference = self._target.visible_bias - bias

    def end_correction(self, state: VisibleState, end: int) -> Tensor:
        """ln f of the model at an end, minus ln f with rounded weights; float64 [chains]."""
        self._require_own(state)
        hidden = self._hidden_b if end == 1 else slice(None, self._num_hidden_a)
        return self._sampler.rounding(state.v, state.hidden_input, hidden)


def _version_of(tensor: Tensor) -> int:
    """How often torch has changed a tensor in place, as far as it counts."""
    return 0 if tensor.is_inference() else tensor._version


def bias_at_start(name: str, bias: object | None, target: Tensor) -> Tensor:
    """The biases at which a path starts, checked against those at which it ends; None: zero."""
    if bias is None:
        return torch.zeros_like(target)
    return parameter(name, bias, target.shape, target)


class BaseRatePath(RBMInterpolation):
    """A path from independent pixels to an RBM (Salakhutdinov & Murray 2008, section 3.3).

    AIS along this path estimates ln Z of the RBM.

    Parameters
    ----------
    rbm : RBM
        The target.
    visible_bias : array or Tensor, shape [D], optional
        Biases b_A of the start, from `paperlib.datasets.base_rate_bias(train)`. None: zero, the
        uniform start, which often misses the mode that holds nearly all of Z.

    Raises
    ------
    InputError
        If `visible_bias` has the wrong length or holds NaN or infinite values.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> rbm = RBM([[1.0, -2.0], [0.5, 0.0], [0.0, 3.0]], [0.0, 0.0, -1.0], [0.0, 0.0])
    >>> path = BaseRatePath(rbm, visible_bias=[0.4, 0.1, -0.7])
    >>> state = path.state_at([[1, 0, 1]])
    >>> path.log_f(state, 1.0).isclose(rbm.log_unnormalized([[1, 0, 1]]))
    tensor([True])
    """

    def __init__(self, rbm: RBM, visible_bias: object | None = None) -> None:
        require_instance("rbm", rbm, RBM, "an RBM")
        bias = bias_at_start("visible_bias", visible_bias, rbm.visible_bias)
        super().__init__(rbm.weights[:, :0], bias, rbm.hidden_bias[:0], rbm)

    @torch.no_grad()
    def _begin_at(self, bias: Tensor) -> None:
        super()._begin_at(bias)
        rbm = self._target
        self.uniform_start = bool((bias == 0).all())
        # eq. 18; each of the target's hidden units, which has no weights at the start, adds ln 2
        self.log_z_start = softplus(bias.double()).sum().item() + rbm.num_hidden * math.log(2)

    def restarted(self, visible_bias: object | None) -> Self:
        """A path to the same target from other biases [D].

        It shares with this one what was prepared of the weights, which takes three times the memory
        of a model in float32. The biases are those of all units that the path moves.

        Raises
        ------
        InputError
            If `visible_bias` has the wrong length or holds NaN or infinite values.

        Examples
        --------
        >>> from paperlib.models import RBM
        >>> path = BaseRatePath(RBM([[1.0], [0.5]], [0.0, 0.0], [0.0]))
        >>> path.uniform_start, path.restarted([1.0, 0.0]).uniform_start
        (True, False)
        """
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other._begin_at(bias_at_start("visible_bias", visible_bias, self._target.visible_bias))
        return other

    def _arguments(self) -> tuple[Any, ...]:
        return self._target, self._visible_bias_a

    def log_start(self, v: ArrayLike) -> Tensor:
        """ln p(v) of `v` [N, D] under the base-rate model, float64 [N].

        On the path of a deep model `v` are all units that it moves.
        """
        bias = self._visible_bias_a.double()
        rows = as_tensor("v", v)
        require_shape("v", rows, [None, len(bias)])
        sums = [as_bits("v", block, bias, len(bias)) @ bias for block in blocks(rows)]
        return torch.cat(sums) - softplus(bias).sum()

    def sample_start(self, num_chains: int, generator: torch.Generator) -> VisibleState:
        """Independent draws from the base-rate model."""
        probs = torch.sigmoid(self._visible_bias_a).expand(num_chains, -1)
        return self._state(draw_bits(probs, generator))


class RBMPairPath(RBMInterpolation):
    """A path from one RBM to another over the same visible units.

    AIS along this path estimates ln(Z_B / Z_A), whatever the two numbers of hidden units
    (Salakhutdinov & Murray 2008, section 3.2).

    Parameters
    ----------
    rbm_a, rbm_b : RBM
        Start and target, of the same floating-point type and on the same device.
    sample_a : callable, optional
        `sample_a(num_chains, generator)` returns draws [num_chains, D] from `rbm_a`. By default
        each chain is an independent Gibbs chain from uniformly random pixels; if it has not
        converged, the estimate is biased, and no diagnostic of the weights can detect this.
    burn_in : int
        Gibbs steps of the default sampler.

    Raises
    ------
    InputError
        If the models differ in visible units, type or device, or `burn_in` is not a whole number of
        at least 1.

    Examples
    --------
    >>> from paperlib.estimators import ais
    >>> from paperlib.models import RBM
    >>> one = RBM([[1.0, -2.0], [0.5, 0.0]], [0.0, 0.0], [0.0, 0.0])
    >>> estimate = ais(RBMPairPath(one, one, burn_in=5), [0.0, 0.5, 1.0], num_chains=10)
    >>> estimate.final_states.shape
    torch.Size([10, 2])
    """

    def __init__(
        self,
        rbm_a: RBM,
        rbm_b: RBM,
        sample_a: Callable[[int, torch.Generator], Tensor] | None = None,
        burn_in: int = 1_000,
    ) -> None:
        require_instance("rbm_a", rbm_a, RBM, "an RBM")
        require_instance("rbm_b", rbm_b, RBM, "an RBM")
        for name in ("num_visible", "dtype", "device"):
            expected = getattr(rbm_a, name)
            value = getattr(rbm_b, name)
            if value != expected:
                raise InputError(f"rbm_b: expected {name} {expected} as in rbm_a, got {value}")
        super().__init__(rbm_a.weights, rbm_a.visible_bias, rbm_a.hidden_bias, rbm_b)
        self._remember(rbm_a, rbm_b)
        self._rbm_a = rbm_a
        self._sample_a = sample_a
        self._burn_in = require_count("burn_in", burn_in)

    def _arguments(self) -> tuple[Any, ...]:
        return self._rbm_a, self._target, self._sample_a, self._burn_in

    def sample_start(self, num_chains: int, generator: torch.Generator) -> VisibleState:
        """Draws from `rbm_a`, with `sample_a` or with Gibbs chains."""
        if self._sample_a is not None:
            v = as_tensor("sample_a", self._sample_a(num_chains, generator))
            require_shape("sample_a", v, [num_chains, self._rbm_a.num_visible])
            require_binary("sample_a", v)
            return self._state(v.to(self.device, torch.bool, copy=True))
        half = self._rbm_a.weights.new_full((num_chains, self._rbm_a.num_visible), 0.5)
        v = bernoulli(half, generator)
        for _ in range(self._burn_in):
            v = self._rbm_a._gibbs_step(v, generator)
        return self._state(v.bool())

    def end_correction(self, state: VisibleState, end: int) -> Tensor:
        """The correction for rounding and, at the start, ln of the factor between f_0 and f_1.

        f_0 sums over the hidden units of B, and f_1 over those of A, which contribute a factor of 2
        each: 2^{M_B - M_A} together.
        """
        rounding = super().end_correction(state, end)
        if end == 1:
            return rounding
        return rounding - (self._target.num_hidden - self._rbm_a.num_hidden) * math.log(2)

    def checksum(self) -> str:
        """SHA-256 of everything that draws and weights along the path depend on.

        Raises
        ------
        InputError
            If the start is drawn by a function, about which nothing is known.
        """
        if self._sample_a is not None:
            raise InputError(
                "path: expected a path that can be identified, "
                "got one whose start is drawn by a function (sample_a)"
            )
        return storage.sha256(f"{super().checksum()} {self._burn_in}".encode())
