"""What the caller's settings of torch must not change: products in half precision (`torch.autocast`), where tensors are made, gradients.

A validation step often runs inside of `torch.autocast`, where torch rounds the factors of float32 products to eight bits. No estimate
says so: its error bar stays as narrow. Every public function of a room, and every public method of a model, therefore runs as it would
outside of such a context.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ParamSpec, TypeVar

import torch

Given = ParamSpec("Given")
Result = TypeVar("Result")


def autocasts() -> bool:
    """Whether torch rounds the factors of products here."""
    return torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")


def undisturbed(
    function: Callable[Given, Result], gradients: bool = True
) -> Callable[Given, Result]:
    """`function`, with autocast switched off and the CPU as the default device while it runs, and with or without gradients.

    Examples
    --------
    >>> with torch.autocast("cpu"):
    ...     undisturbed(torch.mm)(torch.ones(1, 1), torch.ones(1, 1)).dtype
    torch.float32
    """

    @functools.wraps(function)
    def run(*args: Given.args, **named: Given.kwargs) -> Result:
        # A new tensor tells the default device in a quarter of the time that `torch.get_default_device` takes.
        elsewhere = torch.empty(0).device.type != "cpu"
        if gradients and not (autocasts() or elsewhere):
            return function(*args, **named)
        with (
            torch.set_grad_enabled(gradients and torch.is_grad_enabled()),
            torch.autocast("cpu", enabled=False),
            torch.autocast("cuda", enabled=False),
            # only where it is needed, since it makes every call of torch slower
            torch.device("cpu") if elsewhere else nullcontext(),
        ):
            return function(*args, **named)

    return run


def undisturbed_in(package: str, gradients: bool = True) -> None:
    """Make what a package takes from its modules its `__all__`, and let the functions among it run undisturbed, in the modules too."""
    public = vars(sys.modules[package])
    public["__all__"] = [
        name
        for name, value in public.items()
        if getattr(value, "__module__", "").startswith(f"{package}.")
    ]
    for name in public["__all__"]:
        if inspect.isfunction(given := public[name]):
            # in both places, since pickle finds a function through its module
            public[name] = undisturbed(given, gradients)
            setattr(sys.modules[given.__module__], name, public[name])


class Undisturbed:
    """A class whose public methods run undisturbed, as do those of its subclasses."""

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        for name, member in list(vars(cls).items()):
            if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
                setattr(cls, name, undisturbed(member))
