"""Public names of the last release, which this one still takes, with a warning that says the new name."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

Given = TypeVar("Given", bound=Callable[..., Any])


def renamed(**new_names: str) -> Callable[[Given], Given]:
    """Let a function, or a class, still take the old names of these parameters; objects of the class have the old attributes, too.

    Examples
    --------
    >>> @renamed(rung="temperature")
    ... def inverse(temperature):
    ...     return 1 / temperature
    >>> with warnings.catch_warnings(action="ignore"):
    ...     inverse(rung=2.0)
    0.5
    """

    def decorate(given: Given) -> Given:
        call: Any = given.__init__ if isinstance(given, type) else given

        @functools.wraps(call)
        def with_old_names(*args: Any, **named: Any) -> Any:
            for old, new in new_names.items():
                if old in named and new not in named:
                    _warn(old, new)
                    named[new] = named.pop(old)
            return call(*args, **named)

        if not isinstance(given, type):
            return with_old_names  # pyright: ignore[reportReturnType]
        given.__init__ = with_old_names
        for old, new in new_names.items():
            read = functools.partial(_attribute, old, new)
            setattr(given, old, property(read, doc=f"The old name of `{new}`."))
        return given  # pyright: ignore[reportReturnType]

    return decorate


def renamed_in(module: str, **new_names: str) -> Callable[[str], Any]:
    """A module's `__getattr__`, which finds what had these names."""

    def find(name: str) -> Any:
        if name not in new_names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(name, new_names[name])
        return getattr(sys.modules[module], new_names[name])

    return find


def _attribute(old: str, new: str, owner: object) -> Any:
    _warn(old, new)
    return getattr(owner, new)


def _warn(old: str, new: str) -> None:
    message = f"{old} is now called {new}; the old name goes with the next release"
    caller, level = sys._getframe(2), 3
    # The wrappers of `paperlib.surroundings` lie between a public function and its caller.
    while caller.f_back and caller.f_globals["__name__"].endswith(".surroundings"):
        caller, level = caller.f_back, level + 1
    warnings.warn(message, DeprecationWarning, stacklevel=level)
