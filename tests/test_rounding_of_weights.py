"""Weights that are rounded alike: their errors add up, and such models walk in float64.

Groups of visible and of hidden units have equal weights between them, so that ln Z is a sum over
how many units of each visible group are on. Beside them there is one pair of units with a far
larger weight, which sets the grid to which all weights are rounded. Half of the mass is in a phase
with most visible units on, and half in one with few.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from boltzmann_likelihood import evaluate
from boltzmann_likelihood.evaluation.precision import chain_dtype, collected_rounding
from paperlib.kernels.products import rounding_errors
from paperlib.models import DBM, DBN, RBM
from paperlib.numerics import seeded_generator, softplus

ROOT = Path(__file__).parents[1]
STORED = [path for path in ROOT.glob("data/models/*.safetensors") if "mixture" not in path.name]

LARGEST = 80.0
GRID = LARGEST / 32_639
WIDTH = 100

# Weights between visible groups (rows) and hidden groups (columns), in steps of the grid.
KINDS: dict[str, list[list[float]]] = {
    "constant": [[19.51]],
    "rounded down": [[20.49]],
    "two columns, each many times": [[17.51, 21.51]],
    "two rows, each many times": [[19.51], [20.51]],
    "four values": [[17.51, 23.51], [21.51, 15.51]],
}


class Alike:
    """The model, its ln Z and exact draws; if `flipped`, every other unit means its opposite."""

    def __init__(self, steps: list[list[float]], flipped: bool) -> None:
        values = GRID * torch.tensor(steps, dtype=torch.float64)
        groups, kinds = values.shape
        size = WIDTH // groups
        copies = WIDTH // kinds
        weights = values.repeat_interleave(size, 0).repeat_interleave(copies, 1)
        hidden_bias = -weights.sum(0) / 2
        axes = [torch.arange(size + 1, dtype=torch.float64)] * groups
        self.size = size
        self.counts = torch.cartesian_prod(*axes).view(-1, groups)
        ways = math.lgamma(size + 1) - (self.counts + 1).lgamma()
        ways -= (size - self.counts + 1).lgamma()
        inputs = self.counts @ values - size * values.sum(0) / 2
        masses = ways.sum(1) + copies * softplus(inputs).sum(1)
        on = self.counts.sum(1)
        # The bias at which both phases are as probable, by bisection.
        low = -2 * weights.sum().item() / WIDTH
        high = 0.0
        for _ in range(60):
            bias = (low + high) / 2
            self.log_masses = masses + bias * on
            upper = self.log_masses[on > WIDTH / 2].logsumexp(0)
            lower = self.log_masses[on < WIDTH / 2].logsumexp(0)
            if upper < lower:
                low = bias
            else:
                high = bias
        visible_bias = torch.full((WIDTH,), bias, dtype=torch.float64)
        flips = torch.arange(WIDTH).remainder(2).double() * flipped
        signs = 1 - 2 * flips
        constant = flips @ (weights @ flips + visible_bias + hidden_bias)
        pair = torch.tensor([[LARGEST]], dtype=torch.float64)
        half = torch.tensor([-LARGEST / 2], dtype=torch.float64)
        self.flips = flips
        self.rbm = RBM(
            torch.block_diag(signs[:, None] * weights * signs, pair),
            torch.cat([signs * (visible_bias + weights @ flips), half]),
            torch.cat([signs * (hidden_bias + flips @ weights), half]),
        )
        pair_masses = torch.tensor([0.0, -LARGEST / 2, -LARGEST / 2, 0.0]).double()
        self.log_z = (self.log_masses.logsumexp(0) - constant + pair_masses.logsumexp(0)).item()

    def draw(self, num_draws: int, generator: torch.Generator) -> Tensor:
        chosen = torch.multinomial(self.log_masses.softmax(0), num_draws, True, generator=generator)
        parts = []
        for count in self.counts[chosen].T:
            order = torch.rand(num_draws, self.size, generator=generator).argsort(1).argsort(1)
            parts.append(order < count[:, None])
        units = torch.cat(parts, 1) ^ self.flips.bool()
        return torch.cat([units, torch.rand(num_draws, 1, generator=generator) < 0.5], 1)


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_are_rounded_alike_walk_in_float64(kind, flipped):
    assert chain_dtype(Alike(KINDS[kind], flipped).rbm) == torch.float64


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_trusted_is_right(kind, seed):
    # Rounded, the phase with many units on has hardly any mass: ln Z is too low by ln 2.
    model = Alike(KINDS[kind], flipped=seed == 4)
    generator = seeded_generator(seed)
    images = model.draw(600, generator)
    evaluation = evaluate(
        model.rbm, images[:300], images[300:], steps=60, generator=generator, progress=False
    )
    assert evaluation.word != "trusted" or abs(evaluation.known_log_z[0] - model.log_z) < 0.5
    [remark] = [remark for remark in evaluation.remarks if "float64" in remark]
    assert remark.startswith("Rounding to the 16 bits of fast products")


@pytest.mark.parametrize("name", sorted(path.name for path in STORED))
def test_the_stored_models_walk_in_float32(name):
    kind = DBM if "dbm" in name else DBN if "dbn" in name else RBM
    model = kind.load(ROOT / "data/models" / name, torch.float32)
    assert chain_dtype(model) == torch.float32
    weights = model.annealed.weights
    assert collected_rounding(rounding_errors(weights), weights.double()) < 0.01


@pytest.mark.parametrize("size", [(30, 20), (100, 400), (784, 500)])
def test_independent_weights_collect_nothing(size):
    weights = torch.randn(size, generator=seeded_generator(0)).double()
    assert collected_rounding(rounding_errors(weights), weights) < 0.02
