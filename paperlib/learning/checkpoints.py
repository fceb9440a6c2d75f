"""Interruptible training in epochs: checkpoints, and the loop that writes them.

A checkpoint holds everything that the next epoch depends on, and the signature of the training that
it belongs to. Training resumes from a checkpoint only if the two signatures are the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor
from tqdm import tqdm

from paperlib import storage
from paperlib.errors import InputError
from paperlib.models.files import read_resumable, write_safetensors

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


_Model = TypeVar("_Model")

# Metadata of a checkpoint besides the signature.
_PROGRESS = ("epochs_done", "reconstruction_errors")


def training_signature(
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


def _write_checkpoint(path: Path, state: TrainingState, signature: Mapping[str, str]) -> None:
    """Write a checkpoint, whole or not at all."""
    tensors = {f"parameter_{i}": tensor for i, tensor in enumerate(state.parameters)}
    tensors |= {f"velocity_{i}": tensor for i, tensor in enumerate(state.velocities)}
    tensors["generator"] = state.generator.get_state()
    if state.chains is not None:
        tensors["chains"] = state.chains
    progress = {name: json.dumps(getattr(state, name)) for name in _PROGRESS}
    write_safetensors(path, tensors, {**signature, **progress})


def _read_checkpoint(
    path: Path, signature: Mapping[str, str], device: torch.device | str
) -> TrainingState:
    """Read a checkpoint that `_write_checkpoint` wrote."""
    tensors, progress = read_resumable(path, signature, _PROGRESS)
    generator = torch.Generator(device)
    generator.set_state(tensors.pop("generator"))
    tensors = {name: tensor.to(device) for name, tensor in tensors.items()}
    chains = tensors.pop("chains", None)
    parameters, velocities = (
        tuple(tensors[f"{kind}_{i}"] for i in range(len(tensors) // 2))
        for kind in ("parameter", "velocity")
    )
    return TrainingState(parameters, velocities, chains, generator, **progress)


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
    checkpoint: str | os.PathLike[str] | None,
    signature: Mapping[str, str],
    device: torch.device | str,
    on_epoch: Callable[[int, _Model], None] | None,
    progress: bool | None,
) -> TrainingState:
    """Run the epochs that are left from a checkpoint, if there is one, or all of them, and write a checkpoint before the first and after each."""
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and path.exists():
        state = _read_checkpoint(path, signature, device)
    else:
        state = start()
        if path is not None:
            _write_checkpoint(path, state, signature)
    with tqdm(
        total=num_epochs * updates_per_epoch,
        initial=state.epochs_done * updates_per_epoch,
        unit="update",
        desc=label,
        disable=None if progress is None else not progress,
    ) as bar:
        for epoch in range(state.epochs_done + 1, num_epochs + 1):
            run_epoch(state, epoch, bar)
            state.epochs_done = epoch
            if path is not None:
                _write_checkpoint(path, state, signature)
            if on_epoch is not None:
                on_epoch(epoch, make_model(*(tensor.clone() for tensor in state.parameters)))
    return state
