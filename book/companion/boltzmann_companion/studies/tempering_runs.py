"""Runs of parallel tempering and of AIS at equal cost, repeated with different seeds, and how far they are from a known ln Z.

The cost is counted in chain-steps: transitions of single chains, everything included. A finished run is kept in the cache as a small file,
and missing runs are computed, so that an interrupted series can continue. A file says what computed it, but does not reflect later changes
to the code; delete the folder after such changes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from scipy.special import fdtri
from tqdm import tqdm

from boltzmann_companion.studies.budgeted_estimators import AIS_CHAINS, anneal
from paperlib.annealing import AnnealingPath
from paperlib.datasets import cache_folder
from paperlib.errors import InputError
from paperlib.estimators import PartitionEstimate, TemperingEstimate, parallel_tempering
from paperlib.keep import name_of, remembered
from paperlib.kernels.version import DRAWS
from paperlib.numerics import seeded_generator
from paperlib.validation import require_count

#: The estimators that can be repeated, and by which names kept runs and the keys of records know them.
ESTIMATORS: Mapping[str, str] = {"parallel tempering": "ladder", "AIS": "AIS"}

# Quantile of the normal distribution for AIS's 95 % interval, ln(Z -+ 1.96 sigma).
_NORMAL = 1.96
# From this many chain-steps on, an interrupted run of parallel tempering continues from a checkpoint.
_LONG_RUN = 500_000


def runs_folder() -> Path:
    """Where finished runs are kept."""
    return cache_folder() / "tempering-runs"


def timed_run(
    estimator: str,
    path: AnnealingPath[Any],
    chain_steps: int,
    seed: int,
    folder: Path | None = None,
) -> dict[str, Any]:
    """One run of an estimator; a finished run that is kept in the folder is read instead.

    Parameters
    ----------
    estimator : str
        `parallel tempering` or `AIS` (100 chains, evenly spaced betas).
    path : AnnealingPath
        The path from the start to the target.
    chain_steps : int
        Transitions of single chains, everything included.
    seed : int
        Seed of the run.
    folder : Path, optional
        Where finished runs are kept. None: nowhere, which suits short runs.

    Returns
    -------
    dict
        `log_z`, `std_error`, `interval` (95 %), `warnings` and `seconds`; for parallel tempering also `chain_steps`,
        `round_trips`, `rungs` and `barrier`. An end of the interval is infinite where the error is not known.

    Raises
    ------
    InputError
        If an argument is not as described, or the path cannot be identified although a folder is given.

    Examples
    --------
    >>> from paperlib.annealing import BaseRatePath
    >>> from paperlib.models import RBM
    >>> path = BaseRatePath(RBM([[1.0, -2.0], [0.5, 3.0]], [0.0, 0.0], [0.0, 0.0]))
    >>> run = timed_run("parallel tempering", path, 2_000, seed=0)
    >>> low, high = run["interval"]
    >>> low < run["log_z"] < high
    True
    """
    if estimator not in ESTIMATORS:
        raise InputError(f"estimator: expected one of {', '.join(ESTIMATORS)}, got {estimator!r}")
    steps = require_count("chain_steps", chain_steps, 2 * AIS_CHAINS)
    seed = require_count("seed", seed, minimum=0)
    identity = [] if folder is None else _identity(estimator, path, steps, seed)
    if estimator == "AIS":
        return remembered(folder, identity, partial(_ais, steps, seed, path), device=path.device)
    checkpoint = None
    if folder is not None and steps >= _LONG_RUN:
        folder.mkdir(parents=True, exist_ok=True)
        checkpoint = (folder / name_of(identity)).with_suffix(".safetensors")
    temper = partial(_temper, checkpoint, steps, seed, path)
    run = remembered(folder, identity, temper, device=path.device)
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    return run


def repeated_runs(
    estimator: str,
    path: AnnealingPath[Any],
    chain_steps: int,
    repeats: int,
    seed: int,
    folder: Path | None = None,
    progress: bool | None = None,
) -> list[dict[str, Any]]:
    """Runs with the seeds `seed`, `seed` + 1, ..., each as by `timed_run`.

    Parameters
    ----------
    estimator, path, chain_steps, folder
        See `timed_run`.
    repeats : int
        Number of runs.
    seed : int
        Seed of the first run.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal.

    Raises
    ------
    InputError
        As for `timed_run`.
    """
    seeds = range(seed, seed + require_count("repeats", repeats))
    bar = _bar(seeds, f"{estimator}, {chain_steps:,} chain-steps", progress)
    return [timed_run(estimator, path, chain_steps, own, folder) for own in bar]


def _bar(seeds: range, description: str, progress: bool | None) -> Iterable[int]:
    hide = None if progress is None else not progress
    return tqdm(seeds, description, unit="seed", delay=2, disable=hide)


def _identity(estimator: str, path: AnnealingPath[Any], steps: int, seed: int) -> list[Any]:
    identity = [ESTIMATORS[estimator], path.checksum(), steps, seed, DRAWS, path.device.type]
    return [*identity, AIS_CHAINS] if estimator == "AIS" else identity


def _temper(
    checkpoint: Path | None, steps: int, seed: int, path: AnnealingPath[Any]
) -> dict[str, Any]:
    generator = seeded_generator(seed, path.device)
    estimate = parallel_tempering(path, steps, generator, False, checkpoint=checkpoint)
    return {
        **_answer(estimate, 0.95),
        "chain_steps": estimate.chain_steps,
        "round_trips": estimate.round_trips,
        "rungs": len(estimate.betas),
        "barrier": estimate.barrier,
    }


def _ais(steps: int, seed: int, path: AnnealingPath[Any]) -> dict[str, Any]:
    estimate = anneal(path, steps, seeded_generator(seed, path.device))[0]
    return _answer(estimate, _NORMAL)


def _answer(estimate: TemperingEstimate | PartitionEstimate, width: float) -> dict[str, Any]:
    """What both say; `width` is the level of parallel tempering's interval, or half the width of AIS's in standard errors."""
    return {
        "log_z": estimate.log_z,
        "std_error": estimate.std_error,
        "interval": list(estimate.interval(width)),
        "warnings": list(estimate.warnings),
    }


def error_row(runs: Sequence[dict[str, Any]], truth: float) -> dict[str, Any]:
    """How far repeated runs are from the truth.

    Parameters
    ----------
    runs : sequence of dict
        From `repeated_runs`, at least two.
    truth : float
        ln Z, in nats.

    Returns
    -------
    dict
        `repeats`, `rmse` (root mean square error), `mean_error` and its standard error `mean_error_error`, in nats; `coverage`, the fraction of
        intervals that hold the truth; `warned`, how many runs had a warning; `seconds`, the median time of a run.

    Raises
    ------
    InputError
        If there are fewer than two runs.

    Examples
    --------
    >>> run = {"interval": [0.0, 2.0], "warnings": [], "seconds": 1.0}
    >>> row = error_row([run | {"log_z": 1.0}, run | {"log_z": 4.0}], 1.0)
    >>> row["mean_error"], row["coverage"]
    (1.5, 1.0)
    """
    if len(runs) < 2:
        raise InputError(f"runs: expected at least two, got {len(runs)}")
    errors = [run["log_z"] - truth for run in runs]
    held = [run["interval"][0] <= truth <= run["interval"][1] for run in runs]
    return {
        "repeats": len(runs),
        "rmse": math.sqrt(statistics.fmean(error**2 for error in errors)),
        "mean_error": statistics.fmean(errors),
        "mean_error_error": statistics.stdev(errors) / math.sqrt(len(errors)),
        "coverage": sum(held) / len(held),
        "warned": sum(bool(run["warnings"]) for run in runs),
        "seconds": statistics.median(run["seconds"] for run in runs),
    }


def seconds_row(
    model: str, errors: Mapping[str, Mapping[str, Any]], known: bool = True
) -> dict[str, Any]:
    """The time that each estimator needs until its error is a tenth of a nat: a row of `tempering-seconds`.

    The error falls as one over the root of the cost. The interval of the ratio of times is from the F distribution of normal errors' squares.

    Parameters
    ----------
    model : str
        Name of the model.
    errors : mapping of str to mapping
        For `parallel tempering` and `AIS`, from `errors_in_turns`.
    known : bool
        Whether errors are from a known ln Z, and not from the mean of parallel tempering's runs.

    Examples
    --------
    >>> found = {"repeats": 10, "rmse": 0.2, "mean_error": 0.1, "seconds": 3.0, "chain_steps": 2_000, "log_z": 5.0}
    >>> row = seconds_row("a model", {"parallel tempering": found, "AIS": found | {"rmse": 0.4}})
    >>> low, high = row["ratio_interval"]
    >>> [round(float(value), 1) for value in (row["ladder_tenth"], row["ratio"], low, high)]
    [12.0, 4.0, 1.1, 14.9]
    """
    row: dict[str, Any] = {"model": model, "log_z": errors["parallel tempering"]["log_z"]}
    for name, found in errors.items():
        key = ESTIMATORS[name].lower()
        row[f"{key}_steps"], row[f"{key}_error"] = found["chain_steps"], found["rmse"]
        row[f"{key}_tenth"] = found["seconds"] * (found["rmse"] / 0.1) ** 2
    row["ratio"] = row["ais_tenth"] / row["ladder_tenth"]
    free = (errors["AIS"]["repeats"], errors["parallel tempering"]["repeats"] - (not known))
    ends = [row["ratio"] / fdtri(*free, level) for level in (0.975, 0.025)]
    return row | {"ratio_interval": ends, "ais_mean": errors["AIS"]["mean_error"]}


def errors_in_turns(
    path: AnnealingPath[Any],
    chain_steps: int,
    repeats: int,
    seed: int,
    truth: float | None = None,
    folder: Path | None = None,
    longer: tuple[float, int] | None = None,
    progress: bool | None = None,
) -> dict[str, dict[str, Any]]:
    """Errors of parallel tempering and of AIS in runs that take turns, so that both meet the same machine and their seconds can be compared.

    Parameters
    ----------
    path, chain_steps, folder
        See `timed_run`.
    repeats : int
        Number of runs of each, at least two.
    seed : int
        Seed of the first pair; those that follow have the next seeds.
    truth : float, optional
        ln Z, in nats. None: it is not known, and the mean of parallel tempering's own runs stands for it. Parallel tempering's error is
        then their standard deviation, which does not show what all of them have in common.
    longer : (float, int), optional
        An error in nats, and chain-steps. If AIS has the larger error, it runs again with so many chain-steps, and those runs count.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal.

    Returns
    -------
    dict
        For `parallel tempering` and `AIS` the dictionary of `error_row`, with the `chain_steps` of its runs and the `log_z` from which errors are taken.

    Raises
    ------
    InputError
        As for `timed_run` and `error_row`.

    Examples
    --------
    >>> from paperlib.annealing import BaseRatePath
    >>> from paperlib.models import RBM
    >>> path = BaseRatePath(RBM([[1.0, -2.0], [0.5, 3.0]], [0.0, 0.0], [0.0, 0.0]))
    >>> found = errors_in_turns(path, 2_000, repeats=2, seed=0)
    >>> found["AIS"]["repeats"], found["parallel tempering"]["chain_steps"]
    (2, 2000)
    """
    seeds = range(seed, seed + require_count("repeats", repeats, minimum=2))
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in ESTIMATORS}
    for own in _bar(seeds, f"in turns, {chain_steps:,} chain-steps", progress):
        for name in ESTIMATORS:
            runs[name].append(timed_run(name, path, chain_steps, own, folder))
    values = [run["log_z"] for run in runs["parallel tempering"]]
    middle = statistics.fmean(values) if truth is None else truth
    found = {
        name: error_row(own, middle) | {"chain_steps": chain_steps, "log_z": middle}
        for name, own in runs.items()
    }
    if truth is None:
        found["parallel tempering"]["rmse"] = statistics.stdev(values)
    if longer is not None and found["AIS"]["rmse"] > longer[0]:
        own = repeated_runs("AIS", path, longer[1], repeats, seed, folder, progress)
        found["AIS"] = error_row(own, middle) | {"chain_steps": longer[1], "log_z": middle}
    return found
