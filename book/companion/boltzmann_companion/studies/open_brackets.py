"""The models of the RAISE paper's tables, evaluated by parallel tempering: which end of a bracket was right.

AIS and RAISE start from the same unnormalised averages ln p*(v) and differ in their estimates of Z. With ln Z from parallel tempering,
the same average gives a third number, whose error has no preferred side. It is compared with the two ends in the records `raise-table-1` and
`raise-table-2`.

The average is that of chapters 8 and 10, on the same test images and, where ln p*(v) is an estimate, with the same draws, so it cancels. At
the papers' size these draws are found in the shards of chapter 10.
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
from boltzmann_companion.studies.bracket_tables import TABLES, start_path
from paperlib.annealing import BaseRatePath
from paperlib.datasets import binary_images
from paperlib.errors import InputError
from paperlib.models import DBM, DBN, RBM

# From chapter 10: draws for each ln p*(v), and their first seed.
_DRAWS, _OF_DRAWS = 500, 30


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
        Names of records, from `raise-table-1` and `raise-table-2`. A record that does not exist yet is skipped.

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
        record, models = load_result(table, size.name), TABLES[size.name][table].models
        if record is None:
            continue
        rows = {row["model"]: row for row in record["rows"]}
        for number, (name, model_id) in enumerate(models.items()):
            if name not in rows:
                continue
            model, images = size.model(model_id), binary_images(recipe(model_id).dataset)
            seed = record["provenance"]["seed"]
            assert isinstance(model, RBM | DBM | DBN)
            path = start_path(model, images.train, "base rates", number, seed).to(size.device)
            if isinstance(model, RBM):
                mean_log_p = average(model.log_unnormalized, images.test, model.dtype)
            else:
                log_p = size.log_unnormalized(model, images.test, _DRAWS, seed + _OF_DRAWS + number)
                mean_log_p = log_p.double().mean().item()
            yield OpenBracket(name, model_id, model, path, mean_log_p, rows[name])


def bracket_row(found: OpenBracket, run: Mapping[str, Any], tolerance: float) -> dict[str, Any]:
    """What a run of parallel tempering says about a model's bracket.

    Parameters
    ----------
    found : OpenBracket
        The model.
    run : mapping
        From `boltzmann_companion.studies.tempering_runs.timed_run`, with parallel tempering.
    tolerance : float
        How far an end of the bracket may be from parallel tempering's 95 % interval and still count as right, in nats.

    Returns
    -------
    dict
        A row for the record `tempering-brackets`.
    """
    low, high = run["interval"]
    by_tempering = found.mean_log_p - run["log_z"]
    ais, below = found.row["base_rate_ais"], found.row["base_rate_raise"]
    interval = [found.mean_log_p - high, found.mean_log_p - low]
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
        "reading": bracket_reading(interval, ais, below, run["warnings"], tolerance),
        "chain_steps": run["chain_steps"],
        "round_trips": run["round_trips"],
        "rungs": run["rungs"],
        "barrier": run["barrier"],
        "warnings": words(run["warnings"]),
        "seconds": run["seconds"],
    }


def bracket_reading(
    interval: Sequence[float], ais: float, below: float, warnings: Sequence[str], tolerance: float
) -> str:
    """Which end of a bracket a third estimate confirms, in words.

    Parameters
    ----------
    interval : (float, float)
        The 95 % interval of the test average, in nats.
    ais, below : float
        The averages by AIS and by RAISE.
    warnings : sequence of str
        Warnings of the third estimate; with a warning, it decides nothing.
    tolerance : float
        How far an end may be from the interval, in nats.

    Examples
    --------
    >>> bracket_reading((-86.6, -86.4), -82.0, -86.5, (), 1.0)
    'RAISE'
    >>> bracket_reading((-86.6, -86.4), -86.3, -86.5, (), 1.0)
    'both'
    """
    if warnings or not all(map(math.isfinite, interval)):
        return "not decided"
    low, high = (interval[0] - tolerance, interval[1] + tolerance)
    right = [name for name, end in (("AIS", ais), ("RAISE", below)) if low <= end <= high]
    return {0: "neither", 1: "".join(right), 2: "both"}[len(right)]
