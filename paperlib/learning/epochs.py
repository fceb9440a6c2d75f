"""Training in epochs, which resumes from a checkpoint where it was interrupted.

`TrainingState` is everything that the next epoch depends on. A learning procedure says how a run
starts and how an epoch changes the state; `train_in_epochs` runs the epochs and stores the state
after each. `training_identity` says which run a checkpoint belongs to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor
from tqdm import tqdm

from paperlib import storage
from paperlib.errors import InputError
from paperlib.resumable import Checkpoint, State
from paperlib.threads import step_bar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


_Model = TypeVar("_Model")


def training_identity(
    recipe: DataclassInstance, seed: int, dtype: torch.dtype, data: Tensor
) -> dict[str, str]:
    """What distinguishes training runs: the recipe, the seed, the type and the uint8 data.

    A run that depends on more adds it.
    """
    return {
        "recipe": json.dumps(asdict(recipe), sort_keys=True),
        "seed": str(seed),
        "dtype": str(dtype),
        "data_sha256": storage.sha256(data.cpu().numpy().tobytes()),
    }


def diverged(epoch: int, learning_rate: float) -> InputError:
    """The error for a training run whose parameters are no longer finite."""
    return InputError(
        "learning_rate: expected a rate at which training stays finite, "
        f"but it diverged in epoch {epoch} with {learning_rate}"
    )


@dataclass
class TrainingState:
    """Everything that the next epoch depends on."""

    parameters: tuple[Tensor, ...]
    velocities: tuple[Tensor, ...]  # momentum, in the order of the parameters
    chains: Tensor | None  # states of persistent chains, if there are any
    generator: torch.Generator
    epochs_done: int = 0
    # one for each of these epochs, if the training computes them
    reconstruction_errors: list[float] = field(default_factory=list)

    def stored(self) -> State:
        """The state as named tensors and numbers."""
        tensors = {f"parameter_{i}": tensor for i, tensor in enumerate(self.parameters)}
        tensors |= {f"velocity_{i}": tensor for i, tensor in enumerate(self.velocities)}
        tensors["generator"] = self.generator.get_state()
        if self.chains is not None:
            tensors["chains"] = self.chains
        numbers = {
            "epochs_done": self.epochs_done,
            "reconstruction_errors": self.reconstruction_errors,
        }
        return State(tensors, numbers)

    @staticmethod
    def restored(stored: State, device: torch.device | str) -> TrainingState:
        """The state on a device, from what its `stored` returned."""
        generator = torch.Generator(device)
        generator.set_state(stored.tensors["generator"])
        tensors = {
            name: tensor.to(device)
            for name, tensor in stored.tensors.items()
            if name != "generator"
        }
        chains = tensors.pop("chains", None)
        indices = range(len(tensors) // 2)
        parameters = tuple(tensors[f"parameter_{i}"] for i in indices)
        velocities = tuple(tensors[f"velocity_{i}"] for i in indices)
        return TrainingState(parameters, velocities, chains, generator, **stored.numbers)


def minibatches(
    state: TrainingState, data: Tensor, size: int, bar: tqdm, shuffle: bool = True
) -> Iterator[Tensor]:
    """The data once, as batches of the parameters' type and on their device.

    They come in a random order with `shuffle`, and otherwise in their own.
    """
    like = state.parameters[0]
    order = torch.arange(len(data), device=like.device)
    if shuffle:
        order = torch.randperm(len(data), generator=state.generator, device=like.device)
    for indices in order.split(size):
        yield data[indices.to(data.device)].to(like)
        bar.update()


def train_in_epochs(
    make_model: Callable[..., _Model],
    start: Callable[[], TrainingState],
    run_epoch: Callable[[TrainingState, int, tqdm], None],
    num_epochs: int,
    updates_per_epoch: int,
    *,
    label: str,
    checkpoint: Checkpoint,
    device: torch.device | str,
    on_epoch: Callable[[int, _Model], None] | None,
    progress: bool | None,
) -> TrainingState:
    """Run all epochs, or those that a checkpoint leaves, and return the last state.

    Parameters
    ----------
    make_model : callable
        Makes the model for `on_epoch` from copies of the parameters.
    start : callable
        Makes the first state, if there is no checkpoint.
    run_epoch : callable
        Changes a state in place by one epoch; gets its number, from 1, and the progress bar.
    num_epochs, updates_per_epoch : int
        How many there are.
    label : str
        Words beside the progress bar.
    checkpoint : Checkpoint
        Is written before the first epoch and after each.
    device, on_epoch, progress
        As in `train_rbm`.
    """
    stored = checkpoint.load()
    if stored is None:
        state = start()
        checkpoint.save(state.stored())
    else:
        state = TrainingState.restored(stored, device)
    updates = num_epochs * updates_per_epoch
    done = state.epochs_done * updates_per_epoch
    with step_bar(updates, label, progress, "update", done) as bar:
        for epoch in range(state.epochs_done + 1, num_epochs + 1):
            run_epoch(state, epoch, bar)
            state.epochs_done = epoch
            # Before the checkpoint is written, so that `on_epoch` sees every epoch wherever the run
            # is interrupted.
            if on_epoch is not None:
                on_epoch(epoch, make_model(*(tensor.clone() for tensor in state.parameters)))
            checkpoint.save(state.stored())
    return state
