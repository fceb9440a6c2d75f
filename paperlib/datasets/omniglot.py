"""Omniglot (Lake, Salakhutdinov & Tenenbaum 2015) at the size that the RAISE paper uses.

It has 24,345 training and 8,070 test images of 28 x 28 pixels. The file commonly used for exactly
that split is `chardata.mat`, published with the importance-weighted autoencoder of the same
authors. If it is not available, the images are made from the 105 x 105 originals: inverted,
averaged over areas, and shuffled with a recorded seed. The two sources have different test images;
`ImageDataset.name` says which one was used.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paperlib import storage
from paperlib.datasets.images import ImageDataset, data_folders, require_contents
from paperlib.errors import InputError
from paperlib.numerics import seeded_generator
from paperlib.torch_settings import plain_torch

_NUM_TRAIN = 24_345
_NUM_TEST = 8_070
_SPLIT_SEED = 2015
_CHARDATA_MD5 = "21ecaf34373511aa7691cf2e0802aa3d"
_ORIGINALS_SHA256 = {
    "images_background.npz": "8bf84167413cd00beacdce3fe582f780ab538d8dbef043a6d688f2527bbce199",
    "images_evaluation.npz": "0b84c7ffd94c4841c0040e529c86a82eaaccb986d8eadad5673f7991b7475276",
}


@plain_torch()
def load_omniglot() -> ImageDataset:
    """Omniglot: 24,345 training and 8,070 test images, 28 x 28.

    The files are looked for in `$PAPERLIB_DATA/omniglot`, `$PAPERLIB_DATA` and the cache: first
    `chardata.mat`, then `images_background.npz` and `images_evaluation.npz` (a boolean array
    `images`, True for background, [characters, 20, 105, 105]). Labels number the alphabets in the
    former and the characters in the latter.

    Raises
    ------
    InputError
        If neither is found, or the files do not have the known contents.
    """
    folders = data_folders("omniglot")
    for folder in folders:
        if (folder / "chardata.mat").is_file():
            return _from_chardata(folder / "chardata.mat")
        if all((folder / name).is_file() for name in _ORIGINALS_SHA256):
            return _from_originals(folder)
    raise InputError(
        f"Omniglot: expected chardata.mat, or {' and '.join(_ORIGINALS_SHA256)}, in one of "
        f"{', '.join(map(str, folders))}; "
        "set PAPERLIB_DATA to a folder that holds omniglot/ with them"
    )


def _from_chardata(path: Path) -> ImageDataset:
    from scipy.io import loadmat

    contents = path.read_bytes()
    checksum = hashlib.md5(contents, usedforsecurity=False).hexdigest()
    require_contents("Omniglot", path, checksum, _CHARDATA_MD5, "MD5")
    stored = loadmat(path)

    def images(key: str) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(stored[key].T, np.float32))

    def labels(key: str) -> Tensor:
        return torch.from_numpy(stored[key].argmax(0).astype(np.int64))

    return ImageDataset(
        "omniglot (chardata.mat)",
        images("data"),
        images("testdata"),
        labels("target"),
        labels("testtarget"),
        (28, 28),
        storage.sha256(contents),
    )


def _from_originals(folder: Path) -> ImageDataset:
    parts = []
    for name, expected in _ORIGINALS_SHA256.items():
        path = folder / name
        require_contents("Omniglot", path, storage.file_sha256(path), expected)
        with np.load(path, allow_pickle=False) as stored:
            parts.append(stored["images"])
    drawings = np.concatenate(parts)  # True is background
    characters = torch.arange(len(drawings)).repeat_interleave(drawings.shape[1])
    small = torch.cat([_shrink(torch.from_numpy(~block)) for block in drawings])
    order = torch.randperm(len(small), generator=seeded_generator(_SPLIT_SEED))
    train = order[:_NUM_TRAIN]
    test = order[_NUM_TRAIN : _NUM_TRAIN + _NUM_TEST]
    return ImageDataset(
        "omniglot (from the originals)",
        small[train],
        small[test],
        characters[train],
        characters[test],
        (28, 28),
        storage.sha256("".join(_ORIGINALS_SHA256.values()).encode() + order.numpy().tobytes()),
    )


def _shrink(ink: Tensor) -> Tensor:
    """Area averages, [N, 105, 105] to [N, 784]; a new pixel is 3.75 originals wide."""
    size = 28
    original = ink.shape[-1]
    edges = torch.arange(size + 1, dtype=torch.float64) * original / size
    left = edges[:-1, None]
    right = edges[1:, None]
    position = torch.arange(original, dtype=torch.float64)
    overlap = (torch.minimum(right, position + 1) - torch.maximum(left, position)).clamp(min=0)
    weights = (overlap * size / original).float()  # [28, 105], rows add up to 1
    averages = torch.einsum("ai,nij,bj->nab", weights, ink.float(), weights)
    # rounding errors must not lead outside [0, 1]
    return averages.clamp(0, 1).flatten(1)
