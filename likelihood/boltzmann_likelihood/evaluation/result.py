"""The result of an evaluation: its runs, its doubts, the verdict, and the number that is reported.

An `Evaluation` is the `FinishedRuns` of parallel tempering, AIS and RAISE, a `Judgement` of what
speaks against them, and the `ImageAverage` of the test images. Everything that a report, a picture
or a comparison says is computed from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

import torch
from torch import Tensor

from boltzmann_likelihood.evaluation.averages import LEVEL, UNKNOWN, ImageAverage
from boltzmann_likelihood.evaluation.baselines import Baselines
from boltzmann_likelihood.evaluation.modes import ModeCheck
from boltzmann_likelihood.evaluation.printed import Printed
from boltzmann_likelihood.sources import Inputs
from paperlib.estimators import (
    Bracket,
    PartitionEstimate,
    TemperingEstimate,
    certified_lower_bound,
)
from paperlib.uncertain import Uncertain

_NO_ERROR = Uncertain(0.0)
#: The level of a bound that AIS's weights certify.
CERTIFIED = 0.999


class Verdict(StrEnum):
    """Whether an average test log-probability can be relied on.

    `boltzmann_likelihood.evaluation.verdict` has the rule.
    """

    TRUSTED = "trusted"
    NOT_TRUSTED = "not trusted"
    OPEN = "open"
    TOO_NOISY = "too noisy to tell"


class Remedy(StrEnum):
    """What might settle a doubt, if more work went into it."""

    TEMPERING = "tempering"
    # Runs of parallel tempering from modes.
    MODES = "modes"
    ANNEALING = "annealing"
    # Annealing of hidden layers.
    HIDDEN = "hidden layers"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Doubt:
    """A warning about the value of parallel tempering, as the rule of trust weighs it.

    Attributes
    ----------
    word : Verdict
        The verdict that it leads to.
    text : str
        The warning, as a sentence.
    remedy : Remedy
        What might settle it, if more work went into it.
    factor : float
        About how many times as much work that takes; infinite if that cannot be said.
    """

    word: Verdict
    text: str
    remedy: Remedy = Remedy.TEMPERING
    factor: float = math.inf


@dataclass(frozen=True)
class Judgement:
    """The verdict on an evaluation, and what it rests on.

    Attributes
    ----------
    word : Verdict
        The verdict.
    doubts : tuple of Doubt
        What speaks against the number.
    settled : tuple of str
        Warnings about AIS and RAISE that do not count against the number.
    """

    word: Verdict
    doubts: tuple[Doubt, ...] = ()
    settled: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The doubts in words, each once."""
        return tuple(dict.fromkeys(doubt.text for doubt in self.doubts))

    @property
    def has_interval(self) -> bool:
        """Whether the number has an interval: one that is not trusted has none."""
        return self.word != Verdict.NOT_TRUSTED

    @property
    def factor(self) -> float:
        """About how many times as much work would settle all doubts.

        It is infinite if that cannot be said, and 1 if there are no doubts.
        """
        return max((doubt.factor for doubt in self.doubts), default=1.0)


@dataclass(frozen=True)
class AnnealingRun:
    """AIS and RAISE with one number of intermediate distributions.

    Attributes
    ----------
    num_steps : int
        The number of steps, K.
    ais : PartitionEstimate
        The estimate of ln Z.
    bracket : Bracket
        The bracket around the average ln p(v) of the test images.
    seconds : float
        The time that it took.
    chosen : Tensor, shape [n]
        The indices of the test images that RAISE was run for.

    Examples
    --------
    >>> import torch
    >>> from boltzmann_likelihood.evaluation import evaluate
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> generator = torch.Generator().manual_seed(0)
    >>> evaluation = evaluate(rbm, torch.eye(3), generator=generator, steps=32, exact=False)
    >>> [run.num_steps for run in evaluation.runs]
    [2, 8, 32]
    >>> -2.2 < evaluation.runs[-1].bracket.upper < -2.0  # -ln 8
    True
    """

    num_steps: int
    ais: PartitionEstimate
    bracket: Bracket
    seconds: float
    chosen: Tensor


@dataclass(frozen=True)
class FinishedRuns:
    """The runs that are finished; after an interruption, what is missing is None or empty.

    Attributes
    ----------
    runs : tuple of AnnealingRun
        AIS and RAISE with growing K.
    mode_checks, image_checks : tuple of ModeCheck, tuple of ModeCheck or None
        What runs from the model's own modes say about parallel tempering, and from modes that
        images show. If a kind was not looked for, the first is empty and the second None.
    interrupted : bool
        Whether the run was stopped before it was complete.
    tempering : TemperingEstimate or None
        ln Z by parallel tempering.
    """

    runs: tuple[AnnealingRun, ...] = ()
    mode_checks: tuple[ModeCheck, ...] = ()
    interrupted: bool = False
    tempering: TemperingEstimate | None = None
    image_checks: tuple[ModeCheck, ...] | None = None

    @property
    def checks(self) -> tuple[ModeCheck, ...]:
        """What all runs from modes say, those of the model first."""
        return (*self.mode_checks, *(self.image_checks or ()))

    @property
    def known_log_z(self) -> Uncertain:
        """ln Z of parallel tempering, or of AIS while there is none, in nats."""
        return (self.runs[-1].ais if self.tempering is None else self.tempering).uncertain


@dataclass(frozen=True)
class LogUnnormalized:
    """ln p*(v) of the test images; for a deep model it is an estimate that errs low.

    Attributes
    ----------
    values : Tensor, shape [N]
        ln p*(v), float64, in nats.
    error : Uncertain
        Zero, with the error of their average from the chains and from the choice of images that
        were annealed.
    rise : float
        How much the average rises when draws are doubled, in nats.
    draws, steps : int
        Draws of the hidden units for each image or, if there are `steps` of annealing, chains for
        each annealed image; 0 where the values are exact.
    gain : float
        How much the last search for hidden states that are not drawn raised the average, in nats; 0
        once nothing is found.

    Examples
    --------
    >>> LogUnnormalized(torch.tensor([-1.0, -2.0]), Uncertain(0.0, 0.1, 9), 0.01, 8, 1_000).missing
    0.02
    """

    values: Tensor
    error: Uncertain = _NO_ERROR
    rise: float = 0.0
    draws: int = 0
    steps: int = 0
    gain: float = 0.0

    @property
    def missing(self) -> float:
        """What the average may still lack, in nats.

        It rises by as much as it last rose, then by half of that, and so on; and by the last gain.
        """
        return 2 * max(self.rise, 0.0) + max(self.gain, 0.0)


@dataclass(frozen=True)
class Effort:
    """How much an evaluation runs.

    Attributes
    ----------
    num_steps : int
        K of the largest runs of AIS and RAISE.
    tempering_steps : int
        Transitions of single chains for parallel tempering. In an effort that is asked for, 0
        stands for the usual number.
    minutes : float or None
        The time that the steps were chosen to fit; None where the steps were given.
    tolerance : float or None
        The width of the interval, in nats, for which fewer steps were enough; None where all were
        taken.

    Examples
    --------
    >>> Effort(1_000, 50_000).num_steps
    1000
    """

    num_steps: int
    tempering_steps: int
    minutes: float | None = None
    tolerance: float | None = None


@dataclass(frozen=True)
class ExactResult:
    """The result where everything was enumerated.

    Attributes
    ----------
    log_z : float
        ln Z, in nats.
    test, test_std_error : float
        Average ln p(v) of the test images, and its standard error as an estimate for all images of
        this kind.

    Examples
    --------
    >>> import torch
    >>> from boltzmann_likelihood.evaluation import evaluate
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> result = evaluate(rbm, [[0, 1, 0], [1, 1, 0]]).exact
    >>> print(f"{result.log_z:.4f} {result.test:.4f}")
    3.4657 -2.0794
    """

    log_z: float
    test: float
    test_std_error: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Evaluation(Printed, FinishedRuns):
    """A model's average test log-probability, and all that is known about it.

    `print` shows it as a report in words. Without test images, only ln Z is known; whatever is
    about images is then NaN, 0 or empty.

    Attributes
    ----------
    num_visible, num_hidden, num_images : int
        Sizes of the model and of the test set.
    dtype : torch.dtype
        The type in which chains walked, or in which states were enumerated.
    rounding : float
        How far ln Z of the model that was walked may be from that of the model itself, in nats;
        part of every proven bound.
    start : str
        Where annealing and parallel tempering start.
    average : ImageAverage
        The average test log-probability with its intervals, which are infinite where it is not
        trusted.
    model : str
        The kind of the model and its sizes.
    baselines : Baselines
        Log-probabilities of the same images under independent units.
    exact : ExactResult or None
        The exact result, where a layer is small enough to be enumerated.
    runs : tuple of AnnealingRun
        AIS and RAISE with growing K, the best run last; empty where the exact value is known.
    interrupted : bool
        Whether the run was stopped before it was complete.
    tempering : TemperingEstimate or None
        ln Z by parallel tempering; None where the exact value is known, or if the run was stopped
        before it.
    mode_checks, image_checks : tuple of ModeCheck, tuple of ModeCheck or None
        What runs from the model's own modes say about parallel tempering, and from modes that
        images show. If a kind was not looked for, the first is empty and the second None.
    judgement : Judgement
        The verdict, by the rule of `boltzmann_likelihood.evaluation.verdict`.
    remarks : tuple of str
        Things to know about the model or the images. If the model falls behind a baseline, the
        first one says so.
    worse_than_baseline : bool
        Whether the model falls behind independent pixels or the uniform model. It may then have
        been misread, and the verdict is at best *open*.
    known_images : int
        How many of the test images are training images as well.
    effort : Effort or None
        How much was run; None where the exact value is known.
    seed : int or None
        The seed of the generator, if it had not been used before; this seed and the same effort
        give the same numbers.
    unnormalized : LogUnnormalized
        ln p*(v) of the test images, and how well their average is known.
    variational_bound : float or None
        The lower bound on the average ln p*(v) of a DBM (by mean field) or a DBN, minus the
        reported ln Z, where ln p*(v) is an estimate. It is never above the estimate.
    variational_bound_error : float
        Its standard error from the draws alone; 0 where it is proven, as for a DBM.
    weights : Tensor or None, shape [N]
        Weights of the test images; None if all count alike.
    cases : Tensor or None, shape [N]
        For each image the index of its case, which copies share; None if there are no copies.
    inputs : Inputs
        How the images became binary, what the model was read from, and what of the files was
        changed or not used.

    Examples
    --------
    >>> import torch
    >>> from boltzmann_likelihood.evaluation import evaluate
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> result = evaluate(rbm, [[0, 1, 0], [1, 1, 0]])
    >>> result.num_images, result.runs, result.warnings
    (2, (), ())
    >>> result
    <Evaluation: RBM with 3 visible and 2 hidden units, 2 test images, -2.08 nats, open>
    >>> result.inputs.binarization
    'images binary as given'
    """

    num_visible: int
    num_hidden: int
    num_images: int
    dtype: torch.dtype
    rounding: float
    start: str
    average: ImageAverage
    model: str
    baselines: Baselines
    exact: ExactResult | None = None
    judgement: Judgement
    remarks: tuple[str, ...] = ()
    worse_than_baseline: bool = False
    known_images: int = 0
    effort: Effort | None = None
    seed: int | None = None
    unnormalized: LogUnnormalized = field(compare=False)
    variational_bound: float | None = None
    variational_bound_error: float = 0.0
    weights: Tensor | None = field(default=None, compare=False)
    cases: Tensor | None = field(default=None, compare=False)
    inputs: Inputs

    @property
    def summary(self) -> str:
        """The model, the images, the average and the verdict, in a few words."""
        if not self.has_images:
            log_z = f"ln Z = {self.known_log_z.value:.2f} nats"
            return f"{self.model}, no test images, {log_z}, {self.word}"
        images = f"{self.num_images:,} test images"
        return f"{self.model}, {images}, {self.average.mean:.2f} nats, {self.word}"

    @property
    def has_images(self) -> bool:
        """Whether there were test images."""
        return self.num_images > 0

    @property
    def log_unnormalized(self) -> Tensor:
        """ln p*(v) of the test images, float64 [N], in nats."""
        return self.unnormalized.values

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against the number; empty if nothing was found."""
        return self.judgement.warnings

    @property
    def word(self) -> Verdict:
        """The verdict, which is `trusted`, `not trusted`, `open` or `too noisy to tell`.

        It is that of the judgement, but at best `open` if the model is worse than a baseline.
        """
        if self.worse_than_baseline and self.judgement.word == Verdict.TRUSTED:
            return Verdict.OPEN
        return self.judgement.word

    @property
    def advice(self) -> str:
        """About how much more time would settle the doubts; empty if there are none."""
        if not self.warnings or self.effort is None:
            return ""
        factor = self.judgement.factor
        effort = self.effort
        if math.isinf(factor):
            if any(doubt.remedy == Remedy.NOTHING for doubt in self.judgement.doubts):
                return "More time alone is unlikely to help."
            return "How much more time would help cannot be told from this run."
        times = max(2, math.ceil(factor))
        option = (
            f"--steps {times * effort.num_steps} --tempering-steps {times * effort.tempering_steps}"
        )
        if effort.minutes is not None:
            option = f"--minutes {times * effort.minutes:g}"
        return f"About {times:,} times as much time should settle this: {option}."

    @property
    def source(self) -> str:
        """What gave the reported ln Z, `exact`, `ladder` (parallel tempering) or `AIS`.

        These are the words of the JSON, whose keys call parallel tempering a ladder as well. It is
        AIS only if the run was interrupted.
        """
        if self.exact is not None:
            return "exact"
        return "AIS" if self.tempering is None else "ladder"

    @property
    def trustworthy(self) -> bool:
        """Whether nothing speaks against the result."""
        return self.word == Verdict.TRUSTED

    @property
    def known_log_z(self) -> Uncertain:
        """The reported ln Z, in nats."""
        return super().known_log_z if self.exact is None else Uncertain(self.exact.log_z)

    @property
    def has_interval(self) -> bool:
        """Whether the number has an interval of 95 %."""
        return self.judgement.has_interval

    @property
    def least_log_z(self) -> float:
        """A lower bound on ln Z, in nats.

        It is proven, or certified by AIS's weights, and then fails once in 1,000 runs.
        """
        if self.exact is not None:
            return self.exact.log_z - self.rounding
        best = self.runs[-1].ais
        bounds = [certified_lower_bound(best.log_weights, CERTIFIED)]
        if best.lower_bound is not None:
            bounds.append(best.lower_bound)
        if self.tempering is not None and self.tempering.lower_bound is not None:
            bounds.append(self.tempering.lower_bound)
        return max(bounds) - self.rounding

    @property
    def largest_average(self) -> float:
        """An upper bound on the average, in nats, from `least_log_z`.

        Infinite where ln p*(v) is an estimate, which errs low.
        """
        if self.unnormalized.draws:
            return math.inf
        return self.average.mean + self.known_log_z.value - self.least_log_z

    @property
    def width(self) -> float:
        """The width of the 95 % interval of the average or, without images, of ln Z, in nats."""
        low, high = self.average.interval if self.has_images else self.log_z_interval(LEVEL)
        return high - low

    def log_z_interval(self, level: float) -> tuple[float, float]:
        """The interval (low, high) for ln Z at this confidence level, in nats.

        It is infinite at both ends where the verdict is *not trusted*.

        Raises
        ------
        InputError
            If `level` is not between 0 and 1.
        """
        interval = self.known_log_z.interval(level)
        return interval if self.has_interval else UNKNOWN
