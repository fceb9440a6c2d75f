"""Chains in blocks: memory is that of the blocks in flight, and blocks walk side by side on the processor's cores.

A single block draws from the caller's generator; of several each has one of its own, seeded by the caller's, so that results do not
depend on the number of cores.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import torch
from tqdm import tqdm

from paperlib.numerics import seeded_generator
from paperlib.threads import run_in_threads

Result = TypeVar("Result")

# Wide states: enough chains to keep matrix products efficient, few enough for the states to stay in cache. Narrow ones: the
# interpreter is most of the work, and, since it runs one thread at a time, more threads would only wait for each other. A GPU wants
# all chains that its memory holds.
_WIDE = 128
_WIDE_CHAINS, _NARROW_CHAINS, _GPU_CHAINS = 100, 500, 20_000


def step_bar(total: int, description: str, progress: bool | None, unit: str = "step") -> tqdm:
    """A progress bar; `progress` None: where standard error is a terminal and it takes more than two seconds."""
    return tqdm(
        total=total,
        desc=description,
        unit=unit,
        delay=2,
        disable=None if progress is None else not progress,
    )


class _StoppedError(Exception):
    """Another block has failed, or the user has had enough."""


def count_blocks(num_chains: int, num_visible: int, device: torch.device) -> int:
    """Into how many blocks chains with so many visible units are divided."""
    return len(_blocks(num_chains, num_visible, device))


def walk_in_blocks(
    walk: Callable[[slice, torch.Generator, Callable[[], object]], Result],
    num_chains: int,
    num_visible: int,
    generator: torch.Generator,
    on_step: Callable[[], object],
) -> list[Result]:
    """The results of `walk(chains, generator, on_step)` for blocks of 100 (narrow states: 500; GPU: 20,000) of the chains, in their order.

    On a CPU as many blocks walk at a time as torch has threads (`torch.set_num_threads`), each with one thread. An exception in one of
    them, or Ctrl-C, ends the others at their next step.
    """
    blocks = _blocks(num_chains, num_visible, generator.device)
    if len(blocks) == 1:
        return [walk(blocks[0], generator, on_step)]
    seeds = torch.randint(2**63 - 1, [len(blocks)], generator=generator, device=generator.device)
    generators = [seeded_generator(seed, generator.device) for seed in seeds.tolist()]
    walks = [partial(walk, *block) for block in zip(blocks, generators, strict=True)]
    one_by_one = num_visible < _WIDE or generator.device.type != "cpu"
    if one_by_one or torch.get_num_threads() == 1:
        return [walk(on_step) for walk in walks]

    stop, lock = threading.Event(), threading.Lock()

    def on_step_of_any() -> None:
        if stop.is_set():
            raise _StoppedError
        with lock:
            on_step()

    return run_in_threads([partial(walk, on_step_of_any) for walk in walks], stop=stop.set)


def _blocks(num_chains: int, num_visible: int, device: torch.device) -> list[slice]:
    on_cpu = _WIDE_CHAINS if num_visible >= _WIDE else _NARROW_CHAINS
    size = on_cpu if device.type == "cpu" else _GPU_CHAINS
    return [slice(i, min(i + size, num_chains)) for i in range(0, num_chains, size)]
