"""Which of two models gives test images the higher probability, and whether that could be chance.

The papers' estimates of ln Z were made to answer this question. Both models see the same images, so
the difference of their log-probabilities is taken image by image. Whatever makes an image
improbable under both cancels, and the error over images is much smaller than that of either
average.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from boltzmann_likelihood.evaluation.averages import ImageAverage, Shown, average_of
from boltzmann_likelihood.evaluation.evaluation import (
    evaluate_alike,
    requested_effort,
    seed_of,
    target_of,
)
from boltzmann_likelihood.evaluation.printed import Printed
from boltzmann_likelihood.evaluation.result import Evaluation
from boltzmann_likelihood.sources import ForeignRBM, Images, model_of
from paperlib.errors import InputError
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.numerics import resolve_generator, weighted_mean
from paperlib.torch_settings import plain_torch
from paperlib.uncertain import total
from paperlib.validation import ArrayLike


@dataclass(frozen=True, repr=False)
class Comparison(Printed):
    """Two models on the same test images. `print` shows it as a report in words.

    Attributes
    ----------
    first, second : Evaluation
        The evaluation of each model on its own.
    difference : ImageAverage
        The average ln p(v) under the first model minus that under the second, in nats, with 95 %
        intervals for these images and for all images of this kind.
    seed : int or None
        The seed of the generator, if it had not been used before.
    same : bool
        Whether the models are the same, number by number. One of them is then evaluated, once.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> first = RBM(torch.zeros(3, 2), [1.0, 1.0, -1.0], torch.zeros(2))
    >>> second = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> comparison = compare(first, second, [[1, 1, 0], [1, 0, 0], [1, 1, 0]])
    >>> print(f"{comparison.difference.mean:.2f}", comparison.verdict)
    0.81 first better on these images
    >>> comparison
    <Comparison: first better on these images, difference 0.81 nats>
    """

    first: Evaluation
    second: Evaluation
    difference: ImageAverage
    seed: int | None = None
    same: bool = False

    @property
    def summary(self) -> str:
        """The verdict and the difference, in a few words."""
        return f"{self.verdict}, difference {self.difference.mean:.2f} nats"

    @property
    def verdict(self) -> str:
        """Which model is better, in words.

        `first better` or `second better`, with `on these images` where it may be chance for others;
        `no difference shown`, `the models are the same`, or `not trusted` where there is any doubt
        about either number.
        """
        if self.same:
            return "the models are the same"
        if self._has_doubts:
            return "not trusted"
        shown = self.difference.told_from_zero
        if shown == Shown.NO:
            return "no difference shown"
        better = f"{'first' if self.difference.mean > 0 else 'second'} better"
        return better if shown == Shown.YES else f"{better} {shown}"

    @property
    def _has_doubts(self) -> bool:
        """Whether there is any doubt about either number, also where its verdict is only `open`."""
        return bool(self.first.warnings or self.second.warnings)

    @property
    def wins(self) -> float | None:
        """The weighted share of images to which the first model gives the higher probability.

        None where the verdict calls neither better.
        """
        if self.same or self._has_doubts or self.difference.told_from_zero == Shown.NO:
            return None
        log_ratio = self.first.log_unnormalized - self.second.log_unnormalized
        log_z_ratio = self.first.known_log_z.value - self.second.known_log_z.value
        won = (log_ratio > log_z_ratio).double()
        return weighted_mean(won, self.first.weights).item()


@plain_torch(gradients=False)
def compare(
    first: UnnormalizedModel | ForeignRBM,
    second: UnnormalizedModel | ForeignRBM,
    test: ArrayLike | Images,
    train: ArrayLike | Images | None = None,
    minutes: float = 2.0,
    generator: torch.Generator | int | None = None,
    progress: bool | None = None,
    *,
    steps: int | None = None,
    tempering_steps: int | None = None,
    weights: ArrayLike | None = None,
) -> Comparison:
    """The paired difference of two models' average test log-probabilities, with its error.

    Parameters
    ----------
    first, second : RBM, DBM, DBN or ForeignRBM
        Models, or what `read_model` returns, with the same visible units. If ln p*(v) of a DBM or
        DBN is an estimate, that estimate is used; what it may lack is part of the intervals.
    test : array, Tensor or Images, shape [N, D]
        Binary test images of any type, at least two.
    train : array, Tensor or Images, shape [any, D], optional
        Binary training images, used only for the start of the chains and for the base rates.
    minutes : float
        Approximate time to spend on both together. Both get the same K and the same number of steps
        of parallel tempering.
    generator : torch.Generator or int, optional
        Source of randomness, or a seed; a fresh one by default.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal.
    steps, tempering_steps, weights
        As for `evaluate`, for each of the two.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        As for `evaluate`, or if the models have different numbers of visible units.
    KeyboardInterrupt
        If interrupted before there is an estimate for both.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> compare(rbm, rbm, [[0, 1, 0], [1, 1, 0]]).verdict
    'the models are the same'
    """
    first_model = model_of(first, "first")
    second_model = model_of(second, "second")
    if first_model.num_visible != second_model.num_visible:
        raise InputError(
            f"second: expected {first_model.num_visible} visible units, as many as the first model "
            f"has, got {second_model.num_visible}"
        )
    effort = requested_effort(minutes, steps, tempering_steps)
    generator = resolve_generator(generator, first_model.device)
    seed = seed_of(generator)
    same = _same(first_model, second_model)
    models = (first,) if same else (first, second)
    targets = [target_of(model, test, train, weights, effort=effort) for model in models]
    evaluations = evaluate_alike(targets, generator, effort, minutes, progress)
    # Neither can be repeated on its own, since both draw from one generator.
    evaluations = [replace(each, seed=None) for each in evaluations]
    first_evaluation = evaluations[0]
    second_evaluation = evaluations[-1]
    difference = difference_of(first_evaluation, second_evaluation)
    return Comparison(first_evaluation, second_evaluation, difference, seed, same)


def difference_of(a: Evaluation, b: Evaluation) -> ImageAverage:
    """The average ln p(v) under the first model minus that under the second, image by image."""
    if a is b:
        # For one and the same evaluation it is zero, however few the images are.
        return ImageAverage(0.0, (0.0, 0.0), (0.0, 0.0), 0.0, 0.0)
    log_ratio = a.log_unnormalized - b.log_unnormalized
    log_z_ratio = a.known_log_z - b.known_log_z
    log_z_ratio = total((log_z_ratio, a.unnormalized.error, b.unnormalized.error))
    rounding = sum(each.rounding for each in (a, b) if each.dtype == torch.float64)
    # An ln p*(v) that errs low makes its model worse than it is.
    difference = average_of(
        log_ratio,
        log_z_ratio,
        a.weights,
        cases=a.cases if b.cases is not None else None,  # one model may explain equal images
        too_high=rounding + b.unnormalized.missing,
        too_low=rounding + a.unnormalized.missing,
    )
    if a.has_interval and b.has_interval:
        return difference
    return difference.without_intervals


def _same(first: UnnormalizedModel, second: UnnormalizedModel) -> bool:
    """Whether all parameters are the same numbers, whatever their types."""
    ours = first.tensors()
    theirs = second.tensors()
    if type(first) is not type(second) or ours.keys() != theirs.keys():
        return False
    return all(torch.equal(ours[name].double().cpu(), theirs[name].double().cpu()) for name in ours)
