"""Settings of torch that a caller may have made, and that must not change a number here.

A validation step often runs inside of `torch.autocast`, where torch rounds the factors of float32
products to eight bits. No estimate says so: its error bar stays as narrow. Other programs make a
GPU the default device. What makes tensors or multiplies them therefore says `plain_torch`, as a
decorator of a function or as a context within it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch


def autocasts() -> bool:
    """Whether torch rounds the factors of products here."""
    return torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")


@contextmanager
def plain_torch(gradients: bool = True) -> Iterator[None]:
    """A context, or a decorator, without autocast and with the CPU as the default device.

    Parameters
    ----------
    gradients : bool
        Whether gradients are recorded if they are outside; False: never.

    Examples
    --------
    >>> with torch.autocast("cpu"), plain_torch():
    ...     torch.mm(torch.ones(1, 1), torch.ones(1, 1)).dtype
    torch.float32
    """
    # A new tensor tells the default device in a quarter of `torch.get_default_device`'s time.
    elsewhere = torch.empty(0).device.type != "cpu"
    if gradients and not (autocasts() or elsewhere):
        yield
        return
    with (
        torch.set_grad_enabled(gradients and torch.is_grad_enabled()),
        torch.autocast("cpu", enabled=False),
        torch.autocast("cuda", enabled=False),
        # only where it is needed, since it makes every call of torch slower
        torch.device("cpu") if elsewhere else nullcontext(),
    ):
        yield
