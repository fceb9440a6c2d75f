"""Which step Ctrl-C interrupted, where it came before there was an estimate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def before_estimate(step: str) -> Iterator[None]:
    """Name this step in a note of a KeyboardInterrupt that comes during it.

    Parameters
    ----------
    step : str
        The step, such as *reading the files*.

    Examples
    --------
    >>> try:
    ...     with before_estimate("reading the files"):
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt as stop:
    ...     print(stop.__notes__)
    ['reading the files']
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        # that of the innermost step says most
        if not getattr(stop, "__notes__", ()):
            stop.add_note(step)
        raise
