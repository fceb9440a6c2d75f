"""The rule by which `paperlib evaluate` trusts a number, and the number's interval.

Two lines of evidence can each vouch for a number.

*The ladder* (`paperlib.estimators.parallel_tempering`) vouches for its own ln Z if

1. it has no warnings of its own: at least ten round trips, exchanges on every link, halves and replicas that agree, and a value not below
   the proven bound;
2. its 95 % interval extends at most half a nat to either side;
3. AIS started at the model's own modes finds nothing that the ladder missed, and could have found something: it has at least ten effective
   chains, or its chains that ended where none of the ladder's draws is cannot matter. They cannot if ln Z would rise by less than half a
   nat even if all chains weighed as much as the heaviest of these;
4. RAISE is not far below it. Part of a shortfall is explained: on the way up, annealing loses ln Z minus the mean ln w of AIS's chains,
   and near equilibrium it loses as much on the way down. For a DBN, RAISE has few draws of the hidden units for each image, and loses
   as much as importance sampling with equally few draws. A shortfall that exceeds this by more than a nat is not explained.

*The bracket* of AIS and RAISE vouches for AIS's ln Z if `find_reasons` finds nothing. This was the whole rule before the ladder was
added.

The verdict is `trusted` if at least one of them vouches and none of the following speaks against both: the ladder and AIS differ by
more than half a nat and by more than three standard errors of the difference, unless a mode that AIS is known to have missed explains
it; the run was interrupted; or the training images are not of the model's kind. The value is the ladder's, or AIS's where the bracket
alone vouches. Where the ladder vouches, certain doubts therefore do not count: few effective AIS chains, an AIS estimate that still
moves, or a bracket that is open because annealing is short. They are listed as settled.

Otherwise the verdict is the worst of the following that applies. `not trusted`: something contradicts the number, or the ladder has a
warning. `open`: condition 3 could not be checked closely enough, or condition 4 fails. `too noisy to tell`: only the interval is too wide.

All of this is about ln Z. Whether the model is the one that somebody meant is another question. Where its average lies below that of
independent pixels or of the uniform model by more than its errors explain, `trusted` becomes `open`, for an exact value as well
(`paperlib.evaluation.result.Evaluation.word`): the usual cause is a file that was read the wrong way round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from paperlib.estimators import PartitionEstimate, TemperingEstimate
from paperlib.evaluation.modes import FEWEST_EFFECTIVE, ModeCheck
from paperlib.evaluation.weighting import total_weight, weighted_std_error
from paperlib.numerics import joined_error, student_quantile, weighted_mean

if TYPE_CHECKING:
    from paperlib.evaluation.annealing_runs import AnnealingRun, FinishedRuns

LEVEL = 0.95
TRUSTED, NOT_TRUSTED, OPEN, TOO_NOISY = "trusted", "not trusted", "open", "too noisy to tell"
_WORST_FIRST = (NOT_TRUSTED, OPEN, TOO_NOISY)
#: Largest half-width of an interval, difference of two estimates or missed mode that is tolerated, in nats.
SMALL = 0.5
_TOLERANCE = 1.0


@dataclass(frozen=True)
class Judgement:
    """The verdict on an evaluation, and its reasons.

    Attributes
    ----------
    word : str
        `trusted`, `not trusted`, `open` or `too noisy to tell`.
    source : str
        Whose ln Z is reported: `ladder` or `AIS`.
    findings : tuple of str
        Reasons to doubt the number, and what to do; empty if it is trusted.
    settled : tuple of str
        Doubts about one line of evidence that do not count, since the other one vouches.
    only_raise_short : bool
        Whether the only doubt about the ladder is that RAISE is too far below it.

    Examples
    --------
    >>> Judgement("trusted", "ladder", (), ()).source
    'ladder'
    """

    word: str
    source: str
    findings: tuple[str, ...]
    settled: tuple[str, ...]
    only_raise_short: bool = False


@dataclass(frozen=True)
class ImageAverage:
    """The average ln p(v) of the test images, with 95 % intervals.

    Attributes
    ----------
    mean : float
        The average, in nats.
    interval : tuple of float
        (low, high) for these images: the error of ln Z alone.
    sample_interval : tuple of float
        (low, high) for all images of this kind, if these are a random sample of them: the errors of ln Z and of the sample together.
    image_std_error : float
        Standard error over the images alone, of their average as an estimate for all images of this kind.

    Examples
    --------
    >>> average = average_of(torch.tensor([1.0, 2.0, 3.0]), 4.0, 0.0, math.inf)
    >>> average.mean, average.interval
    (-2.0, (-2.0, -2.0))
    >>> average.sample_interval[1] > -1  # three images say little
    True
    >>> print(f"{average.image_std_error:.3f}")
    0.577
    """

    mean: float
    interval: tuple[float, float]
    sample_interval: tuple[float, float]
    image_std_error: float = math.nan


def average_of(
    log_unnormalized: Tensor,
    log_z: float,
    std_error: float,
    degrees_of_freedom: float,
    weights: Tensor | None = None,
) -> ImageAverage:
    """Average ln p*(v) minus ln Z, and how well it is known.

    Parameters
    ----------
    log_unnormalized : Tensor, shape [N]
        ln p*(v) of the test images, float64, at least two.
    log_z, std_error, degrees_of_freedom : float
        An estimate of ln Z, its standard error and the degrees of freedom of that error.
    weights : Tensor, shape [N], optional
        Weights of the images (`paperlib.evaluation.weighting`); by default all count alike.

    Notes
    -----
    The two errors are independent. Their sum has the degrees of freedom given by Welch and Satterthwaite.

    Examples
    --------
    >>> average = average_of(torch.zeros(100).double(), 1.0, 0.1, 9)
    >>> print(f"{average.mean:.2f}: {average.interval[0]:.2f} to {average.interval[1]:.2f}")
    -1.00: -1.23 to -0.77
    """
    count = total_weight(len(log_unnormalized), weights)
    mean = weighted_mean(log_unnormalized, weights).item() - log_z
    of_images = weighted_std_error(log_unnormalized, weights)
    joined = joined_error((std_error, degrees_of_freedom), (of_images, count - 1))
    of_these = _around(mean, std_error, degrees_of_freedom)
    return ImageAverage(mean, of_these, _around(mean, *joined), of_images)


def _around(mean: float, std_error: float, freedom: float) -> tuple[float, float]:
    reach = student_quantile(LEVEL, freedom) * std_error if std_error > 0 else 0.0
    return mean - reach, mean + reach


def known_log_z(
    ais: PartitionEstimate, ladder: TemperingEstimate | None, source: str
) -> tuple[float, float, float]:
    """ln Z of the source and its standard error, both in nats, and the degrees of freedom of that error.

    Examples
    --------
    >>> estimate = PartitionEstimate(torch.zeros(11).double(), torch.zeros(11, 1))
    >>> known_log_z(estimate, None, "AIS")
    (0.0, 0.0, 10)
    """
    if ladder is None or source == "AIS":
        return ais.log_z, ais.std_error, len(ais.log_weights) - 1
    return ladder.log_z, ladder.std_error, ladder.degrees_of_freedom


def as_population(ladder: TemperingEstimate) -> PartitionEstimate:
    """A ladder's draws as weighted states, each with the weight Z, for `check_mode` to compare.

    This treats the draws as independent. They are not, so a missed mode is called significant too early rather than too late.

    Examples
    --------
    >>> from paperlib.annealing import BaseRatePath
    >>> from paperlib.estimators import parallel_tempering
    >>> from paperlib.models import RBM
    >>> path = BaseRatePath(RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2)))
    >>> ladder = parallel_tempering(path, 2_000, torch.Generator().manual_seed(0))
    >>> print(f"{as_population(ladder).log_z:.3f}")
    3.466
    """
    weights = torch.full(
        (len(ladder.samples),), ladder.log_z, dtype=torch.float64, device=ladder.samples.device
    )
    return PartitionEstimate(weights, ladder.samples)


def log_z_with_modes(finished: FinishedRuns) -> float:
    """The largest estimate of ln Z, by AIS or the ladder, raised by what AIS from the model's own modes significantly adds to it, in nats.

    Parameters
    ----------
    finished : FinishedRuns
        The runs and the ladder.
    """
    return max(
        _raised(finished.runs[-1].ais.log_z, finished.mode_checks), _ladder_with_modes(finished)
    )


def _ladder_with_modes(finished: FinishedRuns) -> float:
    if finished.ladder is None:
        return -math.inf
    return _raised(finished.ladder.log_z, finished.ladder_mode_checks)


def _raised(log_z: float, checks: Sequence[ModeCheck]) -> float:
    return log_z + max((check.missed for check in checks if check.significant), default=0.0)


def judge(
    finished: FinishedRuns,
    bracket_reasons: tuple[str, ...],
    others: tuple[str, ...] = (),
    explained: float = 0.0,
) -> Judgement:
    """Apply the rule of this module.

    Parameters
    ----------
    finished : FinishedRuns
        The runs and the ladder.
    bracket_reasons : tuple of str
        From `find_reasons`.
    others : tuple of str
        Reasons to doubt any estimate, such as the sentence of `far_off`.
    explained : float
        How far RAISE falls short for a known reason, besides what annealing loses, in nats.

    Returns
    -------
    Judgement
        Without a ladder the bracket alone decides.
    """
    best, ladder = finished.runs[-1], finished.ladder
    if ladder is None:
        found = _unique(*bracket_reasons, *others)
        return Judgement(NOT_TRUSTED if found else TRUSTED, "AIS", found, ())
    against = list(others)
    if finished.interrupted:
        against.append("Interrupted: not everything was looked at.")
    against += _apart(best, ladder, finished)
    own = _ladder_doubts(ladder, finished)
    doubts = [*own, *_shortfall(best, ladder, explained)]
    of_ladder = [text for _, text in doubts]
    source = "AIS" if doubts and not bracket_reasons else "ladder"
    if against or (doubts and bracket_reasons):
        words = [NOT_TRUSTED] if against else [word for word, _ in doubts]
        found = _unique(*against, *of_ladder, *bracket_reasons)
        only_raise_short = not against and not own
        word = min(words, key=_WORST_FIRST.index)
        return Judgement(word, source, found, (), only_raise_short)
    settled = _unique(*(bracket_reasons if source == "ladder" else of_ladder))
    return Judgement(TRUSTED, source, (), settled)


def _unique(*texts: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _ladder_doubts(ladder: TemperingEstimate, finished: FinishedRuns) -> list[tuple[str, str]]:
    """Reasons why the ladder does not vouch for its own value, each with its word for the verdict."""
    doubts = [(NOT_TRUSTED, f"The ladder: {text}") for text in ladder.warnings]
    checks = finished.ladder_mode_checks
    missed = max((check.missed for check in checks if check.significant), default=0.0)
    if missed > SMALL:
        doubts.append(
            (
                NOT_TRUSTED,
                f"AIS that starts at a mode of the model's own raises the ladder's ln Z by {missed:.1f} nats: the ladder missed "
                "that mode.",
            )
        )
    if not checks:
        doubts.append(
            (
                OPEN,
                "AIS from the model's own modes was not run, and the ladder may have missed one.",
            )
        )
    unclear = [check for check in checks if not _could_tell(check)]
    if unclear:
        weakest = min(check.effective_chains for check in unclear)
        doubts.append(
            (
                OPEN,
                f"AIS from the model's own modes had {weakest:.1f} effective chains, too few to say whether the ladder missed one. "
                "Give it more time.",
            )
        )
    low, high = ladder.interval(LEVEL)
    if not (high - low) / 2 <= SMALL:
        doubts.append(
            (
                TOO_NOISY,
                f"The ladder knows ln Z to {(high - low) / 2:.1f} nats only (95 %). Give it more time.",
            )
        )
    return doubts


def _could_tell(check: ModeCheck) -> bool:
    """Whether AIS from a mode would have shown that the ladder missed it."""
    return check.effective_chains >= FEWEST_EFFECTIVE or check.most_unmet < SMALL


def _shortfall(
    best: AnnealingRun, ladder: TemperingEstimate, explained: float
) -> list[tuple[str, str]]:
    """A doubt if RAISE is further below the ladder than there are reasons for."""
    lost = explained + max(0.0, ladder.log_z - best.ais.log_weights.mean().item())
    short = best.bracket.gap - (ladder.log_z - best.ais.log_z)
    if short <= lost + _TOLERANCE:
        return []
    return [
        (
            OPEN,
            f"RAISE is {short:.1f} nats below the ladder's average, and what annealing loses on its way explains {lost:.1f} of "
            "them. Some images may be hard to reach. Give it more time.",
        )
    ]


def _apart(best: AnnealingRun, ladder: TemperingEstimate, finished: FinishedRuns) -> list[str]:
    """A sentence if the ladder and AIS contradict each other. If the error of AIS is unknown, nothing is a contradiction."""
    error = math.hypot(best.ais.std_error, ladder.std_error)
    if not math.isfinite(error):
        return []
    limit = max(SMALL, 3 * error)
    raised = _raised(best.ais.log_z, finished.mode_checks)
    if any(abs(ladder.log_z - value) <= limit for value in (best.ais.log_z, raised)):
        return []
    return [
        f"The ladder says ln Z = {ladder.log_z:.2f} and AIS {best.ais.log_z:.2f}: they differ by more than their errors allow. "
        "Give it more time."
    ]
