"""What `paperlib evaluate`, `audit`, `compare` and `training` share: their options and their files.

The types named `...Option` are the options with their help. A `Job` holds what a user gave for
them, reads the files and says in the JSON how to repeat the run.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from paperlib import __version__, storage
from paperlib.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from boltzmann_likelihood.evaluation.result import Effort
    from boltzmann_likelihood.sources import ForeignRBM, Images, Inputs

_Read = TypeVar("_Read")

ModelArgument = Annotated[
    Path,
    typer.Argument(
        help="A file with the weights and biases of an RBM, a DBM or a DBN: .safetensors, .npz, "
        ".mat, .pt, HDF5 or .skops, whatever the arrays are called; an archive of rbms "
        "(ARCHIVE.h5:update_N for one of its models) or of RestrictedBoltzmannMachines.jl; or "
        "three files, W.npy,b.npy,a.npy.",
    ),
]
DataOption = Annotated[
    Path,
    typer.Option(
        metavar="FILE",
        help="Test images: .npy, .npz, .mat, .csv, .pt, HDF5 or IDX, also gzipped; "
        "FILE.npz:x_test is one of several arrays.",
    ),
]
OptionalDataOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Test images: .npy, .npz, .mat, .csv, .pt, HDF5 or IDX, also gzipped; "
        "FILE.npz:x_test is one of several arrays. Without them, only ln Z is estimated.",
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
        help="Weights of the test images, one number of at least 0 for each; their sum counts as "
        "the number of independent images.",
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
        help="Which array is what, where the file does not tell: weights=W,visible=b,hidden=a or "
        "some of these. weights=W.T: the rows of W are hidden units, \\[hidden, visible], as in "
        "nn.Linear. visible=0, hidden=0: there are no such biases. ignore=NAME: this array, or "
        "group of entries, is not part of the model; may be repeated. layers.0.weights=W, "
        "layers.1=GROUP: the same for one layer of a stack.",
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
        help="Intermediate distributions of the largest runs, at least 32. The minutes do not "
        "count then, and the same seed gives the same numbers.",
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
class ReadFiles:
    """What the files of a job hold.

    Attributes
    ----------
    models : dict of str to ForeignRBM
        Models by name, on the device of the job; checkpoints in the order of training.
    test, train : Images or None
        Test and training images.
    weights : Tensor or None, shape [N]
        Weights of the test images.
    left_out : tuple of str
        A sentence for each checkpoint that could not be read.
    """

    models: dict[str, ForeignRBM]
    test: Images | None
    train: Images | None
    weights: Tensor | None
    left_out: tuple[str, ...] = ()

    @property
    def images(self) -> Images:
        """The test images, for a command that needs them."""
        assert self.test is not None
        return self.test

    @property
    def counted_pixels(self) -> Tensor | None:
        """The test images without those of weight zero, [N, D]; None if there are none."""
        if self.test is None:
            return None
        pixels = self.test.pixels
        return pixels if self.weights is None else pixels[self.weights > 0]


@dataclass(frozen=True)
class Job:
    """The files and options of `paperlib evaluate`, `audit`, `compare` or `training`.

    A field is the value of the option of its name, whose help explains it. `record` is what a
    result keeps of them so that the run can be repeated.

    Examples
    --------
    >>> Job(Path("t.npy"), seed=3).repeat("audit", [Path("m.npz")], {"claimed-log-z": 451.2}, None)
    'paperlib audit m.npz --data t.npy --seed 3 --device cpu --claimed-log-z 451.2'
    """

    data: Path | None
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

    def files(self, models: Mapping[str, Path]) -> dict[str, Path]:
        """The files that are read: these models, and images and weights if there are any."""
        paths = {**models, "data": self.data, "train": self.train, "weights": self.weights}
        return {name: path for name, path in paths.items() if path is not None}

    def read_models(self, models: Mapping[str, Path]) -> ReadFiles:
        """Models, with images that are for all of them."""
        from boltzmann_likelihood.evaluation.interruption import before_estimate
        from boltzmann_likelihood.files import read_model

        def reader(name: str, path: Path, width: Callable[[], int] | None) -> dict[str, ForeignRBM]:
            return {name: read_model(path, self.names, width)}

        with before_estimate("reading the files"):
            return self._read(*(partial(reader, name, path) for name, path in models.items()))

    def read_checkpoints(
        self, paths: Sequence[Path], updates: Sequence[int] | None, at_most: int
    ) -> ReadFiles:
        """The checkpoints of a training, with images that are for the first of them."""
        from boltzmann_likelihood.evaluation.interruption import before_estimate
        from boltzmann_likelihood.files import read_checkpoints

        left_out: list[str] = []

        def reader(width: Callable[[], int] | None) -> dict[str, ForeignRBM]:
            return read_checkpoints(paths, updates, at_most, left_out.append, width, self.names)

        with before_estimate("reading the files"):
            return replace(self._read(reader), left_out=tuple(left_out))

    def _read(
        self, *readers: Callable[[Callable[[], int] | None], Mapping[str, ForeignRBM]]
    ) -> ReadFiles:
        """Read models and images; the images have to fit the first model of each reader."""
        from boltzmann_likelihood.files.inputs import RowsFile, images_of, read_weights

        if self.data is None and self.weights is not None:
            raise InputError("weights: expected --data as well, got weights without test images")
        named = {"data": self.data, "train": self.train}
        files = [RowsFile(name, path) for name, path in named.items() if path is not None]
        width = files[0].width if files else None

        def images_for(model: ForeignRBM | None, file: RowsFile) -> Images:
            """Images that fit a model or, for None, that would fit any model."""
            width = file.width() if model is None else model.rbm.num_visible
            spins = model is None or model.spin_visible
            return images_of(file, width, self.binarize, spins, self.threshold)

        model_sets, errors = _results_and_errors(partial(reader, width) for reader in readers)
        if errors:
            # A user learns at once what is wrong with a model and what is wrong with the images.
            errors += _results_and_errors(partial(images_for, None, file) for file in files)[1]
        _raise_together(errors)
        image_sets: list[list[Images]] = []
        for models in model_sets:
            first_model = next(iter(models.values()))
            image_set, errors = _results_and_errors(
                partial(images_for, first_model, file) for file in files
            )
            _raise_together(errors)
            image_sets.append(image_set)
        images = dict(zip((file.name for file in files), image_sets[0], strict=True))
        test = images.get("data")
        weights = None
        if self.weights is not None and test is not None:
            weights = read_weights(self.weights, len(test.pixels))
        on_device = {
            name: replace(model, rbm=model.rbm.to(self.device))
            for models in model_sets
            for name, model in models.items()
        }
        return ReadFiles(on_device, test, images.get("train"), weights)

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
        values = {**{name: getattr(self, name) for name in shared}, **options}
        if effort is not None:
            values |= {"steps": effort.num_steps, "tempering-steps": effort.tempering_steps}
        for name, value in values.items():
            if value is not None:
                words += [f"--{name}", str(value)]
        return shlex.join(words)

    def record(
        self,
        command: str,
        models: Mapping[str, Path],
        inputs: Inputs,
        effort: Effort | None,
        options: Mapping[str, object],
    ) -> dict[str, Any]:
        """What a JSON file says about the run, and how to repeat it."""
        from boltzmann_likelihood.provenance import made_by

        return {
            "command": command,
            "version": __version__,
            "seed": self.seed,
            "device": self.device,
            "binarization": inputs.binarization,
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


def _results_and_errors(
    readers: Iterable[Callable[[], _Read]],
) -> tuple[list[_Read], list[InputError]]:
    """What these functions read, and the errors of those that could not."""
    results = []
    errors = []
    for reader in readers:
        try:
            results.append(reader())
        except InputError as error:
            errors.append(error)
    return results, errors


def _raise_together(errors: list[InputError]) -> None:
    """Raise all these errors in one, if there are any."""
    by_message = {str(error): error for error in errors}
    # A model whose layers only the images can tell apart repeats the error of the images: it is not
    # what is wrong where these cannot be read.
    messages = [
        message
        for message in by_message
        if not any(message.endswith(f": {other}") for other in by_message)
    ]
    if len(messages) == 1:
        raise by_message[messages[0]]
    if messages:
        raise InputError("\n".join(messages))


def _checksum(path: Path) -> str:
    """SHA-256 of a file.

    For a part of a file it is that of the whole file; for several files, that of their checksums.
    """
    checksums = [storage.file_sha256(file) for file in _files_of(path)]
    return checksums[0] if len(checksums) == 1 else storage.sha256(" ".join(checksums).encode())


def _files_of(path: Path) -> list[Path]:
    """The files that a path stands for: FILE, FILE:PART, FILE,FILE,FILE, or a folder of models."""
    for file in (path, Path(storage.file_and_member(str(path))[0])):
        if storage.is_file(file):
            return [file]
    if os.path.isdir(path):
        return [file for file in path.iterdir() if file.is_file()]
    parts = str(path).split(",")
    if len(parts) == 1:
        return []
    return [file for part in parts for file in _files_of(Path(part))]


def require_files(job: Job, models: Mapping[str, Path], **outputs: Path | None) -> None:
    """Refuse, before anything is computed, outputs that cannot be written or would replace a file.

    Raises
    ------
    InputError
        If an output could not be written, or is also read or written otherwise.
    """
    taken = {_place(file) for path in job.files(models).values() for file in _files_of(path)}
    for name, file in {"json": job.json, **outputs}.items():
        if file is None:
            continue
        folder = file.absolute().parent
        if not folder.is_dir():
            raise InputError(f"{name}: expected a file in a folder that exists, got {file}")
        if (file.exists() and not file.is_file()) or not os.access(folder, os.W_OK):
            raise InputError(
                f"{name}: expected to be able to write {file}: it is no ordinary file, or its "
                "folder allows no new one"
            )
        if _place(file) in taken:
            raise InputError(
                f"{name}: expected a file that this command neither reads nor writes otherwise, "
                f"got {file}"
            )
        taken.add(_place(file))
    plot = outputs.get("plot")
    if plot is not None:
        from boltzmann_likelihood.evaluation.picture import require_matplotlib

        if plot.suffix not in (".svg", ".png", ".pdf"):
            raise InputError(f"plot: expected a .svg, .png or .pdf file, got {plot.name!r}")
        require_matplotlib()


def _place(file: Path) -> object:
    """What is the same for all names of a file, links included."""
    try:
        status = file.stat()
    except OSError:
        return os.path.realpath(file)
    return status.st_dev, status.st_ino
