"""The protocol between annealing paths and estimators.

A path knows the densities f_beta between its start (beta = 0) and its target (beta = 1), and a Markov transition that
leaves each invariant. It knows nothing of weights. An estimator walks a path, forward (AIS) or backward (RAISE), and
knows nothing of models.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import torch
from torch import Tensor

from paperlib.models import RBM

State = TypeVar("State")


class AnnealingPath(Protocol[State]):
    """What an estimator needs. A state holds a batch of chains, and whatever the path wants to compute only once.

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

    def log_ratio(self, state: State, beta_from: float, beta_to: float) -> Tensor:
        """ln f_{beta_to}(x) - ln f_{beta_from}(x) for each chain, float64 [chains]."""
        ...

    def transition(self, state: State, beta: float, generator: torch.Generator) -> State:
        """One step of a Markov chain that leaves p_beta invariant."""
        ...

    def reverse_transition(self, state: State, beta: float, generator: torch.Generator) -> State:
        """One step of the reversal of `transition`: T~(x' | x) = T(x | x') p(x') / p(x)."""
        ...

    def visible(self, state: State) -> Tensor:
        """The visible units of a state, [chains, D]."""
        ...


class ReversiblePath(AnnealingPath[State], Protocol[State]):
    """What RAISE needs beyond that: to start at a given visible vector, and to know the target's unnormalised probability.

    Attributes
    ----------
    num_visible : int
        Number of visible units, D.
    """

    num_visible: int

    def state_at(self, v: Tensor) -> State:
        """The state of chains whose visible units are `v` [chains, D]; any hidden units are drawn from the posterior."""
        ...

    def log_target(self, state: State) -> Tensor:
        """ln f_1(x) of each chain in nats, on the scale on which `log_z_start` is ln Z_0; float64 [chains]."""
        ...
