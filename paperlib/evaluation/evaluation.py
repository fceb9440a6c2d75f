"""The average test log-probability of a model: exact where possible, otherwise from a ladder of temperatures within a budget.

The number and its interval come from parallel tempering. AIS from above, RAISE from below and ladders from the model's own modes look for
reasons to doubt it (`paperlib.evaluation.verdict`). After a first round the rest of the time goes where a doubt is
(`paperlib.evaluation.annealing_runs`). Each doubt that is left becomes a sentence, and another one says how much more time would settle them.

An `Effort` says how much is run: a given number of steps, or as many as fit a given time. The same steps and the same seed give the same
numbers, on a machine of any speed.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import torch
from torch import Tensor

from paperlib.errors import InputError
from paperlib.estimators import dbn_lower_bound
from paperlib.evaluation.annealing_runs import (
    CHAINS_PER_VECTOR,
    FEWEST_STEPS,
    LADDER_SHARE,
    LADDER_STEPS,
    MODES_WORK,
    AnnealingRun,
    AnnealingRuns,
    FinishedRuns,
)
from paperlib.evaluation.baselines import baselines_of, images_in_training, remarks_on
from paperlib.evaluation.reasons import far_off, find_reasons
from paperlib.evaluation.result import Effort, Evaluation, ExactResult
from paperlib.evaluation.targets import (
    POSTERIOR_DRAWS,
    Model,
    as_rows,
    base_rates,
    best_log_unnormalized,
    describe_model,
    enumerated,
    hidden_layers,
    is_estimated,
    log_unnormalized_of,
    smaller_layer,
    start_bias,
    with_enough_digits,
)
from paperlib.evaluation.verdict import (
    ImageAverage,
    average_of,
    judge,
    known_log_z,
    log_z_with_modes,
)
from paperlib.evaluation.weighting import as_weights, weighted_std_error
from paperlib.models import DBM, DBN, PottsRBM
from paperlib.numerics import resolve_generator, seeded_generator, weighted_mean
from paperlib.validation import ArrayLike, require_count

__all__ = [
    "EXACT_UNITS",
    "AnnealingRun",
    "AnnealingRuns",
    "Effort",
    "Evaluation",
    "ExactResult",
    "FinishedRuns",
    "Preparation",
    "base_rates",
    "evaluate",
    "far_off",
    "find_reasons",
    "log_unnormalized_of",
]

# If the smaller layer has at most this many units, all its states are enumerated, in seconds.
EXACT_UNITS = 25
# Draws of the hidden units below the top layer, for the variational bound of a DBN.
_BOUND_DRAWS = 5
# Images at a time for the variational bound of a DBM.
_BOUND_BLOCK = 2_000


def evaluate(
    model: Model,
    test: ArrayLike,
    train: ArrayLike | None = None,
    minutes: float = 2.0,
    generator: torch.Generator | None = None,
    progress: bool | None = None,
    *,
    steps: int | None = None,
    ladder_steps: int | None = None,
    weights: ArrayLike | None = None,
) -> Evaluation:
    """Average ln p(v) of test images under a model, with every available check.

    Parameters
    ----------
    model : RBM, PottsRBM, DBM or DBN
        The model. Chains walk on its device.
    test : array or Tensor, shape [N, D]
        Binary test images of any type, at least two. For a `PottsRBM`, bits or state numbers [N, L].
    train : array or Tensor, shape [any, D], optional
        Binary training images, for the start of the annealing and for the base rates reported beside the value. Without them, both come
        from the test images, whose means RAISE's annealing model then knows.
    minutes : float
        Approximate time to spend, a third of it on the ladder and four ninths where a doubt is; pilot runs choose K and the ladder's steps
        accordingly. Not needed where the smaller layer has at most 25 units, since ln Z is then exact.
    generator : torch.Generator, optional
        Source of randomness, on the model's device; a fresh one by default.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal.
    steps : int, optional
        K of the largest runs, at least 32. They are shorter if a doubt about the ladder takes their time. If it is given, `minutes` is
        ignored, and the same generator gives the same numbers. By default K depends on the speed of the machine.
    ladder_steps : int, optional
        Transitions of single chains for the ladder in the first round, at least 5,000; only together with `steps`. By default half as many as
        for AIS and RAISE.
    weights : array or Tensor, shape [N], optional
        Weights of the test images, at least 0 (`paperlib.evaluation.weighting`); by default all count alike.

    Returns
    -------
    Evaluation
        Ctrl-C ends the run; the result so far is returned, marked as interrupted.

    Raises
    ------
    InputError
        If an image is not binary or has the wrong width, a weight is negative or the number of weights is wrong, `minutes`, `steps` or
        `ladder_steps` is not as described, or the model overflows.
    KeyboardInterrupt
        If interrupted before there is any estimate.

    Notes
    -----
    Beyond the images and the model, memory is needed for 400 chains, for blocks of four million pixels, and 16 bytes each for every image
    and for every chain-step of the ladder, of which there are at most 24 million. A million memory-mapped images of 784 bytes take less
    than 2 GiB in total.

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
    if not 0 < minutes < math.inf:
        raise InputError(f"minutes: expected a positive number, got {minutes}")
    effort = given_effort(steps, ladder_steps)
    prepared = Preparation(model, test, train, weights, generator)
    if prepared.exact:
        return prepared.enumerate()
    if effort is None:
        effort = prepared.affordable(minutes)
    return prepared.run(effort, progress)


def given_effort(steps: int | None, ladder_steps: int | None) -> Effort | None:
    """The effort that was given in steps, with 0 ladder steps for the usual number; None if the time decides.

    Raises
    ------
    InputError
        If there are too few steps, or `ladder_steps` is given alone.

    Examples
    --------
    >>> given_effort(1_000, None)
    Effort(num_steps=1000, ladder_steps=0, minutes=None)
    """
    if steps is None:
        if ladder_steps is not None:
            raise InputError("ladder_steps: expected together with steps, got it alone")
        return None
    ladder = 0 if ladder_steps is None else ladder_steps
    if ladder_steps is not None:
        ladder = require_count("ladder_steps", ladder_steps, LADDER_STEPS[0])
    return Effort(require_count("steps", steps, FEWEST_STEPS), ladder)


class Preparation:
    """A model and its checked test images, before anything is run; `evaluate` and `compare` start from here.

    Parameters
    ----------
    model, test, train, weights, generator
        As for `evaluate`.

    Attributes
    ----------
    exact : bool
        Whether everything can be enumerated.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> Preparation(rbm, [[0, 1, 0], [1, 1, 0]]).exact
    True
    """

    def __init__(
        self,
        model: Model,
        test: ArrayLike,
        train: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        rows = as_rows("test", test, model)
        self._train = None if train is None else as_rows("train", train, model)
        self._weights = None if weights is None else as_weights("weights", weights, len(rows))
        if self._weights is not None:
            # Images of weight zero need no computation.
            kept = self._weights > 0
            rows, self._weights = rows[kept.to(rows.device)], self._weights[kept]
        if len(rows) < 2:
            raise InputError(f"test: expected at least two images, got {len(rows)}")
        self._model, self._said = with_enough_digits(model)
        self._test = rows
        self._generator = resolve_generator(generator, model.device)
        self._estimated = is_estimated(self._model, len(rows))
        self.exact = smaller_layer(self._model) <= EXACT_UNITS and not self._estimated
        self._series: AnnealingRuns | None = None
        self._log_p: Tensor | None = None
        self._seed: int | None = None

    def enumerate(self) -> Evaluation:
        """The exact value, where `exact` says that there is one."""
        log_z, log_p = enumerated(self._model, self._test)
        average = average_of(log_p, log_z, 0.0, math.inf, self._weights)
        mean = weighted_mean(log_p - log_z, self._weights).item()
        error = weighted_std_error(log_p - log_z, self._weights)
        result = self._unfinished("none needed", average)
        return replace(result, exact=ExactResult(log_z, mean, error), log_unnormalized=log_p)

    def affordable(self, minutes: float) -> Effort:
        """The effort that fits the time, found with pilot runs."""
        began = time.perf_counter()
        series = self.prepare()
        # Less the time that ln p*(v) of a deep model has already taken.
        seconds = max(6 * minutes, 60 * minutes - (time.perf_counter() - began))
        ladder_steps = series.affordable_ladder_steps(LADDER_SHARE * seconds)
        of_ladders = (1 + MODES_WORK) * LADDER_SHARE * seconds
        return Effort(series.affordable_steps(seconds - of_ladders), ladder_steps, minutes)

    def run(self, effort: Effort, progress: bool | None = None) -> Evaluation:
        """Estimate with this effort; 0 ladder steps stand for the usual number."""
        series = self.prepare()
        ladder_steps = effort.ladder_steps or series.usual_ladder_steps(effort.num_steps)
        finished = series.run_up_to(effort.num_steps, progress, ladder_steps)
        others: tuple[str, ...] = ()
        if self._train is not None:
            states = self._model.num_states if isinstance(self._model, PottsRBM) else None
            others = far_off(self._train, self._test, self._weights, states)
        reasons = find_reasons(finished, self._estimated)
        judgement = judge(finished, reasons, others, self._lost_by_few_draws())
        kind = "test" if self._train is None else "training"
        average = series.average(finished)
        log_z = known_log_z(finished.runs[-1].ais, finished.ladder)[0]
        return replace(
            self._unfinished(f"base rates of the {kind} images", average),
            runs=finished.runs,
            findings=judgement.findings,
            interrupted=finished.interrupted,
            ladder=finished.ladder,
            judgement=judgement,
            log_z_with_modes=log_z_with_modes(finished),
            effort=replace(effort, ladder_steps=ladder_steps),
            posterior_draws=POSTERIOR_DRAWS if self._estimated else 0,
            variational_bound=self._variational_bound(log_z),
            log_unnormalized=self._log_p,
        )

    def prepare(self) -> AnnealingRuns:
        """Find the start and ln p*(v), for which some models draw random numbers; later calls do not repeat this."""
        if self._series is None:
            model, generator = self._model, self._generator
            self._seed = seed_of(generator)
            images = self._test if self._train is None else self._train
            weights = self._weights if self._train is None else None
            bias = start_bias(model, images, weights, generator)
            self._log_p = best_log_unnormalized(model, self._test, generator)
            # For an RBM it is computed anew in the precision of the chains.
            known = self._log_p if isinstance(model, DBM | DBN) else None
            self._series = AnnealingRuns(model, self._test, bias, generator, self._weights, known)
        return self._series

    def _lost_by_few_draws(self) -> float:
        """How much the average ln p*(v) of a DBN falls with as few draws for each image as RAISE has."""
        model = self._model
        if not isinstance(model, DBN) or self._log_p is None:
            return 0.0
        few = model.log_unnormalized(self._test, CHAINS_PER_VECTOR, self._generator)
        return max(0.0, weighted_mean(self._log_p - few.cpu(), self._weights).item())

    def _variational_bound(self, log_z: float) -> float | None:
        """The average variational lower bound of a deep model, where ln p*(v) is not enumerated."""
        model = self._model
        if not self._estimated:
            return None
        if isinstance(model, DBM):
            values = torch.cat(
                [
                    model.log_unnormalized_bound(block.to(model.device, model.dtype)).cpu()
                    for block in self._test.split(_BOUND_BLOCK)
                ]
            )
            return weighted_mean(values - log_z, self._weights).item()
        assert isinstance(model, DBN)
        found = dbn_lower_bound(model, self._test, log_z, _BOUND_DRAWS, self._generator)
        return weighted_mean(found.values.cpu(), self._weights).item()

    def _unfinished(self, start: str, average: ImageAverage) -> Evaluation:
        """An evaluation with only those fields that are known in every case."""
        baselines = baselines_of(self._model, self._test, self._train, self._weights)
        behind = remarks_on(average, baselines)
        return Evaluation(
            self._model.num_visible,
            sum(hidden_layers(self._model)),
            len(self._test),
            None,
            (),
            (),
            start,
            interrupted=False,
            average=average,
            model=describe_model(self._model),
            items="sequences" if isinstance(self._model, PottsRBM) else "images",
            baselines=baselines,
            remarks=(*behind, *self._said),
            worse_than_baseline=bool(behind),
            known_images=0
            if self._train is None
            else images_in_training(self._test, self._train, baselines),
            seed=self._seed,
            weights=self._weights,
        )


def seed_of(generator: torch.Generator) -> int | None:
    """The seed of a generator from which nothing has been drawn yet; None if something has.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(7)
    >>> before = seed_of(generator)
    >>> _ = torch.rand(1, generator=generator)
    >>> before, seed_of(generator)
    (7, None)
    """
    seed = generator.initial_seed()
    fresh = seeded_generator(seed, generator.device)
    return seed if torch.equal(fresh.get_state(), generator.get_state()) else None
