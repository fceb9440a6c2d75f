"""Contrastive divergence (CD) for RBMs (Hinton 2002), and persistent CD (PCD, Tieleman 2008).

The gradient of ln p(v) is a difference of two expectations of v h': under the data and under the
model. CD-T replaces the second with the state of a Gibbs chain T steps after it left the data
(Salakhutdinov & Murray 2008, eq. 7). The result is not the gradient of the likelihood; the chapter
shows how far off it is.

If unsure: CD with `cd_steps=25` and `cd_ramp_epochs=10` for a good generative model, CD-1 to
reproduce the paper's first models, and persistent chains for those of the RAISE paper.

Used in chapter: contrastive-divergence.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from tqdm import tqdm

from paperlib.errors import InputError
from paperlib.kernels import bernoulli, draw_units
from paperlib.learning.epochs import (
    TrainingState,
    diverged,
    minibatches,
    train_in_epochs,
    training_identity,
)
from paperlib.learning.recipe import check_recipe
from paperlib.models import RBM
from paperlib.numerics import seeded_generator
from paperlib.resumable import Checkpoint
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, as_binary, require_shape

# With persistent chains, the reconstruction costs an additional matrix product, a fifth of an
# update, and a tenth of the minibatches tells as much.
_RECONSTRUCT_EVERY = 10


@dataclass(frozen=True)
class ContrastiveDivergence:
    """A training recipe.

    The defaults are those of the code that the 2008 paper's authors released, except for `shuffle`.

    Attributes
    ----------
    num_hidden : int
        Hidden units, M.
    epochs : int
        Passes through the training set.
    cd_steps : int
        Gibbs steps T of the negative phase; the largest T if it rises during training.
    cd_ramp_epochs : int
        0: T is `cd_steps` throughout. n > 0: T starts at 1 and rises by one every n epochs up to
        `cd_steps`, and the learning rate is divided by T (Carreira-Perpinan & Hinton 2005).
    persistent_chains : int
        0: chains start at the data (CD). n > 0: n chains continue from one update to the next
        (PCD).
    batch_size, learning_rate, weight_cost : int, float, float
        Size of a minibatch; step size; L2 penalty on the weights (not the biases).
    initial_momentum, final_momentum, momentum_switch_epoch : float, float, int
        The first holds up to and including the switch epoch, then the second.
    initial_weight_std : float
        Weights start at normal draws with this standard deviation, biases at zero.
    upward_factor, downward_factor : int, int
        Factors that multiply the inputs of the hidden and of the visible units: 2 where, in the
        deep Boltzmann machine that is being prepared, a layer gets as much input again from its
        other side (Salakhutdinov & Hinton 2009).
    final_learning_rate : float or None
        None: the rate is constant. Otherwise it falls linearly from the first epoch, and reaches
        this value in the last.
    shuffle : bool
        Put the data in a fresh random order in every epoch. The 2008 paper's authors did not.

    Examples
    --------
    >>> recipe = ContrastiveDivergence(500, epochs=300, cd_steps=25, cd_ramp_epochs=10)
    >>> recipe.summary.split(", ")[:3]
    ['500 hidden', 'CD', 'T = 1 to 25']
    >>> [recipe.steps_in(epoch) for epoch in (1, 10, 11, 300)]
    [1, 1, 2, 25]
    """

    num_hidden: int
    epochs: int
    cd_steps: int = 1
    cd_ramp_epochs: int = 0
    persistent_chains: int = 0
    batch_size: int = 100
    learning_rate: float = 0.05
    final_learning_rate: float | None = None
    weight_cost: float = 0.0002
    initial_momentum: float = 0.5
    final_momentum: float = 0.9
    momentum_switch_epoch: int = 5
    initial_weight_std: float = 0.01
    upward_factor: int = 1
    downward_factor: int = 1
    shuffle: bool = True

    def __post_init__(self) -> None:
        check_recipe(
            self,
            ["num_hidden", "epochs", "cd_steps", "batch_size", "upward_factor", "downward_factor"],
            ["cd_ramp_epochs", "persistent_chains", "momentum_switch_epoch"],
            positive=["learning_rate", "initial_weight_std"],
            not_negative=["weight_cost"],
            momenta=["initial_momentum", "final_momentum"],
        )
        if self.final_learning_rate is not None and not 0 <= self.final_learning_rate < math.inf:
            raise InputError(
                "final_learning_rate: expected None or a number of at least 0, "
                f"got {self.final_learning_rate}"
            )

    @property
    def summary(self) -> str:
        """The recipe in one line, with units, method, epochs and learning rate."""
        steps = f"{self.cd_steps}"
        if self.cd_ramp_epochs:
            steps = f"1 to {self.cd_steps}, one more every {self.cd_ramp_epochs} epochs"
        method = f"PCD, {self.persistent_chains} chains" if self.persistent_chains else "CD"
        rate = f"rate {self.learning_rate:g}" + (" / T" if self.cd_ramp_epochs else "")
        if self.final_learning_rate is not None:
            rate += f" to {self.final_learning_rate:g}"
        order = "" if self.shuffle else " in one order"
        return (
            f"{self.num_hidden:,} hidden, {method}, T = {steps}, "
            f"{self.epochs} epochs of minibatches of {self.batch_size}{order}, {rate}"
        )

    def steps_in(self, epoch: int) -> int:
        """Gibbs steps T in an epoch, counted from 1."""
        if self.cd_ramp_epochs == 0:
            return self.cd_steps
        return min(self.cd_steps, math.ceil(epoch / self.cd_ramp_epochs))

    def learning_rate_in(self, epoch: int) -> float:
        """Step size in an epoch, counted from 1."""
        rate = self.learning_rate
        if self.final_learning_rate is not None and self.epochs > 1:
            rate += (self.final_learning_rate - rate) * (epoch - 1) / (self.epochs - 1)
        return rate / self.steps_in(epoch) if self.cd_ramp_epochs else rate

    def momentum_in(self, epoch: int) -> float:
        """Momentum in an epoch, counted from 1."""
        return self.initial_momentum if epoch <= self.momentum_switch_epoch else self.final_momentum


@plain_torch()
def train_rbm(
    train: ArrayLike,
    recipe: ContrastiveDivergence,
    seed: int,
    *,
    layers_below: Sequence[RBM] = (),
    initial: RBM | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    checkpoint: str | os.PathLike[str] | None = None,
    on_epoch: Callable[[int, RBM], None] | None = None,
    progress: bool | None = None,
) -> tuple[RBM, list[float]]:
    """Train an RBM on binary data by CD or PCD.

    Parameters
    ----------
    train : array or Tensor, shape [N, D]
        Binary training data of any type; they are moved to `device` minibatch by minibatch.
    recipe : ContrastiveDivergence
        The training recipe.
    seed : int
        Seed for the initial weights, the order of the data and all draws.
    layers_below : sequence of RBM
        Frozen layers through which every minibatch is passed first: the RBM learns from fresh draws
        of the hidden units of the last of these layers, given the data (greedy learning,
        Salakhutdinov & Murray 2008, section 4.1).
    initial : RBM, optional
        Parameters to start from, with the recipe's number of hidden units, in place of small random
        weights.
    dtype, device
        Of the computation and of the result. float64 results agree between processors to about
        1e-14; float32 results drift apart within a few hundred updates.
    checkpoint : path, optional
        A `.safetensors` file, written at the start and after every epoch. If it exists, training
        resumes from it and ends with the identical result.
    on_epoch : callable, optional
        Called with the epoch (from 1) and a copy of the model after each epoch that is run, before
        its checkpoint is written.
    progress : bool, optional
        Show a progress bar with the reconstruction error; by default if standard error is a
        terminal.

    Returns
    -------
    RBM
        The trained model.
    list of float
        Mean squared reconstruction error per unit, for every epoch. With persistent chains it is
        not a by-product, and comes from every tenth minibatch.

    Raises
    ------
    InputError
        If the data are not binary, the layers below or the initial parameters do not fit, or the
        checkpoint is damaged or belongs to another recipe, seed, type or data, or training
        diverges.

    Examples
    --------
    >>> from paperlib.datasets import binary_images
    >>> train = binary_images("digits").train[:200]
    >>> recipe = ContrastiveDivergence(num_hidden=8, epochs=3, batch_size=20)
    >>> rbm, errors = train_rbm(train, recipe, seed=0, progress=False)
    >>> rbm
    RBM(64 visible, 8 hidden, torch.float32, cpu)
    >>> errors[2] < errors[0]
    True
    """
    data = as_binary("train", train).to(torch.uint8).contiguous()
    identity = training_identity(recipe, seed, dtype, data)
    layers_below = [layer.to(device, dtype) for layer in layers_below]
    _check_widths(data.shape[1], layers_below, recipe.num_hidden, initial)
    if layers_below:
        identity["layers_below"] = json.dumps([layer.checksum() for layer in layers_below])
    if initial is not None:
        identity["initial"] = initial.checksum()
    state = train_in_epochs(
        RBM,
        lambda: _initial_state(recipe, data, layers_below, initial, seed, dtype, device),
        partial(_run_epoch, recipe, data, layers_below),
        recipe.epochs,
        math.ceil(len(data) / recipe.batch_size),
        label=f"CD {recipe.num_hidden}",
        checkpoint=Checkpoint(checkpoint, identity),
        device=device,
        on_epoch=on_epoch,
        progress=progress,
    )
    return RBM(*state.parameters), state.reconstruction_errors


def _check_widths(
    num_visible: int, layers_below: Sequence[RBM], num_hidden: int, initial: RBM | None
) -> None:
    for number, layer in enumerate(layers_below):
        if layer.num_visible != num_visible:
            raise InputError(
                f"layers_below: expected {num_visible} visible units in layer {number}, "
                f"got {layer.num_visible}"
            )
        num_visible = layer.num_hidden
    if initial is not None:
        require_shape("initial.weights", initial.weights, [num_visible, num_hidden])


def _pass_up(batch: Tensor, layers: Sequence[RBM], generator: torch.Generator) -> Tensor:
    """Draws of the last layer's hidden units given the data."""
    for layer in layers:
        batch = bernoulli(layer._hidden_probs(batch), generator)
    return batch


def _initial_state(
    recipe: ContrastiveDivergence,
    data: Tensor,
    layers_below: Sequence[RBM],
    initial: RBM | None,
    seed: int,
    dtype: torch.dtype,
    device: torch.device | str,
) -> TrainingState:
    generator = seeded_generator(seed, device)
    num_visible = layers_below[-1].num_hidden if layers_below else data.shape[1]
    if initial is None:
        weights = torch.randn(
            num_visible, recipe.num_hidden, dtype=dtype, device=device, generator=generator
        )
        parameters = (
            weights.mul_(recipe.initial_weight_std),
            weights.new_zeros(num_visible),
            weights.new_zeros(recipe.num_hidden),
        )
    else:
        # Copies: training changes them in place.
        parameters = tuple(
            tensor.to(device, dtype, copy=True)
            for tensor in (initial.weights, initial.visible_bias, initial.hidden_bias)
        )
    chains = None
    if recipe.persistent_chains:
        start = torch.randint(
            len(data), (recipe.persistent_chains,), device=device, generator=generator
        )
        chains = _pass_up(data[start.to(data.device)].to(device, dtype), layers_below, generator)
    velocities = tuple(torch.zeros_like(parameter) for parameter in parameters)
    return TrainingState(parameters, velocities, chains, generator)


def _run_epoch(
    recipe: ContrastiveDivergence,
    data: Tensor,
    layers_below: Sequence[RBM],
    state: TrainingState,
    epoch: int,
    bar: tqdm,
) -> None:
    """One pass through the data; the state gets its mean squared reconstruction error per unit."""
    every = 1 if state.chains is None else _RECONSTRUCT_EVERY
    squared_error = torch.zeros((), dtype=torch.float64, device=state.parameters[0].device)
    reconstructed = 0
    batches = minibatches(state, data, recipe.batch_size, bar, recipe.shuffle)
    for number, visible_batch in enumerate(batches):
        batch = _pass_up(visible_batch, layers_below, state.generator)
        error = _update(state, recipe, epoch, batch, reconstruct=number % every == 0)
        if error is not None:
            squared_error += error
            reconstructed += batch.numel()
    mean_error = squared_error.item() / reconstructed
    if not math.isfinite(mean_error):
        raise diverged(epoch, recipe.learning_rate)
    state.reconstruction_errors.append(mean_error)
    bar.set_postfix(
        epoch=f"{epoch}/{recipe.epochs}",
        T=recipe.steps_in(epoch),
        reconstruction_error=f"{mean_error:.5f}",
    )


def _update(
    state: TrainingState,
    recipe: ContrastiveDivergence,
    epoch: int,
    batch: Tensor,
    reconstruct: bool,
) -> Tensor | None:
    """One parameter update in place; with `reconstruct`, returns the summed squared error."""
    weights, visible_bias, hidden_bias = state.parameters
    up = recipe.upward_factor
    down = recipe.downward_factor
    positive_hidden = torch.addmm(hidden_bias, batch, weights, alpha=up).sigmoid_()
    # A chain that starts at the data shares its first half step with the positive phase.
    hidden = positive_hidden
    if state.chains is not None:
        hidden = torch.addmm(hidden_bias, state.chains, weights, alpha=up).sigmoid_()
    reconstruction_error = None
    visible = batch
    for gibbs_step in range(recipe.steps_in(epoch)):
        visible_probs = torch.addmm(
            visible_bias, draw_units(hidden, state.generator), weights.T, alpha=down
        ).sigmoid_()
        visible = draw_units(visible_probs, state.generator)
        hidden = torch.addmm(hidden_bias, visible, weights, alpha=up).sigmoid_()
        if reconstruct and gibbs_step == 0:
            # In CD the first step of a chain is the reconstruction; persistent chains do not
            # start at the data.
            reconstruction = visible_probs
            if state.chains is not None:
                reconstruction = torch.addmm(
                    visible_bias, positive_hidden, weights.T, alpha=down
                ).sigmoid_()
            reconstruction_error = reconstruction.sub_(batch).square_().sum()
    if state.chains is not None:
        state.chains = visible
    _follow_gradient(state, recipe, epoch, (batch, positive_hidden), (visible, hidden))
    return reconstruction_error


def _follow_gradient(
    state: TrainingState,
    recipe: ContrastiveDivergence,
    epoch: int,
    positive: tuple[Tensor, Tensor],
    negative: tuple[Tensor, Tensor],
) -> None:
    """Move the parameters by the difference of the two phases, which are states of both layers."""
    batch, positive_hidden = positive
    visible, hidden = negative
    rate = recipe.learning_rate_in(epoch)
    momentum = recipe.momentum_in(epoch)
    step = rate / len(batch)
    negative_step = rate / len(visible)
    weights = state.parameters[0]
    weight_velocity, visible_velocity, hidden_velocity = state.velocities
    # A pass over all weights costs a fortieth of an update, so one that would change nothing is
    # skipped.
    if momentum:
        weight_velocity.mul_(momentum)
    weight_velocity.addmm_(batch.T, positive_hidden, beta=float(momentum != 0), alpha=step)
    weight_velocity.addmm_(visible.T, hidden, alpha=-negative_step)
    if recipe.weight_cost:
        weight_velocity.add_(weights, alpha=-rate * recipe.weight_cost)
    visible_velocity.mul_(momentum).add_(batch.sum(0), alpha=step)
    visible_velocity.add_(visible.sum(0), alpha=-negative_step)
    hidden_velocity.mul_(momentum).add_(positive_hidden.sum(0), alpha=step)
    hidden_velocity.add_(hidden.sum(0), alpha=-negative_step)
    for parameter, velocity in zip(state.parameters, state.velocities, strict=True):
        parameter.add_(velocity)
