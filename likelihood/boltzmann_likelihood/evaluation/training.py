"""Which checkpoint of a training gives the test images the highest probability, and whether that could be chance.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

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
from boltzmann_likelihood.evaluation.printed import Printed
from boltzmann_likelihood.evaluation.result import Effort, Evaluation, Verdict
from boltzmann_likelihood.sources import ForeignRBM, Images, model_of
from paperlib.errors import InputError
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import resolve_generator
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike

# The first evaluation of all checkpoints takes this share of the time or, where steps are given, of
# the steps for each of them.
_SHARE_OF_TIME = 1 / 4
_SHARE_OF_STEPS = 1 / 16
# Among at most so many the rest of the time is divided: with more, each would get too little to be
# settled.
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
    >>> flat, steep = (RBM(torch.zeros(3, 2), bias, torch.zeros(2)) for bias in (torch.zeros(3), [2.0, 2.0, -2.0]))
    >>> found = evaluate_training([flat, steep], [[1, 1, 0], [1, 0, 0], [1, 1, 0]])
    >>> print(*(each.told_from_best for each in found.checkpoints), sep=", ")
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
    def told_from_best(self) -> str:
        """Whether the best one is shown to be better, as `yes` (for all images of this kind), `on these images`, `no` or `not trusted`."""
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
        Index of the checkpoint with the highest average, counted from 0; of those that are not
        distrusted, if there are any.
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
    >>> flat, steep = (RBM(torch.zeros(3, 2), bias, torch.zeros(2)) for bias in (torch.zeros(3), [2.0, 2.0, -2.0]))
    >>> found = evaluate_training([flat, steep], [[1, 1, 0], [1, 0, 0], [1, 1, 0]], names=["flat", "steep"])
    >>> found.checkpoints[found.best].name, found.trustworthy, found.as_good
    ('steep', True, ())
    >>> found
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
        """Names of the other checkpoints that these images do not show to be worse than the best."""
        return tuple(
            each.name
            for number, each in enumerate(self.checkpoints)
            if number != self.best and each.told_from_best == Shown.NO
        )

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the other checkpoints whose numbers are not trusted and reach that of the best."""
        found = {n: each.evaluation for n, each in enumerate(self.checkpoints)}
        reach = _could_be_best(found)
        return tuple(
            self.checkpoints[n].name
            for n in reach
            if n != self.best and found[n].word == Verdict.NOT_TRUSTED
        )

    @property
    def trustworthy(self) -> bool:
        """Whether nothing speaks against the best one's number, and no other one that is not trusted might be better."""
        return self.checkpoints[self.best].evaluation.trustworthy and not self.unknown

    @property
    def verdict(self) -> str:
        """A sentence that says where the model was best and which neighbouring checkpoints can be told from it."""
        parts = [f"{self.checkpoints[self.best].name} is best"]
        for number, where in ((self.best - 1, "before"), (self.best + 1, "after")):
            if not 0 <= number < len(self.checkpoints):
                parts.append(f"it is the {'first' if where == 'before' else 'last'}")
                continue
            other = self.checkpoints[number]
            low, high = other.behind_best.interval
            by = f" (by {low:.2f} to {high:.2f} nats)" if math.isfinite(low) else ""
            word = {
                Shown.YES: f"is worse{by}",
                Shown.ON_THESE: f"is worse on these images, which may be chance for others{by}",
                Shown.NO: f"cannot be told from it{by}",
                Verdict.NOT_TRUSTED: f"is {Verdict.NOT_TRUSTED}",
            }[other.told_from_best]
            parts.append(f"{other.name} {where} it {word}")
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
    """The average ln p(v) of test images at every checkpoint of a training, with intervals, and where it was highest.

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
    >>> early, late = (RBM(torch.zeros(3, 2), bias, torch.zeros(2)) for bias in (torch.zeros(3), [2.0, 2.0, -2.0]))
    >>> evaluate_training([early, late], [[1, 1, 0], [1, 0, 0], [1, 1, 0]]).verdict
    '2 is best; 1 before it is worse on these images, which may be chance for others (by 1.03 to 1.03 nats); it is the last'
    """
    if not isinstance(models, Sequence) or isinstance(models, str) or len(models) == 0:
        raise InputError(f"models: expected a sequence of at least one, got {models!r:.60}")
    labels = [str(n) for n in range(1, len(models) + 1)] if names is None else list(names)
    if len(labels) != len(models):
        raise InputError(f"names: expected {len(models)}, one for each model, got {len(labels)}")
    if len({_places(model_of(model)) for model in models}) < len(models):
        raise InputError(
            "models: expected weights of its own for each checkpoint, got the same ones in two; keep a copy of each, model.to(model.device)"
        )
    asked = requested_effort(minutes, steps, tempering_steps)
    generator = resolve_generator(generator, model_of(models[0]).device)
    seed = seed_of(generator)
    targets: dict[int, Target] = {}
    problems = []
    for number, model in enumerate(models):
        try:
            target = target_of(model, test, train, weights, effort=asked)
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
    starts = _Starts(targets, generator)
    found: dict[int, Evaluation] = {}
    interrupted = False
    hide = None if progress is None else not progress
    try:
        for title, numbers, most, effort in _rounds(starts, found, asked, minutes):
            for number in tqdm(numbers, title, most, unit="checkpoint", disable=hide):
                if effort is None or targets[number].exact:
                    each = enumerate_target(targets[number])
                else:
                    each = estimate(starts[number], effort, progress=False)
                if not (each.interrupted and found):
                    # None can be repeated on its own, since all draw from one generator.
                    found[number] = replace(each, seed=None)
                if each.interrupted:
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        if not found:
            raise
        interrupted = True
    best = max(found, key=lambda n: (found[n].word != Verdict.NOT_TRUSTED, found[n].average.mean))
    return TrainingLikelihood(
        tuple(
            CheckpointLikelihood(labels[number], each, difference_of(found[best], each))
            for number, each in found.items()
        ),
        list(found).index(best),
        interrupted,
        tuple(problems),
        seed,
    )


class _Starts(dict[int, Start]):
    """Where the chains of each checkpoint start.

    Finding that draws random numbers, so it is done when a checkpoint is first run.
    """

    def __init__(self, targets: Mapping[int, Target], generator: torch.Generator) -> None:
        super().__init__()
        self.targets = targets
        self._generator = generator

    def __missing__(self, number: int) -> Start:
        self[number] = find_start(self.targets[number], self._generator)
        return self[number]


def _places(model: UnnormalizedModel) -> tuple[int, ...]:
    """Where the matrices of a model lie in memory."""
    return tuple(tensor.data_ptr() for tensor in model.tensors().values() if tensor.ndim > 1)


def _rounds(
    starts: _Starts,
    found: Mapping[int, Evaluation],
    asked: Effort | None,
    minutes: float,
) -> Iterator[tuple[str, Iterable[int], int, Effort | None]]:
    """Which checkpoints are to be evaluated, how many at most, and with which effort; the second time it depends on what is found meanwhile."""
    began = time.perf_counter()
    rest = [number for number, target in starts.targets.items() if not target.exact]

    def effort_for(numbers: Sequence[int], minutes_left: float) -> Effort:
        # The checkpoints of a training are alike, so that one of them says how much time they take.
        effort = affordable(starts[numbers[-1]], minutes_left / len(numbers))
        return replace(effort, minutes=minutes)

    def could_be_best() -> list[int]:
        """Those that have been evaluated once only, the highest average first."""
        reach = [number for number in _could_be_best(found) if number in rest]
        return sorted(reach, key=lambda number: found[number].average.mean, reverse=True)

    def again() -> Iterator[int]:
        while reach := could_be_best():
            rest.remove(reach[0])
            yield reach[0]

    first = asked
    if asked is not None:
        first = part_of(asked, _SHARE_OF_STEPS)
    elif rest:
        first = effort_for(rest, _SHARE_OF_TIME * minutes)
        warn_if_too_short(minutes, len(rest) * starts[rest[-1]].runs.shortest_seconds)
    yield "All checkpoints", list(starts.targets), len(starts.targets), first
    chosen = could_be_best()[: _MOST_AGAIN if asked is None else None]
    if asked is None and chosen:
        spent = (time.perf_counter() - began) / 60
        asked = effort_for(chosen, max(minutes / 2, minutes - spent))
    yield "Those that could be best", islice(again(), len(chosen)), len(chosen), asked


def _could_be_best(found: Mapping[int, Evaluation]) -> list[int]:
    """Those that could reach the best one's interval: where not trusted, by what is proven."""
    lows = [each.average.interval[0] for each in found.values() if each.word != Verdict.NOT_TRUSTED]
    least = max(lows, default=-math.inf)
    highest = {
        number: each.average.interval[1] if each.has_interval else each.largest_average
        for number, each in found.items()
    }
    return [number for number, high in highest.items() if high >= least]
