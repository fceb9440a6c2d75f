"""Learning deep Boltzmann machines: greedy pre-training, then mean field against persistent chains.

The procedure is that of Salakhutdinov & Hinton (2009). The gradient of ln p(v) is a difference of
two expectations of v h1' and h1 h2', under the posterior and under the model. The first is taken
under the mean-field approximation of the posterior, the second at the states of Gibbs chains that
continue from one update to the next (PCD). The result is the gradient of the mean-field bound, as
long as the chains keep up.

Pre-training learns the two layers as RBMs, and doubles inputs where, in the DBM, a layer gets input
from both sides: h1 from v and from h2. Without pre-training, learning the joint model from small
random weights rarely leaves the state in which h2 does nothing.

The units of a layer act together on the next layer. An update with the plain gradient shifts the
input of all units there alike, and the more units act, the larger the shift. In wide layers such
swings switch h2 off for good. The gradient for centred units (Montavon & Müller 2012) avoids this:
its biases take back the effect of a weight change on the average input. It climbs the same bound.

If unsure: the defaults, which are close to what the authors published elsewhere. Used in chapter:
deep-boltzmann-machines.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from tqdm import tqdm

from paperlib.kernels import bernoulli
from paperlib.learning.contrastive_divergence import ContrastiveDivergence, train_rbm
from paperlib.learning.epochs import (
    TrainingState,
    diverged,
    minibatches,
    train_in_epochs,
    training_identity,
)
from paperlib.learning.recipe import check_recipe
from paperlib.models import DBM
from paperlib.numerics import seeded_generator
from paperlib.resumable import Checkpoint
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, as_binary

# States of v, h1 and h2, each [cases, units].
_Layers = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class DeepBoltzmannLearning:
    """A training recipe.

    Attributes
    ----------
    pretraining_1, pretraining_2 : ContrastiveDivergence
        Recipes for the two layers as RBMs, which set the numbers of hidden units; the doubling of
        inputs is added to them.
    epochs : int
        Passes through the training set with both layers together.
    chains : int
        Persistent Gibbs chains.
    gibbs_steps : int
        Steps of every chain between two updates.
    mean_field_updates : int
        Updates of both layers' means for every minibatch.
    batch_size, weight_cost : int, float
        Size of a minibatch; L2 penalty on the weights.
    learning_rate : float
        Step size at the first update, from which it falls linearly to zero at the last.
    momentum : float
        Share of the last step that enters the next.
    centred : bool
        Whether to follow the gradient for centred units, which wide layers need.

    Examples
    --------
    >>> layer = ContrastiveDivergence(num_hidden=4, epochs=2)
    >>> recipe = DeepBoltzmannLearning(layer, ContrastiveDivergence(2, epochs=2), epochs=3)
    >>> recipe.chains, recipe.gibbs_steps, recipe.centred
    (100, 5, False)
    """

    pretraining_1: ContrastiveDivergence
    pretraining_2: ContrastiveDivergence
    epochs: int
    chains: int = 100
    gibbs_steps: int = 5
    mean_field_updates: int = 10
    batch_size: int = 100
    learning_rate: float = 0.005
    weight_cost: float = 0.0002
    momentum: float = 0.5
    centred: bool = False

    def __post_init__(self) -> None:
        check_recipe(
            self,
            ["epochs", "chains", "gibbs_steps", "mean_field_updates", "batch_size"],
            positive=["learning_rate"],
            not_negative=["weight_cost"],
            momenta=["momentum"],
        )

    @property
    def summary(self) -> str:
        """The recipe in one line."""
        first = self.pretraining_1
        second = self.pretraining_2
        centred = ", centred" if self.centred else ""
        return (
            f"{first.num_hidden:,} and {second.num_hidden:,} hidden, "
            f"pre-trained for {first.epochs} and {second.epochs} epochs of CD, "
            f"then {self.epochs} epochs of mean field and PCD, "
            f"{self.chains} chains of {self.gibbs_steps} steps, "
            f"rate {self.learning_rate:g} to 0{centred}"
        )


@plain_torch()
def pretrain_dbm(
    train: ArrayLike,
    recipe: DeepBoltzmannLearning,
    seed: int,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    progress: bool | None = None,
) -> DBM:
    """The DBM that greedy pre-training alone gives; arguments as in `train_dbm`.

    Examples
    --------
    >>> from paperlib.datasets import binary_images
    >>> layer = ContrastiveDivergence(num_hidden=4, epochs=2)
    >>> recipe = DeepBoltzmannLearning(layer, ContrastiveDivergence(2, epochs=2), epochs=3)
    >>> pretrain_dbm(binary_images("digits").train[:100], recipe, seed=0, progress=False)
    DBM(64-4-2, torch.float32, cpu)
    """
    options = {"dtype": dtype, "device": device, "progress": progress}
    # Half of h1's doubled input takes the place of its other side: of h2 in the lower RBM, and of
    # v in the upper one.
    lower = replace(recipe.pretraining_1, upward_factor=2)
    upper = replace(recipe.pretraining_2, downward_factor=2)
    first, _ = train_rbm(train, lower, seed, **options)
    # The first layer passes up draws given its doubled input.
    doubled = type(first)(2 * first.weights, first.visible_bias, first.hidden_bias)
    second, _ = train_rbm(train, upper, seed + 1, layers_below=[doubled], **options)
    return DBM(
        first.weights, second.weights, first.visible_bias, first.hidden_bias, second.hidden_bias
    )


@plain_torch()
def train_dbm(
    train: ArrayLike,
    recipe: DeepBoltzmannLearning,
    seed: int,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    checkpoint: str | os.PathLike[str] | None = None,
    on_epoch: Callable[[int, DBM], None] | None = None,
    progress: bool | None = None,
) -> DBM:
    """Train a DBM with two hidden layers on binary data.

    Parameters
    ----------
    train, dtype, device, on_epoch, progress
        As in `train_rbm`.
    recipe : DeepBoltzmannLearning
        The training recipe.
    seed : int
        Seed for the first layer's pre-training; the second layer and the joint training use the
        next two numbers.
    checkpoint : path, optional
        As in `train_rbm`; the first one is written after pre-training.

    Raises
    ------
    InputError
        As in `train_rbm`.

    Examples
    --------
    >>> from paperlib.datasets import binary_images
    >>> layer = ContrastiveDivergence(num_hidden=4, epochs=2)
    >>> recipe = DeepBoltzmannLearning(layer, ContrastiveDivergence(2, epochs=2), epochs=3)
    >>> train_dbm(binary_images("digits").train[:100], recipe, seed=0, progress=False)
    DBM(64-4-2, torch.float32, cpu)
    """
    data = as_binary("train", train).to(torch.uint8).contiguous()
    identity = training_identity(recipe, seed, dtype, data)
    batches = math.ceil(len(data) / recipe.batch_size)
    updates = recipe.epochs * batches

    def start() -> TrainingState:
        pretrained = pretrain_dbm(data, recipe, seed, dtype=dtype, device=device, progress=progress)
        return _initial_state(pretrained, data, recipe, seed + 2)

    def run_epoch(state: TrainingState, epoch: int, bar: tqdm) -> None:
        first = (epoch - 1) * batches
        for done, batch in enumerate(minibatches(state, data, recipe.batch_size, bar), first):
            _update(state, recipe, batch, recipe.learning_rate * (1 - done / updates))
        if not all(bool(torch.isfinite(p).all()) for p in state.parameters):
            raise diverged(epoch, recipe.learning_rate)

    widths = (data.shape[1], recipe.pretraining_1.num_hidden, recipe.pretraining_2.num_hidden)
    state = train_in_epochs(
        DBM,
        start,
        run_epoch,
        recipe.epochs,
        batches,
        label=f"DBM {'-'.join(map(str, widths))}",
        checkpoint=Checkpoint(checkpoint, identity),
        device=device,
        on_epoch=on_epoch,
        progress=progress,
    )
    return DBM(*state.parameters)


def _initial_state(
    dbm: DBM, data: Tensor, recipe: DeepBoltzmannLearning, seed: int
) -> TrainingState:
    generator = seeded_generator(seed, dbm.device)
    parameters = tuple(tensor.clone() for tensor in dbm.tensors().values())
    start = torch.randint(len(data), (recipe.chains,), device=dbm.device, generator=generator)
    v = data[start.to(data.device)].to(dbm.device, dbm.dtype)
    h2 = bernoulli(torch.sigmoid(dbm.mean_field(v).logits_2), generator)
    return TrainingState(
        parameters,
        tuple(torch.zeros_like(parameter) for parameter in parameters),
        torch.cat([v, h2], 1),
        generator,
    )


def _update(
    state: TrainingState, recipe: DeepBoltzmannLearning, batch: Tensor, rate: float
) -> None:
    """One update of all parameters in place."""
    dbm = DBM(*state.parameters)
    field = dbm.mean_field(batch, max_updates=recipe.mean_field_updates, tolerance=0.0)
    positive = batch, torch.sigmoid(field.logits_1), torch.sigmoid(field.logits_2)

    joint = dbm.joint_rbm
    chains = state.chains
    assert chains is not None  # a DBM is always trained with persistent chains
    for _ in range(recipe.gibbs_steps):
        chains = joint._gibbs_step(chains, state.generator)
    state.chains = chains
    v, h2 = chains.split([dbm.num_visible, dbm.num_hidden_2], dim=1)
    # h1 is represented by its probabilities, which are less noisy than a draw
    negative = v, joint._hidden_probs(chains), h2

    if recipe.centred:
        gradients = _centred_gradient(positive, negative)
    else:
        gradients = _gradient(positive, negative)
    for parameter, velocity, gradient in zip(
        state.parameters, state.velocities, gradients, strict=True
    ):
        if parameter.ndim == 2:
            gradient.sub_(parameter, alpha=recipe.weight_cost)
        velocity.mul_(recipe.momentum).add_(gradient, alpha=rate)
        parameter.add_(velocity)


def _gradient(positive: _Layers, negative: _Layers) -> list[Tensor]:
    """Averages of v h1', h1 h2', v, h1 and h2 under the posterior minus those under the model."""
    weights = []
    for lower in (0, 1):
        upper = lower + 1
        posterior_mean = positive[lower].T @ positive[upper] / len(positive[lower])
        model_mean = negative[lower].T @ negative[upper] / len(negative[lower])
        weights.append(posterior_mean - model_mean)
    biases = [up.mean(0) - down.mean(0) for up, down in zip(positive, negative, strict=True)]
    return weights + biases


def _shifted(layers: _Layers, offsets: Sequence[Tensor]) -> _Layers:
    return layers[0] - offsets[0], layers[1] - offsets[1], layers[2] - offsets[2]


def _centred_gradient(positive: _Layers, negative: _Layers) -> list[Tensor]:
    """The gradient with every unit's state measured from its average under the posterior.

    In terms of the plain parameters, the biases compensate for changes of the weights, by the
    offsets of the other side.
    """
    offsets = [layer.mean(0) for layer in positive]
    gradient = _gradient(_shifted(positive, offsets), _shifted(negative, offsets))
    weights_1, weights_2, visible, hidden_1, hidden_2 = gradient
    return [
        weights_1,
        weights_2,
        visible - weights_1 @ offsets[1],
        hidden_1 - weights_1.T @ offsets[0] - weights_2 @ offsets[2],
        hidden_2 - weights_2.T @ offsets[1],
    ]
