"""The `paperlib` command: train models, execute chapters, build the book."""

from __future__ import annotations

import ast
import errno
import io
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from boltzmann_companion import DEVICE
from paperlib import __version__, storage
from paperlib.cli_options import Job, ModelArgument, command
from paperlib.errors import InputError, ReproductionError

if TYPE_CHECKING:
    from distributed import Client
    from torch import Tensor

    from paperlib.models import RBM
    from paperlib.models.foreign import ForeignRBM
    from paperlib.models.unnormalized_model import UnnormalizedModel

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="AIS, exact partition functions and the papers' tables: the companion's command.",
)

# What the machine refuses: a folder without permission, a file system that is read-only or full. None of it is a bug of ours.
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}

_ProfileOption = Annotated[
    str, typer.Option(help="digits: small, offline, minutes. paper: MNIST at full size.")
]
_OnlyOption = Annotated[
    list[str] | None,
    typer.Option(help="Part of a chapter's name, such as 05; may be given several times."),
]

_ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Send the work to a Dask cluster: tcp://HOST:PORT of its scheduler, or `local` for one on this machine's cores. "
        "Its workers must share this checkout, the data and the cache; where they do not, set PAPERLIB_CLUSTER to the address "
        "instead, and only shards are sent.",
    ),
]


@command(app)
def evaluate(model: ModelArgument, job: Job, *, plot: Path | None = None) -> None:
    """What is the test log-probability of this model? Exact up to 25 units, otherwise by parallel tempering.

    AIS from above and RAISE from below accompany it, and the verdict is on all three. Ctrl-C ends the run with the estimate so far.

    Parameters
    ----------
    plot : FILE
        Also draw parallel tempering and the bracket against K, as .svg, .png or .pdf. For an exact value, draws ln p(v) of the test images.
    """
    from paperlib.evaluation import evaluate as evaluate_model
    from paperlib.evaluation.audit import audit_evaluation
    from paperlib.evaluation.picture import plot as plot_evaluation
    from paperlib.evaluation.report import as_dict, audit_verdict, describe, describe_stored

    _require_files(json=job.json, plot=plot)
    found, moved, test_images, options = _inputs(job, model)
    result = evaluate_model(moved, test_images, **options)
    typer.echo(describe(result, job.binarization))
    record = as_dict(result, job.binarization)
    record["run"] = job.record("evaluate", {"model": model}, [result], {})
    if found.stored_log_z is not None:
        weights = options["weights"]
        kept = test_images if weights is None else test_images[weights > 0]
        stored = audit_evaluation(
            moved, kept, result, found.stored_log_z, log_z_offset=found.log_z_offset
        )
        typer.echo(describe_stored(stored))
        record["stored_log_z"] = audit_verdict(stored)
    _write_json(job.json, record)
    _write("plot", plot, lambda file: plot_evaluation(result).savefig(file))


@command(app, own_after="train")
def audit(
    model: ModelArgument,
    job: Job,
    *,
    claimed_log_z: float | None = None,
    claimed_log_prob: float | None = None,
    tolerance: float = 0.1,
) -> None:
    """Can this ln Z, or this test log-probability, be true? Impossible, not supported, or consistent.

    Without a claim, the ln Z that an archive itself stores is in question. The exit code is 0 for consistent, 3 for not supported,
    and 4 for impossible; 2 means an input that cannot be used.

    Parameters
    ----------
    claimed_log_z : NATS
        The ln Z in question, of the model as the file has it.
    claimed_log_prob : NATS
        Or the average ln p(v) of the test images in question.
    tolerance : NATS
        How far off a claim may be and still count as consistent.
    """
    from paperlib.evaluation import audit as audit_claim
    from paperlib.evaluation.audit import EXIT_CODES
    from paperlib.evaluation.report import audit_as_dict, describe_audit

    _require_files(json=job.json)
    claims = {
        "claimed-log-z": claimed_log_z,
        "claimed-log-prob": claimed_log_prob,
        "tolerance": tolerance,
    }
    found, moved, test_images, options = _inputs(job, model)
    if claimed_log_z is None and claimed_log_prob is None:
        claimed_log_z = found.stored_log_z
        if claimed_log_z is None:
            raise InputError(
                f"claimed-log-z: expected it, or --claimed-log-prob, since {model} stores no ln Z of its own"
            )
    result = audit_claim(
        moved,
        test_images,
        claimed_log_z=claimed_log_z,
        claimed_log_prob=claimed_log_prob,
        tolerance=tolerance,
        log_z_offset=found.log_z_offset,
        **options,
    )
    typer.echo(describe_audit(result))
    run = job.record("audit", {"model": model}, [result.evaluation], claims)
    _write_json(job.json, {**audit_as_dict(result), "run": run})
    raise typer.Exit(EXIT_CODES[result.verdict])


@command(app)
def compare(first: ModelArgument, second: ModelArgument, job: Job) -> None:
    """Compare two models: which gives the test images the higher probability, and whether that could be chance.

    The difference is taken image by image, and its error includes those of both ln Z. The minutes are for both models together.
    """
    from paperlib.evaluation import compare as compare_models
    from paperlib.evaluation.report import comparison_as_dict, describe_comparison

    _require_files(json=job.json)
    of_first, model_a, test_images, options = _inputs(job, first)
    of_second = job.read_model(second)
    job.read_rows(of_second)
    if of_first.spin_visible != of_second.spin_visible:
        raise InputError("second: expected the same kind of visible units as the first model has")
    for line in (f"Second model: {of_second.origin}", *of_second.notes):
        typer.echo(line)
    result = compare_models(model_a, of_second.rbm.to(job.device), test_images, **options)
    typer.echo(describe_comparison(result))
    models = {"model": first, "second": second}
    run = job.record("compare", models, [result.first, result.second], {})
    _write_json(job.json, {**comparison_as_dict(result), "run": run})


@command(app)
def training(
    models: list[Path],
    *,
    data: Path,
    train: Path | None = None,
    updates: str | None = None,
    at_most: Annotated[int, typer.Option(min=1)] = 20,
    by: str | None = None,
    binarize: int | None = None,
    minutes: float = 2.0,
    chain_steps: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    json: Path | None = None,
    csv: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Where along its training was an RBM best? The test log-probability of every checkpoint, with intervals.

    Says whether the best one can be told from its neighbours. Ctrl-C ends the run with the results so far.

    Parameters
    ----------
    models
        An archive .h5 of rbms, a folder of model files, or at least two of them in the order of training.
    updates : N,N,...
        Which updates of an archive; by default all.
    at_most
        Largest number of checkpoints to take, evenly spaced.
    by
        Where ln Z comes from: trajectory (one walk through all checkpoints) or ladder (parallel tempering for each). By default enumeration
        up to 25 units, otherwise a trajectory.
    minutes
        Time to spend on ln Z, about.
    chain_steps
        Number of chain transitions, instead of minutes; the same seed then gives the same numbers.
    csv : FILE
        Also write the table as CSV.
    plot : FILE
        Also draw the curve, as .svg, .png or .pdf.
    """
    from paperlib.evaluation import evaluate_training, read_checkpoints, read_images
    from paperlib.evaluation.inputs import read_rows
    from paperlib.evaluation.picture import plot_training
    from paperlib.evaluation.training_report import (
        describe_training,
        training_as_csv,
        training_as_dict,
    )
    from paperlib.numerics import seeded_generator
    from paperlib.validation import require_device

    _require_files(json=json, csv=csv, plot=plot)
    require_device("device", device)
    chosen = None if updates is None else _whole_numbers("updates", updates)
    left_out: list[str] = []
    found = read_checkpoints(
        models, chosen, at_most, left_out.append, lambda: read_rows("data", data).shape[1]
    )
    rbms = {name: cast("RBM", checkpoint.rbm).to(device) for name, checkpoint in found.items()}
    first = next(iter(found.values()))
    width, spins = first.rbm.num_visible, first.spin_visible
    test_images = read_images("data", data, width, binarize, spins)
    train_images = None if train is None else read_images("train", train, width, binarize, spins)
    for line in (*first.notes, *left_out):
        typer.echo(line)
    result = evaluate_training(
        list(rbms.values()),
        test_images,
        train_images,
        names=list(rbms),
        by=by,
        minutes=minutes,
        chain_steps=chain_steps,
        generator=seeded_generator(seed, device),
    )
    claims = {
        name: checkpoint.stored_log_z - checkpoint.log_z_offset
        for name, checkpoint in found.items()
        if checkpoint.stored_log_z is not None
    }
    typer.echo(describe_training(result, claims))
    record = training_as_dict(result, claims) | {"left_out": left_out, "seed": seed}
    _write_json(json, record)
    # the names of files as they are, also where ASCII is forced
    rows = training_as_csv(record["checkpoints"])
    _write("csv", csv, lambda file: file.write_text(rows, "utf-8", "surrogateescape"))
    _write("plot", plot, lambda file: plot_training(result).savefig(file))


def _whole_numbers(name: str, text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise InputError(f"{name}: expected whole numbers with commas between them, got {text!r}")
    return [int(part) for part in parts]


def _inputs(job: Job, model: Path) -> tuple[ForeignRBM, UnnormalizedModel, Tensor, dict[str, Any]]:
    """The model as its file has it and on its device, test images and further arguments; prints what was changed on the way."""
    from paperlib.numerics import seeded_generator

    found = job.read_model(model)
    test_images, train_images, weights, notes = job.read_rows(found)
    said = [*found.notes, *notes]
    typer.echo(" ".join([f"Model: {found.origin}", *([f"({'; '.join(said)})"] if said else [])]))
    options = {
        "train": train_images,
        "minutes": job.minutes,
        "generator": seeded_generator(job.seed, job.device),
        "steps": job.steps,
        "tempering_steps": job.tempering_steps,
        "weights": weights,
    }
    return found, found.rbm.to(job.device), test_images, options


def _require_files(**files: Path | None) -> None:
    """Refuse a file for results, before anything is computed, if it could not be written."""
    for name, file in files.items():
        if file is not None and not file.absolute().parent.is_dir():
            raise InputError(f"{name}: expected a file in a folder that exists, got {file}")
    if (plot := files.get("plot")) is not None:
        from paperlib.evaluation.picture import require_matplotlib

        if plot.suffix not in (".svg", ".png", ".pdf"):
            raise InputError(f"plot: expected a .svg, .png or .pdf file, got {plot.name!r}")
        require_matplotlib()


def _write_json(file: Path | None, result: dict[str, Any]) -> None:
    import json

    def write(temporary: Path) -> None:
        temporary.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")

    _write("json", file, write)


@command(app)
def train(
    model_ids: list[str],
    *,
    output: Path | None = None,
    snapshots: Annotated[int, typer.Option(min=0)] = 0,
    cluster: _ClusterOption = None,
) -> None:
    """Train models from their recipes and store them, one after the other or at the same time on a cluster.

    A checkpoint is kept in data/cache after every epoch: run the same command again after an interruption, and it ends
    with the identical result.

    Parameters
    ----------
    model_ids : MODEL_ID
        For example mnist-cd1-20; `paperlib models` lists all.
    output
        Where to store a single model; by default data/models.
    snapshots
        Also keep the model after every n-th epoch, in data/cache.
    """
    from boltzmann_companion.recipes import model_path
    from boltzmann_companion.training import train_models
    from paperlib.provenance import repository_state

    if output is not None and len(model_ids) > 1:
        raise InputError(f"output: expected none for {len(model_ids)} models, got {output}")
    if output is not None and output.suffix != ".safetensors":
        raise InputError(f"output: expected a .safetensors file, got {output.name!r}")
    paths = {model_id: (output or model_path(model_id)).absolute() for model_id in model_ids}
    state, dirty = repository_state()
    commit = f"{state or 'unknown'}{' with changes' if dirty else ''}"
    with _client(cluster) as client:
        for model_id in train_models(paths, commit, snapshots, client):
            typer.echo(f"{model_id}: stored as {paths[model_id]}")


@command(app)
def models() -> None:
    """List the models: id, name in the papers, data set, whether it is stored."""
    from boltzmann_companion.recipes import RECIPES, model_path

    for model_id, chosen in RECIPES.items():
        stored = "stored" if model_path(model_id).is_file() else "trained on the spot"
        if chosen.dataset != "digits" and stored != "stored":
            stored = "not trained yet"
        typer.echo(f"{model_id:26} {chosen.label:32} {chosen.dataset:8} {stored}")


@command(app)
def reproduce(
    *,
    profile: _ProfileOption = "digits",
    only: _OnlyOption = None,
    jobs: Annotated[int, typer.Option(min=1)] = 2,
    set_: Annotated[list[str] | None, typer.Option("--set")] = None,
    resume: Annotated[bool, typer.Option("--resume")] = False,
    cluster: _ClusterOption = None,
    device: Annotated[str, typer.Option(envvar=DEVICE)] = "cpu",
) -> None:
    """Execute chapters and write the tables and figures they regenerate to figures/<profile>.

    Copies are executed; the committed chapters are never touched. The AIS and RAISE runs of the paper profile are kept in
    data/cache/shards as they proceed, and found again with or without --resume.

    Parameters
    ----------
    jobs
        Number of chapters to execute at the same time.
    set_ : NAME=VALUE
        A parameter of the chapters, such as seed=1.
    resume
        Skip chapters that have been executed with their present text, parameters, library, published numbers, models and records.
    device
        Where the chains of the paper profile's AIS and RAISE walk, here or on the cluster: cpu or cuda.
    """
    from boltzmann_companion.build.runner import chapters, execute_chapters
    from boltzmann_companion.profiles import get_profile

    get_profile(profile)
    selected, parameters = chapters(only or ()), _parameters(set_ or [])
    with _client(cluster) as client:
        execute_chapters(
            selected,
            profile,
            parameters,
            jobs=jobs,
            resume=resume,
            client=client,
            device=device,
            report=typer.echo,
        )


@command(app)
def check(names: list[str]) -> None:
    """Run chapters on digits and say in words what moved: claims, and numbers beyond their tolerance.

    Nothing of the book is changed. The exit code is 1 if something moved.

    Parameters
    ----------
    names : CHAPTER
        Part of its name, such as 05.
    """
    from boltzmann_companion.build.check import check_chapter
    from boltzmann_companion.build.runner import chapters

    anything = False
    for chapter in chapters(names, "names"):
        moved, left_out = check_chapter(chapter)
        anything |= bool(moved)
        typer.echo(f"{chapter.stem}: {'moved:' if moved else 'nothing moved'}")
        for line in (*moved, *left_out):
            typer.echo(f"  {line}")
    raise typer.Exit(int(anything))


@command(app)
def long(
    *,
    only_list: Annotated[bool, typer.Option("--list")] = False,
    pack: Annotated[bool, typer.Option("--pack")] = False,
    device: Annotated[str, typer.Option(envvar=DEVICE)] = "cpu",
) -> None:
    """Compute what is missing of the longest runs of chapters 8 and 10: K = 100,000, and CSL with the paper's number of states.

    It takes the idle time of all cores, or those of the cluster that PAPERLIB_CLUSTER names. Ctrl-C stops it at any moment, and loses only
    the shards in progress; the same command goes on. Finished shards are in data/cache/shards.

    Parameters
    ----------
    only_list
        Say what is done and how much is left, and stop.
    pack
        Pack the new shards as one more archive in data/shards, and stop.
    device
        Where the chains walk: cpu or cuda.
    """
    import os

    from boltzmann_companion.profiles import get_profile
    from boltzmann_companion.studies.long_runs import long_runs, pack_shards, progress_table
    from paperlib import cluster
    from paperlib.keep import kept
    from paperlib.validation import require_device

    os.environ[DEVICE] = str(require_device("device", device))
    size = get_profile("paper")
    runs = list(long_runs(size))
    if pack:
        archive = pack_shards(runs, size.folder, storage.repository_root() / "data" / "shards")
        typer.echo(f"packed as {archive}" if archive else "no new shards")
        return
    typer.echo(progress_table(runs, size.folder))
    if only_list:
        return
    # Whatever else this machine does comes first.
    os.nice(19)
    address = os.environ.get(cluster.VARIABLE)
    with _client(address or (cluster.LOCAL if device == "cpu" else None)) as client:
        executor = client and cluster.ClusterExecutor(client)
        for one in runs:
            done, count, _ = one.progress(size.folder)
            if done < count:
                kept(one.run, size.folder, executor=executor)
                typer.echo(f"{one.name}: done")


@command(app)
def refresh(*, only: _OnlyOption = None) -> None:
    """Record the outputs of the executed digits copies in the committed chapters."""
    from boltzmann_companion.build.runner import chapters, refresh_stored_outputs

    for chapter in refresh_stored_outputs(chapters(only or ())):
        typer.echo(f"{chapter.stem}: stored outputs changed")


@command(app)
def book(
    *, profile: _ProfileOption = "digits", pdf: Annotated[bool, typer.Option("--pdf")] = False
) -> None:
    """Build the HTML book from executed chapters and check its pages.

    Parameters
    ----------
    pdf
        Join the pages of the built book into one PDF instead.
    """
    from boltzmann_companion.build.book import build_book
    from boltzmann_companion.build.pdf import build_pdf
    from boltzmann_companion.profiles import get_profile

    get_profile(profile)
    built = build_pdf() if pdf else build_book(profile)
    typer.echo(f"The book is at {built.relative_to(storage.repository_root())}")


def _client(address: str | None) -> AbstractContextManager[Client | None]:
    if not address:
        return nullcontext()
    from paperlib.cluster import connect

    return connect(address)


def _write(name: str, path: Path | None, write: Callable[[Path], object]) -> None:
    """Write a file, if the user asked for it, whole or not at all.

    A full disk or a folder without permission becomes an `InputError`, which the command shows as one sentence.
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


def _parameters(settings: list[str]) -> dict[str, Any]:
    """Parameters from NAME=VALUE; values are Python literals, anything else is text."""
    parameters: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"set: expected NAME=VALUE, got {setting!r}")
        try:
            parameters[name] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            parameters[name] = value
    return parameters


def main() -> None:
    """Run the command.

    An input that cannot be used ends it with one sentence and exit code 2, and a chapter or book that
    failed, or a file that cannot be written, ends it with exit code 1. Any other exception keeps its traceback, with a note that it is
    probably a bug.
    """
    for stream in (sys.stdout, sys.stderr):
        # The name of a file may hold characters that cannot be printed.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except (InputError, ReproductionError) as error:
        typer.echo(f"paperlib: {error}", err=True)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except KeyboardInterrupt:
        typer.echo("paperlib: interrupted", err=True)
        sys.exit(130)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _REFUSED:
            typer.echo(f"paperlib: {error}", err=True)
            sys.exit(1)
        error.add_note(
            f"This is probably a bug in paperlib {__version__}. "
            "Please report it with the lines above."
        )
        raise
