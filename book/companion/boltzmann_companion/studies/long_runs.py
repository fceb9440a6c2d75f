"""The papers' longest runs: those of chapters 8 and 10 with K = 100,000, and CSL.

`paperlib long` computes what is missing.

They are shards like all others (`paperlib.estimators.shards`), so a run stops and goes on at any
moment, and the chapters find what is done. What settles most comes first: the brackets from the
base rates, then CSL, the deep models, and the uniform starts.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from boltzmann_companion.profiles import Profile
from boltzmann_companion.recipes import Model, recipe
from boltzmann_companion.studies.bracket_tables import (
    TABLES,
    bracket_runs,
    long_csl_run,
    start_path,
)
from boltzmann_likelihood.store import part_files, part_seconds
from paperlib import storage
from paperlib.datasets import binary_images
from paperlib.models import RBM
from paperlib.resumable import Work

_RBMS = (
    "mnistPCD-500",
    "mnistCD25-500",
    "mnistCD1-500",
    "omniPCD-1000",
    "mnistCD1-20",
    "mnistPCD-20",
)
_DEEP = ("MNIST DBN", "Omniglot DBN", "MNIST DBM", "Omniglot DBM")
# Seconds for each weight and step of a chain, where no shard of the run tells: 15 microseconds for
# 784 x 500 weights on a core of 2026.
_SECONDS = 15e-6 / (784 * 500)


@dataclass(frozen=True)
class LongRun:
    """A run, and how much of it has been computed.

    Attributes
    ----------
    name : str
        The table's row, the start, and the estimator.
    run : Work
        Its shards.
    weights : int
        Number of the model's weights, to which the time of a step is nearly proportional.
    """

    name: str
    run: Work[Any]
    weights: int

    def progress(self, folder: Path) -> tuple[int, int, float]:
        """Shards in the folder, shards in all, and the core hours that the others take, about."""
        num_stored = 0
        steps_left = 0
        timed_steps = 0
        seconds = 0.0
        files = part_files(self.run, folder)
        for part, file in zip(self.run.parts, files, strict=True):
            if not file.is_file():
                steps_left += part.steps
                continue
            num_stored += 1
            part_took = part_seconds(file)
            if part_took is not None:
                timed_steps += part.steps
                seconds += part_took
        seconds_per_step = seconds / timed_steps if seconds else _SECONDS * self.weights
        return num_stored, len(files), seconds_per_step * steps_left / 3_600


def long_runs(size: Profile, seed: int = 2008) -> Iterator[LongRun]:
    """All long runs, in the order in which they are to be computed.

    Parameters
    ----------
    size : Profile
        The papers' size, with the device.
    seed : int
        The chapters' seed.

    Raises
    ------
    InputError
        If a model or a data set is missing, or there is no such device.
    """
    yield from _brackets(size, "raise-table-1", _RBMS, "base rates", seed)
    for name in _RBMS:
        rbm, v, number = _model_and_images(size, "raise-table-1", name, seed)
        assert isinstance(rbm, RBM)
        run = long_csl_run(size, rbm, v, number, seed)
        yield LongRun(f"{name}: CSL", run, rbm.weights.numel())
    yield from _brackets(size, "raise-table-2", _DEEP, "base rates", seed)
    yield from _brackets(size, "raise-table-1", _RBMS, "uniform", seed)
    yield from _brackets(size, "raise-table-2", _DEEP, "uniform", seed)


def _model_and_images(
    size: Profile, record: str, name: str, seed: int
) -> tuple[Model, Tensor, int]:
    """A model, the test images chosen for it, and its place in the table."""
    table = TABLES[size.name][record]
    model_id = table.models[name]
    number = list(table.models).index(name)
    test = binary_images(recipe(model_id).dataset).test
    return size.model(model_id), test[table.chosen(number, len(test), seed)], number


def _brackets(
    size: Profile, record: str, names: Sequence[str], start: str, seed: int
) -> Iterator[LongRun]:
    """RAISE before AIS for each row of a table, since RAISE is what is judged."""
    table = TABLES[size.name][record]
    for name in names:
        model, v, number = _model_and_images(size, record, name, seed)
        train = binary_images(recipe(table.models[name]).dataset).train
        path = start_path(model, train, start, number, seed)
        most = table.steps[-1]
        stream = seed + table.stream(number, start, most)
        weights = sum(t.numel() for t in model.tensors().values() if t.ndim > 1)
        below, above = bracket_runs(size, table, path, v, most, stream)
        yield LongRun(f"{name}, {start}: RAISE", below, weights)
        yield LongRun(f"{name}, {start}: AIS", above, weights)


def progress_table(runs: Iterable[LongRun], folder: Path) -> str:
    """A line for each run: its shards, done and all, and the core hours left."""
    rows = {run.name: run.progress(folder) for run in runs}
    stored, count, hours = map(sum, zip(*rows.values(), strict=True))
    rows["in all"] = stored, count, hours
    lines = [f"{'run':36} {'shards':>11} {'core hours left':>16}"]
    for name, (stored, count, hours) in rows.items():
        shards = f"{stored} / {count}"
        lines.append(f"{name:36} {shards:>11} {hours:16.1f}")
    return "\n".join(lines)


def pack_shards(runs: Iterable[LongRun], folder: Path, archives: Path) -> Path | None:
    """Pack the shards of these runs that no archive holds yet into a new archive.

    Returns its path, or None if there are no such shards. An archive is never packed anew, since
    the repository's history would hold it whole once more.
    """
    packed: set[str] = set()
    for archive in archives.glob("*.tar.xz"):
        with tarfile.open(archive) as file:
            packed |= {Path(name).name for name in file.getnames()}
    stored = (
        file for long_run in runs for file in part_files(long_run.run, folder) if file.is_file()
    )
    new = sorted({file for file in stored if file.name not in packed})
    if not new:
        return None
    target = archives / f"long-{1 + len(list(archives.glob('long-*.tar.xz'))):02}.tar.xz"
    with (
        storage.atomic_path(target) as temporary,
        tarfile.open(temporary, "w:xz", preset=9) as archive,
    ):
        for file in new:
            archive.add(file, f"shards/{file.name}", filter=_anonymous)
    return target


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without the owner and the time, so that the same shards make the same archive."""
    member.uid = 0
    member.gid = 0
    member.uname = ""
    member.gname = ""
    member.mtime = 0
    return member
