"""The average test log-probability of a model: exact where possible, otherwise from parallel tempering within a budget.

The number and its interval come from parallel tempering. AIS from above, RAISE from below and parallel tempering from the model's own modes
look for reasons to doubt it (`boltzmann_likelihood.evaluation.verdict`). After a first round the rest of the time goes where a doubt is
(`boltzmann_likelihood.evaluation.annealing_runs`). Each doubt that is left becomes a warning, and a sentence says how much more time would settle them.

An `Effort` says how much is run: a given number of steps, or as many as fit a given time. The same steps and the same seed give the same
numbers, on a machine of any speed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from boltzmann_likelihood.evaluation.annealing_runs import (
    CHAINS_PER_VECTOR,
    FEWEST_STEPS,
    MODES_WORK,
    TEMPERING_SHARE,
    TEMPERING_STEPS,
    AnnealingRuns,
)
from boltzmann_likelihood.evaluation.averages import (
    ImageAverage,
    as_weights,
    average_of,
    weighted_std_error,
)
from boltzmann_likelihood.evaluation.baselines import baselines_of, far_off
from boltzmann_likelihood.evaluation.hidden_layers import POSTERIOR_DRAWS, HiddenLayers
from boltzmann_likelihood.evaluation.precision import chain_dtype, float64_remark
from boltzmann_likelihood.evaluation.result import (
    NOT_TRUSTED,
    TRUSTED,
    Effort,
    Evaluation,
    ExactResult,
    FinishedRuns,
    Judgement,
    LogUnnormalized,
)
from boltzmann_likelihood.evaluation.verdict import find_warnings, impossible, judge
from paperlib.annealing import require_own_path, start_bias
from paperlib.errors import InputError
from paperlib.estimators import exact_log_z
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import joined_error, resolve_generator, seeded_generator, weighted_mean
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, as_binary, require_count

if TYPE_CHECKING:
    from paperlib.models import DBM, DBN

# If the smaller layer has at most this many units, all its states are enumerated, in seconds.
EXACT_UNITS = 25
# An interval of 95 % that is no wider, in nats, is narrow enough.
TOLERANCE = 0.01
# What of the minutes is spent before the width of the interval is looked at; also how much longer than it seems to need a run is made.
_FIRST_SHARE, _MARGIN = 1 / 16, 1.5


@plain_torch(gradients=False)
def evaluate(
    model: UnnormalizedModel,
    test: ArrayLike,
    train: ArrayLike | None = None,
    minutes: float = 2.0,
    generator: torch.Generator | None = None,
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
    model : RBM, DBM or DBN
        The model. Chains walk on its device.
    test : array or Tensor, shape [N, D]
        Binary test images of any type, at least two.
    train : array or Tensor, shape [any, D], optional
        Binary training images, for the start of the annealing and for the base rates reported beside the value. Without them, both come
        from the test images, whose means RAISE's annealing model then knows.
    minutes : float
        Approximate time to spend, a third of it on parallel tempering and four ninths where a doubt is; pilot runs choose K and the steps
        of parallel tempering accordingly. Not needed where the smaller layer has at most 25 units, since ln Z is then exact.
    generator : torch.Generator, optional
        Source of randomness, on the model's device; a fresh one by default.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal.
    steps : int, optional
        K of the largest runs, at least 32. They are shorter if a doubt about parallel tempering takes their time. If it is given, `minutes`
        is ignored, and the same generator gives the same numbers. By default K depends on the speed of the machine.
    tempering_steps : int, optional
        Transitions of single chains for parallel tempering in the first round, at least 5,000; only together with `steps`. By default half
        as many as for AIS and RAISE.
    weights : array or Tensor, shape [N], optional
        Weights of the test images, at least 0 (`boltzmann_likelihood.evaluation.averages`); by default all count alike.
    exact : bool
        Whether ln Z is enumerated where that takes seconds. Without that, the estimates for such a model can be compared with the truth.
    uniform_start : bool
        Let annealing and parallel tempering start at the uniform distribution, which is the classic way to miss a mode.
    tolerance : float
        Width of the 95 % interval, in nats, at which a trusted result is narrow enough: the rest of the minutes is then left unspent. 0: all of
        them are spent. Without effect where `steps` are given.

    Returns
    -------
    Evaluation
        Ctrl-C ends the run; the result so far is returned, marked as interrupted.

    Raises
    ------
    InputError
        If an image is not binary or has the wrong width, a weight is negative or the number of weights is wrong, `minutes`, `steps` or
        `tempering_steps` is not as described, or the model overflows.
    KeyboardInterrupt
        If interrupted before there is any estimate.

    Notes
    -----
    Beyond the images and the model, memory is needed for 400 chains, for blocks of four million pixels, and 16 bytes each for every image
    and for every chain-step of parallel tempering, of which there are at most 24 million. A million memory-mapped images of 784 bytes take
    less than 2 GiB in total.

    Where a hundred draws of the hidden units for each image are too few for ln p*(v) of a deep model, these units are annealed in 800
    chains, in as many steps as AIS takes.

    Examples
    --------
    >>> from paperlib.datasets import binary_images
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(64, 10), torch.zeros(64), torch.zeros(10))
    >>> result = evaluate(rbm, binary_images("digits").test)  # 10 hidden units: exact
    >>> print(f"{result.exact.log_z:.2f} {result.exact.test:.2f}")
    51.29 -44.36
    >>> result.word  # every image is as probable as any other, which is worse than independent pixels
    'open'
    """
    effort = given_effort(minutes, steps, tempering_steps)
    if not 0 <= tolerance < math.inf:
        raise InputError(f"tolerance: expected a number of at least 0, got {tolerance}")
    checked = Preparation(model, test, train, weights, generator, exact, uniform_start)
    [found] = evaluate_alike([checked], effort, minutes, progress, tolerance)
    return found


def given_effort(minutes: float, steps: int | None, tempering_steps: int | None) -> Effort | None:
    """The effort that was given in steps, with 0 steps of parallel tempering for the usual number; None if the minutes decide."""
    if not 0 < minutes < math.inf:
        raise InputError(f"minutes: expected a positive number, got {minutes}")
    if steps is None:
        if tempering_steps is not None:
            raise InputError("tempering_steps: expected together with steps, got it alone")
        return None
    if tempering_steps is not None:
        require_count("tempering_steps", tempering_steps, TEMPERING_STEPS[0])
    return Effort(require_count("steps", steps, FEWEST_STEPS), int(tempering_steps or 0))


class Preparation:
    """A model and its checked test images, before anything is run: `evaluate`, `compare` and `audit` start here.

    `rows` are the images that count, and `exact` says that everything can be enumerated.
    """

    # The hidden layers of a model whose ln p*(v) is an estimate, from `start` on.
    _hidden: HiddenLayers | None = None

    def __init__(
        self,
        model: UnnormalizedModel,
        test: ArrayLike,
        train: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        generator: torch.Generator | None = None,
        exact: bool = True,
        uniform_start: bool = False,
    ) -> None:
        rows = as_binary("test", test, model.num_visible)
        self._train = None if train is None else as_binary("train", train, model.num_visible)
        self._weights = None if weights is None else as_weights("weights", weights, len(rows))
        if self._weights is not None:
            # Images of weight zero need no computation.
            kept = self._weights > 0
            rows, self._weights = rows[kept.to(rows.device)], self._weights[kept]
        if len(rows) < 2:
            raise InputError(f"test: expected at least two images, got {len(rows)}")
        self.rows = rows
        require_own_path(model, rows)
        self._dtype = chain_dtype(model)
        # Where float32 is too coarse for the chains, it is so for ln p*(v) and bounds as well.
        self._model = model if self._dtype == torch.float32 else model.to(dtype=self._dtype)
        self.generator = resolve_generator(generator, model.device)
        self._estimated = not model.is_exact(len(rows))
        self.exact = exact and model.enumerated_units <= EXACT_UNITS and not self._estimated
        self._uniform_start = uniform_start
        self._series: AnnealingRuns | None = None
        self._seed: int | None = None
        self._spent = 0.0

    def evaluate(self, effort: Effort | None, progress: bool | None = None) -> Evaluation:
        """The exact value, where `exact` says that there is one, otherwise an estimate with this effort."""
        if self.exact or effort is None:
            return self.enumerated
        return self.anneal(effort, progress)

    @cached_property
    def enumerated(self) -> Evaluation:
        """The exact value, where `exact` says that there is one."""
        double = self._model.to(dtype=torch.float64)
        log_z, log_p = exact_log_z(double), double.exact_log_unnormalized(self.rows)
        rounding = self._model.largest_rounding
        average = average_of(
            log_p, log_z, 0.0, math.inf, self._weights, too_high=rounding, too_low=rounding
        )
        doubts = impossible(average)
        mean = weighted_mean(log_p - log_z, self._weights).item()
        error = weighted_std_error(log_p - log_z, self._weights)
        exact = ExactResult(log_z, mean, error)
        return self._found(
            average,
            LogUnnormalized(log_p),
            dtype=torch.float64,
            rounding=rounding,
            exact=exact,
            judgement=Judgement(NOT_TRUSTED if doubts else TRUSTED, doubts),
            start="none needed",
        )

    def start(self) -> AnnealingRuns:
        """Find the start and ln p*(v), for which some models draw random numbers; later calls do not repeat this."""
        if self._series is None:
            began = time.perf_counter()
            model, generator = self._model, self.generator
            self._seed = seed_of(generator)
            images = self.rows if self._train is None else self._train
            weights = self._weights if self._train is None else None
            bias = None if self._uniform_start else start_bias(model, images, generator, weights)
            if self._estimated:
                log_p = model.log_unnormalized_of(self.rows, POSTERIOR_DRAWS, generator)
                deep = cast("DBM | DBN", model)
                self._hidden = HiddenLayers(deep, self.rows, log_p, self._weights, generator)
            else:
                log_p = model.exact_log_unnormalized(self.rows)
            walked = model.to(dtype=self._dtype)
            # How far ln Z of the model that is walked may be from that of the model itself.
            self._rounding = model.distance_to(walked)
            self._series = AnnealingRuns(walked, self.rows, log_p, bias, generator, self._weights)
            self._spent = time.perf_counter() - began
        return self._series

    def affordable(self, minutes: float) -> Effort:
        """The effort that fits the time, found with pilot runs."""
        series = self.start()
        # Less the time that ln p*(v) of a deep model has already taken.
        seconds = max(6 * minutes, 60 * minutes - self._spent)
        tempering_steps = series.affordable_tempering_steps(TEMPERING_SHARE * seconds)
        of_tempering = (1 + MODES_WORK) * TEMPERING_SHARE * seconds
        rest = seconds - of_tempering
        steps = series.affordable_steps(rest)
        if self._hidden is not None and self._hidden.unsettled:
            steps = max(FEWEST_STEPS, int(rest / (rest / steps + self._hidden.seconds_per_step())))
        return Effort(steps, tempering_steps, minutes)

    def anneal(self, effort: Effort, progress: bool | None = None) -> Evaluation:
        """Estimate with this effort, doubt and judge; 0 steps of parallel tempering stand for the usual number."""
        series, model = self.start(), self._model
        tempering_steps = effort.tempering_steps or series.usual_tempering_steps(effort.num_steps)
        found = LogUnnormalized(series.log_unnormalized)
        if self._hidden is not None:
            found = self._hidden.refine(effort.num_steps, progress)
            series.log_unnormalized = found.values
        finished = series.run_up_to(effort.num_steps, tempering_steps, progress)
        others: tuple[str, ...] = ()
        if self._train is not None:
            others = far_off(self._train, self.rows, self._weights)
        of_runs = find_warnings(finished, self._estimated)
        average = self._average(finished, found)
        lost, doubts, bound = self._lost_by_few_draws(found.values), impossible(average), None
        if (hidden := self._hidden) is not None:
            below = model.variational_bound(self.rows, self.generator)
            bound = weighted_mean(below - finished.known_log_z[0], self._weights).item()
            if finished.tempering is not None:
                doubts += hidden.doubts(finished.tempering.samples)
        judgement = judge(finished, of_runs, others, lost, doubts)
        return self._found(
            average,
            found,
            dtype=self._dtype,
            rounding=self._rounding + model.largest_rounding,
            start=self._start_in_words(),
            judgement=judgement,
            effort=replace(effort, tempering_steps=tempering_steps),
            variational_bound=bound,
            **vars(finished),
        )

    def _average(self, finished: FinishedRuns, found: LogUnnormalized) -> ImageAverage:
        """The average test log-probability."""
        log_z, std_error, freedom = finished.known_log_z
        if found.draws:
            std_error, freedom = joined_error((std_error, freedom), found.error)
        # In float64, all numbers may be so far off. In float32 this is far below their errors.
        rounding = self._model.largest_rounding if self._dtype == torch.float64 else 0.0
        return average_of(
            found.values,
            log_z,
            std_error,
            freedom,
            self._weights,
            too_high=rounding,
            too_low=rounding + found.missing,
        )

    def _start_in_words(self) -> str:
        if self._uniform_start:
            return "the uniform distribution"
        return f"base rates of the {'test' if self._train is None else 'training'} images"

    def _lost_by_few_draws(self, log_p: Tensor) -> float:
        """How much the average ln p*(v) falls with as few draws for each image as RAISE has."""
        if not self._model.draws_once_for_raise:
            return 0.0
        few = self._model.log_unnormalized_of(self.rows, CHAINS_PER_VECTOR, self.generator)
        return max(0.0, weighted_mean(log_p - few, self._weights).item())

    def _found(
        self, average: ImageAverage, unnormalized: LogUnnormalized, **found: Any
    ) -> Evaluation:
        """An evaluation with what is known in every case, and with what else was found."""
        baselines = baselines_of(self.rows, self._train, self._weights)
        behind, said = baselines.remarks_on(average), ()
        if self._dtype == torch.float64 and "exact" not in found:
            said = (float64_remark(self._model),)
        return Evaluation(
            num_visible=self._model.num_visible,
            num_hidden=sum(self._model.hidden_layers),
            num_images=len(self.rows),
            average=average,
            model=self._model.description,
            baselines=baselines,
            remarks=(*behind, *said),
            worse_than_baseline=bool(behind),
            known_images=baselines.images_in_training(self.rows, self._train),
            seed=self._seed,
            weights=self._weights,
            unnormalized=unnormalized,
            **found,
        )


def evaluate_alike(
    prepared: Sequence[Preparation],
    effort: Effort | None,
    minutes: float,
    progress: bool | None,
    tolerance: float = TOLERANCE,
) -> list[Evaluation]:
    """Evaluate all with one effort, by default as much as narrows their intervals to the tolerance and fits their share of the time."""
    inexact = [part for part in prepared if not part.exact]
    for part in inexact:
        # In the same order, whether or not the effort depends on the clock.
        part.start()
    if not inexact or effort is not None:
        return _evaluate_all(prepared, effort, progress)
    first_share = _FIRST_SHARE if tolerance else 0.0
    efforts = [part.affordable((1 - first_share) * minutes / len(inexact)) for part in inexact]
    steps = min(each.num_steps for each in efforts)
    effort = Effort(steps, min(each.tempering_steps for each in efforts), minutes)
    share, found = first_share, []
    while 0 < share < 1 / 2:
        states = [part.generator.get_state() for part in inexact]
        found = _evaluate_all(prepared, part_of(effort, share), progress)
        width = max(each.average.interval[1] - each.average.interval[0] for each in found)
        settled = all(each.word == TRUSTED for each in found)
        if settled and width <= tolerance:
            of_part = replace(part_of(effort, share), tolerance=tolerance)
            return [replace(each, effort=each.effort and of_part) for each in found]
        if any(each.interrupted for each in found):
            return found
        # The same numbers as if nothing had been run before.
        for part, state in zip(inexact, states, strict=True):
            part.generator.set_state(state)
        share *= _MARGIN * (width / tolerance) ** 2 if settled else math.inf
    try:
        last = _evaluate_all(prepared, effort, progress)
    except KeyboardInterrupt:
        if not found:
            raise
        return found
    # Whoever stops it before parallel tempering has ended gets the estimates of the shorter run.
    return found if found and any(each.source == "AIS" for each in last) else last


def part_of(effort: Effort, share: float) -> Effort:
    """A share of an effort, but no less than is needed; 0 steps of parallel tempering still stand for the usual number."""
    tempering_steps = effort.tempering_steps
    return replace(
        effort,
        num_steps=max(FEWEST_STEPS, int(share * effort.num_steps)),
        tempering_steps=tempering_steps and max(TEMPERING_STEPS[0], int(share * tempering_steps)),
    )


def _evaluate_all(
    prepared: Sequence[Preparation], effort: Effort | None, progress: bool | None
) -> list[Evaluation]:
    found: list[Evaluation] = []
    for part in prepared:
        found.append(part.evaluate(effort, progress))
        if effort is not None and found[-1].interrupted:
            # The others get what a report needs, since Ctrl-C is meant for all of them.
            effort = replace(effort, num_steps=FEWEST_STEPS, tempering_steps=TEMPERING_STEPS[0])
    return found


def seed_of(generator: torch.Generator) -> int | None:
    """The seed of a generator from which nothing has been drawn yet; None if something has."""
    seed = generator.initial_seed()
    fresh = seeded_generator(seed, generator.device)
    return seed if torch.equal(fresh.get_state(), generator.get_state()) else None
