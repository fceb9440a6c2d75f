"""What chapter 01 claims of what it has just computed: of trained RBMs whose ln Z is exact."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from boltzmann_companion.claims.checks import Claims


def scores(values: Mapping[str, Tensor]) -> Claims:
    """Of ln p*(v) for the images of each kind."""
    digits = values["test digits"]
    among = digits.min() < values["a blank page"].item() < digits.max()
    yield "the blank page scores among the test digits", among


def across_models(gap: Tensor, unnormalised_gap: Tensor) -> Claims:
    """Of gaps [N] between two models on the images."""
    yield "by ln p*, the first model loses to the second", unnormalised_gap.mean() < 0
    yield "by ln p, the first model wins", gap.mean() > 0


def disguises(log_zs: Mapping[str, float], between_models: float) -> Claims:
    """Of ln Z of a model: as trained, with the smallest and largest ln Z, and with a dead unit of bias 100."""
    _, smallest, largest, _ = log_zs.values()
    wider = largest - smallest > abs(between_models)
    yield "disguises differ more in ln Z than the two models", wider
