"""Which checkpoint of a training gives test images the highest probability.

Every checkpoint is evaluated as `evaluate` does it, and gets its verdict. First all of them get a
little of the time. The rest goes to those that could be best: whose interval reaches that of the
best one, or whose number is not trusted and may be anywhere. They are evaluated again one after the
other, the highest average first: where walks miss a part of a model, ln Z comes out too low and the
average too high, so that a first number says at most how good a checkpoint can be. The others keep
their first evaluation.

All checkpoints see the same images, so the best one is compared with each of the others image by
image, as in `compare`. A number that is not trusted cannot be best while there is another.

The best of many checkpoints is chosen with the images that then measure it, so its average is
slightly too high. Choose with validation images, and report the average over test images.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from tqdm import tqdm

from boltzmann_likelihood.evaluation.averages import ImageAverage, Shown
from boltzmann_likelihood.evaluation.compare import difference_of
from boltzmann_likelihood.evaluation.evaluation import (
    Start,
    Target,
    affordable,
    enumerate_target,
    estimate,
    find_start,
    part_of,
    requested_effort,
    seed_of,
    target_of,
    warn_if_too_short,
)
from boltzmann_likelihood.evaluation.printed import Printed, some_names
from boltzmann_likelihood.evaluation.result import Effort, Evaluation, Verdict
from boltzmann_likelihood.sources import ForeignRBM, Images, model_of
from paperlib.errors import InputError
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import resolve_generator
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike

# The first evaluation of all checkpoints takes this share of the time or, where steps are given,
# this share of the steps for each of them.
_SHARE_OF_TIME = 1 / 4
_SHARE_OF_STEPS = 1 / 16
# The rest of the time is divided among at most this many: with more, each would get too little to
# be settled.
_MOST_AGAIN = 6


@dataclass(frozen=True)
class CheckpointLikelihood:
    """One checkpoint of a training.

    Attributes
    ----------
    name : str
        Its name, such as `update_100`.
    evaluation : Evaluation
        What `evaluate` finds, with its verdict.
    behind_best : ImageAverage
        How much higher the best checkpoint's average is, compared image by image, with 95 %
        intervals.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> flat = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> steep = RBM(torch.zeros(3, 2), [2.0, 2.0, -2.0], torch.zeros(2))
    >>> training = evaluate_training([flat, steep], [[1, 1, 0], [1, 0, 0], [1, 1, 0]])
    >>> print(*(each.told_from_best for each in training.checkpoints), sep=", ")
    on these images, no
    """

    name: str
    evaluation: Evaluation
    behind_best: ImageAverage

    @property
    def average(self) -> ImageAverage:
        """The average ln p(v) of the test images, with 95 % intervals."""
        return self.evaluation.average

    @property
    def told_from_best(self) -> Shown | Verdict:
        """Whether the best one is shown to be better.

        `yes` (for all images of this kind), `on these images`, `no` or `not trusted`.
        """
        if self.evaluation.word == Verdict.NOT_TRUSTED:
            return Verdict.NOT_TRUSTED
        return self.behind_best.told_from_zero


@dataclass(frozen=True, repr=False)
class TrainingLikelihood(Printed):
    """The likelihood along a training. `print` shows it as a table in words.

    Attributes
    ----------
    checkpoints : tuple of CheckpointLikelihood
        In the order of training.
    best : int
        Index of the checkpoint with the highest average, counted from 0. One whose verdict is
        `not trusted` is the best only if that is the verdict on all.
    interrupted : bool
        Whether the run was stopped early. The last checkpoints may then be missing, or some be less
        accurate than the time allowed.
    left_out : tuple of str
        A sentence for each checkpoint that was not evaluated, with the reason.
    seed : int or None
        The seed of the generator, if it had not been used before.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> flat = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> steep = RBM(torch.zeros(3, 2), [2.0, 2.0, -2.0], torch.zeros(2))
    >>> test = [[1, 1, 0], [1, 0, 0], [1, 1, 0]]
    >>> training = evaluate_training([flat, steep], test, names=["flat", "steep"])
    >>> training.checkpoints[training.best].name, training.trustworthy, training.as_good
    ('steep', True, ())
    >>> training
    <TrainingLikelihood: 2 checkpoints, steep is best, -1.05 nats, trusted>
    """

    checkpoints: tuple[CheckpointLikelihood, ...]
    best: int
    interrupted: bool
    left_out: tuple[str, ...] = ()
    seed: int | None = None

    @property
    def summary(self) -> str:
        """How many checkpoints there are, and the best one, its average and verdict."""
        best = self.checkpoints[self.best]
        count = f"{len(self.checkpoints)} checkpoints"
        average = f"{best.average.mean:.2f} nats"
        return f"{count}, {best.name} is best, {average}, {best.evaluation.word}"

    @property
    def stored_log_z(self) -> dict[str, float]:
        """ln Z that the files state, in nats, of the models with units 0 and 1, by their names."""
        inputs = {each.name: each.evaluation.inputs for each in self.checkpoints}
        return {
            name: each.stored_log_z - each.log_z_offset
            for name, each in inputs.items()
            if each.stored_log_z is not None
        }

    @property
    def as_good(self) -> tuple[str, ...]:
        """Names of the others that these images do not show to be worse than the best."""
        return tuple(
            each.name
            for number, each in enumerate(self.checkpoints)
            if number != self.best and each.told_from_best == Shown.NO
        )

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the others whose numbers are not trusted and reach that of the best."""
        evaluations = {n: each.evaluation for n, each in enumerate(self.checkpoints)}
        return tuple(
            self.checkpoints[n].name
            for n in _could_be_best(evaluations)
            if n != self.best and evaluations[n].word == Verdict.NOT_TRUSTED
        )

    @property
    def trustworthy(self) -> bool:
        """Whether the best one's number is trusted, and no `unknown` one might be better."""
        return self.checkpoints[self.best].evaluation.trustworthy and not self.unknown

    @property
    def verdict(self) -> str:
        """Where the model was best, and whether its neighbours can be told from it, in words."""
        evaluated = " of those evaluated" if self.left_out else ""
        parts = [f"{self.checkpoints[self.best].name} is best{evaluated}"]
        neighbours = ((self.best - 1, "before", "first"), (self.best + 1, "after", "last"))
        for number, where, end in neighbours:
            if not 0 <= number < len(self.checkpoints):
                parts.append(f"it is the {end}{evaluated}")
                continue
            other = self.checkpoints[number]
            low, high = other.behind_best.interval
            by = f" (by {low:.2f} to {high:.2f} nats)" if math.isfinite(low) else ""
            words = {
                Shown.YES: f"is worse{by}",
                Shown.ON_THESE: f"is worse on these images, which may be chance for others{by}",
                Shown.NO: f"cannot be told from it{by}",
                Verdict.NOT_TRUSTED: f"is {Verdict.NOT_TRUSTED}",
            }
            parts.append(f"{other.name} {where} it {words[other.told_from_best]}")
        return "; ".join(parts)


@plain_torch(gradients=False)
def evaluate_training(
    models: Sequence[UnnormalizedModel | ForeignRBM],
    test: ArrayLike | Images,
    train: ArrayLike | Images | None = None,
    *,
    names: Sequence[str] | None = None,
    minutes: float = 2.0,
    steps: int | None = None,
    tempering_steps: int | None = None,
    weights: ArrayLike | None = None,
    generator: torch.Generator | int | None = None,
    progress: bool | None = None,
    left_out: Callable[[str], object] | None = None,
) -> TrainingLikelihood:
    """The average ln p(v) of test images at every checkpoint of a training, and where it was best.

    Parameters
    ----------
    models : sequence of RBM, DBM, DBN or ForeignRBM
        Checkpoints, such as `read_checkpoints` returns them, with the same visible units, in the
        order of training.
    test, train, weights, generator, progress
        As for `evaluate`. Validation images if a checkpoint is to be chosen.
    names : sequence of str, optional
        Names of the checkpoints; by default `1`, `2`, ...
    minutes : float
        Approximate time to spend on all together, a quarter of it on all checkpoints alike and the
        rest on up to six that could be best. Not needed where ln Z is exact.
    steps, tempering_steps : int, optional
        As for `evaluate`, for each checkpoint that could be best; all of them first get a sixteenth
        of these. The same generator then gives the same numbers.
    left_out : callable, optional
        Called with a sentence for each checkpoint that cannot be evaluated; the others are. None:
        such a checkpoint is an error.

    Returns
    -------
    TrainingLikelihood
        Ctrl-C ends the run; the result so far is returned, marked as interrupted.

    Raises
    ------
    InputError
        As for `evaluate`; if there are no checkpoints, another number of names, or two that share
        their weights.
    KeyboardInterrupt
        If interrupted before there is any result.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> early = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> late = RBM(torch.zeros(3, 2), [2.0, 2.0, -2.0], torch.zeros(2))
    >>> training = evaluate_training([early, late], [[1, 1, 0], [1, 0, 0], [1, 1, 0]])
    >>> for part in training.verdict.split("; "):
    ...     print(part)
    2 is best
    1 before it is worse on these images, which may be chance for others (by 1.03 to 1.03 nats)
    it is the last
    """
    if not isinstance(models, Sequence) or isinstance(models, str) or len(models) == 0:
        raise InputError(f"models: expected a sequence of at least one, got {models!r:.60}")
    labels = [str(n) for n in range(1, len(models) + 1)] if names is None else list(names)
    if len(labels) != len(models):
        raise InputError(f"names: expected {len(models)}, one for each model, got {len(labels)}")
    if len({_addresses(model_of(model, "models")) for model in models}) < len(models):
        raise InputError(
            "models: expected weights of its own for each checkpoint, got the same ones in two; "
            "keep a copy of each, model.to(model.device)"
        )
    effort = requested_effort(minutes, steps, tempering_steps)
    generator = resolve_generator(generator, model_of(models[0]).device)
    seed = seed_of(generator)
    targets: dict[int, Target] = {}
    problems = []
    for number, model in enumerate(models):
        try:
            target = target_of(model, test, train, weights, effort=effort)
            resolve_generator(generator, target.model.device)
            targets[number] = target
        except InputError as error:
            if left_out is None:
                raise
            problems.append(f"{labels[number]} is left out: {error}")
    if not targets:
        raise InputError(f"models: expected one that can be evaluated, got none; {problems[0]}")
    if left_out is not None:
        for problem in problems:
            left_out(problem)
    checkpoints = _Checkpoints(targets, generator, progress)
    interrupted = False
    try:
        checkpoints.evaluate_in_rounds(effort, minutes)
    except KeyboardInterrupt:
        if not checkpoints.evaluations:
            raise
        interrupted = True
        missing = [labels[n] for n in targets if n not in checkpoints.evaluations]
        if missing:
            reason = "left out, since the run was interrupted before"
            problems.append(f"{reason}: {some_names(missing)}")
    evaluations = checkpoints.evaluations
    best = max(
        evaluations,
        key=lambda n: (evaluations[n].word != Verdict.NOT_TRUSTED, evaluations[n].average.mean),
    )
    return TrainingLikelihood(
        tuple(
            CheckpointLikelihood(labels[number], each, difference_of(evaluations[best], each))
            for number, each in evaluations.items()
        ),
        list(evaluations).index(best),
        interrupted,
        tuple(problems),
        seed,
    )


def _addresses(model: UnnormalizedModel) -> tuple[int, ...]:
    """Where the matrices of a model lie in memory."""
    return tuple(tensor.data_ptr() for tensor in model.tensors().values() if tensor.ndim > 1)


class _Checkpoints:
    """The checkpoints of a training by their numbers, and their evaluations so far."""

    def __init__(
        self, targets: Mapping[int, Target], generator: torch.Generator, progress: bool | None
    ) -> None:
        self.evaluations: dict[int, Evaluation] = {}
        self._targets = targets
        self._generator = generator
        self._hide = None if progress is None else not progress
        self._starts: dict[int, Start] = {}
        # Those that can be evaluated better than they have been.
        self._improvable = [number for number, target in targets.items() if not target.exact]

    def evaluate_in_rounds(self, effort: Effort | None, minutes: float) -> None:
        """Evaluate all with little effort, and then those that could be best with the rest.

        Without an effort, both together take this many minutes.
        """
        began = time.perf_counter()
        numbers = list(self._targets)
        first_effort = effort
        if effort is not None:
            first_effort = part_of(effort, _SHARE_OF_STEPS)
        elif self._improvable:
            first_effort = self._affordable(self._improvable, _SHARE_OF_TIME * minutes, minutes)
            last = self._start(self._improvable[-1])
            warn_if_too_short(minutes, len(self._improvable) * last.runs.shortest_seconds)
        for number in tqdm(numbers, "All checkpoints", unit="checkpoint", disable=self._hide):
            self._evaluate(number, first_effort)
        candidates = self._candidates()
        if effort is None and candidates:
            candidates = candidates[:_MOST_AGAIN]
            spent = (time.perf_counter() - began) / 60
            minutes_left = max(minutes / 2, minutes - spent)
            effort = self._affordable(candidates, minutes_left, minutes)
        count = len(candidates)
        title = "Those that could be best"
        with tqdm(total=count, desc=title, unit="checkpoint", disable=self._hide) as bar:
            for _ in range(count):
                # Each evaluation can show that others are not, or might be, the best.
                candidates = self._candidates()
                if not candidates:
                    break
                self._improvable.remove(candidates[0])
                self._evaluate(candidates[0], effort)
                bar.update()

    def _start(self, number: int) -> Start:
        """The start of a checkpoint, which draws random numbers when it is first run."""
        if number not in self._starts:
            self._starts[number] = find_start(self._targets[number], self._generator)
        return self._starts[number]

    def _affordable(self, numbers: Sequence[int], minutes_left: float, minutes: float) -> Effort:
        """The effort for each of these that fits what is left of the minutes."""
        # The checkpoints of a training are alike, so that one of them says how much time they take.
        effort = affordable(self._start(numbers[-1]), minutes_left / len(numbers))
        return replace(effort, minutes=minutes)

    def _evaluate(self, number: int, effort: Effort | None) -> None:
        """Evaluate a checkpoint; raise KeyboardInterrupt if that was interrupted."""
        target = self._targets[number]
        if effort is None or target.exact:
            each = enumerate_target(target)
        else:
            each = estimate(self._start(number), effort, progress=False)
        if not (each.interrupted and self.evaluations):
            # None can be repeated on its own, since all draw from one generator.
            self.evaluations[number] = replace(each, seed=None)
        if each.interrupted:
            raise KeyboardInterrupt

    def _candidates(self) -> list[int]:
        """Those that could be best and have been evaluated once only, the highest average first."""
        numbers = [n for n in _could_be_best(self.evaluations) if n in self._improvable]
        return sorted(numbers, key=lambda n: self.evaluations[n].average.mean, reverse=True)


def _could_be_best(evaluations: Mapping[int, Evaluation]) -> list[int]:
    """Those that could reach the best one's interval: where not trusted, by what is proven."""
    lows = [
        each.average.interval[0]
        for each in evaluations.values()
        if each.word != Verdict.NOT_TRUSTED
    ]
    least = max(lows, default=-math.inf)
    highest = {
        number: each.average.interval[1] if each.has_interval else each.largest_average
        for number, each in evaluations.items()
    }
    return [number for number, high in highest.items() if high >= least]
