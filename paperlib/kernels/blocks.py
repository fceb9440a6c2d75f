"""How many chains walk together, for the speed of products and the memory of states.

Draws depend on it, so it never changes.

Wide states need enough chains for efficient matrix products, but few enough for the states to stay
in cache. Narrow states are walked in larger numbers, which share what a step costs once. A GPU is
best used with as many chains as its memory holds.
"""

from __future__ import annotations

import torch

# Layers with fewer units are narrow.
_WIDE = 128
_WIDE_CHAINS = 100
_NARROW_CHAINS = 500
_GPU_CHAINS = 20_000
# With this many chains together a step costs least per chain, and losing a shard loses little work.
_SHARD_CHAINS = 100
_GPU_SHARD_CHAINS = 5_000
# With fewer chains, the products of a part cost more than another thread gains.
_FEWEST_CHAINS = 24
# How many steps are taken, and how many units drawn, at a time: so few that Ctrl-C need not wait
# for long.
_MOST_STEPS = 100
_MOST_UNITS = 2_000_000


def chains_per_block(num_units: int, device: torch.device) -> int:
    """How many chains with this many units walk together.

    With wide states 100, with narrow ones 500, on a GPU 20,000.
    """
    if device.type != "cpu":
        return _GPU_CHAINS
    return _WIDE_CHAINS if num_units >= _WIDE else _NARROW_CHAINS


def chains_per_shard(device: torch.device) -> int:
    """How many chains a stored shard has: 100, or 5,000 if they walked on a GPU."""
    return _SHARD_CHAINS if device.type == "cpu" else _GPU_SHARD_CHAINS


def steps_at_a_time(chains: int, num_units: int) -> int:
    """How many steps so many chains with this many units take before they are reported."""
    return min(_MOST_STEPS, max(1, _MOST_UNITS // (chains * max(1, num_units))))


def parts_for(chains: int, threads: int) -> int:
    """Into how many parts, at most, so many chains are divided for this many threads."""
    return max(1, min(threads, chains // _FEWEST_CHAINS))


def walks_in_threads(num_units: int, device: torch.device) -> bool:
    """Whether blocks of such chains are faster in threads: with wide states on a CPU.

    With narrow ones most of the work of a step that is written in Python is the interpreter's,
    which runs one thread at a time.
    """
    return num_units >= _WIDE and device.type == "cpu"
