"""The log-probability of the same images under independent units: the scale to read it on.

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
from paperlib.numerics import log_mean_exp
from paperlib.validation import blocks

_BY_CHANCE = 0.01
# Largest tolerated divergence between two sets of base rates, in nats.
_LARGEST_DIVERGENCE = 5.0


@dataclass(frozen=True)
class Baselines:
    """Average ln p(v) of the test images under models without interactions, in nats.

    Attributes
    ----------
    uniform : float
        If all images are equally probable.
    base_rates : float
        If pixels are independent, with the base rates of the images that `source` names.
    source : str
        Which images these are, such as *training images*.
    """

    uniform: float
    base_rates: float
    source: str

    def remarks_on(self, average: ImageAverage) -> tuple[str, ...]:
        """One sentence if the model falls behind a baseline by more than its errors explain."""
        # The errors of ln Z and of the sample of images together.
        reached = average.highest if math.isfinite(average.highest) else average.mean
        independent = f"independent pixels with the base rates of the {self.source}"
        values = {"the uniform model": self.uniform, independent: self.base_rates}
        behind = [
            f"{name} by {value - average.mean:.2f} nats"
            for name, value in values.items()
            if reached < value
        ]
        if not behind:
            return ()
        remark = (
            f"The model is worse than {' and than '.join(behind)}. The usual causes: the weights "
            "were read transposed, or the layers exchanged; 0 and 1 are exchanged, or pixels are "
            "in another order; weights were divided by a temperature; the images are not of the "
            "kind that it was trained on."
        )
        return (remark,)

    def images_in_training(self, test: Tensor, train: Tensor | None) -> int:
        """How many test images [N, D] are training images [any, D] as well.

        0 where small images would often agree by chance.
        """
        # The expected number of training images that agree with a test image, if pixels were
        # independent.
        if train is None or self.base_rates + math.log(len(train)) > math.log(_BY_CHANCE):
            return 0
        # `np.isin` gives the same result, but takes 90 MB more for 1.5 million images.
        train_hashes = np.sort(_hashes(train))
        test_hashes = _hashes(test)
        nearest = np.searchsorted(train_hashes, test_hashes).clip(max=len(train_hashes) - 1)
        return int(np.count_nonzero(train_hashes[nearest] == test_hashes))


#: The baselines of no images.
NO_BASELINES = Baselines(math.nan, math.nan, "")


@dataclass(frozen=True)
class EqualImages:
    """Test images of which some are equal, by copying or by chance.

    Attributes
    ----------
    index : Tensor, shape [N]
        For each image its number among the different ones.
    log_agree : float
        ln of the probability that two images are equal if pixels are independent.
    """

    index: Tensor
    log_agree: float

    def copies(self, log_prob: Tensor) -> Tensor | None:
        """The index if equal images are copies of each other; None if they may be so by chance.

        That takes two things: images so small that independent pixels would make some pairs equal,
        and at least a hundredth of the equal pairs explained, by independent pixels or by the
        model, under which the images have `log_prob` [N]. One image alone says nothing about
        others, however small it is.
        """
        counts = self.index.bincount()
        equal = (counts * (counts - 1)).sum().item() / 2
        pairs = len(self.index) * (len(self.index) - 1) / 2
        log_explained = max(self.log_agree, log_mean_exp(log_prob.clamp(max=0)).item())
        are_small = self.log_agree > math.log(_BY_CHANCE / pairs)
        are_explained = log_explained > math.log(_BY_CHANCE * equal / pairs)
        return None if len(counts) > 1 and are_small and are_explained else self.index


def equal_images(test: Tensor) -> EqualImages | None:
    """The images among test rows [N, D] that are equal; None if all are different."""
    different, index = np.unique(_hashes(test), return_inverse=True)
    if len(different) == len(test):
        return None
    log_agree = _off_and_on(pixel_means(test)).square().sum(-1).log().sum().item()
    return EqualImages(torch.from_numpy(index.reshape(-1)).long(), log_agree)


def baselines_of(
    test: Tensor,
    train: Tensor | None = None,
    weights: Tensor | None = None,
) -> Baselines:
    """The baselines for test rows [N, D] with weights [N].

    Base rates are those of the training rows [any, D], if there are any.
    """
    test_rates = _off_and_on(pixel_means(test, weights))
    if train is None:
        count = total_weight(len(test), weights)
        rates = test_rates
        source = "test images"
    else:
        count = float(len(train))
        rates = _off_and_on(pixel_means(train))
        source = "training images"
    uniform = -test.shape[1] * math.log(2)
    # One imaginary image with each pixel on, and one with each off, smooth the rates.
    base_rates = (test_rates * ((count * rates + 1) / (count + 2)).log()).sum()
    return Baselines(uniform, base_rates.item(), source)


def start_warnings(train: Tensor, test: Tensor, weights: Tensor | None = None) -> tuple[str, ...]:
    """One sentence if base rates of the training images are far from those of the test images.

    Chains start at the former. The test images [N, D] may have weights.
    """
    test_rates = _smoothed_rates(test, weights)
    train_rates = _smoothed_rates(train, None)
    divergence = torch.xlogy(test_rates, test_rates / train_rates).sum().item()
    if divergence <= _LARGEST_DIVERGENCE:
        return ()
    warning = (
        f"The training images' base rates are far from the test images': {divergence:.0f} nats of "
        "divergence. Are these the images that the model was trained on? Annealing may start in "
        "the wrong place."
    )
    return (warning,)


def _smoothed_rates(rows: Tensor, weights: Tensor | None) -> Tensor:
    """The probabilities [D, 2] of independent pixels with the base rates of these rows."""
    return _off_and_on(torch.sigmoid(base_rate_bias(rows, pseudo_off=0.05, weights=weights)))


def _off_and_on(rates: Tensor) -> Tensor:
    """The probabilities that each pixel is off and on, [D, 2], from the rates at which it is on."""
    return torch.stack([1 - rates, rates], -1)


def _hashes(images: Tensor) -> npt.NDArray[np.int64]:
    """64 bits for each image [N], the same for equal images.

    Two different images have the same once in 2^64 pairs.
    """
    packed = (np.packbits(part.cpu().to(torch.bool).numpy(), axis=1) for part in blocks(images))
    hashes = (hash(image.tobytes()) for part in packed for image in part)
    return np.fromiter(hashes, np.int64, len(images))
