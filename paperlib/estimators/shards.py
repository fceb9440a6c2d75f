"""Long AIS and RAISE runs in shards: what was computed is stored, and never computed twice.

A shard is a block of chains, a pure function of the path, the schedule and the shard's own seed. Its file is named after
these, so that an interrupted run continues where it stopped, a run with more chains starts from those of a shorter one, and
a changed model is a different name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from paperlib import __version__, storage
from paperlib.annealing import BaseRatePath, RBMPairPath, check_betas
from paperlib.estimators.ais import run_chains, summarize
from paperlib.estimators.estimate import PartitionEstimate
from paperlib.estimators.reverse_ais import (
    ReverseEstimate,
    require_reversible,
    run_reverse_chains,
    summarize_reverse,
)
from paperlib.models.files import read_arrays, tensors_checksum, write_safetensors
from paperlib.numerics import seeded_generator
from paperlib.validation import require_binary, require_count, require_shape

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
    identity = f"{_identity('ais', path, schedule)} {seed}"

    def compute(
        number: int, generator: torch.Generator, on_step: Callable[[], object]
    ) -> dict[str, Tensor]:
        log_weights, visible = run_chains(
            path, schedule.tolist(), CHAINS_PER_SHARD, generator, on_step
        )
        return {"log_weights": log_weights, "final_visible": visible.to(torch.uint8)}

    identities = [f"{identity} {n}" for n in range(-(-num_chains // CHAINS_PER_SHARD))]
    description = f"AIS, {num_chains} chains"
    shards = _computed_once(
        identities, compute, path, len(schedule) - 1, folder, description, progress
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
) -> ReverseEstimate:
    """RAISE as `paperlib.estimators.raise_log_prob`, in shards of a few test vectors that are kept in a folder.

    Parameters
    ----------
    path : BaseRatePath
        The path to walk back.
    v : Tensor, shape [N, D]
        Binary test vectors of any type. A longer batch that begins with the same vectors finds their shards.
    betas, num_chains, seed, folder, progress
        As in `ais_in_shards`, with `num_chains` for each vector.

    Returns
    -------
    ReverseEstimate
        The same whether shards were found or computed, in one run or in many.

    Raises
    ------
    ValueError
        As `raise_log_prob`; if the path cannot be identified by a checksum; or if a stored shard is damaged.
    """
    schedule = check_betas(betas)
    num_chains = require_count("num_chains", num_chains)
    require_reversible(path)
    require_shape("v", v, [None, path.num_visible])
    require_binary("v", v)
    blocks = v.to(torch.uint8).split(max(1, CHAINS_PER_SHARD // num_chains))
    identity = f"{_identity('raise', path, schedule)} {num_chains} {seed}"

    def compute(
        number: int, generator: torch.Generator, on_step: Callable[[], object]
    ) -> dict[str, Tensor]:
        starts = blocks[number].repeat_interleave(num_chains, 0)
        return {
            "log_weights": run_reverse_chains(
                path, starts, schedule.tolist(), generator, on_step
            ).view(-1, num_chains)
        }

    identities = [f"{identity} {n} {tensors_checksum([block])}" for n, block in enumerate(blocks)]
    description = f"RAISE, {len(v)} vectors"
    steps = (len(schedule) - 1) * path.reverse_passes
    shards = _computed_once(identities, compute, path, steps, folder, description, progress)
    return summarize_reverse(torch.cat([shard["log_weights"] for shard in shards]).to(path.device))


def _identity(estimator: str, path: BaseRatePath | RBMPairPath, schedule: Tensor) -> str:
    # The version is part of the name: what another version computed is not taken for this one's.
    betas = storage.sha256(schedule.numpy().tobytes())
    return f"{estimator} {__version__} {path.checksum()} {betas}"


def _computed_once(
    identities: Sequence[str],
    compute: Callable[[int, torch.Generator, Callable[[], object]], dict[str, Tensor]],
    path: BaseRatePath | RBMPairPath,
    steps: int,
    folder: str | os.PathLike[str],
    description: str,
    progress: bool | None,
) -> list[dict[str, Tensor]]:
    """The shards with these identities, on the CPU, those computed that were not found."""
    shards = []
    with tqdm(
        total=len(identities) * steps,
        desc=description,
        unit="step",
        delay=2,
        disable=None if progress is None else not progress,
    ) as bar:
        for number, identity in enumerate(identities):
            name = storage.sha256(identity.encode())
            file = Path(folder) / f"{name}.safetensors"
            if file.is_file():
                shards.append(_read_shard(file))
                bar.update(steps)
                continue
            # The name is a hash of all that the shard depends on: its first digits make a seed like no other shard's.
            generator = seeded_generator(int(name[:15], 16), path.device)
            shard = {
                key: tensor.cpu() for key, tensor in compute(number, generator, bar.update).items()
            }
            write_safetensors(file, shard)
            shards.append(shard)
    return shards


def _read_shard(file: Path) -> dict[str, Tensor]:
    try:
        return dict(read_arrays(file))
    except ValueError as error:
        raise ValueError(f"folder: expected whole shards; remove {file} and run again") from error
