"""ln p*(v) of a deep model: the logarithm of an average over drawn hidden states, which errs low, and by how much.

Every image gets a hundred draws from the model's proposal. How much the average rises when the draws of some images are doubled says what
they still lack, as long as it is little. Where it is not, the hidden states of up to a hundred images are annealed from the proposal to
their posterior (`paperlib.annealing.PosteriorPath`), in more and more steps, and the other images are shifted by what these gained on average.

Draws can lack a part of the posterior that they never meet, and then nothing rises. For images that the model itself has drawn, the hidden
states that made them are draws from the posterior. Chains from there back to the proposal estimate ln p*(v) from above (bidirectional Monte
Carlo; Grosse, Ghahramani & Adams 2015). Both ends together say what is missing, up to what the spread of the weights makes of a single chain.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor

from boltzmann_likelihood.evaluation.result import Doubt, LogUnnormalized, Part, Verdict
from paperlib.annealing import PosteriorPath, uniform_betas
from paperlib.annealing.walk import walk_moving_first
from paperlib.estimators import ReverseEstimate, control_variate_mean
from paperlib.estimators.ais import run_chains
from paperlib.models import DBM, DBN
from paperlib.numerics import log_mean_exp, seeded_generator, weighted_mean
from paperlib.threads import step_bar
from paperlib.uncertain import Uncertain

#: Draws of the hidden units for each image.
POSTERIOR_DRAWS = 100
#: Images whose hidden layers are annealed.
POSTERIOR_IMAGES = 100
_CHAINS = 8
# More annealing is tried while the average rises by more than the first with twice as many draws, and is too little beyond the second, in nats.
_SETTLED, _RISING = 0.02, 0.1
# How far the two ends may be apart for the model's own images, beyond what the spread of the weights explains, in nats.
_APART = 0.5
#: K of the largest runs is divided by these numbers; the earlier runs show whether an estimate still moves.
FRACTIONS = (16, 4, 1)
_PILOT_STEPS = 10


class HiddenLayers:
    """ln p*(v) of test rows [N, D] with weights [N]; draws of its own, which leave `generator` as it is."""

    def __init__(
        self,
        model: DBM | DBN,
        rows: Tensor,
        log_p: Tensor,
        weights: Tensor | None,
        generator: torch.Generator,
    ) -> None:
        self._model, self._log_p, self._weights = model, log_p, weights
        seed = torch.randint(2**62, (), generator=generator.clone_state(), device=generator.device)
        self._generator = seeded_generator(int(seed), generator.device)
        order = torch.randperm(len(rows), generator=self._generator, device=generator.device)
        self._chosen = order[:POSTERIOR_IMAGES].cpu()
        self._picked = rows[self._chosen.to(rows.device)]
        self.estimate = self._drawn()

    def refine(self, largest: int, progress: bool | None = None) -> LogUnnormalized:
        """Anneal in up to `largest` steps, if draws alone are not enough."""
        for part in FRACTIONS if self.unsettled else ():
            steps = max(1, largest // part)
            self.estimate = self._annealed(steps, progress)
            if not self.unsettled:
                break
        return self.estimate

    @property
    def unsettled(self) -> bool:
        """Whether more draws would still raise the average."""
        return self.estimate.rise > _SETTLED

    def seconds_per_step(self) -> float:
        """Seconds that a step of annealing takes, for each of the steps that `refine` takes in the end."""
        generator = seeded_generator(0, self._model.device)
        # The first pass allocates.
        self._log_weights(self._picked, _CHAINS, 1, generator, False)
        began = time.perf_counter()
        self._log_weights(self._picked, _CHAINS, _PILOT_STEPS, generator, False)
        return (time.perf_counter() - began) / _PILOT_STEPS * sum(1 / part for part in FRACTIONS)

    def doubts(self, units: Tensor) -> tuple[Doubt, ...]:
        """What speaks against the estimate, given draws of the units of `model.annealed` [n, units]."""
        found, rise = [], self.estimate.rise
        if rise > _RISING:
            text = (
                f"ln p*(v) still rises by {rise:.1f} nats when the draws of the hidden units are doubled: its average is too low by an unknown "
                "amount."
            )
            found.append(Doubt(Verdict.NOT_TRUSTED, text, Part.HIDDEN, rise / _RISING))
        apart = self._apart(units[:POSTERIOR_IMAGES])
        if apart > _APART:
            text = (
                f"For images that the model itself has drawn, estimates of ln p*(v) from above and below are {apart:.1f} nats further apart than "
                "the spread of the weights explains: the draws miss a part of the posterior."
            )
            found.append(Doubt(Verdict.NOT_TRUSTED, text, Part.HIDDEN))
        return tuple(found)

    def _drawn(self) -> LogUnnormalized:
        """The estimates as they are, and how much those of some images rise with more draws."""
        log_weights = self._log_weights(self._picked, POSTERIOR_DRAWS, 1, self._generator, False)
        return LogUnnormalized(self._log_p, rise=self._rise(log_weights), draws=POSTERIOR_DRAWS)

    def _annealed(self, steps: int, progress: bool | None) -> LogUnnormalized:
        log_weights = self._log_weights(self._picked, _CHAINS, steps, self._generator, progress)
        annealed, before = ReverseEstimate(log_weights), self._log_p[self._chosen]
        found = control_variate_mean(
            annealed,
            before,
            self._log_p,
            batch_weights=self._of_chosen,
            all_weights=self._weights,
        )
        log_p = self._log_p + weighted_mean(annealed.log_prob - before, self._of_chosen)
        log_p[self._chosen] = annealed.log_prob
        error = Uncertain(0.0, found.test_set_std_error, found.degrees_of_freedom)
        return LogUnnormalized(log_p, error, self._rise(log_weights), _CHAINS, steps)

    @property
    def _of_chosen(self) -> Tensor | None:
        return None if self._weights is None else self._weights[self._chosen]

    def _log_weights(
        self,
        rows: Tensor,
        chains: int,
        steps: int,
        generator: torch.Generator,
        progress: bool | None,
    ) -> Tensor:
        """Log-weights of so many chains for each row, float64 [rows, chains] on the CPU; those of single draws with one step."""
        path = PosteriorPath(self._model, rows.repeat_interleave(chains, 0))
        total = chains * len(rows)
        with step_bar(total * steps, "Hidden layers", progress) as bar:
            schedule = uniform_betas(steps).tolist()
            log_weights, _ = run_chains(path, schedule, total, generator, bar.update)
        return log_weights.view(-1, chains).cpu()

    def _rise(self, log_weights: Tensor) -> float:
        """How much the average ln of the mean weight falls with half of the chains."""
        halves = log_mean_exp(log_weights.unflatten(1, (2, -1))).mean(1)
        return weighted_mean(log_mean_exp(log_weights) - halves, self._of_chosen).item()

    def _apart(self, units: Tensor) -> float:
        """By how much more than the spread of the weights explains the two ends are apart for the model's own images, on average, in nats."""
        estimate, generator = self.estimate, self._generator
        steps = max(1, estimate.steps)
        rows, hidden = self._model.completed(units.to(self._model.dtype), generator)
        log_weights = self._log_weights(rows, estimate.draws, steps, generator, False)
        path = PosteriorPath(self._model, rows)
        back = torch.zeros(len(rows), dtype=torch.float64, device=self._model.device)
        schedule = uniform_betas(steps).tolist()[::-1]
        walk_moving_first(
            path, path.reverse_transition, path.state_of(hidden), back, schedule, generator, int
        )
        apart = -back.cpu() - log_mean_exp(log_weights)
        # For weights that are log-normal, a single chain from above is too high by half of their
        # variance, and a mean of few draws is too low by no more than that.
        return (apart - log_weights.var(1)).mean().item()
