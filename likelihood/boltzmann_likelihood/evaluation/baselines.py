"""The log-probability of the same images under independent units: the scale on which a log-probability is read.

The uniform model gives every image the same probability. Independent pixels with the base rates of
training images know how often each pixel is on and nothing else. If a model falls behind one of
these, either it has learned nothing that helps with these images, or they are not of the kind that
it was trained on, for example because black and white are exchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from boltzmann_likelihood.evaluation.averages import ImageAverage, total_weight
from paperlib.datasets import base_rate_bias
from paperlib.datasets.binarization import pixel_means
from paperlib.validation import blocks

_BY_CHANCE = 0.01
# Largest tolerated divergence between two sets of base rates, in nats.
_FAR = 5.0


@dataclass(frozen=True)
class Baselines:
    """Average ln p(v) of the test images, in nats, if all images are equally probable, and of independent units with base rates of `source`."""

    uniform: float
    base_rates: float
    source: str

    def remarks_on(self, average: ImageAverage) -> tuple[str, ...]:
        """A sentence if the model falls behind a baseline by more than its errors explain."""
        # The errors of ln Z and of the sample of images together.
        reached = average.highest if math.isfinite(average.highest) else average.mean
        behind = [
            f"{name} by {value - average.mean:.2f} nats"
            for name, value in (
                ("the uniform model", self.uniform),
                (f"independent pixels with the base rates of the {self.source}", self.base_rates),
            )
            if reached < value
        ]  # fmt: skip
        if not behind:
            return ()
        return (
            f"The model is worse than {' and than '.join(behind)}. The usual causes: the weights were read transposed, or the layers exchanged; "
            "0 and 1 are exchanged, or pixels are in another order; weights were divided by a temperature; the images are not of the kind that it was "
            "trained on.",
        )

    def images_in_training(self, test: Tensor, train: Tensor | None) -> int:
        """How many test images [N, D] are training images [any, D] as well; 0 where small images would often agree by chance."""
        # The expected number of training images that agree with a test image, if pixels were
        # independent.
        if train is None or self.base_rates + math.log(len(train)) > math.log(_BY_CHANCE):
            return 0
        # `isin` says the same; for 1.5 million images its peak is 90 MB higher.
        known = np.sort(_hashes(train))
        asked = _hashes(test)
        nearest = np.searchsorted(known, asked).clip(max=len(known) - 1)
        return int(np.count_nonzero(known[nearest] == asked))


#: Those of no images.
NO_BASELINES = Baselines(math.nan, math.nan, "")


def copies_among(test: Tensor) -> Tensor | None:
    """The numbers [N] of the different images among test rows [N, D]; None where none is repeated.

    None as well where small images agree by chance: with independent pixels, two of them would.
    Nobody can then tell copies from draws that happen to be equal.
    """
    log_pairs = math.log(len(test) * (len(test) - 1) / 2)
    log_agree = _off_and_on(pixel_means(test)).square().sum(-1).log().sum().item()
    if log_agree + log_pairs > math.log(_BY_CHANCE):
        return None
    different, cases = np.unique(_hashes(test), return_inverse=True)
    if len(different) == len(test):
        return None
    return torch.from_numpy(cases.reshape(-1)).long()


def baselines_of(
    test: Tensor,
    train: Tensor | None = None,
    weights: Tensor | None = None,
) -> Baselines:
    """The baselines for test rows [N, D] with weights [N], with the base rates of training rows [any, D] if these are given."""
    means = pixel_means(test, weights)
    count = float(len(train)) if train is not None else total_weight(len(test), weights)
    own = _off_and_on(means)
    given = own if train is None else _off_and_on(pixel_means(train))
    uniform = -test.shape[1] * math.log(2)
    # One imaginary image with each pixel on, and one with each off, smooth the rates.
    base_rates = (own * ((count * given + 1) / (count + 2)).log()).sum()
    of_train = train is not None
    return Baselines(uniform, base_rates.item(), f"{'training' if of_train else 'test'} images")


def far_off(train: Tensor, test: Tensor, weights: Tensor | None = None) -> tuple[str, ...]:
    """A sentence if independent units with the training images' rates explain the test images [N, D], which may have weights, badly."""
    own, given = (
        _off_and_on(torch.sigmoid(base_rate_bias(rows, pseudo_off=0.05, weights=of_rows)))
        for rows, of_rows in ((test, weights), (train, None))
    )
    divergence = torch.xlogy(own, own / given).sum().item()
    if divergence <= _FAR:
        return ()
    return (
        f"The training images' base rates are far from the test images': {divergence:.0f} nats of divergence. Are these the "
        "images that the model was trained on? Annealing may start in the wrong place.",
    )


def _off_and_on(rates: Tensor) -> Tensor:
    """The probabilities that each pixel is off and on, [D, 2], from the rates at which it is on."""
    return torch.stack([1 - rates, rates], -1)


def _hashes(images: Tensor) -> npt.NDArray[np.int64]:
    """64 bits for each image [N], the same for equal images; two others share theirs once in 2^64 pairs."""
    packed = (np.packbits(part.cpu().to(torch.bool).numpy(), axis=1) for part in blocks(images))
    found = (hash(image.tobytes()) for part in packed for image in part)
    return np.fromiter(found, np.int64, len(images))
