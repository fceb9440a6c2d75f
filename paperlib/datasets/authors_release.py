"""CD25(500), the model whose parameters the first paper's authors released.

Their release "Learning and Evaluating Boltzmann Machines", to which section 5 of Salakhutdinov & Murray (2008) points, holds the
parameters of one row of Table 1. The RAISE paper calls the same model mnistCD25-500. It is treated as data, like MNIST: found or
downloaded, and checked.
"""

from __future__ import annotations

from pathlib import Path

import torch

from paperlib import storage
from paperlib.datasets.images import cache_folder, data_folders
from paperlib.errors import InputError
from paperlib.models import RBM

#: The notice that the authors ask to be kept and shown wherever their release is used.
NOTICE = (
    "CD25(500): parameters provided by Ruslan Salakhutdinov. Permission is granted for anyone to copy, use, modify, or distribute this "
    "program and accompanying programs and documents for any purpose, provided this copyright notice is retained and prominently displayed, "
    "along with a note saying that the original programs are available from our web page, www.cs.toronto.edu/~rsalakhu/rbm_ais.html."
)

_NAME = "mnistvh_CD25.mat"
_SHA256 = "264d0e1b8b54162efc886ad596408316ded23664eb8858f8a3ff280d31fb491d"
_URL = "http://www.cs.toronto.edu/~rsalakhu/code_AIS/"


def load_authors_rbm(dtype: torch.dtype = torch.float32, url: str | None = None) -> RBM:
    """CD25(500) of the first paper's Table 1 with the authors' own weights, 784 x 500.

    The file `mnistvh_CD25.mat` is looked for in `$PAPERLIB_DATA/authors`, `$PAPERLIB_DATA` and the cache, and otherwise downloaded from the authors'
    page into the cache. Wherever the model is used, `NOTICE` must be shown.

    Parameters
    ----------
    dtype : torch.dtype
        Type of the result.
    url : str, optional
        The folder to download the file from, instead of the authors'.

    Raises
    ------
    InputError
        If the file cannot be found or downloaded, or does not have the known checksum. Nothing is left in the cache.
    """
    folders = data_folders("authors")
    for folder in folders:
        if (folder / _NAME).is_file():
            return RBM.load(_checked(folder / _NAME), dtype=dtype)
    import pooch
    import requests

    source = f"{(url or _URL).rstrip('/')}/{_NAME}"
    target = cache_folder() / "authors" / _NAME
    try:
        with storage.atomic_path(target) as temporary:
            pooch.HTTPDownloader(progressbar=True, timeout=30)(source, str(temporary), None)
            _checked(temporary)
    except (requests.RequestException, OSError, ValueError) as error:
        places = ", ".join(str(folder) for folder in folders)
        raise InputError(
            f"CD25(500): expected {_NAME} in one of {places}, or a download from {source}, which failed: {error}. To supply the file "
            "yourself, set PAPERLIB_DATA to a folder that holds authors/ with it."
        ) from error
    return RBM.load(target, dtype=dtype)


def _checked(path: Path) -> Path:
    found = storage.file_sha256(path)
    if found != _SHA256:
        raise InputError(
            f"CD25(500): expected contents with SHA-256 {_SHA256} in {path}, got {found}; remove or replace the file"
        )
    return path
