"""How often the interval for other images holds, for families of log-probabilities.

And where there is no such interval.
"""

import math

import pytest
import torch

from boltzmann_likelihood.evaluation.averages import FEWEST, UNKNOWN, average_of, spread_of
from paperlib.numerics import seeded_generator
from paperlib.uncertain import Uncertain

SETS = 400
# Two standard errors of a share below the 92 % that are promised.
LOWEST = 0.92 - 2 * math.sqrt(0.92 * 0.08 / SETS)


def normal(shape, generator):
    return torch.randn(shape, dtype=torch.float64, generator=generator)


def exponential(shape, generator):
    return torch.rand(shape, dtype=torch.float64, generator=generator).log()


def log_normal(scale):
    def draw(shape, generator):
        return -torch.exp(scale * normal(shape, generator))

    return draw


def with_worse(share, nats):
    """So many of the images are so many nats worse."""

    def draw(shape, generator):
        worse = torch.rand(shape, generator=generator) < share
        return normal(shape, generator) - nats * worse

    return draw


FAMILIES = {
    "normal": (normal, 0.0),
    "exponential": (exponential, -1.0),
    "log-normal, 0.5": (log_normal(0.5), -math.exp(0.125)),
    "log-normal, 1": (log_normal(1.0), -math.exp(0.5)),
} | {
    f"{share:.0%}, {nats} nats worse": (with_worse(share, nats), -share * nats)
    for share in (0.01, 0.02, 0.03, 0.05, 0.1)
    for nats in (10, 20, 40)
}

SEEDS = dict(zip(FAMILIES, range(len(FAMILIES)), strict=True))


def averages(family, count, sets=SETS):
    """Sets of so many images of a family, and the mean of all of its images."""
    draw, mean = FAMILIES[family]
    values = draw((sets, count), seeded_generator(SEEDS[family]))
    return [average_of(each, Uncertain(0.0)) for each in values], mean


@pytest.mark.parametrize("count", [FEWEST, 1_000])
@pytest.mark.parametrize("family", FAMILIES)
def test_stated_intervals_hold_the_mean_of_all_images(family, count):
    """Where there is an interval at all, and there nearly always is."""
    sets, mean = averages(family, count)
    stated = [each.sample_interval for each in sets if not each.doubt]
    held = [low <= mean <= high for low, high in stated]
    assert sum(held) / len(held) > LOWEST
    assert len(stated) >= 0.8 * SETS
    if family == "normal":
        assert len(stated) == SETS


@pytest.mark.parametrize("count", [5, 20, 100, FEWEST - 1])
def test_too_few_images_say_nothing_of_others(count):
    sets, _ = averages("3%, 40 nats worse", count, 20)
    for each in sets:
        assert each.sample_interval == UNKNOWN
        assert each.doubt == f"{count} images are too few for that, {FEWEST} are needed"
        assert each.told_from_zero != "yes"


@pytest.mark.parametrize(("worse", "stated"), [(0, True), (1, False), (2, True)])
def test_one_image_that_decides(worse, stated):
    """A single image holds most of the spread, two hold less than half of it each."""
    values = normal((FEWEST,), seeded_generator(0))
    values[:worse] -= 40
    average = average_of(values, Uncertain(0.0))
    assert (average.sample_interval != UNKNOWN) == stated
    assert ("one image makes up 8" in average.doubt) == (not stated)


@pytest.mark.parametrize("worse", [1, 2])
@pytest.mark.parametrize("copies", [1, 3])
def test_copies_and_weights_are_counted_alike(worse, copies):
    """A weight stands for independent images, copies for one: both are seen by the rule."""
    values = normal((FEWEST,), seeded_generator(0))
    values[:worse] -= 40
    spread = spread_of(values, None)
    repeated = spread_of(values.repeat(copies), None, cases=torch.arange(FEWEST).repeat(copies))
    weights = torch.full((FEWEST,), float(copies), dtype=torch.float64)
    weighted = spread_of(values, weights)
    as_rows = spread_of(values.repeat(copies), None)
    assert repeated.independent == pytest.approx(FEWEST)
    assert repeated.largest_share == pytest.approx(spread.largest_share)
    assert repeated.std_error == pytest.approx(spread.std_error)
    assert weighted.independent == FEWEST * copies
    assert weighted.largest_share == pytest.approx(as_rows.largest_share)
    assert weighted.std_error == pytest.approx(as_rows.std_error)


def test_what_exceeds_all_images_is_told_from_few():
    """A baseline is compared with the upper end of both errors, whatever the other images."""
    values = torch.tensor([-1.0, -2.0, -3.0], dtype=torch.float64)
    average = average_of(values, Uncertain(0.0))
    assert average.sample_interval == UNKNOWN
    assert average.highest == pytest.approx(-2 + 4.3027 / math.sqrt(3), abs=1e-3)


def test_a_set_without_spread():
    average = average_of(torch.ones(FEWEST, dtype=torch.float64), Uncertain(0.0))
    assert average.sample_interval == (1.0, 1.0)
