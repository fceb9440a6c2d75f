"""Where stored models are: in the checkout, beside an installed library, or on a server.

An installed library contains the small models. A large one is downloaded when a chapter first needs
it. Its contents must have the checksum that is listed in `data/models/SHA256SUMS`, which every
installation contains.
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from paperlib import storage
from paperlib.datasets import cache_folder
from paperlib.datasets.images import why_no_download
from paperlib.errors import InputError

# The environment variable with the address of a folder of models, such as
# https://example.org/models.
VARIABLE = "PAPERLIB_MODELS"
_CHECKSUMS = "SHA256SUMS"
# What pip calls the library, whose metadata name the repository; the name on which it is imported
# is another project's there.
_DISTRIBUTION = "boltzmann-paperlib"


def model_path(model_id: str) -> Path:
    """Where a stored model is kept; the file need not exist yet.

    The place is `data/models` of the checkout or of the installation. With an installed library, a
    model that did not come with it is kept in the cache.
    """
    name = f"{model_id}.safetensors"
    path = _models_folder() / name
    return path if path.is_file() or _in_checkout() else cache_folder() / "models" / name


def download_model(model_id: str) -> Path:
    """Download a stored model to its place and check its contents.

    The address is taken from the environment variable `PAPERLIB_MODELS`; otherwise it is the
    project's repository, if the package's metadata names one.

    Parameters
    ----------
    model_id : str
        Id of a recipe.

    Returns
    -------
    Path
        Where the model is now.

    Raises
    ------
    InputError
        If no model of this name was ever stored, no address is known, the download fails, or the
        contents are not those that were stored. Nothing is written then.
    """
    import pooch
    import requests

    path = model_path(model_id)
    expected = f"model_id: expected a stored model at {path}"
    checksum = stored_checksums().get(path.name)
    if checksum is None:
        raise InputError(f"{expected}, found none; `paperlib train {model_id}` makes it")
    address = _models_address()
    if address is None:
        raise InputError(
            f"{expected}, found none; put the file {path.name} from the repository's data/models "
            f"there, or set {VARIABLE} to the address of a folder that has it"
        )
    source = f"{address.rstrip('/')}/{path.name}"
    try:
        pooch.retrieve(source, f"sha256:{checksum}", path.name, path.parent)
    except (requests.RequestException, OSError, ValueError) as error:
        reason = why_no_download(error, source)
        raise InputError(
            f"{expected}, or a download from {source}, which failed: {reason}"
        ) from error
    return path


def stored_checksums() -> dict[str, str]:
    """SHA-256 of every stored model by the name of its file, from `data/models/SHA256SUMS`."""
    lines = (_models_folder() / _CHECKSUMS).read_text(encoding="ascii").splitlines()
    return {name: checksum for checksum, name in (line.split() for line in lines)}


def _models_folder() -> Path:
    return storage.companion_folder() / "data" / "models"


def _in_checkout() -> bool:
    return (storage.companion_folder() / "_toc.yml").is_file()


def _models_address() -> str | None:
    address = os.environ.get(VARIABLE)
    if address:
        return address
    try:
        addresses = metadata(_DISTRIBUTION).get_all("Project-URL") or ()
    except PackageNotFoundError:  # a folder on the path
        return None
    for entry in addresses:
        label, _, address = entry.partition(", ")
        if label.lower() == "repository":
            return f"{address.rstrip('/')}/raw/HEAD/data/models"
    return None
