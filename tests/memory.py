"""How much memory a piece of work takes at its peak, as Linux counts it for a process."""

import sys
from contextlib import contextmanager
from pathlib import Path


def _bytes(line):
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(row.split()[1]) * 1024 for row in status if row.startswith(line))


@contextmanager
def at_most(limit):
    """What is done within this takes so many bytes at its peak, beyond what the process has before; on other systems all passes."""
    if sys.platform != "linux":
        yield
        return
    # the peak is counted anew
    Path("/proc/self/clear_refs").write_text("5")
    before = _bytes("VmRSS")
    yield
    assert _bytes("VmHWM") - before < limit
