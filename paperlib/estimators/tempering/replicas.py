"""Parallel tempering: chains at many temperatures in one batch, which swap their temperatures.

The temperatures are the betas 0 = beta_0 < ... < beta_{N-1} = 1 of a path, and a replica has one
chain at every temperature. All replicas walk in one batch, with one beta for each chain. After a
transition, neighbours x at temperature k and y at temperature k + 1 of a replica swap temperatures
with the probability

    min(1, f_k(y) f_{k+1}(x) / (f_k(x) f_{k+1}(y))),

which leaves the product of all p_k invariant (Swendsen & Wang 1986; Geyer 1991). Chains swap their
temperatures, not their states, so a chain keeps its state and all the products that it remembers.

The pairs (0, 1), (2, 3), ... try to swap first, then the pairs (1, 2), (3, 4), .... This order is
not reversible: a chain whose swap is accepted continues in the same direction until one is
rejected. The number of swaps that it needs from one end to the other therefore grows as the number
of temperatures, and not as its square (Okabe et al. 2001; Syed, Bouchard-Cote, Deligiannidis &
Doucet 2022, section 3). One transition serves both halves: swaps cost a tenth of it, and chains
move up and down twice as fast as with one transition for each half.

A chain evaluates ln f of its state at the beta of each partner. These numbers serve both the swap
and the ratio of the two normalisers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
import torch
from torch import Tensor

from paperlib.annealing.path import AnnealingPath, State
from paperlib.kernels import Ladder


class Replicas(Ladder, Generic[State]):
    """Chains at temperatures of a path, where neighbours swap temperatures.

    `betas` [N] increase. `state` holds R N chains, those of the first replica by temperature, then
    those of the next one.
    """

    def __init__(
        self, path: AnnealingPath[State], betas: Tensor, num_replicas: int, state: State
    ) -> None:
        super().__init__(betas, num_replicas, path.device)
        self._path = path
        self.state = state
        self._take_steps = path.tempering_steps(self)

    def divide(self, parts: int) -> list[Replicas[State]]:
        """At most this many parts of the replicas, for threads; `join` puts them together again.

        With copies of one generator, parts walk as they would have walked together.
        """
        divided = []
        count = len(self.betas)
        for numbers in torch.arange(self.num_replicas).tensor_split(min(parts, self.num_replicas)):
            first = int(numbers[0])
            size = len(numbers)
            chains = torch.arange(first * count, (first + size) * count)
            state = self._path.select(self.state, chains.to(self.betas.device))
            part = Replicas(self._path, self.betas, size, state)
            part.stand(first, self.num_replicas)
            part.chain_at = self.chain_at[first : first + size] - first * count
            divided.append(part)
        return divided

    def join(self, parts: Sequence[Replicas[State]]) -> None:
        """Take over the states and the temperatures that the parts have come to."""
        self.state = self._path.concatenate([part.state for part in parts])
        self.chain_at = torch.cat([part.chain_at + part.place.start for part in parts])

    def heat(self, factor: float, generator: torch.Generator) -> None:
        """Make a transition of all chains at `factor` times their betas, without swaps.

        So chains come from the start to their temperatures.
        """
        betas = self.betas[self.temperature_of()] * factor
        self.state = self._path.transition(self.state, betas, generator)

    def steps(self, generator: torch.Generator, count: int) -> tuple[Tensor, Tensor]:
        """Take this many steps, and return the log-ratios and the ends of each.

        `AnnealingPath.tempering_steps` says what these are.
        """
        self.state, ratios, ends = self._take_steps(self.state, generator, count)
        return ratios, ends

    def step(self, generator: torch.Generator) -> Tensor:
        """Take a step and return its log-ratios, float64 [2, R, N]."""
        return self.steps(generator, 1)[0][0]


@dataclass
class Record:
    """What replicas have recorded in a number of steps."""

    betas: Tensor  # float64 [N], on the CPU like all that follows
    log_ratios: Tensor  # float64 [T, 2, R, N], what each step returned
    ends: Tensor  # int32 [T, R, 2], the chains at beta = 0 and at beta = 1 after each step

    def links(self, first: int = 0) -> tuple[Tensor, Tensor]:
        """ln f_{k+1}(x) / f_k(x) for each link k, at the chains at its lower and its upper beta.

        Both are [T - first, R, N - 1].
        """
        ratios = self.log_ratios[first:]
        num_steps, _, num_replicas, count = ratios.shape
        lower = ratios.new_empty(num_steps, num_replicas, count - 1)
        upper = torch.empty_like(lower)
        for parity in (0, 1):
            lower[..., parity::2] = ratios[:, parity, :, parity:-1:2]
            upper[..., parity::2] = ratios[:, parity, :, parity + 1 :: 2]
        return lower, upper.neg_()

    def rejection_rates(self) -> Tensor:
        """The probability that a swap is rejected, averaged over all attempts; float64 [N - 1]."""
        lower, upper = self.links()
        return 1 - (lower - upper).clamp(max=0).exp().mean((0, 1))

    def round_trips(self) -> int:
        """How many times a chain went from beta = 0 to beta = 1 and back."""
        ends = self.ends.numpy()
        # Chains are numbered through all replicas. At a step, a chain is at one end at most.
        chains = ends + np.arange(ends.shape[1])[:, None] * (ends.max() + 1)
        # Visits of each chain in order of time; so few numbers are sorted faster in their smallest
        # type.
        order = chains.astype(np.min_scalar_type(chains.max())).argsort(axis=None, kind="stable")
        visitor = chains.reshape(-1)[order]
        at_target = order % 2 == 1
        same = visitor[1:] == visitor[:-1]
        back = np.bincount(visitor[1:][same & at_target[:-1] & ~at_target[1:]])
        # A chain that came to the target first had not been at the start.
        first = np.append(True, ~same) & at_target
        back -= np.bincount(visitor[first], minlength=len(back))[: len(back)]
        return int(back[back > 0].sum())

    def share_from_start(self, first: int = 0) -> float:
        """The share of steps at which the chain at beta = 1 had been at beta = 0 before."""
        ends = self.ends.numpy()
        steps = np.arange(len(ends))
        arrived = []
        for start, target in np.moveaxis(ends, (1, 2), (0, 1)):
            earliest = np.full(ends.max() + 1, len(ends))
            np.minimum.at(earliest, start, steps)
            arrived.append(earliest[target[first:]] <= steps[first:])
        return float(np.mean(arrived))
