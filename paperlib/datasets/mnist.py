"""MNIST, which is downloaded only if no folder has it.

Whatever the source, the decompressed contents must have the known SHA-256.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from paperlib import storage
from paperlib.datasets.images import ImageDataset, read_or_download, require_contents
from paperlib.errors import InputError

# Of the decompressed contents: gzip bytes differ between mirrors, but the contents do not.
_MNIST_SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
_MNIST_URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"


def load_mnist(url: str | None = None) -> ImageDataset:
    """MNIST: 60,000 training and 10,000 test images, 28 x 28.

    The four IDX files, plain or gzipped, are looked for in `$PAPERLIB_DATA/mnist`,
    `$PAPERLIB_DATA`, and the cache (`$PAPERLIB_CACHE`, by default the checkout's `data/cache`, or
    `~/.cache/paperlib` outside a checkout). Missing files are downloaded into the cache with a
    progress bar.

    Parameters
    ----------
    url : str, optional
        Where to download the four `.gz` files from, instead of the public copy.

    Raises
    ------
    InputError
        If the files cannot be found or downloaded, or do not have the known contents. Nothing is
        left in the cache.
    """
    contents = {name: _mnist_file(name, url or _MNIST_URL) for name in _MNIST_SHA256}
    images = {}
    labels = {}
    for split in ("train", "t10k"):
        # An IDX file is a header (16 bytes for images, 8 for labels) and then one byte per value.
        pixels = np.frombuffer(contents[f"{split}-images-idx3-ubyte"], np.uint8, offset=16)
        images[split] = torch.from_numpy(pixels.reshape(-1, 784).astype(np.float32) / 255)
        digits = np.frombuffer(contents[f"{split}-labels-idx1-ubyte"], np.uint8, offset=8)
        labels[split] = torch.from_numpy(digits.astype(np.int64))
    return ImageDataset(
        "mnist",
        images["train"],
        images["t10k"],
        labels["train"],
        labels["t10k"],
        (28, 28),
        storage.sha256("".join(_MNIST_SHA256.values()).encode()),
    )


def _mnist_file(name: str, url: str) -> bytes:
    """Checked, decompressed contents of one MNIST file from the first place that has it."""

    def read(path: Path) -> bytes:
        try:
            data = storage.read_bytes(path)
        except InputError as error:
            raise InputError(f"MNIST: {error}; remove or replace it") from error
        require_contents("MNIST", path, storage.sha256(data), _MNIST_SHA256[name])
        return data

    advice = (
        "To supply the files yourself, set PAPERLIB_DATA to a folder that holds mnist/ "
        "with the four IDX files."
    )
    return read_or_download("MNIST", "mnist", [f"{name}.gz", name], url, read, advice)
