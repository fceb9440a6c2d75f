"""A new path: from fair coins to spins on a ring that act on their neighbours.

ln f_beta(x) = beta sum_i J_i s_i s_{i+1},     s_i = 2 x_i - 1,     s_n = s_0
"""

import math

import torch
from torch import Tensor

from paperlib.annealing.path import AnnealingPath
from paperlib.errors import InputError
from paperlib.validation import ArrayLike, as_binary


class IsingRingPath(AnnealingPath[Tensor]):
    """From independent fair bits to an Ising ring.

    A state is a bool tensor [chains, n].

    Parameters
    ----------
    couplings : array or Tensor, shape [n]
        J_i joins spins i and i + 1; n is even and at least 4.

    Raises
    ------
    InputError
        If the number of couplings is odd or less than 4.

    Examples
    --------
    >>> path = IsingRingPath([0.9, -0.4, 0.7, 0.3])
    >>> path.log_f(path.state_at([[1, 1, 1, 1]]), 0.5)
    tensor([0.7500], dtype=torch.float64)
    """

    # Even, odd, even sites are the same backwards. So the transition satisfies
    # detailed balance, and RAISE may use it.
    reversible = True

    def __init__(self, couplings: object) -> None:
        self.couplings = torch.as_tensor(couplings, dtype=torch.float64)
        if self.num_visible < 4 or self.num_visible % 2:
            raise InputError(
                "couplings: expected an even number of at least 4, "
                f"got {self.num_visible}"
            )
        self.log_z_start = self.num_visible * math.log(2)

    @property
    def num_visible(self) -> int:
        """Number of spins, n."""
        return len(self.couplings)

    # ---- the three verbs

    def sample_start(
        self, num_chains: int, generator: torch.Generator
    ) -> Tensor:
        """Fair bits."""
        return (
            torch.rand(num_chains, self.num_visible, generator=generator) < 0.5
        )

    def log_f(self, state: Tensor, beta: float | Tensor) -> Tensor:
        """The exponent at `beta`, in nats; float64 [chains]."""
        spins = 2 * state.double() - 1
        return beta * (self.couplings * spins * spins.roll(-1, 1)).sum(1)

    def transition(
        self, state: Tensor, beta: float | Tensor, generator: torch.Generator
    ) -> Tensor:
        """Redraw the even spins, the odd ones, and the even ones again."""
        for first in (0, 1, 0):
            state = self._redraw(state, first, beta, generator)
        return state

    def _redraw(
        self,
        state: Tensor,
        first: int,
        beta: float | Tensor,
        generator: torch.Generator,
    ) -> Tensor:
        spins = 2 * state.double() - 1
        before = (self.couplings * spins).roll(1, 1)
        field = before + self.couplings * spins.roll(-1, 1)
        # A number becomes [1], one number for each chain [chains, 1].
        up = torch.sigmoid(
            2 * torch.as_tensor(beta).unsqueeze(-1) * field[:, first::2]
        )
        # A state is a value: other code may still hold the old one.
        drawn = state.clone()
        drawn[:, first::2] = (
            torch.rand(up.shape, dtype=up.dtype, generator=generator) < up
        )
        return drawn

    # ---- what RAISE needs beyond them

    def state_at(self, v: ArrayLike) -> Tensor:
        """Chains at the spins `v` [chains, n], of any type."""
        return as_binary("v", v, self.num_visible).to(torch.bool)
