"""The `paperlib` command.

`evaluate`, `audit`, `compare` and `training` are about models of the user's own, and work alike. A
`Job` holds the options, refuses outputs that could not be written and reads the files. A function
of `boltzmann_likelihood.evaluation` computes the result, and
`boltzmann_likelihood.evaluation.report` puts it into words for the terminal and into a dictionary
for `--json`. The commands of the book come from other packages, such as the book's companion.
"""

from __future__ import annotations

import atexit
import errno
import gc
import io
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from boltzmann_likelihood.cli_options import (
    BinarizeOption,
    DataOption,
    DeviceOption,
    Job,
    JsonOption,
    MinutesOption,
    ModelArgument,
    NamesOption,
    OptionalDataOption,
    ReadFiles,
    SeedOption,
    StepsOption,
    TemperingStepsOption,
    ThresholdOption,
    TrainOption,
    WeightsOption,
    require_files,
)
from paperlib import __version__, storage
from paperlib.errors import InputError, ReproductionError

# The book's companion brings these; without it, they say how to get it.
_OF_THE_BOOK = {"train", "models", "reproduce", "check", "long", "refresh", "book"}
# How torch says that there is not enough memory, of the machine and of a GPU, beside MemoryError
# and ENOMEM; and the size of the allocation that failed.
_NO_MEMORY = re.compile(
    r"(can't allocate|not enough|out of) memory|_ALLOC_FAILED|bad_alloc", re.IGNORECASE
)
_ALLOCATION = re.compile(r"(?:tried|unable) to allocate (\d[\d.]*) ([KMGTP]i)?b", re.IGNORECASE)
# The commands that give an estimate, and whether the one that runs has printed it.
_ESTIMATE_COMMANDS = {"evaluate", "audit", "compare", "training"}
_PRINTED: ContextVar[bool] = ContextVar("printed", default=False)


class _InterruptionError(Exception):
    """Ctrl-C or SIGTERM that ended a command, in words. click would end the process without any."""


class _Commands(TyperGroup):
    """The commands of the library, and those that other installed packages bring."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is None and cmd_name in _OF_THE_BOOK:
            raise InputError(
                f"{cmd_name}: expected the package boltzmann-companion to be installed, which "
                "brings this command (in a clone of the repository: make install, or pip install "
                "./book/companion)"
            )
        return command

    def invoke(self, ctx: Any) -> Any:
        _PRINTED.set(False)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = partial(_show_warning, warnings.showwarning)
                return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            if ctx.invoked_subcommand not in _ESTIMATE_COMMANDS or _PRINTED.get():
                raise _InterruptionError("interrupted") from stop
            step = next(iter(getattr(stop, "__notes__", ())), "getting ready")
            raise _InterruptionError(
                f"interrupted while {step}. There is no estimate yet, and no file was written."
            ) from stop


def _show_warning(
    show_as_python: Callable[..., None],
    message: Warning | str,
    category: type[Warning],
    filename: str,
    *place: Any,
    **options: Any,
) -> None:
    """Show a warning of this package as a sentence, without the line of code it comes from."""
    if Path(filename).is_relative_to(Path(__file__).parent):
        typer.echo(f"paperlib: {message}", err=True)
    else:
        show_as_python(message, category, filename, *place, **options)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="How probable are these images under this Boltzmann machine? evaluate, audit, compare and "
    "training say it of models of your own; the other commands are for the book.",
)

# What the machine refuses: a folder without permission, a file system that is read-only or full.
# None of it is a bug of ours.
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}


@app.command(
    help="The average test log-probability of a model, with its error and a verdict on it.\n\n"
    "Exact if the smaller layer has at most 25 units, otherwise by parallel tempering. AIS and "
    "RAISE, two other estimates, are looked at for reasons to doubt it. Ctrl-C ends the run with "
    "the estimate so far. Without --data, only ln Z is estimated, with its interval and a verdict."
)
def evaluate(
    model: ModelArgument,
    data: OptionalDataOption = None,
    train: TrainOption = None,
    weights: WeightsOption = None,
    binarize: BinarizeOption = None,
    threshold: ThresholdOption = None,
    names: NamesOption = None,
    minutes: MinutesOption = 2.0,
    steps: StepsOption = None,
    tempering_steps: TemperingStepsOption = None,
    seed: SeedOption = 0,
    device: DeviceOption = "cpu",
    json: JsonOption = None,
    tolerance: Annotated[
        float,
        typer.Option(
            metavar="NATS",
            help="Stop before the minutes are over where a trusted interval is no wider.",
        ),
    ] = 0.01,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also draw parallel tempering and the bracket against K, as .svg, .png or .pdf. "
            "For an exact value, draws ln p(v) of the test images.",
        ),
    ] = None,
) -> None:
    """Evaluate a model."""
    from boltzmann_likelihood.evaluation import evaluate as evaluate_model
    from boltzmann_likelihood.evaluation.audit import audit_evaluation
    from boltzmann_likelihood.evaluation.picture import plot as plot_evaluation
    from boltzmann_likelihood.evaluation.picture import save_picture
    from boltzmann_likelihood.evaluation.report import (
        as_dict,
        audit_verdict,
        describe_evaluation,
        describe_stored,
    )

    job = Job(
        data=data,
        train=train,
        weights=weights,
        binarize=binarize,
        threshold=threshold,
        names=names,
        minutes=minutes,
        steps=steps,
        tempering_steps=tempering_steps,
        seed=seed,
        device=device,
        json=json,
    )
    models = {"model": model}
    if plot is not None and data is None:
        raise InputError("plot: expected --data as well, since the picture shows averages")
    require_files(job, models, plot=plot)
    files = job.read_models(models)
    _print_origin("Model", "model", files)
    loaded = files.models["model"]
    options = _options(job, files)
    evaluation = evaluate_model(loaded, files.test, tolerance=tolerance, **options)
    _print_result(describe_evaluation(evaluation))
    record = as_dict(evaluation)
    record["run"] = job.record("evaluate", models, evaluation.inputs, evaluation.effort, {})
    if loaded.stored_log_z is not None:
        pixels = files.counted_pixels
        stored = audit_evaluation(loaded, pixels, evaluation, loaded.stored_log_z)
        typer.echo(describe_stored(stored))
        record["stored_log_z"] = audit_verdict(stored)
    _write_json(job.json, record)
    _write("plot", plot, partial(save_picture, plot_evaluation, evaluation))


@app.command(
    help="Can this ln Z, or this test log-probability, be true? Impossible, not supported, or "
    "consistent.\n\n"
    "Without a claim, the ln Z that an archive itself stores is in question. A claimed ln Z can be "
    "audited without --data. The exit code is 0 for "
    "consistent, 3 for not supported, and 4 for impossible; 2 means an input that cannot be used."
)
def audit(
    model: ModelArgument,
    data: OptionalDataOption = None,
    train: TrainOption = None,
    claimed_log_z: Annotated[
        float | None,
        typer.Option(metavar="NATS", help="The ln Z in question, of the model as the file has it."),
    ] = None,
    claimed_log_prob: Annotated[
        float | None,
        typer.Option(metavar="NATS", help="Or the average ln p(v) of the test images in question."),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            metavar="NATS", help="How far off a claim may be and still count as consistent."
        ),
    ] = 0.1,
    weights: WeightsOption = None,
    binarize: BinarizeOption = None,
    threshold: ThresholdOption = None,
    names: NamesOption = None,
    minutes: MinutesOption = 2.0,
    steps: StepsOption = None,
    tempering_steps: TemperingStepsOption = None,
    seed: SeedOption = 0,
    device: DeviceOption = "cpu",
    json: JsonOption = None,
) -> None:
    """Audit a claimed ln Z or average log-probability."""
    from boltzmann_likelihood.evaluation import audit as audit_claim
    from boltzmann_likelihood.evaluation.audit import EXIT_CODES
    from boltzmann_likelihood.evaluation.report import as_dict, audit_verdict, describe_audit

    job = Job(
        data=data,
        train=train,
        weights=weights,
        binarize=binarize,
        threshold=threshold,
        names=names,
        minutes=minutes,
        steps=steps,
        tempering_steps=tempering_steps,
        seed=seed,
        device=device,
        json=json,
    )
    models = {"model": model}
    require_files(job, models)
    claims = {
        "claimed-log-z": claimed_log_z,
        "claimed-log-prob": claimed_log_prob,
        "tolerance": tolerance,
    }
    files = job.read_models(models)
    _print_origin("Model", "model", files)
    loaded = files.models["model"]
    if claimed_log_z is None and claimed_log_prob is None:
        claimed_log_z = loaded.stored_log_z
        if claimed_log_z is None:
            raise InputError(
                f"claimed-log-z: expected it, or --claimed-log-prob, since {model} stores no ln Z "
                "of its own"
            )
    result = audit_claim(
        loaded,
        files.test,
        claimed_log_z=claimed_log_z,
        claimed_log_prob=claimed_log_prob,
        tolerance=tolerance,
        **_options(job, files),
    )
    _print_result(describe_audit(result))
    evaluation = result.evaluation
    run = job.record("audit", models, evaluation.inputs, evaluation.effort, claims)
    record = {**audit_verdict(result), "evaluation": as_dict(evaluation), "run": run}
    _write_json(job.json, record)
    raise typer.Exit(EXIT_CODES[result.verdict])


@app.command(
    help="Compare two models: which gives the test images the higher probability, and whether that "
    "could be chance.\n\n"
    "The difference is taken image by image, and its error includes those of both ln Z. The "
    "minutes are for both models together."
)
def compare(
    first: ModelArgument,
    second: ModelArgument,
    data: DataOption,
    train: TrainOption = None,
    weights: WeightsOption = None,
    binarize: BinarizeOption = None,
    threshold: ThresholdOption = None,
    names: NamesOption = None,
    minutes: MinutesOption = 2.0,
    steps: StepsOption = None,
    tempering_steps: TemperingStepsOption = None,
    seed: SeedOption = 0,
    device: DeviceOption = "cpu",
    json: JsonOption = None,
) -> None:
    """Compare two models."""
    from boltzmann_likelihood.evaluation import compare as compare_models
    from boltzmann_likelihood.evaluation.report import comparison_as_dict, describe_comparison

    job = Job(
        data=data,
        train=train,
        weights=weights,
        binarize=binarize,
        threshold=threshold,
        names=names,
        minutes=minutes,
        steps=steps,
        tempering_steps=tempering_steps,
        seed=seed,
        device=device,
        json=json,
    )
    models = {"model": first, "second": second}
    require_files(job, models)
    files = job.read_models(models)
    one = files.models["model"]
    other = files.models["second"]
    if one.spin_visible != other.spin_visible:
        raise InputError("second: expected the same kind of visible units as the first model has")
    _print_origin("Model", "model", files)
    _print_origin("Second model", "second", files)
    result = compare_models(one, other, files.images, **_options(job, files))
    _print_result(describe_comparison(result))
    effort = result.first.effort or result.second.effort
    run = job.record("compare", models, result.first.inputs, effort, {})
    _write_json(job.json, {**comparison_as_dict(result), "run": run})


@app.command(
    help="Where along its training was a model best? The test log-probability of every checkpoint, "
    "with intervals and a verdict.\n\n"
    "All checkpoints get a quarter of the minutes, and those that could be best the rest. Says "
    "whether the best one can be told from its neighbours. Ctrl-C ends the run with the results so "
    "far."
)
def training(
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODELS",
            help="An archive .h5 of rbms, a folder of model files, or at least two of them in the "
            "order of training.",
        ),
    ],
    data: DataOption,
    train: TrainOption = None,
    weights: WeightsOption = None,
    binarize: BinarizeOption = None,
    threshold: ThresholdOption = None,
    names: NamesOption = None,
    minutes: MinutesOption = 2.0,
    steps: StepsOption = None,
    tempering_steps: TemperingStepsOption = None,
    seed: SeedOption = 0,
    device: DeviceOption = "cpu",
    json: JsonOption = None,
    updates: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="Which updates of an archive; by default all."),
    ] = None,
    at_most: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Largest number of checkpoints to take, evenly spaced."
        ),
    ] = 20,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the table as CSV.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw the curve, as .svg, .png or .pdf."),
    ] = None,
) -> None:
    """Evaluate the checkpoints of a training."""
    from csv import DictWriter
    from dataclasses import replace

    from boltzmann_likelihood.evaluation import evaluate_training
    from boltzmann_likelihood.evaluation.picture import plot_training, save_picture
    from boltzmann_likelihood.evaluation.report import describe_training, training_as_dict

    job = Job(
        data=data,
        train=train,
        weights=weights,
        binarize=binarize,
        threshold=threshold,
        names=names,
        minutes=minutes,
        steps=steps,
        tempering_steps=tempering_steps,
        seed=seed,
        device=device,
        json=json,
    )
    named = {f"model_{number}": path for number, path in enumerate(models, start=1)}
    require_files(job, named, csv=csv, plot=plot)
    numbers = None if updates is None else _whole_numbers("updates", updates)
    files = job.read_checkpoints(models, numbers, at_most)
    _print_origin("First model", next(iter(files.models)), files)
    result = evaluate_training(
        list(files.models.values()),
        files.images,
        names=list(files.models),
        left_out=lambda _: None,  # the report has it
        **_options(job, files),
    )
    # Those that could not be read, and those that could not be evaluated.
    not_evaluated = (_of_options(each, "is left out") for each in result.left_out)
    result = replace(result, left_out=(*files.left_out, *not_evaluated))
    _print_result(describe_training(result))
    record = training_as_dict(result)
    options = {
        "minutes": job.minutes,
        "steps": job.steps,
        "tempering-steps": job.tempering_steps,
        "updates": updates,
        "at-most": at_most,
    }
    inputs = result.checkpoints[0].evaluation.inputs
    record["run"] = job.record("training", named, inputs, None, options)
    _write_json(job.json, record)

    def write_table(file: Path) -> None:
        # the names of files as they are, also where ASCII is forced
        with file.open("w", encoding="utf-8", errors="surrogateescape", newline="") as text:
            writer = DictWriter(text, record["checkpoints"][0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(record["checkpoints"])

    _write("csv", csv, write_table)
    _write("plot", plot, partial(save_picture, plot_training, result))


def _print_result(text: str) -> None:
    """Print the result. Whoever stops the command from now on has an estimate."""
    typer.echo(text)
    _PRINTED.set(True)


def _whole_numbers(name: str, text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise InputError(f"{name}: expected whole numbers with commas between them, got {text!r}")
    return [int(part) for part in parts]


def _options(job: Job, files: ReadFiles) -> dict[str, Any]:
    """What is passed on to every evaluation beside the model and the test images."""
    from paperlib.numerics import seeded_generator

    return {
        "train": files.train,
        "weights": files.weights,
        "minutes": job.minutes,
        "generator": seeded_generator(job.seed, job.device),
        "steps": job.steps,
        "tempering_steps": job.tempering_steps,
    }


def _print_origin(title: str, name: str, files: ReadFiles) -> None:
    """Print, before the work, where a model is from, and what was changed on the way.

    Notes on the images follow those on the first model.
    """
    from boltzmann_likelihood.evaluation.report import origin_of
    from boltzmann_likelihood.sources import inputs_of

    inputs = inputs_of(files.models[name], files.test, files.train)
    is_first = name == next(iter(files.models))
    typer.echo(origin_of(title, inputs, *(inputs.image_notes if is_first else ())))


def _write_json(file: Path | None, result: dict[str, Any]) -> None:
    import json

    def write(temporary: Path) -> None:
        temporary.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")

    _write("json", file, write)


def _write(name: str, path: Path | None, write: Callable[[Path], object]) -> None:
    """Write a file, if the user asked for it, whole or not at all.

    A full disk or a folder without permission becomes an `InputError`, which the command shows as
    one sentence.
    """
    if path is None:
        return
    try:
        with storage.atomic_path(path) as temporary:
            write(temporary)
    except OSError as error:
        raise InputError(
            f"{name}: expected to be able to write {path}: {error.strerror}"
        ) from error


for _package in entry_points(group="paperlib.commands"):
    app.add_typer(_package.load())


def main() -> None:
    """Run the command. SIGTERM, which a queue or a container sends, ends it as Ctrl-C does.

    An input that cannot be used ends it with one sentence and exit code 2, and a chapter or book
    that failed, or a file that cannot be written, ends it with exit code 1. Any other exception
    keeps its traceback, with a note that it is probably a bug.
    """
    # At its end Python looks for cycles among all objects. With torch there are so many that this
    # takes a third of a second, and the end frees them anyway.
    atexit.register(gc.freeze)
    for stream in (sys.stdout, sys.stderr):
        # The name of a file may hold characters that cannot be printed.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    in_main_thread = threading.current_thread() is threading.main_thread()
    # as Python does for Ctrl-C, not where whoever started the command lets it ignore the signal
    handles_sigterm = in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if handles_sigterm:
        signal.signal(signal.SIGTERM, _terminated)
    try:
        app()
    except (InputError, ReproductionError) as error:
        message = "\n".join(f"paperlib: {line}" for line in str(error).split("\n"))
        typer.echo(_of_options(message, "paperlib"), err=True)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except (_InterruptionError, KeyboardInterrupt) as stop:
        typer.echo(f"paperlib: {str(stop) or 'interrupted'}", err=True)
        sys.exit(130)
    except Exception as error:
        if _is_out_of_memory(error):
            typer.echo(f"paperlib: {_out_of_memory_message(error)}", err=True)
            sys.exit(1)
        if isinstance(error, OSError) and error.errno in _REFUSED:
            typer.echo(f"paperlib: {error}", err=True)
            sys.exit(1)
        error.add_note(
            f"This is probably a bug in paperlib {__version__}. "
            "Please report it with the lines above."
        )
        raise
    finally:
        if handles_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _of_options(message: str, before: str) -> str:
    """A message of the library, whose argument `test` is the option `data`."""
    return message.replace(f"{before}: test: ", f"{before}: data: ")


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, RuntimeError):
        return _NO_MEMORY.search(str(error)) is not None
    return isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM


def _out_of_memory_message(error: Exception) -> str:
    """How much memory could not be allocated, what a run needs, and what helps."""
    from boltzmann_likelihood.evaluation.memory import TERMS

    on_gpu = "CUDA" in str(error)
    memory = "GPU's memory" if on_gpu else "memory"
    allocation = _ALLOCATION.search(str(error))
    amount = "more"
    if allocation is not None:
        units = ["", "Ki", "Mi", "Gi", "Ti", "Pi"]
        size = float(allocation[1]) * 1024.0 ** units.index((allocation[2] or "").capitalize())
        amount = (
            f"{size / 2**30:,.2f} GiB more" if size >= 2**30 else f"{size / 2**20:,.0f} MiB more"
        )
    elsewhere = "--device cpu" if on_gpu else "a machine with more memory, or with less else in it"
    return (
        f"the {memory} is not enough: {amount} had to be allocated. An evaluation needs {TERMS}. "
        "What helps: fewer images, fewer chain-steps (--steps, --tempering-steps), "
        f"{elsewhere}."
    )


def _terminated(*_: object) -> None:
    # `timeout` and some queues send it twice, and the second one must not cost the report.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt
