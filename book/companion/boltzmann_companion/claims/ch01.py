"""What chapter 01 claims of what it has just computed: of a tiny RBM by enumeration, and of trained ones."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from boltzmann_companion.claims.checks import Claims, Rows, largest_gap
from paperlib.numerics import all_states


def dependence(p_v: Tensor, p_h: Tensor) -> Claims:
    """Of the probabilities [2^D] of all images, and [2^M] of all hidden states."""
    yield "without h, the pixels are far from independent", _distance_from_independent(p_v) > 0.1
    yield "without v, so are the hidden units", _distance_from_independent(p_h) > 0.1


def pace(second: float) -> Claims:
    """Of the second largest eigenvalue of the transition matrix."""
    yield "the second largest eigenvalue is well below one", second < 0.9


def scores(values: Mapping[str, Tensor], memorised: float) -> Claims:
    """Of ln p*(v) for the images of each kind, and of how much better the fixed binarisation fares than a fresh one."""
    digits, noise = values["test digits"], values["uniform noise"]
    yield "every test digit beats every image of uniform noise", digits.min() > noise.max()
    yield "every test digit beats its own negative", (digits > values["inverted test digits"]).all()
    among = digits.min() < values["a blank page"].item() < digits.max()
    yield "the blank page scores among the test digits", among
    yield "the fixed training binarisation beats a fresh one", memorised > 0


def across_models(rows: Rows, gap: Tensor, unnormalised_gap: Tensor) -> Claims:
    """Of trained models, and after them base rates and the uniform distribution; gaps [N] of the first two on the images."""
    *trained, base_rates, uniform = rows
    yield "by ln p*, the first model loses to the second", unnormalised_gap.mean() < 0
    yield "by ln p, the first model wins", gap.mean() > 0
    worst = min(row["log_probability"] for row in trained)
    ordered = worst > base_rates["log_probability"] > uniform["log_probability"]
    yield "trained models beat base rates, base rates beat uniform", ordered


def disguises(
    scores: Mapping[str, Tensor], log_zs: Mapping[str, float], between_models: float
) -> Claims:
    """Of ln p*(v) [N] and ln Z of a model: as trained, with the smallest and largest ln Z, and with a dead unit of bias 100."""
    log_p = torch.stack([scores[name] - log_zs[name] for name in scores])
    same = largest_gap(log_p, log_p[0]) < 1e-9
    yield "ln p(v) of every test image is the same under all four", same
    _, smallest, largest, _ = log_zs.values()
    wider = largest - smallest > abs(between_models)
    yield "disguises differ more in ln Z than the two models", wider


def shortcuts(log_z: float, from_training_set: float, from_random_images: float) -> Claims:
    """Of ln Z, exact and by two shortcuts."""
    yield "the training images are short by more than 5 nats", log_z - from_training_set > 5
    yield "random images are short by more than 1 nat", log_z - from_random_images > 1


def summary(models: Rows, disguises: Rows) -> Claims:
    """Of the numbers in the summary, which are those of the small digits."""
    said = [34.4, 37.1, -23.3, -23.5, 36.0, 158]
    found = [row["log_unnormalized"] for row in models[:2]]
    found += [row["log_probability"] for row in models[:2]]
    found += [end(row["log_z"] for row in disguises) for end in (min, max)]
    as_said = all(f"{a:.3g}" == f"{b:.3g}" for a, b in zip(found, said, strict=True))
    yield "the numbers of the summary are those of the records", as_said


def _distance_from_independent(probs: Tensor) -> float:
    """How far a distribution [2^n] of n binary units is from independent units with the same means, in total variation."""
    states = all_states(len(probs).bit_length() - 1)
    means = probs @ states
    independent = torch.where(states == 1, means, 1 - means).prod(1)
    return ((probs - independent).abs().sum() / 2).item()
