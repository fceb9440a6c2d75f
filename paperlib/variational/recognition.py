"""Recognition networks: inference as a function of v, learned once for all v.

This is section 19.5 of Goodfellow, Bengio & Courville (2016). Mean field solves an optimisation
problem for every v. A recognition network maps v to the solution, or to a guess at it, in one pass;
its parameters are shared by all v ("amortised" inference). The gap between the bound and ln p(v)
then has two parts: the gap of the best q in the family, and the gap between the network and that
best q.

`Network` is the plain feed-forward network that recognition models here use, and `ascend` the plain
Adam by which every objective is maximised. Used in chapter: learned-inference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.numerics import resolve_generator
from paperlib.validation import ArrayLike, as_states, require_count


class Network:
    """Affine layers with tanh between them, in float64; the output is linear.

    Parameters
    ----------
    widths : sequence of int
        Numbers of units from input to output; two widths make one affine layer.
    generator : torch.Generator or int
        Source of the initial weights, which are normal with variance one over the number of inputs.
        Biases start at zero.

    Raises
    ------
    InputError
        If there are fewer than two widths, or one is not a whole number of at least 1.

    Examples
    --------
    >>> network = Network([3, 5, 2], torch.Generator().manual_seed(0))
    >>> network
    Network(3-5-2)
    >>> network([[1, 0, 1]]).shape
    torch.Size([1, 2])
    """

    def __init__(self, widths: Sequence[int], generator: torch.Generator | int) -> None:
        if len(widths) < 2:
            raise InputError(f"widths: expected at least two, got {len(widths)}")
        self.widths = tuple(require_count("widths", width) for width in widths)
        generator = resolve_generator(generator)
        self.weights = []
        self.biases = []
        for fan_in, fan_out in zip(self.widths, self.widths[1:], strict=False):
            weights = torch.randn(fan_in, fan_out, dtype=torch.float64, generator=generator)
            self.weights.append((weights / fan_in**0.5).requires_grad_())
            self.biases.append(torch.zeros(fan_out, dtype=torch.float64, requires_grad=True))

    def __repr__(self) -> str:
        return f"Network({'-'.join(map(str, self.widths))})"

    @property
    def parameters(self) -> list[Tensor]:
        """All weights and biases, which are leaves of the autograd graph."""
        return [*self.weights, *self.biases]

    def __call__(self, inputs: ArrayLike) -> Tensor:
        """Outputs, [..., widths[-1]], for inputs [..., widths[0]]; logits for binary units."""
        values = as_states("inputs", inputs, self.weights[0], self.widths[0])
        for layer, (weights, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = (torch.tanh(values) if layer else values) @ weights + bias
        return values


def ascend(
    parameters: Sequence[Tensor],
    objective: Callable[[], Tensor],
    num_steps: int,
    learning_rate: float,
) -> list[float]:
    """Maximise an objective with Adam; it may be a new random estimate at every call.

    The learning rate falls linearly to zero, so that the noise of the last steps averages out.

    Parameters
    ----------
    parameters : sequence of Tensor
        Leaves that require gradients; changed in place. A leaf that the objective does not use
        stays as it is.
    objective : callable
        Returns a scalar.
    num_steps : int
        Number of steps.
    learning_rate : float
        Adam's learning rate at the start.

    Returns
    -------
    list of float
        The objective before every step.

    Examples
    --------
    >>> x = torch.zeros(1, requires_grad=True)
    >>> values = ascend([x], lambda: -(x - 3).square().sum(), num_steps=300, learning_rate=0.1)
    >>> bool((x - 3).abs() < 0.01)
    True
    """
    steps = require_count("num_steps", num_steps)
    adam = torch.optim.Adam(parameters, lr=learning_rate)
    values = []
    for step in range(steps):
        adam.param_groups[0]["lr"] = learning_rate * (1 - step / steps)
        value = objective()
        slopes = torch.autograd.grad(value, parameters, materialize_grads=True)
        for leaf, slope in zip(parameters, slopes, strict=True):
            leaf.grad = -slope
        adam.step()
        values.append(value.item())
    for leaf in parameters:
        leaf.grad = None
    return values
