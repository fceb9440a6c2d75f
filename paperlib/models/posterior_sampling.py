"""Importance sampling of ln p*(v) in models whose hidden units cannot be summed out.

With hidden states h drawn from a proposal Q(h | v), the mean of p*(v, h) / Q(h | v) is an unbiased
estimate of p*(v), but its logarithm is too low on average (RAISE paper, sections 5.2 and 5.3). A
DBM uses mean field as its proposal, and a DBN its recognition distribution. Each is a `Proposal`,
which says layer by layer how the hidden units of fixed test vectors are drawn; `log_mean_weights`
averages the weights. Where these vary too much, `paperlib.annealing.PosteriorPath` leads from Q to
the posterior.

Used in chapter: deep-boltzmann-machines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from paperlib.kernels import bernoulli
from paperlib.numerics import bernoulli_log_prob, log_mean_exp

# Vectors times draws handled at once.
_BLOCK = 5_000


class Proposal(ABC):
    """Q(h | v) for fixed test vectors, layer by layer, and the ln p*(v, h) that it approximates.

    `hidden` is a list of states, one tensor [rows, M_l] for each layer.
    """

    num_layers: int

    @abstractmethod
    def logits(self, layer: int, hidden: Sequence[Tensor]) -> Tensor:
        """Logits of the units of a layer given those of the layers below, [rows, M_l]."""

    @abstractmethod
    def log_joint(self, hidden: Sequence[Tensor]) -> Tensor:
        """ln p*(v, h) in nats, [rows]."""

    def draw(self, generator: torch.Generator) -> list[Tensor]:
        """Hidden states from Q."""
        hidden: list[Tensor] = []
        for layer in range(self.num_layers):
            hidden.append(bernoulli(torch.sigmoid(self.logits(layer, hidden)), generator))
        return hidden

    def log_layers(self, hidden: Sequence[Tensor]) -> list[Tensor]:
        """ln Q of each layer given those below, in nats, [rows] each."""
        return [
            bernoulli_log_prob(states, self.logits(layer, hidden))
            for layer, states in enumerate(hidden)
        ]


def log_mean_weights(
    num_vectors: int,
    num_samples: int,
    proposal: Callable[[slice], Proposal],
    generator: torch.Generator,
    device: torch.device,
) -> Tensor:
    """ln of the mean importance weight of each vector, float64 [num_vectors].

    `proposal` maps a slice of the vectors to their proposal, in which each vector is repeated
    `num_samples` times.
    """
    # Results go into one tensor allocated at the start. A list of small results, each allocated
    # between large tensors that are freed again, would fragment the memory of the large ones.
    estimates = torch.empty(num_vectors, dtype=torch.float64, device=device)
    size = max(1, _BLOCK // num_samples)
    for start in range(0, num_vectors, size):
        part = slice(start, start + size)
        source = proposal(part)
        hidden = source.draw(generator)
        log_weights = source.log_joint(hidden) - sum(source.log_layers(hidden))
        estimates[part] = log_mean_exp(log_weights.double().view(-1, num_samples))
    return estimates
