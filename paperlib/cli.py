"""The `paperlib` command: train models, execute chapters, build the book."""

from __future__ import annotations

import ast
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paperlib import storage
from paperlib.reproduction import ReproductionError

if TYPE_CHECKING:
    from paperlib.models import RBM

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


@app.command()
def evaluate(
    model: Annotated[
        Path,
        typer.Argument(
            help="An RBM: .safetensors or .npz (weights, visible_bias, hidden_bias; or scikit-learn's components_, "
            "intercept_visible_, intercept_hidden_), .mat (vishid, visbiases, hidbiases), or a BernoulliRBM as .skops."
        ),
    ],
    data: Annotated[
        Path, typer.Option(help="Test images: .npy, .npz, .mat, .csv or IDX, also gzipped.")
    ],
    train: Annotated[
        Path | None, typer.Option(help="Training images, for the start of the annealing only.")
    ] = None,
    binarize: Annotated[
        int | None,
        typer.Option(
            metavar="SEED", help="Draw grey pixels once, with their intensity as probability."
        ),
    ] = None,
    minutes: Annotated[float, typer.Option(help="Time to spend on the estimate.")] = 2.0,
    seed: Annotated[int, typer.Option(help="Of all chains.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the result as JSON.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also draw the bracket against K, as .svg, .png or .pdf."
        ),
    ] = None,
) -> None:
    """What is the test log-probability of this RBM? Exact up to 25 units, otherwise bracketed by AIS and RAISE.

    Ctrl-C ends the run with the estimate so far.
    """
    import json

    from paperlib.evaluation import evaluate as evaluate_rbm
    from paperlib.evaluation import read_images, read_rbm
    from paperlib.evaluation.report import as_dict, describe, draw
    from paperlib.numerics import seeded_generator

    for name, file in (("json", json_file), ("plot", plot)):
        if file is not None and not file.absolute().parent.is_dir():
            raise ValueError(f"{name}: expected a file in a folder that exists, got {file}")
    if plot is not None and plot.suffix not in (".svg", ".png", ".pdf"):
        raise ValueError(f"plot: expected a .svg, .png or .pdf file, got {plot.name!r}")
    rbm = read_rbm(model)
    test_images = read_images("data", data, rbm.num_visible, binarize)
    train_images = None if train is None else read_images("train", train, rbm.num_visible, binarize)
    result = evaluate_rbm(rbm, test_images, train_images, minutes, seeded_generator(seed))
    typer.echo(describe(result))
    if json_file is not None:
        with _output("json", json_file) as temporary:
            temporary.write_text(json.dumps(as_dict(result), indent=1, allow_nan=False) + "\n")
    if plot is not None:
        with _output("plot", plot) as temporary:
            draw(result).savefig(temporary, format=plot.suffix[1:])


@app.command()
def train(
    model_id: Annotated[
        str, typer.Argument(help="For example mnist-cd1-20; `paperlib models` lists all.")
    ],
    output: Annotated[
        Path | None, typer.Option(help="Where to store the model; by default data/models.")
    ] = None,
    snapshots: Annotated[
        int,
        typer.Option(min=0, help="Also keep the model after every n-th epoch, in data/cache."),
    ] = 0,
) -> None:
    """Train a model from its recipe and store it.

    A checkpoint is kept in data/cache after every epoch: run the same command again after an interruption, and it ends
    with the identical result.
    """
    from paperlib.datasets import cache_folder
    from paperlib.reproduction.recipes import (
        model_path,
        recipe,
        snapshot_path,
        store_model,
        train_recipe,
    )
    from paperlib.reproduction.records import repository_state

    recipe(model_id)
    path = output or model_path(model_id)
    if path.suffix != ".safetensors":
        raise ValueError(f"output: expected a .safetensors file, got {path.name!r}")
    checkpoint = cache_folder() / "checkpoints" / f"{model_id}.safetensors"
    state, dirty = repository_state()
    commit = f"{state}{' with changes' if dirty else ''}"

    def keep_snapshot(epoch: int, rbm: RBM) -> None:
        if snapshots and epoch % snapshots == 0:
            store_model(model_id, rbm, snapshot_path(model_id, epoch), commit)

    resumed, started = checkpoint.exists(), time.perf_counter()
    model = train_recipe(model_id, checkpoint=checkpoint, on_epoch=keep_snapshot)
    minutes = None if resumed else (time.perf_counter() - started) / 60
    store_model(model_id, model, path, commit, minutes)
    checkpoint.unlink(missing_ok=True)
    typer.echo(f"{model_id}: stored as {path}")


@app.command()
def models() -> None:
    """List the models: id, name in the papers, data set, whether it is stored."""
    from paperlib.reproduction.recipes import RECIPES, model_path

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
) -> None:
    """Execute chapters and write the tables and figures they regenerate to figures/<profile>.

    Copies are executed; the committed chapters are never touched.
    """
    from paperlib.reproduction.profiles import get_profile
    from paperlib.reproduction.runner import chapters, execute_chapters

    get_profile(profile)
    execute_chapters(
        chapters(only or ()), profile, _parameters(set_ or []), jobs=jobs, report=typer.echo
    )


@app.command()
def refresh(only: OnlyOption = None) -> None:
    """Record the outputs of the executed digits copies in the committed chapters."""
    from paperlib.reproduction.runner import chapters, refresh_stored_outputs

    for chapter in refresh_stored_outputs(chapters(only or ())):
        typer.echo(f"{chapter.stem}: stored outputs changed")


@app.command()
def book(profile: ProfileOption = "digits") -> None:
    """Build the HTML book from executed chapters and check its pages."""
    from paperlib.reproduction.book import build_book
    from paperlib.reproduction.profiles import get_profile

    get_profile(profile)
    typer.echo(f"The book is at {build_book(profile).relative_to(storage.repository_root())}")


@contextmanager
def _output(name: str, path: Path) -> Iterator[Path]:
    """`atomic_path` for a file that the user asked for: a full disk or a folder without permission is told in a sentence."""
    try:
        with storage.atomic_path(path) as temporary:
            yield temporary
    except OSError as error:
        raise ValueError(
            f"{name}: expected to be able to write {path}: {error.strerror}"
        ) from error


def _parameters(settings: list[str]) -> dict[str, Any]:
    """Parameters from NAME=VALUE; values are Python literals, anything else is text."""
    parameters: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"set: expected NAME=VALUE, got {setting!r}")
        try:
            parameters[name] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            parameters[name] = value
    return parameters


def main() -> None:
    """Run the command; what the user can mend is told in a sentence, with exit code 2."""
    try:
        app()
    except ValueError as error:
        typer.echo(f"paperlib: {error}", err=True)
        sys.exit(2)
    except ReproductionError as error:
        typer.echo(f"paperlib: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("paperlib: interrupted", err=True)
        sys.exit(130)
