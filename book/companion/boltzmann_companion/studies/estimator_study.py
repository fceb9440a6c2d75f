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
    >>> [found] = run_study([model], {2_000: 1}, estimators=["AIS"], progress=False)
    >>> found["chain_steps"], abs(found["error"]) < 1, found["outcome"]
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
    wrong = [name for name in estimators if name not in ESTIMATORS]
    if wrong or not estimators:
        raise InputError(f"estimators: expected some of {', '.join(ESTIMATORS)}, got {wrong}")
    tasks = [
        (model, budget, seed + repeat)
        for repeat in range(max(budgets.values()))
        for model in models
        for budget, repeats in budgets.items()
        if repeat < repeats
    ]
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

    def run(found: dict[str, Any], keep: Callable[[], None]) -> None:
        own = found.setdefault("outcomes", {})
        for name in (*estimators[turn:], *estimators[:turn]):
            if name not in own:
                own[name] = run_once(name, model, budget, seed)
                keep()
            bar.update()
        found["seconds"] = sum(each["seconds"] for each in own.values())

    identity = ["estimator-study", model.name, model.rbm.checksum(), budget, seed, DRAWS]
    found = extended(folder, identity, run, outcome_file(model, budget, seed))
    outcomes = [found["outcomes"][name] for name in estimators]
    return outcomes if model.exact else [judged_anew(each, model) for each in outcomes]


def judged_anew(each: Outcome, model: KnownModel) -> Outcome:
    """An outcome of a model whose ln Z is an estimate, by what is known of it now, which may be more than when it ran.

    Only the estimate of a run is kept, not its intervals, so that nothing is said of what these
    hold.
    """
    error = None if each["log_z"] is None else each["log_z"] - model.log_z
    if each["outcome"] is not None:
        each = each | {"outcome": outcome(_number(error), _doubts(each["warnings"]))}
    return each | {"error": error, "held": None}


def outcome_file(model: KnownModel, budget: int, seed: int) -> str:
    """Where the outcomes of a repeat are kept.

    Different models have different files, even if their names agree.
    """
    of_model = storage.sha256(f"{model.name} {model.rbm.checksum()}".encode())[:16]
    return f"{of_model}/{budget}/seed-{seed:05}.json"


def run_once(estimator: str, model: KnownModel, budget: int, seed: int) -> Outcome:
    """One run of one estimator; see `run_study`.

    Examples
    --------
    >>> import torch
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> flat = KnownModel("flat", "planted", rbm, 5 * math.log(2), torch.zeros(3))
    >>> found = run_once("AIS", flat, 2_000, seed=0)
    >>> found["held"], f"{found['error']:.6f}".lstrip("-")
    ([True, True, True], '0.000000')
    """
    generator = seeded_generator(_draws_of(estimator, model.name, budget, seed))
    # With one thread, sums are rounded alike on every machine, and seconds are those of one core.
    with one_thread():
        started = time.perf_counter()
        answer = ESTIMATORS[estimator](model, budget, generator)
        seconds = time.perf_counter() - started
    error = answer.log_z - model.log_z
    held = [low - _ROUNDING <= model.log_z <= high + _ROUNDING for low, high in answer.intervals]
    return {
        "estimator": estimator,
        "model": model.name,
        "kind": model.kind,
        "budget": budget,
        "seed": seed,
        "log_z": _finite(answer.log_z),
        "error": _finite(error),
        "std_error": _finite(answer.std_error),
        "held": held,
        "warnings": list(answer.warnings),
        "outcome": None if estimator == BOUND else outcome(error, _doubts(answer.warnings)),
        "chain_steps": answer.chain_steps,
        "seconds": seconds,
    }


def _doubts(warnings: Iterable[str]) -> list[str]:
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
        (each["model"], each["budget"], each["seed"]): each["seconds"]
        for each in outcomes
        if each["estimator"] == YARDSTICK
    }
    for (model, budget, estimator), own in grouped(
        outcomes, "model", "budget", "estimator"
    ).items():
        errors = [_number(each["error"]) for each in own]
        times = [
            each["seconds"] / reference[model, budget, each["seed"]]
            for each in own
            if (model, budget, each["seed"]) in reference
        ]
        rows.append(
            {
                "model": model,
                "budget": budget,
                "estimator": estimator,
                "repeats": len(own),
                "median_error": median(map(abs, errors)),
                "rms_error": math.sqrt(sum(error**2 for error in errors) / len(errors)),
                "bias": sum(errors) / len(errors),
                "below": sum(each["error"] is not None and each["error"] < 0 for each in own),
                "far_above": sum(each["error"] is not None and each["error"] > 0.5 for each in own),
                "std_error": median(_number(each["std_error"]) for each in own),
                "chain_steps": round(median(each["chain_steps"] for each in own)),
                "time": median(times) if times else None,
            }
        )
    return rows


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def _share(count: int, trials: int) -> tuple[float, list[float]]:
    """A count as a percentage of the trials, and the 95 % interval of the true percentage (Wilson 1927)."""
    within = binomtest(count, trials).proportion_ci(method="wilson")
    return 100 * count / trials, [100 * within.low, 100 * within.high]


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
    judged = [each for each in outcomes if each["kind"] != "published"]
    groups = grouped(judged, "model", "kind", "budget", "estimator")
    for (model, kind, budget, estimator), own in groups.items():
        row = {"model": model, "models": kind, "budget": budget, "estimator": estimator}
        row["runs"] = len(own)
        for place, level in enumerate(LEVELS):
            count = sum(each["held"][place] for each in own)
            key = _level_key(level)
            row[key], row[f"{key}_interval"] = _share(count, len(own))
        unknown = sum(each["std_error"] is None for each in own)
        row["unknown"] = None if estimator == BOUND else 100 * unknown / len(own)
        unwarned = [each for each in own if not _doubts(each["warnings"])]
        row |= {"unwarned": len(unwarned), "unwarned_95": None, "unwarned_95_interval": None}
        if unwarned:
            count = sum(each["held"][LEVELS.index(0.95)] for each in unwarned)
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
    """How often wrong numbers were trusted and right ones suspected, for each model, budget and estimator, without bounds.

    Returns
    -------
    list of dict
        `model`; `models`, its kind; `budget`, `estimator`, `runs`, and the number of each of
        `OUTCOMES`, as in `wrong_trusted`.
    """
    judged = [each for each in outcomes if each["outcome"] is not None]
    groups = grouped(judged, "model", "kind", "budget", "estimator")
    return [
        {
            "model": model,
            "models": kind,
            "budget": budget,
            "estimator": estimator,
            "runs": len(own),
            **{
                name.replace(", ", "_"): sum(each["outcome"] == name for each in own)
                for name in OUTCOMES
            },
        }
        for (model, kind, budget, estimator), own in groups.items()
    ]
