"""The matrix products alone, same shapes: what no implementation with dense products of that kind can undercut.

All chains at once, whatever blocks the library cuts them into.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.work import CD_STEPS, Work


def prepare_annealing(work: Work, device: str) -> Callable[[], None]:
    """K times v @ W and h @ W.T, float32."""
    weights = work.model(device).weights
    v = (torch.rand(work.chains, work.visible, device=device) < 0.3).float()
    h = (torch.rand(work.chains, work.hidden, device=device) < 0.3).float()
    to_hidden, to_visible = torch.empty_like(h), torch.empty_like(v)

    def run() -> None:
        for _ in range(work.steps):
            torch.mm(v, weights, out=to_hidden)
            torch.mm(h, weights.T, out=to_visible)

    return run


def prepare_integer_annealing(work: Work, device: str) -> Callable[[], None] | None:
    """K times v @ [W1 W2] and h @ [W1 W2].T, int8 with sums of 32 bits: W in 16 bits, as in paperlib.kernels.products."""
    if device != "cpu" or not torch.cpu._is_vnni_supported():
        return None
    v = (torch.rand(work.chains, work.visible) < 0.3).to(torch.int8)
    h = (torch.rand(work.chains, work.hidden) < 0.3).to(torch.int8)
    to_hidden = torch.randint(-128, 128, (work.visible, 2 * work.hidden), dtype=torch.int8)
    to_visible = torch.randint(-128, 128, (work.hidden, 2 * work.visible), dtype=torch.int8)

    def run() -> None:
        for _ in range(work.steps):
            torch._int_mm(v, to_hidden)
            torch._int_mm(h, to_visible)

    return run


def prepare_training(work: Work, device: str) -> Callable[[], None]:
    """For each update 1 (PCD: 2) v @ W for the positive phase, 2 for each Gibbs step, and 2 v.T @ h; float32."""
    weights = work.initial(device).weights
    v = (torch.rand(work.chains, work.visible, device=device) < 0.3).float()
    h = (torch.rand(work.chains, work.hidden, device=device) < 0.3).float()
    to_hidden, to_visible, change = (
        torch.empty_like(h),
        torch.empty_like(v),
        torch.empty_like(weights),
    )
    gibbs_steps = CD_STEPS.get(work.task, 1)
    upward = gibbs_steps + (2 if work.task == "PCD" else 1)

    def run() -> None:
        for _ in range(work.steps):
            for _ in range(upward):
                torch.mm(v, weights, out=to_hidden)
            for _ in range(gibbs_steps):
                torch.mm(h, weights.T, out=to_visible)
            for _ in range(2):
                torch.mm(v.T, h, out=change)

    return run
