"""Can the ln Z that another program printed be true? Proven bounds decide first, then estimates.

A claimed ln Z is *impossible* if it lies outside what is proven: the enumerated value, the
mean-field bound and sums over single hidden states (`paperlib.models.log_z_lower_bound`), the mass
of distinct images, or the bound that AIS's weights certify, which fails in one of a thousand runs.
It is *not supported* if it lies outside the interval of the estimates, and *consistent* otherwise.
For a trusted evaluation this is its 99.7 % interval, extended on either side by the half nat that
the rule of trust tolerates. If there are doubts about the estimates, it extends from the best
proven lower bound to the largest ln Z that RAISE allows or, if this is higher, to a nat above the
largest estimate, raised by what parallel tempering from the model's own modes found: RAISE starts
at the images and knows nothing of a mode far from them.

The limit from RAISE has its own error. If the n images were draws from the model, RAISE's estimates
r of p_ann(v) would satisfy E prod_i r(v_i) / p(v_i) = 1, since p_ann is a distribution. By Markov's
inequality, the mean of ln p*(v) - ln r is then at least ln Z - ln(1 / q) / n, except with
probability q. A few images that annealing hardly reaches spoil that mean. If nothing else speaks
against parallel tempering, `upper_bound_from_reached` takes its place. Half a nat is added to
either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from torch import Tensor

from boltzmann_likelihood.evaluation.evaluation import evaluate_alike, requested_effort, target_of
from boltzmann_likelihood.evaluation.printed import Printed
from boltzmann_likelihood.evaluation.result import CERTIFIED, Evaluation, Remedy
from boltzmann_likelihood.evaluation.verdict import SMALL, log_z_with_modes
from boltzmann_likelihood.sources import ForeignRBM, Images, model_of
from paperlib.errors import InputError
from paperlib.estimators import certified_lower_bound, upper_bound_from_reached
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import resolve_generator, weighted_mean
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike


class AuditVerdict(StrEnum):
    """What a claim can be."""

    IMPOSSIBLE = "impossible"
    NOT_SUPPORTED = "not supported"
    CONSISTENT = "consistent"


#: Exit codes of the command, for scripts.
EXIT_CODES = {AuditVerdict.CONSISTENT: 0, AuditVerdict.NOT_SUPPORTED: 3, AuditVerdict.IMPOSSIBLE: 4}
# Confidence level of the estimates' interval.
_SURE = 0.997


@dataclass(frozen=True)
class Bound:
    """A proven bound on ln Z.

    Attributes
    ----------
    name : str
        What proves it; a name that ends in a clause has its comma, for sentences that go on.
    low, high : float
        ln Z lies between them, in nats; infinite where nothing is proven.

    Examples
    --------
    >>> Bound("mass of the images", low=3.0)
    Bound(name='mass of the images', low=3.0, high=inf)
    """

    name: str
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True, repr=False)
class Audit(Printed):
    """The verdict on a claimed ln Z, and its evidence. `print` shows it as a report in words.

    Attributes
    ----------
    claimed_log_z : float
        The claim, in nats; if a log-probability was claimed, the ln Z that it needs.
    verdict : AuditVerdict
        `impossible`, `not supported` or `consistent`.
    reason : str
        The reason for the verdict, as a sentence.
    bounds : tuple of Bound
        The proven bounds.
    interval : tuple of float
        The interval (low, high) of the estimates, in nats.
    mean_log_unnormalized : float
        The mean of ln p*(v) over the test images; minus ln Z, it is their average log-probability.
        NaN without images.
    evaluation : Evaluation
        The estimates.
    log_z_offset : float
        ln Z of the model that the claim is about minus that of the evaluated model, in nats. The
        claim, the bounds and the interval refer to the former.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> audit(rbm, [[0, 1, 0], [1, 1, 0]], claimed_log_z=3.47)
    <Audit: ln Z = 3.47 is consistent>
    >>> print(audit(rbm, [[0, 1, 0], [1, 1, 0]], claimed_log_prob=-1.0).verdict)
    impossible
    """

    claimed_log_z: float
    verdict: AuditVerdict
    reason: str
    bounds: tuple[Bound, ...]
    interval: tuple[float, float]
    mean_log_unnormalized: float
    evaluation: Evaluation
    log_z_offset: float = 0.0

    @property
    def summary(self) -> str:
        """The claim and the verdict, in a few words."""
        return f"ln Z = {self.claimed_log_z:.2f} is {self.verdict}"

    @property
    def claimed_log_prob(self) -> float:
        """The average log-probability of the test images that the claim implies, in nats."""
        return self.mean_log_unnormalized - (self.claimed_log_z - self.log_z_offset)


@plain_torch(gradients=False)
def audit(
    model: UnnormalizedModel | ForeignRBM,
    test: ArrayLike | Images | None = None,
    train: ArrayLike | Images | None = None,
    *,
    claimed_log_z: float | None = None,
    claimed_log_prob: float | None = None,
    tolerance: float = 0.1,
    minutes: float = 2.0,
    generator: torch.Generator | int | None = None,
    progress: bool | None = None,
    steps: int | None = None,
    tempering_steps: int | None = None,
    weights: ArrayLike | None = None,
    log_z_offset: float | None = None,
) -> Audit:
    """Check a claimed ln Z or average log-probability against what can be proven and estimated.

    Parameters
    ----------
    model : RBM, DBM, DBN or ForeignRBM
        The model, or what `read_model` returns. A DBN has the ln Z of its top RBM.
    test : array, Tensor or Images, shape [N, D], optional
        Binary test images of any type, at least two. If a log-probability is claimed, the images
        that it is about.
    train : array, Tensor or Images, shape [any, D], optional
        Binary training images, used only for the start of the chains and for the base rates.
    claimed_log_z, claimed_log_prob : float
        One of the two, in nats: ln Z, or the average ln p(v) of the test images.
    tolerance : float
        How far a claim may be off without consequence, to allow for rounding, in nats.
    minutes, generator, progress, steps, tempering_steps, weights
        As for `evaluate`.
    log_z_offset : float, optional
        ln Z of the model that a claimed ln Z is about minus that of `model`, in nats; by default
        that of a `ForeignRBM`, whose units may have been spins, and otherwise 0.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        As for `evaluate`; if not exactly one finite number is claimed, or a log-probability without
        images; if the model's ln Z or ln p*(v) is not finite; or if a log-probability is claimed
        for a deep model whose ln p*(v) is itself an estimate.
    KeyboardInterrupt
        If interrupted before there is any estimate.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> audit(rbm, [[0, 1, 0], [1, 1, 0]], claimed_log_z=9.0).reason
    'ln Z = 9.00 is above 3.47, what enumeration proves.'
    >>> audit(rbm, [[0, 1, 0], [1, 1, 0]], claimed_log_prob=-0.693).reason
    'ln Z = 2.08 is below 3.47, what enumeration proves.'
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
    if claimed_log_prob is not None and test is None:
        raise InputError("claimed_log_prob: expected the test images that it is about, got none")
    target = target_of(model, test, train, weights, needs_images=False)
    model = model_of(model)
    if claimed_log_prob is not None and target.estimated:
        raise InputError(
            f"claimed_log_prob: expected claimed_log_z for {model}, whose ln p*(v) is too large to "
            "enumerate and itself an estimate"
        )
    effort = requested_effort(minutes, steps, tempering_steps)
    generator = resolve_generator(generator, model.device)
    [evaluation] = evaluate_alike([target], generator, effort, minutes, progress)
    if log_z_offset is None:
        log_z_offset = target.inputs.log_z_offset
    if claimed_log_z is None:
        assert claimed_log_prob is not None
        claimed_log_z = _mean(evaluation) - claimed_log_prob + log_z_offset
    rows = target.rows if target.has_images else None
    return audit_evaluation(model, rows, evaluation, claimed_log_z, tolerance, log_z_offset)


def audit_evaluation(
    model: UnnormalizedModel | ForeignRBM,
    images: Tensor | None,
    found: Evaluation,
    claimed_log_z: float,
    tolerance: float = 0.1,
    log_z_offset: float | None = None,
) -> Audit:
    """Check a claimed ln Z against an existing evaluation.

    Several claims then cost no more than one `audit`.

    Parameters
    ----------
    model : RBM, DBM, DBN or ForeignRBM
        The model.
    images : Tensor or None, shape [N, D]
        The binary test images of the evaluation, without those of weight zero.
    found : Evaluation
        The result of `evaluate` for the model and the images.
    claimed_log_z, tolerance, log_z_offset : float
        As for `audit`, in nats.

    Raises
    ------
    InputError
        If the model's ln Z or ln p*(v) is not finite.

    Examples
    --------
    >>> from boltzmann_likelihood.evaluation import evaluate
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> images = torch.eye(3)
    >>> evaluation = evaluate(rbm, images)
    >>> for claim in (3.47, 8.47):
    ...     print(audit_evaluation(rbm, images, evaluation, claim).verdict)
    consistent
    impossible
    """
    model = model_of(model)
    if log_z_offset is None:
        log_z_offset = found.inputs.log_z_offset
    mean = _mean(found)
    log_z = found.known_log_z.value
    if not math.isfinite(log_z) or (images is not None and not math.isfinite(mean)):
        raise InputError(
            "model: expected one whose ln Z and ln p*(v) are finite, got "
            f"ln Z = {log_z} and an average ln p*(v) of {mean}"
        )
    bounds = _bounds(model, images, found)
    low, high = _interval(found, bounds)
    shifted = tuple(
        Bound(bound.name, bound.low + log_z_offset, bound.high + log_z_offset) for bound in bounds
    )
    interval = (low + log_z_offset, high + log_z_offset)
    verdict, reason = _judge(claimed_log_z, shifted, interval, found, tolerance)
    claim = claimed_log_z - log_z_offset
    if mean - claim > tolerance + found.rounding and not found.unnormalized.draws:
        verdict = AuditVerdict.IMPOSSIBLE
        reason = (
            f"An average log-probability of {mean - claim:.2f} is impossible: ln p(v) is at most "
            "0 for discrete data."
        )
    return Audit(claimed_log_z, verdict, reason, shifted, interval, mean, found, log_z_offset)


def _mean(evaluation: Evaluation) -> float:
    """The average ln p*(v) of the test images."""
    return weighted_mean(evaluation.log_unnormalized, evaluation.weights).item()


def _bounds(
    model: UnnormalizedModel, images: Tensor | None, evaluation: Evaluation
) -> tuple[Bound, ...]:
    """The proven bounds, of the model that was evaluated."""
    rounding = evaluation.rounding
    exact = evaluation.exact
    if exact is not None:
        return (Bound("enumeration", exact.log_z - rounding, exact.log_z + rounding),)
    best = evaluation.runs[-1].ais
    lows = [best.lower_bound]
    if evaluation.tempering is not None:
        lows.append(evaluation.tempering.lower_bound)
    low = max((low - rounding for low in lows if low is not None), default=-math.inf)
    bounds = [Bound("the search for hidden states of large mass", low)]
    log_p = None if images is None else _proven_log_p(model, images, evaluation)
    if images is not None and log_p is not None:
        low = _log_mass(images, log_p) - model.largest_rounding
        bounds.append(Bound("the mass of the test images", low))
    low = certified_lower_bound(best.log_weights, CERTIFIED) - rounding
    name = f"AIS's weights, which fail once in {1 / (1 - CERTIFIED):,.0f} runs,"
    bounds.append(Bound(name, low))
    return tuple(bounds)


def _proven_log_p(
    model: UnnormalizedModel, images: Tensor, evaluation: Evaluation
) -> Tensor | None:
    """ln p*(v) of each image, or a proven lower bound on it; None if there is neither."""
    # What is proven is proven of the model itself, not of its numbers in float32.
    double = model.to(dtype=torch.float64)
    if evaluation.unnormalized.draws:
        return double.variational_bound(images) if model.bound_is_proven else None
    if torch.float64 in (model.dtype, evaluation.dtype):
        return evaluation.log_unnormalized
    return double.exact_log_unnormalized(images)


def _log_mass(images: Tensor, log_p: Tensor) -> float:
    """ln of the sum of p*(v) over the distinct images."""
    _, first = np.unique(images.to(torch.uint8).numpy(), axis=0, return_index=True)
    return log_p[first].logsumexp(0).item()


def _interval(evaluation: Evaluation, bounds: tuple[Bound, ...]) -> tuple[float, float]:
    """The interval for ln Z according to the estimates."""
    if evaluation.exact is not None:
        return evaluation.exact.log_z, evaluation.exact.log_z
    if not evaluation.warnings:
        low, high = evaluation.log_z_interval(_SURE)
        return low - SMALL, high + SMALL
    low = max(bound.low for bound in bounds)
    allowed = _allowed(evaluation)
    return low, max(allowed, log_z_with_modes(evaluation) + 2 * SMALL, low + 2 * SMALL)


def _allowed(evaluation: Evaluation) -> float:
    """The largest ln Z that RAISE allows, plus half a nat."""
    best = evaluation.runs[-1]
    bracket = best.bracket
    gaps = bracket.vector_gaps
    weights = bracket.vector_weights
    largest_share = 1 / len(gaps) if weights is None else (weights.max() / weights.sum()).item()
    chance = -math.log(1 - _SURE) * largest_share
    if evaluation.unnormalized.draws:
        # An estimated ln p*(v) is too low by an amount of which only the spread is known.
        spread = 3 * bracket.lower.test_set_std_error
        chance = max(chance, spread) + evaluation.unnormalized.missing
    allowed = best.ais.log_z + weighted_mean(gaps, weights).item() + chance
    doubts = evaluation.judgement.doubts
    if doubts and all(doubt.remedy == Remedy.ANNEALING for doubt in doubts):
        reached = upper_bound_from_reached(best.ais.log_z + gaps, 1 - _SURE, weights)
        allowed = min(allowed, reached)
    return allowed + SMALL


def _judge(
    claim: float,
    bounds: tuple[Bound, ...],
    interval: tuple[float, float],
    evaluation: Evaluation,
    tolerance: float,
) -> tuple[AuditVerdict, str]:
    """The verdict on a claimed ln Z, and the reason for it."""
    statement = f"ln Z = {claim:.2f}"
    for bound in bounds:
        if claim < bound.low - tolerance:
            reason = f"{statement} is below {bound.low:.2f}, what {bound.name} proves."
            return AuditVerdict.IMPOSSIBLE, reason
        if claim > bound.high + tolerance:
            reason = f"{statement} is above {bound.high:.2f}, what {bound.name} proves."
            return AuditVerdict.IMPOSSIBLE, reason
    if evaluation.exact is not None:
        return AuditVerdict.CONSISTENT, f"{statement} is what enumeration gives."
    low, high = interval
    where = f"the interval {low:.2f} to {high:.2f} of what is estimated"
    if evaluation.warnings:
        width = "wide because the estimates are not to be trusted"
    else:
        width = (
            f"which is wider than that of evaluate: {100 * _SURE:g} %, and half a nat on either "
            "side"
        )
    if low - tolerance <= claim <= high + tolerance:
        return AuditVerdict.CONSISTENT, f"{statement} lies in {where}, {width}."
    estimate = f"The estimate is {evaluation.known_log_z.value:.2f}."
    return AuditVerdict.NOT_SUPPORTED, f"{statement} lies outside {where}, {width}. {estimate}"
