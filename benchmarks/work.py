"""What is computed: the same models, data and numbers of steps for everybody.

Parameters are random, of a scale such that annealing in a hundred steps comes close to ln Z, so
that the answers can be compared. The biases make units as decided as those of trained models: at a
step one visible unit in seven changes its state and one hidden unit in three, where CD25(500) of
MNIST has one in twelve and one in three. The library adds up only what has changed. Everything is
float32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from paperlib.models import RBM
from paperlib.numerics import seeded_generator

LEARNING_RATE = 0.05
# Minibatches that the training data consist of; longer runs pass through them again.
_MINIBATCHES = 20
# Gibbs steps of the negative phase.
CD_STEPS = {"CD-1": 1, "CD-25": 25, "PCD": 1}


class Answer(NamedTuple):
    """A result, by which one sees that all computed the same."""

    value: float | None
    std_error: float | None  # None: unknown; 0: the value is exact up to rounding


@dataclass(frozen=True)
class Work:
    """One item of work.

    Attributes
    ----------
    task : str
        `AIS`, `RAISE`, `tempering`, `bound`, `exact ln Z`, `CD-1`, `CD-25` or `PCD`.
    visible, hidden : int
        Units.
    chains : int
        Chains, or images of a minibatch; 0 where there are none.
    steps : int
        Steps K of the annealing, transitions of single chains in parallel tempering, or updates of
        the parameters, a multiple of 20 if more than that; 1 where there is one result.
    """

    task: str
    visible: int
    hidden: int
    chains: int = 0
    steps: int = 1

    @property
    def vectors(self) -> int:
        """How many test vectors RAISE has; the chains are shared out among them."""
        return min(10, self.chains)

    def small(self) -> Work:
        """A version that takes no time, to compile what there is to compile."""
        if self.task in ("bound", "exact ln Z"):
            return replace(self, hidden=min(self.hidden, 8))
        if self.task == "tempering":
            return replace(self, steps=min(self.steps, 10_000))
        return replace(self, steps=min(self.steps, 4))

    def model(self, device: str = "cpu") -> RBM:
        """An RBM whose pixels are mostly off, as in pictures of digits.

        Its hidden units are as decided as those of a trained one.
        """
        generator = seeded_generator(2008)
        weights = torch.randn(self.visible, self.hidden, generator=generator)
        scale = 1.5 / (self.visible + self.hidden) ** 0.5
        visible_bias = 2 * torch.randn(self.visible, generator=generator) - 3
        hidden_bias = 3 * torch.randn(self.hidden, generator=generator)
        return RBM(scale * weights, visible_bias, hidden_bias).to(device)

    def images(self, device: str = "cpu") -> Tensor:
        """Independent pixels with the probabilities of the model's visible biases, [N, visible]."""
        count = self.vectors if self.task == "RAISE" else self.chains
        if self.task in CD_STEPS:
            count *= min(_MINIBATCHES, self.steps)
        probabilities = torch.sigmoid(self.model().visible_bias)
        uniform = torch.rand(count, self.visible, generator=seeded_generator(2015))
        return (uniform < probabilities).float().to(device)

    @property
    def epochs(self) -> int:
        """Passes through the images that make up the updates."""
        return max(1, self.steps // _MINIBATCHES)

    def initial(self, device: str = "cpu") -> RBM:
        """What training starts from: small random weights, no biases."""
        generator = seeded_generator(2002)
        weights = 0.01 * torch.randn(self.visible, self.hidden, generator=generator)
        return RBM(weights, torch.zeros(self.visible), torch.zeros(self.hidden)).to(device)


def main_work() -> list[Work]:
    """The items of the table.

    Steps are so many that what a run does only once, such as rounding the weights, is a few
    hundredths of its time.
    """
    works = []
    for task in ("AIS", "RAISE"):
        for visible, hidden, few, many in (
            (784, 20, 2_000, 100),
            (784, 500, 1_000, 100),
            (500, 2000, 300, 20),
        ):
            works += [
                Work(task, visible, hidden, 100, few),
                Work(task, visible, hidden, 5_000, many),
            ]
    works += [
        Work("bound", visible, hidden, 100)
        for visible, hidden in ((784, 20), (784, 500), (500, 2000))
    ]
    works += [Work("exact ln Z", 784, 18)]
    return works + [
        Work(task, 784, 500, 100, steps)
        for task, steps in (("CD-1", 200), ("CD-25", 20), ("PCD", 200))
    ]


def step_work() -> list[Work]:
    """The items by which the steps of AIS and of parallel tempering are compared."""
    works = []
    for visible, hidden, steps in (
        (64, 20, 10_000),
        (100, 200, 4_000),
        (784, 100, 2_000),
        (784, 500, 1_500),
    ):
        works += [
            Work("AIS", visible, hidden, 100, steps),
            Work("AIS", visible, hidden, 2_000, steps // 10),
            Work("tempering", visible, hidden, steps=1_000_000),
        ]
    return works


def quick_work() -> list[Work]:
    """Seconds in all: every task, for tests."""
    works = [
        Work("AIS", 64, 10, 200, 100),
        Work("RAISE", 64, 10, 200, 100),
        Work("tempering", 64, 10, steps=20_000),
        Work("bound", 64, 10, 100),
    ]
    return [*works, Work("exact ln Z", 64, 10), *(Work(task, 64, 10, 100, 4) for task in CD_STEPS)]
