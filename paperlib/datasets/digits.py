"""scikit-learn's bundled handwritten digits, small and offline, which are this book's default."""

from __future__ import annotations

import numpy as np
import torch

from paperlib import storage
from paperlib.datasets.images import ImageDataset
from paperlib.numerics import seeded_generator
from paperlib.torch_settings import plain_torch

_TEST_FRACTION = 0.2
_SPLIT_SEED = 0


@plain_torch()
def load_digits() -> ImageDataset:
    """scikit-learn's bundled 1,797 handwritten digits, 8 x 8.

    A random fifth, always the same, is held out as the test images.

    Examples
    --------
    >>> digits = load_digits()
    >>> digits.train.shape, digits.test.shape, digits.image_shape
    (torch.Size([1438, 64]), torch.Size([359, 64]), (8, 8))
    """
    from sklearn.datasets import load_digits as sklearn_digits

    pixels, digits = sklearn_digits(return_X_y=True)
    count = len(pixels)
    num_test = round(_TEST_FRACTION * count)
    images = torch.from_numpy(pixels.astype(np.float32) / 16)  # intensities are 0 ... 16
    labels = torch.from_numpy(digits.astype(np.int64))
    order = torch.randperm(count, generator=seeded_generator(_SPLIT_SEED))
    train = order[num_test:]
    test = order[:num_test]
    return ImageDataset(
        "digits",
        images[train],
        images[test],
        labels[train],
        labels[test],
        (8, 8),
        storage.sha256(pixels.tobytes() + order.numpy().tobytes()),
    )
