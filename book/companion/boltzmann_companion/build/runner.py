"""Executing chapters with papermill.

Only copies are executed, parameters are checked, and outputs are written whole or not at all. An
executed copy carries a checksum of its inputs, which tells a later run what has been done already.
A chapter that reads records of other chapters lists these in its metadata, `"paperlib": {"reads":
[...]}`, and is executed after them.
"""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import nbformat

import boltzmann_companion
from boltzmann_companion import DEVICE, kind_wanted
from boltzmann_companion.jupyter import fold
from boltzmann_likelihood import cluster
from paperlib import storage
from paperlib.errors import InputError, ReproductionError

# Seconds allowed for a kernel to start, and for its output to arrive. Only a defect takes so long.
_PATIENCE = 1_200
# The longest folder, in bytes, in which a socket's path stays within the 107 that Linux allows
# (macOS: 103).
_LONGEST_FOLDER = 60
# Suffixes of the sources of the library and of the book's machinery: columns, settings, the
# players' style and script, and the report's page are part of them.
_SOURCES = {".py", ".yaml", ".css", ".js", ".html"}
# A chapter's pictures are outputs of its cells, whatever backend the user has chosen for programs
# of their own.
_INLINE = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}


def chapters(only: Sequence[str] = (), argument: str = "only") -> list[Path]:
    """The notebooks of the book in order, or those whose name contains one of `only`.

    Raises
    ------
    InputError
        If a name in `only` matches no chapter; the message names the user's `argument`.
    """
    notebooks = sorted((storage.repository_root() / "book").glob("*.ipynb"))
    for name in only:
        if not any(name in notebook.stem for notebook in notebooks):
            known = ", ".join(notebook.stem for notebook in notebooks)
            raise InputError(
                f"{argument}: expected part of a chapter's name ({known}), got {name!r}"
            )
    return [
        notebook
        for notebook in notebooks
        if not only or any(name in notebook.stem for name in only)
    ]


def executed_path(chapter: Path, profile: str) -> Path:
    """The path of a chapter's executed copy, in `_build` of the chapter's checkout."""
    return chapter.parents[1] / "_build" / "executed" / profile / chapter.name


def check_parameters(chapter: Path, parameters: Mapping[str, Any]) -> None:
    """Raise a ValueError unless every parameter is one of the chapter's own, and of the same kind.

    papermill itself only warns, and then runs the chapter with its defaults.
    """
    import papermill

    if "profile" in parameters:
        raise InputError(f"set: expected --profile {parameters['profile']}, got --set profile=...")
    known = papermill.inspect_notebook(str(chapter))
    unknown = [name for name in ("profile", *parameters) if name not in known]
    if unknown:
        expected = f"parameters of {chapter.stem} ({', '.join(known)})"
        raise InputError(f"set: expected {expected}, got {', '.join(unknown)}")
    for name, value in parameters.items():
        wanted = kind_wanted(ast.literal_eval(known[name]["default"]), value)
        if wanted:
            raise InputError(f"set: expected {wanted} for {name} of {chapter.stem}, got {value!r}")


def reads(chapter: Path) -> list[Path]:
    """The chapters whose records a chapter reads, as listed in its metadata.

    Raises
    ------
    InputError
        If a listed name is not that of a chapter in the same folder.
    """
    names = nbformat.read(chapter, as_version=4).metadata.get("paperlib", {}).get("reads", [])
    others = [chapter.with_name(f"{name}.ipynb") for name in names]
    for other in others:
        if not other.is_file():
            raise InputError(f"reads: expected names of chapters in {chapter}, got {other.stem!r}")
    return others


def is_executed(chapter: Path, profile: str, parameters: Mapping[str, Any] | None = None) -> bool:
    """Whether the executed copy of a chapter was made from the inputs as they are now.

    The inputs are the chapter, the parameters, this library, the published numbers, the stored
    models, and the executed copies of the chapters that it reads. Other packages are not compared.
    """
    copy = executed_path(chapter, profile)
    if not copy.is_file():
        return False
    made_from = nbformat.read(copy, as_version=4).metadata.get("paperlib", {}).get("inputs")
    return made_from == _inputs(chapter, profile, parameters or {})


def _inputs(chapter: Path, profile: str, parameters: Mapping[str, Any]) -> str:
    data = chapter.parents[1] / "data"
    files = [chapter]
    for module in (storage, boltzmann_companion):
        folder = Path(str(module.__file__)).parent.rglob("[!.]*")
        files += sorted(file for file in folder if file.suffix in _SOURCES)
    files += sorted(data.glob("published*.csv"))
    files += sorted((data / "models").glob("[!.]*.safetensors"))
    files += [executed_path(other, profile) for other in reads(chapter)]
    contents = [(file.name, storage.file_sha256(file)) for file in files if file.is_file()]
    settings = {name: repr(value) for name, value in parameters.items()}
    return storage.sha256(json.dumps([profile, settings, contents], sort_keys=True).encode())


def clean_notebook(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Remove everything that differs from run to run.

    Timings, papermill's notes and the interpreter's patch version are removed. The cell with
    injected parameters stays, tagged so that the book leaves it out. The names of the chapters that
    this one reads stay, too. What the page folds is folded in Jupyter as well.
    """
    others = notebook.metadata.get("paperlib", {}).get("reads", [])
    metadata: dict[str, Any] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    if others:
        metadata["paperlib"] = {"reads": others}
    notebook.metadata = nbformat.from_dict(metadata)
    for cell in notebook.cells:
        for key in ("papermill", "execution", "ExecuteTime"):
            cell.metadata.pop(key, None)
        tags = cell.metadata.get("tags", [])
        if "injected-parameters" in tags:
            cell.metadata["tags"] = [*tags, "remove-cell"]
        elif not tags:
            cell.metadata.pop("tags", None)
        if cell.cell_type == "code":
            cell.outputs = _joined_streams(cell.outputs)
            fold(cell)
    return notebook


def _without_picture(
    notebook: nbformat.NotebookNode,
) -> Iterator[tuple[str, nbformat.NotebookNode]]:
    """The cells of a figure whose outputs have no picture, each with the figure's name."""
    for cell in notebook.cells:
        figure = cell.metadata.get("mystnb", {}).get("figure")
        if cell.cell_type != "code" or figure is None or figure["name"].startswith("tab-"):
            continue
        kinds = {kind for output in cell.outputs for kind in output.get("data", {})}
        if not any(kind.startswith("image/") for kind in kinds):
            yield figure["name"], cell


def _has_printed(cell: nbformat.NotebookNode) -> bool:
    return any(output.get("name") == "stdout" for output in cell.outputs)


def _no_picture(names: Sequence[str]) -> str:
    return f"expected a picture of {', '.join(names)} among the outputs, got none"


def _joined_streams(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Outputs with printed text in one piece, as its number of pieces depends on timing."""
    joined: list[nbformat.NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def execute_chapter(
    chapter: Path, profile: str, parameters: Mapping[str, Any] | None = None
) -> Path:
    """Execute a copy of a chapter in this process, and return the path of the executed copy.

    Raises
    ------
    ReproductionError
        If a cell fails, the kernel dies, a figure has no picture, or a file cannot be written. An
        earlier executed copy stays; the partial one is kept beside it as `<name>.failed.ipynb`.
    InputError
        If a parameter is not one of the chapter's.
    """
    parameters = dict(parameters or {})
    check_parameters(chapter, parameters)
    target = executed_path(chapter, profile)
    try:
        inputs = _inputs(chapter, profile, parameters)
        target.parent.mkdir(parents=True, exist_ok=True)
        with storage.atomic_path(target) as temporary:
            # A cell that repeats the default would say nothing.
            size = {} if profile == "digits" else {"profile": profile}
            execute_copy(chapter, temporary, size | parameters, target)
            notebook = clean_notebook(nbformat.read(temporary, as_version=4))
            # A cell that has printed something instead says why.
            missing = [name for name, cell in _without_picture(notebook) if not _has_printed(cell)]
            if missing:
                raise ReproductionError(f"{target.stem}: {_no_picture(missing)}")
            notebook.metadata.setdefault("paperlib", {}).update(inputs=inputs)
            if parameters:
                notebook.metadata["paperlib"]["parameters"] = parameters
            nbformat.write(notebook, temporary)
    except OSError as error:
        places = f"this checkout and to {tempfile.gettempdir()}"
        raise ReproductionError(
            f"{chapter.stem}: expected to be able to write to {places}: {error}"
        ) from error
    return target


def execute_copy(
    chapter: Path,
    temporary: Path,
    parameters: Mapping[str, Any],
    target: Path,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Execute a chapter to a temporary file; a partial run is kept beside the target.

    Parameters
    ----------
    chapter, temporary, target : Path
        What is executed; where to; and where the caller will put it.
    parameters : mapping
        Set in the chapter.
    environment : mapping, optional
        Variables of the kernel, beside those of this process.

    Raises
    ------
    ReproductionError
        If a cell fails or the kernel dies.
    """
    import papermill

    failed = target.with_suffix(".failed.ipynb")
    failed.unlink(missing_ok=True)
    long = len(os.fsencode(tempfile.gettempdir())) > _LONGEST_FOLDER
    with tempfile.TemporaryDirectory(dir="/tmp" if long else None) as sockets:
        try:
            papermill.execute_notebook(
                str(chapter),
                str(temporary),
                parameters=parameters,
                cwd=str(chapter.parent),
                kernel_name="python3",
                progress_bar=False,
                start_timeout=_PATIENCE,
                iopub_timeout=_PATIENCE,
                **_kernel(Path(sockets), environment or {}),
            )
            return
        except papermill.PapermillExecutionError as error:
            reason = f"failed with {error.ename}: {error.evalue}"
            raise _failure(temporary, target, reason) from error
        except RuntimeError as error:
            # the words of nbclient for a kernel that was killed, and of jupyter_client for one that
            # did not start; neither has an exception of its own
            if "Kernel died" not in str(error):
                raise
            reason = "was running when the kernel died, killed perhaps for want of memory"
            raise _failure(temporary, target, reason) from error


def _failure(temporary: Path, target: Path, reason: str) -> ReproductionError:
    """What to raise after a run that ended within a cell: the last one that was started."""
    partial = target.with_suffix(".failed.ipynb")
    partial.write_bytes(temporary.read_bytes())
    # without the cells that papermill puts in front to report an error
    cells = [c for c in nbformat.read(partial, as_version=4).cells if "papermill" in c.metadata]
    number = max(sum(bool(cell.metadata.papermill.start_time) for cell in cells), 1) - 1
    source = cells[number].source.strip().splitlines()
    return ReproductionError(
        f"{target.stem}: cell {number} {reason}\n"
        f"  the cell begins: {source[0] if source else ''}\n"
        f"  partial run: {partial}"
    )


def _kernel(folder: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Options with which papermill starts a kernel of this interpreter, and reaches it by files.

    With ports, the default, two kernels that start at the same time now and then get the same one,
    because a free port is looked up first and taken a second later. And a kernel that is looked up
    by its name may belong to another Python.
    """
    from ipykernel.kernelspec import get_kernel_dict
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from traitlets.config import Config

    class OfThisInterpreter(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            return KernelSpec(**get_kernel_dict(), env=_INLINE | dict(environment))

    file = str(folder / "kernel.json")
    config = Config({"KernelManager": {"transport": "ipc", "connection_file": file}})
    return {"kernel_manager_class": OfThisInterpreter, "config": config}


def execute_chapters(
    selected: Sequence[Path],
    profile: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    jobs: int = 2,
    resume: bool = False,
    scheduler: str | None = None,
    device: str = "cpu",
    report: Any = print,
) -> list[Path]:
    """Execute chapters, `jobs` at a time, each in its own process with its share of the cores.

    A chapter starts when all selected chapters that it reads are done.

    Parameters
    ----------
    selected : sequence of Path
        From `chapters`.
    profile : str
        `digits` or `paper`.
    parameters : mapping, optional
        Given to every chapter.
    jobs : int
        Number of chapters executed at the same time.
    resume : bool
        Skip the chapters that have been executed already, according to `is_executed`, unless one
        that they read is executed now.
    scheduler : str, optional
        Address of the Dask cluster to which the chapters send their shards; by default the one that
        `PAPERLIB_CLUSTER` names, if any.
    device : str
        Device on which the chains of AIS and RAISE walk at the papers' size, here or on the
        cluster: `cpu` or `cuda`.
    report : callable
        Called with a line of text when a chapter ends.

    Raises
    ------
    ReproductionError
        If a cell failed; chapters in progress are completed first, and no others are started.
    InputError
        If a parameter is unknown to one of the chapters, there is no such device, or chapters read
        each other in a circle. It is raised before any chapter starts.
    """
    # The driver of a chapter needs no torch, which takes seconds to import; its kernel imports it.
    from paperlib.validation import require_device

    if require_device("device", device, scheduler is None).type != "cpu" and profile == "digits":
        raise InputError(f"device: expected cpu for the profile digits, got {device!r}")
    for chapter in selected:
        check_parameters(chapter, parameters or {})
    before = {chapter: set(reads(chapter)) & set(selected) for chapter in selected}
    order = _order(before)
    environment = _environment(jobs, device, scheduler, parameters)
    if parameters and not os.environ.get("PAPERLIB_FIGURES"):
        folder = Path(environment["PAPERLIB_FIGURES"]) / profile
        report(f"with parameters of your own, results go to {folder}")
    running: list[subprocess.Popen[str]] = []

    def execute(chapter: Path) -> str | None:
        arguments = [str(chapter), profile]
        arguments += [f"{name}={value!r}" for name, value in (parameters or {}).items()]
        process = _start(arguments, environment)
        running.append(process)
        return _finish(process)

    failures: list[str] = []
    ready: list[Path] = []
    executed: set[Path] = set()
    with ThreadPoolExecutor(jobs) as pool:
        # each chapter with the time at which it was started
        pending: dict[Future[str | None], tuple[Path, float]] = {}
        try:
            # after a failure, chapters in progress are completed
            while order.is_active() and (pending or not failures):
                ready = sorted([*ready, *order.get_ready()], key=selected.index)
                if ready and len(pending) < jobs and not failures:
                    chapter = ready.pop(0)
                    untouched = resume and not before[chapter] & executed
                    if untouched and is_executed(chapter, profile, parameters):
                        report(f"{chapter.stem}: executed already")
                        order.done(chapter)
                    else:
                        executed.add(chapter)
                        pending[pool.submit(execute, chapter)] = chapter, time.perf_counter()
                    continue
                for future in wait(pending, return_when=FIRST_COMPLETED).done:
                    chapter, started = pending.pop(future)
                    error = future.result()
                    verb = "failed after" if error else "executed in"
                    report(f"{chapter.stem}: {verb} {time.perf_counter() - started:.0f} s")
                    order.done(chapter)
                    if error:
                        failures.append(error)
        except KeyboardInterrupt:
            for future in pending:
                future.cancel()
            _interrupt(running)
            raise
    if failures:
        raise ReproductionError("\n".join(failures))
    return [executed_path(chapter, profile) for chapter in selected]


def _order(before: Mapping[Path, set[Path]]) -> TopologicalSorter[Path]:
    """The order in which chapters may start, given those that have to be done before each."""
    order = TopologicalSorter(before)
    try:
        order.prepare()
    except CycleError as error:
        circle = " -> ".join(chapter.stem for chapter in error.args[1])
        raise InputError(f"reads: expected no circle of chapters, got {circle}") from error
    return order


def _environment(
    jobs: int, device: str, scheduler: str | None, parameters: Mapping[str, Any] | None
) -> dict[str, str]:
    """The variables of the chapters' processes, beside those of this one."""
    threads = max(1, (os.cpu_count() or 1) // jobs)
    environment = {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        DEVICE: device,
    }
    if scheduler is not None:
        environment[cluster.VARIABLE] = scheduler
    for name in ("PAPERLIB_DATA", "PAPERLIB_CACHE", "PAPERLIB_FIGURES"):
        # Chapters run in their own folder, so a path relative to the current one would name another
        # place.
        if os.environ.get(name):
            environment[name] = str(Path(os.environ[name]).absolute())
    if "PAPERLIB_FIGURES" not in environment:
        # Results from other settings must not replace those of the book.
        root = storage.repository_root()
        folder = root / "_build" / "figures" if parameters else root / "figures"
        environment["PAPERLIB_FIGURES"] = str(folder)
    return environment


def _interrupt(processes: Iterable[subprocess.Popen[str]]) -> None:
    """Let processes that still run stop as Ctrl-C would."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)


def _start(arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start a chapter in its own process, which ends when this one and so its input ends."""
    return subprocess.Popen(
        [sys.executable, "-m", "boltzmann_companion.build.execute", *arguments],
        # Where ASCII is forced, papermill could not write down the path of a checkout with an
        # accent.
        env=os.environ | environment | {"PYTHONUTF8": "1"},
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # In its own session, Ctrl-C reaches it only once and through us, so that it can shut down
        # its kernel.
        start_new_session=True,
    )


def _finish(process: subprocess.Popen[str]) -> str | None:
    """Wait for a chapter's process, and return what went wrong, if anything."""
    # Not `communicate`, which would close its standard input.
    assert process.stderr is not None
    errors = process.stderr.read()
    # The kernel's own notices arrive in the same stream.
    lines = [line for line in errors.splitlines() if not line.startswith("[IPKernelApp]")]
    status = process.wait()
    if status == 0:
        return None
    # A process that is killed prints nothing.
    return "\n".join(lines).strip()[-2000:] or f"its process ended with status {status}"


def copy_for_the_book(chapter: Path, profile: str) -> nbformat.NotebookNode:
    """The executed copy of a chapter with its own parameters; without a profile the chapter itself.

    Raises
    ------
    ReproductionError
        If there is none, or it was made with others, whose results would pass for the book's.
    """
    if not profile:
        return nbformat.read(chapter, as_version=4)
    again = _again(chapter, profile)
    copy = executed_path(chapter, profile)
    if not copy.is_file():
        raise ReproductionError(f"{chapter.stem} has not been executed; {again}")
    notebook = nbformat.read(copy, as_version=4)
    others = notebook.metadata.get("paperlib", {}).get("parameters", {})
    if others:
        settings = ", ".join(f"{name}={value!r}" for name, value in others.items())
        raise ReproductionError(
            f"{chapter.stem} was last executed with {settings}, "
            f"which are not the book's parameters; {again}"
        )
    return notebook


def _again(chapter: Path, profile: str) -> str:
    """What to do about an executed copy that is of no use."""
    return f"run `paperlib reproduce --profile {profile} --only {chapter.stem}`"


def refresh_stored_outputs(selected: Sequence[Path]) -> list[Path]:
    """Copy the outputs of the executed `digits` copies into the committed chapters.

    Returns the chapters that changed.

    Raises
    ------
    ReproductionError
        As in `copy_for_the_book`, or if code has changed since the execution, or a figure has no
        picture; the chapters before that one are done.
    """
    changed = []
    for chapter in selected:
        notebook = nbformat.read(chapter, as_version=4)
        executed = {cell.id: cell for cell in copy_for_the_book(chapter, "digits").cells}
        code = (cell for cell in notebook.cells if cell.cell_type == "code")
        for count, cell in enumerate(code, start=1):
            done = executed.get(cell.id)
            if done is None or done.source != cell.source:
                raise ReproductionError(
                    f"{chapter.stem} has changed since it was executed; {_again(chapter, 'digits')}"
                )
            cell.outputs = done.outputs
            cell.execution_count = count
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = count
        missing = [name for name, _ in _without_picture(notebook)]
        if missing:
            raise ReproductionError(
                f"{chapter.stem}: {_no_picture(missing)}; nothing of it is stored; "
                f"{_again(chapter, 'digits')}"
            )
        text = nbformat.writes(clean_notebook(notebook)) + "\n"
        if text != chapter.read_text():
            with storage.atomic_path(chapter) as temporary:
                temporary.write_text(text)
            changed.append(chapter)
    return changed
