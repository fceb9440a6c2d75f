"""The protocol between annealing paths and estimators.

A path knows the densities f_beta between its start (beta = 0) and its target (beta = 1), and a Markov transition that
leaves each invariant. It knows nothing of weights. An estimator walks a path, forward (AIS) or backward (RAISE), and
knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from paperlib.models import RBM
from paperlib.numerics import Beta

State = TypeVar("State")


class AnnealingPath(Protocol[State]):
    """What an estimator needs. A state is a dataclass that holds a batch of chains, and whatever the path wants to compute only once.

    On a GPU `log_ratio`, `transition` and `reverse_transition` get their betas as tensors without dimensions, and must not look into
    them, nor into any other tensor: they are recorded once and replayed (`paperlib.annealing.walk`).

    Attributes
    ----------
    log_z_start : float
        ln Z of the start f_0, in nats; 0 for a path whose estimate is a ratio of two partition functions.
    target : RBM or None
        The model whose ln Z the path's estimate is, so that an estimator may check the estimate against bounds on it;
        None for a ratio.
    uniform_start : bool
        Whether the start knows nothing of the data.
    device : torch.device
        Where states live.
    """

    log_z_start: float
    target: RBM | None
    uniform_start: bool
    device: torch.device

    def sample_start(self, num_chains: int, generator: torch.Generator) -> State:
        """Independent draws from f_0."""
        ...

    def log_ratio(self, state: State, beta_from: Beta, beta_to: Beta) -> Tensor:
        """ln f_{beta_to}(x) - ln f_{beta_from}(x) for each chain, float64 [chains]."""
        ...

    def log_rounding(self, state: State, beta: float) -> Tensor:
        """ln of f_beta itself over what fast products have rounded it to, for beta 0 or 1; float64 [chains], mostly zero."""
        ...

    def transition(self, state: State, beta: Beta, generator: torch.Generator) -> State:
        """One step of a Markov chain that leaves p_beta invariant."""
        ...

    def reverse_transition(self, state: State, beta: Beta, generator: torch.Generator) -> State:
        """One step of the reversal of `transition`: T~(x' | x) = T(x | x') p(x') / p(x)."""
        ...

    def visible(self, state: State) -> Tensor:
        """The visible units of a state, [chains, D]."""
        ...


class ReversiblePath(AnnealingPath[State], Protocol[State]):
    """What RAISE needs beyond that: to get from a test vector to a state at the end of the path.

    Attributes
    ----------
    num_visible : int
        Number of units of a test vector.
    reverse_passes : int
        How often a reverse chain walks the whole path: once, or twice if it has to heat up first.
    """

    num_visible: int
    reverse_passes: int

    def begin_reverse(
        self,
        v: Tensor,
        schedule: Sequence[float],
        generator: torch.Generator,
        on_step: Callable[[], object],
    ) -> tuple[State, Tensor]:
        """A state at beta = 1 for each row of `v` [chains, D], and its log-weight, float64 [chains], in nats.

        Unobserved units are drawn from a proposal. The weight is such that, multiplied by the ratios f_k(x_k) / f_{k+1}(x_k) of
        the reverse chain that follows, its expectation is p_ann(v).
        """
        ...
