"""CD25(500), the model whose parameters the first paper's authors released.

Their release "Learning and Evaluating Boltzmann Machines", to which section 5 of Salakhutdinov &
Murray (2008) points, holds the parameters of one row of Table 1. The RAISE paper calls the same
model mnistCD25-500. It is treated as data, like MNIST: found or downloaded, and checked.
"""

from __future__ import annotations

from pathlib import Path

import torch

from paperlib import storage
from paperlib.datasets.images import read_or_download, require_contents
from paperlib.models import RBM

#: The notice that the authors ask to be kept and shown wherever their release is used.
NOTICE = (
    "CD25(500): parameters provided by Ruslan Salakhutdinov. Permission is granted for anyone to "
    "copy, use, modify, or distribute this program and accompanying programs and documents for any "
    "purpose, provided this copyright notice is retained and prominently displayed, along with a "
    "note saying that the original programs are available from our web page, "
    "www.cs.toronto.edu/~rsalakhu/rbm_ais.html."
)

_TITLE = "CD25(500)"
_NAME = "mnistvh_CD25.mat"
_SHA256 = "264d0e1b8b54162efc886ad596408316ded23664eb8858f8a3ff280d31fb491d"
_URL = "http://www.cs.toronto.edu/~rsalakhu/code_AIS/"


def load_authors_rbm(dtype: torch.dtype = torch.float32, url: str | None = None) -> RBM:
    """CD25(500) of the first paper's Table 1 with the authors' own weights, 784 x 500.

    The file `mnistvh_CD25.mat` is looked for in `$PAPERLIB_DATA/authors`, `$PAPERLIB_DATA` and the
    cache, and otherwise downloaded from the authors' page into the cache. Wherever the model is
    used, `NOTICE` must be shown.

    Parameters
    ----------
    dtype : torch.dtype
        Type of the result.
    url : str, optional
        The folder to download the file from, instead of the authors'.

    Raises
    ------
    InputError
        If the file cannot be found or downloaded, or does not have the known checksum. Nothing is
        left in the cache.
    """
    advice = (
        "To supply the file yourself, set PAPERLIB_DATA to a folder that holds authors/ with it."
    )
    rbm = read_or_download(_TITLE, "authors", [_NAME], url or _URL, _read, advice)
    return rbm.to(dtype=dtype)


def _read(path: Path) -> RBM:
    require_contents(_TITLE, path, storage.file_sha256(path), _SHA256)
    return RBM.load(path)
