"""Training in epochs, from one state to the next, which may be interrupted after each of them."""

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
    """What distinguishes training runs: the recipe, the seed, the type and the uint8 data; a run that depends on more adds it."""
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
    """Everything that the next epoch depends on; a training run fills in what it has of it."""

    parameters: tuple[Tensor, ...]
    velocities: tuple[Tensor, ...]  # momentum, in the order of the parameters
    chains: Tensor | None  # states of persistent chains
    generator: torch.Generator
    epochs_done: int = 0
    # one for each of these epochs, if the training computes them
    reconstruction_errors: list[float] = field(default_factory=list)

    def stored(self) -> State:
        """The same as named tensors and numbers."""
        tensors = {f"parameter_{i}": tensor for i, tensor in enumerate(self.parameters)}
        tensors |= {f"velocity_{i}": tensor for i, tensor in enumerate(self.velocities)}
        tensors["generator"] = self.generator.get_state()
        if self.chains is not None:
            tensors["chains"] = self.chains
        names = ("epochs_done", "reconstruction_errors")
        return State(tensors, {name: getattr(self, name) for name in names})

    @staticmethod
    def restored(stored: State, device: torch.device | str) -> TrainingState:
        """What `stored` gave, on a device."""
        generator = torch.Generator(device)
        generator.set_state(stored.tensors["generator"])
        tensors = {
            name: tensor.to(device)
            for name, tensor in stored.tensors.items()
            if name != "generator"
        }
        chains = tensors.pop("chains", None)
        parameters, velocities = (
            tuple(tensors[f"{kind}_{i}"] for i in range(len(tensors) // 2))
            for kind in ("parameter", "velocity")
        )
        return TrainingState(parameters, velocities, chains, generator, **stored.numbers)


def minibatches(
    state: TrainingState, data: Tensor, size: int, bar: tqdm, shuffle: bool = True
) -> Iterator[Tensor]:
    """The data once, as batches in the parameters' type and on their device, in a random order or in their own."""
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
    """Run the epochs that are left from a checkpoint, if there is one, or all of them, and write a checkpoint before the first and after each."""
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
            # Before the checkpoint is written: no epoch remains unseen, wherever the run is
            # interrupted.
            if on_epoch is not None:
                on_epoch(epoch, make_model(*(tensor.clone() for tensor in state.parameters)))
            checkpoint.save(state.stored())
    return state
