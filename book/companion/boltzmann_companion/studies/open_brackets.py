"""The models of the RAISE paper's tables, evaluated by parallel tempering: which end of a bracket was right.

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
# From chapter 10: draws for each ln p*(v), and their first seed.
_DRAWS = 500
_OF_DRAWS = 30


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
            known = ", ".join(TABLES[size.name])
            raise InputError(f"tables: expected names among {known}, got {table!r}")
        record = load_result(table, size.name)
        models = TABLES[size.name][table].models
        if record is None:
            continue
        rows = {row["model"]: row for row in record["rows"]}
        for number, (name, model_id) in enumerate(models.items()):
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
                log_p = size.log_unnormalized(model, images.test, _DRAWS, seed + _OF_DRAWS + number)
                mean_log_p = log_p.double().mean().item()
            yield OpenBracket(name, model_id, model, path, mean_log_p, rows[name])


def bracket_row(found: OpenBracket, run: Mapping[str, Any]) -> dict[str, Any]:
    """What a run of parallel tempering says about a model's bracket.

    Parameters
    ----------
    found : OpenBracket
        The model.
    run : mapping
        From `boltzmann_companion.studies.tempering_runs.timed_run`, with parallel tempering.

    Returns
    -------
    dict
        A row for the record `tempering-brackets`. What it says of the two ends is found when it is
        read, by `with_readings`.
    """
    low, high = run["interval"]
    by_tempering = found.mean_log_p - run["log_z"]
    ais = found.row["base_rate_ais"]
    below = found.row["base_rate_raise"]
    return {
        "model": found.name,
        "log_z": run["log_z"],
        "interval": [low, high],
        "ais_log_z": found.mean_log_p - ais,
        "exact": found.row["exact"],
        "ladder": by_tempering,
        "ais": ais,
        "raise": below,
        "ais_off": ais - by_tempering,
        "raise_off": below - by_tempering,
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
        A row of `tempering-brackets`. With a warning, it decides nothing.
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
    low, high = row["interval"]
    of_tempering = Uncertain(0.0, (high - low) / 2 / student_quantile(0.95, math.inf))
    of_ais, of_raise = (ends[f"base_rate_{method}_error"] for method in ("ais", "raise"))
    ais_off = Uncertain(row["ais_off"], of_ais, effective_chains(of_ais) - 1) + of_tempering
    raise_off = Uncertain(row["raise_off"], of_raise, images - 1.0) + of_tempering
    said = {
        "AIS": bracket_verdict(ais_off, of_ais, tolerance),
        "RAISE": bracket_verdict(raise_off, tolerance=tolerance),
    }
    if row["warnings"] != "none":
        said = dict.fromkeys(said, BracketVerdict.CANNOT_TELL)
    fates = {name: _FATES[verdict] for name, verdict in said.items()}
    if len(set(fates.values())) == 1:
        return f"both {fates['AIS']}"
    return ", ".join(f"{name} {fate}" for name, fate in fates.items())


def readings(
    rows: Sequence[Mapping[str, Any]], profile: str, tolerance: float = 1.0
) -> dict[str, str]:
    """`bracket_reading` of each row of `tempering-brackets`, by model, with the tables' records of the same profile."""
    found = {}
    for name, table in TABLES[profile].items():
        record = load_result(name, profile)
        ends = {} if record is None else {row["model"]: row for row in record["rows"]}
        found |= {
            row["model"]: bracket_reading(row, ends[row["model"]], table.images, tolerance)
            for row in rows
            if row["model"] in ends
        }
    return found


def with_readings(record: Record, tolerance: float = 1.0) -> Record:
    """The record `tempering-brackets` with what it says of the ends of each bracket, as `with_verdicts` has it of gaps."""
    said = readings(record["rows"], record["profile"], tolerance)
    rows = [row | {"reading": said[row["model"]]} for row in record["rows"]]
    return with_columns(record, rows)
