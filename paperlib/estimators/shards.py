"""Long AIS runs in shards: what was computed is stored, and never computed twice.

A shard is a block of chains, a pure function of the path, the schedule and the shard's own seed. Its file is named after
these, so that an interrupted run continues where it stopped, a run with more chains starts from those of a shorter one, and
a changed model is a different name.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from paperlib import __version__, storage
from paperlib.annealing import BaseRatePath, RBMPairPath, check_betas
from paperlib.estimators.ais import run_chains, summarize
from paperlib.estimators.estimate import PartitionEstimate
from paperlib.models.files import read_tensors, write_safetensors
from paperlib.numerics import seeded_generator
from paperlib.validation import require_count

# Also the number of chains for which a step costs least for each of them on a CPU.
CHAINS_PER_SHARD = 100


def ais_in_shards(
    path: BaseRatePath | RBMPairPath,
    betas: object,
    num_chains: int,
    seed: int,
    folder: str | os.PathLike[str],
    progress: bool | None = None,
) -> PartitionEstimate:
    """AIS as `paperlib.estimators.ais`, in shards of 100 chains that are kept in a folder.

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

    Returns
    -------
    PartitionEstimate
        The same whether shards were found or computed, in one run or in many.

    Raises
    ------
    ValueError
        As `ais`; if the path cannot be identified by a checksum; or if a stored shard is damaged.
    """
    schedule = check_betas(betas)
    num_chains = require_count("num_chains", num_chains)
    # The version is part of the name: what another version computed is not taken for this one's.
    identity = f"ais {__version__} {path.checksum()} {storage.sha256(schedule.numpy().tobytes())}"
    names = [
        storage.sha256(f"{identity} {seed} {number}".encode())
        for number in range(-(-num_chains // CHAINS_PER_SHARD))
    ]
    shards = []
    with tqdm(
        total=len(names) * (len(schedule) - 1),
        desc=f"AIS, {num_chains} chains",
        unit="step",
        delay=2,
        disable=None if progress is None else not progress,
    ) as bar:
        for name in names:
            file = Path(folder) / f"{name}.safetensors"
            if file.is_file():
                shards.append(_read_shard(file, path))
                bar.update(len(schedule) - 1)
                continue
            # The name is a hash of all that the shard depends on: its first digits make a seed like no other shard's.
            generator = seeded_generator(int(name[:15], 16), path.device)
            log_weights, visible = run_chains(
                path, schedule.tolist(), CHAINS_PER_SHARD, generator, bar.update
            )
            write_safetensors(
                file, {"log_weights": log_weights, "final_visible": visible.to(torch.uint8)}
            )
            shards.append((log_weights, visible))
    log_weights, visible = (torch.cat(parts)[:num_chains] for parts in zip(*shards, strict=True))
    return summarize(path, log_weights, visible)


def _read_shard(file: Path, path: BaseRatePath | RBMPairPath) -> tuple[Tensor, Tensor]:
    try:
        stored = read_tensors(file, ["log_weights", "final_visible"])
    except ValueError as error:
        raise ValueError(f"folder: expected whole shards; remove {file} and run again") from error
    return (
        stored["log_weights"].to(path.device),
        stored["final_visible"].to(path.device, path.dtype),
    )
