"""The brackets of the RAISE paper's two tables.

A table has models, starts, numbers of distributions, test images and seeds. A stored shard is found
only by exactly the same numbers, so they are stated once: here, for chapters 8, 10 and 16 and for
`paperlib long`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from boltzmann_companion.columns import record_columns
from boltzmann_companion.profiles import Profile
from boltzmann_companion.recipes import Model
from boltzmann_companion.tables import Record, format_value
from boltzmann_likelihood.store import is_stored, kept, part_files
from paperlib.annealing import BaseRatePath, base_rate_path, path_to, uniform_betas
from paperlib.estimators import (
    Bracket,
    BracketVerdict,
    PartitionEstimate,
    ReverseEstimate,
    bracket_verdict,
)
from paperlib.estimators.csl import CSLEstimate, csl_run
from paperlib.estimators.shards import ais_run, raise_run
from paperlib.models import RBM
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import seeded_generator
from paperlib.resumable import Work
from paperlib.uncertain import Uncertain

STARTS = ("uniform", "base rates")
#: Test images for which RAISE is run in the paper's tables.
PAPERS_IMAGES = 100
# What CSL adds to the chapter's seed, with the model's place in the table.
CSL_STREAM = 200
# Chains of CSL and their steps: 5 x 10^8 in all, as many as AIS takes, and half of the paper's
# total of RAISE and AIS.
_CSL_CHAINS = 10_000
_CSL_STEPS = 50_000


@dataclass(frozen=True)
class BracketTable:
    """A table of brackets, whose runs have seeds of their own.

    Attributes
    ----------
    models : mapping of str to str
        Names of the rows, with the ids of the models.
    steps : tuple of int
        Every K for which the table's models may be run.
    ais_chains : int
        AIS chains for each model.
    raise_chains : int
        RAISE chains for each image.
    images : int
        Test images for which RAISE is run.
    strides : tuple of int
        How far apart the streams of neighbouring models and starts are.
    own_images : bool
        Whether images are chosen for each model, instead of the same ones for all models of a data
        set.
    """

    models: Mapping[str, str]
    steps: tuple[int, ...]
    ais_chains: int
    raise_chains: int
    images: int
    strides: tuple[int, int]
    own_images: bool

    def stream(self, number: int, start: str, steps: int) -> int:
        """What AIS adds to the chapter's seed; RAISE has the next number.

        Parameters
        ----------
        number : int
            The model's place in the table, counted from 0.
        start : str
            One of `STARTS`.
        steps : int
            K, one of `steps`.
        """
        model_stride, start_stride = self.strides
        model_place = model_stride * number
        start_place = start_stride * STARTS.index(start)
        return 1_000 + model_place + start_place + 2 * self.steps.index(steps)

    def chosen(self, number: int, num_images: int, seed: int) -> Tensor:
        """Indices of the test images for which RAISE is run, int64 [`images`]."""
        stream = 100 + number if self.own_images else 5
        order = torch.randperm(num_images, generator=seeded_generator(seed + stream))
        return order[: self.images]


def start_path(model: Model, train: Tensor, start: str, number: int, seed: int) -> BaseRatePath:
    """The path to a model of a table from one of `STARTS`.

    Parameters
    ----------
    model : RBM, DBM or DBN
        The model.
    train : Tensor, shape [N, D]
        Binary training images, which give the base rates: of v, and of h2 by mean field for a DBM;
        of h1 as Q draws it for a DBN.
    start : str
        One of `STARTS`.
    number, seed : int
        The model's place in the table, and the chapter's seed; not used for an RBM.
    """
    assert isinstance(model, UnnormalizedModel)
    if start == "base rates":
        path = base_rate_path(model, train, seeded_generator(seed + 90 + number))
    else:
        path = path_to(model, None)
    assert isinstance(path, BaseRatePath)
    return path


def bracket_runs(
    size: Profile, table: BracketTable, path: BaseRatePath, v: Tensor, steps: int, seed: int
) -> tuple[Work[ReverseEstimate], Work[PartitionEstimate]]:
    """The shards of RAISE and of AIS for a bracket, as `size` runs them at the papers' size.

    Parameters
    ----------
    size : Profile
        Determines where chains walk, and where shards are looked for.
    table : BracketTable
        The table.
    path : BaseRatePath
        From `start_path`.
    v : Tensor, shape [N, D]
        The chosen test images.
    steps : int
        K.
    seed : int
        The seed of AIS: the chapter's and the stream.
    """
    betas = uniform_betas(steps)
    below = size.run(partial(raise_run, path, v, betas, table.raise_chains, seed + 1))
    return below, size.run(partial(ais_run, path, betas, table.ais_chains, seed))


def steps_for(
    size: Profile,
    table: BracketTable,
    largest: int,
    paths: Mapping[str, BaseRatePath],
    v: Tensor,
    number: int,
    seed: int,
) -> list[int]:
    """Every K for which a model's brackets are computed or stored, in increasing order.

    These are all up to `largest`, and the table's largest where its shards from both starts are
    stored.

    Parameters
    ----------
    size, table, v : Profile, BracketTable, Tensor
        As for `bracket_runs`.
    largest : int
        The K up to which the chapter computes what is missing; at least the smallest of the table
        is taken.
    paths : mapping of str to BaseRatePath
        From `start_path`, by start.
    number, seed : int
        As for `start_path`.
    """
    steps = [k for k in table.steps if k <= largest] or [table.steps[0]]
    last = table.steps[-1]
    if last in steps or size.name == "digits":
        return steps
    for start, path in paths.items():
        first_seed = seed + table.stream(number, start, last)
        for run in bracket_runs(size, table, path, v, last, first_seed):
            if not is_stored(run, size.folder):
                return steps
    return [*steps, last]


def point_of(bracket: Bracket) -> dict[str, float]:
    """A bracket's two ends and its gap as a point of a curve.

    It has no standard error of AIS, which with few steps is seldom a measure of its error.
    """
    return {
        "raise": bracket.lower.mean,
        "raise_error": bracket.lower.test_set_std_error,
        "ais": bracket.upper,
        "gap": bracket.gap,
        "gap_error": bracket.gap_std_error,
        "gap_dof": bracket.uncertain_gap.dof,
    }


def ends_and_gap(bracket: Bracket) -> dict[str, float]:
    """A bracket's two ends and its gap, each with its standard error, as in the tables' rows."""
    return point_of(bracket) | {"ais_error": bracket.upper_std_error}


def from_start(start: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values in the columns of a table's row that belong to a start, such as `base_rate_gap`."""
    key = start.replace(" rates", "_rate")
    return {f"{key}_{name}": value for name, value in values.items()}


def effective_chains(ais_error: float) -> float:
    """How many chains AIS's estimate is worth, by its standard error; infinite without one."""
    return 1 / ais_error**2 if ais_error else math.inf


def gap_verdict(
    gap: float,
    raise_error: float,
    ais_error: float,
    images: int = PAPERS_IMAGES,
    tolerance: float = 1.0,
    dof: float | None = None,
) -> BracketVerdict:
    """What the gap between AIS's average and RAISE's says, by the rule of the library.

    The degrees of freedom of the gap follow from the numbers of images and of chains where they are
    not known.
    """
    difference = _uncertain_gap(gap, raise_error, ais_error, images)
    if dof is not None:
        difference = replace(difference, dof=dof)
    return bracket_verdict(difference, ais_error, tolerance)


def _uncertain_gap(gap: float, raise_error: float, ais_error: float, images: int) -> Uncertain:
    """A gap with degrees of freedom that follow from the numbers of images and of chains."""
    raise_part = Uncertain(gap, raise_error, images - 1.0)
    ais_part = Uncertain(0.0, ais_error, effective_chains(ais_error) - 1)
    return raise_part + ais_part


def ends_of(row: Mapping[str, Any], start: str = "") -> tuple[float, float, float]:
    """The gap of a row, or of one of its starts, and the standard errors of RAISE and of AIS."""
    prefix = f"{start}_" if start else ""
    gap_error = row[f"{prefix}gap_error"]
    raise_error = row[f"{prefix}raise_error"]
    # the gap's error is that of the two ends together
    ais_error = math.sqrt(max(gap_error**2 - raise_error**2, 0.0))
    return row[f"{prefix}gap"], raise_error, ais_error


def verdict_of(
    row: Mapping[str, Any], start: str = "", images: int = PAPERS_IMAGES, tolerance: float = 1.0
) -> BracketVerdict:
    """What the bracket of a row says, or that of one of its starts, `uniform` or `base_rate`.

    The bracket itself says the same, except that records made before 0.5.0 have no `gap_dof`.
    """
    dof = row.get(f"{start}_gap_dof" if start else "gap_dof")
    return gap_verdict(*ends_of(row, start), images, tolerance, dof)


def closer_verdict(
    near: tuple[float, float, float], far: tuple[float, float, float], images: int = PAPERS_IMAGES
) -> BracketVerdict:
    """Whether AIS and RAISE are closer in one bracket than in another, both from `ends_of`.

    `open` if they are closer in the first, `crossed` if they are in the second.
    """
    near_gap, near_raise_error, near_ais_error = near
    far_gap, far_raise_error, far_ais_error = far
    smaller = _uncertain_gap(abs(near_gap), near_raise_error, near_ais_error, images)
    larger = _uncertain_gap(abs(far_gap), far_raise_error, far_ais_error, images)
    return bracket_verdict(larger - smaller, max(near_ais_error, far_ais_error), 0)


def gap_lines(
    rows: Sequence[Mapping[str, Any]], images: int = PAPERS_IMAGES, tolerance: float = 1.0
) -> Iterator[str]:
    """A line for each bracket of `raise-table-1` or `raise-table-2`: its gap and its verdict."""
    for row, start in itertools.product(rows, ("base_rate", "uniform")):
        name = start.replace("_", " ")
        verdict = verdict_of(row, start, images, tolerance)
        gap = format_value(row[f"{start}_gap"])
        error = format_value(row[f"{start}_gap_error"])
        yield f"{row['model']}, {name}, K = {row['steps']:,}: gap {gap} ± {error} nats, {verdict}"


def with_verdicts(record: Record, images: int = PAPERS_IMAGES, tolerance: float = 1.0) -> Record:
    """A record of brackets with the verdict of each.

    A record keeps gaps and errors alone. Verdicts are computed when it is read, so that all of them
    are by the present rule.

    Parameters
    ----------
    record : Record
        From `Chapter.record` or `Chapter.stored`.
    images : int
        For how many test images RAISE was run.
    tolerance : float
        As for `bracket_verdict`.
    """
    if "uniform_gap" in record["columns"]:
        starts = {"uniform_verdict": "uniform", "base_rate_verdict": "base_rate"}
    else:
        starts = {"verdict": ""}
    rows = []
    for row in record["rows"]:
        verdicts = {
            column: verdict_of(row, start, images, tolerance) for column, start in starts.items()
        }
        rows.append(row | verdicts)
    return with_columns(record, rows)


def with_columns(record: Record, rows: Sequence[Mapping[str, Any]]) -> Record:
    """A record with other rows, which may have columns that are computed when it is read."""
    columns = record_columns(record["name"], record["profile"], rows)
    return Record(
        record, rows=rows, columns={key: asdict(column) for key, column in columns.items()}
    )


def long_csl_run(size: Profile, rbm: RBM, v: Tensor, number: int, seed: int) -> Work[CSLEstimate]:
    """The shards of CSL with as many steps as AIS, for the model at this place in the table.

    The number of hidden states is the same for all models.
    """
    first = seed + CSL_STREAM + number
    return size.run(partial(csl_run, rbm, v, _CSL_CHAINS, _CSL_STEPS, first))


def stored_csl(
    size: Profile, rbm: RBM, v: Tensor, number: int, seed: int
) -> tuple[CSLEstimate | None, int]:
    """CSL by the stored shards of `long_csl_run`, and the number of its hidden states.

    None and 0 if there are no shards.
    """
    run = long_csl_run(size, rbm, v, number, seed)
    files = part_files(run, size.folder) if size.name == "paper" else []
    stored = list(takewhile(Path.is_file, files))
    if not stored:
        return None, 0
    begun = replace(run, parts=run.parts[: len(stored)])
    # A step of a chain is a hidden state.
    return kept(begun, size.folder), sum(part.steps for part in begun.parts)


_rbms = partial(BracketTable, strides=(1_000, 100), own_images=False)
_deep = partial(BracketTable, strides=(100, 20), own_images=True)
_PAPERS: dict[str, Any] = {
    "steps": (10, 100, 1_000, 10_000, 100_000),
    "ais_chains": 5_000,
    "raise_chains": 50,
    "images": PAPERS_IMAGES,
}
#: For each profile, the tables by the names of their records.
TABLES: dict[str, dict[str, BracketTable]] = {
    "digits": {
        "raise-table-1": _rbms(
            {
                "digitsCD1-16": "digits-cd1-16",
                "digitsPCD-16": "digits-pcd-16",
                "digitsCD1-50": "digits-cd1-50",
                "digitsPCD-50": "digits-pcd-50",
                "digitsCD25-50": "digits-cd25-50",
            },
            steps=(3, 10, 30, 100, 300, 1_000),
            ais_chains=300,
            raise_chains=10,
            images=30,
        ),
        "raise-table-2": _deep(
            {"DBM": "digits-dbm", "DBN-CD25": "digits-dbn-cd25"},
            steps=(10, 30, 100, 200),
            ais_chains=500,
            raise_chains=10,
            images=50,
        ),
    },
    "paper": {
        "raise-table-1": _rbms(
            {
                "mnistCD1-20": "mnist-cd1-20",
                "mnistPCD-20": "mnist-pcd-20",
                "mnistCD1-500": "mnist-cd1-500",
                "mnistPCD-500": "mnist-pcd-500",
                "mnistCD25-500": "mnist-cd25-500",
                "omniPCD-1000": "omniglot-pcd-1000",
            },
            **_PAPERS,
        ),
        "raise-table-2": _deep(
            {
                "MNIST DBM": "mnist-dbm",
                "Omniglot DBM": "omniglot-dbm",
                "MNIST DBN": "mnist-dbn-cd25",
                "Omniglot DBN": "omniglot-dbn",
            },
            **_PAPERS,
        ),
    },
}
