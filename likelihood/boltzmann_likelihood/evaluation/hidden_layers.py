"""ln p*(v) of a deep model: the logarithm of an average over draws, and by how much it errs low.

Every image gets a hundred draws from the model's proposal. Draws can lack a part of the posterior
that they never meet, and then more of them change nothing. So a search comes first, for hidden
states that explain images and are not drawn (`boltzmann_likelihood.evaluation.hidden_states`). A
short search looks in up to a hundred images, half of them at random and half those that the model
explains worst. If an image gains more than the spread of its weights explains, up to three thorough
searches in twice as many images follow. After each search that finds something all images are drawn
anew, from the proposal and from around their best states together; what the search found in some
images is where the best states of the others are looked for. If the last search still finds more,
the average is not believed.

How much the average rises when the draws of some images are doubled says what they still lack, as
long as it is little. Where it is not, the hidden states of up to a hundred images are annealed
from the proposal to their posterior (`paperlib.annealing.PosteriorPath`), in more and more steps,
and the other images are shifted by what these gained on average.

For images that the model itself has drawn, the hidden states that made them are draws from the
posterior. Chains from there back to the proposal estimate ln p*(v) from above (bidirectional Monte
Carlo; Grosse, Ghahramani & Adams 2015). Both ends together say what is missing, up to what the
spread of the weights makes of a single chain.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from boltzmann_likelihood.evaluation.hidden_states import (
    States,
    best_of,
    mixture_around,
    search_anywhere,
    search_nearby,
)
from boltzmann_likelihood.evaluation.result import Doubt, LogUnnormalized, Remedy, Verdict
from paperlib.annealing import PosteriorPath, uniform_betas
from paperlib.annealing.walk import walk
from paperlib.datasets import base_rate_bias
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
# Annealing goes on while doubling the draws raises the average by more than this, in nats.
_SETTLED = 0.02
# If doubling them still raises it by more than this, in nats, the average is not trusted.
_RISING = 0.1
# How far the two ends may be apart for the model's own images, beyond what the spread of the
# weights explains, in nats.
_APART = 0.5
#: K of the largest runs is divided by these numbers; the earlier runs show whether an estimate
#: still moves.
DIVISORS = (16, 4, 1)
#: The steps of all these runs together, in units of K.
TOTAL_STEPS = sum(1 / divisor for divisor in DIVISORS)
_PILOT_STEPS = 10
# An image that gains more nats than this does not do so by chance.
_GAIN = 1.0
# How many thorough searches may follow a short one that found something.
_LOOKS = 3
# A search has more chains for this share of the images, those with the lowest ln p*(v).
_WORST = 0.1
# The states of this many images are tried in all others.
_SOURCES = 6
# This many images are drawn at a time.
_BLOCK = 50


@dataclass(frozen=True)
class _Search:
    """How long a search for hidden states is.

    Attributes
    ----------
    images : int
        In how many images at random it looks, and in as many that are explained worst.
    chains, chains_of_worst : int
        Chains for each image, and in addition for those with the lowest ln p*(v).
    steps : int
        Steps of each chain, in each layer.
    states, draws : int
        What it finds is judged by this many draws of each image, around this many states.
    """

    images: int
    chains: int
    chains_of_worst: int
    steps: int
    states: int
    draws: int


_SHORT = _Search(images=50, chains=2, chains_of_worst=10, steps=12, states=1, draws=20)
_THOROUGH = _Search(images=100, chains=4, chains_of_worst=20, steps=24, states=3, draws=40)


class HiddenLayers:
    """ln p*(v) of test rows [N, D] with weights [N].

    Its draws are its own, and leave `generator` as it is.
    """

    def __init__(
        self,
        model: DBM | DBN,
        rows: Tensor,
        log_p: Tensor,
        weights: Tensor | None,
        generator: torch.Generator,
    ) -> None:
        self._model = model
        self._rows = rows
        self._log_p = log_p
        self._weights = weights
        seed = int(
            torch.randint(2**62, (), generator=generator.clone_state(), device=generator.device)
        )
        self._generator = seeded_generator(seed, generator.device)
        order = torch.randperm(len(rows), generator=self._generator, device=generator.device).cpu()
        # Each image is drawn around these as well, once the proposal is known to miss some.
        self._states: States = []
        self._gain = self._look(order, seeded_generator(seed + 1, generator.device))
        self._chosen = order[:POSTERIOR_IMAGES]
        self.estimate = self._drawn()
        # What `restart` goes back to.
        self._first_estimate = self.estimate
        self._first_state = self._generator.get_state()

    def restart(self) -> None:
        """Forget all that `refine` and `doubts` did: they then give the same numbers again."""
        self.estimate = self._first_estimate
        self._generator.set_state(self._first_state)

    def refine(self, largest: int, progress: bool | None = None) -> LogUnnormalized:
        """Anneal in up to `largest` steps, if draws alone are not enough."""
        for divisor in DIVISORS:
            if not self.unsettled:
                break
            steps = max(1, largest // divisor)
            self.estimate = self._annealed(steps, progress)
        return self.estimate

    @property
    def unsettled(self) -> bool:
        """Whether more draws would still raise the average."""
        return self.estimate.rise > _SETTLED

    def seconds_per_step(self) -> float:
        """Seconds that `refine` takes in all, for each of the largest number of its steps."""
        generator = seeded_generator(0, self._model.device)
        # The first pass allocates.
        self._log_weights(self._chosen, _CHAINS, 1, generator, False)
        began = time.perf_counter()
        self._log_weights(self._chosen, _CHAINS, _PILOT_STEPS, generator, False)
        return (time.perf_counter() - began) / _PILOT_STEPS * TOTAL_STEPS

    def doubts(self, units: Tensor) -> tuple[Doubt, ...]:
        """What speaks against the estimate, by draws of the model's annealed units [n, units]."""
        doubts = []
        rise = self.estimate.rise
        if rise > _RISING:
            text = (
                f"ln p*(v) still rises by {rise:.1f} nats when the draws of the hidden units are "
                "doubled: its average is too low by an unknown amount."
            )
            doubts.append(Doubt(Verdict.NOT_TRUSTED, text, Remedy.HIDDEN, rise / _RISING))
        if self._gain > _RISING:
            text = (
                f"The last search for hidden states that explain the images but are not drawn has "
                f"raised ln p*(v) by {self._gain:.1f} nats: there may be more of them, and its "
                "average is too low by an unknown amount."
            )
            doubts.append(Doubt(Verdict.NOT_TRUSTED, text, Remedy.HIDDEN))
        apart = self._apart(units[:POSTERIOR_IMAGES])
        if apart > _APART:
            text = (
                "For images that the model itself has drawn, estimates of ln p*(v) from above and "
                f"below are {apart:.1f} nats further apart than the spread of the weights "
                "explains: the draws miss a part of the posterior."
            )
            doubts.append(Doubt(Verdict.NOT_TRUSTED, text, Remedy.HIDDEN))
        return tuple(doubts)

    def _look(self, order: Tensor, generator: torch.Generator) -> float:
        """Search for states that the proposal misses until there are none.

        Returns the gain of the last search: by how much its states raised the average, in nats.
        """
        gain = 0.0
        for number, search in enumerate((_SHORT, *[_THOROUGH] * _LOOKS)):
            index, at_random = self._images_to_search(order, search.images)
            states = self._search(index, search, generator)
            gains = self._gains(index, states, search, generator)
            gained = self._are_gains(gains[:at_random], index[:at_random]) or gains.max() > _GAIN
            # There is a first thorough search only after the short one has found something. That it
            # then finds nothing is chance.
            first_thorough = number == 1
            if not (gained or first_thorough):
                return 0.0
            before = self._log_p
            self._adopt(index, states, gains, generator)
            gain = weighted_mean(self._log_p - before, self._weights).item()
            # Another search looks at other images.
            order = order.roll(-at_random)
        return gain

    def _images_to_search(self, order: Tensor, images: int) -> tuple[Tensor, int]:
        """The images in which a search looks, and how many of them, the first, are random.

        The others are those that the model explains worst.
        """
        if len(order) <= 2 * images:
            return order, len(order)
        chosen = order[:images]
        # The worst by ln p*(v), and the worst compared with independent pixels: images with many
        # pixels on are all improbable.
        for score in (self._log_p, self._log_p - self._pixel_log_p):
            others = score.index_fill(0, chosen, math.inf)
            chosen = torch.cat([chosen, others.argsort()[: images // 2]])
        return chosen, images

    @cached_property
    def _pixel_log_p(self) -> Tensor:
        """ln p(v) of all images under independent pixels at their base rates, up to a constant."""
        bias = base_rate_bias(self._rows, weights=self._weights).float().cpu()
        return torch.cat([part.cpu().float() @ bias for part in self._rows.split(10_000)])

    def _search(self, index: Tensor, search: _Search, generator: torch.Generator) -> States:
        """States of these images, found with more chains for those with the lowest ln p*(v)."""
        model = self._model
        steps = search.steps
        states = search_anywhere(model, self._rows_of(index), search.chains, steps, generator)
        worst = self._log_p[index].argsort()[: max(1, int(_WORST * len(index)))]
        rows = self._rows_of(index[worst])
        more = search_anywhere(model, rows, search.chains_of_worst, steps, generator)
        before = [layer[worst.to(layer.device)] for layer in states]
        best = best_of(model, rows, [before, more])
        for layer, best_layer in zip(states, best, strict=True):
            layer[worst.to(layer.device)] = best_layer
        return states

    def _gains(
        self, index: Tensor, states: States, search: _Search, generator: torch.Generator
    ) -> Tensor:
        """By how much ln p*(v) of these images rises around their states, in nats.

        What the spread of the weights explains does not count.
        """
        states = [layer[:, : search.states] for layer in states]
        mixed = self._log_weights(index, search.draws, 1, generator, False, states)
        drawn = self._log_weights(index, search.draws, 1, generator, False)
        # For log-normal weights, the logarithm of a mean of draws is too low by half of their
        # variance at most: that is what annealing is for.
        return log_mean_exp(mixed) - self._log_p[index] - drawn.var(1) / 2

    def _are_gains(self, gains: Tensor, index: Tensor) -> bool:
        """Whether images at random gain more on average than their noise and than matters."""
        noise = 3 * gains.std().item() / math.sqrt(len(gains)) if len(gains) > 1 else math.inf
        return weighted_mean(gains, self._weights_of(index)).item() > max(_RISING, noise)

    def _adopt(
        self, index: Tensor, states: States, gains: Tensor, generator: torch.Generator
    ) -> None:
        """Draw all images anew, also around states that explain them.

        These states are the best of what was found in these images, of what is near that, and of
        the states so far. All images are drawn anew, whether they gain or not: to keep estimates
        that are by chance high would make their average too high.
        """
        device = states[0].device
        gaining = gains.argsort(descending=True)[: max(1, int((gains > _GAIN).sum()))]
        order = torch.randperm(len(gaining), generator=generator, device=generator.device)
        sources = gaining[order[:_SOURCES].cpu()].to(device)
        source_states = [layer[sources, 0] for layer in states]
        # An image that was not looked at gets the states of another one, which do no harm.
        place = torch.zeros(len(self._rows), dtype=torch.long)
        place[index] = torch.arange(len(index))
        blocks = []
        values = []
        for part in torch.arange(len(self._rows)).split(_BLOCK):
            rows = self._rows_of(part)
            candidates = [search_nearby(self._model, rows, source_states, generator)]
            candidates.append([layer[place[part].to(device)] for layer in states])
            if self._states:
                candidates.append(self._states_of(part))
            best = best_of(self._model, rows, candidates)
            drawn = self._log_weights(part, POSTERIOR_DRAWS, 1, generator, False, best)
            # Bits take a fourth of the memory.
            blocks.append([layer.bool() for layer in best])
            values.append(log_mean_exp(drawn))
        self._states = [torch.cat(layers) for layers in zip(*blocks, strict=True)]
        self._log_p = torch.cat(values)

    def _states_of(self, index: Tensor) -> States:
        """The states of these images, once there are any."""
        return [layer[index.to(layer.device)] for layer in self._states]

    def _drawn(self) -> LogUnnormalized:
        """The estimates as they are, and how much those of some images rise with more draws."""
        drawn = self._log_weights(self._chosen, POSTERIOR_DRAWS, 1, self._generator, False)
        average = ReverseEstimate(drawn).average(self._weights_of(self._chosen))
        error = average.shifted(-average.value)
        # All images are drawn, not only the chosen ones.
        error = error.scaled(math.sqrt(len(self._chosen) / len(self._rows)))
        return LogUnnormalized(
            self._log_p, error, self._rise(drawn), POSTERIOR_DRAWS, gain=self._gain
        )

    def _annealed(self, steps: int, progress: bool | None) -> LogUnnormalized:
        """The estimates from annealing; images that are not annealed gain as much on average."""
        log_weights = self._log_weights(self._chosen, _CHAINS, steps, self._generator, progress)
        annealed = ReverseEstimate(log_weights)
        before = self._log_p[self._chosen]
        weights = self._weights_of(self._chosen)
        average = control_variate_mean(
            annealed, before, self._log_p, batch_weights=weights, all_weights=self._weights
        )
        log_p = self._log_p + weighted_mean(annealed.log_prob - before, weights)
        log_p[self._chosen] = annealed.log_prob
        error = Uncertain(0.0, average.test_set_std_error, average.degrees_of_freedom)
        return LogUnnormalized(log_p, error, self._rise(log_weights), _CHAINS, steps, self._gain)

    def _rows_of(self, index: Tensor) -> Tensor:
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
        """Log-weights of this many chains for each image, float64 [n, chains] on the CPU.

        With one step they are those of single draws.
        """
        if states is None and self._states:
            states = self._states_of(index)
        rows = self._rows_of(index)
        return self._row_log_weights(rows, chains, steps, generator, progress, states)

    def _row_log_weights(
        self,
        rows: Tensor,
        chains: int,
        steps: int,
        generator: torch.Generator,
        progress: bool | None,
        states: States | None,
    ) -> Tensor:
        """The same for rows [n, D], from the proposal alone or also from around states."""
        proposal = None
        if states is not None:
            proposal = mixture_around(self._model, rows, states, chains, generator)
        path = PosteriorPath(self._model, rows.repeat_interleave(chains, 0), proposal)
        count = chains * len(rows)
        with step_bar(count * steps, "Hidden layers", progress) as bar:
            schedule = uniform_betas(steps).tolist()
            log_weights, _ = run_chains(path, schedule, count, generator, bar.update)
        return log_weights.view(-1, chains).cpu()

    def _rise(self, log_weights: Tensor) -> float:
        """How much the average over the chosen images rises from half of the chains to all.

        It stands in for the rise when the chains are doubled.
        """
        halves = log_mean_exp(log_weights.unflatten(1, (2, -1))).mean(1)
        rises = log_mean_exp(log_weights) - halves
        return weighted_mean(rises, self._weights_of(self._chosen)).item()

    def _apart(self, units: Tensor) -> float:
        """By how much the two ends are apart for the model's own images, on average, in nats.

        What the spread of the weights explains does not count. If the ends are too far apart for
        the proposal alone, they are those of the proposal together with what a search finds.
        """
        generator = self._generator
        rows, hidden = self._model.completed(units.to(self._model.dtype), generator)
        apart = self._between_ends(rows, hidden, None)
        if apart > _APART:
            states = search_anywhere(
                self._model, rows, _THOROUGH.chains, _THOROUGH.steps, generator
            )
            apart = self._between_ends(rows, hidden, states)
        return apart

    def _between_ends(self, rows: Tensor, hidden: Sequence[Tensor], states: States | None) -> float:
        """The same for rows [n, D] that the model has drawn with their hidden layers.

        With states, the proposal is a mixture around these.
        """
        estimate = self.estimate
        generator = self._generator
        steps = max(1, estimate.steps)
        log_weights = self._row_log_weights(rows, estimate.draws, steps, generator, False, states)
        proposal = None
        if states is not None:
            proposal = mixture_around(self._model, rows, states, 1, generator)
            proposal.choose(hidden, generator)
        path = PosteriorPath(self._model, rows, proposal)
        back = torch.zeros(len(rows), dtype=torch.float64, device=self._model.device)
        schedule = uniform_betas(steps).tolist()[::-1]
        walk(
            path,
            path.reverse_steps,
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
