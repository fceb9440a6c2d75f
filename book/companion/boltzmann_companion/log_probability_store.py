"""ln p*(v) of deep models for whole test sets, by importance sampling.

This takes minutes to hours, so results are stored. The images are taken in blocks. Each block is a
shard, as in `paperlib.estimators.shards`: its draws are determined by the model, the images, the
number of samples, the seed and the version of the draws, and its file is named after these.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from paperlib.estimators.shards import Walk, shard
from paperlib.kernels import DRAWS
from paperlib.models import DBM, DBN
from paperlib.models.files import tensors_checksum
from paperlib.resumable import Work
from paperlib.threads import OnStep
from paperlib.validation import ArrayLike, as_binary, require_count

# A minute or so for layers of a thousand units.
_IMAGES_PER_SHARD = 1_000


def log_unnormalized_run(
    model: DBM | DBN, v: ArrayLike, num_samples: int, seed: int
) -> Work[Tensor]:
    """`model.log_unnormalized` in shards of a thousand vectors; the result is float64 [N], in nats.

    `boltzmann_likelihood.store.kept` computes and stores the shards.

    Parameters
    ----------
    model : DBM or DBN
        The model, on the CPU.
    v : array or Tensor, shape [N, D]
        Binary vectors of any type. A longer batch that begins with the same thousands of vectors
        uses their shards.
    num_samples : int
        Draws for each vector.
    seed : int
        Determines the draws, together with the vectors and the model.

    Raises
    ------
    InputError
        As for `model.log_unnormalized`.

    Examples
    --------
    >>> from paperlib.models import RBM
    >>> rbm = RBM([[1.0, -1.0], [0.5, 2.0]], [0.0, 0.0], [0.0, 0.0])
    >>> log_unnormalized_run(DBN([rbm, rbm]), [[0, 1], [1, 1]], 10, seed=1).result().shape
    torch.Size([2])
    """
    num_samples = require_count("num_samples", num_samples)
    blocks = as_binary("v", v, model.num_visible).to(torch.uint8).split(_IMAGES_PER_SHARD)
    task = f"log_unnormalized {type(model).__name__} {model.checksum()}"
    shards = [
        shard(
            f"{task} {tensors_checksum([block])} {num_samples} {seed} {DRAWS}",
            partial(_log_unnormalized, block.clone(), num_samples),
            len(block),
        )
        for block in blocks
    ]

    def join(results: list[dict[str, Tensor]]) -> Tensor:
        return torch.cat([result["log_unnormalized"] for result in results])

    return Work("ln p*(v)", (model, torch.empty(0)), shards, join, model.device)


def _log_unnormalized(
    block: Tensor, num_samples: int, walk: Walk, generator: torch.Generator, on_step: OnStep
) -> dict[str, Tensor]:
    return {"log_unnormalized": walk[0].log_unnormalized(block, num_samples, generator)}
