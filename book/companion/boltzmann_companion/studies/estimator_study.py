"""Which estimator of ln Z tells the truth?

All are run repeatedly on models with a known ln Z, with the same budgets.

Each run gives an *outcome*: its value, how far it is from the truth, whether its intervals hold the
truth, and whether it warned. All statements about the estimators are computed from outcomes alone:
error, coverage, and how often a wrong number was trusted and a right one suspected. *Wrong* and
*suspected* have the same meaning as in the study of `evaluate`
(`boltzmann_companion.studies.study`): off by more than a nat, and with a warning other than the one
that every uniform start gets.

Each run has one core. Outcomes can be kept, in one file for each repeat. The file is written after
every estimator, so that an interrupted study continues where it stopped. Draws depend only on the
names of the estimator and the model, the budget and the seed, so several processes can fill one
folder, each with different seeds.

Used in chapter: which-estimator-tells-the-truth.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from scipy.stats import binomtest
from tqdm import tqdm

from boltzmann_companion.claims.checks import Rows
from boltzmann_companion.rows import grouped
from boltzmann_companion.studies.budgeted_estimators import (
    BOUND,
    ESTIMATORS,
    LEVELS,
    SMALLEST_BUDGET,
    YARDSTICK,
)
from boltzmann_companion.studies.known_models import KnownModel
from boltzmann_companion.studies.study import OUTCOMES, outcome
from boltzmann_likelihood.store import extended
from paperlib import storage
from paperlib.datasets import cache_folder
from paperlib.errors import InputError
from paperlib.estimators.estimate import UNIFORM_START
from paperlib.kernels.version import DRAWS
from paperlib.numerics import seeded_generator
from paperlib.threads import one_thread, step_bar
from paperlib.validation import require_count

Outcome = dict[str, Any]

# The kind of a model with a mode that the data do not show.
HIDDEN = "hidden mode"
# In nats: exact values of ln Z are only this accurate, and an interval may have no width.
_ROUNDING = 1e-8


def study_folder() -> Path:
    """Where outcomes are kept: in the cache, under the version of the draws."""
    return cache_folder() / "estimator-study" / DRAWS


def run_study(
    models: Sequence[KnownModel],
    budgets: Mapping[int, int],
    seed: int = 0,
    estimators: Sequence[str] = tuple(ESTIMATORS),
    folder: Path | None = None,
    progress: bool | None = None,
) -> list[Outcome]:
    """Run every estimator on every model with every budget, repeatedly.

    Parameters
    ----------
    models : sequence of KnownModel
        With distinct names.
    budgets : mapping of int to int
        Each budget in transitions of single chains, at least 2,000, and how often it is repeated.
    seed : int
        Seed of the first repeat; the repeats that follow have the next seeds.
    estimators : sequence of str
        From `ESTIMATORS`.
    folder : Path, optional
        Where outcomes are kept and looked for, such as `study_folder()`. None: nowhere, since
        stored outcomes do not reflect later changes to the code.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal.

    Returns
    -------
    list of dict
        Repeat by repeat. `estimator`, `model`, `kind`, `budget`, `seed`; `log_z`, and `error`, its
        difference from the truth, in nats, None if infinite; `std_error`, None if the estimator
        cannot tell; `held`, for each of `LEVELS` whether the interval held the truth; `warnings`;
        `outcome`, None for a bound; `chain_steps`; `seconds`. Within a repeat the estimators run in
        turn, in an order that changes from one repeat to the next, so that the *ratios* of their
        seconds can be compared.

    Raises
    ------
    InputError
        If there are no models, two have the same name, an estimator is unknown, or a number is out
        of range.

    Examples
    --------
    >>> import torch
    >>> from boltzmann_likelihood import planted
    >>> rbm, log_z, _ = planted.ising_2d(3)
    >>> model = KnownModel("small", "planted", rbm, log_z, torch.zeros(9))
    >>> [run] = run_study([model], {2_000: 1}, estimators=["AIS"], progress=False)
    >>> run["chain_steps"], abs(run["error"]) < 1, run["outcome"]
    (2000, True, 'right, trusted')
    """
    names = [model.name for model in models]
    if not names or len(set(names)) < len(names):
        raise InputError(f"models: expected some, no two of one name, got {names}")
    if not budgets:
        raise InputError("budgets: expected at least one, got none")
    for budget, repeats in budgets.items():
        require_count("budgets", budget, SMALLEST_BUDGET)
        require_count("repeats", repeats)
    seed = require_count("seed", seed, minimum=0)
    unknown = [name for name in estimators if name not in ESTIMATORS]
    if unknown or not estimators:
        raise InputError(f"estimators: expected some of {', '.join(ESTIMATORS)}, got {unknown}")
    tasks: list[tuple[KnownModel, int, int]] = []
    for repeat in range(max(budgets.values())):
        for model in models:
            remaining = [budget for budget, repeats in budgets.items() if repeat < repeats]
            tasks += [(model, budget, seed + repeat) for budget in remaining]
    outcomes = []
    with step_bar(len(tasks) * len(estimators), "study", progress, "run") as bar:
        for task in tasks:
            outcomes += _repeat(*task, estimators, folder, bar)
    return outcomes


def _repeat(
    model: KnownModel,
    budget: int,
    seed: int,
    estimators: Sequence[str],
    folder: Path | None,
    bar: tqdm,
) -> list[Outcome]:
    """The outcomes of all estimators in one repeat, read or computed."""
    turn = seed % len(estimators)

    def extend(stored: dict[str, Any], keep: Callable[[], None]) -> None:
        runs = stored.setdefault("outcomes", {})
        for name in (*estimators[turn:], *estimators[:turn]):
            if name not in runs:
                runs[name] = run_once(name, model, budget, seed)
                keep()
            bar.update()
        stored["seconds"] = sum(run["seconds"] for run in runs.values())

    identity = ["estimator-study", model.name, model.rbm.checksum(), budget, seed, DRAWS]
    stored = extended(folder, identity, extend, outcome_file(model, budget, seed))
    runs = [stored["outcomes"][name] for name in estimators]
    return runs if model.exact else [judged_anew(run, model) for run in runs]


def judged_anew(run: Outcome, model: KnownModel) -> Outcome:
    """An outcome by the present estimate of a model's ln Z, which may be better than at the run.

    The intervals of a run are not stored, so `held` is None.
    """
    error = None if run["log_z"] is None else run["log_z"] - model.log_z
    if run["outcome"] is not None:
        run = run | {"outcome": outcome(_number(error), _doubts(run["warnings"]))}
    return run | {"error": error, "held": None}


def outcome_file(model: KnownModel, budget: int, seed: int) -> str:
    """Where the outcomes of a repeat are kept.

    Different models have different files, even if their names agree.
    """
    model_folder = storage.sha256(f"{model.name} {model.rbm.checksum()}".encode())[:16]
    return f"{model_folder}/{budget}/seed-{seed:05}.json"


def run_once(estimator: str, model: KnownModel, budget: int, seed: int) -> Outcome:
    """One run of one estimator; see `run_study`.

    Examples
    --------
    >>> import torch
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> flat = KnownModel("flat", "planted", rbm, 5 * math.log(2), torch.zeros(3))
    >>> run = run_once("AIS", flat, 2_000, seed=0)
    >>> run["held"], f"{run['error']:.6f}".lstrip("-")
    ([True, True, True], '0.000000')
    """
    generator = seeded_generator(_draws_of(estimator, model.name, budget, seed))
    # With one thread, sums are rounded alike on every machine, and seconds are those of one core.
    with one_thread():
        started = time.perf_counter()
        answer = ESTIMATORS[estimator](model, budget, generator)
        seconds = time.perf_counter() - started
    error = answer.log_z - model.log_z
    covered = [low - _ROUNDING <= model.log_z <= high + _ROUNDING for low, high in answer.intervals]
    return {
        "estimator": estimator,
        "model": model.name,
        "kind": model.kind,
        "budget": budget,
        "seed": seed,
        "log_z": _finite(answer.log_z),
        "error": _finite(error),
        "std_error": _finite(answer.std_error),
        "held": covered,
        "warnings": list(answer.warnings),
        "outcome": None if estimator == BOUND else outcome(error, _doubts(answer.warnings)),
        "chain_steps": answer.chain_steps,
        "seconds": seconds,
    }


def _doubts(warnings: Iterable[str]) -> list[str]:
    """The warnings that make an estimate suspected."""
    return [text for text in warnings if text != UNIFORM_START]


def _draws_of(estimator: str, model: str, budget: int, seed: int) -> int:
    """A separate seed for each run, so that all runs are independent."""
    text = json.dumps([estimator, model, budget, seed])
    return int(storage.sha256(text.encode())[:15], 16)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# ---- summaries of outcomes


def accuracy_rows(outcomes: Rows) -> list[dict[str, Any]]:
    """Errors of each estimator on each model with each budget.

    Returns
    -------
    list of dict
        `model`, `budget`, `estimator`, `repeats`; in nats, the median `median_error` and the root
        mean square `rms_error` of the absolute error, `bias`, the mean of the signed error, and
        `std_error`, the median of the errors that the estimator states (a mean is infinite if one
        value is, a median if half of them are); `below`, the number of runs below the true ln Z,
        and `far_above`, the number of those above it by more than half a nat; `chain_steps`, the
        median that was spent; `time`, the median ratio of its seconds to those of AIS in the same
        repeat, None without AIS.
    """
    rows = []
    reference = {
        (run["model"], run["budget"], run["seed"]): run["seconds"]
        for run in outcomes
        if run["estimator"] == YARDSTICK
    }
    groups = grouped(outcomes, "model", "budget", "estimator")
    for (model, budget, estimator), runs in groups.items():
        errors = [_number(run["error"]) for run in runs]
        times = [
            run["seconds"] / reference[model, budget, run["seed"]]
            for run in runs
            if (model, budget, run["seed"]) in reference
        ]
        rows.append(
            {
                "model": model,
                "budget": budget,
                "estimator": estimator,
                "repeats": len(runs),
                "median_error": median(map(abs, errors)),
                "rms_error": math.sqrt(sum(error**2 for error in errors) / len(errors)),
                "bias": sum(errors) / len(errors),
                "below": sum(run["error"] is not None and run["error"] < 0 for run in runs),
                "far_above": sum(run["error"] is not None and run["error"] > 0.5 for run in runs),
                "std_error": median(_number(run["std_error"]) for run in runs),
                "chain_steps": round(median(run["chain_steps"] for run in runs)),
                "time": median(times) if times else None,
            }
        )
    return rows


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def _share(count: int, trials: int) -> tuple[float, list[float]]:
    """A count in per cent of the trials, and the 95 % interval of the true share (Wilson 1927)."""
    interval = binomtest(count, trials).proportion_ci(method="wilson")
    return 100 * count / trials, [100 * interval.low, 100 * interval.high]


def coverage_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """How often intervals held the truth, for each model, budget and estimator.

    Coverage differs between models, so that none are counted together.
    Models whose ln Z is itself an estimate (`kind` "published") are left out.

    Returns
    -------
    list of dict
        `model`; `models`, its kind (planted, trained or `HIDDEN`); `budget`, `estimator`, `runs`;
        for each of `LEVELS`, as in `held_95`, the percentage of intervals that held the truth, and,
        as in `held_95_interval`, the 95 % interval of the true percentage (Wilson); `unknown`, the
        percentage of runs without a standard error; `unwarned`, the number of runs without a
        warning (as in `outcome`, not counting that of a uniform start), and `unwarned_95` and
        `unwarned_95_interval`, the share of these whose 95 % intervals held the truth, None if
        there are none.
    """
    rows = []
    with_truth = [run for run in outcomes if run["kind"] != "published"]
    groups = grouped(with_truth, "model", "kind", "budget", "estimator")
    for (model, kind, budget, estimator), runs in groups.items():
        row = {"model": model, "models": kind, "budget": budget, "estimator": estimator}
        row["runs"] = len(runs)
        for place, level in enumerate(LEVELS):
            count = sum(run["held"][place] for run in runs)
            key = _level_key(level)
            row[key], row[f"{key}_interval"] = _share(count, len(runs))
        unknown = sum(run["std_error"] is None for run in runs)
        row["unknown"] = None if estimator == BOUND else 100 * unknown / len(runs)
        unwarned = [run for run in runs if not _doubts(run["warnings"])]
        row |= {"unwarned": len(unwarned), "unwarned_95": None, "unwarned_95_interval": None}
        if unwarned:
            count = sum(run["held"][LEVELS.index(0.95)] for run in unwarned)
            row["unwarned_95"], row["unwarned_95_interval"] = _share(count, len(unwarned))
        rows.append(row)
    return rows


def _level_key(level: float) -> str:
    """The name of the column that counts intervals of this level.

    Examples
    --------
    >>> [_level_key(level) for level in LEVELS]
    ['held_68', 'held_95', 'held_99_7']
    """
    return f"held_{100 * level:g}".replace(".", "_")


def trust_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """How often wrong numbers were trusted and right ones suspected.

    There is a row for each model, budget and estimator, but none for bounds.

    Returns
    -------
    list of dict
        `model`; `models`, its kind; `budget`, `estimator`, `runs`, and the number of each of
        `OUTCOMES`, as in `wrong_trusted`.
    """
    estimates = [run for run in outcomes if run["outcome"] is not None]
    groups = grouped(estimates, "model", "kind", "budget", "estimator")
    rows = []
    for (model, kind, budget, estimator), runs in groups.items():
        row = {"model": model, "models": kind, "budget": budget, "estimator": estimator}
        row["runs"] = len(runs)
        for name in OUTCOMES:
            row[name.replace(", ", "_")] = sum(run["outcome"] == name for run in runs)
        rows.append(row)
    return rows
