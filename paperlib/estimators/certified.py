"""Bounds on ln Z that hold with a stated probability, however the log-weights were produced.

AIS gives non-negative weights with E w = Z for any number of steps, but nothing is known about
their variance, so error bars on their mean can be trusted only if the chains met the states that
matter. A bound does not need the variance. For a fraction lambda in [0, 1] and a candidate z,

    E_lambda(z) = prod_i (1 - lambda + lambda w_i / z)

is the wealth of a gambler who repeatedly bets the fraction lambda of it that the next weight is
larger than z. For z = Z its mean is exactly 1, and so is that of any mixture of such products whose
shares were fixed before the weights were seen. By Markov's inequality the mixture reaches 1 / (1 -
level) with probability at most 1 - level. The mixture falls as z rises, and the bound is the z at
which it crosses 1 / (1 - level) (Waudby-Smith & Ramdas 2024, section 4, for bounded variables; a
lower bound needs no upper limit).

RAISE's estimates give an upper bound in the same way, for test vectors that are draws from the
model (`upper_bound_from_reached`).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paperlib.numerics import log_mean_exp
from paperlib.validation import ArrayLike, as_log_ratios, require_fraction

# The mixture's share for the mean weight itself, which over z also has mean 1 at z = Z.
_MEAN_SHARE = 0.25
# Fractions per factor of two between 1 / n and 1.
_FRACTIONS_PER_OCTAVE = 2
# In nats: far more than the rounding error of the log-wealth, and far less than matters for a
# bound.
_ROUNDING = 1e-9
# Newton's method takes far fewer; any number of them gives a bound.
_MAX_STEPS = 200
# An image for which RAISE is too large counts by this factor at most, so that a few images unlike
# the model's draws decide nothing.
_RATIO_CAP = 10.0
# How far beyond all images the bound is searched for, in nats.
_SEARCH_MARGIN = 10.0
# How exactly it is searched for, in nats.
_BISECTION_WIDTH = 1e-6


def certified_lower_bound(log_weights: ArrayLike, level: float = 0.99) -> float:
    """A number L with P(L <= ln Z) >= level, for any independent non-negative weights with E w = Z.

    Parameters
    ----------
    log_weights : array or Tensor, shape [n]
        ln w, in nats, n >= 1; minus infinity stands for w = 0. The weights need not have the same
        distribution, nor a variance.
    level : float
        Between 0 and 1, chosen before the weights are seen.

    Returns
    -------
    float
        L in nats; a bound on ln(Z_B / Z_A) if that is what the mean weight estimates. Minus
        infinity if all weights are 0.

    Raises
    ------
    InputError
        If a log-weight is NaN or plus infinity, there is none, or `level` is not between 0 and 1.

    Notes
    -----
    The level applies to one set of weights. Of several runs with different schedules, it holds for
    a run that was chosen beforehand, not for the largest of their bounds. Chains that share
    randomness, such as those of one population with resampling, count as one weight: their mean.
    Weights along a path whose start is not drawn exactly are biased, and nothing is certified then.

    *Upper bound.* Weights u with E u = 1/Z give an upper bound by negation: ln Z <=
    -certified_lower_bound(ln u) with the same probability. Walks back from **exact** draws from the
    model have such weights; walks back from draws of a chain that has not converged do not.

    The mixture gives a quarter to the mean weight and the rest in equal shares to fractions between
    1/n and 1, a factor of the square root of 2 apart. L is therefore never more than ln 4 below
    Markov's bound on the mean weight, ln mean w - ln(1 / (1 - level)), and equals it for a single
    weight. No mixture is always above Markov's bound: if one weight makes up the whole sum, nothing
    better is known.

    A missed mode makes the bound loose, never wrong. The table shows the median of ln Z - L in nats
    at level 0.99, measured over 2,000 sets of n log-normal weights each, for three standard
    deviations of ln w (Markov's bound on the mean weight: 4.6):

    =====  ====  ====  ====
    n       0.3     1     2
    =====  ====  ====  ====
    100    0.12  0.40  1.04
    1,000  0.04  0.14  0.45
    =====  ====  ====  ====

    Examples
    --------
    >>> log_weights = torch.tensor([10.1, 9.8, 10.3, 9.9, 10.0, 10.2, 9.7, 10.0])
    >>> print(f"{certified_lower_bound(log_weights):.2f}")
    9.19
    >>> print(f"{certified_lower_bound([10.0], level=0.9):.2f}")  # 10 - ln 10
    7.70
    """
    log_weights = as_log_ratios("log_weights", log_weights, "others")
    return _lower_bounds(log_weights[None], _log_threshold(level)).item()


def upper_bound_from_reached(
    log_ratios: Tensor, chance: float, weights: Tensor | None = None
) -> float:
    """An upper bound on ln Z from RAISE's estimates r of p_ann(v).

    Images that annealing hardly reaches do not spoil it if they are few. If the images were
    draws from the model, x = Z r(v) / p*(v) would have mean one, and min(x, 10) a mean of at most
    one. So the product over the images of (1 + min(x, 10)) / 2 has a mean of at most one as well.
    By Markov's inequality it exceeds 1 / q with probability at most q. The bound is the largest ln
    Z for which it does not. However far r is below p(v), an image costs at most a factor of two.

    Parameters
    ----------
    log_ratios : Tensor, shape [n]
        ln p*(v) - ln r of each image, in nats.
    chance : float
        q, between 0 and 1.
    weights : Tensor, shape [n], optional
        By which the images count, above zero; by default all alike.

    Returns
    -------
    float
        In nats; infinite if there are too few images for so small a chance.

    Examples
    --------
    >>> everywhere = torch.full((100,), 3.0).double()
    >>> print(f"{upper_bound_from_reached(everywhere, 0.003):.2f}")
    3.11
    >>> print(f"{upper_bound_from_reached(everywhere + 50 * (torch.arange(100) < 10), 0.003):.2f}")
    3.27
    """
    powers = torch.ones_like(log_ratios) if weights is None else weights / weights.max()

    def log_wealth(log_z: float) -> float:
        ratios = (log_z - log_ratios).clamp(max=math.log(_RATIO_CAP)).exp()
        return (powers * ((1 + ratios) / 2).log()).sum().item()

    low = log_ratios.min().item() - _SEARCH_MARGIN
    high = log_ratios.max().item() + _SEARCH_MARGIN
    if log_wealth(high) <= -math.log(chance):
        return math.inf
    while high - low > _BISECTION_WIDTH:
        middle = (low + high) / 2
        if log_wealth(middle) <= -math.log(chance):
            low = middle
        else:
            high = middle
    return high


def _log_threshold(level: object) -> float:
    """ln(1 / (1 - level)), plus an allowance for rounding."""
    return -math.log1p(-require_fraction("level", level)) + _ROUNDING


def _lower_bounds(log_weights: Tensor, threshold: float) -> Tensor:
    """The bounds, [sets], for several sets of weights, [sets, n].

    The logarithm of the mixture is convex and decreasing in ln z, since the mixture is a sum of
    exponentials in -ln z. Newton's steps from the left therefore stay to the left of the crossing,
    and every one of them is a valid bound.
    """
    largest = log_weights.amax(1, keepdim=True)
    nothing = largest == -math.inf
    # Sorted, so that sums are rounded alike for any order of the weights.
    relative = torch.where(nothing, 0.0, log_weights - largest).sort(1).values
    # Markov's bound with the mean weight's share of the mixture, which lies to the left of the
    # crossing.
    log_z = log_mean_exp(relative, 1) - threshold + math.log(_MEAN_SHARE)
    for _ in range(_MAX_STEPS):
        log_wealth, slope = _log_mixture(relative - log_z[:, None])
        step = (log_wealth - threshold) / slope
        log_z = log_z + step.clamp(min=0)
        if bool((step < 1e-10).all()):
            break
    return torch.where(nothing[:, 0], -math.inf, log_z + largest[:, 0])


def _log_mixture(log_ratios: Tensor) -> tuple[Tensor, Tensor]:
    """ln of the mixture at z, and how fast it falls in ln z, [sets]; from ln(w / z) [sets, n]."""
    count = log_ratios.shape[1]
    # z is so close to the mean weight that no ratio overflows.
    excess = torch.expm1(log_ratios)
    fractions = _fractions(count)
    log_share = math.log((1 - _MEAN_SHARE) / len(fractions))
    log_terms = [log_mean_exp(log_ratios, 1) + math.log(_MEAN_SHARE)]
    slopes = [torch.ones_like(log_terms[0])]
    for fraction in fractions:
        if fraction == 1:
            # the plain product, which also works for ratios that round to 0
            log_terms.append(log_share + log_ratios.sum(1))
            slopes.append(torch.full_like(slopes[0], count))
            continue
        bet = 1 + fraction * excess
        log_terms.append(log_share + torch.log1p(fraction * excess).sum(1))
        slopes.append((1 - (1 - fraction) / bet).sum(1))
    terms = torch.stack(log_terms)
    total = torch.logsumexp(terms, 0)
    return total, ((terms - total).exp() * torch.stack(slopes)).sum(0)


def _fractions(count: int) -> list[float]:
    """The fractions that share the mixture: from 1 to 1 / count, equally spaced in the logarithm.

    The best fraction is about the square root of 2 ln(1 / (1 - level)) / n over the relative spread
    of the weights, which is not known in advance; below 1 / n the mean weight does better.
    """
    steps = math.ceil(_FRACTIONS_PER_OCTAVE * math.log2(count))
    return [1.0] + [count ** (-k / steps) for k in range(1, steps + 1)]
