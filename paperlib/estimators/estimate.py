"""What an estimator returns: log-weights, the estimate they give, its error, and reasons not to believe it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from paperlib.numerics import log_mean_exp


@dataclass(frozen=True)
class PartitionEstimate:
    """An estimate of ln Z, or of ln(Z_B / Z_A) for a path between two models.

    Attributes
    ----------
    log_weights : Tensor, shape [M]
        ln w of each chain, float64, in nats; the mean of w is an unbiased estimate of Z (or of the ratio). It already
        includes the path's `log_z_start`.
    final_visible : Tensor, shape [M, D]
        Visible units of each chain at its end: approximate samples of the target.
    lower_bound : float or None
        A proven lower bound on the same ln Z, where one is known: an estimate below it is wrong.
    warnings : tuple of str
        Reasons not to believe the estimate; empty if none was found, which proves nothing.
    """

    log_weights: Tensor
    final_visible: Tensor = field(repr=False)
    lower_bound: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def log_z(self) -> float:
        """Logarithm of the mean weight (Salakhutdinov & Murray 2008, eq. 11), on average too small by Jensen's inequality."""
        return log_mean_exp(self.log_weights).item()

    @property
    def relative_std(self) -> float:
        """Estimated standard deviation of the mean weight divided by the mean (eq. 12); infinite for one chain."""
        count = len(self.log_weights)
        if count < 2:
            return math.inf
        weights = torch.exp(self.log_weights - self.log_weights.max())
        return (weights.std() / weights.mean()).item() / math.sqrt(count)

    @property
    def effective_sample_size(self) -> float:
        """(sum w)^2 / sum w^2, between 1 (one weight dominates) and M (all are equal)."""
        log_ess = 2 * torch.logsumexp(self.log_weights, 0) - torch.logsumexp(
            2 * self.log_weights, 0
        )
        return log_ess.exp().item()

    def interval(self, num_std: float = 3.0) -> tuple[float, float]:
        """ln(Z -+ num_std * sigma) in nats, the paper's error bars.

        The lower end is minus infinity when `num_std` standard deviations exceed the mean (the 2008 paper prints
        0.0000 there).
        """
        spread = num_std * self.relative_std
        low = self.log_z + math.log1p(-spread) if spread < 1 else -math.inf
        return low, self.log_z + math.log1p(spread)


def find_warnings(estimate: PartitionEstimate, uniform_start: bool) -> tuple[str, ...]:
    """Reasons not to believe an estimate, each a sentence that says what was seen and what to do.

    Parameters
    ----------
    estimate : PartitionEstimate
        Without warnings so far.
    uniform_start : bool
        Whether the chains started at uniformly random pixels.
    """
    found = []
    count = len(estimate.log_weights)
    bound, (low, high) = estimate.lower_bound, estimate.interval(3)
    if bound is not None and bound > high:
        missing = bound - estimate.log_z
        shown = f"{missing:.1f}" if missing > 0.1 else f"{missing:.1g}"
        found.append(
            f"The estimate is too low by at least {shown} nats: ln Z is proven to be at least "
            f"{bound:.2f}. The chains missed a mode that holds most of Z; start them at the training set's base rates."
        )
    if count < 2:
        found.append("One chain gives no error estimate; run at least 100.")
    elif low == -math.inf:
        found.append(
            f"The weights vary too much: {count} chains are worth {estimate.effective_sample_size:.1f}, and three "
            "standard deviations of their mean exceed it. ln Z is probably too low; use more betas, or more chains."
        )
    elif (needed := _log_runs_needed(estimate.log_weights)) > math.log(count):
        found.append(
            f"The log-weights spread so widely that about {math.exp(min(needed, 99)):.0g} chains would be needed to meet "
            f"the weights that make up Z; there are {count}. ln Z is probably too low; use more betas, or more chains."
        )
    if uniform_start:
        found.append(
            "The chains start at uniformly random pixels. Such estimates can be wrong by tens of nats while their error "
            "bars are small; pass base_rate_bias(train) to BaseRatePath."
        )
    return tuple(found)


def _log_runs_needed(log_weights: Tensor) -> float:
    """ln of the number of runs that importance sampling needs, exp(KL) for the divergence of target from proposal.

    For log-normal weights that is exp(s^2 / 2) with s the standard deviation of ln w (Chatterjee & Diaconis 2018).
    The spread of the upper half is taken: chains that went astray, with tiny weights, do no harm.
    """
    median = log_weights.median()
    return (log_weights[log_weights >= median] - median).square().mean().item() / 2


def require_finite_log_weights(log_weights: Tensor) -> None:
    """Raise a ValueError if a log-weight of AIS or RAISE overflowed."""
    if not bool(torch.isfinite(log_weights).all()):
        raise ValueError(
            "path: expected finite log-weights, got NaN or infinite ones; the model's parameters are too large for "
            "its floating-point type"
        )
