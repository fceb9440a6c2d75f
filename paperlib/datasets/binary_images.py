"""The data sets by name, and the one fixed binarisation of each that every model and every evaluation here sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from torch import Tensor

from paperlib.datasets.binarization import base_rate_bias, binarize
from paperlib.datasets.digits import load_digits
from paperlib.datasets.images import ImageDataset
from paperlib.datasets.mnist import load_mnist
from paperlib.datasets.omniglot import load_omniglot
from paperlib.errors import InputError

# Seeds of the one fixed binarisation of every data set.
TRAIN_BINARIZATION_SEED, TEST_BINARIZATION_SEED = 2008, 2015


#: The data sets by the names that recipes and profiles give them. A new one needs its loader and a line here.
LOADERS: dict[str, Callable[[], ImageDataset]] = {
    "digits": load_digits,
    "mnist": load_mnist,
    "omniglot": load_omniglot,
}


@dataclass(frozen=True)
class BinaryImages:
    """A data set binarised once and for all, as every model and every evaluation here sees it.

    Attributes
    ----------
    train, test : Tensor, shape [N, D]
        Binary, uint8.
    grey : ImageDataset
        Where they come from.

    Examples
    --------
    >>> binary_images("digits").base_rate_bias().shape
    torch.Size([64])
    """

    train: Tensor
    test: Tensor
    grey: ImageDataset

    def base_rate_bias(self) -> Tensor:
        """Biases of the base-rate model of the training images, float64 [D]."""
        return base_rate_bias(self.train)


@cache
def binary_images(dataset: str) -> BinaryImages:
    """The fixed binarisation of a data set: `digits`, `mnist` or `omniglot`.

    Raises
    ------
    InputError
        If there is no such data set, or it cannot be found or downloaded.

    Examples
    --------
    >>> images = binary_images("digits")
    >>> images.train.shape, images.train.dtype
    (torch.Size([1438, 64]), torch.uint8)
    """
    if dataset not in LOADERS:
        raise InputError(f"dataset: expected one of {', '.join(LOADERS)}, got {dataset!r}")
    grey = LOADERS[dataset]()
    return BinaryImages(
        binarize(grey.train, TRAIN_BINARIZATION_SEED),
        binarize(grey.test, TEST_BINARIZATION_SEED),
        grey,
    )
