"""The scale of log-probabilities: two models are computed, the others are as recorded."""

import math

import pytest
import torch

from boltzmann_companion.likelihood_scale import MODELS, likelihood_scale
from boltzmann_companion.profiles import get_profile
from boltzmann_companion.records import load_result


def test_two_models_are_computed_and_the_others_are_those_of_the_records():
    images = get_profile("digits").images()
    rows = likelihood_scale("digits", images)
    # the lowest comes first
    assert rows == sorted(rows, key=lambda row: row["test"])
    scale = {row["model"]: row for row in rows}
    assert scale["uniform pixels"]["test"] == pytest.approx(-64 * math.log(2))
    assert scale["uniform pixels"]["bits"] == pytest.approx(64)
    rates = torch.sigmoid(images.base_rate_bias())
    test = images.test.double()
    by_hand = (test * rates.log() + (1 - test) * (1 - rates).log()).sum(1).mean()
    assert scale["base rates"]["test"] == pytest.approx(by_hand.item())
    row = next(
        row
        for row in load_result("raise-table-1", "digits")["rows"]
        if row["model"] == "digitsPCD-16"
    )
    assert scale["PCD(16)"]["test"] == row["exact"]
    assert len(scale) == 2 + len(MODELS["digits"])


@pytest.mark.parametrize("profile", MODELS)
def test_every_model_has_its_place_in_a_record(profile):
    for model, cell in MODELS[profile].items():
        rows = load_result(cell.record, profile)["rows"]
        (value,) = [row[cell.column] for row in rows if row["model"] == cell.row]
        assert value < 0, model
