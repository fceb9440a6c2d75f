"""Deep models whose test images lie off the model, with the exact average of these images.

The hidden units of the first layer form groups. A group has pixels of its own and couples to each
of them alike, so that only the number of its units that are on matters. Given the few units above,
the groups are independent, and all states of those few units are enumerated.

A model has *details*, groups of one unit with four pixels that every image shows, and *regions*,
larger groups that are switched on together by one unit above or by two. The model draws a region
once in e^{depth}, and some test images come from there. Recognition from below takes the units of
a region for off, so that the hidden states that explain those images are hardly ever proposed.

Used in chapter: why-trust-this-code.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.kernels import bernoulli
from paperlib.models import DBM, DBN, RBM
from paperlib.numerics import all_states, seeded_generator, softplus

#: The kinds of models that `deep_models` makes in turn.
KINDS = ("DBN", "DBM", "DBN of three layers")
_IMAGES = 200
_DETAIL_PIXELS = 4
# Units above that couple to details only.
_FREE_UNITS = 3
# Units of the third hidden layer, where there is one.
_TOP_UNITS = 4


@dataclass(frozen=True, eq=False)
class Group:
    """Units of the first hidden layer that share their pixels.

    Attributes
    ----------
    units, pixels : int
        How many there are.
    weight : float
        Of each unit to each pixel.
    pixel_bias : float
        Of each pixel.
    recognition : float
        Bias of each unit in the recognition distribution; a DBM has none.
    bias : float
        Of each unit, as seen from above.
    above : Tensor, shape [M]
        Weights to the units above.
    """

    units: int
    pixels: int
    weight: float
    pixel_bias: float
    recognition: float
    bias: float
    above: Tensor

    def log_counts(self, inputs: Tensor) -> Tensor:
        """ln of the weight of all states with so many units on, [S, units + 1], for inputs [S]."""
        on = torch.arange(self.units + 1).double()
        whole = torch.tensor(float(self.units)).double()
        ways = torch.lgamma(whole + 1) - torch.lgamma(on + 1) - torch.lgamma(whole - on + 1)
        return ways + inputs[:, None] * on

    @property
    def logits(self) -> Tensor:
        """Logits of a pixel for each number of units that are on, [units + 1]."""
        return self.pixel_bias + self.weight * torch.arange(self.units + 1).double()


@dataclass(frozen=True, eq=False)
class HuntedModel:
    """A deep model made of groups below few units with biases [M].

    With `top`, these units are the visible ones of an RBM.
    """

    groups: tuple[Group, ...]
    bias_above: Tensor
    undirected: bool = False
    top: RBM | None = None

    @property
    def model(self) -> DBM | DBN:
        """The model itself."""
        below = []
        up = []
        for group in self.groups:
            shape = (group.pixels, group.units)
            below.append(torch.full(shape, group.weight, dtype=torch.float64))
            up.append(group.above.expand(group.units, -1))
        weights = torch.block_diag(*below)
        above = torch.cat(up)
        pixel_bias = self._repeated("pixel_bias", "pixels")
        bias = self._repeated("bias", "units")
        if self.undirected:
            return DBM(weights, above, pixel_bias, bias, self.bias_above)
        first = RBM(weights, pixel_bias, self._repeated("recognition", "units"))
        second = RBM(above, bias, self.bias_above)
        return DBN([first, second] if self.top is None else [first, second, self.top])

    def log_prob(self, rows: Tensor) -> Tensor:
        """The exact ln p(v) of binary rows [N, D], float64 [N], in nats."""
        above = all_states(len(self.bias_above))
        log_joint = self._log_above(above)[:, None] + torch.zeros(len(rows)).double()
        parts = rows.double().split([group.pixels for group in self.groups], 1)
        for group, part in zip(self.groups, parts, strict=True):
            table = group.log_counts(self._inputs(group, above))
            log_pixels = part.sum(1)[:, None] * group.logits
            if not self.undirected:
                log_pixels = log_pixels - group.pixels * softplus(group.logits)
            log_joint += (table[:, None] + log_pixels).logsumexp(2)
            if self.top is not None:
                log_joint -= group.units * softplus(self._inputs(group, above))[:, None]
        return log_joint.logsumexp(0) - self.log_masses(above).logsumexp(0)

    def log_masses(self, above: Tensor) -> Tensor:
        """ln of the unnormalised probabilities of states of the units above [S, M], as [S]."""
        masses = self._log_above(above)
        if self.top is not None:
            return masses
        for group in self.groups:
            masses = masses + self._log_states(group, above).logsumexp(1)
        return masses

    def draw(self, above: Tensor, generator: torch.Generator) -> Tensor:
        """Exact draws of the pixels given states of the units above [N, M], as uint8 [N, D]."""
        parts = []
        for group in self.groups:
            shares = self._log_states(group, above).softmax(1)
            on = shares.multinomial(1, generator=generator).squeeze(1)
            rates = torch.sigmoid(group.logits[on])[:, None].expand(-1, group.pixels)
            parts.append(bernoulli(rates, generator))
        return torch.cat(parts, 1).to(torch.uint8)

    def _log_states(self, group: Group, above: Tensor) -> Tensor:
        """The table of `log_counts`, with the pixels summed out."""
        table = group.log_counts(self._inputs(group, above))
        if self.undirected:
            table = table + group.pixels * softplus(group.logits)
        return table

    def _inputs(self, group: Group, above: Tensor) -> Tensor:
        return above @ group.above + group.bias

    def _log_above(self, above: Tensor) -> Tensor:
        if self.top is not None:
            return self.top.log_unnormalized(above)
        return above @ self.bias_above

    def _repeated(self, name: str, times: str) -> Tensor:
        """One number of each group, repeated for each of its pixels or units."""
        return torch.cat(
            [
                torch.full((getattr(group, times),), getattr(group, name), dtype=torch.float64)
                for group in self.groups
            ]
        )


@dataclass(frozen=True)
class _Region:
    """A group that the units above with these numbers switch on together, once in e^{depth}.

    `share` is the share of the test images that lie there.
    """

    switches: tuple[int, ...]
    depth: float
    share: float


def deep_models(
    number: int, seed: int = 0
) -> Iterator[tuple[DBM | DBN, Tensor, Tensor | None, float]]:
    """Models with their test images [200, D], training images or None, and an exact average.

    The average is that of ln p(v) over the test images, in nats. In a quarter of the models all
    test images are draws of the model itself, so that there is nothing to find.

    Examples
    --------
    >>> model, test, train, average = next(deep_models(1))
    >>> model, tuple(test.shape), train is None
    (DBN(124-49-5, torch.float64, cpu), (200, 124), False)
    """
    for index in range(number):
        kind = KINDS[index % len(KINDS)]
        on_the_model = index // len(KINDS) % 4 == 3
        hunted, test, train = hunted_model(kind, on_the_model, seed * 1_000 + index)
        yield hunted.model, test, train, hunted.log_prob(test).mean().item()


def hunted_model(
    kind: str, on_the_model: bool, seed: int
) -> tuple[HuntedModel, Tensor, Tensor | None]:
    """A model of one of the `KINDS`, test images and, for half of the seeds, training images."""
    choose = random.Random(f"hunted {kind} {seed}")
    generator = seeded_generator(choose.randrange(2**32))
    regions: list[_Region] = []
    switches = 0
    number = choose.choice((1, 1, 2, 3))
    for _ in range(number):
        joint = choose.choice((1, 1, 2))
        share = 0.0 if on_the_model else choose.choice((0.01, 0.03, 0.1, 0.2, 0.4)) / number
        regions.append(
            _Region(tuple(range(switches, switches + joint)), choose.uniform(12, 30), share)
        )
        switches += joint
    width = switches + _FREE_UNITS
    groups = [_region_group(region, width, kind, choose) for region in regions]
    details = max(choose.randrange(20, 40), 24 - sum(group.units for group in groups))
    for _ in range(details):
        above = torch.zeros(width).double()
        above[switches:] = 0.3 * torch.randn(_FREE_UNITS, generator=generator).double()
        groups.append(_detail(above, kind))
    hunted = HuntedModel(tuple(groups), torch.zeros(width).double(), kind == "DBM")
    if kind == "DBN of three layers":
        hunted = _with_top(hunted, regions, generator)
    else:
        hunted = _with_depths(hunted, regions)
    test = _images(hunted, regions, _IMAGES, generator)
    train = None
    if choose.random() < 0.5:
        train = _images(hunted, regions, 2 * _IMAGES, generator)
    return hunted, test, train


def _detail(above: Tensor, kind: str) -> Group:
    """A unit with a few pixels, which show whether it is on."""
    if kind == "DBM":
        # The pixels pull at their unit, which the bias makes up for. With larger weights each
        # detail would be a mode of its own for chains: that is another test, of ln Z.
        return Group(1, _DETAIL_PIXELS, 4.0, -2.0, 0.0, -8.0, above)
    return Group(1, _DETAIL_PIXELS, 8.0, -4.0, -16.0, 0.0, above)


def _region_group(region: _Region, width: int, kind: str, choose: random.Random) -> Group:
    """Units that are off unless all switches of the region are on."""
    units = choose.randrange(5, 40)
    pixels = choose.choice((8, 20, 40, 60))
    off = choose.uniform(10, 16)
    above = torch.zeros(width).double()
    above[list(region.switches)] = (off + choose.uniform(4, 7)) / len(region.switches)
    weight = choose.uniform(6, 10) / units
    pull = pixels * weight if kind == "DBM" else 0.0
    # Even where all pixels are on, recognition takes a unit for off.
    recognition = -pixels * weight - choose.uniform(5, 14)
    return Group(units, pixels, weight, -4.0, recognition, -off - pull / 2, above)


def _with_depths(hunted: HuntedModel, regions: list[_Region]) -> HuntedModel:
    """The same with biases of the switches for which each region has its depth."""
    bias = hunted.bias_above.clone()
    for region in regions:
        above = torch.zeros(2, len(bias)).double()
        above[1, list(region.switches)] = 1
        off, on = hunted.log_masses(above).tolist()
        bias[list(region.switches)] = (off - on - region.depth) / len(region.switches)
    return HuntedModel(hunted.groups, bias, hunted.undirected)


def _with_top(
    hunted: HuntedModel, regions: list[_Region], generator: torch.Generator
) -> HuntedModel:
    """The same groups below an RBM with weak weights, whose biases give each region its depth."""
    width = len(hunted.bias_above)
    bias = torch.zeros(width).double()
    for region in regions:
        bias[list(region.switches)] = -region.depth / len(region.switches)
    weights = 0.1 * torch.randn(width, _TOP_UNITS, generator=generator).double()
    top = RBM(weights, bias, torch.zeros(_TOP_UNITS).double())
    return HuntedModel(hunted.groups, bias, False, top)


def _images(
    hunted: HuntedModel, regions: list[_Region], count: int, generator: torch.Generator
) -> Tensor:
    """Draws of the model itself, of which each region replaces its share by draws from there."""
    width = len(hunted.bias_above)
    states = all_states(width)
    masses = hunted.log_masses(states)
    numbers = [masses.softmax(0).multinomial(count, True, generator=generator)]
    for region in regions:
        inside = states[:, list(region.switches)].all(1)
        others = [unit for each in regions if each is not region for unit in each.switches]
        inside &= ~states[:, others].any(1) if others else torch.ones_like(inside)
        shares = masses.masked_fill(~inside, -torch.inf).softmax(0)
        num_inside = int(region.share * count)
        if num_inside:
            numbers.append(shares.multinomial(num_inside, True, generator=generator))
    if len(numbers) == 1:
        return hunted.draw(states[numbers[0]], generator)
    special = torch.cat(numbers[1:])
    return hunted.draw(states[torch.cat([numbers[0][len(special) :], special])], generator)
