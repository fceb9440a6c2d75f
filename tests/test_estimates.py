"""What estimates say of themselves: errors, warnings with advice, and what is shown."""

import math
from dataclasses import replace

import pytest
import torch
from enumeration import random_rbm

from paperlib.annealing import BaseRatePath
from paperlib.estimators import ControlVariateEstimate, ais, dbn_lower_bound, importance_sampling
from paperlib.estimators.estimate import PartitionEstimate, format_estimate
from paperlib.estimators.reverse_ais import ReverseEstimate
from paperlib.models import DBN
from paperlib.numerics import seeded_generator

RBM = random_rbm(5, 4, 1)


def of(log_weights, **options):
    weights = torch.tensor(log_weights, dtype=torch.float64)
    return PartitionEstimate(weights, torch.zeros(len(weights), 1), **options)


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        ([1, 1, 1, 5], 0.5),  # mean 2; variance 4; standard deviation of the mean 1
        ([2, 2], 0.0),
        ([3, 1], math.inf),  # worth 1.6 chains
        ([7], math.inf),
        ([1] * 99 + [1e6], math.inf),
    ],
)
def test_standard_error_of_ln_z(weights, error):
    estimate = of([math.log(weight) for weight in weights])
    assert estimate.std_error == pytest.approx(error, abs=1e-12)


def test_importance_sampling_has_advice_of_its_own():
    estimate = importance_sampling(BaseRatePath(RBM), 3, seeded_generator(0))
    by_ais = ais(BaseRatePath(RBM), [0, 1], 3, seeded_generator(0))
    assert torch.equal(estimate.log_weights, by_ais.log_weights)
    assert any("use more betas" in warning for warning in by_ais.warnings)
    assert not any("more betas" in warning for warning in estimate.warnings)
    assert any("anneal instead" in warning for warning in estimate.warnings)
    assert len(estimate.warnings) == len(by_ais.warnings)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (62.9312, 0.0123, "62.931 +- 0.012 nats"),
        (62.9312, 0.5, "62.93 +- 0.50 nats"),
        (-1000.5, 12.0, "-1000.50 +- 12.00 nats"),
        (1.0, 0.0, "1.00 +- 0.00 nats"),
        (1.0, 1e-9, "1.0000 +- 0.0000 nats"),
        (62.9312, math.inf, "62.93 nats, error unknown"),
        (62.9312, math.nan, "62.93 nats, error unknown"),
    ],
)
def test_numbers_with_errors(value, error, text):
    assert format_estimate(value, error) == text


def test_what_is_shown_begins_with_the_number_and_its_doubts():
    # weights 1, 1, 1, 5: mean 2 with an error of 1, worth 8^2 / 28 chains
    estimate = of([0.0, 0.0, 0.0, math.log(5)])
    assert repr(estimate) == (
        "PartitionEstimate(log_z = 0.69 +- 0.50 nats, 2.3 of 4 chains effective)"
    )
    doubted = replace(estimate, warnings=("first " + "word " * 40, "second", "third", "fourth"))
    lines = repr(doubted).splitlines()
    assert lines[0] == repr(estimate)
    assert lines[1].startswith("  warning: first word")
    assert lines[1].endswith(" ...")
    assert lines[2:] == ["  warning: second", "  warning: third", "  and 1 more in .warnings"]
    assert max(map(len, lines)) <= 88


def test_no_estimate_shows_its_weights():
    shown = [
        repr(of([0.0] * 1_000)),
        repr(ReverseEstimate(torch.zeros(100, 50, dtype=torch.float64))),
        repr(ControlVariateEstimate(-96.123, 0.25, 0.11, 1.0, 0.0, ())),
        repr(dbn_lower_bound(DBN([RBM]), torch.zeros(3, 5), 0.0)),
        repr(ais(BaseRatePath(RBM), [0, 1], 3, seeded_generator(0))),
    ]
    for text in shown:
        assert "tensor" not in text
        assert max(map(len, text.splitlines())) <= 88, text
    assert shown[1] == ("ReverseEstimate(mean = 0.00 +- 0.00 nats, 100 vectors, 50 chains each)")
    assert shown[2] == (
        "ControlVariateEstimate(-96.12 +- 0.25 nats; of these very cases +- 0.11, alpha 1)"
    )
