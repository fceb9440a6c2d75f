"""The store of long computations: each part is computed once and kept in a file.

A file is named after everything that its part depends on. An interrupted computation therefore goes
on where it stopped, a larger one starts from the parts of a smaller one, and other work has other
files.

- `kept`: the result of a `paperlib.resumable.Work`, whose parts are tensors.
- `remembered`: a result that JSON can hold.
- `extended`: such a result that grows.

Missing parts are computed here one after the other, or by the workers of an executor, and stored
here as they arrive. It may be a `ProcessPoolExecutor`, or that of a Dask cluster
(`boltzmann_likelihood.cluster`). A part is a pure function of what is sent with it, so the result
does not depend on the number of workers or the order of arrival. If a worker or this process dies,
only the parts in progress are lost.

A file also says what computed its part (`boltzmann_likelihood.provenance.made_by`), when, and in
how many seconds; older files may not. This module remembers it for all parts that this process
used, and a record of results includes a summary, so that parts found on disk do not pass for the
run's own work.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from datetime import UTC, datetime
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from boltzmann_likelihood.provenance import device_name, made_by
from paperlib import __version__, storage
from paperlib.errors import InputError
from paperlib.kernels import DRAWS
from paperlib.models.files import read_metadata, read_safetensors, write_safetensors
from paperlib.resumable import Part, Work
from paperlib.threads import OnStep, step_bar
from paperlib.validation import require_device

Result = TypeVar("Result")
Folder = str | os.PathLike[str]

# Parts that are sent at a time: enough for thousands of workers, few enough for the memory of a
# scheduler.
_PARTS_AHEAD = 10_000
_CPU = torch.device("cpu")
# The keys in a file for what computed it, and for what it is the result of.
_MADE_BY = "made_by"
_IDENTITY = "identity"


# ---- parts that are tensors


def part_files(work: Work[Any], folder: Folder) -> list[Path]:
    """Where the parts are kept, in order, whether they have been computed or not."""
    return [Path(folder) / f"{part.name}.safetensors" for part in work.parts]


def is_stored(work: Work[Any], folder: Folder) -> bool:
    """Whether all parts are in the folder."""
    return all(file.is_file() for file in part_files(work, folder))


def kept(
    work: Work[Result],
    folder: Folder | None,
    progress: bool | None = None,
    executor: Executor | None = None,
) -> Result:
    """The result of a long computation, whose parts are kept in a folder.

    Parts that are not there yet are computed.

    Parameters
    ----------
    work : Work
        The computation.
    folder : path or None
        Where parts are kept; created if it does not exist. None: nowhere, which suits short
        computations.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal and it takes more than two
        seconds.
    executor : concurrent.futures.Executor, optional
        Send missing parts to its workers. None: compute them here.

    Raises
    ------
    InputError
        If a stored part is damaged, or parts are to be computed here and this machine lacks their
        device.
    RuntimeError
        If a worker has another version of this package or of its draws.

    Examples
    --------
    >>> import tempfile
    >>> def square(number, device, on_step):
    ...     return {"value": torch.tensor(number**2)}
    >>> work = Work("squares", 3, [Part("three", square)], lambda parts: parts[0]["value"].item())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     value = kept(work, folder)
    ...     value, [file.name for file in Path(folder).iterdir()]
    (9, ['three.safetensors'])
    """
    files = [] if folder is None else part_files(work, folder)
    if executor is None and (folder is None or not is_stored(work, folder)):
        require_device("device", work.device)
    contents: dict[int, dict[str, Tensor]] = {}
    total = sum(part.steps for part in work.parts)
    with step_bar(total, work.description, progress, work.unit) as bar:
        steps = 0

        def take(number: int, tensors: dict[str, Tensor]) -> None:
            nonlocal steps
            contents[number] = tensors
            steps += work.parts[number].steps
            # A part need not have counted its steps.
            bar.update(steps - bar.n)

        def store(number: int, computed: _Computed) -> None:
            if files:
                _write(files[number], computed)
            take(number, computed.tensors)

        missing = []
        for number, part in enumerate(work.parts):
            if files and files[number].is_file():
                take(number, _read(files[number]))
            elif executor is None:
                store(number, _compute(work.shared, part, work.device, bar.update))
            else:
                missing.append(number)
        if executor is not None:
            for number, computed in _from_workers(executor, work, missing):
                store(number, computed)
    return work.join([contents[number] for number in range(len(work.parts))])


class _Computed(NamedTuple):
    """The tensors of a part, and what computed them."""

    tensors: dict[str, Tensor]
    made_by: dict[str, Any]


def _from_workers(
    executor: Executor, work: Work[Any], missing: Sequence[int]
) -> Iterator[tuple[int, _Computed]]:
    """Numbers and contents of the missing parts, as they arrive from the workers."""
    for first in range(0, len(missing), _PARTS_AHEAD):
        number_of: dict[Future[_Computed], int] = {}
        for number in missing[first : first + _PARTS_AHEAD]:
            part = work.parts[number]
            future = executor.submit(_InWorker(), work.shared, part, work.device, _versions())
            number_of[future] = number
        try:
            for future in as_completed(number_of):
                # Forgotten here, so that a cluster need not remember it either.
                yield number_of.pop(future), future.result()
        finally:
            for future in number_of:
                future.cancel()


def _compute(shared: Any, part: Part, device: torch.device, on_step: OnStep) -> _Computed:
    started = time.perf_counter()
    tensors = part.tensors(shared, device, on_step)
    seconds = round(time.perf_counter() - started, 6)
    return _Computed(tensors, _made_here(device) | {"seconds": seconds})


class _InWorker:
    """`_compute_in_worker`, which is unpickled before its arguments are.

    A path that is unpickled prepares its weights. In a forked process more than one thread of torch
    would wait forever for those of the parent.
    """

    def __call__(self, *arguments: Any) -> _Computed:
        return _compute_in_worker(*arguments)

    def __reduce__(self) -> tuple[Callable[[], Callable[..., _Computed]], tuple[()]]:
        return _ready_worker, ()


def _ready_worker() -> Callable[..., _Computed]:
    torch.set_num_threads(1)
    return _compute_in_worker


def _compute_in_worker(shared: Any, part: Part, device: torch.device, versions: str) -> _Computed:
    if versions != _versions():
        raise RuntimeError(f"cluster: expected workers with {versions}, got one with {_versions()}")
    torch.set_num_threads(1)
    return _compute(shared, part, device, lambda steps: None)


def _versions() -> str:
    return f"paperlib {__version__} with draws {DRAWS}"


def _made_here(device: torch.device) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {**made_by(), "draws": DRAWS, "device": device_name(device), "utc": now}


def _write(file: Path, part: _Computed) -> None:
    write_safetensors(file, part.tensors, {_MADE_BY: json.dumps(part.made_by)})
    note(file.stem, False, part.made_by)


def _read(file: Path) -> dict[str, Tensor]:
    try:
        tensors = read_safetensors(file)
        origin = _made_by(file)
    except ValueError as error:
        raise _damaged_error(file) from error
    note(file.stem, True, origin)
    return tensors


def _damaged_error(file: Path) -> InputError:
    return InputError(f"folder: expected whole shards; remove {file} and run again")


def _made_by(file: Path) -> dict[str, Any] | None:
    """What computed a stored part; None in older files."""
    return json.loads(read_metadata(file).get(_MADE_BY) or "null")


def part_seconds(file: Path) -> float | None:
    """How long a stored part took, without reading its tensors; None in older files."""
    return (_made_by(file) or {}).get("seconds")


# ---- results that JSON can hold


def remembered(
    folder: Folder | None,
    identity: Sequence[Any],
    compute: Callable[[], Mapping[str, Any]],
    file: str | None = None,
    device: torch.device = _CPU,
) -> dict[str, Any]:
    """What `compute` gives, kept in a folder; from then on it is read from there.

    Parameters
    ----------
    folder : path or None
        Where results are kept; created if it does not exist. None: nowhere.
    identity : sequence
        All that the result depends on, as JSON can hold it. It begins with the kind of work.
    compute : callable
        Makes the result, a dictionary that JSON can hold.
    file : str, optional
        The file's name. By default `name_of(identity)`. Needed only for names that older archives
        hold.
    device : torch.device
        Where it is computed.

    Returns
    -------
    dict
        The result, with the `seconds` that it took.

    Raises
    ------
    InputError
        If the file is damaged, or says that it holds the result of other work.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     values = [
    ...         remembered(folder, ["square", number], lambda: {"value": number**2})["value"]
    ...         for number in (3, 4, 3)
    ...     ]
    ...     values, len(list(Path(folder).iterdir()))
    ([9, 16, 9], 2)
    """

    def once(result: dict[str, Any], keep: Callable[[], None]) -> None:
        if not result:
            started = time.perf_counter()
            result |= compute()
            result.setdefault("seconds", round(time.perf_counter() - started, 6))
            keep()

    return extended(folder, identity, once, file, device)


def extended(
    folder: Folder | None,
    identity: Sequence[Any],
    extend: Callable[[dict[str, Any], Callable[[], None]], object],
    file: str | None = None,
    device: torch.device = _CPU,
) -> dict[str, Any]:
    """As `remembered`, for results that grow.

    `extend` takes two arguments: the result so far, which is {} at first, and a function that keeps
    it. It adds what is missing to the result and calls the function. It may set `seconds`, which
    are then those of the file.
    """
    text = _canonical(identity)
    name = "" if folder is None else file or name_of(identity)
    path = None if folder is None else Path(folder) / name
    result, origin = _read_json(path, text)
    is_new = False

    def keep() -> None:
        nonlocal origin, is_new
        origin = _made_here(device)
        is_new = True
        if path is not None:
            contents = {**result, _MADE_BY: origin, _IDENTITY: identity}
            storage.write_json(path, contents, allow_nan=True)

    extend(result, keep)
    if path is not None:
        if origin:
            # Files of version 0.2 and 0.3 do not name the device.
            origin = {"device": device.type, **origin, "seconds": result.get("seconds")}
        note(name.removesuffix(".json"), not is_new, origin)
    return result


def _read_json(path: Path | None, identity: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """A stored result, and what computed it; an empty one if there is none yet."""
    if path is None or not path.is_file():
        return {}, None
    try:
        result = dict(json.loads(path.read_text()))
    except (TypeError, ValueError) as error:
        raise _damaged_error(path) from error
    origin = result.pop(_MADE_BY, None)
    # Older files do not say what they hold; their names do. Compared as text, since JSON knows no
    # tuples.
    if _IDENTITY in result and _canonical(result.pop(_IDENTITY)) != identity:
        raise _damaged_error(path)
    return result, origin


def name_of(identity: Sequence[Any]) -> str:
    """The file of the work with this identity, on every machine.

    Examples
    --------
    >>> name_of(["AIS", {"steps": 100, "betas": [0.0, 1.0]}])
    'ais-bb469803f73243fb09068e91.json'
    """
    return f"{identity[0].lower()}-{storage.sha256(_canonical(identity).encode())[:24]}.json"


def _canonical(identity: Any) -> str:
    return json.dumps(identity, sort_keys=True, allow_nan=False)


# ---- what computed the parts that this process used


class ShardUse(NamedTuple):
    """A shard that this process used. None: its file does not say."""

    name: str  # of its file, without the suffix
    is_stored: bool  # otherwise it was computed for this process
    commit: str | None  # of the code that computed it
    dirty: bool | None  # whether that code differed from the commit
    processor: str | None  # with its vector instructions; or the name of a GPU
    seconds: float | None  # how long the computation took


_used: list[ShardUse] = []


def note(name: str, is_stored: bool, made_by: Mapping[str, Any] | None) -> None:
    """Remember that this process used the shard of this name, and what its file says made it."""
    origin = made_by or {}
    commit = origin.get("commit")
    processor = origin.get("device")
    if processor == "cpu":
        processor = f"{origin['processor']}, {origin['instructions']}"
    # Each string is in memory only once, however many parts there are.
    if commit:
        commit = intern(commit)
    if processor:
        processor = intern(processor)
    use = ShardUse(name, is_stored, commit, origin.get("dirty"), processor, origin.get("seconds"))
    _used.append(use)


def shards_used() -> list[ShardUse]:
    """Every part of a long computation that this process used so far, in order."""
    return list(_used)


def summarize_shards(uses: Iterable[ShardUse]) -> dict[str, Any]:
    """A short summary of what computed these shards.

    A shard that was used more than once counts as at its first use. `found` counts those that were
    found, `unknown` those from unknown code, because their files do not say or there was no git,
    and `uncommitted` those from code that differed from its commit. `seconds` is the total time of
    the shards that state it; None if none does.
    """
    first: dict[str, ShardUse] = {}
    for use in uses:
        first.setdefault(use.name, use)
    shards = first.values()
    seconds = [use.seconds for use in shards if use.seconds is not None]
    return {
        "count": len(shards),
        "found": sum(use.is_stored for use in shards),
        "unknown": sum(use.commit is None for use in shards),
        "uncommitted": sum(bool(use.dirty) for use in shards),
        "seconds": round(sum(seconds), 1) if seconds else None,
        "commits": sorted({use.commit for use in shards if use.commit is not None}),
        "processors": sorted({use.processor for use in shards if use.processor is not None}),
    }
