"""Can the ln Z that another program printed be true? What is proven decides first, then what is estimated.

A claimed ln Z is *impossible* if it lies outside what is proven: the enumerated value, the mean-field bound and sums over single hidden states
(`paperlib.models.log_z_lower_bound`), the mass of distinct images, or the bound that AIS's weights certify, which fails in one of a
thousand runs. It is *not supported* if it lies outside the interval of the estimates, and *consistent* otherwise. That is the interval of
99.7 % of a trusted evaluation, and half a nat more to either side, which the rule of trust leaves without remark. Where the estimates are not
to be trusted, the interval reaches from the best proven bound below to what RAISE allows above, or, if that is more, to a nat above the
largest estimate with all that AIS from the model's own modes has found: RAISE starts at the images, and knows nothing of a mode far from them.

What RAISE allows has an error of its own. Were the n images draws of the model, RAISE's estimates r of p_ann(v) would satisfy
E prod_i r(v_i) / p(v_i) = 1, since p_ann is a distribution. By Markov's inequality the mean of ln p*(v) - ln r is then at least
ln Z - ln(1 / q) / n, except with probability q. A few images that annealing hardly reaches spoil that mean. Where nothing else speaks against the ladder,
`upper_bound_from_reached` counts instead. Half a nat is added to either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.estimators import certified_lower_bound
from paperlib.evaluation.evaluation import evaluate
from paperlib.evaluation.result import Evaluation
from paperlib.evaluation.targets import Model, as_rows, is_estimated, log_unnormalized_of
from paperlib.evaluation.verdict import SMALL
from paperlib.evaluation.weighting import as_weights
from paperlib.models import DBM, DBN
from paperlib.numerics import weighted_mean
from paperlib.validation import ArrayLike

IMPOSSIBLE, NOT_SUPPORTED, CONSISTENT = "impossible", "not supported", "consistent"
#: Of the command, for scripts.
EXIT_CODES = {CONSISTENT: 0, NOT_SUPPORTED: 3, IMPOSSIBLE: 4}
# How sure a certified bound and the estimates' interval are.
_CERTIFIED, _SURE = 0.999, 0.997
# Beyond a factor of ten an image that RAISE reaches too easily counts no more; so few that are not of the model's kind decide nothing.
_MOST = 10.0
# In nats: beyond all images, and far less than anyone reads off.
_FAR, _EXACT = 10.0, 1e-6


@dataclass(frozen=True)
class Bound:
    """What is proven of ln Z.

    Attributes
    ----------
    name : str
        By what.
    low, high : float
        ln Z lies between them, in nats; infinite where nothing is known.

    Examples
    --------
    >>> Bound("mass of the images", low=3.0)
    Bound(name='mass of the images', low=3.0, high=inf)
    """

    name: str
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True)
class Audit:
    """What is to be thought of a claimed ln Z.

    Attributes
    ----------
    claimed_log_z : float
        The claim, in nats; if a log-probability was claimed, the ln Z that it needs.
    verdict : str
        `impossible`, `not supported` or `consistent`.
    reason : str
        A sentence.
    bounds : tuple of Bound
        What is proven.
    interval : tuple of float
        (low, high) of the estimates, in nats.
    mean_log_unnormalized : float
        The mean of ln p*(v) over the test images: less ln Z, it is their average log-probability.
    evaluation : Evaluation
        The estimates.
    log_z_offset : float
        ln Z of the model that the claim is about less that of the evaluated one, in nats. The claim, the bounds and the interval are of
        the former.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> audit(rbm, [[0, 1, 0], [1, 1, 0]], claimed_log_z=3.47).verdict
    'consistent'
    >>> audit(rbm, [[0, 1, 0], [1, 1, 0]], claimed_log_prob=-1.0).verdict
    'impossible'
    """

    claimed_log_z: float
    verdict: str
    reason: str
    bounds: tuple[Bound, ...]
    interval: tuple[float, float]
    mean_log_unnormalized: float
    evaluation: Evaluation
    log_z_offset: float = 0.0

    @property
    def claimed_log_prob(self) -> float:
        """The average log-probability of the test images that the claim comes to, in nats."""
        return self.mean_log_unnormalized - (self.claimed_log_z - self.log_z_offset)


def audit(
    model: Model,
    test: ArrayLike,
    train: ArrayLike | None = None,
    *,
    claimed_log_z: float | None = None,
    claimed_log_prob: float | None = None,
    tolerance: float = 0.1,
    minutes: float = 2.0,
    generator: torch.Generator | None = None,
    progress: bool | None = None,
    steps: int | None = None,
    ladder_steps: int | None = None,
    weights: ArrayLike | None = None,
    log_z_offset: float = 0.0,
) -> Audit:
    """Hold a claimed ln Z, or a claimed average log-probability, against what can be proven and estimated.

    Parameters
    ----------
    model : RBM, PottsRBM, DBM or DBN
        The model. A DBN has the ln Z of its top RBM.
    test : array or Tensor, shape [N, D]
        Binary test images of any type, at least two; those of the claim, if it is a log-probability.
    train : array or Tensor, shape [any, D], optional
        Binary training images, for the start of the chains and the base rates only.
    claimed_log_z, claimed_log_prob : float
        One of the two, in nats: ln Z, or the average ln p(v) of the test images.
    tolerance : float
        By how much a claim may miss without remark, for rounding, in nats.
    minutes, generator, progress, steps, ladder_steps, weights
        As of `evaluate`.
    log_z_offset : float
        ln Z of the model that a claimed ln Z is about less that of `model`, in nats: that of a `ForeignRBM` whose units were spins.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        As `evaluate`, or if not exactly one finite number is claimed, or a log-probability is claimed of a deep model whose ln p*(v) is
        itself an estimate.
    KeyboardInterrupt
        If interrupted before there is any estimate.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> audit(rbm, [[0, 1, 0], [1, 1, 0]], claimed_log_z=9.0).reason
    'ln Z = 9.00 is above 3.47, what enumeration proves.'
    """
    if (claimed_log_z is None) == (claimed_log_prob is None):
        raise InputError(
            "claimed_log_z, claimed_log_prob: expected one of the two, got both or none"
        )
    for name, claim in (("claimed_log_z", claimed_log_z), ("claimed_log_prob", claimed_log_prob)):
        if claim is not None and not math.isfinite(claim):
            raise InputError(f"{name}: expected a finite number, got {claim}")
    if not 0 <= tolerance < math.inf:
        raise InputError(f"tolerance: expected a number of at least 0, got {tolerance}")
    images = as_rows("test", test, model)
    if claimed_log_prob is not None and is_estimated(model, len(images)):
        raise InputError(
            f"claimed_log_prob: expected claimed_log_z for {model}, whose ln p*(v) is too large to enumerate and itself an estimate"
        )
    found = evaluate(
        model,
        images,
        train,
        minutes,
        generator,
        progress,
        steps=steps,
        ladder_steps=ladder_steps,
        weights=weights,
    )
    if weights is not None:
        images = images[(as_weights("weights", weights, len(images)) > 0).to(images.device)]
    if claimed_log_z is None:
        assert claimed_log_prob is not None
        claimed_log_z = _mean(model, images, found) - claimed_log_prob + log_z_offset
    return audit_evaluation(model, images, found, claimed_log_z, tolerance, log_z_offset)


def audit_evaluation(
    model: Model,
    images: Tensor,
    found: Evaluation,
    claimed_log_z: float,
    tolerance: float = 0.1,
    log_z_offset: float = 0.0,
) -> Audit:
    """Hold a claimed ln Z against an evaluation that there is already; `audit` for several claims at the price of one.

    Parameters
    ----------
    model : RBM, PottsRBM, DBM or DBN
        The model.
    images : Tensor, shape [N, D]
        The binary test images of the evaluation, those of weight zero left out.
    found : Evaluation
        What `evaluate` says of both.
    claimed_log_z, tolerance, log_z_offset : float
        As for `audit`, in nats.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> images = torch.eye(3)
    >>> found = evaluate(rbm, images)
    >>> [audit_evaluation(rbm, images, found, claim).verdict for claim in (3.47, 8.47)]
    ['consistent', 'impossible']
    """
    mean = _mean(model, images, found)
    bounds = _bounds(model, images, found)
    low, high = _interval(found, bounds)
    shifted = tuple(
        Bound(bound.name, bound.low + log_z_offset, bound.high + log_z_offset) for bound in bounds
    )
    interval = low + log_z_offset, high + log_z_offset
    verdict, reason = _judge(claimed_log_z, shifted, interval, found, tolerance)
    return Audit(claimed_log_z, verdict, reason, shifted, interval, mean, found, log_z_offset)


def _log_p(model: Model, images: Tensor, found: Evaluation) -> Tensor:
    if found.log_unnormalized is not None:
        return found.log_unnormalized
    return log_unnormalized_of(model, images)


def _mean(model: Model, images: Tensor, found: Evaluation) -> float:
    return weighted_mean(_log_p(model, images, found), found.weights).item()


def _bounds(model: Model, images: Tensor, found: Evaluation) -> tuple[Bound, ...]:
    if found.exact is not None:
        return (Bound("enumeration", found.exact.log_z, found.exact.log_z),)
    best, ladder = found.runs[-1].ais, found.ladder
    searched = [best.lower_bound, None if ladder is None else ladder.lower_bound]
    proven = [
        Bound(
            "the search for hidden states of large mass",
            max((low for low in searched if low is not None), default=-math.inf),
        )
    ]
    mass = _proven_log_p(model, images, found)
    if mass is not None:
        proven.append(Bound("the mass of the test images", _mass(images, mass)))
    certified = certified_lower_bound(best.log_weights, _CERTIFIED)
    name = f"AIS's weights, which fail once in {1 / (1 - _CERTIFIED):,.0f} runs,"
    return (*proven, Bound(name, certified))


def _proven_log_p(model: Model, images: Tensor, found: Evaluation) -> Tensor | None:
    """ln p*(v) of each image, or what is proven to lie below it; None if nothing is."""
    if not found.posterior_draws:
        return _log_p(model, images, found)
    if isinstance(model, DBM):
        return model.to(dtype=torch.float64).log_unnormalized_bound(images).cpu()
    assert isinstance(model, DBN)
    return None


def _mass(images: Tensor, log_p: Tensor) -> float:
    """ln of the sum of p*(v) over the distinct images."""
    _, place = torch.unique(images, dim=0, return_inverse=True)
    first = torch.full((int(place.max()) + 1,), len(images)).scatter_reduce(
        0, place, torch.arange(len(images)), "amin"
    )
    return log_p[first].logsumexp(0).item()


def _interval(found: Evaluation, bounds: tuple[Bound, ...]) -> tuple[float, float]:
    """Where ln Z is, by the estimates."""
    if found.exact is not None:
        return found.exact.log_z, found.exact.log_z
    if found.trustworthy:
        low, high = found.log_z_interval(_SURE)
        return low - SMALL, high + SMALL
    low = max(bound.low for bound in bounds)
    return low, max(_allowed(found), found.log_z_with_modes + 2 * SMALL, low + 2 * SMALL)


def _allowed(found: Evaluation) -> float:
    """The largest ln Z that RAISE allows, and half a nat."""
    best = found.runs[-1]
    bracket = best.bracket
    gaps, weights = bracket.vector_gaps, bracket.vector_weights
    largest_share = 1 / len(gaps) if weights is None else (weights.max() / weights.sum()).item()
    chance = -math.log(1 - _SURE) * largest_share
    if found.posterior_draws:
        # an estimated ln p*(v) errs low, by an amount of which only the spread is known
        chance = max(chance, 3 * bracket.lower.test_set_std_error)
    allowed = best.ais.log_z + weighted_mean(gaps, weights).item() + chance
    if found.judgement is not None and found.judgement.only_raise_short:
        reached = upper_bound_from_reached(best.ais.log_z + gaps, 1 - _SURE, weights)
        allowed = min(allowed, reached)
    return allowed + SMALL


def upper_bound_from_reached(
    log_ratios: Tensor, chance: float, weights: Tensor | None = None
) -> float:
    """An upper bound on ln Z from RAISE's estimates r of p_ann(v), which images that annealing hardly reaches do not spoil.

    Were the images draws of the model, x = Z r(v) / p*(v) would have the mean one, and min(x, 10) at most that. So the product over the
    images of (1 + min(x, 10)) / 2 has at most the mean one as well, and exceeds 1 / q with probability at most q, by Markov's
    inequality. The bound is the largest ln Z with which it does not. An image costs at most a factor of two, however far below p(v)
    its r is.

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
        ratios = (log_z - log_ratios).clamp(max=math.log(_MOST)).exp()
        return (powers * ((1 + ratios) / 2).log()).sum().item()

    low, high = log_ratios.min().item() - _FAR, log_ratios.max().item() + _FAR
    if log_wealth(high) <= -math.log(chance):
        return math.inf
    while high - low > _EXACT:
        middle = (low + high) / 2
        if log_wealth(middle) <= -math.log(chance):
            low = middle
        else:
            high = middle
    return high


def _judge(
    claim: float,
    bounds: tuple[Bound, ...],
    interval: tuple[float, float],
    found: Evaluation,
    tolerance: float,
) -> tuple[str, str]:
    said = f"ln Z = {claim:.2f}"
    for bound in bounds:
        if claim < bound.low - tolerance:
            return IMPOSSIBLE, f"{said} is below {bound.low:.2f}, what {bound.name} proves."
        if claim > bound.high + tolerance:
            return IMPOSSIBLE, f"{said} is above {bound.high:.2f}, what {bound.name} proves."
    if found.exact is not None:
        return CONSISTENT, f"{said} is what enumeration gives."
    low, high = interval
    where = f"the interval {low:.2f} to {high:.2f}"
    how = "" if found.trustworthy else ", wide because the estimates are not to be trusted"
    if low - tolerance <= claim <= high + tolerance:
        return CONSISTENT, f"{said} lies in {where} of what is estimated{how}."
    return NOT_SUPPORTED, f"{said} lies outside {where} of what is estimated{how}."
