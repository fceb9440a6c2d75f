"""Long AIS and RAISE runs in shards: what was computed is stored, and never computed twice.

A shard is a block of chains, a pure function of the path, the schedule and the shard's own seed. Its file is named after
these, so that an interrupted run continues where it stopped, a run with more chains starts from those of a shorter one, and
a changed model is a different name.

Missing shards are computed here one after the other, or sent to a Dask cluster and stored here as each arrives. A shard is the work of
one thread in either case, since the last digits of float32 sums depend on how many threads share them. So the result is the same
for any number of workers and any order of arrival, and the work lost with a worker, or with this process, is that of the
shards in progress. Between processors of different kinds float32 results differ in rounding, and chains then go other ways.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from paperlib import __version__, storage
from paperlib.annealing import BaseRatePath, RBMPairPath, check_betas
from paperlib.estimators.ais import run_chains, summarize
from paperlib.estimators.blocks import step_bar
from paperlib.estimators.estimate import PartitionEstimate
from paperlib.estimators.reverse_ais import (
    ReverseEstimate,
    require_reversible,
    run_reverse_chains,
    summarize_reverse,
)
from paperlib.models.files import read_arrays, tensors_checksum, write_safetensors
from paperlib.numerics import seeded_generator
from paperlib.validation import require_binary, require_count, require_device, require_shape

if TYPE_CHECKING:
    from distributed import Client, Future

# What all shards of a run share: a path, its schedule, and the device on which chains walk.
_Walk = tuple[BaseRatePath | RBMPairPath, Tensor, torch.device]
# What a shard holds, given that, its draws, and a function to be called after each step.
_Task = Callable[[_Walk, torch.Generator, Callable[[], object]], dict[str, Tensor]]

# Also the number of chains for which a step costs least for each of them on a CPU. A GPU wants many more.
CHAINS_PER_SHARD = 100
CHAINS_PER_GPU_SHARD = 5_000
# Shards that a cluster knows of at a time: enough for thousands of cores, few enough for the scheduler's memory.
_SHARDS_AHEAD = 2_000


def ais_in_shards(
    path: BaseRatePath | RBMPairPath,
    betas: object,
    num_chains: int,
    seed: int,
    folder: str | os.PathLike[str],
    progress: bool | None = None,
    client: Client | None = None,
    device: torch.device | str | None = None,
) -> PartitionEstimate:
    """AIS as `paperlib.estimators.ais`, in shards of 100 chains (GPU: 5,000) that are kept in a folder.

    Parameters
    ----------
    path : BaseRatePath or RBMPairPath
        The latter without `sample_a`.
    betas : sequence of K + 1 numbers
        0 = beta_0 < ... < beta_K = 1.
    num_chains : int
        Independent runs M. The first ones are the same whatever M is.
    seed : int
        With the shard's number it determines the draws of a shard.
    folder : path
        Where shards are kept; made if it does not exist.
    progress : bool, optional
        Show a progress bar; by default where standard error is a terminal.
    client : dask.distributed.Client, optional
        Send missing shards to its cluster, for instance that of `paperlib.cluster.connect`. None: compute them here.
    device : torch.device or str, optional
        Where chains walk, here or on the cluster's workers; the result is on the path's device in any case. None: there, too. A GPU
        draws other random numbers than a CPU does, so that its shards are other ones.

    Returns
    -------
    PartitionEstimate
        The same whether shards were found or computed, here or elsewhere, in one run or in many.

    Raises
    ------
    ValueError
        As `ais`; if the path cannot be identified by a checksum; if a stored shard is damaged; or if there is no such device.
    RuntimeError
        If a worker of the cluster has another version of this package.

    Notes
    -----
    Memory is that of the result, 8 + 5 D bytes a chain in float32, and of one shard's states, here and on each worker.
    """
    schedule = check_betas(betas)
    num_chains = require_count("num_chains", num_chains)
    walk = path, schedule, _device(path, device, client)
    identity = f"{_identity('ais', walk)} {seed}"

    identities = [f"{identity} {n}" for n in range(-(-num_chains // _chains_per_shard(walk)))]
    description = f"AIS, {num_chains} chains"
    shards = _computed_once(
        identities,
        lambda number: _walk_forward,
        walk,
        len(schedule) - 1,
        folder,
        description,
        progress,
        client,
    )
    log_weights, visible = (
        torch.cat([shard[name] for shard in shards])[:num_chains].to(path.device)
        for name in ("log_weights", "final_visible")
    )
    return summarize(path, log_weights, visible.to(path.dtype))


def raise_in_shards(
    path: BaseRatePath,
    v: Tensor,
    betas: object,
    num_chains: int,
    seed: int,
    folder: str | os.PathLike[str],
    progress: bool | None = None,
    client: Client | None = None,
    device: torch.device | str | None = None,
) -> ReverseEstimate:
    """RAISE as `paperlib.estimators.raise_log_prob`, in shards of a few test vectors that are kept in a folder.

    Parameters
    ----------
    path : BaseRatePath
        The path to walk back.
    v : Tensor, shape [N, D]
        Binary test vectors of any type. A longer batch that begins with the same vectors finds their shards.
    betas, num_chains, seed, folder, progress, client, device
        As in `ais_in_shards`, with `num_chains` for each vector.

    Returns
    -------
    ReverseEstimate
        The same whether shards were found or computed, here or elsewhere, in one run or in many.

    Raises
    ------
    ValueError
        As `raise_log_prob`; if the path cannot be identified by a checksum; if a stored shard is damaged; or if there is no such
        device.
    RuntimeError
        As `ais_in_shards`.

    Notes
    -----
    Memory is that of the vectors, of the result, 8 bytes a chain and about a kilobyte a shard, and of one shard's states, here and
    on each worker.
    """
    schedule = check_betas(betas)
    num_chains = require_count("num_chains", num_chains)
    require_reversible(path)
    require_shape("v", v, [None, path.num_visible])
    require_binary("v", v)
    walk = path, schedule, _device(path, device, client)
    blocks = v.to(torch.uint8).split(max(1, _chains_per_shard(walk) // num_chains))
    identity = f"{_identity('raise', walk)} {num_chains} {seed}"

    def task(number: int) -> _Task:
        # A copy, since a part of a tensor would be sent with all the rest of it.
        return partial(_walk_back, num_chains, blocks[number].clone())

    identities = [f"{identity} {n} {tensors_checksum([block])}" for n, block in enumerate(blocks)]
    description = f"RAISE, {len(v)} vectors"
    steps = (len(schedule) - 1) * path.reverse_passes
    shards = _computed_once(identities, task, walk, steps, folder, description, progress, client)
    return summarize_reverse(torch.cat([shard["log_weights"] for shard in shards]).to(path.device))


def _device(
    path: BaseRatePath | RBMPairPath, device: torch.device | str | None, client: Client | None
) -> torch.device:
    """Where chains walk. Whether workers have a GPU is not known here."""
    return path.device if device is None else require_device("device", device, client is None)


def _chains_per_shard(walk: _Walk) -> int:
    return CHAINS_PER_SHARD if walk[2].type == "cpu" else CHAINS_PER_GPU_SHARD


def _identity(estimator: str, walk: _Walk) -> str:
    path, schedule, device = walk
    # The version is part of the name: what another version computed is not taken for this one's.
    betas = storage.sha256(schedule.numpy().tobytes())
    on_device = "" if device.type == "cpu" else f" {device.type}"
    return f"{estimator} {__version__} {path.checksum()} {betas}{on_device}"


def _walk_forward(
    walk: _Walk, generator: torch.Generator, on_step: Callable[[], object]
) -> dict[str, Tensor]:
    path, schedule, _ = walk
    chains = _chains_per_shard(walk)
    log_weights, visible = run_chains(path, schedule.tolist(), chains, generator, on_step)
    return {"log_weights": log_weights, "final_visible": visible.to(torch.uint8)}


def _walk_back(
    num_chains: int,
    vectors: Tensor,
    walk: _Walk,
    generator: torch.Generator,
    on_step: Callable[[], object],
) -> dict[str, Tensor]:
    path, schedule, _ = walk
    starts = vectors.repeat_interleave(num_chains, 0)
    log_weights = run_reverse_chains(path, starts, schedule.tolist(), generator, on_step)
    return {"log_weights": log_weights.view(-1, num_chains)}


def _computed_once(
    identities: Sequence[str],
    task: Callable[[int], _Task],
    walk: _Walk,
    steps: int,
    folder: str | os.PathLike[str],
    description: str,
    progress: bool | None,
    client: Client | None,
) -> list[dict[str, Tensor]]:
    """The shards with these identities, on the CPU, those computed that were not found."""
    names = [storage.sha256(identity.encode()) for identity in identities]
    files = [Path(folder) / f"{name}.safetensors" for name in names]
    shards: dict[int, dict[str, Tensor]] = {}
    total = len(names) * steps
    with step_bar(total, description, progress) as bar:
        for number, (name, file) in enumerate(zip(names, files, strict=True)):
            if file.is_file():
                shards[number] = _read_shard(file)
                bar.update(steps)
            elif client is None:
                shards[number] = _compute_here(task(number), walk, name, bar.update)
                write_safetensors(file, shards[number])
        missing = [(n, name) for n, name in enumerate(names) if n not in shards]
        if client is not None and missing:
            for number, shard in _compute_on_cluster(client, task, walk, missing):
                write_safetensors(files[number], shard)
                shards[number] = shard
                bar.update(steps)
    return [shards[number] for number in range(len(names))]


def _compute(
    task: _Task, walk: _Walk, name: str, on_step: Callable[[], object]
) -> dict[str, Tensor]:
    path, schedule, device = walk
    if path.device != device:
        walk = path.to(device), schedule, device
    # The name is a hash of all that the shard depends on: its first digits make a seed like no other shard's.
    generator = seeded_generator(int(name[:15], 16), device)
    return {key: tensor.cpu() for key, tensor in task(walk, generator, on_step).items()}


def _compute_here(
    task: _Task, walk: _Walk, name: str, on_step: Callable[[], object]
) -> dict[str, Tensor]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _compute(task, walk, name, on_step)
    finally:
        torch.set_num_threads(threads)


def _compute_on_worker(task: _Task, walk: _Walk, name: str, version: str) -> dict[str, Tensor]:
    if version != __version__:
        raise RuntimeError(
            f"cluster: expected workers with paperlib {version}, got one with {__version__}"
        )
    torch.set_num_threads(1)
    return _compute(task, walk, name, lambda: None)


def _compute_on_cluster(
    client: Client,
    task: Callable[[int], _Task],
    walk: _Walk,
    missing: Iterable[tuple[int, str]],
) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """Numbers and contents of the missing shards, as they arrive."""
    import dask
    from distributed import as_completed

    missing = iter(missing)
    path, schedule, device = walk
    shared = f"paperlib-walk-{path.checksum()}-{tensors_checksum([schedule])}-{device}"
    # The scheduler keeps what a task is made from: this is sent once, and a worker that dies does not take it along.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
        sent_walk = client.submit(_itself, walk, key=shared)
    numbers: dict[str, int] = {}

    def submit(number: int, name: str) -> Future:
        # The key is the shard's name: who else asks the cluster for this shard waits for the same computation.
        future = client.submit(
            _compute_on_worker,
            task(number),
            sent_walk,
            name,
            __version__,
            key=f"paperlib-shard-{name}",
        )
        numbers[future.key] = number
        return future

    ahead = [submit(*item) for item in islice(missing, _SHARDS_AHEAD)]
    arriving = as_completed(ahead, with_results=True)
    del ahead
    for future, shard in arriving:
        yield numbers.pop(future.key), shard
        for item in islice(missing, 1):
            arriving.add(submit(*item))


def _itself(walk: _Walk) -> _Walk:
    return walk


def _read_shard(file: Path) -> dict[str, Tensor]:
    try:
        return dict(read_arrays(file))
    except ValueError as error:
        raise ValueError(f"folder: expected whole shards; remove {file} and run again") from error
