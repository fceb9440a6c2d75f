"""Populations of chains that are resampled on the way, and the error of their mean estimate.

A population's estimate of Z is the product of its mean weights between resamplings, and is unbiased for a fixed schedule (Del Moral,
Doucet & Jasra 2006). Its chains depend on each other, so estimating the error takes several populations. For large populations,
ln Z-hat is close to normal, with a mean that is below ln Z by half its variance (Berard, Del Moral & Doucet 2014); the error stated
here is that of the logarithm of a mean of log-normal numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from paperlib.annealing import AnnealingPath, check_betas
from paperlib.errors import InputError
from paperlib.estimators.ais import begin_forward, require_path
from paperlib.estimators.blocks import walk_in_blocks
from paperlib.estimators.estimate import (
    UNIFORM_START,
    require_finite_log_weights,
)
from paperlib.estimators.smc.pilot import PilotSchedule, pilot_schedule
from paperlib.estimators.smc.resampling import effective_part, systematic
from paperlib.numerics import log_mean_exp, resolve_generator
from paperlib.threads import OnStep, step_bar
from paperlib.validation import require_count

#: The fraction of the chains to which the conditional effective sample size falls in a step of the pilot.
CESS = 0.9
#: A population is resampled when its effective part falls below this.
THRESHOLD = 0.5
# The pilot may spend one part in this many of the budget.
_PILOT_SHARE = 4
# The relative variance of a population's estimate is about one over its number of families (after Lee & Whiteley 2018), here a fifth.
_FEWEST_FAMILIES = 5
# If populations' estimates spread by more nats than this, ten of them do not show the largest.
_WIDEST_SPREAD = 1.0


@dataclass
class PopulationWalk:
    """How populations walk along a path: the arguments of `smc`, checked."""

    path: AnnealingPath[Any]
    num_chains: int
    num_populations: int
    betas: Any
    chain_steps: int | None

    def __post_init__(self) -> None:
        require_path(self.path)
        self.num_chains = require_count("num_chains", self.num_chains)
        self.num_populations = require_count("num_populations", self.num_populations)
        if self.betas is not None:
            if self.chain_steps is not None:
                raise InputError("chain_steps: expected none beside given betas, got both")
            self.betas = check_betas(self.betas).tolist()
        elif self.chain_steps is not None:
            least = 2 * self._everyone
            self.chain_steps = require_count("chain_steps", self.chain_steps, least)

    @property
    def _everyone(self) -> int:
        return self.num_chains * self.num_populations

    def run(
        self, title: str, generator: torch.Generator | None, progress: bool | None
    ) -> dict[str, Any]:
        """Find a schedule, if none is given, and walk it; returns by name what an `SMCEstimate` holds."""
        generator = resolve_generator(generator, self.path.device)
        total, schedule, paid, notes = self.chain_steps, self.betas, 0, []
        if schedule is not None:
            total = self._everyone * (len(schedule) - 1)
        with step_bar(total or 0, title, progress) as bar:
            if schedule is None:
                pilot = self._pilot(generator, bar.update)
                schedule, paid = pilot.betas, pilot.chain_steps
                if self.chain_steps is not None:
                    steps = (self.chain_steps - paid) // self._everyone
                    schedule = pilot.spread(max(1, steps))
                if not pilot.complete:
                    notes.append(
                        f"The pilot came to beta = {pilot.betas[-1]:.2g} with its share of the budget, and the betas beyond are guessed; "
                        "raise chain_steps."
                    )
            paid += self._everyone * (len(schedule) - 1)
            if total is None:
                bar.total = paid
            walk_block = partial(self._walk_block, schedule)
            size = max(1, self.path.chains_per_block // self.num_chains)
            blocks = walk_in_blocks(
                walk_block, self.num_populations, self.path, generator, bar.update, size
            )
        found = {name: torch.cat([block[name] for block in blocks]) for name in blocks[0]}
        require_finite_log_weights(found["chain_log_weights"])
        return {
            **found,
            "log_weights": log_mean_exp(found["chain_log_weights"], 1),
            "betas": torch.tensor(schedule, dtype=torch.float64),
            "chain_steps": paid,
            "warnings": (*notes, *_population_warnings(found, self.path.uniform_start)),
        }

    def _pilot(self, generator: torch.Generator, on_step: OnStep) -> PilotSchedule:
        most = None
        if self.chain_steps is not None:
            most = max(1, self.chain_steps // (_PILOT_SHARE * self.num_chains))
        return pilot_schedule(self.path, self.num_chains, CESS, THRESHOLD, generator, on_step, most)

    def _walk_block(
        self,
        schedule: Sequence[float],
        block: slice,
        generator: torch.Generator,
        on_step: OnStep,
    ) -> dict[str, Tensor]:
        """A block of populations that walk together."""
        path, num_chains, populations = self.path, self.num_chains, block.stop - block.start
        shape, device = (populations, num_chains), path.device
        state, log_weights = begin_forward(path, populations * num_chains, generator)
        log_weights = log_weights.view(shape)
        # the part of ln Z that resampling has taken out of the weights
        log_z = torch.zeros(populations, dtype=torch.float64, device=device)
        first = torch.arange(num_chains, device=device).repeat(populations, 1)
        resampled = torch.zeros(populations, dtype=torch.int64, device=device)
        for beta_from, beta_to in pairwise(schedule):
            log_weights += _by_population(path.log_ratio(state, beta_from, beta_to), shape)
            if beta_to == 1:
                log_weights += _by_population(path.end_correction(state, 1), shape)
            uneven = effective_part(log_weights) < THRESHOLD
            # At the end, resampling would only add noise.
            if beta_to < 1 and bool(uneven.any()):
                index = systematic(log_weights, uneven, generator)
                log_z += torch.where(uneven, log_mean_exp(log_weights, 1), 0.0)
                log_weights = log_weights.where(~uneven[:, None], 0.0)
                resampled += uneven
                first = first.gather(1, index)
                offset = num_chains * torch.arange(populations, device=device)[:, None]
                state = path.select(state, (index + offset).flatten())
            state = path.transition(state, beta_to, generator)
            on_step(populations * num_chains)
        log_weights = log_weights + log_z[:, None]
        shares = log_weights.softmax(1)
        family = torch.zeros_like(shares).scatter_add_(1, first, shares)
        alive = torch.zeros_like(shares).scatter_(1, first, 1.0).sum(1).long()
        units = path.units(state)
        return {
            "families": 1 / family.square().sum(1),
            "ancestors": alive,
            "resampled": resampled,
            "final_states": units.reshape(*shape, units.shape[-1]),
            "chain_log_weights": log_weights,
        }


def _population_warnings(found: Mapping[str, Tensor], uniform_start: bool) -> list[str]:
    """Reasons not to believe the populations' joint estimate, each a sentence that says what was seen and what to do."""
    warnings = []
    log_weights = found["chain_log_weights"]
    families, chains = found["families"].median().item(), log_weights.shape[1]
    if bool((found["resampled"] > 0).any()) and families < _FEWEST_FAMILIES:
        warnings.append(
            f"The {chains} chains of a population descend from {families:.1f} effective ancestors (median): what the others might "
            "have met is lost; use more chains in each population, or more betas."
        )
    log_z = log_mean_exp(log_weights, 1)
    if len(log_z) < 2:
        warnings.append("One population gives no error estimate; run ten.")
    elif (spread := log_z.std().item()) > _WIDEST_SPREAD:
        warnings.append(
            f"The populations' estimates spread by {spread:.1f} nats; ln Z is probably too low; use more betas, or more chains in "
            "each population."
        )
    if uniform_start:
        warnings.append(UNIFORM_START)
    return warnings


def _by_population(values: Tensor | float, shape: tuple[int, int]) -> Tensor | float:
    """Values of all chains, reshaped to [R, N]; a single number stays as it is."""
    return values.view(shape) if isinstance(values, Tensor) and values.ndim else values


def log_z_std_error(log_z: Tensor) -> Tensor:
    """Standard error of the logarithm of the mean of R independent estimates of Z, from their logarithms [R, ...]; infinite for a single one.

    With s^2 the variance of the logarithms, it is sqrt(s^2 / R + s^4 / (2 (R - 1))). The second term comes from s^2 / 2, the
    distance in logarithms by which the mean of log-normal numbers lies above their median.
    """
    count = len(log_z)
    if count < 2:
        return torch.full_like(log_z[0], math.inf)
    variance = log_z.var(0)
    return (variance / count + variance.square() / (2 * (count - 1))).sqrt()
