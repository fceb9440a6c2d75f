"""How many chains walk together, for the speed of products and the memory of states.

Draws depend on it, so it never changes.

Wide states need enough chains for efficient matrix products, but few enough for the states to stay
in cache. With narrow states most of the work is the interpreter's; since it runs one thread at a
time, more threads would only wait for each other. A GPU is best used with as many chains as its
memory holds.
"""

from __future__ import annotations

import torch

# Layers with fewer units are narrow.
WIDE = 128
_WIDE_CHAINS = 100
_NARROW_CHAINS = 500
_GPU_CHAINS = 20_000
# With this many chains together a step costs least per chain, and losing a shard loses little work.
_SHARD_CHAINS = 100
_GPU_SHARD_CHAINS = 5_000


def chains_per_block(num_units: int, device: torch.device) -> int:
    """How many chains with this many units walk together.

    With wide states 100, with narrow ones 500, on a GPU 20,000.
    """
    if device.type != "cpu":
        return _GPU_CHAINS
    return _WIDE_CHAINS if num_units >= WIDE else _NARROW_CHAINS


def chains_per_shard(device: torch.device) -> int:
    """How many chains a stored shard has: 100, or 5,000 if they walked on a GPU."""
    return _SHARD_CHAINS if device.type == "cpu" else _GPU_SHARD_CHAINS


def walks_in_threads(num_units: int, device: torch.device) -> bool:
    """Whether blocks of such chains are faster in threads: with wide states on a CPU."""
    return num_units >= WIDE and device.type == "cpu"
