"""The data sets by name, each with the one fixed binarisation that models and evaluations share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from paperlib.datasets.binarization import BinaryImages, binarize
from paperlib.datasets.digits import load_digits
from paperlib.datasets.images import ImageDataset
from paperlib.datasets.mnist import load_mnist
from paperlib.datasets.mnist_2008 import load_mnist_2008
from paperlib.datasets.omniglot import load_omniglot
from paperlib.errors import InputError

# Seeds of the one fixed binarisation of every data set.
TRAIN_BINARIZATION_SEED = 2008
TEST_BINARIZATION_SEED = 2015

#: The data sets by the names that recipes and profiles give them. A new one needs its loader and
#: a line here.
LOADERS: dict[str, Callable[[], ImageDataset]] = {
    "digits": load_digits,
    "mnist": load_mnist,
    "omniglot": load_omniglot,
}
# The data sets whose binary images were fixed by their makers.
_BINARY_LOADERS: dict[str, Callable[[], BinaryImages]] = {"mnist-2008": load_mnist_2008}


@cache
def binary_images(dataset: str) -> BinaryImages:
    """The fixed binarisation of a data set: `digits`, `mnist`, `omniglot` or `mnist-2008`.

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
    if dataset in _BINARY_LOADERS:
        return _BINARY_LOADERS[dataset]()
    if dataset not in LOADERS:
        names = ", ".join([*LOADERS, *_BINARY_LOADERS])
        raise InputError(f"dataset: expected one of {names}, got {dataset!r}")
    grey = LOADERS[dataset]()
    return BinaryImages(
        binarize(grey.train, TRAIN_BINARIZATION_SEED),
        binarize(grey.test, TEST_BINARIZATION_SEED),
        grey,
    )
