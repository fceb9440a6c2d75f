"""The average test log-probability of a model: exact where possible, otherwise estimated.

`evaluate`, `audit`, `compare` and `evaluate_training` go through the same steps:

1. `target_of` checks a model and its images, and decides in which type chains walk (`Target`).
2. Where a layer is small, `enumerate_target` gives the exact value, and nothing else is needed.
3. `find_start` computes ln p*(v) and finds where chains start (`Start`).
4. `affordable` measures how much fits the time, unless steps are given. An `Effort` says how much
   is run: the same steps and the same seed give the same numbers, on a machine of any speed.
5. `estimate` runs, collects doubts, judges, and gives an `Evaluation`.

`evaluate_alike` takes the steps after the first one, for one target or for several.

The number and its interval come from parallel tempering. AIS from above, RAISE from below and
parallel tempering from modes of the model and of images look for reasons to doubt it
(`boltzmann_likelihood.evaluation.verdict`). After a first round the rest of the time goes where a
doubt is (`boltzmann_likelihood.evaluation.annealing_runs`). Each doubt that is left becomes a
warning, and a sentence says how much more time would settle them.

A run in a given time stops early where a shorter one is trusted and its interval is narrow enough.
A narrow interval may only mean that a run has hardly seen a second phase of the model, so that to
stop at narrow intervals would favour the wrong ones. Before an early stop, runs of parallel
tempering from the two strongest modes, together as long as the first, therefore have to agree with
it to within the width of its interval (`_confirmed`).
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from boltzmann_likelihood.evaluation.annealing_runs import (
    CHAINS_PER_VECTOR,
    FEWEST_STEPS,
    MODES_WORK,
    RAISE_VECTORS,
    SOME_IMAGES,
    TEMPERING_SHARE,
    TEMPERING_STEPS,
    AnnealingRuns,
)
from boltzmann_likelihood.evaluation.averages import (
    LEVEL,
    NO_AVERAGE,
    ImageAverage,
    as_weights,
    average_of,
)
from boltzmann_likelihood.evaluation.baselines import (
    NO_BASELINES,
    EqualImages,
    baselines_of,
    equal_images,
    start_warnings,
)
from boltzmann_likelihood.evaluation.hidden_layers import POSTERIOR_DRAWS, HiddenLayers
from boltzmann_likelihood.evaluation.interruption import before_estimate
from boltzmann_likelihood.evaluation.memory import warn_if_large
from boltzmann_likelihood.evaluation.modes import evenly_spread
from boltzmann_likelihood.evaluation.precision import chain_dtype, float64_remark
from boltzmann_likelihood.evaluation.result import (
    Effort,
    Evaluation,
    ExactResult,
    FinishedRuns,
    Judgement,
    LogUnnormalized,
    Verdict,
)
from boltzmann_likelihood.evaluation.verdict import (
    doubts_above_zero,
    find_annealing_warnings,
    judge,
)
from boltzmann_likelihood.sources import (
    ForeignRBM,
    Images,
    Inputs,
    inputs_of,
    model_of,
    pixels_of,
)
from paperlib.annealing import mean_field_bias, require_own_path, start_bias
from paperlib.errors import InputError
from paperlib.estimators import exact_log_z
from paperlib.kernels import bernoulli
from paperlib.memory import give_back_at_once
from paperlib.models import RBM
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import resolve_generator, seeded_generator, weighted_mean
from paperlib.torch_settings import plain_torch
from paperlib.uncertain import Uncertain
from paperlib.validation import ArrayLike, as_binary, require_count

if TYPE_CHECKING:
    from paperlib.models import DBM, DBN

# If the smaller layer has at most this many units, all its states are enumerated, in seconds.
EXACT_UNITS = 25
# An interval of 95 % that is no wider, in nats, is narrow enough, if runs from modes agree with it.
TOLERANCE = 0.01
# The share of the minutes that is spent before the width of the interval is looked at.
_FIRST_SHARE = 1 / 16
# How much longer the next run is than the width of the interval calls for.
_MARGIN = 1.5
# A run that takes no more seconds than this starts without a warning.
_NO_WAIT = 5.0
# Gibbs steps of the chains whose states stand in for test images.
_STAND_IN_STEPS = 200
_NOTHING_UNNORMALIZED = LogUnnormalized(torch.empty(0, dtype=torch.float64))


@plain_torch(gradients=False)
def evaluate(
    model: UnnormalizedModel | ForeignRBM,
    test: ArrayLike | Images | None = None,
    train: ArrayLike | Images | None = None,
    minutes: float = 2.0,
    generator: torch.Generator | int | None = None,
    progress: bool | None = None,
    *,
    steps: int | None = None,
    tempering_steps: int | None = None,
    weights: ArrayLike | None = None,
    exact: bool = True,
    uniform_start: bool = False,
    tolerance: float = TOLERANCE,
) -> Evaluation:
    """Average ln p(v) of test images under a model, with every available check.

    Parameters
    ----------
    model : RBM, DBM, DBN or ForeignRBM
        The model, or what `read_model` returns. Chains walk on its device.
    test : array, Tensor or Images, shape [N, D], optional
        Binary test images of any type, at least two, or what `read_images` returns: the result
        then says how they became binary. Without them only ln Z is estimated.
    train : array, Tensor or Images, shape [any, D], optional
        Binary training images, for the start of the annealing and for the base rates reported
        beside the value. Without them, both come from the test images, whose means RAISE's
        annealing model then knows; if there are none either, the start comes from mean field.
    minutes : float
        Approximate time to spend, a third of it on parallel tempering and four ninths where a doubt
        is; pilot runs choose K and the steps of parallel tempering accordingly. Where the shortest
        run takes longer, a warning says so before it begins. Not needed where the smaller layer has
        at most 25 units, since ln Z is then exact.
    generator : torch.Generator or int, optional
        Source of randomness, on the model's device, or a seed; a fresh one by default.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal.
    steps : int, optional
        K of the largest runs, at least 32. They are shorter if a doubt about parallel tempering, or
        a mode that images show, takes their time. If it is given, `minutes` is ignored, and the
        same generator gives the same numbers. By default K depends on the speed of the machine.
    tempering_steps : int, optional
        Transitions of single chains for parallel tempering in the first round, at least 5,000; only
        together with `steps`. By default half as many as for AIS and RAISE.
    weights : array or Tensor, shape [N], optional
        Weights of the test images, at least 0 (`boltzmann_likelihood.evaluation.averages`); by
        default all count alike.
    exact : bool
        Whether ln Z is enumerated where that takes seconds. Without that, the estimates for such a
        model can be compared with the truth.
    uniform_start : bool
        Let annealing and parallel tempering start at the uniform distribution, which is the classic
        way to miss a mode.
    tolerance : float
        Width of the 95 % interval, in nats, at which a trusted result is narrow enough: the rest of
        the minutes is then left unspent, if runs of parallel tempering from the model's two
        strongest modes agree to the width of its interval. 0: all minutes are spent. Without effect
        where `steps` are given.

    Returns
    -------
    Evaluation
        Ctrl-C ends the run. The result so far is returned, marked as interrupted; or that of a
        shorter run, unmarked, if one was complete and parallel tempering of the longer one had not
        ended. Its `effort` says how much was run.

    Raises
    ------
    InputError
        If an image is not binary or has the wrong width, a weight is negative, the number of
        weights is wrong or there are weights without images, `minutes`, `steps` or
        `tempering_steps` is not as described, or the model overflows.
    KeyboardInterrupt
        If interrupted before there is any estimate.

    Notes
    -----
    Memory is needed for the images, for about three copies of the model in float32, for the states
    of the chains, for parts of 16 MiB, and 16 bytes each for every image and for every chain-step
    of parallel tempering, of which there are at most 24 million. A million memory-mapped images of
    784 bytes take less than 2 GiB in total. A run that needs more than half of what is free says so
    before it starts.

    For ln p*(v) of a deep model, a hundred states of the hidden units are drawn for each image, and
    a short search looks for states that explain images and are not drawn. Where it finds some, all
    images are drawn anew, around such states as well. Where draws are too few still, these units
    are annealed in 800 chains, in as many steps as AIS takes.

    Without test images, the chains walk through `model.annealed`, an RBM with the same ln Z, and
    draws of it stand in for images: Gibbs chains that begin where annealing does. The average, its
    intervals and the baselines are then NaN. Modes that only images would show are not looked for.

    Examples
    --------
    >>> from paperlib.datasets import binary_images
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(64, 10), torch.zeros(64), torch.zeros(10))
    >>> result = evaluate(rbm, binary_images("digits").test)  # 10 hidden units: exact
    >>> print(f"{result.exact.log_z:.2f} {result.exact.test:.2f}")
    51.29 -44.36
    >>> print(result.word)  # all images are equally probable: worse than independent pixels
    open
    >>> print(evaluate(rbm).summary)
    RBM with 64 visible and 10 hidden units, no test images, ln Z = 51.29 nats, trusted
    """
    effort = requested_effort(minutes, steps, tempering_steps)
    if not 0 <= tolerance < math.inf:
        raise InputError(f"tolerance: expected a number of at least 0, got {tolerance}")
    target = target_of(
        model,
        test,
        train,
        weights,
        exact=exact,
        uniform_start=uniform_start,
        needs_images=False,
        effort=effort,
    )
    generator = resolve_generator(generator, target.model.device)
    [evaluation] = evaluate_alike([target], generator, effort, minutes, progress, tolerance)
    return evaluation


def requested_effort(
    minutes: float, steps: int | None, tempering_steps: int | None
) -> Effort | None:
    """The effort in the steps that a user wants, or None if the minutes decide.

    0 steps of parallel tempering stand for the usual number.
    """
    if not isinstance(minutes, Real) or not 0 < minutes < math.inf:
        raise InputError(f"minutes: expected a positive number, got {minutes!r}")
    if steps is None:
        if tempering_steps is not None:
            raise InputError("tempering_steps: expected together with steps, got it alone")
        return None
    if tempering_steps is not None:
        require_count("tempering_steps", tempering_steps, TEMPERING_STEPS[0])
    return Effort(require_count("steps", steps, FEWEST_STEPS), int(tempering_steps or 0))


@dataclass(frozen=True)
class Target:
    """A model and its checked images, before anything is run: every evaluation starts here.

    Attributes
    ----------
    whole : UnnormalizedModel
        The model that was given, in float64 where float32 is too coarse.
    model : UnnormalizedModel
        What is evaluated: `whole` or, where there are no test images, the RBM with the same ln Z.
    rows : Tensor, shape [N, D]
        The binary test images that count: those of weight zero need no computation. Without test
        images they are placeholders, which draws of the model replace in `find_start`.
    weights : Tensor or None, shape [N]
        Their weights; None if all count alike.
    train : Tensor or None, shape [any, D]
        Binary training images.
    dtype : torch.dtype
        The type in which chains walk.
    exact : bool
        Whether everything is enumerated.
    uniform_start : bool
        Whether chains start at the uniform distribution.
    inputs : Inputs
        What the result says of the files.
    has_images : bool
        Whether there are test images.
    equal_images : EqualImages or None
        The images that are equal; None if all are different.
    """

    whole: UnnormalizedModel
    model: UnnormalizedModel
    rows: Tensor
    weights: Tensor | None
    train: Tensor | None
    dtype: torch.dtype
    exact: bool
    uniform_start: bool
    inputs: Inputs
    has_images: bool = True
    equal_images: EqualImages | None = None

    @property
    def estimated(self) -> bool:
        """Whether ln p*(v) is itself an estimate."""
        return not self.model.is_exact(len(self.rows))

    def cases(self, log_prob: Tensor) -> Tensor | None:
        """For each image with this ln p(v), [N], the case that copies share; None without any."""
        return None if self.equal_images is None else self.equal_images.copies(log_prob)


def target_of(
    model: UnnormalizedModel | ForeignRBM,
    test: ArrayLike | Images | None,
    train: ArrayLike | Images | None = None,
    weights: ArrayLike | None = None,
    *,
    exact: bool = True,
    uniform_start: bool = False,
    needs_images: bool = True,
    effort: Effort | None = None,
) -> Target:
    """Check a model, images and weights; arguments and errors as for `evaluate`.

    Warns where an evaluation with this effort needs more than half of the memory that is free.
    """
    inputs = inputs_of(model, test, train)
    whole = model_of(model)
    has_images = test is not None
    if has_images or needs_images:
        # Fails if they are needed and missing.
        rows = as_binary("test", pixels_of(test), whole.num_visible)
    else:
        # Any rows show whether a model is that of its path.
        rows = _coin_tosses(whole.num_visible)
        if weights is not None:
            raise InputError("weights: expected test images as well, got weights alone")
    if train is not None:
        train = as_binary("train", pixels_of(train), whole.num_visible)
    if weights is not None:
        weights = as_weights("weights", weights, len(rows))
        positive = weights > 0
        rows = rows[positive.to(rows.device)]
        weights = weights[positive]
    if len(rows) < 2:
        raise InputError(f"test: expected at least two images, got {len(rows)}")
    warn_if_large(whole, rows, effort)
    give_back_at_once(whole.annealed.weights)
    require_own_path(whole, rows)
    dtype = chain_dtype(whole)
    # Where float32 is too coarse for the chains, it is so for ln p*(v) and bounds as well.
    if dtype != torch.float32:
        whole = whole.to(dtype=dtype)
    evaluated = whole if has_images else whole.annealed
    exact = exact and evaluated.enumerated_units <= EXACT_UNITS and evaluated.is_exact(len(rows))
    return Target(
        whole=whole,
        model=evaluated,
        rows=rows,
        weights=weights,
        train=train,
        dtype=dtype,
        exact=exact,
        uniform_start=uniform_start,
        inputs=inputs,
        has_images=has_images,
        equal_images=equal_images(rows) if has_images else None,
    )


def _coin_tosses(width: int) -> Tensor:
    return torch.randint(2, (8, width), generator=seeded_generator(0))


def enumerate_target(target: Target) -> Evaluation:
    """The exact value, for a target that is `exact`."""
    double = target.model.to(dtype=torch.float64)
    with before_estimate("enumerating all states of a layer for the exact ln Z"):
        log_z = exact_log_z(double)
        unnormalized = _NOTHING_UNNORMALIZED
        if target.has_images:
            unnormalized = LogUnnormalized(double.exact_log_unnormalized(target.rows))
    rounding = target.model.largest_rounding
    average = NO_AVERAGE
    cases = None
    mean = math.nan
    if target.has_images:
        log_p = unnormalized.values
        cases = target.cases(log_p - log_z)
        average = average_of(
            log_p,
            Uncertain(log_z),
            target.weights,
            cases=cases,
            too_high=rounding,
            too_low=rounding,
        )
        # The same as `average.mean` but for the last digits, which stored results have from here.
        mean = weighted_mean(log_p - log_z, target.weights).item()
    doubts = doubts_above_zero(average)
    return _assemble(
        target,
        average,
        unnormalized,
        cases,
        dtype=torch.float64,
        rounding=rounding,
        exact=ExactResult(log_z, mean, average.image_std_error),
        judgement=Judgement(Verdict.NOT_TRUSTED if doubts else Verdict.TRUSTED, doubts),
        start="none needed",
    )


@dataclass(frozen=True)
class Start:
    """A target with the start of its chains: all that `estimate` needs beside an effort.

    Attributes
    ----------
    target : Target
        The model and its images.
    generator : torch.Generator
        The source of randomness, the same for all targets that are evaluated together.
    seed : int or None
        Its seed, if nothing had been drawn from it.
    runs : AnnealingRuns
        The runs, of which none has been made.
    hidden : HiddenLayers or None
        The hidden layers of a model whose ln p*(v) is an estimate.
    rounding : float
        How far ln Z of the model that is walked may be from that of the model itself, in nats.
    seconds : float
        How long it took to find the start and ln p*(v).
    """

    target: Target
    generator: torch.Generator
    seed: int | None
    runs: AnnealingRuns
    hidden: HiddenLayers | None
    rounding: float
    seconds: float


@before_estimate("computing ln p*(v) of the test images, before any run")
def find_start(target: Target, generator: torch.Generator) -> Start:
    """Find the start and ln p*(v), and stand-ins for images where there are none.

    Some of it draws random numbers.
    """
    began = time.perf_counter()
    model = target.model
    weights = target.weights
    seed = seed_of(generator)
    bias = _visible_bias(target, generator)
    if not target.has_images:
        target = replace(target, rows=_stand_ins(model.annealed, bias, generator))
    rows = target.rows
    hidden = None
    if target.estimated:
        log_p = model.log_unnormalized_of(rows, POSTERIOR_DRAWS, generator)
        hidden = HiddenLayers(cast("DBM | DBN", model), rows, log_p, weights, generator)
    else:
        log_p = model.exact_log_unnormalized(rows)
    walked = model if model.dtype == target.dtype else model.to(dtype=target.dtype)
    rounding = model.distance_to(walked)
    train_units = None
    if target.train is not None:
        train_images = evenly_spread(target.train, SOME_IMAGES).to(model.device)
        train_units = target.whole.annealed_units(train_images, seeded_generator(0, model.device))
    runs = AnnealingRuns(walked, rows, log_p, bias, generator, weights, train_units)
    seconds = time.perf_counter() - began
    return Start(target, generator, seed, runs, hidden, rounding, seconds)


def _visible_bias(target: Target, generator: torch.Generator) -> Tensor | None:
    """The biases of the start, as for `path_to`: None is the uniform distribution."""
    if target.uniform_start:
        return None
    if target.train is not None:
        return start_bias(target.whole, target.train, generator, None)
    if target.has_images:
        return start_bias(target.model, target.rows, generator, target.weights)
    return mean_field_bias(target.model.annealed)


def _stand_ins(rbm: RBM, bias: Tensor | None, generator: torch.Generator) -> Tensor:
    """Draws of a model that stand in for images, by Gibbs chains from this start."""
    if bias is None:
        bias = torch.zeros(rbm.num_visible)
    rates = torch.sigmoid(bias.to(rbm.device, rbm.dtype))
    v = bernoulli(rates.expand(RAISE_VECTORS, -1), generator)
    for _ in range(_STAND_IN_STEPS):
        v = rbm.gibbs_step(v, generator)
    return v


@before_estimate("measuring in pilot runs how long a step takes, before any run that counts")
def affordable(start: Start, minutes: float) -> Effort:
    """The effort that fits the time, found with pilot runs."""
    # ln p*(v) of a deep model has already taken a part of the time; a tenth is left in any case.
    seconds = max(6 * minutes, 60 * minutes - start.seconds)
    tempering_steps = start.runs.affordable_tempering_steps(TEMPERING_SHARE * seconds)
    tempering_seconds = (1 + MODES_WORK) * TEMPERING_SHARE * seconds
    rest = seconds - tempering_seconds
    steps = start.runs.affordable_steps(rest)
    if start.hidden is not None and start.hidden.unsettled:
        seconds_per_step = rest / steps + start.hidden.seconds_per_step()
        steps = max(FEWEST_STEPS, int(rest / seconds_per_step))
    return Effort(steps, tempering_steps, minutes)


def warn_if_too_short(minutes: float, seconds: float) -> None:
    """Warn that even the shortest run takes longer, about these seconds, than the minutes."""
    if seconds <= max(60 * minutes, _NO_WAIT):
        return
    needed = f"{seconds / 60:.1f} minutes" if seconds >= 60 else f"{seconds:.0f} seconds"
    warnings.warn(
        f"minutes: the shortest run takes about {needed} here, more than the {minutes:g} minutes "
        "that were asked for. It is run all the same; Ctrl-C ends it with what is finished by "
        "then.",
        stacklevel=2,
    )


def estimate(start: Start, effort: Effort, progress: bool | None = None) -> Evaluation:
    """Estimate with this effort, doubt and judge; 0 chain-steps stand for the usual number."""
    target = start.target
    runs = start.runs
    hidden = start.hidden
    tempering_steps = effort.tempering_steps or runs.usual_tempering_steps(effort.num_steps)
    if hidden is not None:
        with before_estimate("drawing the hidden layers of the test images, before any run"):
            unnormalized = hidden.refine(effort.num_steps, progress)
        # The brackets of the runs take these as well.
        runs.log_unnormalized = unnormalized.values
    elif target.has_images:
        unnormalized = LogUnnormalized(runs.log_unnormalized)
    else:
        unnormalized = _NOTHING_UNNORMALIZED
    finished = runs.run_up_to(effort.num_steps, tempering_steps, progress)
    average = NO_AVERAGE
    cases: Tensor | None = None
    annealing_warnings: tuple[str, ...] = ()
    image_warnings: tuple[str, ...] = ()
    if target.has_images:
        cases = target.cases(unnormalized.values - finished.known_log_z.value)
        average = _average(target, finished, unnormalized, cases)
        annealing_warnings = find_annealing_warnings(finished, target.estimated)
        if target.train is not None:
            image_warnings = start_warnings(target.train, target.rows, target.weights)
    raise_loss = _lost_by_few_draws(target, unnormalized.values, start.generator)
    doubts = doubts_above_zero(average)
    bound: Uncertain | None = None
    if hidden is not None:
        bound = _variational_bound(target, finished.known_log_z.value, start.generator)
        if finished.tempering is not None:
            doubts += hidden.doubts(finished.tempering.samples)
    remarks: tuple[str, ...] = ()
    if target.dtype == torch.float64:
        remarks = (float64_remark(target.model),)
    return _assemble(
        target,
        average,
        unnormalized,
        cases,
        remarks,
        dtype=target.dtype,
        rounding=start.rounding + target.model.largest_rounding,
        start=_start_in_words(target),
        judgement=judge(finished, annealing_warnings, image_warnings, raise_loss, doubts),
        effort=replace(effort, tempering_steps=tempering_steps),
        seed=start.seed,
        # The draws of the bound are few, and can put it above the estimate by chance.
        variational_bound=None if bound is None else min(bound.value, average.mean),
        variational_bound_error=0.0 if bound is None else bound.std_error,
        **vars(finished),
    )


def _variational_bound(target: Target, log_z: float, generator: torch.Generator) -> Uncertain:
    """The variational lower bound on the average ln p(v), with the error of its draws alone."""
    if target.model.bound_is_proven:
        bounds = target.model.variational_bound(target.rows, generator)
        error = 0.0
    else:
        draws = cast("DBN", target.model).bound_draws(target.rows, generator)
        bounds = draws.mean(1)
        error = _error_of_draws(draws, target.weights)
    return Uncertain(weighted_mean(bounds - log_z, target.weights).item(), error)


def _error_of_draws(draws: Tensor, weights: Tensor | None) -> float:
    """Standard error of the average over rows of the mean of their draws [N, draws]."""
    variances = draws.var(1) / draws.shape[1]
    if weights is None:
        weights = torch.ones_like(variances)
    return math.sqrt((weights.square() @ variances).item()) / weights.sum().item()


def _average(
    target: Target,
    finished: FinishedRuns,
    unnormalized: LogUnnormalized,
    cases: Tensor | None,
) -> ImageAverage:
    """The average test log-probability."""
    log_z = finished.known_log_z + unnormalized.error
    # In float64, all numbers may be so far off. In float32 this is far below their errors.
    rounding = target.model.largest_rounding if target.dtype == torch.float64 else 0.0
    return average_of(
        unnormalized.values,
        log_z,
        target.weights,
        cases=cases,
        too_high=rounding,
        too_low=rounding + unnormalized.missing,
    )


def _start_in_words(target: Target) -> str:
    if target.uniform_start:
        return "the uniform distribution"
    if target.train is None and not target.has_images:
        return "means of the model under mean field"
    return f"base rates of the {'test' if target.train is None else 'training'} images"


def _lost_by_few_draws(target: Target, log_p: Tensor, generator: torch.Generator) -> float:
    """How much the average ln p*(v) falls with as few draws for each image as RAISE has."""
    if not target.model.draws_once_for_raise:
        return 0.0
    few = target.model.log_unnormalized_of(target.rows, CHAINS_PER_VECTOR, generator)
    return max(0.0, weighted_mean(log_p - few, target.weights).item())


def _assemble(
    target: Target,
    average: ImageAverage,
    unnormalized: LogUnnormalized,
    cases: Tensor | None,
    remarks: tuple[str, ...] = (),
    **results: Any,
) -> Evaluation:
    """An evaluation from these results and from all that the target alone decides."""
    baselines = NO_BASELINES
    # At most one sentence.
    behind: tuple[str, ...] = ()
    known_images = 0
    if target.has_images:
        baselines = baselines_of(target.rows, target.train, target.weights)
        behind = baselines.remarks_on(average)
        known_images = baselines.images_in_training(target.rows, target.train)
    if cases is not None:
        different = int(cases.max()) + 1
        copies = (
            f"Of the {len(target.rows):,} test images {different:,} are different. Copies are one "
            "case, so that an interval for other images rests on the different ones."
        )
        remarks = (copies, *remarks)
    if not results["judgement"].has_interval:
        average = average.without_intervals
    return Evaluation(
        num_visible=target.whole.num_visible,
        num_hidden=sum(target.whole.hidden_layers),
        num_images=len(target.rows) if target.has_images else 0,
        average=average,
        model=target.whole.description,
        baselines=baselines,
        remarks=(*behind, *remarks),
        worse_than_baseline=bool(behind),
        known_images=known_images,
        weights=target.weights,
        cases=cases,
        unnormalized=unnormalized,
        inputs=target.inputs,
        **results,
    )


def evaluate_alike(
    targets: Sequence[Target],
    generator: torch.Generator,
    effort: Effort | None,
    minutes: float,
    progress: bool | None,
    tolerance: float = TOLERANCE,
) -> list[Evaluation]:
    """Evaluate all targets with one effort, in their order.

    By default the effort is what narrows all intervals to the tolerance, and at most what fits each
    target's share of the minutes.
    """
    for target in targets:
        # Only checks the device.
        resolve_generator(generator, target.model.device)
    # All starts first, so that draws come in the same order however the effort is chosen.
    starts = [find_start(target, generator) for target in targets if not target.exact]
    if not starts:
        estimates = []
    elif effort is None:
        estimates = _estimate_in_time(starts, minutes, progress, tolerance)
    else:
        estimates = _estimate_all(starts, effort, progress)
    remaining = iter(estimates)
    return [enumerate_target(target) if target.exact else next(remaining) for target in targets]


def _estimate_in_time(
    starts: Sequence[Start], minutes: float, progress: bool | None, tolerance: float
) -> list[Evaluation]:
    """Estimates with one effort, which narrows all intervals to the tolerance if it can."""
    first_share = _FIRST_SHARE if tolerance else 0.0
    efforts = [affordable(start, (1 - first_share) * minutes / len(starts)) for start in starts]
    warn_if_too_short(minutes, sum(start.runs.shortest_seconds for start in starts))
    steps = min(each.num_steps for each in efforts)
    effort = Effort(steps, min(each.tempering_steps for each in efforts), minutes)
    shorter: list[Evaluation] = []
    # A short run may be no shorter than this effort.
    if tolerance and part_of(effort, first_share) != effort:
        shorter, final = _estimate_to_tolerance(starts, effort, progress, tolerance)
        if final:
            return shorter
    longest, _ = _estimate_after(shorter, starts, effort, progress)
    return longest


def _estimate_to_tolerance(
    starts: Sequence[Start], effort: Effort, progress: bool | None, tolerance: float
) -> tuple[list[Evaluation], bool]:
    """Estimates with growing parts of an effort, up to a half of it, and whether they are final.

    The last ones are final where they are trusted, narrow and confirmed, or were interrupted.
    Otherwise the whole effort is needed, and all sources of random numbers are as they were.
    """
    generator = starts[0].generator
    estimates: list[Evaluation] = []
    share = _FIRST_SHARE
    while share < 1 / 2:
        state = generator.get_state()
        part = part_of(effort, share)
        estimates, interrupted = _estimate_after(estimates, starts, part, progress)
        if interrupted:
            return estimates, True
        width = max(each.width for each in estimates)
        settled = all(each.word == Verdict.TRUSTED for each in estimates)
        narrow = settled and width <= tolerance
        try:
            confirmed = narrow and _confirmed(starts, estimates, progress)
        except KeyboardInterrupt:
            return estimates, True
        if confirmed:
            enough = replace(part, tolerance=tolerance)
            return [replace(each, effort=enough) for each in estimates], True
        # The next run gives the same numbers as if nothing had been run before.
        generator.set_state(state)
        for start in starts:
            if start.hidden is not None:
                start.hidden.restart()
        if narrow or not settled:
            break
        share *= _MARGIN * (width / tolerance) ** 2
    return estimates, False


def _estimate_after(
    shorter: list[Evaluation], starts: Sequence[Start], effort: Effort, progress: bool | None
) -> tuple[list[Evaluation], bool]:
    """Estimates of a longer run, and whether they were interrupted.

    If that happens before parallel tempering has ended, the estimates of the shorter run, if there
    are any, are returned as they are.
    """
    try:
        longer = _estimate_all(starts, effort, progress)
    except KeyboardInterrupt:
        if not shorter:
            raise
        return shorter, True
    if shorter and any(each.tempering is None for each in longer):
        return shorter, True
    return longer, any(each.interrupted for each in longer)


def _confirmed(
    starts: Sequence[Start], evaluations: Sequence[Evaluation], progress: bool | None
) -> bool:
    """Whether runs of parallel tempering from the strongest modes give the same ln Z.

    Each has to be within the width of the interval, for every evaluation.

    Where chains hardly change between two phases of a model, an interval is the narrower the less
    of the second phase a run has seen: to stop at narrow intervals selects the wrong ones. Runs
    that begin in either phase then disagree, however many round trips each has made.

    On twelve models with two phases that differ by 0 to 3 nats (Ising lattices in a field, and
    equal weights), and with tolerances of 0.15 to 0.4 nats, 759 of 1,332 evaluations stopped early.
    Their intervals held in 97 %, and so did the narrower half of them. Of 437 intervals of 20,000
    chain-steps that were trusted and narrow enough, and not confirmed, 93 % held, and 89 % of the
    narrower half.
    """
    for start, evaluation in zip(starts, evaluations, strict=True):
        tempering = evaluation.tempering
        if tempering is None:
            return False
        low, high = tempering.interval(LEVEL)
        for other in start.runs.from_strongest_modes(tempering, progress):
            if abs(other.log_z - tempering.log_z) > high - low:
                return False
    return True


def _estimate_all(
    starts: Sequence[Start], effort: Effort, progress: bool | None
) -> list[Evaluation]:
    """Estimates with this effort; after an interruption, with the least effort for the others."""
    estimates: list[Evaluation] = []
    for start in starts:
        evaluation = estimate(start, effort, progress)
        estimates.append(evaluation)
        if evaluation.interrupted:
            # The others get what a report needs, since Ctrl-C is meant for all of them.
            effort = replace(effort, num_steps=FEWEST_STEPS, tempering_steps=TEMPERING_STEPS[0])
    return estimates


def part_of(effort: Effort, share: float) -> Effort:
    """A share of an effort, but no less than is needed."""
    num_steps = max(FEWEST_STEPS, int(share * effort.num_steps))
    tempering_steps = effort.tempering_steps
    # 0 steps of parallel tempering still stand for the usual number.
    if tempering_steps > 0:
        tempering_steps = max(TEMPERING_STEPS[0], int(share * tempering_steps))
    return replace(effort, num_steps=num_steps, tempering_steps=tempering_steps)


def seed_of(generator: torch.Generator) -> int | None:
    """The seed of a generator from which nothing has been drawn yet; None if something has."""
    seed = generator.initial_seed()
    fresh = seeded_generator(seed, generator.device)
    return seed if torch.equal(fresh.get_state(), generator.get_state()) else None
