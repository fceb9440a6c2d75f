"""Long runs of AIS, RAISE, CSL and parallel tempering in shards: results are stored, and never computed twice.

A shard is a block of chains, or a whole ladder. Its draws follow from the path, the schedule, the seed, the shard's
number and the version of the draws (`paperlib.kernels.version`), and its file is named after these.
An interrupted run therefore continues where it stopped, a run with more chains starts from those of
a smaller run, and a changed model gets different file names.

Missing shards are computed here one after the other, or sent to a Dask cluster and stored here as
they arrive. Each shard is computed by one thread, since the last digits of float32 sums depend on
how many threads share them. The result is therefore the same for any number of workers and any
order of arrival. If a worker or this process dies, only the shards in progress are lost. Processors
of different kinds round float32 sums differently, and chains may then diverge.

The file also says what computed the shard (`paperlib.provenance.made_by`), when, and in how many
seconds. `paperlib.estimators.shard_log` reports this for all shards that this process used. Older
files do not contain it.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from paperlib import __version__, storage
from paperlib.annealing import AnnealingPath, check_betas
from paperlib.errors import InputError
from paperlib.estimators.ais import require_path, run_chains, summarize
from paperlib.estimators.blocks import step_bar
from paperlib.estimators.estimate import PartitionEstimate
from paperlib.estimators.reverse_ais import (
    ReverseEstimate,
    require_reversible,
    run_reverse_chains,
    summarize_reverse,
)
from paperlib.estimators.shard_log import note
from paperlib.estimators.tempering.ladder_run import LadderRun, Plan
from paperlib.estimators.tempering.tempering import (
    FEWEST_CHAIN_STEPS,
    TemperingEstimate,
    climb,
    compared_with_bound,
    join_ladders,
)
from paperlib.kernels import DRAWS, chains_per_shard
from paperlib.models.files import (
    read_metadata,
    read_safetensors,
    tensors_checksum,
    write_safetensors,
)
from paperlib.numerics import seeded_generator
from paperlib.provenance import device_name, made_by
from paperlib.threads import one_thread
from paperlib.validation import ArrayLike, as_binary, require_count, require_device

if TYPE_CHECKING:
    from distributed import Client, Future

# What all shards of a run share: a path (CSL: a model), its schedule, and the device on which chains walk.
Walk = tuple[Any, Tensor, torch.device]
# Called after each step of a shard.
OnStep = Callable[[int], object]
# Given these, a generator, and a function to call after each step: computes what a shard holds.
_Task = Callable[[Walk, torch.Generator, OnStep], dict[str, Tensor]]

# Shards submitted to a cluster at a time: enough for thousands of cores, few enough for the memory
# of its scheduler.
_SHARDS_AHEAD = 2_000
# It includes the version of a ladder's steps, since another version would use the same random numbers differently.
_LADDER = "tempering 1"
_SAMPLES_OF_LADDER = 1_000
# The key in a file's metadata for what computed it.
_MADE_BY = "made_by"


def ais_in_shards(
    path: AnnealingPath[Any],
    betas: object,
    num_chains: int,
    seed: int,
    folder: str | os.PathLike[str],
    progress: bool | None = None,
    client: Client | None = None,
    device: torch.device | str | None = None,
) -> PartitionEstimate:
    """AIS as in `paperlib.estimators.ais`, in shards of 100 chains (GPU: 5,000) kept in a folder.

    Parameters
    ----------
    path : AnnealingPath
        A path that a checksum identifies; an `RBMPairPath` must be without `sample_a`.
    betas : sequence of K + 1 numbers
        0 = beta_0 < ... < beta_K = 1.
    num_chains : int
        Independent runs M. The first ones are the same whatever M is.
    seed : int
        Determines the draws of a shard, together with the shard's number.
    folder : path
        Where shards are kept; created if it does not exist.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal.
    client : dask.distributed.Client, optional
        Send missing shards to its cluster, for instance that of `paperlib.cluster.connect`.
        None: compute them here.
    device : torch.device or str, optional
        Where chains walk, here or on the cluster's workers. None: where the path is. The result is
        on the path's device in any case. A GPU draws different random numbers than a CPU, so its
        shards are different ones.

    Returns
    -------
    PartitionEstimate
        The same whether shards were found or computed, here or elsewhere, in one run or in many.
        `paperlib.estimators.shard_log` tells what computed them.

    Raises
    ------
    InputError
        As in `ais`; if the path cannot be identified by a checksum; if a stored shard is damaged;
        or if there is no such device.
    RuntimeError
        If a worker of the cluster has another version of this package or of its draws.

    Notes
    -----
    Memory holds the result, 8 + 5 D bytes per chain in float32, and one shard's states, here and on
    each worker.

    Examples
    --------
    >>> import tempfile
    >>> from paperlib.annealing import BaseRatePath, uniform_betas
    >>> from paperlib.models import RBM
    >>> path = BaseRatePath(RBM([[1.0, -1.0], [0.5, 2.0]], [0.0, 0.0], [0.0, 0.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = ais_in_shards(path, uniform_betas(10), 100, 1, folder)
    ...     again = ais_in_shards(path, uniform_betas(10), 200, 1, folder)
    >>> bool((again.log_weights[:100] == first.log_weights).all())
    True
    """
    run = ais_run(path, betas, num_chains, seed, device)
    shards = computed_once(run, Path(folder), progress, client)
    log_weights, visible = (
        torch.cat([shard[name] for shard in shards])[:num_chains].to(path.device)
        for name in ("log_weights", "final_visible")
    )
    return summarize(path, log_weights, visible.to(path.dtype))


def ais_run(
    path: AnnealingPath[Any],
    betas: object,
    num_chains: int,
    seed: int,
    device: torch.device | str | None = None,
) -> ShardedRun:
    """The shards of `ais_in_shards` with these arguments."""
    require_path(path)
    schedule = check_betas(betas)
    num_chains = require_count("num_chains", num_chains)
    walk = path, schedule, device_of(path.device, device)
    size = chains_per_shard(walk[2])
    identity = f"{identity_of('ais', walk)} {seed}"
    return ShardedRun(
        f"AIS, {num_chains} chains",
        walk,
        [f"{identity} {n}" for n in range(-(-num_chains // size))],
        lambda number: _walk_forward,
        lambda number: size,
        len(schedule) - 1,
    )


def raise_in_shards(
    path: AnnealingPath[Any],
    v: ArrayLike,
    betas: object,
    num_chains: int,
    seed: int,
    folder: str | os.PathLike[str],
    progress: bool | None = None,
    client: Client | None = None,
    device: torch.device | str | None = None,
) -> ReverseEstimate:
    """RAISE as in `paperlib.estimators.raise_log_prob`, in shards of a few vectors kept in a folder.

    Parameters
    ----------
    path : AnnealingPath
        The path to walk back; a checksum must identify it.
    v : array or Tensor, shape [N, D]
        Binary test vectors of any type. A longer batch that begins with the same vectors finds
        their shards.
    betas, num_chains, seed, folder, progress, client, device
        As in `ais_in_shards`, with `num_chains` for each vector.

    Returns
    -------
    ReverseEstimate
        The same whether shards were found or computed, here or elsewhere, in one run or in many.
        `paperlib.estimators.shard_log` tells what computed them.

    Raises
    ------
    InputError
        As in `raise_log_prob`; if the path cannot be identified by a checksum; if a stored shard is
        damaged; or if there is no such device.
    RuntimeError
        As in `ais_in_shards`.

    Notes
    -----
    Memory holds the vectors, the result, 8 bytes per chain and about a kilobyte per shard, and one
    shard's states, here and on each worker.

    Examples
    --------
    >>> import tempfile
    >>> from paperlib.annealing import BaseRatePath, uniform_betas
    >>> from paperlib.models import RBM
    >>> path = BaseRatePath(RBM([[1.0, -1.0], [0.5, 2.0]], [0.0, 0.0], [0.0, 0.0]))
    >>> v = torch.tensor([[0, 1], [1, 1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     estimate = raise_in_shards(path, v, uniform_betas(10), 20, 1, folder)
    >>> estimate.log_weights.shape
    torch.Size([2, 20])
    """
    run = raise_run(path, v, betas, num_chains, seed, device)
    shards = computed_once(run, Path(folder), progress, client)
    return summarize_reverse(torch.cat([shard["log_weights"] for shard in shards]).to(path.device))


def raise_run(
    path: AnnealingPath[Any],
    v: ArrayLike,
    betas: object,
    num_chains: int,
    seed: int,
    device: torch.device | str | None = None,
) -> ShardedRun:
    """The shards of `raise_in_shards` with these arguments."""
    schedule = check_betas(betas)
    num_chains = require_count("num_chains", num_chains)
    require_reversible(path)
    vectors = as_binary("v", v, path.num_visible)
    walk = path, schedule, device_of(path.device, device)
    blocks = vectors.to(torch.uint8).split(max(1, chains_per_shard(walk[2]) // num_chains))
    identity = f"{identity_of('raise', walk)} {num_chains} {seed}"
    return ShardedRun(
        f"RAISE, {len(vectors)} vectors",
        walk,
        [f"{identity} {n} {tensors_checksum([block])}" for n, block in enumerate(blocks)],
        # A copy, since a slice of a tensor would be sent with the whole tensor.
        lambda number: partial(_walk_back, num_chains, blocks[number].clone()),
        lambda number: len(blocks[number]) * num_chains,
        (len(schedule) - 1) * path.reverse_passes,
    )


def tempering_in_shards(
    path: AnnealingPath[Any],
    chain_steps: int,
    num_ladders: int,
    seed: int,
    folder: str | os.PathLike[str],
    progress: bool | None = None,
    client: Client | None = None,
    device: torch.device | str | None = None,
) -> TemperingEstimate:
    """Parallel tempering as in `paperlib.estimators.parallel_tempering`, on independent ladders, each a shard kept in a folder.

    The first ladder chooses the rungs, and all others use the same ones.

    Parameters
    ----------
    path : AnnealingPath
        A path that a checksum identifies.
    chain_steps : int
        Transitions of single chains for each ladder, at least 1,000.
    num_ladders : int
        Independent ladders. The first ones are the same however many there are.
    seed, folder, progress, client, device
        As in `ais_in_shards`.

    Returns
    -------
    TemperingEstimate
        All ladders joined (`paperlib.estimators.join_ladders`). It is the same whether they were found or computed, here or elsewhere,
        in one run or in many.

    Raises
    ------
    InputError
        As in `parallel_tempering`; if the path cannot be identified by a checksum; if a stored shard is damaged; or if there is no
        such device.
    RuntimeError
        As in `ais_in_shards`.

    Examples
    --------
    >>> import tempfile
    >>> from paperlib.annealing import BaseRatePath
    >>> from paperlib.models import RBM
    >>> path = BaseRatePath(RBM([[1.0, -1.0], [0.5, 2.0]], [0.0, 0.0], [0.0, 0.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     two = tempering_in_shards(path, 2_000, 2, 1, folder)
    ...     three = tempering_in_shards(path, 2_000, 3, 1, folder)  # computes one
    >>> three.chain_steps > two.chain_steps, bool((three.samples[: len(two.samples)] == two.samples).all())
    (True, True)
    """
    require_path(path)
    chain_steps = require_count("chain_steps", chain_steps, FEWEST_CHAIN_STEPS)
    num_ladders = require_count("num_ladders", num_ladders)
    first = (
        path,
        torch.empty(0, dtype=torch.float64),
        device_of(path.device, device),
    )

    def ladders(walk: Walk, numbers: range) -> list[TemperingEstimate]:
        identity = f"{identity_of(_LADDER, walk)} {chain_steps} {seed}"
        run = ShardedRun(
            f"Parallel tempering, {len(numbers)} of {num_ladders} ladders",
            walk,
            [f"{identity} {number}" for number in numbers],
            lambda number: partial(_climb, chain_steps),
            lambda number: 1,
            chain_steps,
        )
        shards = computed_once(run, Path(folder), progress, client)
        return [_ladder_of(path, shard) for shard in shards]

    [leader] = ladders(first, range(1))
    others = ladders((path, leader.betas, first[2]), range(1, num_ladders))
    return compared_with_bound(path, join_ladders([leader, *others]))


@dataclass(frozen=True)
class ShardedRun:
    """Shards that belong together; `computed_once` computes those that are missing.

    Attributes
    ----------
    description : str
        For the progress bar.
    walk : tuple
        What the shards share.
    identities : sequence of str
        Everything that the draws of each shard depend on.
    task : callable
        Given a shard's number, the task that computes it.
    chains : callable
        Given a shard's number, how many chains it has.
    steps : int
        Steps that each chain takes.
    """

    description: str
    walk: Walk
    identities: Sequence[str]
    task: Callable[[int], _Task]
    chains: Callable[[int], int]
    steps: int

    def names(self) -> list[str]:
        """Names of the shards' files, without the suffix."""
        return [storage.sha256(identity.encode()) for identity in self.identities]

    def files(self, folder: Path) -> list[Path]:
        """Where the shards are kept, in order, whether they have been computed or not."""
        return [folder / f"{name}.safetensors" for name in self.names()]

    def stored(self, folder: Path) -> bool:
        """Whether all of its shards are in the folder."""
        return all(file.is_file() for file in self.files(folder))


class Shard(NamedTuple):
    """What a shard's file holds.

    Attributes
    ----------
    tensors : dict of str to Tensor
        On the CPU.
    made_by : mapping or None
        What computed them; None in older files.
    """

    tensors: dict[str, Tensor]
    made_by: Mapping[str, Any] | None


def device_of(own: torch.device, device: torch.device | str | None) -> torch.device:
    """Where chains walk. Stored shards may come from a GPU that this machine lacks."""
    return own if device is None else require_device("device", device, present=False)


def identity_of(estimator: str, walk: Walk) -> str:
    """What the draws of all shards of a run depend on."""
    path, schedule, device = walk
    betas = storage.sha256(schedule.numpy().tobytes())
    on_device = "" if device.type == "cpu" else f" {device.type}"
    # The version of the draws is included, so that shards drawn in another way are not used instead.
    return f"{estimator} {DRAWS} {path.checksum()} {betas}{on_device}"


def _walk_forward(walk: Walk, generator: torch.Generator, on_step: OnStep) -> dict[str, Tensor]:
    path, schedule, device = walk
    chains = chains_per_shard(device)
    log_weights, visible = run_chains(path, schedule.tolist(), chains, generator, on_step)
    return {"log_weights": log_weights, "final_visible": visible.to(torch.uint8)}


def _walk_back(
    num_chains: int,
    vectors: Tensor,
    walk: Walk,
    generator: torch.Generator,
    on_step: OnStep,
) -> dict[str, Tensor]:
    path, schedule, _ = walk
    starts = vectors.repeat_interleave(num_chains, 0)
    log_weights = run_reverse_chains(path, starts, schedule.tolist(), generator, on_step)
    return {"log_weights": log_weights.view(-1, num_chains)}


def _climb(
    chain_steps: int, walk: Walk, generator: torch.Generator, on_step: OnStep
) -> dict[str, Tensor]:
    path, betas, _ = walk
    plan = Plan(chain_steps, betas if len(betas) else None, None, _SAMPLES_OF_LADDER)
    found = climb(LadderRun(path, plan, generator), on_step, check=False)
    counts = found.round_trips, found.num_replicas, found.chain_steps, found.counted_steps
    numbers = [found.log_z, found.std_error, found.degrees_of_freedom, *counts]
    return {
        "numbers": torch.tensor(numbers, dtype=torch.float64),
        "warnings": torch.tensor(list(json.dumps(found.warnings).encode()), dtype=torch.uint8),
        "samples": found.samples.to(torch.uint8),
        "betas": found.betas,
        "rejection_rates": found.rejection_rates,
        "blocks": found.blocks,
        "log_z_at_betas": found.log_z_at_betas,
    }


def _ladder_of(path: AnnealingPath[Any], shard: Mapping[str, Tensor]) -> TemperingEstimate:
    log_z, std_error, freedom, *counts = shard["numbers"].tolist()
    round_trips, num_replicas, chain_steps, counted_steps = map(int, counts)
    return TemperingEstimate(
        log_z=log_z,
        std_error=std_error,
        degrees_of_freedom=freedom,
        betas=shard["betas"],
        rejection_rates=shard["rejection_rates"],
        round_trips=round_trips,
        samples=shard["samples"].to(path.device, path.dtype),
        blocks=shard["blocks"],
        log_z_at_betas=shard.get("log_z_at_betas", torch.full_like(shard["betas"], math.nan)),
        num_replicas=num_replicas,
        chain_steps=chain_steps,
        counted_steps=counted_steps,
        warnings=tuple(json.loads(bytes(shard["warnings"].tolist()))),
    )


def computed_once(
    run: ShardedRun, folder: Path, progress: bool | None, client: Client | None
) -> list[dict[str, Tensor]]:
    """The tensors of a run's shards, in order; shards that are not found are computed."""
    if client is None and not run.stored(folder):
        require_device("device", run.walk[2])
    names, files = run.names(), run.files(folder)
    tensors: dict[int, dict[str, Tensor]] = {}

    def keep(number: int, shard: Shard, found: bool) -> None:
        if not found:
            write_shard(files[number], shard)
        tensors[number] = shard.tensors
        note(names[number], found, shard.made_by)

    # The bar counts steps of single chains.
    chains = [run.chains(number) for number in range(len(names))]
    with step_bar(sum(chains) * run.steps, run.description, progress) as bar:
        for number, file in enumerate(files):
            if file.is_file():
                keep(number, read_shard(file), True)
                bar.update(chains[number] * run.steps)
            elif client is None:
                shard = _compute_here(run.task(number), run.walk, names[number], bar.update)
                keep(number, shard, False)
        missing = [number for number in range(len(names)) if number not in tensors]
        if client is not None and missing:
            for number, shard in _compute_on_cluster(client, run, names, missing):
                keep(number, shard, False)
                bar.update(chains[number] * run.steps)
    return [tensors[number] for number in range(len(names))]


def _compute(task: _Task, walk: Walk, name: str, on_step: OnStep) -> Shard:
    path, schedule, device = walk
    started = time.perf_counter()
    if path.device != device:
        walk = path.to(device), schedule, device
    # The name is a hash of everything that the shard depends on. Its first digits make a seed that
    # no other shard has.
    generator = seeded_generator(int(name[:15], 16), device)
    return finished_shard(task(walk, generator, on_step), device, started)


def finished_shard(tensors: Mapping[str, Tensor], device: torch.device, started: float) -> Shard:
    """A shard that this process has just computed on this device, having begun at `time.perf_counter()` = `started`."""
    made = {
        **made_by(),
        "draws": DRAWS,
        "device": device_name(device),
        "seconds": round(time.perf_counter() - started, 3),
        "utc": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return Shard({key: tensor.cpu() for key, tensor in tensors.items()}, made)


def write_shard(file: Path, shard: Shard) -> None:
    """Write a shard's file, whole or not at all."""
    write_safetensors(file, shard.tensors, {_MADE_BY: json.dumps(shard.made_by)})


def _compute_here(task: _Task, walk: Walk, name: str, on_step: OnStep) -> Shard:
    with one_thread():
        return _compute(task, walk, name, on_step)


def _versions() -> str:
    return f"paperlib {__version__} with draws {DRAWS}"


def _compute_on_worker(task: _Task, walk: Walk, name: str, versions: str) -> Shard:
    if versions != _versions():
        raise RuntimeError(f"cluster: expected workers with {versions}, got one with {_versions()}")
    torch.set_num_threads(1)
    return _compute(task, walk, name, lambda chains: None)


def _compute_on_cluster(
    client: Client, run: ShardedRun, names: Sequence[str], missing: Iterable[int]
) -> Iterator[tuple[int, Shard]]:
    """Numbers and contents of the missing shards, as they arrive."""
    from dask import config
    from distributed import as_completed

    missing = iter(missing)
    path, schedule, device = run.walk
    shared = f"paperlib-walk-{path.checksum()}-{tensors_checksum([schedule])}-{device}"
    # The scheduler keeps the inputs of tasks, so the walk is sent only once and is not lost with a
    # worker that dies.
    with config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
        sent_walk = client.submit(_itself, run.walk, key=shared)
    numbers: dict[str, int] = {}

    def submit(number: int) -> Future:
        # The key is the shard's name, so that others who request the same shard wait for this task.
        future = client.submit(
            _compute_on_worker,
            run.task(number),
            sent_walk,
            names[number],
            _versions(),
            key=f"paperlib-shard-{names[number]}",
        )
        numbers[str(future.key)] = number
        return future

    ahead = [submit(number) for number in islice(missing, _SHARDS_AHEAD)]
    arriving = as_completed(ahead, with_results=True)
    del ahead
    for future, shard in arriving:
        yield numbers.pop(str(future.key)), shard
        for number in islice(missing, 1):
            arriving.add(submit(number))


def _itself(walk: Walk) -> Walk:
    return walk


def shard_seconds(file: Path) -> float | None:
    """How long a stored shard took, without reading its tensors; None in older files."""
    made_by = json.loads(read_metadata(file).get(_MADE_BY) or "null")
    return made_by and made_by["seconds"]


def read_shard(file: Path) -> Shard:
    """Read a shard's file.

    Raises
    ------
    InputError
        If it is damaged.
    """
    try:
        made_by = read_metadata(file).get(_MADE_BY)
        return Shard(read_safetensors(file), json.loads(made_by) if made_by else None)
    except ValueError as error:
        raise InputError(f"folder: expected whole shards; remove {file} and run again") from error
