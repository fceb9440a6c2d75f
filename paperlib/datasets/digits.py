"""scikit-learn's bundled handwritten digits: small, offline, the default of this book."""

from __future__ import annotations

import numpy as np
import torch

from paperlib import storage
from paperlib.datasets.images import ImageDataset
from paperlib.errors import InputError
from paperlib.numerics import seeded_generator


def load_digits(test_fraction: float = 0.2, split_seed: int = 0) -> ImageDataset:
    """scikit-learn's bundled 1,797 handwritten digits, 8 x 8, split at random but always in the same way.

    Parameters
    ----------
    test_fraction : float
        Fraction of the images that is held out, between 0 and 1.
    split_seed : int
        Seed of the permutation that splits the images.

    Raises
    ------
    InputError
        If `test_fraction` leaves one side empty.

    Examples
    --------
    >>> digits = load_digits()
    >>> digits.train.shape, digits.test.shape, digits.image_shape
    (torch.Size([1438, 64]), torch.Size([359, 64]), (8, 8))
    """
    from sklearn.datasets import load_digits as sklearn_digits

    pixels, digits = sklearn_digits(return_X_y=True)
    count = len(pixels)
    num_test = round(count * test_fraction)
    if not 0 < num_test < count:
        raise InputError(
            f"test_fraction: expected a number that leaves images on both sides, got {test_fraction}"
        )
    images = torch.from_numpy(pixels.astype(np.float32) / 16)  # intensities are 0 ... 16
    labels = torch.from_numpy(digits.astype(np.int64))
    order = torch.randperm(count, generator=seeded_generator(split_seed))
    train, test = order[num_test:], order[:num_test]
    return ImageDataset(
        "digits",
        images[train],
        images[test],
        labels[train],
        labels[test],
        (8, 8),
        storage.sha256(pixels.tobytes() + order.numpy().tobytes()),
    )
