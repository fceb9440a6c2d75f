"""The likelihood along training: which checkpoint gives the test images the highest probability, and whether that could be chance.

ln Z of the checkpoints is enumerated where a layer is small. Otherwise it comes from one walk through all of them
(`paperlib.estimators.log_z_along_training`), which is done twice: first with an eighth of the work, so that a later interruption
still leaves a result. The walk is checked in three ways: it has its own warnings; no estimate may lie below the proven bound on ln Z; and at
the best checkpoint and at the last one, parallel tempering, which knows nothing of training, must find the same ln Z.

Alternatively, each checkpoint gets its own run of parallel tempering (`by="ladder"`). If cooling a model meets no jump, this is more
accurate for the same work; if it does, parallel tempering's warnings say so.

All checkpoints see the same images, so differences are taken image by image, as in `compare`. Chains that walk through two checkpoints
make errors that the two share; these also cancel in the difference.

The best of many checkpoints is chosen with the images that then measure it, so its average is slightly too high. Choose with validation
images, and report the average over test images.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from tqdm import tqdm

from paperlib.annealing import BaseRatePath, TrajectoryPath, start_bias
from paperlib.errors import InputError
from paperlib.estimators import (
    TemperingEstimate,
    TrajectoryEstimate,
    exact_log_z,
    log_z_along_training,
    parallel_tempering,
)
from paperlib.estimators.estimate import interval_of
from paperlib.evaluation.annealing_runs import seconds_of
from paperlib.evaluation.averages import LEVEL, ImageAverage, average_of
from paperlib.evaluation.evaluation import EXACT_UNITS
from paperlib.evaluation.precision import chain_dtype
from paperlib.evaluation.verdict import SMALL, impossible
from paperlib.models import RBM
from paperlib.models.bounds import log_z_lower_bound
from paperlib.models.rbm import as_rbm
from paperlib.numerics import joined_error, resolve_generator
from paperlib.validation import ArrayLike, as_binary, require_count

EXACT, TRAJECTORY, TEMPERING = "exact", "trajectory", "ladder"
# Shares of the chain-steps that the first of the two walks and each check by parallel tempering take.
_FIRST_SHARE, _CHECK_SHARE = 1 / 8, 1 / 8
_CHAINS, _POPULATIONS = 100, 10
# Fewest and most chain-steps of the walk for each checkpoint; it needs at least two for each of its chains.
_FEWEST, _MOST = 2 * _CHAINS * _POPULATIONS, 2_000_000
_FEWEST_OF_TEMPERING = 5_000
# Number of images from which the search for the proven bound starts.
_SEARCHED = 50


@dataclass(frozen=True)
class CheckpointLikelihood:
    """One checkpoint of a training.

    Attributes
    ----------
    name : str
        Its name, such as `update_100`.
    log_z : float
        ln Z in nats.
    log_z_interval : tuple of float
        95 % interval (low, high); both ends are `log_z` where it is exact.
    average : ImageAverage
        The average ln p(v) of the test images, with 95 % intervals.
    behind_best : ImageAverage
        How much higher the best checkpoint's average is, compared image by image, with 95 % intervals.

    Examples
    --------
    >>> average = ImageAverage(-2.0, (-2.1, -1.9), (-2.5, -1.5), 0.3)
    >>> behind = ImageAverage(0.3, (0.2, 0.4), (-0.1, 0.7), 0.2)
    >>> CheckpointLikelihood("update_5", 3.0, (2.9, 3.1), average, behind).told_from_best
    'on these images'
    """

    name: str
    log_z: float
    log_z_interval: tuple[float, float]
    average: ImageAverage
    behind_best: ImageAverage

    @property
    def told_from_best(self) -> str:
        """Whether the best one is shown to be better, as `yes` (for all images of this kind), `on these images`, or `no`."""
        return self.behind_best.told_from_zero


@dataclass(frozen=True)
class TrainingLikelihood:
    """The likelihood along a training.

    Attributes
    ----------
    checkpoints : tuple of CheckpointLikelihood
        In the order of training.
    best : int
        Index of the checkpoint with the highest average, counted from 0.
    method : str
        Where ln Z comes from: `exact`, `trajectory` or `ladder`.
    chain_steps : int
        Number of transitions of single chains that were spent.
    warnings : tuple of str
        What speaks against the numbers; empty if nothing was found.
    interrupted : bool
        Whether the run was stopped early. With enumeration or parallel tempering, the last checkpoints are then missing; with a trajectory,
        the result may be that of the shorter walk.

    Examples
    --------
    >>> early, late = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2)), RBM(torch.zeros(3, 2), [2.0, 2.0, -2.0], torch.zeros(2))
    >>> found = evaluate_training([early, late], [[1, 1, 0], [1, 0, 0], [1, 1, 0]])
    >>> found.best, found.method, found.checkpoints[0].told_from_best
    (1, 'exact', 'on these images')
    """

    checkpoints: tuple[CheckpointLikelihood, ...]
    best: int
    method: str
    chain_steps: int
    warnings: tuple[str, ...]
    interrupted: bool

    @property
    def trustworthy(self) -> bool:
        """Whether nothing speaks against the numbers."""
        return not self.warnings

    @property
    def as_good(self) -> tuple[str, ...]:
        """Names of the other checkpoints that these images do not show to be worse than the best."""
        rest = (c for number, c in enumerate(self.checkpoints) if number != self.best)
        return tuple(checkpoint.name for checkpoint in rest if checkpoint.told_from_best == "no")

    @property
    def verdict(self) -> str:
        """A sentence that says where the model was best and which neighbouring checkpoints can be told from it."""
        best = self.checkpoints[self.best]
        parts = [f"{best.name} is best"]
        for number, where in ((self.best - 1, "before"), (self.best + 1, "after")):
            if not 0 <= number < len(self.checkpoints):
                parts.append(f"it is the {'first' if where == 'before' else 'last'}")
                continue
            other = self.checkpoints[number]
            word = {
                "yes": "is worse",
                "on these images": "is worse on these images, which may be chance for others",
                "no": "cannot be told from it",
            }[other.told_from_best]
            low, high = other.behind_best.interval
            parts.append(f"{other.name} {where} it {word} (by {low:.2f} to {high:.2f} nats)")
        return "; ".join(parts)


def evenly(count: int, most: int) -> list[int]:
    """At most `most` of the numbers 0 to `count` - 1, evenly spaced, with the first and the last; the last alone if `most` is 1."""
    require_count("count", count)
    require_count("most", most)
    if most == 1:
        return [count - 1]
    if count <= most:
        return list(range(count))
    return [round(number * (count - 1) / (most - 1)) for number in range(most)]


def evaluate_training(
    rbms: Sequence[RBM],
    test: ArrayLike,
    train: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    by: str | None = None,
    minutes: float = 2.0,
    chain_steps: int | None = None,
    generator: torch.Generator | None = None,
    progress: bool | None = None,
) -> TrainingLikelihood:
    """The average ln p(v) of test images at every checkpoint of a training, with intervals, and where it was highest.

    Parameters
    ----------
    rbms : sequence of RBM
        Checkpoints of the same sizes, in the order of training.
    test : array or Tensor, shape [N, D]
        Binary images of any type, at least two. Validation images if a checkpoint is to be chosen.
    train : array or Tensor, shape [any, D], optional
        Binary training images, used only for the start of the chains.
    names : sequence of str, optional
        Names of the checkpoints; by default `1`, `2`, ...
    by : str, optional
        `trajectory` or `ladder`, which is parallel tempering. None: enumeration if the smaller layer has at most 25 units, otherwise a
        trajectory.
    minutes : float
        Approximate time to spend on ln Z. Not needed where it is exact.
    chain_steps : int, optional
        Transitions of single chains, in place of `minutes`. The same generator then gives the same numbers again.
    generator : torch.Generator, optional
        Source of randomness, on the models' device; a fresh one by default.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal.

    Returns
    -------
    TrainingLikelihood
        Ctrl-C ends the run; the result so far is returned, marked as interrupted.

    Raises
    ------
    InputError
        If there are no checkpoints, their sizes differ, an image is not binary or has the wrong width, a model overflows, or an option is
        out of range.
    KeyboardInterrupt
        If interrupted before there is any result.

    Examples
    --------
    >>> early = RBM([[0.1, -0.2], [0.5, 0.0]], [0.0, 0.0], [0.0, 0.0])
    >>> late = RBM([[1.0, -2.0], [0.5, 0.0]], [0.0, 0.0], [0.0, 0.0])
    >>> found = evaluate_training([early, late], [[0, 0], [1, 1]], by="trajectory", chain_steps=60_000,
    ...                           generator=torch.Generator().manual_seed(0), progress=False)
    >>> [bool(abs(checkpoint.log_z - exact_log_z(rbm)) < 0.1) for checkpoint, rbm in zip(found.checkpoints, (early, late))]
    [True, True]
    """
    models = _checkpoints(rbms)
    images = as_binary("test", test, models[0].num_visible)
    if len(images) < 2:
        raise InputError(f"test: expected at least two images, got {len(images)}")
    labels = [str(n) for n in range(1, len(models) + 1)] if names is None else list(names)
    if len(labels) != len(models):
        raise InputError(f"names: expected {len(models)}, one for each model, got {len(labels)}")
    if by not in (None, TRAJECTORY, TEMPERING):
        raise InputError(f"by: expected {TRAJECTORY} or {TEMPERING}, got {by!r}")
    if not 0 < minutes < math.inf:
        raise InputError(f"minutes: expected a positive number, got {minutes}")
    generator = resolve_generator(generator, models[0].device)
    shown = images if train is None else as_binary("train", train, images.shape[1])
    rates = start_bias(models[0], shown, generator)
    small = min(models[0].num_visible, models[0].num_hidden) <= EXACT_UNITS
    method = EXACT if by is None and small else by or TRAJECTORY
    _require_digits(models, exact=method == EXACT)
    if method != EXACT:
        # As in `evaluate`: single precision is enough.
        models = tuple(rbm.to(dtype=torch.float32) for rbm in models)
    if chain_steps is not None:
        least = len(models) * (_FEWEST_OF_TEMPERING if method == TEMPERING else 4 * _FEWEST)
        chain_steps = require_count("chain_steps", chain_steps, least)
    hide = None if progress is None else not progress
    if len({rbm.weights.data_ptr() for rbm in rbms}) < len(rbms):
        raise InputError(
            "rbms: expected weights of its own for each checkpoint, got the same ones in two; keep a copy of each, rbm.to(rbm.device)"
        )
    asked = _Asked(models, labels, images, rates, minutes, chain_steps, generator, hide)
    find = {EXACT: _exactly, TEMPERING: _by_tempering, TRAJECTORY: _by_trajectory}[method]
    return _judged(asked, find(asked), method)


def _require_digits(models: Sequence[RBM], exact: bool) -> None:
    """Refuse models whose numbers have no digits in float64 or, if chains are to walk, in float32."""
    for number, rbm in enumerate(models):
        if chain_dtype(rbm) != torch.float32 and not exact:
            raise InputError(
                f"rbms[{number}]: expected weights and biases for which the digits of float32 are enough, got sums of up to "
                f"{rbm.sum_of_parameters:.1g}; evaluate each checkpoint on its own, with paperlib evaluate or compare"
            )


def _checkpoints(rbms: Sequence[RBM]) -> tuple[RBM, ...]:
    if not isinstance(rbms, Sequence) or isinstance(rbms, str) or len(rbms) == 0:
        raise InputError(f"rbms: expected a sequence of at least one RBM, got {rbms!r:.60}")
    models = tuple(as_rbm(f"rbms[{number}]", rbm) for number, rbm in enumerate(rbms))
    sizes = [(rbm.num_visible, rbm.num_hidden) for rbm in models]
    for number, size in enumerate(sizes):
        if size != sizes[0]:
            raise InputError(
                f"rbms[{number}]: expected {sizes[0][0]} visible and {sizes[0][1]} hidden units as in rbms[0], got {size[0]} and {size[1]}"
            )
    return models


@dataclass(frozen=True)
class _Asked:
    """The checkpoints and their names, the test images, the biases of the start, and how much is to be done; all of it is checked."""

    models: tuple[RBM, ...]
    names: list[str]
    images: Tensor
    rates: Tensor
    minutes: float
    chain_steps: int | None
    generator: torch.Generator
    hide: bool | None

    def temper(self, number: int, chain_steps: int) -> TemperingEstimate:
        """Parallel tempering of one checkpoint, which knows nothing of the others."""
        path = BaseRatePath(self.models[number], self.rates)
        return parallel_tempering(path, chain_steps, self.generator, progress=False)


@dataclass(frozen=True)
class _Known:
    """ln Z of each checkpoint, its standard error with degrees of freedom, the error of a difference, and what was spent and said."""

    log_z: Sequence[float]
    errors: Sequence[tuple[float, float]]
    difference: Callable[[int, int], tuple[float, float]]
    chain_steps: int
    warnings: Sequence[str]
    interrupted: bool


# ln Z of one checkpoint, its standard error with degrees of freedom, the chain-steps that it took, and warnings.
_One = tuple[float, tuple[float, float], int, Sequence[str]]


def _one_by_one(asked: _Asked, title: str, find: Callable[[int], _One]) -> _Known:
    """Every checkpoint on its own; Ctrl-C leaves out the last ones."""
    found: list[_One] = []
    interrupted = False
    try:
        for number in tqdm(range(len(asked.models)), title, unit="model", disable=asked.hide):
            found.append(find(number))
    except KeyboardInterrupt:
        if not found:
            raise
        interrupted = True
    log_z, errors, spent, said = zip(*found, strict=True)
    warnings = [f"{asked.names[n]}: {text}" for n, texts in enumerate(said) for text in texts]
    return _Known(
        log_z,
        errors,
        lambda a, b: joined_error(errors[a], errors[b]),
        sum(spent),
        warnings,
        interrupted,
    )


def _exactly(asked: _Asked) -> _Known:
    def find(number: int) -> _One:
        double = asked.models[number].to(dtype=torch.float64)
        return exact_log_z(double, progress=False), (0.0, math.inf), 0, ()

    return _one_by_one(asked, "ln Z by enumeration", find)


def _by_tempering(asked: _Asked) -> _Known:
    count = len(asked.models)
    if asked.chain_steps is None:
        seconds = seconds_of(lambda: asked.temper(count - 1, _FEWEST_OF_TEMPERING))
        steps = int(60 * asked.minutes / count / seconds * _FEWEST_OF_TEMPERING)
        steps = max(_FEWEST_OF_TEMPERING, min(_MOST, steps))
    else:
        steps = asked.chain_steps // count

    def find(number: int) -> _One:
        one = asked.temper(number, steps)
        error = one.std_error, one.degrees_of_freedom
        return one.log_z, error, one.chain_steps, one.warnings

    return _one_by_one(asked, "Parallel tempering", find)


def _by_trajectory(asked: _Asked) -> _Known:
    path, count = TrajectoryPath(asked.models, asked.rates), len(asked.models)
    fewest = _FEWEST * (count + 1)
    with tqdm(
        unit="step", unit_scale=True, desc="Chains along training", disable=asked.hide
    ) as bar:

        def walk(steps: int) -> TrajectoryEstimate:
            return log_z_along_training(
                path, _CHAINS, asked.generator, chain_steps=steps, num_populations=_POPULATIONS, on_step=bar.update
            )  # fmt: skip

        chain_steps = asked.chain_steps
        if chain_steps is None:
            # The second walk is timed, since the first one compiles and warms up.
            walk(fewest)
            seconds = seconds_of(lambda: walk(fewest)) / fewest
            chain_steps = int(min(60 * asked.minutes / seconds, _MOST * count))
        of_checks = max(_FEWEST_OF_TEMPERING, int(_CHECK_SHARE * chain_steps))
        total = max(fewest, chain_steps - 2 * of_checks)
        found = walk(max(fewest, int(_FIRST_SHARE * total)))
        spent, checked, interrupted = found.chain_steps, {}, False
        try:
            found = walk(max(fewest, int((1 - _FIRST_SHARE) * total)))
            spent += found.chain_steps
            log_p = [rbm.log_unnormalized_of(asked.images).mean() for rbm in asked.models]
            averages = torch.stack(log_p) - found.log_z.cpu()
            for number in {int(averages.argmax()), count - 1}:
                checked[number] = asked.temper(number, of_checks)
                bar.update(of_checks)
                spent += checked[number].chain_steps
        except KeyboardInterrupt:
            interrupted = True
    warnings = [
        *(f"Along training: {text}" for text in found.warnings),
        *_apart(asked, found, checked),
        *_below_bounds(asked, found),
    ]
    if interrupted:
        warnings.append("Interrupted: not everything was looked at.")
    freedom = float(_POPULATIONS - 1)
    return _Known(
        found.log_z.tolist(),
        [(error, freedom) for error in found.std_error.tolist()],
        lambda a, b: (found.difference(a, b)[1], freedom),
        spent,
        warnings,
        interrupted,
    )


def _apart(
    asked: _Asked, found: TrajectoryEstimate, checked: Mapping[int, TemperingEstimate]
) -> Iterator[str]:
    """A sentence for each checkpoint at which parallel tempering finds another ln Z."""
    for number, tempering in checked.items():
        log_z = found.log_z[number].item()
        error = math.hypot(found.std_error[number].item(), tempering.std_error)
        if not tempering.warnings and abs(log_z - tempering.log_z) > max(SMALL, 3 * error):
            yield (
                f"{asked.names[number]}: chains along training say ln Z = {log_z:.2f}, and parallel tempering {tempering.log_z:.2f}: they differ "
                "by more than their errors allow. Give it more time, or run parallel tempering for every checkpoint."
            )


def _below_bounds(asked: _Asked, found: TrajectoryEstimate) -> Iterator[str]:
    """A sentence for each checkpoint whose estimate of ln Z lies below the proven bound."""
    for number, (name, rbm) in enumerate(zip(asked.names, asked.models, strict=True)):
        least = log_z_lower_bound(rbm, asked.images[:_SEARCHED].to(rbm.device, rbm.dtype))
        log_z = found.log_z[number].item()
        if log_z + 3 * found.std_error[number].item() < least:
            yield f"{name}: chains along training say ln Z = {log_z:.2f}, and at least {least:.2f} is proven. The chains missed a mode."


def _judged(asked: _Asked, known: _Known, method: str) -> TrainingLikelihood:
    # An interrupted run may know nothing of the last ones.
    log_p = [
        (rbm.to(dtype=torch.float64) if method == EXACT else rbm).log_unnormalized_of(asked.images)
        for rbm in asked.models[: len(known.log_z)]
    ]
    rounding = [rbm.largest_rounding if method == EXACT else 0.0 for rbm in asked.models]
    means = [each.mean().item() - log_z for each, log_z in zip(log_p, known.log_z, strict=True)]
    best = max(range(len(means)), key=means.__getitem__)
    checkpoints = []
    for number, (log_z, error) in enumerate(zip(known.log_z, known.errors, strict=True)):
        # The best one is not behind itself.
        of_difference = known.difference(number, best) if number != best else (0.0, math.inf)
        own = rounding[number]
        of_both = own + rounding[best] if number != best else 0.0
        checkpoints.append(
            CheckpointLikelihood(
                asked.names[number],
                log_z,
                interval_of(log_z, *error, LEVEL),
                average_of(log_p[number], log_z, *error, too_high=own, too_low=own),
                average_of(
                    log_p[best] - log_p[number],
                    known.log_z[best] - log_z,
                    *of_difference,
                    too_high=of_both,
                    too_low=of_both,
                ),
            )
        )
    warnings = [
        *known.warnings,
        *(
            f"{checkpoint.name}: {doubt.text}"
            for checkpoint in checkpoints
            for doubt in impossible(checkpoint.average)
        ),
    ]
    return TrainingLikelihood(
        tuple(checkpoints),
        best,
        method,
        known.chain_steps,
        tuple(warnings),
        known.interrupted,
    )
