"""Work that may stop, and goes on where it stopped.

A long computation goes from state to state. A state is a set of named tensors and a few numbers,
which hold everything that the next step depends on. It belongs to work with an identity, and other
work does not take it.

Training and parallel tempering take many steps, and keep their latest state in a file
(`Checkpoint`). AIS, RAISE and CSL consist of many parts of a single step, whose states are their
results. `Work` describes such a computation. A `Part` is a pure function of what all parts share,
so it does not matter who computes it, when, or in which order. `Work.result` computes them here;
`boltzmann_likelihood.store.kept` keeps them, and sends those that are missing to the workers of an
executor.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.models.files import read_metadata, read_safetensors, write_safetensors
from paperlib.threads import OnStep

Result = TypeVar("Result")

_CPU = torch.device("cpu")
# The key in a file for the numbers of a state.
_NUMBERS = "progress"


class State(NamedTuple):
    """What the next step of a computation depends on."""

    tensors: Mapping[str, Tensor]
    numbers: Mapping[str, Any]  # or anything else that JSON can hold


@dataclass(frozen=True)
class Checkpoint:
    """Where a computation keeps its latest state.

    Attributes
    ----------
    path : path or None
        A `.safetensors` file. None: the state is not kept, which suits short computations.
    identity : mapping of str to str
        All that the computation depends on, by name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = Checkpoint(Path(folder) / "sum.safetensors", {"seed": "1"})
    ...     checkpoint.save(State({"sum": torch.ones(2)}, {"steps": 3}))
    ...     state = checkpoint.load()
    >>> state.tensors["sum"], state.numbers["steps"]
    (tensor([1., 1.]), 3)
    """

    path: str | os.PathLike[str] | None
    identity: Mapping[str, str]

    def __post_init__(self) -> None:
        """Refuse what could only fail after hours."""
        if self.path is None:
            return
        if not isinstance(self.path, str | os.PathLike):
            raise InputError(f"checkpoint: expected a path, got {type(self.path).__name__}")
        path = Path(self.path)
        if os.path.isdir(path):  # false for a name that is too long
            raise InputError(f"checkpoint: expected a file, got the folder {path}")
        if path.suffix != ".safetensors":
            raise InputError(f"checkpoint: expected a .safetensors file, got {path}")
        if os.path.exists(path):
            return
        # folders that are missing are made when the first state is saved
        folder = next(parent for parent in path.absolute().parents if os.path.exists(parent))
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise InputError(f"checkpoint: expected a folder that can be written to, got {folder}")

    def save(self, state: State) -> None:
        """Write a state in place of the last one, whole or not at all."""
        if self.path is not None:
            numbers = {_NUMBERS: json.dumps(state.numbers)}
            write_safetensors(Path(self.path), state.tensors, {**self.identity, **numbers})

    def load(self) -> State | None:
        """The latest state; None if there is none yet.

        Raises
        ------
        InputError
            If the file is damaged, or holds a state of other work.
        """
        if self.path is None or not Path(self.path).exists():
            return None
        path = Path(self.path)
        try:
            identity = read_metadata(path)
            tensors = read_safetensors(path)
            numbers = json.loads(identity.pop(_NUMBERS))
        except (ValueError, KeyError) as error:
            raise InputError(
                f"checkpoint: expected an undamaged file of this version at {path}; "
                "remove it to start anew"
            ) from error
        # Compared both ways, since a checkpoint may also have an entry that this work lacks.
        for key in sorted(self.identity.keys() | identity.keys()):
            expected = self.identity.get(key, "none")
            stored = identity.get(key, "none")
            if stored != expected:
                raise InputError(
                    f"checkpoint: expected {key} {expected}, got {stored} in {path}; "
                    "remove it to start anew"
                )
        return State(tensors, numbers)


def _count_nothing(steps: int) -> None:
    pass


class Part(NamedTuple):
    """A part of a long computation."""

    name: str  # a hash of all that it depends on
    # From what all parts share, the device, and a function to call after each step, to tensors by
    # name.
    compute: Callable[[Any, torch.device, OnStep], Mapping[str, Tensor]]
    steps: int = 1  # for the progress bar

    def tensors(
        self, shared: Any, device: torch.device, on_step: OnStep = _count_nothing
    ) -> dict[str, Tensor]:
        """What it computes, in the memory of the processor."""
        tensors = self.compute(shared, device, on_step)
        return {name: tensor.cpu() for name, tensor in tensors.items()}


@dataclass(frozen=True)
class Work(Generic[Result]):
    """A long computation in parts.

    Attributes
    ----------
    description : str
        For the progress bar.
    shared : object
        What every part is computed from.
    parts : sequence of Part
        No two of the same name.
    join : callable
        Makes the result from the tensors of all parts, in order.
    device : torch.device
        Where parts are computed.
    unit : str
        What the progress bar counts.

    Examples
    --------
    >>> def square(number, device, on_step):
    ...     return {"value": torch.tensor(number**2)}
    >>> Work("squares", 3, [Part("three", square)], lambda parts: parts[0]["value"].item()).result()
    9
    """

    description: str
    shared: Any
    parts: Sequence[Part]
    join: Callable[[list[dict[str, Tensor]]], Result]
    device: torch.device = _CPU
    unit: str = "step"

    def result(self) -> Result:
        """The result of parts that are computed here, one after the other, and not kept."""
        return self.join([part.tensors(self.shared, self.device) for part in self.parts])
