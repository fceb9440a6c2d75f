"""What chapter 01 claims of its runs: of trained RBMs whose ln Z is exact."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from boltzmann_companion.claims.checks import Claims


def scores(values: Mapping[str, Tensor]) -> Claims:
    """Of ln p*(v) for the images of each kind."""
    digits = values["test digits"]
    is_among = digits.min() < values["a blank page"].item() < digits.max()
    yield "the blank page scores among the test digits", is_among


def across_models(gap: Tensor, unnormalised_gap: Tensor) -> Claims:
    """Of gaps [N] between two models on the images."""
    yield "by ln p*, the first model loses to the second", unnormalised_gap.mean() < 0
    yield "by ln p, the first model wins", gap.mean() > 0
