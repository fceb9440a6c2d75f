"""Execute one chapter in its own process.

    python -m boltzmann_companion.build.execute CHAPTER PROFILE [NAME=VALUE ...]

The process that starts this one holds the other end of its standard input. When that end is closed,
because the starter was killed, this process stops.
"""

from __future__ import annotations

import ast
import os
import signal
import sys
import threading
from pathlib import Path

from boltzmann_companion import SETTINGS
from boltzmann_companion.build.runner import execute_chapter
from paperlib.errors import ReproductionError


def _stop_with_starter() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    threading.Thread(target=_stop_with_starter, daemon=True).start()
    # Heed Ctrl-C even where the starter ignores it, as a background job does.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chapter, profile, *settings = sys.argv[1:]
    # for the kernel, which inherits it
    os.environ[SETTINGS] = " ".join(f"--set {item}" for item in settings)
    parameters = {}
    for item in settings:
        name, _, value = item.partition("=")
        parameters[name] = ast.literal_eval(value)
    try:
        execute_chapter(Path(chapter), profile, parameters)
    except (ReproductionError, ValueError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
