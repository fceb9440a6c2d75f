"""The form of every data set here, grey images as rows, split once; and where files are looked for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from paperlib import storage


@dataclass(frozen=True)
class ImageDataset:
    """Grey images as rows of intensities in [0, 1], split into training and test images.

    Attributes
    ----------
    name : str
        Name for provenance and messages.
    train, test : Tensor, shape [N, D]
        Intensities, float32.
    train_labels, test_labels : Tensor, shape [N]
        What is shown: a digit, or for Omniglot an alphabet or a character, int64.
    image_shape : (int, int)
        Height and width, whose product is D.
    checksum : str
        SHA-256 of the contents.

    Examples
    --------
    >>> from paperlib.datasets import load_digits
    >>> digits = load_digits()
    >>> digits.name, digits.train_labels.dtype, float(digits.train.max())
    ('digits', torch.int64, 1.0)
    """

    name: str
    train: Tensor
    test: Tensor
    train_labels: Tensor
    test_labels: Tensor
    image_shape: tuple[int, int]
    checksum: str


def cache_folder() -> Path:
    """Folder for downloads.

    `$PAPERLIB_CACHE`, else the checkout's `data/cache`, else `~/.cache/paperlib`.

    Examples
    --------
    >>> cache_folder().name in ("cache", "paperlib") or "PAPERLIB_CACHE" in os.environ
    True
    """
    chosen = os.environ.get("PAPERLIB_CACHE")
    if chosen:
        return Path(chosen)
    try:
        return storage.repository_root() / "data" / "cache"
    except ValueError:
        return Path.home() / ".cache" / "paperlib"


def data_folders(name: str) -> list[Path]:
    """Where the files of a data set are looked for, in this order: what the user supplied, then the cache."""
    folders = [cache_folder() / name]
    supplied = os.environ.get("PAPERLIB_DATA")
    return [Path(supplied) / name, Path(supplied), *folders] if supplied else folders
