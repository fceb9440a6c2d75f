"""What computes a number: the code and whether it is committed, the machine, and the versions.

What is stored (`boltzmann_likelihood.store`) and records (`boltzmann_companion.records`) carry this
information, so that a number can be traced to the code that made it. What cannot be established is
None.
"""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

import paperlib
from paperlib import __version__, storage
from paperlib.errors import InputError

# What numbers depend on. Results and stored shards are left out, since a run writes them itself.
CHECKED = (
    "paperlib",
    "likelihood",
    "book",
    "benchmarks",
    "data/published.csv",
    "data/models",
    "constraints.txt",
    "pyproject.toml",
)


@cache
def repository_state() -> tuple[str | None, bool | None]:
    """Commit of the checkout that this package runs from, and whether the code differs from it.

    The code is what `CHECKED` names, new files included. None if the package does not run from a
    checkout, or git cannot tell. Git is asked once per process, so the answer is about the code
    that was imported, not about the folder hours later.
    """
    try:
        root = storage.repository_root()
    except InputError:
        return None, None
    # An installed copy may be used inside a checkout whose commit says nothing about it.
    if (root / "paperlib").resolve() != Path(paperlib.__file__).resolve().parent:
        return None, None
    return state_of(root)


def state_of(root: Path) -> tuple[str | None, bool | None]:
    """`repository_state` of any checkout."""
    try:
        top, commit = git(root, "rev-parse", "--show-toplevel", "HEAD").splitlines()
        # A folder that is not a repository may lie inside another one.
        if Path(top).resolve() != root.resolve():
            return None, None
        changes = git(root, "status", "--porcelain", "--untracked-files=all", "--", *CHECKED)
        return commit, bool(changes)
    except (OSError, subprocess.CalledProcessError):
        return None, None


def git(folder: Path, *arguments: str) -> str:
    """What git prints in a folder, without white space around it."""
    # GIT_DIR and the like, which git sets for its hooks, would lead it to another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # Chapters ask at the same time, so none of them may take the lock of the repository.
    command = ["git", "--no-optional-locks", *arguments]
    process = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=True
    )
    return process.stdout.strip()


def code_version() -> str:
    """Version and commit, as a line to quote names them; without a checkout, the version."""
    commit, dirty = repository_state()
    if commit is None:
        return f"paperlib {__version__}"
    return f"paperlib {__version__}, commit {commit[:9]}{' with changes' if dirty else ''}"


@cache
def processor_name() -> str:
    """The processor's name as the operating system gives it."""
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def device_name(device: torch.device) -> str:
    """`cpu`, or the name of a GPU."""
    if device.type == "cuda" and torch.cuda.is_available():
        return torch.cuda.get_device_name(device)
    return device.type


def made_by() -> dict[str, str | bool | None]:
    """The code, the machine and the versions that make the numbers of this process.

    The code is that of `repository_state`, and the machine includes its vector instructions.
    """
    commit, dirty = repository_state()
    return {
        "commit": commit,
        "dirty": dirty,
        "version": __version__,
        "processor": processor_name(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "os": platform.platform(),
        "python": platform.python_version(),
        # without the kind of build, such as +cpu
        "torch": torch.__version__.split("+")[0],
        "numpy": _version("numpy"),
        "numba": _version("numba"),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
