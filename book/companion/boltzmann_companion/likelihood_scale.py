"""A scale of log-probabilities of the same test images under better and better models.

It goes from no model at all to the best one in the book. Two points of the scale need no training
and are computed here: uniform pixels, and independent pixels at the base rates of the training
images. The others are taken from the records of the chapters that made them.
"""

from __future__ import annotations

import math

from boltzmann_companion.published import Cell
from boltzmann_companion.records import load_result
from boltzmann_companion.tables import cell_of
from paperlib.datasets import BinaryImages
from paperlib.numerics import bernoulli_log_prob

#: For each profile, the models on the scale and the cells with their averages over the test images.
MODELS = {
    "digits": {
        "CD1(16)": Cell("raise-table-1", "digitsCD1-16", "exact"),
        "PCD(16)": Cell("raise-table-1", "digitsPCD-16", "exact"),
        "CD1(50)": Cell("raise-table-1", "digitsCD1-50", "base_rate_ais"),
        "PCD(50)": Cell("raise-table-1", "digitsPCD-50", "base_rate_ais"),
        "CD25(50)": Cell("raise-table-1", "digitsCD25-50", "base_rate_ais"),
    },
    "paper": {
        "mixture of 10": Cell("sm2008-mixtures", "MoB(10)", "test"),
        "CD1(20)": Cell("sm2008-table-1", "CD1(20)", "test_exact"),
        "CD3(25)": Cell("sm2008-table-1", "CD3(25)", "test_exact"),
        "mixture of 500": Cell("sm2008-mixtures", "MoB(500), started at images", "test"),
        "CD1(500)": Cell("sm2008-table-1-full-size", "CD1(500)", "test"),
        "CD3(500)": Cell("sm2008-table-1-full-size", "CD3(500)", "test"),
        "DBM": Cell("raise-table-2", "MNIST DBM", "base_rate_ais"),
        "CD25(500)": Cell("sm2008-table-1-full-size", "CD25(500)", "test"),
    },
}


def likelihood_scale(profile: str, images: BinaryImages) -> list[dict[str, str | float]]:
    """Models and their average test log-probabilities, the lowest first.

    Parameters
    ----------
    profile : str
        `digits` or `paper`, whose records are used.
    images : BinaryImages
        Images on which the two models without hidden units are measured.

    Returns
    -------
    list of dict
        `model`, `test` in nats, and `bits`, the length in bits of an image in a code made from the
        model. A model whose record does not exist is left out.
    """
    base_rates = bernoulli_log_prob(images.test.double(), images.base_rate_bias())
    averages = {
        "uniform pixels": -images.test.shape[1] * math.log(2),
        "base rates": base_rates.mean().item(),
    }
    for model, cell in MODELS[profile].items():
        average = cell_of(cell, load_result(cell.record, profile))
        if average is not None:
            averages[model] = average
    return [
        {"model": model, "test": test, "bits": -test / math.log(2)}
        for model, test in sorted(averages.items(), key=lambda item: item[1])
    ]
