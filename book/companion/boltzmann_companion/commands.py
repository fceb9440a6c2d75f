"""What `paperlib` does for the book: train models, execute chapters, build and check the pages."""

from __future__ import annotations

import ast
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from boltzmann_companion import DEVICE
from paperlib import storage
from paperlib.errors import InputError

if TYPE_CHECKING:
    from boltzmann_likelihood.cluster import ClusterExecutor

app = typer.Typer()

_ProfileOption = Annotated[
    str, typer.Option(help="digits: small, offline, minutes. paper: MNIST at full size.")
]
_OnlyOption = Annotated[
    list[str] | None,
    typer.Option(help="Part of a chapter's name, such as 05; may be given several times."),
]


@app.command(
    help="Train models from their recipes and store them, one after the other.\n\n"
    "A checkpoint is kept in data/cache after every epoch: run the same command again after an "
    "interruption, and it ends with the identical result."
)
def train(
    model_ids: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL_ID", help="For example mnist-cd1-20; `paperlib models` lists all."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to store a single model; by default data/models."),
    ] = None,
) -> None:
    """Train models from their recipes and store them."""
    from boltzmann_companion.recipes import model_path
    from boltzmann_companion.training import train_models
    from boltzmann_likelihood.provenance import repository_state

    if output is not None and len(model_ids) > 1:
        raise InputError(f"output: expected none for {len(model_ids)} models, got {output}")
    if output is not None and output.suffix != ".safetensors":
        raise InputError(f"output: expected a .safetensors file, got {output.name!r}")
    paths = {model_id: (output or model_path(model_id)).absolute() for model_id in model_ids}
    name, is_dirty = repository_state()
    commit = f"{name or 'unknown'}{' with changes' if is_dirty else ''}"
    for model_id in train_models(paths, commit):
        typer.echo(f"{model_id}: stored as {paths[model_id]}")


@app.command()
def models() -> None:
    """List the models: id, name in the papers, data set, whether it is stored."""
    from boltzmann_companion.recipes import RECIPES, model_path

    for model_id, recipe in RECIPES.items():
        if model_path(model_id).is_file():
            state = "stored"
        elif recipe.dataset == "digits":
            state = "trained on the spot"
        else:
            state = "not trained yet"
        typer.echo(f"{model_id:26} {recipe.label:32} {recipe.dataset:8} {state}")


@app.command(
    help="Execute chapters and write the tables and figures they regenerate to "
    "figures/<profile>.\n\n"
    "Copies are executed; the committed chapters are never touched. The AIS and RAISE runs of the "
    "paper profile are kept in data/cache/shards as they proceed, and found again with or without "
    "--resume."
)
def reproduce(
    profile: _ProfileOption = "digits",
    only: _OnlyOption = None,
    jobs: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Number of chapters to execute at the same time."),
    ] = 2,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of the chapters, such as seed=1.",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Skip chapters that have been executed with their present text, parameters, "
            "library, published numbers, models and records.",
        ),
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Send the shards of the paper profile's AIS and RAISE to a Dask cluster: "
            "tcp://HOST:PORT of its scheduler, or `local` for one on this machine's cores. Its "
            "workers need this version of paperlib, and nothing else.",
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            envvar=DEVICE,
            metavar="DEVICE",
            help="Where the chains of the paper profile's AIS and RAISE walk, here or on the "
            "cluster: cpu or cuda.",
        ),
    ] = "cpu",
) -> None:
    """Execute chapters and write what they regenerate."""
    from boltzmann_companion.build.runner import chapters, execute_chapters
    from boltzmann_companion.profiles import get_profile

    get_profile(profile)
    selected = chapters(only or ())
    parameters = _parameters(set_ or [])
    with _cluster(cluster) as executor:
        execute_chapters(
            selected,
            profile,
            parameters,
            jobs=jobs,
            resume=resume,
            scheduler=executor.address if executor else None,
            device=device,
            report=typer.echo,
        )


@app.command(
    help="Compare the numbers in the text with the cells that they link to, and the records with "
    "the models, data, settings and draws that their commands use today; run the chapters that are "
    "named on digits and say in words what moved: claims, and numbers beyond their tolerance.\n\n"
    "Without names it looks at all pages and records and runs nothing. Nothing of the book is "
    "changed, except with --write. The exit code is 1 if something is wrong or moved."
)
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PAGE]...", help="Part of its name, such as 05 or errata."),
    ] = None,
    numbers: Annotated[
        bool,
        typer.Option(
            "--numbers", help="Compare the numbers of the text only, which takes a second."
        ),
    ] = False,
    write: Annotated[
        bool,
        typer.Option(
            "--write", help="Write what the cells hold into the links of the text; run nothing."
        ),
    ] = False,
) -> None:
    """Say which numbers are wrong, which records are out of date, and what moved in chapters."""
    from boltzmann_companion.build.linked import check_pages, links, pages, write_pages

    root = storage.repository_root()
    chosen = pages(root, names or ())
    if write:
        for line in write_pages(root, chosen):
            typer.echo(line)
        chosen = pages(root, names or ())
    wrong = check_pages(root, chosen)
    for line in wrong:
        typer.echo(line)
    count = sum(1 for page in chosen for _ in links(page))
    typer.echo(f"{count} numbers on {len(chosen)} pages, {len(wrong)} mistakes")
    if numbers or write:
        raise typer.Exit(int(bool(wrong)))

    from boltzmann_companion.build.check import check_chapter, check_records
    from boltzmann_companion.build.runner import chapters
    from boltzmann_companion.chapter import AFTER_A_MOVE

    names_of_pages = {page.path.stem for page in chosen}
    selected = [chapter for chapter in chapters() if chapter.stem in names_of_pages]
    count, old = check_records(root, {chapter.stem for chapter in selected})
    for line in old:
        typer.echo(line)
    typer.echo(f"{count} records, {len(old)} out of date")
    anything = bool(wrong or old)
    for chapter in selected if names else ():
        moved, left_out = check_chapter(chapter)
        anything |= bool(moved)
        typer.echo(f"{chapter.stem}: {AFTER_A_MOVE if moved else 'nothing moved'}")
        for line in (*moved, *left_out):
            typer.echo(f"  {line}")
    raise typer.Exit(int(anything))


@app.command(
    help="Compute what is missing of the longest runs of chapters 8 and 10: K = 100,000, and CSL "
    "with the paper's number of states.\n\n"
    "It takes the idle time of all cores, or those of the cluster that PAPERLIB_CLUSTER names. "
    "Ctrl-C stops it at any moment, and loses only the shards in progress; the same command goes "
    "on. Finished shards are in data/cache/shards."
)
def long(
    only_list: Annotated[
        bool,
        typer.Option("--list", help="Say what is done and how much is left, and stop."),
    ] = False,
    pack: Annotated[
        bool,
        typer.Option(
            "--pack", help="Pack the new shards as one more archive in data/shards, and stop."
        ),
    ] = False,
    device: Annotated[
        str,
        typer.Option(envvar=DEVICE, metavar="DEVICE", help="Where the chains walk: cpu or cuda."),
    ] = "cpu",
) -> None:
    """Compute what is missing of the longest runs."""
    import os

    from boltzmann_companion.profiles import get_profile
    from boltzmann_companion.studies.long_runs import long_runs, pack_shards, progress_table
    from boltzmann_likelihood import cluster
    from boltzmann_likelihood.store import kept
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
    with _cluster(address or (cluster.LOCAL if device == "cpu" else None)) as executor:
        for one in runs:
            done, count, _ = one.progress(size.folder)
            if done < count:
                kept(one.run, size.folder, executor=executor)
                typer.echo(f"{one.name}: done")


@app.command()
def refresh(only: _OnlyOption = None) -> None:
    """Record the outputs of the executed digits copies in the committed chapters."""
    from boltzmann_companion.build.runner import chapters, refresh_stored_outputs

    for chapter in refresh_stored_outputs(chapters(only or ())):
        typer.echo(f"{chapter.stem}: stored outputs changed")


@app.command()
def book(profile: _ProfileOption = "digits") -> None:
    """Build the HTML book from executed chapters and check its pages."""
    from boltzmann_companion.build.book import build_book
    from boltzmann_companion.profiles import get_profile

    get_profile(profile)
    built = build_book(profile)
    typer.echo(f"The book is at {built.relative_to(storage.repository_root())}")


def _cluster(address: str | None) -> AbstractContextManager[ClusterExecutor | None]:
    if not address:
        return nullcontext()
    from boltzmann_likelihood.cluster import ClusterExecutor

    return ClusterExecutor(address)


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
