"""The errors that the library raises on purpose.

Any other exception is a fault of the library itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import TypeVar

_Class = TypeVar("_Class")


class InputError(ValueError):
    """An argument, a file or a setting that cannot be used.

    The message names it and says what was expected and what came instead: `num_chains: expected a
    whole number of at least 1, got 0`. The command line shows the message alone; any other
    `ValueError` keeps its traceback, because it is a bug.
    """


class ReproductionError(Exception):
    """A chapter's cell failed or the book could not be built; the message says which and why."""


def never_changed(instead: str) -> Callable[[type[_Class]], type[_Class]]:
    """A decorator for frozen dataclasses: assigning to an attribute says what to write `instead`.

    Notebooks hold such objects. Python's own message, `cannot assign to field 'test'`, does not
    tell their readers what to do.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @never_changed("write start = Point(...)")
    ... @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    >>> Point(0.0).x = 1.0  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dataclasses.FrozenInstanceError: cannot assign to 'x' of a Point, ...; write start = Point(...)
    """

    def refuse(self: object, name: str, _: object) -> None:
        kind = type(self).__name__
        raise FrozenInstanceError(
            f"cannot assign to {name!r} of a {kind}, "
            f"which other parts of a program may hold; {instead}"
        )

    def with_advice(frozen: type[_Class]) -> type[_Class]:
        frozen.__setattr__ = refuse
        return frozen

    return with_advice
