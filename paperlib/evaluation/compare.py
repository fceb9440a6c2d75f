"""Which of two models gives the test images the higher probability, and whether the difference could be chance.

That is the question for which the papers' estimates of ln Z were made. Both models see the same images, so that the difference of their
log-probabilities is taken image by image: what makes an image improbable under both cancels, and the error over images is much
smaller than that of either average.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from paperlib.errors import InputError
from paperlib.evaluation.evaluation import Evaluation, evaluate, log_unnormalized_of
from paperlib.evaluation.verdict import ImageAverage, average_of, joined_error
from paperlib.models import RBM
from paperlib.validation import ArrayLike, as_binary


@dataclass(frozen=True)
class Comparison:
    """Two models on the same test images.

    Attributes
    ----------
    first, second : Evaluation
        Each on its own.
    difference : ImageAverage
        Of ln p(v) under the first model less that under the second, in nats, with 95 % intervals: for these images, and for all images of
        the kind.
    wins : float
        The share of images to which the first model gives the higher probability.

    Examples
    --------
    >>> first = RBM(torch.zeros(3, 2), [1.0, 1.0, -1.0], torch.zeros(2))
    >>> second = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> found = compare(first, second, [[1, 1, 0], [1, 0, 0], [1, 1, 0]])
    >>> print(f"{found.difference.mean:.2f}", found.verdict)
    0.81 first better on these images
    """

    first: Evaluation
    second: Evaluation
    difference: ImageAverage
    wins: float

    @property
    def trustworthy(self) -> bool:
        """Whether nothing speaks against either evaluation."""
        return self.first.trustworthy and self.second.trustworthy

    @property
    def verdict(self) -> str:
        """`first better`, `second better`, the same `on these images` only, `no difference shown`, or `not trusted`."""
        if not self.trustworthy:
            return "not trusted"
        for interval, where in (
            (self.difference.sample_interval, ""),
            (self.difference.interval, " on these images"),
        ):
            low, high = interval
            if low > 0 or high < 0:
                return f"{'first' if low > 0 else 'second'} better{where}"
        return "no difference shown"


def compare(
    first: RBM,
    second: RBM,
    test: ArrayLike,
    train: ArrayLike | None = None,
    minutes: float = 2.0,
    generator: torch.Generator | None = None,
    progress: bool | None = None,
) -> Comparison:
    """The paired difference of two models' average test log-probabilities, with its error.

    Parameters
    ----------
    first, second : RBM
        Models of the same visible units.
    test : array or Tensor, shape [N, D]
        Binary test images of any type, at least two.
    train : array or Tensor, shape [any, D], optional
        Binary training images, for the start of the chains only.
    minutes : float
        Time to spend on both together, about.
    generator : torch.Generator, optional
        Source of randomness; a fresh one by default.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        As `evaluate`, or if the models have different numbers of visible units.
    KeyboardInterrupt
        If interrupted before there is an estimate for both.

    Examples
    --------
    >>> rbm = RBM(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    >>> compare(rbm, rbm, [[0, 1, 0], [1, 1, 0]]).verdict
    'no difference shown'
    """
    if first.num_visible != second.num_visible:
        raise InputError(
            f"second: expected {first.num_visible} visible units, as many as the first model has, got {second.num_visible}"
        )
    images = as_binary("test", test, first.num_visible)
    found_a, found_b = (
        evaluate(model, images, train, minutes / 2, generator, progress)
        for model in (first, second)
    )
    log_ratio = log_unnormalized_of(first, images) - log_unnormalized_of(second, images)
    log_z_a, error_a, freedom_a = found_a.known_log_z
    log_z_b, error_b, freedom_b = found_b.known_log_z
    error = joined_error((error_a, freedom_a), (error_b, freedom_b))
    difference = average_of(log_ratio, log_z_a - log_z_b, *error)
    wins = (log_ratio > log_z_a - log_z_b).double().mean().item()
    return Comparison(found_a, found_b, difference, wins)
