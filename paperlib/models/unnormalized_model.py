"""What annealing, enumeration and `boltzmann_likelihood.evaluation` ask of a model.

A new kind of model is a subclass of `UnnormalizedModel`. It has to say how many units its layers
have, which model with two layers has the same ln Z, and what ln p*(v) is. That is enough where the
hidden units can be summed out, as in an RBM. Where they cannot, ln p*(v) is an estimate, and the
model also says from which distribution hidden units are proposed (`proposal`), which states of
`annealed` go with a visible vector (`annealed_units`, `completed`), and which lower bound on
ln p*(v) it has (`variational_bound`). `paperlib.models.dbm` is the shorter example of that kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Self

import torch
from torch import Tensor

from paperlib.memory import small_parts
from paperlib.models.posterior_sampling import Proposal
from paperlib.models.tensor_model import TensorModel
from paperlib.numerics import resolve_generator
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, blocks

if TYPE_CHECKING:
    from paperlib.models.rbm import RBM


class UnnormalizedModel(TensorModel, ABC):
    """A model of binary vectors v that knows p*(v) = Z p(v), or estimates it.

    A subclass defines the four abstract members. The other answers are those of an RBM with binary
    units, and a subclass replaces what is different.

    Attributes
    ----------
    bound_is_proven : bool
        Whether `variational_bound` lies below ln p*(v) for certain, not only on average over draws.
    draws_once_for_raise : bool
        Whether RAISE starts each chain from a single draw of hidden units, so that its estimate is
        too low for the same reason as importance sampling with few draws.
    """

    bound_is_proven: ClassVar[bool] = True
    draws_once_for_raise: ClassVar[bool] = False

    def __repr__(self) -> str:
        sizes = "-".join(map(str, [self.num_visible, *self.hidden_layers]))
        return f"{type(self).__name__}({sizes}, {self.dtype}, {self.device})"

    @property
    @abstractmethod
    def num_visible(self) -> int:
        """Number of visible units, D."""

    @property
    @abstractmethod
    def hidden_layers(self) -> tuple[int, ...]:
        """How many units each hidden layer has, from the bottom up."""

    @property
    @abstractmethod
    def annealed(self) -> RBM:
        """The model with two layers and the same ln Z, through which chains walk."""

    @abstractmethod
    def log_unnormalized(self, v: ArrayLike) -> Tensor:
        """ln p*(v) in nats of a few rows [N, D]; [N]."""

    @property
    def description(self) -> str:
        """The kind of the model and its sizes, in words."""
        layers = " + ".join(f"{units:,}" for units in self.hidden_layers)
        return f"{type(self).__name__} with {self.num_visible:,} visible and {layers} hidden units"

    @property
    def enumerated_units(self) -> int:
        """How many units have to be enumerated for an exact ln Z."""
        return min(self.annealed.weights.shape)

    @property
    def sum_of_parameters(self) -> float:
        """The sum of the absolute values of all weights and biases; no energy is larger."""
        return sum(
            part.detach().double().abs().sum().item()
            for tensor in self.tensors().values()
            for part in small_parts(tensor)
        )

    @property
    def num_units(self) -> int:
        """Number of units of all layers."""
        return self.num_visible + sum(self.hidden_layers)

    @property
    def largest_rounding(self) -> float:
        """How far rounding can move ln p*(v) or ln Z in float64, in nats.

        No sum has more terms than there are units, and each unit adds ln 2 at most to what the
        parameters add.
        """
        return self.num_units * 2.0**-53 * (self.sum_of_parameters + self.num_units)

    def distance_to(self, rounded: Self) -> float:
        """How far ln p*(v) or ln Z of a rounded copy can be from this model's, in nats.

        This is the sum of all changes of parameters, and no energy changes by more.
        """
        distance = 0.0
        pairs = zip(self.tensors().values(), rounded.tensors().values(), strict=True)
        for exact, approximate in pairs:
            if exact is approximate:
                continue
            difference = exact.detach().to(torch.float64, copy=True).sub_(approximate.detach())
            distance += difference.abs_().sum().item()
        return distance

    def variational_bound(
        self, rows: Tensor, generator: torch.Generator | int | None = None
    ) -> Tensor:
        """A lower bound on ln p*(v) of rows [N, D], float64 [N] on the CPU, in nats."""
        return self.exact_log_unnormalized(rows)

    def proposal(self, rows: Tensor) -> Proposal:
        """The distribution of hidden units given rows [N, D] from which ln p*(v) is estimated.

        Only models whose hidden units cannot be summed out have one.
        """
        raise TypeError(f"expected a model with hidden layers to draw, got {self}")

    def annealed_units(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """States or means of the units of `annealed` [N, n] that go with visible rows [N, D]."""
        return rows

    def completed(self, units: Tensor, generator: torch.Generator) -> tuple[Tensor, list[Tensor]]:
        """Visible vectors and the layers that `proposal` draws, from units of `annealed` [N, n].

        If the units are draws of `annealed`, the result is a draw of the model.
        """
        raise TypeError(f"expected a model with hidden layers to draw, got {self}")

    def is_exact(self, num_rows: int) -> bool:
        """Whether ln p*(v) of this many rows is exact, or can be enumerated in seconds."""
        return True

    def exact_log_unnormalized(self, rows: Tensor) -> Tensor:
        """ln p*(v) of any number of rows [N, D], without draws, float64 [N] on the CPU, in nats."""
        return self.log_unnormalized_of(rows)

    @plain_torch()
    def log_unnormalized_of(
        self, rows: Tensor, num_samples: int = 1, generator: torch.Generator | int | None = None
    ) -> Tensor:
        """ln p*(v) of any number of rows [N, D], float64 [N] on the CPU, in nats.

        Where it is an estimate, it comes from `num_samples` draws for each row.
        """
        if generator is not None:
            # Once, since all blocks together have one stream of random numbers.
            generator = resolve_generator(generator, self.device)
        # Written in place: keeping small results between large blocks that come and go would leave
        # gigabytes of holes in memory.
        result = torch.empty(len(rows), dtype=torch.float64)
        start = 0
        for block in blocks(rows):
            log_p = self._log_unnormalized_block(block, num_samples, generator)
            result[start : start + len(block)] = log_p
            start += len(block)
        return result

    def _log_unnormalized_block(
        self, v: Tensor, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        return self.log_unnormalized(v.to(self.device, self.dtype))
