"""Building the book from executed chapters: `jupyter-book build .` with warnings as errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from boltzmann_companion.build.extension import EXECUTED
from boltzmann_companion.build.runner import chapters, copy_for_the_book
from paperlib import storage
from paperlib.errors import ReproductionError


def build_book(profile: str) -> Path:
    """Build the HTML book from the executed copies of the chapters instead of the committed ones.

    Parameters
    ----------
    profile : str
        Profile whose executed copies are used; each chapter must have one.

    Returns
    -------
    Path
        `_build/html/index.html`.

    Raises
    ------
    ReproductionError
        If a chapter has not been executed with its own parameters, or the build warns or fails.
    """
    root = storage.repository_root()
    for chapter in chapters():
        copy_for_the_book(chapter, profile)
    # The module has no __main__: `python -m jupyter_book.cli.main` would build nothing and report
    # success.
    start = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", start, "build", ".", "--all", "-W", "-n", "--keep-going", "-q"]
    done = subprocess.run(command, cwd=root, env=os.environ | {EXECUTED: profile}, check=False)
    if done.returncode != 0:
        raise ReproductionError(
            "the book's build reported errors or warnings; they are printed above"
        )
    return root / "_build" / "html" / "index.html"
