"""A new data set: images with rows, or with columns, of one shade each."""

import torch

from paperlib import storage
from paperlib.datasets.images import ImageDataset
from paperlib.numerics import seeded_generator
from paperlib.validation import require_count


def load_bars_and_stripes(
    side: int = 4, num_train: int = 500, num_test: int = 100
) -> ImageDataset:
    """Bars and stripes of `side` by `side` grey pixels, from a fixed seed.

    A label is 1 for stripes (columns) and 0 for bars (rows).

    Raises
    ------
    InputError
        If a size is not a whole number of at least 1.
    """
    side = require_count("side", side)
    count = require_count("num_train", num_train) + require_count(
        "num_test", num_test
    )
    generator = seeded_generator(0)
    on = torch.rand(count, side, 1, generator=generator) < 0.5
    upright = torch.rand(count, generator=generator) < 0.5
    rows = on.expand(-1, -1, side)
    shapes = torch.where(upright[:, None, None], rows.transpose(1, 2), rows)
    # Intensities are probabilities of a binary pixel: 0.95 and 0.05.
    images = (0.05 + 0.9 * shapes.float()).reshape(count, side * side)
    labels = upright.long()
    return ImageDataset(
        "bars-and-stripes",
        images[:num_train],
        images[num_train:],
        labels[:num_train],
        labels[num_train:],
        (side, side),
        storage.sha256(images.numpy().tobytes()),
    )
