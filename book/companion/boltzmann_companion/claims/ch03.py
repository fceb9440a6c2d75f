"""What chapter 03 claims of repeated updates, of the bias, of training without noise, of chains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from boltzmann_companion.claims.checks import Claims, largest_gap


def averages(updates: Iterable[tuple[Tensor, ...]], expected: Tensor) -> Claims:
    """Of repeated updates and their expectation [P]."""
    draws = torch.stack([torch.cat([part.flatten() for part in update]) for update in updates])
    standard_error = draws.std(0) / math.sqrt(len(draws))
    z_scores = (draws.mean(0) - expected) / standard_error
    claim = f"CD-3: all {len(z_scores)} averages within 4.5 standard errors"
    yield claim, z_scores.abs().max() < 4.5


def theorem(biases: Sequence[tuple[Tensor, Tensor]]) -> Claims:
    """Of biases [P] by the exact chain and by the theorem."""
    error = max(largest_gap(exact, predicted) for exact, predicted in biases)
    yield "chain and theorem agree to 1e-10 at every stage, from T = 1 to T = 100", error < 1e-10


def falling(courses: Mapping[str, Mapping[str, Tensor]]) -> Claims:
    """Of curves along training with CD-1 without noise."""
    course = courses["CD-1"]
    peak = int(course["log_likelihood"].argmax())
    improves = bool((course["error"][peak:].diff() < 0).all())
    yield "CD-1's reconstruction error improves at every single step after the peak", improves


def whereabouts(same: float, another: float) -> Claims:
    """Of chains one step from training images."""
    yield (
        "after one step: five times as likely at the same image as at all others together",
        same > 5 * another,
    )
