"""Control variates of chapter 9: the cheap values ln p*(v), and the rows of its tables.

RAISE's values y are costly, so that only a few images have them. Cheap values x, which all images
have, predict most of the differences between them (Burda et al. 2015, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from boltzmann_companion.recipes import Model, model_path, recipe
from boltzmann_companion.rows import by_blocks
from paperlib.estimators import control_variate_mean
from paperlib.models import DBM, DBN, RBM
from paperlib.numerics import seeded_generator

# Estimates and their standard errors, from batches of y and x [..., n], x of all images [N], and
# alpha; with None, alpha is estimated from the batch.
_Controlled = Callable[[Tensor, Tensor, Tensor, float | None], tuple[Tensor, Tensor]]


def is_trained(model_id: str) -> bool:
    """Whether a model can be loaded; those on digits are trained when they are loaded."""
    return recipe(model_id).dataset == "digits" or model_path(model_id).is_file()


def log_unnormalized(model: Model, v: Tensor, draws: int, generator: torch.Generator) -> Tensor:
    """ln p*(v) of images [N, D], float64 [N]: exact for an RBM, sampled for a deep model."""
    if isinstance(model, RBM):
        return by_blocks(model.log_unnormalized, v, model.dtype)
    assert isinstance(model, DBM | DBN)
    return model.log_unnormalized(v, draws, generator)


def bias_of_estimated_alpha(
    controlled: _Controlled,
    y: Tensor,
    x: Tensor,
    seed: int,
    counts: Iterable[int] = (5, 10, 20, 50, 100),
) -> tuple[float, list[dict[str, Any]]]:
    """The constant kappa of the bias kappa / n of an estimated alpha, and rows for several n.

    Batches of n are drawn from the values y and x [N], so the exact mean of x is that of all N.
    """
    covariance = torch.cov(torch.stack([y, x]), correction=0)
    best = (covariance[0, 1] / covariance[1, 1]).item()
    residual = y - y.mean() - best * (x - x.mean())
    kappa = ((residual * (x - x.mean()) ** 2).mean() / covariance[1, 1]).item()
    rows = []
    for place, count in enumerate(counts):
        generator = seeded_generator(seed + place)
        batch = torch.randint(len(y), (50_000, count), generator=generator)
        by_batch, _ = controlled(y[batch], x[batch], x, None)
        # The best fixed alpha is unbiased. Subtracted on the same batches, it leaves the bias with
        # much less noise.
        by_best, _ = controlled(y[batch], x[batch], x, best)
        gap = by_batch - by_best
        rows.append(
            {
                "images": count,
                "bias": gap.mean().item(),
                "error": gap.std().item() / math.sqrt(len(gap)),
                "spread": by_batch.std().item(),
            }
        )
    return kappa, rows


def coverage_row(means: Tensor, errors: Tensor, raise_mean: Tensor, exact: float) -> dict[str, Any]:
    """Estimates and standard errors of batches [B], against RAISE on all images and the truth."""

    def coverage(value: Tensor | float) -> float:
        return ((means - value).abs() < 1.96 * errors).double().mean().item()

    return {
        "shift": (means.mean() - raise_mean).item(),
        "spread": means.std().item(),
        "std_error": errors.square().mean().sqrt().item(),
        "coverage_raise": coverage(raise_mean),
        "coverage_truth": coverage(exact),
        "raise_error": (raise_mean - exact).item(),
    }


def reduction_row(y: Tensor, x: Tensor, x_all: Tensor) -> dict[str, Any]:
    """What the control variate is worth for RAISE's values y [n].

    x [n] and x_all [N] are the cheap values of the same images and of all.
    """
    plain = control_variate_mean(y, x, x_all, alpha=0.0)
    fixed = control_variate_mean(y, x, x_all)
    fitted = control_variate_mean(y, x, x_all, alpha=None)
    variance_left = (fixed.test_set_std_error / plain.test_set_std_error) ** 2
    count = len(y)
    all_count = len(x_all)
    return {
        "spread": y.std().item(),
        "spread_rest": (y - x).std().item(),
        "reduction": 1 / variance_left,
        "alpha": fitted.alpha,
        "reduction_alpha": (plain.test_set_std_error / fitted.test_set_std_error) ** 2,
        "plain": plain.mean,
        "plain_error": plain.test_set_std_error,
        "average": fixed.mean,
        "average_error": fixed.test_set_std_error,
        "images": count,
        "all_images": all_count,
        "equivalent": round(1 / (1 / all_count + variance_left * (1 / count - 1 / all_count))),
    }


def slope_row(y: Tensor, x: Tensor) -> dict[str, Any]:
    """Whether RAISE's values y [n] vary less once the cheap values x [n] are taken away.

    They do where the slope of y on x is above a half.
    """
    count = len(y)
    covariance = torch.cov(torch.stack([y, x]))
    slope = (covariance[0, 1] / covariance[1, 1]).item()
    residual_variance = (y - slope * x).var() * (count - 1) / (count - 2)
    return {
        "spread": y.std().item(),
        "spread_rest": (y - x).std().item(),
        "reduction": (y.var() / (y - x).var()).item(),
        "alpha": slope,
        "alpha_error": (residual_variance / covariance[1, 1] / (count - 1)).sqrt().item(),
        "images": count,
    }


def class_row(x: Tensor, digit: Tensor, count: int) -> dict[str, Any]:
    """How ln p*(v) of all images, x [N], differs between their digits [N].

    And how far its average over the first `count` images is from that of all.
    """
    by_digit = [x[digit == d] for d in range(10)]
    relative = [(values.mean() - x.mean()).item() for values in by_digit]
    scatter = [values.square().sum() - len(values) * values.mean() ** 2 for values in by_digit]
    within = sum(part.item() for part in scatter) / len(x)
    return {
        "one_minus_eight": relative[1] - relative[8],
        "spread": x.std(correction=0).item(),
        "spread_within": math.sqrt(within),
        "explained": 1 - within / x.var(correction=0).item(),
        "first_images": (x[:count].mean() - x.mean()).item(),
        **{f"digit_{d}": value for d, value in enumerate(relative)},
    }
