"""Which end of a bracket was right: the models of the RAISE paper's tables by parallel tempering.

AIS and RAISE start from the same unnormalised averages ln p*(v) and differ in their estimates of Z.
With ln Z from parallel tempering, the same average gives a third number, whose error has no
preferred side. It is compared with the two ends in the records `raise-table-1` and `raise-table-2`.

The average is that of chapters 8 and 10, on the same test images and, where ln p*(v) is an
estimate, with the same draws, so it cancels. At the papers' size these draws are found in the
shards of chapter 10.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boltzmann_companion.profiles import Profile
from boltzmann_companion.recipes import Model, recipe
from boltzmann_companion.records import load_result
from boltzmann_companion.rows import average, words
from boltzmann_companion.studies.bracket_tables import (
    TABLES,
    effective_chains,
    start_path,
    with_columns,
)
from boltzmann_companion.tables import Record
from paperlib.annealing import BaseRatePath
from paperlib.datasets import binary_images
from paperlib.errors import InputError
from paperlib.estimators import BracketVerdict, bracket_verdict
from paperlib.models import DBM, DBN, RBM
from paperlib.numerics import student_quantile
from paperlib.uncertain import Uncertain

# What a verdict on the distance from parallel tempering says of an end.
_FATES = {
    BracketVerdict.CLOSED: "right",
    BracketVerdict.OPEN: "wrong",
    BracketVerdict.CROSSED: "wrong",
    BracketVerdict.CANNOT_TELL: "undecided",
}
# From chapter 10: draws for each ln p*(v), and what they add to the chapter's seed.
_DRAWS = 500
_DRAWS_STREAM = 30


@dataclass(frozen=True)
class OpenBracket:
    """A model and what the records say about it.

    Attributes
    ----------
    name : str
        Its name in the tables.
    model_id : str
        Id of the stored model.
    model : RBM, DBM or DBN
        The model.
    path : BaseRatePath
        The path from the base rates at which the table's second half starts.
    mean_log_p : float
        Mean of ln p*(v) over the test images, in nats, as in the chapter.
    row : mapping
        The table's row.
    """

    name: str
    model_id: str
    model: Model
    path: BaseRatePath
    mean_log_p: float
    row: Mapping[str, Any]


def open_brackets(size: Profile, tables: Sequence[str]) -> Iterator[OpenBracket]:
    """Each model that has a row in a table of this profile.

    Parameters
    ----------
    size : Profile
        Determines the models and their type.
    tables : sequence of str
        Names of records, from `raise-table-1` and `raise-table-2`. A record that does not exist yet
        is skipped.

    Yields
    ------
    OpenBracket
        In the tables' order.

    Raises
    ------
    InputError
        If there is no such table.
    """
    for table in tables:
        if table not in TABLES[size.name]:
            names = ", ".join(TABLES[size.name])
            raise InputError(f"tables: expected names among {names}, got {table!r}")
        record = load_result(table, size.name)
        if record is None:
            continue
        rows = {row["model"]: row for row in record["rows"]}
        for number, (name, model_id) in enumerate(TABLES[size.name][table].models.items()):
            if name not in rows:
                continue
            model = size.model(model_id)
            images = binary_images(recipe(model_id).dataset)
            seed = record["provenance"]["seed"]
            assert isinstance(model, RBM | DBM | DBN)
            path = start_path(model, images.train, "base rates", number, seed).to(size.device)
            if isinstance(model, RBM):
                mean_log_p = average(model.log_unnormalized, images.test, model.dtype)
            else:
                first_seed = seed + _DRAWS_STREAM + number
                log_p = size.log_unnormalized(model, images.test, _DRAWS, first_seed)
                mean_log_p = log_p.double().mean().item()
            yield OpenBracket(name, model_id, model, path, mean_log_p, rows[name])


def bracket_row(bracket: OpenBracket, run: Mapping[str, Any]) -> dict[str, Any]:
    """What a run of parallel tempering says about a model's bracket.

    Parameters
    ----------
    bracket : OpenBracket
        The model.
    run : mapping
        From `boltzmann_companion.studies.tempering_runs.timed_run`, with parallel tempering.

    Returns
    -------
    dict
        A row for the record `tempering-brackets`. `with_readings` adds what it says of the two ends
        when it is read.
    """
    low, high = run["interval"]
    tempering = bracket.mean_log_p - run["log_z"]
    above = bracket.row["base_rate_ais"]
    below = bracket.row["base_rate_raise"]
    return {
        "model": bracket.name,
        "log_z": run["log_z"],
        "interval": [low, high],
        "ais_log_z": bracket.mean_log_p - above,
        "exact": bracket.row["exact"],
        "ladder": tempering,
        "ais": above,
        "raise": below,
        "ais_off": above - tempering,
        "raise_off": below - tempering,
        "chain_steps": run["chain_steps"],
        "round_trips": run["round_trips"],
        "rungs": run["rungs"],
        "barrier": run["barrier"],
        "warnings": words(run["warnings"]),
        "seconds": run["seconds"],
    }


def bracket_reading(
    row: Mapping[str, Any], ends: Mapping[str, Any], images: int, tolerance: float = 1.0
) -> str:
    """Which ends of a bracket parallel tempering finds right or wrong, by the rule for brackets.

    Parameters
    ----------
    row : mapping
        A row of `tempering-brackets`. A run with a warning decides nothing.
    ends : mapping
        The row of the same model in `raise-table-1` or `raise-table-2`, whose errors from the base
        rates count as well.
    images : int
        For how many images RAISE was run.
    tolerance : float
        As for `bracket_verdict`.

    Examples
    --------
    >>> row = {"warnings": "none", "interval": [1.0, 1.2], "ais_off": 4.1, "raise_off": -0.2}
    >>> ends = {"base_rate_ais_error": 0.01, "base_rate_raise_error": 0.05}
    >>> bracket_reading(row, ends, 100), bracket_reading(row | {"raise_off": -0.9}, ends, 100)
    ('AIS wrong, RAISE right', 'AIS wrong, RAISE undecided')
    """
    if row["warnings"] != "none":
        return f"both {_FATES[BracketVerdict.CANNOT_TELL]}"
    low, high = row["interval"]
    tempering = Uncertain(0.0, (high - low) / 2 / student_quantile(0.95, math.inf))
    ais_error = ends["base_rate_ais_error"]
    raise_error = ends["base_rate_raise_error"]
    above = Uncertain(row["ais_off"], ais_error, effective_chains(ais_error) - 1) + tempering
    below = Uncertain(row["raise_off"], raise_error, images - 1.0) + tempering
    ais_fate = _FATES[bracket_verdict(above, ais_error, tolerance)]
    raise_fate = _FATES[bracket_verdict(below, tolerance=tolerance)]
    if ais_fate == raise_fate:
        return f"both {ais_fate}"
    return f"AIS {ais_fate}, RAISE {raise_fate}"


def readings(
    rows: Sequence[Mapping[str, Any]], profile: str, tolerance: float = 1.0
) -> dict[str, str]:
    """`bracket_reading` of each row of `tempering-brackets`, by model.

    The ends are those of the two tables' records in the same profile.
    """
    by_model = {}
    for name, table in TABLES[profile].items():
        record = load_result(name, profile)
        if record is None:
            continue
        ends = {row["model"]: row for row in record["rows"]}
        for row in rows:
            model = row["model"]
            if model in ends:
                by_model[model] = bracket_reading(row, ends[model], table.images, tolerance)
    return by_model


def with_readings(record: Record, tolerance: float = 1.0) -> Record:
    """The record `tempering-brackets` with `bracket_reading` of each row."""
    by_model = readings(record["rows"], record["profile"], tolerance)
    rows = [row | {"reading": by_model[row["model"]]} for row in record["rows"]]
    return with_columns(record, rows)
