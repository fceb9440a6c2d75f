"""Does `evaluate` trust what is wrong? Planted models with a known answer, built to mislead it.

===============  ==================================================================================
`tied weights`   blocks of equal, quantised or duplicated weights beside pairs of units with weights
                 of 10 to 60
`modes`          5 to 30 modes that the images show, near each other or far, as often as the model
                 does or not
`deep models`    DBNs and DBMs whose test images lie off the model (`hunted_deep`)
`two phases`     equal weights, and the Ising model on a torus, in a field
`few images`     easy models with repeated images, few images, or a few that are far worse
===============  ==================================================================================

ln Z is a sum over how many units are on, over the hidden states that matter, or over the states of
small pieces side by side. Where the Ising model is in a field, it is an average over exact draws
without one, known to a hundredth of a nat.

Each family also has models that are easy. A model depends only on its family and its number, so
that a longer hunt has the models of a shorter one.

Used in chapter: why-trust-this-code.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from boltzmann_companion.claims.checks import inside
from boltzmann_companion.rows import grouped
from boltzmann_companion.studies.hunted_deep import deep_models
from boltzmann_companion.studies.study import code_checksum, holds_truth
from boltzmann_likelihood import planted
from boltzmann_likelihood.evaluation import evaluate
from boltzmann_likelihood.evaluation.result import Verdict
from boltzmann_likelihood.planted import Planted
from boltzmann_likelihood.planted.components import side_by_side
from boltzmann_likelihood.planted.planted_model import Draws, draw_indices
from boltzmann_likelihood.store import remembered
from paperlib.datasets import cache_folder
from paperlib.estimators import exact_log_z
from paperlib.kernels import bernoulli
from paperlib.models import DBM, DBN, RBM
from paperlib.numerics import all_states, seeded_generator, softplus

# Nats beyond which a value is called wrong.
WRONG = 0.5
# Models of each family.
NUMBER = 36
# K of `evaluate`'s largest runs: two to ten seconds of one core.
STEPS = 500
_TEST_IMAGES = 300
_TRAINING_IMAGES = 1_000
# Steps of the grid to which a model's largest weight is rounded where chains walk with 16 bits.
_GRID_STEPS = 32_639
# Up to this many modes, all sets of modes are summed over.
_FEW_MODES = 8
# Of more modes, no two may be on together in more than this share of the mass.
_NEGLIGIBLE = 1e-6
# Where some images are far worse, each part of the others is in one of its most probable states.
_BEST_STATES = 4
# Draws without a field from which ln Z with one is averaged.
_ISING_DRAWS = 4_000


@dataclass(frozen=True, eq=False)
class Hunted:
    """A model with a known answer, and images to evaluate it on.

    Attributes
    ----------
    name : str
        Its name in tables.
    model : RBM, DBM or DBN
        The model, float64.
    test : Tensor, shape [N, D]
        Binary test images, uint8.
    train : Tensor or None, shape [any, D]
        Binary training images, uint8; None if there are none.
    truth : float
        The average ln p(v) of the test images, in nats.
    others : float or None
        The expected ln p(v) of other images of the same kind as the test images, in nats; known for
        the family `few images` alone.

    Examples
    --------
    >>> FAMILIES["few images"](0).name
    '1: 20 images, each 10 times'
    """

    name: str
    model: RBM | DBM | DBN
    test: Tensor
    train: Tensor | None
    truth: float
    others: float | None = None


# ---- pieces of models


def beside(parts: Sequence[Planted]) -> Planted:
    """Independent planted models as one, with units in the order of the parts.

    Examples
    --------
    >>> model = beside([pair(10.0), pair(20.0)])
    >>> model.rbm, abs(model.log_z - 2 * math.log(2)) < 0.03
    (RBM(2 visible, 2 hidden, torch.float64, cpu), True)
    """

    def draw(number: int, generator: torch.Generator) -> Tensor:
        return torch.cat([part.draws(number, generator) for part in parts], 1)

    rbm = side_by_side([part.rbm for part in parts])
    return Planted(rbm, sum(part.log_z for part in parts), Draws(draw))


def pair(weight: float, pixels: int = 1) -> Planted:
    """A hidden unit and some pixels, which are mostly all on or all off, equally often."""
    rbm = RBM(
        torch.full((pixels, 1), weight, dtype=torch.float64),
        torch.full((pixels,), -weight / 2, dtype=torch.float64),
        torch.tensor([-pixels * weight / 2], dtype=torch.float64),
    )
    return planted.from_components(rbm)


def from_hidden_states(rbm: RBM, states: Tensor) -> Planted:
    """A model whose hidden units are in one of these states [S, M], if others have no mass."""
    log_masses = rbm.log_unnormalized_hidden(states)

    def draw(number: int, generator: torch.Generator) -> Tensor:
        hidden = states[draw_indices(log_masses, number, generator)]
        return bernoulli(rbm.visible_probs(hidden), generator)

    return Planted(rbm, log_masses.logsumexp(0).item(), Draws(draw))


def transposed(model: Planted) -> Planted:
    """The model with its layers exchanged."""
    rbm = RBM(model.rbm.weights.T.contiguous(), model.rbm.hidden_bias, model.rbm.visible_bias)

    def draw(number: int, generator: torch.Generator) -> Tensor:
        return bernoulli(rbm.visible_probs(model.draws(number, generator)), generator)

    return Planted(rbm, model.log_z, Draws(draw))


def flipped(model: Planted) -> Planted:
    """The same model, in which every other unit of both layers means its opposite."""
    rbm = model.rbm
    flips = torch.arange(rbm.num_visible).remainder(2).double()
    hidden_flips = torch.arange(rbm.num_hidden).remainder(2).double()
    signs = 1 - 2 * flips
    hidden_signs = 1 - 2 * hidden_flips
    constant = (
        flips @ rbm.weights @ hidden_flips
        + flips @ rbm.visible_bias
        + hidden_flips @ rbm.hidden_bias
    )
    opposite = RBM(
        signs[:, None] * rbm.weights * hidden_signs,
        signs * (rbm.visible_bias + rbm.weights @ hidden_flips),
        hidden_signs * (rbm.hidden_bias + flips @ rbm.weights),
    )

    def draw(number: int, generator: torch.Generator) -> Tensor:
        return flips + signs * model.draws(number, generator)

    return Planted(opposite, model.log_z - constant.item(), Draws(draw))


def tied(values: Tensor, num_visible: int, num_hidden: int, field: float = 0.0) -> Planted:
    """A model whose units form groups with equal weights in both layers, in a field.

    Parameters
    ----------
    values : Tensor, shape [groups, kinds]
        Weights between groups of equal visible units and kinds of equal hidden units.
    num_visible, num_hidden : int
        Units of each layer, divided evenly among the groups and kinds.
    field : float
        By how many nats, about, the phase with most units on is more probable than the one with
        most units off. Without a field both are the same.
    """
    groups, kinds = values.shape
    rows = torch.arange(num_visible) * groups // num_visible
    columns = torch.arange(num_hidden) * kinds // num_hidden
    return from_equal_rows(rows, values[:, columns].T, field)


def from_equal_rows(rows: Tensor, columns: Tensor, field: float) -> Planted:
    """A model whose visible units form groups with equal weights, in a field.

    Parameters
    ----------
    rows : Tensor, shape [D]
        The group of each visible unit.
    columns : Tensor, shape [M, groups]
        Weights of each hidden unit to the units of a group.
    field : float
        As in `tied`.
    """
    membership = torch.nn.functional.one_hot(rows)
    weights = membership.double() @ columns.T
    visible_bias = -weights.sum(1) / 2
    hidden_bias = -weights.sum(0) / 2
    balanced = planted.from_factors(membership, columns, visible_bias, hidden_bias)
    if field == 0:
        return balanced
    draws = balanced.draws(500, seeded_generator(0))
    order = (2 * draws.mean(1) - 1).abs().mean()
    pull = field / (order * len(rows))
    return planted.from_factors(membership, columns, visible_bias + pull, hidden_bias)


def with_modes(
    columns: Tensor, visible_bias: Tensor, base: Tensor, masses: Sequence[float]
) -> Planted:
    """A small RBM with modes, each held by a new hidden unit.

    Parameters
    ----------
    columns : Tensor, shape [D, K]
        Weights of the new units. All sets of up to eight are summed over; more must exclude each
        other.
    visible_bias : Tensor, shape [D]
    base : Tensor, shape [D, m]
        Weights of the small RBM, whose hidden biases balance them.
    masses : sequence of float
        Mass of each mode as a multiple of that of the model without modes.

    Raises
    ------
    ValueError
        If more than eight modes do not exclude each other.
    """
    count = columns.shape[1]
    small = base.shape[1]
    small_states = all_states(small)
    small_bias = -base.sum(0) / 2

    def log_mass(shift: Tensor) -> float:
        inputs = small_states @ base.T + visible_bias + shift
        return (small_states @ small_bias + softplus(inputs).sum(1)).logsumexp(0).item()

    log_mass_without_modes = log_mass(torch.zeros_like(visible_bias))
    bias = [
        math.log(mass) + log_mass_without_modes - log_mass(column)
        for mass, column in zip(masses, columns.T, strict=True)
    ]
    rbm = RBM(
        torch.cat([columns, base], 1),
        visible_bias,
        torch.cat([torch.tensor(bias, dtype=torch.float64), small_bias]),
    )
    together = count if count <= _FEW_MODES else 2
    subsets = [on for size in range(together + 1) for on in combinations(range(count), size)]
    modes = torch.zeros(len(subsets), count, dtype=torch.float64)
    for row, on in zip(modes, subsets, strict=True):
        row[list(on)] = 1
    states = torch.cat(
        [modes.repeat_interleave(len(small_states), 0), small_states.repeat(len(modes), 1)], 1
    )
    if together < count:
        pairs = rbm.log_unnormalized_hidden(states[states[:, :count].sum(1) == together])
        singles = rbm.log_unnormalized_hidden(states[states[:, :count].sum(1) < together])
        if pairs.logsumexp(0) - singles.logsumexp(0) > math.log(_NEGLIGIBLE):
            raise ValueError("columns: expected modes of which no two are on together")
    return from_hidden_states(rbm, states)


def independent_modes(columns: Tensor, visible_bias: Tensor, masses: Sequence[float]) -> Planted:
    """Modes that are on or off independently.

    Parameters
    ----------
    columns : Tensor, shape [D, K]
        Weights of the hidden unit of each mode; no pixel belongs to two of them.
    visible_bias : Tensor, shape [D]
    masses : sequence of float
        Odds that a mode is on.
    """
    gains = softplus(columns + visible_bias[:, None]) - softplus(visible_bias)[:, None]
    bias = torch.tensor(masses, dtype=torch.float64).log() - gains.sum(0)
    return planted.from_components(RBM(columns, visible_bias, bias))


def ising_in_field(side: int, coupling: float, field: float, generator: torch.Generator) -> Planted:
    """The Ising model on a torus of `side` x `side` sites, in a field.

    The field makes one phase more probable than the other by `field` nats.
    With M the sum of the spins, Z with a field is Z without one times the mean of cosh(h M), since
    M and -M are equally probable. Draws with a field are those draws without one that a coin of
    probability cosh(h M) / cosh(h L^2) accepts, with a sign of probability proportional to e^{h M}.
    """
    plain = planted.ising_2d(side, coupling)
    sites = side * side
    spins = 2 * plain.draws(_ISING_DRAWS, generator).sum(1) - sites
    pull = field / 2 / spins.abs().mean().item()
    log_mean_cosh = torch.cosh(pull * spins).mean().log().item()
    rbm = RBM(plain.rbm.weights, plain.rbm.visible_bias + 2 * pull, plain.rbm.hidden_bias)

    def draw(number: int, generator: torch.Generator) -> Tensor:
        accepted: list[Tensor] = []
        while sum(map(len, accepted)) < number:
            v = plain.draws(number, generator)
            total = 2 * v.sum(1) - sites
            share = torch.cosh(pull * total) / math.cosh(pull * sites)
            v = v[bernoulli(share, generator) > 0]
            total = (2 * v.sum(1) - sites).abs()
            up = bernoulli(torch.sigmoid(2 * pull * total), generator)
            is_up = (2 * v.sum(1) > sites).double()
            same = (up == is_up)[:, None]
            accepted.append(torch.where(same, v, 1 - v))
        return torch.cat(accepted)[:number]

    return Planted(rbm, plain.log_z + log_mean_cosh + pull * sites, Draws(draw))


# ---- the families


def _with_images(name: str, model: Planted, source: Planted, generator: torch.Generator) -> Hunted:
    """A planted model with images that are draws from `source`, the same model or another one."""
    images = source.draws(_TEST_IMAGES + _TRAINING_IMAGES, generator).to(torch.uint8)
    test, train = images.split([_TEST_IMAGES, _TRAINING_IMAGES])
    truth = model.rbm.exact_log_unnormalized(test).mean().item() - model.log_z
    return Hunted(name, model.rbm, test, train, truth)


_TIED = {
    "equal": [[1.0]],
    "two rows": [[0.85], [1.15]],
    "two columns": [[0.85, 1.15]],
    "four values": [[0.8, 1.1], [1.2, 0.9]],
}
_TIED_KINDS = (*_TIED, "quantised", "equal rows", "equal columns")


def _tied(which: int) -> Hunted:
    rng, generator = _sources("tied weights", which)
    kind = _TIED_KINDS[which % len(_TIED_KINDS)]
    largest = rng.uniform(10, 60)
    num_visible = rng.choice([48, 80, 120, 160, 200])
    num_hidden = rng.choice([48, 80, 120, 160, 200])
    # 1 is where a second phase appears.
    strength = rng.uniform(0.7, 1.25)
    field = rng.choice([0.0, 0.0, 0.3, -0.3, 1.0, -1.0, 3.0, -3.0])
    if kind in _TIED:
        weight = 4 * strength / math.sqrt(num_visible * num_hidden)
        grid = largest / _GRID_STEPS
        # Some are nearly half a step off the grid, so that all of their copies are rounded alike.
        values = [
            [
                (round(weight * factor / grid) + rng.choice([-0.49, 0.49, 0.4, 0.0])) * grid
                for factor in row
            ]
            for row in _TIED[kind]
        ]
        model = tied(torch.tensor(values, dtype=torch.float64), num_visible, num_hidden, field)
        detail = f"weights of {weight:.3f}, field of {field:g} nats"
    elif kind == "quantised":
        step = rng.choice([0.02, 0.1, 0.25, 0.5])
        model = _quantised(num_visible, num_hidden, strength, step, generator)
        detail = f"steps of {step:g}"
    else:
        copies = rng.choice([10, 20, 30])
        rows = torch.arange(3).repeat_interleave(copies)
        std = 4 * strength / math.sqrt(copies * num_hidden)
        columns = std * torch.randn(num_hidden, 3, dtype=torch.float64, generator=generator)
        model = from_equal_rows(rows, columns, 0.0)
        if kind == "equal columns":
            model = transposed(model)
        detail = f"3 x {copies}, weights of {std:.3f}"
    parts = [model, pair(largest)]
    parts += [
        pair(rng.uniform(10, largest), rng.choice([1, 3])) for _ in range(rng.choice([0, 0, 1, 4]))
    ]
    if rng.random() < 0.5:
        parts.append(planted.block_diagonal(48, 30, 4, 0.8, generator=generator))
    whole = beside(parts)
    is_flipped = rng.random() < 0.4
    if is_flipped:
        whole = flipped(whole)
    name = f"{kind}, {detail}, beside {largest:.1f}{', flipped' * is_flipped}"
    return _with_images(f"{which + 1}: {name}", whole, whole, generator)


def _quantised(
    num_visible: int, num_hidden: int, std: float, step: float, generator: torch.Generator
) -> Planted:
    """Small RBMs side by side whose weights are multiples of a step."""
    rbm = planted.block_diagonal(num_visible, num_hidden, 16, std, generator=generator).rbm
    weights = (rbm.weights / step).round() * step
    return planted.from_components(RBM(weights, rbm.visible_bias, rbm.hidden_bias))


_MODES = (
    "near",
    "independent",
    "far",
    "near, small",
    "near",
    "far, weak",
    "independent, small",
    "near",
)


def _modes(which: int) -> Hunted:
    rng, generator = _sources("modes", which)
    kind = _MODES[which % len(_MODES)]
    count = rng.choice([5, 8, 10, 15, 20, 30])
    if kind == "far, weak":
        count = min(count, _FEW_MODES)
    total = rng.uniform(0.6, 3.0)
    shares = [rng.choice([1.0, 1.0, 0.2]) if which % 2 else 1.0 for _ in range(count)]
    # How many times as often as the model the images show its modes.
    frequency = rng.choice([1.0, 1.0, 3.0, 0.3])
    make = _far_modes if kind.startswith("far") else _near_modes
    pixels, model_of = make(kind, count, rng, generator)

    def with_masses_times(factor: float) -> Planted:
        """The model with the masses of its modes times a factor."""
        return model_of([factor * total * share / sum(shares) for share in shares])

    model = with_masses_times(1.0)
    source = model if frequency == 1 else with_masses_times(frequency)
    equal = "equal" if len(set(shares)) == 1 else "unequal"
    name = f"{count} {kind}, {equal} masses of together {total:.2f}, {pixels} pixels each"
    if frequency != 1:
        name += f", shown {frequency:g} times as often"
    return _with_images(f"{which + 1}: {name}", model, source, generator)


def _far_modes(
    kind: str, count: int, rng: random.Random, generator: torch.Generator
) -> tuple[int, Callable[[list[float]], Planted]]:
    """Modes at random patterns of half of the pixels, on top of a small RBM.

    Returns the number of their pixels and a function that makes the model from the modes' masses.
    """
    num_visible = rng.choice([200, 300, 400])
    pixels = num_visible // 2
    strength = rng.uniform(0.7, 1.5) if kind == "far, weak" else rng.uniform(4, 8)
    order = torch.rand(num_visible, count, generator=generator).argsort(0)
    signs = torch.randint(2, (num_visible, count), generator=generator).double() * 2 - 1
    columns = torch.where(order < pixels, strength * signs, 0.0)
    bias = torch.randn(num_visible, generator=generator, dtype=torch.float64) - 0.5
    small = rng.choice([0, 3, 5])
    base = 0.2 * torch.randn(num_visible, small, generator=generator, dtype=torch.float64)
    return pixels, partial(with_modes, columns, bias, base)


def _near_modes(
    kind: str, count: int, rng: random.Random, generator: torch.Generator
) -> tuple[int, Callable[[list[float]], Planted]]:
    """Modes of a few pixels each, exclusive or independent, beside a small RBM; as `_far_modes`."""
    weight = rng.uniform(7, 12)
    if kind.endswith("small"):
        pixels = rng.choice([4, 5, 6])
    else:
        pixels = min(rng.choice([8, 12, 16, 24, 36, 48]), 480 // count)
    num_visible = count * pixels
    mode_of = torch.arange(count).repeat_interleave(pixels)
    columns = weight * torch.nn.functional.one_hot(mode_of).double()
    bias = torch.full((num_visible,), -weight / 2 - 0.5, dtype=torch.float64)
    # A mode has less than a twentieth of all pixels.
    others = max(rng.choice([100, 200, 300]), 22 * pixels - num_visible)
    background = _background(others, rng, generator)

    def model_of(masses: list[float]) -> Planted:
        if kind.startswith("near"):
            nothing = torch.zeros(num_visible, 0, dtype=torch.float64)
            modes = with_modes(2 * columns - weight, bias, nothing, masses)
        else:
            modes = independent_modes(columns, bias, masses)
        return beside([modes, background])

    return pixels, model_of


def _background(num_visible: int, rng: random.Random, generator: torch.Generator) -> Planted:
    """A small RBM with pixels that are off more often than on."""
    shape = (num_visible, rng.choice([6, 10, 14]))
    std = rng.choice([0.1, 0.3, 0.6])
    weights = std * torch.randn(shape, generator=generator, dtype=torch.float64)
    bias = torch.randn(num_visible, generator=generator, dtype=torch.float64) - 1
    rbm = RBM(weights, bias - weights.sum(1) / 2, -weights.sum(0) / 2)
    return planted.from_components(rbm)


def _two_phases(which: int) -> Hunted:
    rng, generator = _sources("two phases", which)
    field = rng.choice([0.0, 0.3, 1.0, 2.0, 4.0])
    strength = rng.choice([0.8, 0.95, 1.0, 1.05, 1.1, 1.2, 1.4])
    if which % 3 == 2:
        side = rng.choice([6, 8, 10, 12, 16])
        coupling = strength * math.log1p(math.sqrt(2)) / 2
        model = ising_in_field(side, coupling, field, generator)
        name = f"Ising, {side} x {side}, {strength:g} of the critical coupling"
    else:
        num_visible = rng.choice([40, 80, 150, 250])
        num_hidden = rng.choice([40, 80, 150, 250])
        weight = 4 * strength / math.sqrt(num_visible * num_hidden)
        values = torch.tensor([[weight]], dtype=torch.float64)
        model = tied(values, num_visible, num_hidden, field)
        name = f"{num_visible} x {num_hidden} equal weights, {strength:g} of the critical one"
    return _with_images(f"{which + 1}: {name}, {field:g} nats", model, model, generator)


def _few_images(which: int) -> Hunted:
    rng, generator = _sources("few images", which)
    kind = which % 4
    number = rng.choice([5, 8, 12, 20, 50])
    copies = 1
    worse = 0.0
    if kind == 0:
        number = 20
        copies = rng.choice([5, 10, 20, 50])
    elif kind == 1:
        worse = rng.choice([0.0, 0.03, 0.05])
    elif kind == 2:
        number = rng.choice([20, 50, 100, 300, 600])
        worse = rng.choice([0.02, 0.03, 0.05])
    else:
        number = rng.choice([300, 400, 600, 1_000])
        copies = rng.choice([1, 2])
    name = f"{number} images"
    if copies > 1:
        name += f", each {copies} times"
    if worse:
        name += f", {100 * worse:g} % of another kind"
    # With larger weights an image of independent pixels is worse by more nats.
    std = rng.choice([2.0, 3.0, 4.0])
    parts = []
    for _ in range(12):
        weights = std * torch.randn(7, 3, generator=generator, dtype=torch.float64)
        parts.append(RBM(weights, -weights.sum(1) / 2, -weights.sum(0) / 2))
    model = side_by_side(parts)
    states = all_states(7)
    log_zs = [exact_log_z(part, progress=False) for part in parts]
    log_p = torch.stack(
        [part.log_unnormalized(states) - log_z for part, log_z in zip(parts, log_zs, strict=True)]
    )
    probs = log_p.exp()
    if worse:
        # Of nearly the same probability, so that the others stand out.
        best = log_p.topk(_BEST_STATES).indices
        probs = torch.zeros_like(log_p).scatter(1, best, 1 / _BEST_STATES)
    with_noise = (1 - worse) * probs + worse / len(states)
    expected = (with_noise * log_p).sum().item()

    def draw(count: int, share: float) -> Tensor:
        """Images of which this share is of independent random pixels."""
        usual = probs.multinomial(count, True, generator=generator).T
        noise = torch.randint(len(states), usual.shape, generator=generator)
        is_noise = torch.rand(count, 1, generator=generator) < share
        return states[torch.where(is_noise, noise, usual)].flatten(1).to(torch.uint8)

    test = draw(number, worse).repeat(copies, 1)
    truth = model.exact_log_unnormalized(test).mean().item() - sum(log_zs)
    train = draw(_TRAINING_IMAGES, 0.0)
    return Hunted(f"{which + 1}: {name}", model, test, train, truth, expected)


def _deep(which: int) -> Hunted:
    [(model, test, train, truth)] = islice(deep_models(which + 1), which, None)
    return Hunted(f"{which + 1}: {model.description}", model, test, train, truth)


def _sources(family: str, which: int) -> tuple[random.Random, torch.Generator]:
    """The sources of randomness of a model: for what is chosen from lists, and for tensors."""
    rng = random.Random(f"{family} {which}")
    return rng, seeded_generator(rng.randrange(2**32))


FAMILIES: dict[str, Callable[[int], Hunted]] = {
    "tied weights": _tied,
    "modes": _modes,
    "deep models": _deep,
    "two phases": _two_phases,
    "few images": _few_images,
}


# ---- the study


def hunt_folder() -> Path:
    """Where the study keeps its rows."""
    return cache_folder() / "hunt"


def hunt(
    families: Iterable[str] = tuple(FAMILIES),
    number: int = NUMBER,
    steps: int = STEPS,
    folder: Path | None = None,
    progress: bool | None = None,
) -> list[dict[str, Any]]:
    """Evaluate the models of the families: a row for each, with the columns of the record `hunt`.

    Parameters
    ----------
    families : iterable of str
        From `FAMILIES`.
    number : int
        How many models of each.
    steps : int
        K of `evaluate`'s largest runs.
    folder : Path, optional
        Where each row is kept, so that an interrupted study can continue; usually `hunt_folder()`.
        A row is found there only by the code that computed it.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal.

    Returns
    -------
    list of dict
        `value`, `verdict` and the intervals are what `evaluate` reports, `truth` is the average of
        the test images, and `others` the expectation of other images.
    """
    tasks = [(family, which) for family in families for which in range(number)]
    hide = None if progress is None else not progress
    rows = []
    for family, which in tqdm(tasks, "hunt", unit="evaluation", disable=hide):
        identity = ["hunt", family, which, steps, code_checksum()]
        row = remembered(folder, identity, partial(_row, family, which, steps))
        rows.append({key: value for key, value in row.items() if key != "seconds"})
    return rows


def _row(family: str, which: int, steps: int) -> dict[str, Any]:
    hunted = FAMILIES[family](which)
    evaluation = evaluate(
        hunted.model,
        hunted.test,
        hunted.train,
        generator=seeded_generator(which),
        progress=False,
        steps=steps,
        exact=False,
    )
    if evaluation.interrupted:
        raise KeyboardInterrupt
    average = evaluation.average
    error = average.mean - hunted.truth
    sizes = [hunted.model.num_visible, *hunted.model.hidden_layers]
    return {
        "family": family,
        "model": hunted.name,
        "size": " × ".join(map(str, sizes)),
        "truth": hunted.truth,
        "value": average.mean,
        "value_interval": _for_record(average.interval),
        "value_error": error,
        "right": "yes" if abs(error) <= WRONG else "no",
        "others": hunted.others,
        "others_interval": _for_record(average.sample_interval),
        "verdict": evaluation.word,
        "findings": list(evaluation.warnings),
    }


def _for_record(interval: tuple[float, float]) -> list[float] | None:
    """An interval as a record has it; None if an end is infinite."""
    return list(interval) if all(map(math.isfinite, interval)) else None


def hunted_families(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each family of `hunt`, with the columns of the record `hunt-families`.

    `held` counts intervals of trusted values that hold the truth, `others_held` those for other
    images among the trusted evaluations that give one.
    """
    counts = []
    for family, members in grouped(list(rows), "family").items():
        trusted = [row for row in members if row["verdict"] == Verdict.TRUSTED]
        right = [row for row in members if row["right"] == "yes"]
        with_others = [
            row for row in trusted if None not in (row["others"], row["others_interval"])
        ]
        counts.append(
            {
                "family": family,
                "evaluations": len(members),
                "trusted": len(trusted),
                "trusted_wrong": sum(row["right"] == "no" for row in trusted),
                "right": len(right),
                "right_doubted": sum(row["verdict"] != Verdict.TRUSTED for row in right),
                "held": sum(map(holds_truth, trusted)),
                "others_given": len(with_others),
                "others_held": sum(
                    inside(row["others_interval"], row["others"]) for row in with_others
                ),
            }
        )
    return counts
