"""ln p*(v) of a deep model: the logarithm of an average over drawn hidden states, which errs low, and by how much.

Every image gets a hundred draws from the model's proposal. Draws can lack a part of the posterior that they never
meet, and then more of them change nothing. So before all else hidden states are searched for
(`boltzmann_likelihood.evaluation.hidden_states`) that explain images and are not drawn: in up to two hundred images,
all there are or a hundred at random and those that the model explains worst. Where some are found, they are starts of
a search in all other images, and every image that gains by them is drawn anew, from the proposal and from around its
states together. Then the search begins again. If it still finds more at the end, the average is not believed.

How much the average rises when the draws of some images are doubled says what they still lack, as long as it is
little. Where it is not, the hidden states of up to a hundred images are annealed from the proposal to their posterior
(`paperlib.annealing.PosteriorPath`), in more and more steps, and the other images are shifted by what these gained on
average. Images with states of their own gain otherwise than the rest, and are a stratum of their own.

For images that the model itself has drawn, the hidden states that made them are draws from the posterior. Chains from
there back to the proposal estimate ln p*(v) from above (bidirectional Monte Carlo; Grosse, Ghahramani & Adams 2015).
Both ends together say what is missing, up to what the spread of the weights makes of a single chain.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from boltzmann_likelihood.evaluation.hidden_states import (
    States,
    find_states,
    mixture_around,
)
from boltzmann_likelihood.evaluation.result import Doubt, LogUnnormalized, Part, Verdict
from paperlib.annealing import PosteriorPath, uniform_betas
from paperlib.annealing.walk import walk_moving_first
from paperlib.datasets import base_rate_bias
from paperlib.estimators import ReverseEstimate, control_variate_mean
from paperlib.estimators.ais import run_chains
from paperlib.models import DBM, DBN
from paperlib.numerics import log_mean_exp, seeded_generator, weighted_mean
from paperlib.threads import step_bar
from paperlib.uncertain import Uncertain, total

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
# Images at random in which a search looks, and as many that the model explains worst.
LOOK_IMAGES = 100
# Searches at most, and draws that say whether an image gains by what one has found.
_LOOKS, _LOOK_DRAWS = 3, 40
# What one image gains is no chance beyond the first; states are of use beyond the second, in nats.
_GAIN, _WORTH = 1.0, 0.2
# Images whose states are tried in all others, and images at a time.
_SOURCES, _BLOCK = 8, 50


@dataclass(frozen=True)
class _Stratum:
    """Images that gain alike by annealing, those of them that are annealed, and their share of all weights."""

    members: Tensor
    picked: Tensor
    share: float


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
        self._model, self._rows, self._log_p, self._weights = model, rows, log_p, weights
        seed = int(
            torch.randint(2**62, (), generator=generator.clone_state(), device=generator.device)
        )
        self._generator = seeded_generator(seed, generator.device)
        order = torch.randperm(len(rows), generator=self._generator, device=generator.device).cpu()
        # The states of images that the proposal misses, and the place of each image there, or -1.
        self._states: States = []
        self._place = torch.full((len(rows),), -1)
        self._gain = self._look(order, seeded_generator(seed + 1, generator.device))
        self._strata = self._divided(order)
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

        def anneal(steps: int) -> None:
            for stratum in self._strata:
                self._log_weights(stratum.picked, _CHAINS, steps, generator, False)

        # The first pass allocates.
        anneal(1)
        began = time.perf_counter()
        anneal(_PILOT_STEPS)
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
        if self._gain > _RISING:
            text = (
                f"The last search for hidden states that explain the images but are not drawn has raised ln p*(v) by {self._gain:.1f} nats: "
                "there may be more of them, and its average is too low by an unknown amount."
            )
            found.append(Doubt(Verdict.NOT_TRUSTED, text, Part.HIDDEN))
        apart = self._apart(units[:POSTERIOR_IMAGES])
        if apart > _APART:
            text = (
                f"For images that the model itself has drawn, estimates of ln p*(v) from above and below are {apart:.1f} nats further apart than "
                "the spread of the weights explains: the draws miss a part of the posterior."
            )
            found.append(Doubt(Verdict.NOT_TRUSTED, text, Part.HIDDEN))
        return tuple(found)

    def _look(self, order: Tensor, generator: torch.Generator) -> float:
        """Search for states that the proposal misses until there are none; by how much the last search has raised the average."""
        gain = 0.0
        for _ in range(_LOOKS):
            index, at_random = self._looked_at(order)
            states = find_states(self._model, self._of(index), generator)
            mixed = self._mixed(index, states, generator)
            gains = mixed - self._log_p[index]
            if not self._are_gains(gains[:at_random], index[:at_random]) and gains.max() <= _GAIN:
                return 0.0
            before = self._log_p
            self._adopt(index, states, mixed, generator)
            gain = weighted_mean(self._log_p - before, self._weights).item()
            # Another search looks at other images.
            order = order.roll(-at_random)
        return gain

    def _looked_at(self, order: Tensor) -> tuple[Tensor, int]:
        """The images in which a search looks: first so many at random, then those that the model explains worst."""
        if len(order) <= 2 * LOOK_IMAGES:
            return order, len(order)
        # Worse than independent pixels do, as well: images with many pixels on are all improbable.
        bias = base_rate_bias(self._rows, weights=self._weights).float().cpu()
        of_pixels = torch.cat([part.cpu().float() @ bias for part in self._rows.split(10_000)])
        chosen = order[:LOOK_IMAGES]
        for badness in (self._log_p, self._log_p - of_pixels):
            others = badness.index_fill(0, chosen, math.inf)
            chosen = torch.cat([chosen, others.argsort()[: LOOK_IMAGES // 2]])
        return chosen, LOOK_IMAGES

    def _are_gains(self, gains: Tensor, index: Tensor) -> bool:
        """Whether what images at random gain is, on average, more than their noise and than matters."""
        noise = 3 * gains.std().item() / math.sqrt(len(gains)) if len(gains) > 1 else math.inf
        return weighted_mean(gains, self._weights_of(index)).item() > max(_RISING, noise)

    def _mixed(self, index: Tensor, states: States, generator: torch.Generator) -> Tensor:
        """ln p*(v) of images [n] by a few draws from the proposal and around these states."""
        return log_mean_exp(self._log_weights(index, _LOOK_DRAWS, 1, generator, False, states))

    def _adopt(
        self, index: Tensor, states: States, mixed: Tensor, generator: torch.Generator
    ) -> None:
        """Draw all images anew that gain by states of their own or by those that these images have.

        Whether they do is asked of draws that are used for nothing else. If it depended on an estimate that is
        kept, the high ones would be.
        """
        device = states[0].device
        gains = mixed - self._log_p[index]
        gaining = int((gains > _WORTH).sum())
        best = gains.argsort(descending=True)[: max(1, gaining)]
        some = torch.randperm(len(best), generator=generator, device=generator.device)[:_SOURCES]
        sources = best[some.cpu()].to(device)
        nearby = [layer[sources, 0] for layer in states]
        place = torch.full((len(self._rows),), -1)
        place[index] = torch.arange(len(index))
        for part in torch.arange(len(self._rows)).split(_BLOCK):
            tried = find_states(self._model, self._of(part), generator, nearby)
            by_nearby = self._mixed(part, tried, generator)
            by_own = torch.where(place[part] >= 0, mixed[place[part]], -math.inf)
            own = by_own > by_nearby
            for layer, of_index in zip(tried, states, strict=True):
                layer[own.to(device)] = of_index[place[part[own]].to(device)]
            now = self._now(part, generator)
            worth = torch.maximum(by_nearby, by_own) > now + _WORTH
            if not bool(worth.any()):
                continue
            self._keep(part[worth], [layer[worth.to(device)] for layer in tried])
            drawn = self._log_weights(part[worth], POSTERIOR_DRAWS, 1, generator, False)
            self._log_p = self._log_p.index_put((part[worth],), log_mean_exp(drawn))

    def _now(self, index: Tensor, generator: torch.Generator) -> Tensor:
        """ln p*(v) of images [n] by a few draws from what proposes now."""
        found = torch.empty(len(index), dtype=torch.float64)
        with_states = self._place[index] >= 0
        for chosen in (with_states, ~with_states):
            if bool(chosen.any()):
                drawn = self._log_weights(index[chosen], _LOOK_DRAWS, 1, generator, False)
                found[chosen] = log_mean_exp(drawn)
        return found

    def _keep(self, index: Tensor, states: States) -> None:
        """Keep the states of these images."""
        known = len(self._states[0]) if self._states else 0
        self._place[index] = known + torch.arange(len(index))
        # A bit each, as it were: there may be many images.
        bits = [layer.bool() for layer in states]
        if self._states:
            bits = [torch.cat(pair) for pair in zip(self._states, bits, strict=True)]
        self._states = bits

    def _divided(self, order: Tensor) -> list[_Stratum]:
        """Images with states of their own and those without; with both, half of the annealed images are from each, in this order."""
        with_states = self._place[order] >= 0
        parts = [part for part in (order[~with_states], order[with_states]) if len(part)]
        fewest = min(len(part) for part in parts)
        strata = []
        for part in parts:
            room = POSTERIOR_IMAGES
            if len(parts) > 1:
                room -= min(fewest, room // 2) if len(part) > fewest else room // 2
            weights = self._weights_of(part)
            share = len(part) / len(order)
            if self._weights is not None and weights is not None:
                share = (weights.sum() / self._weights.sum()).item()
            strata.append(_Stratum(part, part[:room], share))
        return strata

    def _drawn(self) -> LogUnnormalized:
        """The estimates as they are, and how much those of some images rise with more draws."""
        rise = 0.0
        for stratum in self._strata:
            drawn = self._log_weights(stratum.picked, POSTERIOR_DRAWS, 1, self._generator, False)
            rise += stratum.share * self._rise(drawn, stratum.picked)
        return LogUnnormalized(self._log_p, rise=rise, draws=POSTERIOR_DRAWS, gain=self._gain)

    def _annealed(self, steps: int, progress: bool | None) -> LogUnnormalized:
        log_p = self._log_p.clone()
        rise = 0.0
        errors = []
        for members, picked, share in ((s.members, s.picked, s.share) for s in self._strata):
            log_weights = self._log_weights(picked, _CHAINS, steps, self._generator, progress)
            annealed, before = ReverseEstimate(log_weights), self._log_p[picked]
            of_picked = self._weights_of(picked)
            log_p[members] += weighted_mean(annealed.log_prob - before, of_picked)
            log_p[picked] = annealed.log_prob
            rise += share * self._rise(log_weights, picked)
            if len(picked) == len(members) == 1:
                error = annealed.average()
            else:
                error = control_variate_mean(
                    annealed,
                    before,
                    self._log_p[members],
                    batch_weights=of_picked,
                    all_weights=self._weights_of(members),
                ).uncertain
            errors.append(Uncertain(0.0, share * error.std_error, error.dof))
        return LogUnnormalized(log_p, total(errors), rise, _CHAINS, steps, self._gain)

    def _of(self, index: Tensor) -> Tensor:
        return self._rows[index.to(self._rows.device)]

    def _weights_of(self, index: Tensor) -> Tensor | None:
        return None if self._weights is None else self._weights[index]

    def _log_weights(
        self,
        index: Tensor,
        chains: int,
        steps: int,
        generator: torch.Generator,
        progress: bool | None,
        states: States | None = None,
    ) -> Tensor:
        """Log-weights of so many chains for each of these images, float64 [n, chains] on the CPU; those of single draws with one step.

        Without `states`, all of them have states of their own, or none has.
        """
        if states is None and len(index) and self._place[index[0]] >= 0:
            places = self._place[index].to(self._states[0].device)
            states = [layer[places] for layer in self._states]
        return self._weights_from(self._of(index), chains, steps, generator, progress, states)

    def _weights_from(
        self,
        rows: Tensor,
        chains: int,
        steps: int,
        generator: torch.Generator,
        progress: bool | None,
        states: States | None,
    ) -> Tensor:
        proposal = None
        if states is not None:
            proposal = mixture_around(self._model, rows, states, chains, generator)
        path = PosteriorPath(self._model, rows.repeat_interleave(chains, 0), proposal)
        count = chains * len(rows)
        with step_bar(count * steps, "Hidden layers", progress) as bar:
            schedule = uniform_betas(steps).tolist()
            log_weights, _ = run_chains(path, schedule, count, generator, bar.update)
        return log_weights.view(-1, chains).cpu()

    def _rise(self, log_weights: Tensor, index: Tensor) -> float:
        """How much the average ln of the mean weight of these images falls with half of the chains."""
        halves = log_mean_exp(log_weights.unflatten(1, (2, -1))).mean(1)
        rises = log_mean_exp(log_weights) - halves
        return weighted_mean(rises, self._weights_of(index)).item()

    def _apart(self, units: Tensor) -> float:
        """By how much more than the spread of the weights explains the two ends are apart for the model's own images, on average, in nats.

        If that is too much for the proposal alone, it is asked of the proposal together with what a search finds.
        """
        generator = self._generator
        rows, hidden = self._model.completed(units.to(self._model.dtype), generator)
        apart = self._between_ends(rows, hidden, None)
        if apart > _APART:
            states = find_states(self._model, rows, generator)
            apart = self._between_ends(rows, hidden, states)
        return apart

    def _between_ends(self, rows: Tensor, hidden: Sequence[Tensor], states: States | None) -> float:
        """The same for rows [n, D] that the model has drawn together with their hidden layers, from this proposal."""
        estimate, generator = self.estimate, self._generator
        steps = max(1, estimate.steps)
        log_weights = self._weights_from(rows, estimate.draws, steps, generator, False, states)
        proposal = None
        if states is not None:
            proposal = mixture_around(self._model, rows, states, 1, generator)
            proposal.choose(hidden, generator)
        path = PosteriorPath(self._model, rows, proposal)
        back = torch.zeros(len(rows), dtype=torch.float64, device=self._model.device)
        schedule = uniform_betas(steps).tolist()[::-1]
        walk_moving_first(
            path,
            path.reverse_transition,
            path.state_of(list(hidden)),
            back,
            schedule,
            generator,
            int,
        )
        apart = -back.cpu() - log_mean_exp(log_weights)
        # For weights that are log-normal, a single chain from above is too high by half of their
        # variance, and a mean of few draws is too low by no more than that.
        return (apart - log_weights.var(1)).mean().item()
