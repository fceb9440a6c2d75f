"""The options that `paperlib evaluate`, `audit`, `compare` and `training` share, and the work that they stand for."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from paperlib import __version__, storage
from paperlib.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from boltzmann_likelihood.evaluation.result import Effort, Evaluation
    from boltzmann_likelihood.files import ForeignRBM

_Read = TypeVar("_Read")

ModelArgument = Annotated[
    Path,
    typer.Argument(
        help="A file with the weights and biases of an RBM, a DBM or a DBN: .safetensors, .npz, .mat, .pt, HDF5 or .skops, "
        "whatever the arrays are called; an archive of rbms (ARCHIVE.h5:update_N for one of its models) or of RestrictedBoltzmannMachines.jl; "
        "or three files, W.npy,b.npy,a.npy.",
    ),
]
DataOption = Annotated[
    Path,
    typer.Option(
        metavar="FILE",
        help="Test images: .npy, .npz, .mat, .csv, .pt, HDF5 or IDX, also gzipped; FILE.npz:x_test is "
        "one of several arrays.",
    ),
]
TrainOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Training images, used only for the start of the chains and for the base rates beside "
        "the value.",
    ),
]
WeightsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Weights of the test images, one number of at least 0 for each; their sum counts as the "
        "number of independent images.",
    ),
]
BinarizeOption = Annotated[
    int | None,
    typer.Option(
        metavar="SEED", help="Draw grey pixels once, with their intensity as probability."
    ),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(metavar="T", help="Or turn pixels on where their value in the file is above T."),
]
NamesOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        # The backslash keeps a bracket from being taken for markup, which is not printed.
        help="Which array is what, where the file does not tell: weights=W,visible=b,hidden=a or some "
        "of these. weights=W.T: the rows of W are hidden units, \\[hidden, visible], as in "
        "nn.Linear. visible=0, hidden=0: there are no such biases. ignore=NAME: this array, or group "
        "of entries, is not part of the model; may be repeated.",
    ),
]
MinutesOption = Annotated[
    float,
    typer.Option(
        metavar="MINUTES", help="Time to spend on the estimate, a third on parallel tempering."
    ),
]
StepsOption = Annotated[
    int | None,
    typer.Option(
        metavar="K",
        help="Intermediate distributions of the largest runs, at least 32. The minutes do not count "
        "then, and the same seed gives the same numbers.",
    ),
]
TemperingStepsOption = Annotated[
    int | None,
    typer.Option(
        "--tempering-steps",
        "--ladder-steps",
        metavar="N",
        help="Chain-steps of parallel tempering, with --steps; by default half of those of AIS and "
        "RAISE. The old name --ladder-steps goes with the next release.",
    ),
]
SeedOption = Annotated[int, typer.Option(metavar="SEED", help="Seed of all chains.")]
DeviceOption = Annotated[
    str, typer.Option(metavar="DEVICE", help="Where chains walk: cpu or cuda.")
]
JsonOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write the result as JSON.")
]


@dataclass(frozen=True)
class Job:
    """The files and options of `paperlib evaluate`, `audit`, `compare` or `training`, and what a result keeps of them so that the run can be repeated.

    A field is what the option of its name was given; the option's help explains it.

    Examples
    --------
    >>> Job(Path("t.npy"), seed=3).repeat("audit", [Path("m.npz")], {"claimed-log-z": 451.2}, None)
    'paperlib audit m.npz --data t.npy --seed 3 --device cpu --claimed-log-z 451.2'
    """

    data: Path
    train: Path | None = None
    weights: Path | None = None
    binarize: int | None = None
    threshold: float | None = None
    names: str | None = None
    minutes: float = 2.0
    steps: int | None = None
    tempering_steps: int | None = None
    seed: int = 0
    device: str = "cpu"
    json: Path | None = None

    def __post_init__(self) -> None:
        from paperlib.validation import require_device

        require_device("device", self.device)

    @property
    def binarization(self) -> str:
        """How the images became binary."""
        if self.threshold is not None:
            return f"pixels on where above {self.threshold:g}"
        if self.binarize is None:
            return "images binary as given"
        return f"images binarised once with seed {self.binarize}"

    def files(self, models: Mapping[str, Path]) -> dict[str, Path]:
        """What is read: these models, and the images and weights that were given."""
        given = {**models, "data": self.data, "train": self.train, "weights": self.weights}
        return {name: path for name, path in given.items() if path is not None}

    def read_models(self, *models: Path) -> list[ForeignRBM]:
        """Models, as read from their files."""
        from boltzmann_likelihood.files.inputs import read_model

        return self.read(*(partial(read_model, model, self.names, self.width) for model in models))

    def read(self, *models: Callable[[], _Read]) -> list[_Read]:
        """What these functions read; what is wrong with the images is said together with what is wrong with a model."""
        from boltzmann_likelihood.files.inputs import check_rows

        found, wrong = _tried(*models)
        if wrong:
            given = (self.binarize, self.threshold)
            rows = (partial(check_rows, *each, *given) for each in self._images())
            wrong += _tried(*rows)[1]
        _raise(wrong)
        return found

    def _images(self) -> list[tuple[str, Path]]:
        """The files of test and training images, by their options."""
        given = (("data", self.data), ("train", self.train))
        return [(name, path) for name, path in given if path is not None]

    def width(self) -> int:
        """How many values a test image has."""
        from boltzmann_likelihood.files.inputs import read_rows

        return math.prod(read_rows("data", self.data).shape[1:])

    def read_rows(
        self, found: ForeignRBM
    ) -> tuple[Tensor, Tensor | None, Tensor | None, tuple[str, ...]]:
        """Test images, training images and weights for a model, and notes on how they were read."""
        from boltzmann_likelihood.files.inputs import read_images, read_weights

        notes: list[str] = []

        def rows(name: str, path: Path) -> Tensor:
            width, spins = found.rbm.num_visible, found.spin_visible
            return read_images(
                name, path, width, self.binarize, spins, self.threshold, notes.append
            )

        images, wrong = _tried(*(partial(rows, *each) for each in self._images()))
        _raise(wrong)
        test, train = images[0], images[1] if self.train else None
        weights = None if self.weights is None else read_weights(self.weights, len(test))
        return test, train, weights, tuple(notes)

    def repeat(
        self,
        command: str,
        models: Iterable[Path],
        options: Mapping[str, object],
        effort: Effort | None,
    ) -> str:
        """The command that repeats the run, on a machine of any speed."""
        words = ["paperlib", command, *map(str, models)]
        shared = ("data", "train", "weights", "binarize", "threshold", "names", "seed", "device")
        given = {**{name: getattr(self, name) for name in shared}, **options}
        if effort is not None:
            given |= {"steps": effort.num_steps, "tempering-steps": effort.tempering_steps}
        for name, value in given.items():
            if value is not None:
                words += [f"--{name}", str(value)]
        return shlex.join(words)

    def record(
        self,
        command: str,
        models: Mapping[str, Path],
        evaluations: Iterable[Evaluation],
        options: Mapping[str, object],
    ) -> dict[str, Any]:
        """What a JSON file says about the run: version, seed, files with their SHA-256, options, machine, and how to repeat it."""
        from boltzmann_likelihood.provenance import made_by

        effort = next((found.effort for found in evaluations if found.effort is not None), None)
        return {
            "command": command,
            "version": __version__,
            "seed": self.seed,
            "device": self.device,
            "binarization": self.binarization,
            "binarize_seed": self.binarize,
            "threshold": self.threshold,
            "names": self.names,
            "options": dict(options),
            "files": {
                name: {"path": str(path), "sha256": _checksum(path)}
                for name, path in self.files(models).items()
            },
            "repeat": self.repeat(command, models.values(), options, effort),
            "made_by": made_by(),
        }


def _tried(*readers: Callable[[], _Read]) -> tuple[list[_Read], list[InputError]]:
    """What these functions read, and the errors of those that could not."""
    found, wrong = [], []
    for reader in readers:
        try:
            found.append(reader())
        except InputError as error:
            wrong.append(error)
    return found, wrong


def _raise(wrong: list[InputError]) -> None:
    """Raise all these errors in one, if there are any."""
    said = {str(error): error for error in wrong}
    # A model whose layers only the images can tell apart is not what is wrong where these cannot be read.
    kept = [text for text in said if not any(text.endswith(f": {other}") for other in said)]
    if len(kept) == 1:
        raise said[kept[0]]
    if kept:
        raise InputError("\n".join(kept))


def _checksum(path: Path) -> str:
    """SHA-256 of a file; for a part of a file, that of the whole file, and for several files, that of their checksums."""
    found = [storage.file_sha256(file) for file in _files_of(path)]
    return found[0] if len(found) == 1 else storage.sha256(" ".join(found).encode())


def _files_of(path: Path) -> list[Path]:
    """The files that a path stands for: FILE, FILE:PART, FILE,FILE,FILE, or a folder of models."""
    for file in (path, Path(storage.file_and_member(str(path))[0])):
        if storage.is_file(file):
            return [file]
    if os.path.isdir(path):
        return [file for file in path.iterdir() if file.is_file()]
    parts = str(path).split(",")
    return [file for part in parts for file in _files_of(Path(part))] if len(parts) > 1 else []


def require_files(job: Job, models: Mapping[str, Path], **outputs: Path | None) -> None:
    """Refuse a file for results, before anything is computed, if it could not be written or something else would be lost."""
    taken = {_place(file) for path in job.files(models).values() for file in _files_of(path)}
    for name, file in {"json": job.json, **outputs}.items():
        if file is None:
            continue
        folder = file.absolute().parent
        if not folder.is_dir():
            raise InputError(f"{name}: expected a file in a folder that exists, got {file}")
        if (file.exists() and not file.is_file()) or not os.access(folder, os.W_OK):
            raise InputError(
                f"{name}: expected to be able to write {file}: it is no ordinary file, or its folder allows no new one"
            )
        if _place(file) in taken:
            raise InputError(
                f"{name}: expected a file that this command neither reads nor writes otherwise, got {file}"
            )
        taken.add(_place(file))
    if (plot := outputs.get("plot")) is not None:
        from boltzmann_likelihood.evaluation.picture import require_matplotlib

        if plot.suffix not in (".svg", ".png", ".pdf"):
            raise InputError(f"plot: expected a .svg, .png or .pdf file, got {plot.name!r}")
        require_matplotlib()


def _place(file: Path) -> object:
    """What is the same for all names of a file, links included."""
    try:
        found = file.stat()
    except OSError:
        return os.path.realpath(file)
    return found.st_dev, found.st_ino
