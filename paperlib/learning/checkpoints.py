"""Checkpoints of training: everything that the next epoch depends on, and a signature of the training that it belongs to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from paperlib import storage
from paperlib.models.files import read_arrays, read_metadata, write_safetensors

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def training_signature(
    recipe: DataclassInstance, seed: int, dtype: torch.dtype, data: Tensor
) -> dict[str, str]:
    """What a checkpoint's training is told apart by: recipe, seed, type and uint8 data."""
    return {
        "recipe": json.dumps(asdict(recipe), sort_keys=True),
        "seed": str(seed),
        "dtype": str(dtype),
        "data_sha256": storage.sha256(data.cpu().numpy().tobytes()),
    }


@dataclass
class TrainingState:
    """Everything that the next epoch depends on.

    Attributes
    ----------
    parameters, velocities : tuple of Tensor
        The model's, and their momentum, in the same order.
    chains : Tensor or None
        States of persistent chains.
    generator : torch.Generator
        At the place where training goes on.
    epochs_done : int
        Epochs so far.
    reconstruction_errors : list of float
        One for each of them, where the training has such a thing.
    """

    parameters: tuple[Tensor, ...]
    velocities: tuple[Tensor, ...]
    chains: Tensor | None
    generator: torch.Generator
    epochs_done: int = 0
    reconstruction_errors: list[float] = field(default_factory=list)


def write_checkpoint(path: Path, state: TrainingState, signature: Mapping[str, str]) -> None:
    """Write a checkpoint, whole or not at all."""
    tensors = {f"parameter_{i}": tensor for i, tensor in enumerate(state.parameters)}
    tensors |= {f"velocity_{i}": tensor for i, tensor in enumerate(state.velocities)}
    tensors["generator"] = state.generator.get_state()
    if state.chains is not None:
        tensors["chains"] = state.chains
    progress = {
        "epochs_done": str(state.epochs_done),
        "reconstruction_errors": json.dumps(state.reconstruction_errors),
    }
    write_safetensors(path, tensors, {**signature, **progress})


def read_checkpoint(
    path: Path, signature: Mapping[str, str], device: torch.device
) -> TrainingState:
    """Read a checkpoint that `write_checkpoint` wrote.

    Raises
    ------
    ValueError
        If the file is damaged or belongs to a training with another signature.
    """
    try:
        metadata, tensors = read_metadata(path), dict(read_arrays(path))
    except ValueError as error:
        raise ValueError(
            f"checkpoint: expected an undamaged file at {path}; remove it to start anew"
        ) from error
    for key, value in signature.items():
        if metadata.get(key) != value:
            raise ValueError(
                f"checkpoint: expected {key} {value}, got {metadata.get(key)} in {path}; remove it to start anew"
            )
    generator = torch.Generator(device)
    generator.set_state(tensors.pop("generator"))
    chains = tensors.pop("chains", None)
    count = len(tensors) // 2
    parameters, velocities = (
        tuple(tensors[f"{kind}_{i}"].to(device) for i in range(count))
        for kind in ("parameter", "velocity")
    )
    return TrainingState(
        parameters,
        velocities,
        None if chains is None else chains.to(device),
        generator,
        int(metadata["epochs_done"]),
        json.loads(metadata["reconstruction_errors"]),
    )
