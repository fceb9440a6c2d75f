"""ln p*(v) of deep models for whole test sets, by importance sampling; this takes minutes to hours, so results are kept.

The images are taken in blocks. Each block is a shard, as in `paperlib.estimators.shards`: its draws are determined by the model, the images,
the number of samples, the seed and the version of the draws, and its file is named after these.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch
from torch import Tensor

from paperlib import storage
from paperlib.estimators.blocks import step_bar
from paperlib.estimators.shard_log import note
from paperlib.estimators.shards import Shard, finished_shard, read_shard, write_shard
from paperlib.kernels import DRAWS
from paperlib.models import DBM, DBN
from paperlib.models.files import tensors_checksum
from paperlib.numerics import seeded_generator
from paperlib.threads import one_thread
from paperlib.validation import ArrayLike, as_binary, require_count

# A minute or so for layers of a thousand units.
_IMAGES_PER_SHARD = 1_000


def log_unnormalized_in_shards(
    model: DBM | DBN,
    v: ArrayLike,
    num_samples: int,
    seed: int,
    folder: str | os.PathLike[str],
    progress: bool | None = None,
) -> Tensor:
    """`model.log_unnormalized`, kept in shards of a thousand vectors.

    Parameters
    ----------
    model : DBM or DBN
        The model, on the CPU.
    v : array or Tensor, shape [N, D]
        Binary vectors of any type. A longer batch that begins with the same thousands of vectors uses their shards.
    num_samples : int
        Draws for each vector.
    seed : int
        Determines the draws, together with the vectors and the model.
    folder : path
        Where shards are kept; created if it does not exist.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal and it takes more than two seconds.

    Returns
    -------
    Tensor, shape [N]
        float64, in nats.

    Raises
    ------
    InputError
        As for `model.log_unnormalized`, or if a stored shard is damaged.

    Examples
    --------
    >>> import tempfile
    >>> from paperlib.models import RBM
    >>> rbm = RBM([[1.0, -1.0], [0.5, 2.0]], [0.0, 0.0], [0.0, 0.0])
    >>> dbn = DBN([rbm, rbm])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = log_unnormalized_in_shards(dbn, [[0, 1]], 10, 1, folder)
    ...     again = log_unnormalized_in_shards(dbn, [[0, 1]], 10, 1, folder)
    >>> bool(first == again)
    True
    """
    num_samples = require_count("num_samples", num_samples)
    blocks = as_binary("v", v, model.num_visible).to(torch.uint8).split(_IMAGES_PER_SHARD)
    with one_thread(), step_bar(sum(map(len, blocks)), "ln p*(v)", progress) as bar:
        parts = []
        for block in blocks:
            parts.append(_kept(model, block, num_samples, seed, Path(folder)))
            bar.update(len(block))
    return torch.cat(parts)


def _kept(model: DBM | DBN, block: Tensor, num_samples: int, seed: int, folder: Path) -> Tensor:
    identity = f"{model.checksum()} {tensors_checksum([block])} {num_samples} {seed} {DRAWS}"
    name = storage.sha256(f"log_unnormalized {type(model).__name__} {identity}".encode())
    file = folder / f"{name}.safetensors"
    found = file.is_file()
    shard = read_shard(file) if found else _computed(model, block, num_samples, name)
    if not found:
        write_shard(file, shard)
    note(name, found, shard.made_by)
    return shard.tensors["log_unnormalized"]


def _computed(model: DBM | DBN, block: Tensor, num_samples: int, name: str) -> Shard:
    started = time.perf_counter()
    # As in `paperlib.estimators.shards`: a seed that no other shard has.
    generator = seeded_generator(int(name[:15], 16), model.device)
    values = model.log_unnormalized(block, num_samples, generator)
    return finished_shard({"log_unnormalized": values}, model.device, started)
