"""Which chain is at which temperature.

Replicas have one chain at each temperature, and neighbours swap. The pairs (0, 1), (2, 3), ...
try first, the even ones, then the pairs (1, 2), (3, 4), ..., the odd ones. `reference.swap` says
how.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from paperlib.kernels import reference
from paperlib.kernels.arguments import LadderArrays, PlaceOfChains

State = TypeVar("State")
# See `paperlib.annealing.path.AnnealingPath.tempering_steps`.
TemperingSteps: TypeAlias = Callable[[State, torch.Generator, int], tuple[State, Tensor, Tensor]]


class Ladder:
    """The temperatures of replicas, and their chains.

    Parameters
    ----------
    betas : Tensor, shape [N]
        Increasing.
    num_replicas : int
        Chains at each temperature, R.
    device : torch.device
        Where the chains live.

    Attributes
    ----------
    betas : Tensor, shape [N]
        As given, float64.
    chain_at : Tensor, shape [R, N]
        The number of the chain at each temperature of each replica, int64. Replica r has the chains
        r N, ..., r N + N - 1. A chain keeps its number while its temperature changes.

    Examples
    --------
    >>> import torch
    >>> ladder = Ladder(torch.tensor([0.0, 0.5, 1.0]), 2, torch.device("cpu"))
    >>> as_likely = torch.zeros(2, 3)  # states that are as likely at either temperature
    >>> ladder.swap(as_likely, 0, torch.Generator())  # the even pairs
    >>> ladder.chain_at
    tensor([[1, 0, 2],
            [4, 3, 5]])
    """

    def __init__(self, betas: Tensor, num_replicas: int, device: torch.device) -> None:
        count = len(betas)
        self.betas = betas.to(device, torch.float64)
        self.chain_at = torch.arange(num_replicas * count, device=device).view(num_replicas, count)
        numbers = torch.arange(count)
        # For each parity, the betas of the partners. A temperature without one is its own partner.
        self._partner_betas = []
        for parity in (0, 1):
            partner = numbers + 1 - 2 * ((numbers + parity) % 2)
            alone = (partner < 0) | (partner >= count)
            partner = torch.where(alone, numbers, partner)
            self._partner_betas.append(self.betas[partner.to(device)])
        self._numbers = numbers.to(device).expand(num_replicas, -1).flatten()
        self.stand(0, num_replicas)

    @property
    def num_replicas(self) -> int:
        """Number of chains at each temperature, R."""
        return self.chain_at.shape[0]

    @property
    def num_chains(self) -> int:
        """Total number of chains, R N."""
        return self.chain_at.numel()

    def stand(self, first: int, all_replicas: int) -> None:
        """Make this ladder a part of a whole: its replicas are those from `first` on, of so many.

        `place` has the place of its first chain among all chains, and how many these are.
        """
        self.first = first
        self.all_replicas = all_replicas
        count = len(self.betas)
        self.place = PlaceOfChains(first * count, all_replicas * count, 0)

    def numbers(self) -> LadderArrays:
        """The ladder as compiled functions take it; they change `chain_at`."""
        return LadderArrays(self.betas.numpy(), self.chain_at.numpy(), self.place)

    def temperature_of(self) -> Tensor:
        """The number of each chain's temperature, [R N]."""
        return torch.empty_like(self._numbers).index_copy_(
            0, self.chain_at.flatten(), self._numbers
        )

    def ends(self) -> Tensor:
        """The chains at beta = 0 and at beta = 1 of each replica, [R, 2].

        Those of a part of the replicas have their numbers in the whole.
        """
        return self.chain_at[:, :: self.chain_at.shape[1] - 1] + self.place.start

    def pairs(self, parity: int) -> tuple[Tensor, Tensor]:
        """The betas of all chains and of their partners for this parity, [R N] each."""
        temperature_of = self.temperature_of()
        return self.betas[temperature_of], self._partner_betas[parity][temperature_of]

    def swap(self, ratios: Tensor, parity: int, generator: torch.Generator) -> None:
        """Let the pairs of this parity swap.

        `ratios` [R, N] are ln f at the partner's beta minus ln f at its own, for the chain at each
        temperature.
        """
        shape = self.all_replicas, (len(self.betas) - parity) // 2
        uniform = torch.rand(
            shape, dtype=torch.float64, device=self.betas.device, generator=generator
        )
        uniform = uniform[self.first : self.first + self.num_replicas]
        reference.swap(ratios, uniform, parity, self.chain_at)

    def draws(self, generator: torch.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The random numbers of so many steps, from a generator on the CPU.

        They are those of one step after the other. A row for each step: two keys, uint32 [4], the
        lower half of each first, as from `paperlib.kernels.draws.draw_keys`; and the uniform
        numbers of all replicas' even pairs, then those of their odd pairs, float64 [replicas * (N -
        1)].
        """
        raw = torch.empty((count, 2 + self.place.total - self.all_replicas), dtype=torch.int64)
        # torch makes each of its numbers from 64 bits: integers by the remainder, fractions from
        # the lowest 53
        bits = raw.random_(-(2**63), None, generator=generator).numpy()
        keys = bits[:, :2].view(np.uint64) % np.uint64(2**63 - 1)
        return keys.view(np.uint32), (bits[:, 2:] & (2**53 - 1)) * 2.0**-53


def tempering_steps(
    ladder: Ladder,
    transition: Callable[[State, Tensor, torch.Generator], State],
    log_ratio: Callable[[State, Tensor, Tensor], Tensor],
) -> TemperingSteps[State]:
    """A function that takes steps of parallel tempering, each by a transition and two ratios.

    `paperlib.annealing.path.AnnealingPath.tempering_steps` says what it takes and returns.
    """

    def take(state: State, generator: torch.Generator, count: int) -> tuple[State, Tensor, Tensor]:
        halves = []
        ends = []
        for _ in range(count):
            betas, partners = ladder.pairs(0)
            state = transition(state, betas, generator)
            for parity in (0, 1):
                if parity == 1:
                    betas, partners = ladder.pairs(1)
                ratios = log_ratio(state, betas, partners)[ladder.chain_at]
                ladder.swap(ratios, parity, generator)
                halves.append(ratios)
            ends.append(ladder.ends())
        return state, torch.stack(halves).unflatten(0, (-1, 2)), torch.stack(ends)

    return take
