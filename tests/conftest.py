"""Shared fixtures: tiny models that can be enumerated, and the command as a user types it."""

import gc
import os
import shlex
import sys

import numpy as np
import pytest
import torch
from backends import backend  # noqa: F401
from enumeration import random_rbm
from evaluations import SMALL, draws

from boltzmann_likelihood import cli
from paperlib.kernels import capability

# Files of a few tests that take tens of seconds each.
LONGEST = {"test_faults", "test_no_crash"}


def pytest_collection_modifyitems(items):
    """Longest tests first.

    By their names they would come late, and together, when a parallel run has little else left for
    the other processes.
    """
    items.sort(key=lambda item: item.path.stem not in LONGEST)


def pytest_collection_finish(session):
    """Nothing that is there by now is garbage; to look through all of it takes long."""
    gc.freeze()


def pytest_sessionstart(session):
    """Compile the library before the parallel processes start, which would each compile it."""
    if session.config.getoption("numprocesses", None):
        capability.agrees()


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    # The suite runs in parallel processes; threads within each, or within those that tests start,
    # would only fight for the cores.
    torch.set_num_threads(1)
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session", autouse=True)
def _kernels_compared():
    # before a test puts something else in the place of a draw
    capability.agrees()


@pytest.fixture
def threads():
    """Sets a number of threads, until the test ends."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def tiny_rbm():
    return random_rbm(num_visible=5, num_hidden=4, seed=1)


@pytest.fixture
def _estimated(monkeypatch):
    """Nothing is enumerated, however small."""
    monkeypatch.setattr("boltzmann_likelihood.evaluation.evaluation.EXACT_UNITS", 1)
    monkeypatch.setattr("paperlib.models.enumeration._WIDEST", 1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The present folder, with models and with images that were drawn from the first of them."""
    SMALL.save(tmp_path / "m.npz")
    random_rbm(8, 6, 4).save(tmp_path / "other.npz")
    np.save(tmp_path / "t.npy", draws(SMALL, 60, 2).numpy())
    np.save(tmp_path / "x.npy", draws(SMALL, 200, 3).to(torch.uint8).numpy())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs the command in this process: exit code, standard output and standard error."""
    monkeypatch.setattr("sys.excepthook", sys.excepthook)  # typer's own stays behind

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["paperlib", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def refusal(command):
    """Runs a command that is refused: returns standard error and output.

    Its exit code is 2, and it writes no file.
    """

    def refuse(line):
        before = sorted(os.listdir())
        code, output, message = command(*shlex.split(line))
        assert code == 2
        assert sorted(os.listdir()) == before
        assert "Traceback" not in message
        return message, output

    return refuse
