"""The rule by which `paperlib evaluate` trusts a number, and the number's interval.

Three methods look at one ln Z. What each of them can say about it is not the same.

*Parallel tempering* (`paperlib.estimators.parallel_tempering`) errs to neither side by its nature,
and how often its interval holds the truth was counted (chapter 17). Its value is therefore what is
reported, always. Others can only raise doubts about it.

Its interval is reported unless the verdict is `not trusted`. Then it would be a false precision,
and a lower bound on ln Z takes its place, which is proven or certified by AIS's weights at 99.9 %.
The interval of a number that is `open` holds if nothing is missing, and the report says that.

*AIS* has weights with mean Z, however short the annealing and however few the chains. So they
seldom say too much: by Markov's inequality ln Z lies above the certified bound
(`paperlib.estimators.certified_lower_bound`) with a known probability. If that bound exceeds
parallel tempering, parallel tempering is too low. If AIS lies below parallel tempering, that says
nothing: to this side it errs itself, and the fewer of its chains count, the further. For the same
reason, open brackets and moving estimates of AIS lead to warnings that do not count.

*RAISE* estimates the log-probability that annealing gives to an image, and is on average too low
for it. How close annealing comes to the model depends on its length: on the way up it loses ln Z
minus the mean ln w of AIS's chains, and near equilibrium it loses as much on the way down. For a
DBN, RAISE has few draws of the hidden units for each image, and loses as much as importance
sampling with equally few draws. If RAISE is further below parallel tempering, chains hardly reach
some images, and parallel tempering may know their surroundings as little. Runs of parallel
tempering that start at the modes to which such images lead find out. A part of Z that was missed
elsewhere would lower RAISE for every image alike. If RAISE lies above parallel tempering, that says
nothing: short annealing often gives more probability to images than a bad model does.

*Runs of parallel tempering from modes*, those of the model itself and those that test and training
images show (`boltzmann_likelihood.evaluation.modes`), know the mass of regions that parallel
tempering may have missed.

A sentence that speaks against a number is called a *warning*, here as in the estimators. A *doubt*
is a warning as this rule weighs it: with the verdict that it leads to, and with the work that would
settle it. A *remark* is about the model or the images, not about ln Z.

The verdict is `trusted` if there is no doubt. Otherwise it is the worst of the following that
applies.

1. `not trusted`: parallel tempering has a warning of its own (fewer than ten round trips, a link
   without swaps, halves or replicas that disagree, a value below the proven bound); the average is
   above 0, which no log-probability is; the certified bound of AIS's weights, at 99.9 %, lies above
   parallel tempering's interval at the same level; a run from a mode finds more than half a nat
   that parallel tempering missed, or a nat less than it where both have been; the run was
   interrupted; or the training images are not of the model's kind.
2. `open`: a mode could add more than half a nat within two standard errors, or adds for certain
   more than the interval of parallel tempering has room for; parallel tempering missed a mode that
   adds less, but where one was missed, many beside it may have been; it has not been in modes that
   promise more than its interval has room for, if the bounds of all modes are as far below their
   masses; or RAISE is lower by a nat more than is explained, for more than three quarters of the
   images or before modes that images show were looked at.
3. `too noisy to tell`: parallel tempering's 95 % interval extends more than half a nat to either
   side.

The same doubts say where an evaluation spends its time
(`boltzmann_likelihood.evaluation.annealing_runs`) and, at the end, how much more would be needed.

Two things do not concern ln Z. An average log-probability above 0 by more than its error is
impossible, and *not trusted*. And for a deep model ln p*(v) may itself be an estimate
(`boltzmann_likelihood.evaluation.hidden_layers`): if it still rises by more than a tenth of a nat
when draws are doubled, or by the last search for hidden states that explain test images but are not
drawn, or misses a part of the posterior for images that the model has drawn, the average is *not
trusted*. What no search finds, since it needs many units to change at once and no start is near,
cannot be seen.

All else is about ln Z. Whether the model is the one that somebody meant is another question. Where
its average lies below that of independent pixels or of the uniform model by more than its errors
explain, `trusted` becomes `open`, for an exact value as well
(`boltzmann_likelihood.evaluation.result.Evaluation.word`): the usual cause is a file that was read
the wrong way round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from boltzmann_likelihood.evaluation.averages import LEVEL, ImageAverage
from boltzmann_likelihood.evaluation.modes import ModeCheck
from boltzmann_likelihood.evaluation.result import (
    AnnealingRun,
    Doubt,
    FinishedRuns,
    Judgement,
    Remedy,
    Verdict,
)
from paperlib.estimators import (
    BracketVerdict,
    PartitionEstimate,
    TemperingEstimate,
    certified_lower_bound,
)
from paperlib.estimators.tempering.warnings import FEWEST_ROUND_TRIPS

_WORST_FIRST = (Verdict.NOT_TRUSTED, Verdict.OPEN, Verdict.TOO_NOISY, Verdict.TRUSTED)
#: Largest half-width of an interval, difference of two estimates or missed mode that is tolerated,
#: in nats.
SMALL = 0.5
# Nothing is said of a shortfall of RAISE, a gap of the bracket, or mass of a mode that a run lacks,
# up to this many nats.
_TOLERANCE = 1.0
# Nor of AIS's estimates if the last two differ by up to this many nats.
_MOVING = 0.5
# A mode of which parallel tempering knows less than the share `_MET`, and which adds more nats than
# `_FIRST_OF_MANY`, may be one of many that were missed.
_MET = 0.1
_FIRST_OF_MANY = 0.01
# Where RAISE is too low for a larger share of the images than this, the reason is not that they are
# hard to reach.
_MOST_AFFECTED = 0.75
# The probability with which the certified bound and parallel tempering's interval, when they are
# compared, each hold.
_CERTAIN = 0.999


def log_z_with_modes(finished: FinishedRuns) -> float:
    """The largest estimate of ln Z, in nats.

    It is that of AIS, or that of parallel tempering with what a run from a mode significantly adds.
    """
    by_ais = finished.runs[-1].ais.log_z
    if finished.tempering is None:
        return by_ais
    missed = [check.missed for check in finished.checks if check.significant]
    return max(by_ais, finished.tempering.log_z + max(missed, default=0.0))


def doubts_above_zero(average: ImageAverage) -> tuple[Doubt, ...]:
    """One doubt if an average log-probability is above 0 by more than its error; otherwise none."""
    if not average.interval[0] > 0:
        return ()
    text = (
        f"An average log-probability of {average.mean:.2f} is impossible: ln p(v) is at most 0 for "
        "discrete data. The numbers of the model are too large for this computation, or this is an "
        "error of the program."
    )
    return (Doubt(Verdict.NOT_TRUSTED, text, Remedy.NOTHING),)


def judge(
    finished: FinishedRuns,
    annealing_warnings: tuple[str, ...] = (),
    image_warnings: tuple[str, ...] = (),
    raise_loss: float = 0.0,
    doubts: tuple[Doubt, ...] = (),
) -> Judgement:
    """Apply the rule of this module.

    `annealing_warnings`, from `find_annealing_warnings`, do not count. `image_warnings` speak
    against every estimate. `raise_loss` is how many nats RAISE falls short for a known reason,
    besides what annealing loses. `doubts` are about the average, not about ln Z.
    """
    against_all = list(image_warnings)
    if finished.interrupted:
        against_all.append("Interrupted: not everything was looked at.")
    if finished.tempering is None:
        against_all.append(
            "There is no run of parallel tempering yet, and AIS alone is not believed."
        )
    all_doubts = [
        *doubts,
        *(Doubt(Verdict.NOT_TRUSTED, text) for text in against_all),
        *find_doubts(finished, raise_loss),
    ]
    open_doubts = tuple(doubt for doubt in all_doubts if doubt.word != Verdict.TRUSTED)
    settled = tuple(doubt.text for doubt in all_doubts if doubt.word == Verdict.TRUSTED)
    words = [doubt.word for doubt in open_doubts]
    word = min(words, key=_WORST_FIRST.index, default=Verdict.TRUSTED)
    return Judgement(word, open_doubts, (*annealing_warnings, *settled))


def find_doubts(finished: FinishedRuns, raise_loss: float = 0.0) -> list[Doubt]:
    """What speaks against parallel tempering, in the order of the report.

    A doubt that has been settled has the verdict `trusted`. `raise_loss` is as for `judge`.
    """
    tempering = finished.tempering
    if tempering is None:
        return []
    return [
        *_tempering_doubts(tempering),
        *_ais_doubts(finished.runs[-1].ais, tempering),
        *_mode_doubts(finished.mode_checks, tempering),
        *_image_doubts(finished.image_checks, tempering),
        *_raise_doubts(finished, tempering, raise_loss),
    ]


def _tempering_doubts(tempering: TemperingEstimate) -> Iterator[Doubt]:
    trips = tempering.round_trips
    factor = FEWEST_ROUND_TRIPS / trips if 0 < trips < FEWEST_ROUND_TRIPS else math.inf
    for text in tempering.warnings:
        yield Doubt(Verdict.NOT_TRUSTED, f"Parallel tempering: {text}", factor=factor)
    half = _half_width(tempering)
    if not half <= SMALL:
        text = f"Parallel tempering knows ln Z to {half:.1f} nats only (95 %)."
        yield Doubt(Verdict.TOO_NOISY, text, factor=(half / SMALL) ** 2)


def _half_width(tempering: TemperingEstimate) -> float:
    low, high = tempering.interval(LEVEL)
    return (high - low) / 2


def _ais_doubts(ais: PartitionEstimate, tempering: TemperingEstimate) -> list[Doubt]:
    certified = certified_lower_bound(ais.log_weights, _CERTAIN)
    if certified <= tempering.interval(_CERTAIN)[1]:
        return []
    text = (
        f"Parallel tempering says ln Z = {tempering.log_z:.2f}, but AIS's weights leave no more "
        f"than one chance in 1,000 that it is below {certified:.2f}."
    )
    return [Doubt(Verdict.NOT_TRUSTED, text)]


def _mode_doubts(checks: Sequence[ModeCheck], tempering: TemperingEstimate) -> list[Doubt]:
    if not checks:
        text = (
            "The model's own modes were not looked at, and parallel tempering may have missed one."
        )
        return [Doubt(Verdict.OPEN, text, Remedy.MODES)]
    return _check_doubts(checks, tempering, "a mode of the model's own")


def _image_doubts(checks: Sequence[ModeCheck] | None, tempering: TemperingEstimate) -> list[Doubt]:
    return _check_doubts(checks, tempering, "a mode near some images") if checks else []


def _check_doubts(
    checks: Sequence[ModeCheck], tempering: TemperingEstimate, mode_in_words: str
) -> list[Doubt]:
    """The worst doubt that runs from these modes raise, if any."""
    run_from_mode = f"A run of parallel tempering that starts at {mode_in_words}"
    missed = [check for check in checks if check.significant and check.missed > SMALL]
    if missed:
        worst = max(missed, key=lambda check: check.missed)
        text = (
            f"{run_from_mode} raises ln Z by {worst.missed:.1f} nats: the first run missed that "
            "mode."
        )
        remedy = Remedy.NOTHING if worst.least > SMALL else Remedy.MODES
        return [Doubt(Verdict.NOT_TRUSTED, text, remedy)]
    less = max(check.less for check in checks)
    if less > _TOLERANCE:
        text = (
            f"{run_from_mode} finds {less:.1f} nats less there than the first run: the two "
            "contradict each other."
        )
        return [Doubt(Verdict.NOT_TRUSTED, text)]
    # What is missed or promised matters if the interval has no room for it.
    room = max(_half_width(tempering), _FIRST_OF_MANY)
    unmet = [
        check
        for check in checks
        if check.met < _MET
        and (check.promised > room or (check.significant and check.missed > _FIRST_OF_MANY))
    ]
    if unmet:
        largest = max(unmet, key=lambda check: (check.significant, check.missed))
        consequence = (
            f"That alone raises ln Z by {largest.missed:.2f} nats only, but where one is missed, "
            "others beside it may be."
        )
        if largest.promised > max(largest.missed, room):
            consequence = (
                f"With others like it, it raises ln Z by {largest.promised:.2f} nats, if mean "
                "field's bounds are as far below the mass of all modes."
            )
        remedy = Remedy.NOTHING if largest.significant else Remedy.MODES
        text = f"Parallel tempering missed {mode_in_words}. {consequence}"
        return [Doubt(Verdict.OPEN, text, remedy)]
    beyond = [check.missed for check in checks if check.significant and check.missed > room]
    if beyond:
        text = (
            f"{run_from_mode} raises ln Z by {max(beyond):.2f} nats, for which the interval has no "
            "room."
        )
        return [Doubt(Verdict.OPEN, text, Remedy.MODES)]
    most = max(check.most for check in checks)
    if most <= SMALL:
        return []
    text = (
        f"{mode_in_words.capitalize()} that parallel tempering may have missed could raise ln Z by "
        f"up to {most:.1f} nats."
    )
    return [Doubt(Verdict.OPEN, text, Remedy.MODES, (most / SMALL) ** 2)]


def _raise_doubts(
    finished: FinishedRuns, tempering: TemperingEstimate, raise_loss: float
) -> Iterator[Doubt]:
    short = shortfall(finished.runs[-1], tempering, raise_loss)
    if short is None:
        return
    word = Verdict.OPEN
    if finished.image_checks is None:
        text = "Some images may be hard to reach."
    elif short.affected.double().mean() > _MOST_AFFECTED:
        text = (
            "More than three quarters of the images are affected, as all would be if parallel "
            "tempering had missed a part of Z."
        )
    elif _image_doubts(finished.image_checks, tempering):
        return
    elif finished.image_checks:
        word = Verdict.TRUSTED
        text = "Runs of parallel tempering that start at such images find no mode that was missed."
    else:
        word = Verdict.TRUSTED
        text = "Parallel tempering has been in the modes to which such images lead."
    numbers = (
        f"RAISE is {short.nats:.1f} nats below parallel tempering's average, and what annealing "
        f"loses on its way explains {short.explained:.1f} of them."
    )
    factor = 1.0 if word == Verdict.TRUSTED else short.nats / _TOLERANCE
    yield Doubt(word, f"{numbers} {text}", Remedy.ANNEALING, factor)


@dataclass(frozen=True)
class Shortfall:
    """How far RAISE is below parallel tempering's average.

    Attributes
    ----------
    nats : float
        By how many nats.
    explained : float
        How many of them are explained.
    affected : Tensor, shape [n]
        Which of RAISE's images lack more than that.
    """

    nats: float
    explained: float
    affected: Tensor


def shortfall(
    best: AnnealingRun, tempering: TemperingEstimate, raise_loss: float = 0.0
) -> Shortfall | None:
    """RAISE's shortfall, if on average it is larger by a nat than is explained.

    `raise_loss` is as for `judge`.
    """
    lost_by_annealing = max(0.0, tempering.log_z - best.ais.log_weights.mean().item())
    explained = raise_loss + lost_by_annealing
    below_ais = tempering.log_z - best.ais.log_z
    nats = best.bracket.gap - below_ais
    by_image = best.bracket.vector_gaps - below_ais
    allowed = explained + _TOLERANCE
    if nats <= allowed:
        return None
    return Shortfall(nats, explained, by_image >= allowed)


def find_annealing_warnings(finished: FinishedRuns, estimated: bool = False) -> tuple[str, ...]:
    """Warnings about the last run of AIS and RAISE.

    `estimated` says that ln p*(v) is itself an estimate.
    """
    runs = finished.runs
    best = runs[-1]
    bracket = best.bracket
    warnings = list(bracket.warnings)
    verdict = bracket.verdict(_TOLERANCE)
    if verdict == BracketVerdict.OPEN:
        where = ""
        if abs(bracket.median_gap) <= _TOLERANCE:
            where = (
                f" For half of the images the two are within {rounded_up(bracket.median_gap)} "
                "nats: the gap is due to a few to which annealing hardly finds the way, and more "
                "time may not close it."
            )
        warnings.append(
            f"The bracket is open by {bracket.gap:.1f} nats: AIS says {bracket.upper:.2f}, RAISE "
            f"{bracket.lower.mean:.2f}. The truth lies between them as far as RAISE is "
            f"conservative.{where}"
        )
    elif verdict == BracketVerdict.CROSSED:
        other_reason = ", or the estimates of ln p*(v) are too low" if estimated else ""
        warnings.append(
            f"RAISE lies above AIS by {-bracket.gap:.1f} nats, so that there is no bracket: the "
            f"annealing model fits these images better than the model itself{other_reason}."
        )
    # Where AIS's error is infinite, its own warning says so already.
    if _TOLERANCE / 2 < bracket.gap_std_error < math.inf:
        warnings.append(
            f"The two ends of the bracket are known to {bracket.gap_std_error:.1f} nats only "
            "(one standard error); their agreement means little."
        )
    if len(runs) > 1:
        before = runs[-2]
        moved = bracket.upper - before.bracket.upper
        noise = max(run.bracket.upper_slack for run in (before, best))
        if abs(moved) > max(_MOVING, noise):
            warnings.append(
                f"AIS's estimate still moves: by {moved:+.1f} nats from "
                f"K = {before.num_steps:,} to {best.num_steps:,}."
            )
    return tuple(warnings)


def rounded_up(nats: float) -> str:
    """Nats rounded up to two decimals, for statements that something lies within them."""
    hundredths = math.ceil(round(abs(nats) * 100, 6))
    return f"{max(hundredths, 1) / 100:.2f}"
