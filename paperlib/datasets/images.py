"""The form of every data set here, grey images as rows, split once; and where files are looked for."""

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


def require_contents(
    called: str, path: Path, found: str, expected: str, kind: str = "SHA-256"
) -> None:
    """Raise if the checksum found for the contents of a file is not the expected one."""
    if found != expected:
        raise InputError(
            f"{called}: expected contents with {kind} {expected} in {path}, got {found}; remove or replace the file"
        )


def why_no_download(error: Exception, source: str) -> str:
    """Why a download failed, without the many lines in which `requests` says that there is no connection.

    Parameters
    ----------
    error : Exception
        What was raised.
    source : str
        The address.

    Examples
    --------
    >>> import requests
    >>> failure = requests.ConnectionError("HTTPSConnectionPool(host='example.org', port=443): Max retries exceeded")
    >>> why_no_download(failure, "https://example.org/x.gz")
    'no connection to example.org (ConnectionError)'
    """
    import requests

    if isinstance(error, requests.ConnectionError | requests.Timeout):
        return f"no connection to {urlsplit(source).netloc} ({type(error).__name__})"
    return str(error)


def found_or_downloaded(
    called: str,
    folder: str,
    names: list[str],
    url: str,
    read: Callable[[Path], _Contents],
    own: str,
) -> _Contents:
    """What `read`, which refuses unknown contents, makes of a file with one of these names, or else of a download of the first."""
    folders = data_folders(folder)
    for path in (place / name for place in folders for name in names):
        if path.is_file():
            return read(path)
    import pooch
    import requests

    first, *others = names
    source = f"{url.rstrip('/')}/{first}"
    try:
        with storage.atomic_path(cache_folder() / folder / first) as temporary:
            pooch.HTTPDownloader(progressbar=True, timeout=30)(source, str(temporary), None)
            return read(temporary)
    except (requests.RequestException, OSError, ValueError) as error:
        wanted = first + "".join(f" (or {other})" for other in others)
        raise InputError(
            f"{called}: expected {wanted} in one of {', '.join(map(str, folders))}, or a download from {source}, which failed: "
            f"{why_no_download(error, source)}. "
            f"To supply {own}"
        ) from error
