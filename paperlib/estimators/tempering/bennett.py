"""Bennett's acceptance ratio: ln(Z_1 / Z_0) from draws from both distributions.

For f_0 and f_1 with normalisers Z_0 and Z_1, and with l = ln f_1(x) / f_0(x), the root L of

    sum over draws x of 0 of s(l - L - c)  =  sum over draws x of 1 of s(L + c - l)

with s the logistic function and c = ln(n_0 / n_1) from the numbers of draws, is the estimate of
ln(Z_1 / Z_0) with the smallest asymptotic variance among all that use these draws (Bennett 1976;
Meng & Wong 1996). As L increases, the left side falls and the right side rises, so there is exactly
one root.

With equal numbers of draws the equation stays the same if a draw of 0 and a draw of 1 are swapped.
Parallel tempering (`paperlib.estimators.tempering.tempering`) therefore gains nothing from
averaging over the swaps that it might have made.

The two distributions may also be those of whole walks, AIS forward and back (Grosse, Ghahramani &
Adams 2015).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.estimators.estimate import StudentEstimate
from paperlib.mcmc.series import batch_means
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, as_log_ratios, require_count

# Newton's method takes about six rounds.
_MOST_ROUNDS = 200
# How far a root may be off, relatively or in nats.
_PRECISION = 1e-13
# With fewer draws from one side in the region where the two distributions overlap, the asymptotic
# error means little.
_FEWEST_IN_OVERLAP = 5.0
# With less than this much of a draw there, the draws say nothing.
_NO_OVERLAP = 1e-9
# The probability with which draws that are right seem to contradict each other.
_CONTRADICTION = 1e-3


@dataclass(frozen=True, repr=False)
class BennettEstimate(StudentEstimate):
    """An estimate of ln(Z_1 / Z_0) from draws from both distributions.

    Attributes
    ----------
    log_ratio : float
        In nats.
    std_error : float
        Its standard error; infinite where the draws do not determine it.
    degrees_of_freedom : float
        Of the standard error: infinite for the asymptotic formula, otherwise the number of batches
        minus one.
    warnings : tuple of str
        Reasons not to believe the estimate; empty if none was found, which proves nothing.

    Examples
    --------
    >>> estimate = BennettEstimate(1.5, 0.2)
    >>> estimate
    BennettEstimate(log_ratio = 1.50 +- 0.20 nats)
    >>> print(", ".join(f"{end:.2f}" for end in estimate.interval(0.95)))
    1.11, 1.89
    """

    _number = "log_ratio"
    log_ratio: float
    std_error: float
    degrees_of_freedom: float = math.inf
    warnings: tuple[str, ...] = ()


@plain_torch(gradients=False)
def bennett(
    forward: ArrayLike, reverse: ArrayLike, *, num_batches: int | None = None
) -> BennettEstimate:
    """Bennett's estimate of ln(Z_1 / Z_0).

    Parameters
    ----------
    forward : array or Tensor, shape [n_0]
        ln f_1(x) / f_0(x) at draws x from distribution 0, in nats; minus infinity where f_1 is
        zero.
    reverse : array or Tensor, shape [n_1]
        ln f_0(x) / f_1(x) at draws x from distribution 1; minus infinity where f_0 is zero.
    num_batches : int, optional
        For dependent draws, in the order of a Markov chain: the number of batches in time that each
        side is cut into. The standard error then comes from the spread of the batch means. A batch
        should be many times longer than the memory of the chain; twenty is a good number of
        batches. Batches with the same number are paired, so that dependence between the two sides
        is included, too. None: the draws are independent, and the error is the asymptotic one
        (Bennett 1976).

    Returns
    -------
    BennettEstimate
        Infinite if all draws from one side have zero weight under the other distribution. Its error
        alone is infinite if the draws of the two sides lie so far apart that they do not determine
        the ratio.

    Raises
    ------
    InputError
        If there is no draw, a log-ratio is NaN or plus infinity, no draw from either side has
        weight under the other distribution, or there are fewer than two batches, or fewer draws
        than batches.

    Examples
    --------
    A fair coin, and a coin that lands on heads with weight 3 and on tails with weight 1:

    >>> log_3 = math.log(3)
    >>> fair, biased = [0, log_3], [-log_3, -log_3, -log_3, 0]  # as often as they should come
    >>> round(math.exp(bennett(fair, biased).log_ratio), 6)
    2.0
    """
    up = as_log_ratios("forward", forward, "NaN or infinite")
    down = as_log_ratios("reverse", reverse, "NaN or infinite")
    any_up = bool((up > -math.inf).any())
    any_down = bool((down > -math.inf).any())
    if not any_up and not any_down:
        raise InputError(
            "forward: expected draws that overlap, got only minus infinity in both directions"
        )
    if not any_up:
        return _infinite_estimate("forward", -math.inf)
    if not any_down:
        return _infinite_estimate("reverse", math.inf)
    offset = math.log(len(up) / len(down))
    log_ratio = bennett_roots(up[None], -down[None]).item()
    left = torch.sigmoid(up - log_ratio - offset)
    right = torch.sigmoid(log_ratio + offset + down)
    overlap = left.sum().item()
    if num_batches is not None:
        require_count("num_batches", num_batches, 2)
        if num_batches > min(len(up), len(down)):
            raise InputError(
                "num_batches: expected at most one for each draw, "
                f"got {num_batches} for {len(up)} and {len(down)} draws"
            )
    if overlap < _NO_OVERLAP:
        variance = math.inf
        freedom = math.inf
    elif num_batches is None:
        spread = (left.square().sum() + right.square().sum()).item() / overlap**2
        variance = spread - 1 / len(up) - 1 / len(down)
        freedom = math.inf
    else:
        # the difference of the two sides of the equation according to each batch, scaled up to the
        # number of all draws
        scores = len(up) * batch_means(left, num_batches)
        scores -= len(down) * batch_means(right, num_batches)
        variance = scores.var().item() / num_batches / overlap**2
        freedom = num_batches - 1
    warnings = []
    if overlap < _FEWEST_IN_OVERLAP:
        warnings.append(
            f"Only about {overlap:.2g} draws of each side lie where the two distributions overlap. "
            "Take more draws, or put a distribution in between."
        )
    # e^(l - ln Z_1 / Z_0) has the mean 1 at draws of 0, and its inverse at draws of 1. By Markov's
    # inequality, none of n draws, dependent or not, exceeds ln(n / q) except with probability q.
    excess_up = up.max().item() - log_ratio - math.log(len(up) / _CONTRADICTION)
    excess_down = down.max().item() + log_ratio - math.log(len(down) / _CONTRADICTION)
    excess = max(excess_up, excess_down)
    if excess > 0:
        warnings.append(
            f"A draw lies {excess:.0f} nats beyond what the ratio allows: the two sides contradict "
            "each other. Check their signs, and that each side was drawn from its own distribution."
        )
    return BennettEstimate(log_ratio, math.sqrt(max(variance, 0.0)), freedom, tuple(warnings))


def _infinite_estimate(side: str, log_ratio: float) -> BennettEstimate:
    """The estimate if all draws of a side have zero weight under the other distribution."""
    warning = (
        f"No draw of `{side}` has weight under the other distribution. "
        "Put one in between, and add up the two ratios."
    )
    return BennettEstimate(log_ratio, math.inf, warnings=(warning,))


def bennett_roots(lower: Tensor, upper: Tensor) -> Tensor:
    """The roots of Bennett's equation, float64 [pairs], for many pairs of distributions at once.

    Both sides are l = ln f_1(x) / f_0(x), `lower` [pairs, n_0] at draws from 0 and `upper` [pairs,
    n_1] at draws from 1. They may be minus and plus infinity, but each pair needs at least one
    finite number on either side.
    """
    offset = math.log(lower.shape[1] / upper.shape[1])
    both = torch.cat([lower, upper], 1)
    # This far beyond the outermost draws, one side of the equation outweighs the other for any
    # numbers of draws.
    margin = 2 + math.log(both.shape[1])
    finite = both.isfinite()
    low = both.where(finite, math.inf).amin(1) - margin - offset
    high = both.where(finite, -math.inf).amax(1) + margin - offset
    root = (low + high) / 2
    # The same memory in every round, since to get it anew takes as long as the sums.
    left = torch.empty_like(lower)
    right = torch.empty_like(upper)
    for _ in range(_MOST_ROUNDS):
        shifted = (root + offset)[:, None]
        torch.sub(lower, shifted, out=left).sigmoid_()
        torch.sub(shifted, upper, out=right).sigmoid_()
        left_sum = left.sum(1)
        right_sum = right.sum(1)
        excess = left_sum - right_sum
        # s' = s - s^2
        slope = left_sum - left.square_().sum(1)
        slope += right_sum - right.square_().sum(1)
        low = torch.where(excess > 0, root, low)
        high = torch.where(excess > 0, high, root)
        newton = root + excess / slope
        # A step that would leave the bracket is replaced by halving it. The last steps may end at a
        # limit of the bracket, or beyond it by a rounding error.
        slack = _PRECISION * (1 + root.abs())
        inside = (newton > low - slack) & (newton < high + slack)
        following = torch.where(excess == 0, root, torch.where(inside, newton, (low + high) / 2))
        moved = (following - root).abs().max().item()
        root = following
        if moved <= _PRECISION * (1 + root.abs().max().item()):
            break
    return root
