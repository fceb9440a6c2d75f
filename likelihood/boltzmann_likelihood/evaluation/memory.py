"""How much memory an evaluation needs, and a warning where that is more than half of what is free.

The estimate adds up what an evaluation holds and makes: the parameters as they were read, the
weights prepared for products in both directions, the images, the states of the chains, and the
parts in which large matrices are worked on. It is for a run on the CPU, and says nothing about a
GPU's memory.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from torch import Tensor

from boltzmann_likelihood.evaluation.annealing_runs import TEMPERING_STEPS
from boltzmann_likelihood.evaluation.result import Effort
from paperlib.memory import PART_BYTES
from paperlib.models.unnormalized_model import UnnormalizedModel

#: What `needed_bytes` adds up, in words, for whoever has too little.
TERMS = (
    "its images and 16 bytes for each of them, about three copies of the model in float32, the "
    "states of its chains, and 16 bytes for each chain-step of parallel tempering"
)
# Python, torch, numba and what it has compiled.
_PROGRAM = 425 * 2**20
# For each weight, prepared in both directions.
_WEIGHT_BYTES = 8
# Chains that walk together, and what each unit of theirs takes.
_CHAINS = 100
_UNIT_BYTES = 24
# States that AIS and five runs of parallel tempering hold, in bytes for each unit.
_STATE_BYTES = 600 + 5 * 70 * 4
_IMAGE_BYTES = 16
_CHAIN_STEP_BYTES = 16
# Means of the visible units from which modes are looked for, and how many parts of them there are
# at once.
_MEANS = 514
_PARTS = 2
# Chain-steps of parallel tempering in all rounds, in units of those of the first.
_ROUNDS = 2.6
_GIB = 2**30


def needed_bytes(model: UnnormalizedModel, rows: Tensor, effort: Effort | None = None) -> int:
    """About how many bytes an evaluation on rows [N, D] takes at its peak, the program included.

    Examples
    --------
    >>> import torch
    >>> from paperlib.models import RBM
    >>> rbm = RBM(torch.zeros(784, 500), torch.zeros(784), torch.zeros(500))
    >>> images = torch.zeros(10_000, 784, dtype=torch.uint8)
    >>> print(f"{needed_bytes(rbm, images, Effort(1_000, 50_000)) / 2**20:.0f} MiB")
    451 MiB
    """
    parameters = sum(tensor.numel() for tensor in model.tensors().values())
    size = next(iter(model.tensors().values())).element_size()
    images = rows.numel() * rows.element_size() + _IMAGE_BYTES * len(rows)
    chains = model.num_units * (_CHAINS * _UNIT_BYTES + _STATE_BYTES)
    widest = max(model.num_visible, *model.hidden_layers)
    parts = _PARTS * min(PART_BYTES, 8 * _MEANS * widest)
    # Where the minutes decide, there may be this many.
    chain_steps = TEMPERING_STEPS[1]
    if effort is not None and effort.tempering_steps:
        chain_steps = effort.tempering_steps
    records = round(_ROUNDS * _CHAIN_STEP_BYTES * chain_steps)
    return _PROGRAM + parameters * (size + _WEIGHT_BYTES) + images + chains + parts + records


def free_bytes() -> int | None:
    """How many bytes a process can still allocate on this machine or in this container.

    None where the system does not say.
    """
    amounts = []
    try:
        meminfo = Path("/proc/meminfo").read_text()
        [available] = [line for line in meminfo.splitlines() if line.startswith("MemAvailable")]
        amounts.append(int(available.split()[1]) * 1024)
    except (OSError, ValueError):
        names = getattr(os, "sysconf_names", {})
        if "SC_AVPHYS_PAGES" in names:
            amounts.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    try:
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        amounts.append(max(0, limit - int((group / "memory.current").read_text())))
    except (OSError, ValueError):
        pass
    return min(amounts, default=None)


def warn_if_large(model: UnnormalizedModel, rows: Tensor, effort: Effort | None = None) -> None:
    """Warn, before it starts, of an evaluation that needs more than half of the free memory."""
    free = free_bytes()
    if free is None or model.device.type != "cpu":
        return
    # The program is there already.
    needed = needed_bytes(model, rows, effort) - _PROGRAM
    if needed > free / 2:
        warnings.warn(
            f"memory: this run needs about {needed / _GIB:.1f} GiB more, and {free / _GIB:.1f} GiB "
            f"are free: {TERMS}.",
            stacklevel=2,
        )
