"""Chains in blocks, which walk in parallel; memory holds only the blocks in progress.

A single block draws from the caller's generator. If there are several, each has its own generator,
seeded from the caller's, so results do not depend on the number of cores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch

from paperlib.annealing import AnnealingPath
from paperlib.numerics import seeded_generator
from paperlib.threads import OnStep, walk_side_by_side

Result = TypeVar("Result")


def walk_in_blocks(
    walk_block: Callable[[slice, torch.Generator, OnStep], Result],
    num_chains: int,
    path: AnnealingPath[Any],
    generator: torch.Generator,
    on_step: OnStep,
    size: int | None = None,
) -> list[Result]:
    """The results of `walk_block(chains, generator, on_step)` for blocks of the chains, in order.

    A block has `size` chains, by default `path.chains_per_block`. If `path.walks_in_threads`, as
    many blocks walk at a time as torch has threads (`torch.set_num_threads`), each with one thread.
    An exception in one of them, or Ctrl-C, ends the others at their next step.
    """
    size = path.chains_per_block if size is None else size
    blocks = [slice(i, min(i + size, num_chains)) for i in range(0, num_chains, size)]
    if len(blocks) == 1:
        return [walk_block(blocks[0], generator, on_step)]
    seeds = torch.randint(2**63 - 1, [len(blocks)], generator=generator, device=generator.device)
    generators = [seeded_generator(seed, generator.device) for seed in seeds.tolist()]
    walks = [partial(walk_block, *block) for block in zip(blocks, generators, strict=True)]
    if not path.walks_in_threads:
        return [walk(on_step) for walk in walks]
    return walk_side_by_side(walks, on_step)
