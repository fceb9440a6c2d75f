"""Runs of parallel tempering, AIS, SMC and RAISE at equal cost, beside a known ln Z.

Runs are repeated with different seeds. The ln Z of RAISE is the one that its average
log-probability of a hundred images implies, ln p*(v) less ln p(v). The cost is counted in
chain-steps: transitions of single chains, everything included.

A finished run is kept in the cache as a small file, and missing runs are computed, so that an
interrupted series can continue. A file says what computed it, but does not reflect later changes to
the code; delete the folder after such changes.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from scipy.special import fdtri
from torch import Tensor
from tqdm import tqdm

from boltzmann_companion.studies.annealed_smc import PopulationEstimate
from boltzmann_companion.studies.budgeted_estimators import AIS_CHAINS, anneal, populations
from boltzmann_likelihood.evaluation.annealing_runs import CHAINS_PER_VECTOR
from boltzmann_likelihood.store import name_of, remembered
from paperlib.annealing import AnnealingPath
from paperlib.annealing.schedules import uniform_betas
from paperlib.datasets import cache_folder
from paperlib.errors import InputError
from paperlib.estimators import (
    PartitionEstimate,
    TemperingEstimate,
    parallel_tempering,
    raise_log_prob,
)
from paperlib.kernels.version import DRAWS
from paperlib.models.files import tensors_checksum
from paperlib.numerics import seeded_generator
from paperlib.validation import require_count

#: The estimators that are compared at equal cost, and those whose seconds are compared.
ESTIMATORS = ("parallel tempering", "AIS")
IN_TURNS = (*ESTIMATORS, "SMC", "RAISE")
# By which other name kept runs know an estimator.
_KEPT_AS = {"parallel tempering": "ladder"}

# Quantile of the normal distribution for AIS's 95 % interval, ln(Z -+ 1.96 sigma).
_NORMAL = 1.96
# From this many chain-steps on, an interrupted run of parallel tempering continues from a
# checkpoint.
_LONG_RUN = 500_000
_RAISE_IMAGES = 100
_TIMED = 3


def runs_folder() -> Path:
    """Where finished runs are kept."""
    return cache_folder() / "tempering-runs"


def timed_run(
    estimator: str,
    path: AnnealingPath[Any],
    chain_steps: int,
    seed: int,
    folder: Path | None = None,
    images: Tensor | None = None,
) -> dict[str, Any]:
    """One run of an estimator; a finished run that is kept in the folder is read instead.

    Parameters
    ----------
    estimator : str
        `parallel tempering`, `AIS` (100 chains, evenly spaced betas), `SMC` (as in chapter 17) or
        `RAISE` (four chains for each image, evenly spaced betas).
    path : AnnealingPath
        The path from the start to the target.
    chain_steps : int
        Transitions of single chains, everything included.
    seed : int
        Seed of the run.
    folder : Path, optional
        Where finished runs are kept. None: nowhere, which suits short runs.
    images : Tensor, shape [N, D], optional
        For RAISE, which takes the first hundred.

    Returns
    -------
    dict
        `log_z`, `std_error`, `interval` (95 %), `warnings` and `seconds`; for parallel tempering
        also `chain_steps`, `round_trips`, `rungs` and `barrier`. An end of the interval is infinite
        where the error is not known.

    Raises
    ------
    InputError
        If an argument is not as described, or the path cannot be identified although a folder is
        given.

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
    if estimator not in IN_TURNS:
        raise InputError(f"estimator: expected one of {', '.join(IN_TURNS)}, got {estimator!r}")
    steps = require_count("chain_steps", chain_steps, 2 * AIS_CHAINS)
    seed = require_count("seed", seed, minimum=0)
    identity = [] if folder is None else _identity(estimator, path, steps, seed, images)
    if estimator != "parallel tempering":
        others = {"AIS": _ais, "SMC": _smc, "RAISE": partial(_raise, images)}
        compute = partial(others[estimator], steps, seed, path)
        return remembered(folder, identity, compute, device=path.device)
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
    images: Tensor | None = None,
) -> list[dict[str, Any]]:
    """Runs with the seeds `seed`, `seed` + 1, ..., each as by `timed_run`.

    Parameters
    ----------
    estimator, path, chain_steps, folder, images
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
    description = f"{estimator}, {chain_steps:,} chain-steps"
    hide = None if progress is None else not progress
    bar = tqdm(seeds, description, unit="seed", delay=2, disable=hide)
    return [timed_run(estimator, path, chain_steps, run_seed, folder, images) for run_seed in bar]


def _identity(
    estimator: str, path: AnnealingPath[Any], steps: int, seed: int, images: Tensor | None
) -> list[Any]:
    name = _KEPT_AS.get(estimator, estimator)
    identity: list[Any] = [name, path.checksum(), steps, seed, DRAWS, path.device.type]
    if estimator == "AIS":
        identity.append(AIS_CHAINS)
    if estimator == "RAISE":
        identity.append(tensors_checksum([_first_images(images)]))
    return identity


def _temper(
    checkpoint: Path | None, steps: int, seed: int, path: AnnealingPath[Any]
) -> dict[str, Any]:
    generator = seeded_generator(seed, path.device)
    estimate = parallel_tempering(path, steps, generator, False, checkpoint=checkpoint)
    return {
        **_answer(estimate, estimate.interval(0.95)),
        "chain_steps": estimate.chain_steps,
        "round_trips": estimate.round_trips,
        "rungs": len(estimate.betas),
        "barrier": estimate.barrier,
    }


def _ais(steps: int, seed: int, path: AnnealingPath[Any]) -> dict[str, Any]:
    estimate = anneal(path, steps, seeded_generator(seed, path.device))[0]
    return _answer(estimate, estimate.std_interval(_NORMAL))


def _smc(steps: int, seed: int, path: AnnealingPath[Any]) -> dict[str, Any]:
    estimate = populations(path, steps, seeded_generator(seed, path.device))[0]
    return _answer(estimate, estimate.interval(0.95))


def _raise(
    images: Tensor | None, steps: int, seed: int, path: AnnealingPath[Any]
) -> dict[str, Any]:
    v = _first_images(images).to(path.device, path.dtype)
    betas = uniform_betas(max(1, steps // (len(v) * CHAINS_PER_VECTOR)))
    generator = seeded_generator(seed, path.device)
    estimate = raise_log_prob(path, v, betas, CHAINS_PER_VECTOR, generator, progress=False)
    log_f = path.log_f(path.state_at(v), 1.0)
    log_z = (log_f.double() - estimate.log_prob).mean().item()
    return {"log_z": log_z, "interval": [-math.inf, math.inf], "warnings": list(estimate.warnings)}


def _first_images(images: Tensor | None) -> Tensor:
    """The images that RAISE takes."""
    if images is None:
        raise InputError("images: expected some for RAISE, got none")
    return images[:_RAISE_IMAGES]


def _answer(
    estimate: TemperingEstimate | PopulationEstimate | PartitionEstimate,
    interval: tuple[float, float],
) -> dict[str, Any]:
    """What a row has from every estimator but RAISE."""
    return {
        "log_z": estimate.log_z,
        "std_error": estimate.std_error,
        "interval": list(interval),
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
        `repeats`, `rmse` (root mean square error), `mean_error` and its standard error
        `mean_error_error`, in nats; `coverage`, the fraction of intervals that hold the truth;
        `warned`, how many runs had a warning; `seconds`, the median time of a run.

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
    covered = [run["interval"][0] <= truth <= run["interval"][1] for run in runs]
    return {
        "repeats": len(runs),
        "rmse": math.sqrt(statistics.fmean(error**2 for error in errors)),
        "mean_error": statistics.fmean(errors),
        "mean_error_error": statistics.stdev(errors) / math.sqrt(len(errors)),
        "coverage": sum(covered) / len(covered),
        "warned": sum(bool(run["warnings"]) for run in runs),
        "seconds": statistics.median(run["seconds"] for run in runs),
    }


def seconds_rows(
    model: str,
    path: AnnealingPath[Any],
    chain_steps: int,
    repeats: int,
    seed: int,
    truth: float,
    folder: Path | None = None,
    images: Tensor | None = None,
    progress: bool | None = None,
) -> list[dict[str, Any]]:
    """Rows of `tempering-seconds`: the error of each estimator, and its time to a tenth of a nat.

    The error falls as one over the root of the cost. That of RAISE is nearly all bias, which falls
    more slowly, so RAISE has no such time. The interval of a ratio of times is from the F
    distribution of normal errors' squares. Chain-steps are timed anew, in runs that take turns, so
    that all meet the same machine.

    Parameters
    ----------
    model : str
        Name of the model.
    path, chain_steps, folder, images
        See `timed_run`.
    repeats : int
        Number of runs of each, at least two.
    seed : int
        Seed of the first run; those that follow have the next seeds.
    truth : float
        ln Z, in nats.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal.

    Raises
    ------
    InputError
        As for `timed_run` and `error_row`.

    Examples
    --------
    >>> import torch
    >>> from paperlib.annealing import BaseRatePath
    >>> from paperlib.models import RBM
    >>> path = BaseRatePath(RBM([[1.0, -2.0], [0.5, 3.0]], [0.0, 0.0], [0.0, 0.0]))
    >>> rows = seconds_rows("tiny", path, 2_000, repeats=2, seed=0, truth=2.0, images=torch.eye(2))
    >>> [row["estimator"] for row in rows], rows[0]["ratio"]
    (['parallel tempering', 'AIS', 'SMC', 'RAISE'], 1.0)
    """
    rows = []
    for name, seconds in _seconds_of_a_run(path, chain_steps, seed, images).items():
        runs = repeated_runs(name, path, chain_steps, repeats, seed, folder, progress, images)
        row = {"model": model, "log_z": truth, "estimator": name, "chain_steps": chain_steps}
        row |= error_row(runs, truth) | {"seconds": seconds}
        row |= {"tenth": None, "ratio": None, "ratio_interval": None}
        rows.append(row)
        if name == "RAISE":
            continue
        row["tenth"] = seconds * (row["rmse"] / 0.1) ** 2
        ratio = row["tenth"] / rows[0]["tenth"]
        row["ratio"] = ratio
        if len(rows) > 1:
            ends = [ratio / fdtri(repeats, repeats, level) for level in (0.975, 0.025)]
            row["ratio_interval"] = ends
    return rows


def _seconds_of_a_run(
    path: AnnealingPath[Any], chain_steps: int, seed: int, images: Tensor | None
) -> dict[str, float]:
    """Processor seconds of a run of each estimator: the least of three that take turns."""
    least: dict[str, float] = dict.fromkeys(IN_TURNS, math.inf)
    for _ in range(_TIMED):
        for name in IN_TURNS:
            started = time.process_time()
            timed_run(name, path, chain_steps, seed, None, images)
            least[name] = min(least[name], time.process_time() - started)
    return least
