"""The form of every data set here, and the folders in which its files are looked for.

A data set is an `ImageDataset`: grey images as rows, split once into training and test images.
`read_or_download` reads its files from the first folder that has them, or downloads them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from torch import Tensor

from paperlib import storage
from paperlib.errors import InputError

_Contents = TypeVar("_Contents")


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
    folder = os.environ.get("PAPERLIB_CACHE")
    if folder:
        return Path(folder)
    try:
        return storage.repository_root() / "data" / "cache"
    except ValueError:
        return Path.home() / ".cache" / "paperlib"


def data_folders(name: str) -> list[Path]:
    """Where the files of a data set are looked for: `$PAPERLIB_DATA` first, then the cache."""
    cache = cache_folder() / name
    place = os.environ.get("PAPERLIB_DATA")
    if not place:
        return [cache]
    # in messages, a relative path would not say that chapters run in their own folder
    folder = Path(place).absolute()
    return [folder / name, folder, cache]


def require_contents(
    title: str, path: Path, checksum: str, expected: str, kind: str = "SHA-256"
) -> None:
    """Raise unless the checksum of a file's contents is the expected one."""
    if checksum != expected:
        raise InputError(
            f"{title}: expected contents with {kind} {expected} in {path}, got {checksum}; "
            "remove or replace the file"
        )


def why_no_download(error: Exception, source: str) -> str:
    """Why a download failed, in one line where `requests` has many for a missing connection.

    Parameters
    ----------
    error : Exception
        What was raised.
    source : str
        The address.

    Examples
    --------
    >>> import requests
    >>> failure = requests.ConnectionError("HTTPSConnectionPool(host='example.org'): Max retries")
    >>> why_no_download(failure, "https://example.org/x.gz")
    'no connection to example.org (ConnectionError)'
    """
    import requests

    if isinstance(error, requests.ConnectionError | requests.Timeout):
        return f"no connection to {urlsplit(source).netloc} ({type(error).__name__})"
    return str(error)


def read_or_download(
    title: str,
    folder: str,
    names: list[str],
    url: str,
    read: Callable[[Path], _Contents],
    advice: str,
) -> _Contents:
    """Read a file with one of these names, or else a download of the first name.

    `read` raises where the contents are not the known ones. `advice` ends the message where there
    is no file: how to supply one.
    """
    folders = data_folders(folder)
    for place in folders:
        for name in names:
            if (place / name).is_file():
                return read(place / name)
    import pooch
    import requests

    first, *others = names
    source = f"{url.rstrip('/')}/{first}"
    try:
        with storage.atomic_path(cache_folder() / folder / first) as temporary:
            pooch.HTTPDownloader(progressbar=True, timeout=30)(source, str(temporary), None)
            return read(temporary)
    except (requests.RequestException, OSError, ValueError) as error:
        files = first + "".join(f" (or {other})" for other in others)
        raise InputError(
            f"{title}: expected {files} in one of {', '.join(map(str, folders))}, "
            f"or a download from {source}, which failed: {why_no_download(error, source)}. {advice}"
        ) from error
