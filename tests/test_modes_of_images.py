"""Modes that images show: exclusive ones, each on its own pixels, beside a base without any.

One hidden unit holds each mode and forbids the others, so that ln Z is a sum over how many of them
are on. The other pixels belong to a small RBM that is enumerated. Chains from the base rates meet
none of the larger modes, since each of these is on in few images.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from boltzmann_likelihood import audit, evaluate
from boltzmann_likelihood.evaluation.modes import ModeSearch
from paperlib.models import RBM
from paperlib.numerics import seeded_generator


def soft(x: float) -> float:
    return math.log1p(math.exp(-abs(x))) + max(x, 0.0)


class Exclusive:
    """So many modes of so many pixels, which together have `mass` times that of the base."""

    def __init__(self, modes: int, pixels: int, mass: float, strength: float, rest: int) -> None:
        self.modes = modes
        self.pixels = pixels
        self.generator = seeded_generator(modes + pixels)
        blocks = modes * pixels
        bias = -strength / 2
        held = torch.full((blocks, modes), -strength, dtype=torch.float64)
        for mode in range(modes):
            held[mode * pixels : (mode + 1) * pixels, mode] = strength
        elsewhere = (blocks - pixels) * (soft(bias) - soft(bias - strength))
        here = pixels * (soft(bias) - soft(bias + strength))
        self.held = RBM(
            held,
            torch.full((blocks,), bias, dtype=torch.float64),
            torch.full((modes,), math.log(mass / modes) + elsewhere + here, dtype=torch.float64),
        )
        small = 0.05 * torch.randn(rest, 8, dtype=torch.float64, generator=self.generator)
        visible_bias = torch.randn(rest, dtype=torch.float64, generator=self.generator) - 1
        self.small = RBM(small, visible_bias, torch.zeros(8, dtype=torch.float64))
        self.rbm = RBM(
            torch.block_diag(held, small),
            torch.cat([self.held.visible_bias, visible_bias]),
            torch.cat([self.held.hidden_bias, self.small.hidden_bias]),
        )
        self.numbers = torch.stack([self._mass_with(number) for number in range(modes + 1)])
        states = torch.cartesian_prod(*[torch.tensor([0.0, 1.0]).double()] * 8)
        self.states = states
        self.masses = self.small.log_unnormalized_hidden(states)
        self.log_z = (self.numbers.logsumexp(0) + self.masses.logsumexp(0)).item()
        self.without = math.log1p(mass)

    def _mass_with(self, number: int) -> Tensor:
        """ln of the sum over all hidden states with so many modes on."""
        hidden = torch.zeros(1, self.modes, dtype=torch.float64)
        hidden[:, :number] = 1
        return self.held.log_unnormalized_hidden(hidden)[0] + math.log(
            math.comb(self.modes, number)
        )

    def draws(self, number: int) -> Tensor:
        """Exact draws of the model."""
        on = torch.multinomial(self.numbers.softmax(0), number, True, generator=self.generator)
        order = torch.rand(number, self.modes, generator=self.generator).argsort(1).argsort(1)
        hidden = (order < on[:, None]).double()
        others = torch.multinomial(self.masses.softmax(0), number, True, generator=self.generator)
        probs = torch.cat(
            [self.held.visible_probs(hidden), self.small.visible_probs(self.states[others])], 1
        )
        return torch.bernoulli(probs, generator=self.generator)


# Near and far ones, strong and weak, few and many.
KINDS = {
    "ten of 36 pixels": Exclusive(10, 36, 1.5, 10.0, 100),
    "thirty of 12 pixels": Exclusive(30, 12, 1.5, 14.0, 100),
    "five of 60 pixels": Exclusive(5, 60, 1.5, 6.0, 40),
    "twenty of 20 pixels": Exclusive(20, 20, 2.0, 6.0, 40),
    "eight of 30 pixels": Exclusive(8, 30, 0.8, 14.0, 200),
}


@pytest.mark.parametrize("model", KINDS.values(), ids=KINDS)
def test_modes_that_images_show_are_not_trusted(model):
    """The interval is narrow and wrong, since parallel tempering misses all modes alike."""
    train = model.draws(500)
    test = model.draws(200)
    for seed in range(2):
        result = evaluate(
            model.rbm, test, train, steps=200, generator=seed, exact=False, progress=False
        )
        off = result.known_log_z.value - model.log_z
        assert off == pytest.approx(-model.without, abs=0.25)
        assert result.word != "trusted"


def test_modes_that_parallel_tempering_meets_are_trusted():
    """Of four pixels each, and met from the base rates."""
    model = Exclusive(8, 4, 1.5, 6.0, 40)
    result = evaluate(
        model.rbm,
        model.draws(200),
        model.draws(500),
        steps=400,
        generator=1,
        exact=False,
        progress=False,
    )
    assert result.word == "trusted"
    low, high = result.log_z_interval(0.999)
    assert low <= model.log_z <= high


def test_a_true_claim_is_consistent_where_images_show_modes_that_were_missed():
    model = KINDS["ten of 36 pixels"]
    train = model.draws(500)
    test = model.draws(200)
    result = audit(
        model.rbm,
        test,
        train,
        claimed_log_z=model.log_z,
        steps=200,
        generator=seeded_generator(1),
        progress=False,
    )
    assert result.verdict == "consistent"


def test_the_strongest_unmet_mode_and_the_most_frequent_are_looked_at():
    """Draws of the run are in the base alone.

    Images show the second mode, and hard ones the third.
    """
    model = Exclusive(4, 10, 0.5, 8.0, 5)
    bias = model.held.hidden_bias.clone()
    bias[0] += 2
    rbm = RBM(model.rbm.weights, model.rbm.visible_bias, torch.cat([bias, model.small.hidden_bias]))
    patterns = torch.zeros(5, 45, dtype=torch.float64)
    for mode in range(4):
        patterns[mode + 1, 10 * mode : 10 * mode + 10] = 1

    def looked_at(optima):
        return [
            int(torch.cdist(each.visible[None, :40], patterns[:, :40]).argmin()) for each in optima
        ]

    search = ModeSearch(rbm, patterns[:1].expand(20, -1))
    known = search.of_model()
    assert looked_at(known) == [0, 1]  # the strongest, and the strongest without a draw
    # It promises its own mass and that of the three weaker ones, beside a base of 1.
    assert known[1].promised == pytest.approx(math.log1p(0.125 * (math.exp(2) + 3)), abs=0.02)
    nothing = patterns[:0]
    images = patterns[[0] * 20 + [2] * 10 + [3] * 2]
    assert looked_at(search.of_images(images, nothing, known)) == [2]
    assert looked_at(search.of_images(images, patterns[[3, 3, 2]], known)) == [2, 3]
    assert looked_at(search.of_images(patterns[[0] * 20 + [1] * 10], nothing, known)) == []
    met = ModeSearch(rbm, patterns[[0] * 10 + [1] * 5 + [2] * 5 + [3]])
    assert looked_at(met.of_images(images, nothing, known)) == []
    # Where draws have been, but much more rarely than images
    assert looked_at(met.of_images(patterns[[0] + [3] * 20], nothing, known)) == [3]
