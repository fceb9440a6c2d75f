"""The `paperlib` command: train models, execute chapters, build the book."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paperlib import __version__, storage
from paperlib.errors import InputError, ReproductionError
from paperlib.experiments import DEVICE

if TYPE_CHECKING:
    from distributed import Client

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="AIS, exact partition functions and the papers' tables: the companion's command.",
)

ProfileOption = Annotated[
    str, typer.Option(help="digits: small, offline, minutes. paper: MNIST at full size.")
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(help="Part of a chapter's name, such as 05; may be given several times."),
]

ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Send the work to a Dask cluster: tcp://HOST:PORT of its scheduler, or `local` for one on this machine's cores. "
        "Its workers must share this checkout, the data and the cache; where they do not, set PAPERLIB_CLUSTER to the address "
        "instead, and only shards are sent.",
    ),
]


@app.command()
def evaluate(
    model: Annotated[
        Path,
        typer.Argument(
            help="An RBM: .safetensors or .npz (weights, visible_bias, hidden_bias; or scikit-learn's components_, "
            "intercept_visible_, intercept_hidden_), .mat (vishid, visbiases, hidbiases), a BernoulliRBM as .skops, an archive "
            ".h5 of rbms (ARCHIVE.h5:update_N for one of its models) or of RestrictedBoltzmannMachines.jl, or .pt."
        ),
    ],
    data: Annotated[
        Path, typer.Option(help="Test images: .npy, .npz, .mat, .csv or IDX, also gzipped.")
    ],
    train: Annotated[
        Path | None, typer.Option(help="Training images, for the start of the chains only.")
    ] = None,
    binarize: Annotated[
        int | None,
        typer.Option(
            metavar="SEED", help="Draw grey pixels once, with their intensity as probability."
        ),
    ] = None,
    minutes: Annotated[
        float, typer.Option(help="Time to spend on the estimate, a third on the ladder.")
    ] = 2.0,
    seed: Annotated[int, typer.Option(help="Of all chains.")] = 0,
    device: Annotated[str, typer.Option(help="Where chains walk: cpu or cuda.")] = "cpu",
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the result as JSON.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also draw the ladder and the bracket against K, as .svg, .png or .pdf.",
        ),
    ] = None,
) -> None:
    """What is the test log-probability of this RBM? Exact up to 25 units, otherwise by parallel tempering.

    AIS from above and RAISE from below stand beside it, and the verdict is on all three. Ctrl-C ends the run with the estimate so far.
    """
    import json

    from paperlib.evaluation import evaluate as evaluate_rbm
    from paperlib.evaluation import read_images, read_model
    from paperlib.evaluation.report import as_dict, describe
    from paperlib.evaluation.report import plot as plot_bracket
    from paperlib.models import RBM
    from paperlib.numerics import seeded_generator
    from paperlib.validation import require_device

    for name, file in (("json", json_file), ("plot", plot)):
        if file is not None and not file.absolute().parent.is_dir():
            raise InputError(f"{name}: expected a file in a folder that exists, got {file}")
    if plot is not None and plot.suffix not in (".svg", ".png", ".pdf"):
        raise InputError(f"plot: expected a .svg, .png or .pdf file, got {plot.name!r}")
    require_device("device", device)
    found = read_model(model)
    if not isinstance(found.rbm, RBM):
        raise InputError(
            f"model: expected a model of binary units, got {found.rbm}; in Python the estimators take it, along a PottsPath"
        )
    rbm, spins = found.rbm.to(device), found.spin_visible
    test_images = read_images("data", data, rbm.num_visible, binarize, spins)
    train_images = (
        None if train is None else read_images("train", train, rbm.num_visible, binarize, spins)
    )
    for line in (f"Model: {found.origin}", *found.notes):
        typer.echo(line)
    result = evaluate_rbm(rbm, test_images, train_images, minutes, seeded_generator(seed, device))
    typer.echo(describe(result))
    if json_file is not None:
        with _output("json", json_file) as temporary:
            temporary.write_text(json.dumps(as_dict(result), indent=1, allow_nan=False) + "\n")
    if plot is not None:
        with _output("plot", plot) as temporary:
            plot_bracket(result).savefig(temporary, format=plot.suffix[1:])


@app.command()
def train(
    model_ids: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL_ID",
            help="For example mnist-cd1-20; `paperlib models` lists all.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(help="Where to store a single model; by default data/models."),
    ] = None,
    snapshots: Annotated[
        int,
        typer.Option(min=0, help="Also keep the model after every n-th epoch, in data/cache."),
    ] = 0,
    cluster: ClusterOption = None,
) -> None:
    """Train models from their recipes and store them, one after the other or at the same time on a cluster.

    A checkpoint is kept in data/cache after every epoch: run the same command again after an interruption, and it ends
    with the identical result.
    """
    from paperlib.experiments.recipes import model_path
    from paperlib.experiments.training import train_models
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


@app.command()
def models() -> None:
    """List the models: id, name in the papers, data set, whether it is stored."""
    from paperlib.experiments.recipes import RECIPES, model_path

    for model_id, chosen in RECIPES.items():
        stored = "stored" if model_path(model_id).is_file() else "trained on the spot"
        if chosen.dataset != "digits" and stored != "stored":
            stored = "not trained yet"
        typer.echo(f"{model_id:26} {chosen.label:32} {chosen.dataset:8} {stored}")


@app.command()
def reproduce(
    profile: ProfileOption = "digits",
    only: OnlyOption = None,
    jobs: Annotated[int, typer.Option(min=1, help="Chapters at the same time.")] = 2,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A parameter of the chapters, such as seed=1."
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Leave out chapters that are executed already, as they, their parameters, the library, the published numbers, "
            "the models and the chapters whose records they read are now.",
        ),
    ] = False,
    cluster: ClusterOption = None,
    device: Annotated[
        str,
        typer.Option(
            envvar=DEVICE,
            help="Where the chains of the paper profile's AIS and RAISE walk, here or on the cluster: cpu or cuda.",
        ),
    ] = "cpu",
) -> None:
    """Execute chapters and write the tables and figures they regenerate to figures/<profile>.

    Copies are executed; the committed chapters are never touched. The AIS and RAISE runs of the paper profile are kept in
    data/cache/shards as they proceed, and found again with or without --resume.
    """
    from paperlib.experiments.profiles import get_profile
    from paperlib.publishing.runner import chapters, execute_chapters

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


@app.command()
def refresh(only: OnlyOption = None) -> None:
    """Record the outputs of the executed digits copies in the committed chapters."""
    from paperlib.publishing.runner import chapters, refresh_stored_outputs

    for chapter in refresh_stored_outputs(chapters(only or ())):
        typer.echo(f"{chapter.stem}: stored outputs changed")


@app.command()
def book(profile: ProfileOption = "digits") -> None:
    """Build the HTML book from executed chapters and check its pages."""
    from paperlib.experiments.profiles import get_profile
    from paperlib.publishing.book import build_book

    get_profile(profile)
    typer.echo(f"The book is at {build_book(profile).relative_to(storage.repository_root())}")


def _client(address: str | None) -> AbstractContextManager[Client | None]:
    if not address:
        return nullcontext()
    from paperlib.cluster import connect

    return connect(address)


@contextmanager
def _output(name: str, path: Path) -> Iterator[Path]:
    """`atomic_path` for a file that the user asked for.

    A full disk or a folder without permission becomes an `InputError`, and so a sentence.
    """
    try:
        with storage.atomic_path(path) as temporary:
            yield temporary
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

    An input that cannot be used ends it with a sentence and exit code 2, a chapter or a book that
    failed with exit code 1. Any other exception keeps its traceback, to which a note is added that
    it is a bug.
    """
    try:
        app()
    except InputError as error:
        typer.echo(f"paperlib: {error}", err=True)
        sys.exit(2)
    except ReproductionError as error:
        typer.echo(f"paperlib: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("paperlib: interrupted", err=True)
        sys.exit(130)
    except Exception as error:
        error.add_note(
            f"This is probably a bug in paperlib {__version__}. "
            "Please report it with the lines above."
        )
        raise
