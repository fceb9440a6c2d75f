"""Images of handwritten digits, binarisation, and the base rates of a training set.

`load_digits` is bundled with scikit-learn and needs no network. `load_mnist` looks in the folder named by the
environment variable `PAPERLIB_DATA`, then in the cache, and only then downloads; whatever the source, the
decompressed contents must have the known SHA-256.

"Each pixel value was stochastically set to 1 in proportion to its pixel intensity" (Salakhutdinov & Murray 2008,
section 5) is read here as: once, with a fixed seed, so that training and evaluation see the same binary images.
"""

from __future__ import annotations

import gzip
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paperlib import storage
from paperlib.numerics import seeded_generator
from paperlib.validation import as_float_tensor, require_finite

# Decompressed contents: gzip bytes differ between mirrors, what is inside does not.
_MNIST_SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
_MNIST_URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"


@dataclass(frozen=True)
class ImageDataset:
    """Grey images as rows of intensities in [0, 1], split into training and test images.

    Attributes
    ----------
    name : str
        For provenance and messages.
    train, test : Tensor, shape [N, D]
        Intensities, float32.
    train_labels, test_labels : Tensor, shape [N]
        Digit shown, int64.
    image_shape : (int, int)
        Height and width, whose product is D.
    checksum : str
        SHA-256 of the contents.
    """

    name: str
    train: Tensor
    test: Tensor
    train_labels: Tensor
    test_labels: Tensor
    image_shape: tuple[int, int]
    checksum: str


def load_digits(test_fraction: float = 0.2, split_seed: int = 0) -> ImageDataset:
    """scikit-learn's bundled 1,797 handwritten digits, 8 x 8, split at random but always alike.

    Parameters
    ----------
    test_fraction : float
        Part of the images that is held out, between 0 and 1.
    split_seed : int
        Seed of the permutation that splits.

    Raises
    ------
    ValueError
        If `test_fraction` leaves one side empty.
    """
    from sklearn.datasets import load_digits as sklearn_digits

    bundled = sklearn_digits()
    count = len(bundled.data)
    num_test = round(count * test_fraction)
    if not 0 < num_test < count:
        raise ValueError(
            f"test_fraction: expected a number that leaves images on both sides, got {test_fraction}"
        )
    images = torch.from_numpy(bundled.data.astype(np.float32) / 16)  # intensities are 0 ... 16
    labels = torch.from_numpy(bundled.target.astype(np.int64))
    order = torch.randperm(count, generator=seeded_generator(split_seed))
    train, test = order[num_test:], order[:num_test]
    return ImageDataset(
        "digits",
        images[train],
        images[test],
        labels[train],
        labels[test],
        (8, 8),
        storage.sha256(bundled.data.tobytes() + order.numpy().tobytes()),
    )


def load_mnist(url: str | None = None) -> ImageDataset:
    """MNIST: 60,000 training and 10,000 test images, 28 x 28.

    The four IDX files, plain or gzipped, are looked for in `$PAPERLIB_DATA/mnist`, `$PAPERLIB_DATA`, and the cache
    (`$PAPERLIB_CACHE`, by default the checkout's `data/cache`, or `~/.cache/paperlib` outside of a checkout); what is missing is downloaded into the cache with a
    progress bar.

    Parameters
    ----------
    url : str, optional
        Where to download the four `.gz` files from, instead of the public copy.

    Raises
    ------
    ValueError
        If the files cannot be found or downloaded, or do not have the known contents. Nothing is left in the cache.
    """
    contents = {name: _mnist_file(name, url or _MNIST_URL) for name in _MNIST_SHA256}
    images, labels = {}, {}
    for split in ("train", "t10k"):
        # An IDX file is a header (16 bytes for images, 8 for labels) and then one byte a value.
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


def cache_folder() -> Path:
    """Folder for downloads: `$PAPERLIB_CACHE`, else the checkout's `data/cache`, else `~/.cache/paperlib`."""
    chosen = os.environ.get("PAPERLIB_CACHE")
    if chosen:
        return Path(chosen)
    try:
        return storage.repository_root() / "data" / "cache"
    except ValueError:
        return Path.home() / ".cache" / "paperlib"


def _mnist_file(name: str, url: str) -> bytes:
    """Checked, decompressed contents of one MNIST file from the first place that has it."""
    folders = [cache_folder() / "mnist"]
    supplied = os.environ.get("PAPERLIB_DATA")
    if supplied:
        folders = [Path(supplied) / "mnist", Path(supplied), *folders]
    for folder in folders:
        for path in (folder / f"{name}.gz", folder / name):
            if path.is_file():
                return _checked_contents(path, name)
    return _download(name, url, folders)


def _checked_contents(path: Path, name: str) -> bytes:
    """Decompressed contents of `path`, or a ValueError if they are not the known ones."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(
                f"MNIST: expected a whole gzip file at {path}, it is damaged ({error}); remove or replace it"
            ) from error
    found = storage.sha256(data)
    if found != _MNIST_SHA256[name]:
        raise ValueError(
            f"MNIST: expected contents with SHA-256 {_MNIST_SHA256[name]} in {path}, got {found}; "
            "remove or replace the file"
        )
    return data


def _download(name: str, url: str, searched: list[Path]) -> bytes:
    """Download one file into the cache; it gets its name only after its contents were checked."""
    import pooch
    import requests

    source = f"{url.rstrip('/')}/{name}.gz"
    target = cache_folder() / "mnist" / f"{name}.gz"
    try:
        with storage.atomic_path(target) as temporary:
            pooch.HTTPDownloader(progressbar=True, timeout=30)(source, str(temporary), None)
            return _checked_contents(temporary, name)
    except (requests.RequestException, OSError, ValueError) as error:
        places = ", ".join(str(folder) for folder in searched)
        raise ValueError(
            f"MNIST: expected {name} (or {name}.gz) in one of {places}, or a download from {source}, "
            f"which failed: {error}. To supply the files yourself, set PAPERLIB_DATA to a folder that holds "
            "mnist/ with the four IDX files."
        ) from error


def binarize(images: object, seed: int) -> Tensor:
    """Binary images, each pixel set to 1 with a probability equal to its intensity, once for a given seed.

    Parameters
    ----------
    images : array or Tensor, shape [..., D]
        Intensities in [0, 1].
    seed : int
        The same seed gives the same binary images, on every machine and with any number of threads.

    Returns
    -------
    Tensor
        uint8 of the same shape, on the CPU: a quarter of the memory of float32 for a full data set.

    Raises
    ------
    ValueError
        If an intensity lies outside [0, 1] or is not a number.
    """
    intensities = as_float_tensor("images", images).cpu()
    require_finite("images", intensities)
    if intensities.numel() == 0:
        raise ValueError(
            f"images: expected at least one image, got shape {list(intensities.shape)}"
        )
    low, high = float(intensities.min()), float(intensities.max())
    if low < 0 or high > 1:
        raise ValueError(
            f"images: expected intensities in [0, 1], got values from {low:g} to {high:g}"
        )
    uniform = torch.rand(
        intensities.shape, dtype=intensities.dtype, generator=seeded_generator(seed)
    )
    return (uniform < intensities).to(torch.uint8)


def base_rate_bias(train: object, pseudo_on: float = 0.05, pseudo_off: float = 0.0) -> Tensor:
    """Visible biases of the base-rate model: independent pixels with the training set's smoothed frequencies.

    With n training images of which c_i have pixel i on, the frequency is

        (c_i + pseudo_on * n) / (n + (pseudo_on + pseudo_off) * n)

    and the bias its logit. The default is the smoothing of the 2008 paper's authors (5 imagined images with the
    pixel on for each minibatch of 100, none with it off), which keeps pixels that are never on from probability 0.

    Parameters
    ----------
    train : array or Tensor, shape [N, D]
        Training images, binary or intensities in [0, 1].
    pseudo_on, pseudo_off : float
        Imagined images with every pixel on, or off, as fractions of n.

    Returns
    -------
    Tensor
        float64, shape [D].

    Raises
    ------
    ValueError
        If the data are not in [0, 1], a pseudo-count is negative, or a frequency comes out as 0 or 1.
    """
    images = as_float_tensor("train", train)
    if images.ndim != 2 or images.numel() == 0:
        raise ValueError(f"train: expected shape [any, any], got {list(images.shape)}")
    require_finite("train", images)
    if images.min() < 0 or images.max() > 1:
        raise ValueError(
            f"train: expected values in [0, 1], got {images.min():g} to {images.max():g}"
        )
    for name, fraction in (("pseudo_on", pseudo_on), ("pseudo_off", pseudo_off)):
        if not 0 <= fraction < float("inf"):
            raise ValueError(f"{name}: expected a finite number of at least 0, got {fraction}")
    frequency = (images.mean(0, dtype=torch.float64) + pseudo_on) / (1 + pseudo_on + pseudo_off)
    always, never = int((frequency >= 1).sum()), int((frequency <= 0).sum())
    if always or never:
        raise ValueError(
            "pseudo_on, pseudo_off: expected smoothing that keeps every frequency between 0 and 1, but "
            f"{always} pixels are always on and {never} always off; raise pseudo_off or pseudo_on above 0"
        )
    return torch.logit(frequency)
