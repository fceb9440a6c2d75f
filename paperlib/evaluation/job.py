"""What a command is asked to do (files, options and seed), and what a result keeps of it so that the run can be repeated."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from paperlib import __version__, storage
from paperlib.errors import InputError
from paperlib.evaluation.inputs import (
    images_of,
    read_model,
    read_rows,
    read_weights,
    sequences_of,
)
from paperlib.evaluation.result import Effort, Evaluation
from paperlib.models import PottsRBM
from paperlib.models.foreign import ForeignRBM
from paperlib.provenance import made_by
from paperlib.validation import require_device


@dataclass(frozen=True)
class Job:
    """The files and options of `paperlib evaluate`, `audit` or `compare`.

    Attributes
    ----------
    command : str
        `evaluate`, `audit` or `compare`.
    models : tuple of Path
        One or two.
    data, train, weights : Path or None
        Test images, training images, and weights of test images.
    binarize : int or None
        Seed with which grey pixels are drawn; None if they are not drawn.
    threshold : float or None
        Value above which a pixel is on; None if the images are already binary, or drawn.
    names : str or None
        Which array of a model's file is what, as `read_model` takes it.
    seed : int
        Seed of all chains.
    device : str
        `cpu` or `cuda`.
    options : mapping
        Further options with their values, such as a claim.

    Examples
    --------
    >>> job = Job("evaluate", (Path("m.npz"),), Path("t.npy"), seed=3)
    >>> job.repeat(Effort(1_000, 50_000))
    'paperlib evaluate m.npz --data t.npy --seed 3 --device cpu --steps 1000 --ladder-steps 50000'
    """

    command: str
    models: tuple[Path, ...]
    data: Path
    train: Path | None = None
    weights: Path | None = None
    binarize: int | None = None
    threshold: float | None = None
    names: str | None = None
    seed: int = 0
    device: str = "cpu"
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def binarization(self) -> str:
        """How the images became binary."""
        if self.threshold is not None:
            return f"pixels on where above {self.threshold:g}"
        if self.binarize is None:
            return "images binary as given"
        return f"images binarised once with seed {self.binarize}"

    def read_model(self, number: int = 0) -> ForeignRBM:
        """A model, as read from its file."""
        require_device("device", self.device)
        return read_model(
            self.models[number],
            self.names,
            lambda: read_rows("data", self.data)[0].shape[1],
        )

    def read_rows(
        self, found: ForeignRBM
    ) -> tuple[Tensor, Tensor | None, Tensor | None, tuple[str, ...]]:
        """Test images, training images and weights for a model, and notes on how they were read."""
        notes: list[str] = []

        def rows(name: str, path: Path) -> Tensor:
            array, said = read_rows(name, path)
            notes.extend(said)
            if isinstance(found.rbm, PottsRBM):
                for option, value in (("binarize", self.binarize), ("threshold", self.threshold)):
                    if value is not None:
                        raise InputError(
                            f"{option}: expected none for sequences of {found.rbm.num_states} states, got {value}"
                        )
                return sequences_of(name, array, found.rbm, path)
            width = found.rbm.num_visible
            return images_of(
                name, array, width, path, self.binarize, found.spin_visible, self.threshold
            )

        test = rows("data", self.data)
        train = None if self.train is None else rows("train", self.train)
        weights = None if self.weights is None else read_weights(self.weights, len(test))
        return test, train, weights, tuple(notes)

    def counted(self, test: Tensor, weights: Tensor | None) -> Tensor:
        """The test images with a weight above zero."""
        return test if weights is None else test[weights > 0]

    def repeat(self, effort: Effort | None) -> str:
        """The command that repeats the run, on a machine of any speed."""
        words = ["paperlib", self.command, *map(str, self.models)]
        given: dict[str, object] = {
            "data": self.data,
            "train": self.train,
            "weights": self.weights,
            "binarize": self.binarize,
            "threshold": self.threshold,
            "names": self.names,
            "seed": self.seed,
            "device": self.device,
            **self.options,
        }
        if effort is not None:
            given |= {"steps": effort.num_steps, "ladder-steps": effort.ladder_steps}
        for name, value in given.items():
            if value is not None:
                words += [f"--{name}", str(value)]
        return shlex.join(words)

    def record(self, *evaluations: Evaluation) -> dict[str, Any]:
        """What a JSON file says about the run: version, seed, files with their SHA-256, options, machine, and how to repeat it."""
        effort = next((found.effort for found in evaluations if found.effort is not None), None)
        files = {
            "model": self.models[0],
            **({"second": self.models[1]} if len(self.models) > 1 else {}),
            "data": self.data,
            "train": self.train,
            "weights": self.weights,
        }
        return {
            "command": self.command,
            "version": __version__,
            "seed": self.seed,
            "device": self.device,
            "binarization": self.binarization,
            "binarize_seed": self.binarize,
            "threshold": self.threshold,
            "names": self.names,
            "options": dict(self.options),
            "files": {
                name: {"path": str(path), "sha256": _checksum(path)}
                for name, path in files.items()
                if path is not None
            },
            "repeat": self.repeat(effort),
            "made_by": made_by(),
        }


def _checksum(path: Path) -> str:
    """SHA-256 of a file; for a part of a file, that of the whole file, and for several files, that of their checksums."""
    if storage.is_file(path):
        return storage.file_sha256(path)
    if "," in str(path):
        return storage.sha256(" ".join(map(_checksum, map(Path, str(path).split(",")))).encode())
    return storage.file_sha256(str(path).rpartition(":")[0])
