"""Wake-sleep learning of a sigmoid belief net and its recognition network.

The algorithm is that of Hinton, Dayan, Frey & Neal (1995). Here the recognition network has one
affine layer,

    q(h_i = 1 | v) = s(c_i + sum_d v_d R_di),

and learning alternates two steps:

- Wake: v is drawn from the data and h from q(h | v), followed by one step up the gradient of ln
  p(v, h) in the model's parameters. On average this is a step up the evidence lower bound with the
  recognition network held fixed.
- Sleep: (v, h) is dreamt by the model, followed by one step up the gradient of ln q(h | v) in the
  network's parameters. On average this lowers the mean of KL(p(h | v) || q(h | v)) over dreamt v:
  the reverse of the divergence in the gap of the bound, and on v other than the data.

Both are delta rules, input times (actual - predicted). Since the sleep and wake steps have
different objectives, nothing guarantees that the bound rises. Used in chapter: learned-inference.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.kernels import bernoulli
from paperlib.numerics import resolve_generator
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, as_state_rows, as_states, require_count
from paperlib.variational.sigmoid_belief_net import SigmoidBeliefNet


@dataclass(frozen=True)
class RecognitionWeights:
    """The factorial q(h | v) of one affine layer.

    Attributes
    ----------
    weights : Tensor, shape [D, M]
        The weights R.
    bias : Tensor, shape [M]
        The biases c.

    Examples
    --------
    >>> network = RecognitionWeights(torch.zeros(2, 1).double(), torch.zeros(1).double())
    >>> torch.sigmoid(network.logits([[1, 0]]))
    tensor([[0.5000]], dtype=torch.float64)
    """

    weights: Tensor
    bias: Tensor

    def logits(self, v: ArrayLike) -> Tensor:
        """Logits of q(h_i = 1 | v); `v` [..., D] gives [..., M]."""
        return as_states("v", v, self.weights, len(self.weights)) @ self.weights + self.bias


@plain_torch()
def wake_step(
    model: SigmoidBeliefNet,
    recognition: RecognitionWeights,
    v: ArrayLike,
    learning_rate: float,
    generator: torch.Generator | int,
) -> SigmoidBeliefNet:
    """The model after one wake step on the batch `v` [N, D].

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> model = SigmoidBeliefNet([[2.0], [-1.0]], [0.0, 0.0], [0.0])
    >>> network = RecognitionWeights(torch.zeros(2, 1).double(), torch.zeros(1).double())
    >>> wake_step(model, network, [[1, 0], [0, 1]], 0.1, generator)
    SigmoidBeliefNet(2 visible, 1 hidden)
    """
    v = as_state_rows("v", v, model.weights, model.num_visible)
    generator = resolve_generator(generator, model.weights.device)
    h = bernoulli(torch.sigmoid(recognition.logits(v)), generator)
    surprise = v - torch.sigmoid(h @ model.weights.T + model.visible_bias)
    rate = learning_rate / len(v)
    return SigmoidBeliefNet(
        model.weights + rate * surprise.T @ h,
        model.visible_bias + rate * surprise.sum(0),
        model.hidden_bias + rate * (h - torch.sigmoid(model.hidden_bias)).sum(0),
    )


@plain_torch()
def sleep_step(
    model: SigmoidBeliefNet,
    recognition: RecognitionWeights,
    num_dreams: int,
    learning_rate: float,
    generator: torch.Generator | int,
) -> RecognitionWeights:
    """The recognition weights after one sleep step on `num_dreams` draws from the model.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> model = SigmoidBeliefNet([[2.0], [-1.0]], [0.0, 0.0], [0.0])
    >>> network = RecognitionWeights(torch.zeros(2, 1).double(), torch.zeros(1).double())
    >>> sleep_step(model, network, 10, 0.1, generator).weights.shape
    torch.Size([2, 1])
    """
    v, h = model.sample(num_dreams, generator)
    surprise = h - torch.sigmoid(recognition.logits(v))
    rate = learning_rate / num_dreams
    return RecognitionWeights(
        recognition.weights + rate * v.T @ surprise, recognition.bias + rate * surprise.sum(0)
    )


@plain_torch()
def wake_sleep(
    model: SigmoidBeliefNet,
    recognition: RecognitionWeights,
    v: ArrayLike,
    num_epochs: int,
    learning_rate: float,
    generator: torch.Generator | int,
    batch_size: int = 50,
) -> tuple[SigmoidBeliefNet, RecognitionWeights]:
    """Alternate one wake and one sleep step for every batch.

    Parameters
    ----------
    model, recognition
        Initial model and recognition weights.
    v : array or Tensor, shape [N, D]
        Binary training vectors.
    num_epochs : int
        Number of passes over the training vectors, each in a new order.
    learning_rate : float
        Learning rate of both steps.
    generator : torch.Generator or int
        Source of randomness.
    batch_size : int
        Number of vectors, and of dreams, per step.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> model = SigmoidBeliefNet([[2.0], [-1.0]], [0.0, 0.0], [0.0])
    >>> network = RecognitionWeights(torch.zeros(2, 1).double(), torch.zeros(1).double())
    >>> model, network = wake_sleep(model, network, [[1, 0], [0, 1]], 5, 0.1, generator)
    >>> model
    SigmoidBeliefNet(2 visible, 1 hidden)
    """
    v = as_state_rows("v", v, model.weights, model.num_visible)
    generator = resolve_generator(generator, model.weights.device)
    for _ in range(require_count("num_epochs", num_epochs)):
        order = torch.randperm(len(v), generator=generator)
        for batch in v[order].split(require_count("batch_size", batch_size)):
            model = wake_step(model, recognition, batch, learning_rate, generator)
            recognition = sleep_step(model, recognition, len(batch), learning_rate, generator)
    return model, recognition
