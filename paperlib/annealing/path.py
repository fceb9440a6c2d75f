"""The interface of an annealing path: three methods, and defaults for everything else.

A path knows the densities f_beta between its start (beta = 0) and its target (beta = 1), and a
Markov transition that leaves each invariant. It knows nothing about weights. An estimator walks a
path, forward (AIS) or backward (RAISE), and knows nothing about models.

A new path defines `sample_start`, `log_f` and `transition`; AIS, importance sampling and every
other estimator that walks forward then work with it. Each further member that it defines enables
more:

===========================  =====================================================================
`log_z_start`                estimates of ln Z, not of a ratio: it is ln Z of the start, if known
`reversible`, `state_at`     RAISE, which walks back from a test vector
`log_ratio`                  speed, and sums of small steps without cancellation
`forward_steps`              speed of AIS
`reverse_steps`              speed of RAISE
`tempering_steps`            speed of parallel tempering
`log_z_lower_bound`          a warning when an estimate is provably too low
`checksum`, `to`             runs in shards
===========================  =====================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar, cast

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.kernels import Beta, Ladder, chains_per_block, walks_in_threads
from paperlib.kernels.tempering import TemperingSteps, tempering_steps
from paperlib.threads import OnStep, one_thread
from paperlib.validation import ArrayLike

State = TypeVar("State")
# From a state, the log-weights so far, to which it adds in place, T + 1 betas and a generator to
# the state after T steps.
Steps: TypeAlias = Callable[[State, Tensor, Sequence[Beta], torch.Generator], State]

_NO_WAY_BACK = (
    "path: expected one that can be walked back, got {}, "
    "which neither says that it is reversible nor defines reverse_transition"
)
_NO_STATE_AT = "path: expected one that can start at a test vector, got {} without state_at"


class AnnealingPath(ABC, Generic[State]):
    """A path from a distribution that can be sampled to another, one beta at a time.

    A state holds a batch of chains: a tensor whose first dimension runs over the chains, or a
    dataclass of such tensors. States are values: a path makes new ones and never changes one, and
    other units need another state.

    `beta` is a number, or a tensor [chains] with one number for each chain.

    Attributes
    ----------
    log_z_start : float or None
        ln Z of the start f_0, in nats. None if it is unknown or not of interest: AIS then estimates
        ln(Z_1 / Z_0), and RAISE raises an error.
    uniform_start : bool
        Whether the start knows nothing about the data, which makes AIS warn.
    reversible : bool
        Whether `transition` satisfies detailed balance, so that it is its own reversal. False
        unless a path says so.
    replayable : bool
        Whether a GPU may record a step and replay it. `log_ratio`, `transition` and
        `reverse_transition` then get their betas as zero-dimensional tensors, and must not read the
        values of these or of any other tensor.
    reverse_passes : int
        How many times a reverse chain walks the whole path: once, or twice if it has to heat up
        first.
    device : torch.device
        Where states live.
    dtype : torch.dtype
        Type of `units`.
    num_visible : int
        Number of units of a test vector; 0 for a path without test vectors.

    Examples
    --------
    A path from a fair coin to one that falls on heads three times as often as on tails:

    >>> import torch
    >>> class Coin(AnnealingPath[torch.Tensor]):
    ...     log_z_start = torch.tensor(2.0).log().item()
    ...     def sample_start(self, num_chains, generator):
    ...         return torch.rand(num_chains, generator=generator) < 0.5
    ...     def log_f(self, state, beta):
    ...         return beta * torch.tensor(3.0).double().log() * state
    ...     def transition(self, state, beta, generator):
    ...         heads = 3**beta / (1 + 3**beta)
    ...         return torch.rand(len(state), generator=generator) < heads
    >>> from paperlib.estimators import ais
    >>> estimate = ais(Coin(), [0, 0.5, 1], 20_000, torch.Generator().manual_seed(0))
    >>> abs(estimate.log_z - torch.tensor(4.0).log().item()) < 0.02
    True
    """

    log_z_start: float | None = None
    uniform_start: bool = False
    reversible: ClassVar[bool] = False
    replayable: ClassVar[bool] = False
    reverse_passes: ClassVar[int] = 1

    @abstractmethod
    def sample_start(self, num_chains: int, generator: torch.Generator) -> State:
        """Independent draws from f_0."""

    @abstractmethod
    def log_f(self, state: State, beta: Beta) -> Tensor:
        """ln f_beta(x) of each chain, in nats; float64 [chains]."""

    @abstractmethod
    def transition(self, state: State, beta: Beta, generator: torch.Generator) -> State:
        """One step of a Markov chain that leaves p_beta invariant."""

    @property
    def device(self) -> torch.device:
        """Where states live."""
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        """Floating-point type of `units`."""
        return torch.float64

    @property
    def num_visible(self) -> int:
        """Number of units of a test vector; 0 for a path without test vectors."""
        return 0

    @property
    def chains_per_block(self) -> int:
        """How many chains walk together; draws depend on it."""
        return chains_per_block(self.num_visible, self.device)

    @property
    def walks_in_threads(self) -> bool:
        """Whether blocks are faster when they walk side by side in threads."""
        return walks_in_threads(self.num_visible, self.device)

    @property
    def steps_at_once(self) -> bool:
        """Whether `forward_steps` and its siblings take their steps outside the interpreter.

        Parts of a batch then walk side by side, if each moves exactly as it would within the whole.
        """
        return False

    def log_ratio(self, state: State, beta_from: Beta, beta_to: Beta) -> Tensor:
        """ln f_{beta_to}(x) - ln f_{beta_from}(x) of each chain, in nats; float64 [chains]."""
        return self.log_f(state, beta_to) - self.log_f(state, beta_from)

    def reverse_transition(self, state: State, beta: Beta, generator: torch.Generator) -> State:
        """One step of the reversal of `transition`: T~(x' | x) = T(x | x') p(x') / p(x).

        Raises
        ------
        InputError
            If the path neither says that it is reversible nor defines how to step back.
        """
        if not self.reversible:
            raise InputError(_NO_WAY_BACK.format(type(self).__name__))
        return self.transition(state, beta, generator)

    def forward_steps(
        self, state: State, log_weights: Tensor, betas: Sequence[Beta], generator: torch.Generator
    ) -> State:
        """Steps of AIS: the log-ratio from each of `betas` to the next, then a transition there.

        Adds to `log_weights` [chains] in place, and returns the last state. A path that takes all
        these steps at once must come to the same bits.
        """
        for beta_from, beta_to in pairwise(betas):
            log_weights += self.log_ratio(state, beta_from, beta_to)
            state = self.transition(state, beta_to, generator)
        return state

    def reverse_steps(
        self, state: State, log_weights: Tensor, betas: Sequence[Beta], generator: torch.Generator
    ) -> State:
        """Steps of RAISE: a transition back at each of `betas`, then the log-ratio to the next.

        Otherwise as `forward_steps`; the betas decrease.
        """
        take = moving_first(self, self.reverse_transition)
        return take(state, log_weights, betas, generator)

    def tempering_steps(self, ladder: Ladder) -> TemperingSteps[State]:
        """A function that takes steps of parallel tempering.

        A step is a transition of each chain at its temperature, then swaps of the even and of the
        odd pairs, which change the ladder. The function is called with a state, a generator and a
        number of steps T. It returns

        - the state after these steps;
        - the log-ratios before the even and before the odd swaps of each step, float64 [T, 2, R,
          N]: for the chain at each temperature, ln f at its partner's beta minus ln f at its own,
          and zero without a partner;
        - the ladder's `ends` after each step, [T, R, 2].

        A path that does all this at once must come to the same bits.
        """
        if not isinstance(ladder, Ladder):
            raise InputError(f"ladder: expected a Ladder, got {type(ladder).__name__}")
        return tempering_steps(ladder, self.transition, self.log_ratio)

    def end_correction(self, state: State, end: int) -> Tensor | float:
        """ln of the true f_beta at an end, 0 or 1, minus ln of the one that is walked; [chains].

        Fast products round a model's weights. AIS adds this correction at both ends and so stays
        unbiased for the model itself. It is zero where nothing is rounded.
        """
        return 0.0

    def select(self, state: State, index: Tensor) -> State:
        """The state of the chains with these indices, in this order, some perhaps repeatedly."""
        tensors = state_tensors(state)
        return with_tensors(state, {name: tensor[index] for name, tensor in tensors.items()})

    def concatenate(self, states: Sequence[State]) -> State:
        """The state of all chains of several states, one after the other."""
        tensors = [state_tensors(state) for state in states]
        joined = {name: torch.cat([each[name] for each in tensors]) for name in tensors[0]}
        # What `select` leaves out, such as remembered products, belongs to other chains here, too.
        alone = self.select(states[0], torch.zeros(1, dtype=torch.long, device=self.device))
        return with_tensors(alone, joined)

    def divide(self, state: State, parts: int) -> list[tuple[Tensor, State]]:
        """Divide the state into at most `parts` parts, which can walk side by side.

        With copies of one generator, they walk as they would have walked together. Returns the
        indices of the chains and the state of each part. The default is an empty list, which means
        that the chains of this path draw one after the other.
        """
        return []

    def join(self, parts: Sequence[tuple[Tensor, State]]) -> State:
        """The one state of the parts that `divide` made, which may have walked since."""
        raise InputError(
            "path: expected one whose states can be divided, "
            f"got {type(self).__name__} without join"
        )

    def units(self, state: State) -> Tensor:
        """The units that the path moves, [chains, n], in the type `dtype`.

        An estimate holds those of the final states.
        """
        tensors = state_tensors(state).values()
        return torch.cat([each.to(self.dtype).reshape(len(each), -1) for each in tensors], 1)

    def log_z_lower_bound(self, units: Tensor) -> float | None:
        """A proven lower bound on ln Z of the target, in nats, or None if there is none.

        `units` [N, n] lie near its modes.
        """
        return None

    def state_at(self, v: ArrayLike) -> State:
        """The state of chains whose visible units are `v` [chains, D], from which RAISE starts.

        Raises
        ------
        InputError
            If the path does not define this method.
        """
        raise InputError(_NO_STATE_AT.format(type(self).__name__))

    def begin_reverse(
        self,
        v: Tensor,
        schedule: Sequence[float],
        generator: torch.Generator,
        on_step: OnStep,
    ) -> tuple[State, Tensor]:
        """A state at beta = 1 for each row of `v` [chains, D], and the log-weights so far.

        The log-weights are float64 [chains], in nats. The product of such a weight and the ratios
        f_k(x_k) / f_{k+1}(x_k) of the reverse chain that follows has the expectation p_ann(v). By
        default all units are observed, and the weight is f_1(v) / Z_0. A path with unobserved units
        draws them here from a proposal.
        """
        assert self.log_z_start is not None  # see `require_way_back`
        with one_thread():
            state = self.state_at(v)
            return state, self.log_f(state, 1.0) - self.log_z_start

    def require_way_back(self) -> None:
        """Raise an InputError that says what RAISE lacks on this path, if anything."""
        name = type(self).__name__
        if not (self.reversible or self._defines("reverse_transition")):
            raise InputError(_NO_WAY_BACK.format(name))
        if not (self._defines("state_at") or self._defines("begin_reverse")):
            raise InputError(_NO_STATE_AT.format(name))
        if self.log_z_start is None:
            raise InputError(
                "path: expected one whose start has a known partition function, "
                f"such as BaseRatePath, got {name}"
            )

    def _defines(self, member: str) -> bool:
        """Whether a subclass has replaced this member of `AnnealingPath`."""
        return getattr(type(self), member) is not getattr(AnnealingPath, member)

    def checksum(self) -> str:
        """SHA-256 of everything that draws and weights along the path depend on.

        It is part of the names of a run's shards.

        Raises
        ------
        InputError
            If the path cannot be identified.
        """
        raise InputError(
            "path: expected one that can be identified by a checksum, "
            f"got {type(self).__name__} without one"
        )

    def to(self, device: torch.device | str) -> Self:
        """The same path on another device.

        Raises
        ------
        InputError
            If the path supports no device other than its own.
        """
        if torch.device(device) != self.device:
            raise InputError(
                f"device: expected {self.device}, the only one of {type(self).__name__}, "
                f"got {device}"
            )
        return self


def moving_first(
    path: AnnealingPath[State], transition: Callable[[State, Beta, torch.Generator], State]
) -> Steps[State]:
    """Steps in which a transition at a beta comes before the log-ratio to the next beta."""

    def take(
        state: State, log_weights: Tensor, betas: Sequence[Beta], generator: torch.Generator
    ) -> State:
        for beta_from, beta_to in pairwise(betas):
            state = transition(state, beta_from, generator)
            log_weights += path.log_ratio(state, beta_from, beta_to)
        return state

    return take


def require_beta(beta: object, num_chains: int) -> None:
    """Raise an InputError unless `beta` is a number, or a tensor with one number for each chain."""
    if isinstance(beta, Tensor):
        if beta.ndim and beta.shape != (num_chains,):
            raise InputError(
                f"beta: expected a number, or one for each of {num_chains} chains, "
                f"got shape {list(beta.shape)}"
            )
    elif not isinstance(beta, int | float):
        raise InputError(f"beta: expected a number or a tensor, got {type(beta).__name__}")


def beta_column(beta: Beta, dtype: torch.dtype) -> Beta:
    """`beta` in this type, [chains, 1] if it has one number for each chain; a float as it is."""
    if not isinstance(beta, Tensor):
        return beta
    return beta.to(dtype)[:, None] if beta.ndim else beta.to(dtype)


def state_tensors(state: object) -> dict[str, Tensor]:
    """The tensors of a state, which is a tensor itself or a dataclass, by the names of its fields.

    Examples
    --------
    >>> state_tensors(torch.zeros(2))
    {'itself': tensor([0., 0.])}
    """
    if isinstance(state, Tensor):
        return {"itself": state}
    if is_dataclass(state) and not isinstance(state, type):
        values = {field.name: getattr(state, field.name) for field in fields(state)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}
    raise InputError(
        f"state: expected a tensor or a dataclass of tensors, got {type(state).__name__}; "
        "a path whose states are others has to define select and concatenate, "
        "and no checkpoint can be written of them"
    )


def with_tensors(state: State, tensors: Mapping[str, Tensor]) -> State:
    """A state like this one but with these tensors, named as by `state_tensors`.

    Examples
    --------
    >>> with_tensors(torch.zeros(2), {"itself": torch.ones(3)})
    tensor([1., 1., 1.])
    """
    if isinstance(state, Tensor):
        return cast(State, tensors["itself"])
    return cast(State, replace(cast(Any, state), **tensors))
