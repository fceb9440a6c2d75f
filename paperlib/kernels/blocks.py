"""How many chains walk together, for the speed of products and the memory of states. Draws depend on it: it never changes.

Wide states: enough chains to keep matrix products efficient, few enough for the states to stay in cache. Narrow ones: the
interpreter is most of the work, and, since it runs one thread at a time, more threads would only wait for each other. A GPU wants all
chains that its memory holds.
"""

from __future__ import annotations

import torch

# Layers with fewer units are narrow.
WIDE = 128
_WIDE_CHAINS, _NARROW_CHAINS, _GPU_CHAINS = 100, 500, 20_000
# A step costs least for each chain when so many walk together, and a shard is little work to lose.
_SHARD_CHAINS, _GPU_SHARD_CHAINS = 100, 5_000


def chains_per_block(num_units: int, device: torch.device) -> int:
    """How many chains with so many units walk together: 100 of wide states, 500 of narrow ones, 20,000 on a GPU."""
    if device.type != "cpu":
        return _GPU_CHAINS
    return _WIDE_CHAINS if num_units >= WIDE else _NARROW_CHAINS


def chains_per_shard(device: torch.device) -> int:
    """How many chains a stored shard has: 100, or 5,000 where they walked on a GPU."""
    return _SHARD_CHAINS if device.type == "cpu" else _GPU_SHARD_CHAINS


def walks_in_threads(num_units: int, device: torch.device) -> bool:
    """Whether blocks of such chains gain by walking side by side in threads: those of wide states on a CPU."""
    return num_units >= WIDE and device.type == "cpu"
