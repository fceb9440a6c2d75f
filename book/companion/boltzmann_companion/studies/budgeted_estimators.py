"""Every estimator of ln Z with the same budget of transitions of single chains.

The budget covers everything that an estimator spends: pilots, burn-in, and the runs that make the
draws which another part of it needs. It does not cover two searches that make no transitions, one
for a mean-field start and one for the proven bound on ln Z; their time counts in the seconds. How a
budget is divided into chains, steps and replicas was decided once, for all models, without looking
at the truth:

=====================  =========================================================================
importance sampling    as many draws from the base rates as the budget has transitions
AIS                    100 chains from the base rates, evenly spaced betas
AIS, mean-field start  the same from the means of mean field's optima (`mean_field_bias`)
SMC                    10 populations of 20 chains or, if more, sqrt(budget) / 5; betas from a
                       pilot
parallel tempering     its own choice of temperatures and replicas
certified bound        AIS as above, and the lower bound that its weights and the search for
                       modes certify
=====================  =========================================================================

Used in chapter: which-estimator-tells-the-truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import torch

from boltzmann_companion.studies.annealed_smc import PopulationEstimate, annealed_smc
from boltzmann_companion.studies.known_models import KnownModel
from boltzmann_companion.studies.pilot_schedules import pilot_schedule
from paperlib.annealing import AnnealingPath, BaseRatePath, mean_field_bias
from paperlib.annealing.schedules import uniform_betas
from paperlib.estimators import (
    PartitionEstimate,
    TemperingEstimate,
    ais,
    importance_sampling,
    parallel_tempering,
)
from paperlib.numerics import student_quantile

# The confidence levels of the intervals.
LEVELS = (0.68, 0.95, 0.997)
# With less, half of a budget is too little for parallel tempering.
SMALLEST_BUDGET = 2_000
# Its value is not an estimate of ln Z; it should lie below ln Z.
BOUND = "certified bound"
# The estimator with which times are compared.
YARDSTICK = "AIS"
#: Chains of an AIS run; its budget divided by these is the number of its steps, K.
AIS_CHAINS = 100

_POPULATIONS = 10
_FEWEST_CHAINS = 20
# The pilot of SMC may spend one part in this many of the budget.
_PILOT_SHARE = 4


@dataclass(frozen=True)
class Answer:
    """The result of an estimator.

    Attributes
    ----------
    log_z : float
        Its value, in nats.
    std_error : float
        Its own standard error in nats; infinite if it cannot tell.
    intervals : tuple of pairs of numbers
        Its interval at each of `LEVELS`.
    warnings : tuple of str
        Its warnings.
    chain_steps : int
        Transitions of single chains that it made.
    """

    log_z: float
    std_error: float
    intervals: tuple[tuple[float, float], ...]
    warnings: tuple[str, ...]
    chain_steps: int


Estimator: TypeAlias = Callable[[KnownModel, int, torch.Generator], Answer]


def _base_rates(model: KnownModel) -> BaseRatePath:
    return BaseRatePath(model.rbm, model.start_bias)


def _importance_sampling(model: KnownModel, budget: int, generator: torch.Generator) -> Answer:
    estimate = importance_sampling(_base_rates(model), budget, generator)
    return _answer_from_weights(estimate, budget)


def _ais(model: KnownModel, budget: int, generator: torch.Generator) -> Answer:
    estimate, spent = anneal(_base_rates(model), budget, generator)
    return _answer_from_weights(estimate, spent)


def _ais_mean_field(model: KnownModel, budget: int, generator: torch.Generator) -> Answer:
    path = BaseRatePath(model.rbm, mean_field_bias(model.rbm))
    estimate, spent = anneal(path, budget, generator)
    return _answer_from_weights(estimate, spent)


def _certified(model: KnownModel, budget: int, generator: torch.Generator) -> Answer:
    estimate, spent = anneal(_base_rates(model), budget, generator)
    bounds = [estimate.certified_bound(level) for level in LEVELS]
    intervals = tuple((bound, math.inf) for bound in bounds)
    return Answer(bounds[LEVELS.index(0.95)], math.inf, intervals, (), spent)


def _smc(model: KnownModel, budget: int, generator: torch.Generator) -> Answer:
    estimate, spent = populations(_base_rates(model), budget, generator)
    return _answer(estimate, spent)


def _parallel_tempering(model: KnownModel, budget: int, generator: torch.Generator) -> Answer:
    estimate = parallel_tempering(_base_rates(model), budget, generator, progress=False)
    return _answer(estimate, estimate.chain_steps)


def anneal(
    path: AnnealingPath[Any], budget: int, generator: torch.Generator
) -> tuple[PartitionEstimate, int]:
    """AIS with evenly spaced betas, and the transitions that it made."""
    steps = budget // AIS_CHAINS
    estimate = ais(path, uniform_betas(steps), AIS_CHAINS, generator, progress=False)
    return estimate, steps * AIS_CHAINS


def populations(
    path: AnnealingPath[Any], budget: int, generator: torch.Generator
) -> tuple[PopulationEstimate, int]:
    """SMC with populations as large as the budget allows, and the transitions that it made.

    A pilot finds betas. As many steps as the rest of the budget allows are then spread over the
    distance that it has measured.
    """
    num_chains = max(_FEWEST_CHAINS, round(math.sqrt(budget) / 5))
    all_chains = _POPULATIONS * num_chains
    most_steps = max(1, budget // (_PILOT_SHARE * num_chains))
    pilot = pilot_schedule(path, num_chains, generator, most_steps)
    betas = pilot.spread(max(1, (budget - pilot.chain_steps) // all_chains))
    estimate = annealed_smc(path, betas, num_chains, _POPULATIONS, generator)
    if not pilot.complete:
        warning = (
            f"The pilot came to beta = {pilot.betas[-1]:.2g} with its share of the budget, "
            "and the betas beyond are guessed; use a larger budget."
        )
        estimate = replace(estimate, warnings=(*estimate.warnings, warning))
    return estimate, pilot.chain_steps + all_chains * (len(betas) - 1)


def _answer(estimate: PopulationEstimate | TemperingEstimate, spent: int) -> Answer:
    intervals = tuple(estimate.interval(level) for level in LEVELS)
    return Answer(estimate.log_z, estimate.std_error, intervals, estimate.warnings, spent)


def _answer_from_weights(estimate: PartitionEstimate, spent: int) -> Answer:
    widths = [student_quantile(level, math.inf) for level in LEVELS]
    intervals = tuple(estimate.std_interval(width) for width in widths)
    return Answer(estimate.log_z, estimate.std_error, intervals, estimate.warnings, spent)


#: Each takes a model, a budget in transitions of single chains, and a generator.
ESTIMATORS: Mapping[str, Estimator] = MappingProxyType(
    {
        "importance sampling": _importance_sampling,
        YARDSTICK: _ais,
        "AIS, mean-field start": _ais_mean_field,
        "SMC": _smc,
        "parallel tempering": _parallel_tempering,
        BOUND: _certified,
    }
)
