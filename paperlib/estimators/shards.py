"""AIS and RAISE in shards, parts of a run that are stored and never computed twice.

`boltzmann_likelihood.store` stores them. A shard is a block of chains. Its draws
follow from the path, the schedule, the seed, the shard's number and the version of the draws
(`paperlib.kernels.version`), and its file is named after these. An interrupted run therefore
continues where it stopped, a run with more chains starts from those of a smaller run, and a changed
model gets different file names.

Each shard is computed by one thread, since the last digits of float32 sums depend on how many
threads share them. The result is therefore the same for any number of workers and any order of
arrival. Processors of different kinds round float32 sums differently, and chains may then diverge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from paperlib import storage
from paperlib.annealing import AnnealingPath, check_betas
from paperlib.errors import InputError
from paperlib.estimators.ais import require_path, run_chains, summarize
from paperlib.estimators.estimate import PartitionEstimate
from paperlib.estimators.reverse_ais import ReverseEstimate, run_reverse_chains, summarize_reverse
from paperlib.kernels import DRAWS, chains_per_shard
from paperlib.models.files import tensors_checksum
from paperlib.numerics import seeded_generator
from paperlib.resumable import Part, Work
from paperlib.threads import OnStep, one_thread
from paperlib.torch_settings import plain_torch
from paperlib.validation import ArrayLike, as_binary, is_whole, require_count, require_device

# What all shards of a run share: a path (or a model), and its schedule.
Walk = tuple[Any, Tensor]
# From these, a generator on the device where chains walk, and a function to call after each step,
# to the tensors of a shard.
_Task = Callable[[Walk, torch.Generator, OnStep], dict[str, Tensor]]


def ais_run(
    path: AnnealingPath[Any],
    betas: object,
    num_chains: int,
    seed: int,
    device: torch.device | str | None = None,
) -> Work[PartitionEstimate]:
    """AIS as in `paperlib.estimators.ais`, in shards of 100 chains (GPU: 5,000).

    `boltzmann_likelihood.store.kept` keeps them.

    Parameters
    ----------
    path : AnnealingPath
        A path that a checksum identifies; an `RBMPairPath` must be without `sample_a`.
    betas : sequence of K + 1 numbers, or int
        0 = beta_0 < ... < beta_K = 1; a number K stands for `uniform_betas(K)`, K equal steps.
    num_chains : int
        Independent runs M. The first ones are the same whatever M is.
    seed : int
        Determines the draws of a shard, together with the shard's number.
    device : torch.device or str, optional
        Where chains walk, here or on the workers. None: where the path is. The result is
        on the path's device in any case. A GPU draws different random numbers than a CPU, so its
        shards are different ones.

    Returns
    -------
    Work[PartitionEstimate]
        `work.result()` computes it; `boltzmann_likelihood.store.kept(work, folder)` does, too, or
        finds its shards in `folder`. The result is the same whether shards were found or computed,
        here or elsewhere, in one run or in many.

    Raises
    ------
    InputError
        As in `ais`; if the path cannot be identified by a checksum; or if there is no such device.

    Notes
    -----
    Memory holds the result, 8 + 5 D bytes per chain in float32 and a half more while its parts are
    joined, and one shard's states, here and on each worker.

    Examples
    --------
    >>> from paperlib.annealing import BaseRatePath, uniform_betas
    >>> from paperlib.models import RBM
    >>> path = BaseRatePath(RBM([[1.0, -1.0], [0.5, 2.0]], [0.0, 0.0], [0.0, 0.0]))
    >>> few = ais_run(path, uniform_betas(10), 100, seed=1)
    >>> more = ais_run(path, uniform_betas(10), 200, seed=1)
    >>> few.parts[0].name == more.parts[0].name
    True
    >>> bool((few.result().log_weights == more.result().log_weights[:100]).all())
    True
    """
    require_path(path)
    schedule = check_betas(betas)
    num_chains = require_count("num_chains", num_chains)
    device = device_of(path.device, device)
    size = chains_per_shard(device)
    identity = f"{identity_of('ais', path, schedule, device)} {require_seed(seed)}"
    task = partial(_walk_forward, size)
    steps = size * (len(schedule) - 1)

    def join(shards: list[dict[str, Tensor]]) -> PartitionEstimate:
        log_weights = torch.cat([shard["log_weights"] for shard in shards])[:num_chains]
        units = torch.cat([shard["final_visible"] for shard in shards])[:num_chains]
        return summarize(path, log_weights.to(path.device), units.to(path.device, path.dtype))

    num_shards = math.ceil(num_chains / size)
    shards = [shard(f"{identity} {n}", task, steps) for n in range(num_shards)]
    return Work(f"AIS, {num_chains} chains", (path, schedule), shards, join, device)


def raise_run(
    path: AnnealingPath[Any],
    v: ArrayLike,
    betas: object,
    num_chains: int,
    seed: int,
    device: torch.device | str | None = None,
) -> Work[ReverseEstimate]:
    """RAISE as in `paperlib.estimators.raise_log_prob`, in shards of a few vectors.

    `boltzmann_likelihood.store.kept` keeps them.

    Parameters
    ----------
    path : AnnealingPath
        The path to walk back; a checksum must identify it.
    v : array or Tensor, shape [N, D]
        Binary test vectors of any type. A longer batch that begins with the same vectors finds
        their shards.
    betas, num_chains, seed, device
        As in `ais_run`, with `num_chains` for each vector.

    Returns
    -------
    Work[ReverseEstimate]
        As in `ais_run`.

    Raises
    ------
    InputError
        As in `raise_log_prob`; if the path cannot be identified by a checksum; or if there is no
        such device.

    Notes
    -----
    Memory holds the vectors, the result, 8 bytes per chain and about a kilobyte per shard, and one
    shard's states, here and on each worker.

    Examples
    --------
    >>> from paperlib.annealing import BaseRatePath, uniform_betas
    >>> from paperlib.models import RBM
    >>> path = BaseRatePath(RBM([[1.0, -1.0], [0.5, 2.0]], [0.0, 0.0], [0.0, 0.0]))
    >>> v = torch.tensor([[0, 1], [1, 1]])
    >>> raise_run(path, v, uniform_betas(10), 20, seed=1).result().log_weights.shape
    torch.Size([2, 20])
    """
    schedule = check_betas(betas)
    num_chains = require_count("num_chains", num_chains)
    require_path(path).require_way_back()
    vectors = as_binary("v", v, path.num_visible)
    device = device_of(path.device, device)
    identity = f"{identity_of('raise', path, schedule, device)} {num_chains} {require_seed(seed)}"
    steps = num_chains * (len(schedule) - 1) * path.reverse_passes

    def join(shards: list[dict[str, Tensor]]) -> ReverseEstimate:
        log_weights = torch.cat([shard["log_weights"] for shard in shards])
        return summarize_reverse(log_weights.to(path.device))

    blocks = vectors.to(torch.uint8).split(max(1, chains_per_shard(device) // num_chains))
    shards = [
        shard(
            f"{identity} {n} {tensors_checksum([block])}",
            # A copy, since a slice of a tensor would be sent with the whole tensor.
            partial(_walk_back, num_chains, block.clone()),
            len(block) * steps,
        )
        for n, block in enumerate(blocks)
    ]
    return Work(f"RAISE, {len(vectors)} vectors", (path, schedule), shards, join, device)


def require_seed(seed: object) -> int:
    """The seed; shards are found again by how it is written."""
    if not is_whole(seed):
        raise InputError(f"seed: expected a whole number, got {seed!r}")
    return int(seed)


def shard(identity: str, task: _Task, steps: int) -> Part:
    """A part that draws random numbers, named and seeded by a hash of what it depends on.

    No other shard has this seed.
    """
    name = storage.sha256(identity.encode())
    return Part(name, partial(_with_draws, int(name[:15], 16), task), steps)


@plain_torch(gradients=False)
def _with_draws(
    seed: int, task: _Task, walk: Walk, device: torch.device, on_step: OnStep
) -> dict[str, Tensor]:
    path, schedule = walk
    if path.device != device:
        walk = path.to(device), schedule
    with one_thread():
        return task(walk, seeded_generator(seed, device), on_step)


def device_of(default: torch.device, device: torch.device | str | None) -> torch.device:
    """Where chains walk. Stored shards may come from a GPU that this machine lacks."""
    return default if device is None else require_device("device", device, present=False)


def identity_of(estimator: str, path: Any, schedule: Tensor, device: torch.device) -> str:
    """What the draws of all shards of a run depend on."""
    betas = storage.sha256(schedule.numpy().tobytes())
    on_device = "" if device.type == "cpu" else f" {device.type}"
    # The version of the draws is included, so that shards drawn in another way are not used
    # instead.
    return f"{estimator} {DRAWS} {path.checksum()} {betas}{on_device}"


def _walk_forward(
    num_chains: int, walk: Walk, generator: torch.Generator, on_step: OnStep
) -> dict[str, Tensor]:
    path, schedule = walk
    log_weights, visible = run_chains(path, schedule.tolist(), num_chains, generator, on_step)
    return {"log_weights": log_weights, "final_visible": visible.to(torch.uint8)}


def _walk_back(
    num_chains: int,
    vectors: Tensor,
    walk: Walk,
    generator: torch.Generator,
    on_step: OnStep,
) -> dict[str, Tensor]:
    path, schedule = walk
    starts = vectors.repeat_interleave(num_chains, 0)
    log_weights = run_reverse_chains(path, starts, schedule.tolist(), generator, on_step)
    return {"log_weights": log_weights.view(-1, num_chains)}
