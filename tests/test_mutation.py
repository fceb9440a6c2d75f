"""Do the checks notice a wrong library? One constant of the AIS update is changed in a copy, and they must fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORIGINAL = "return ratio.add_(state.bias_difference, alpha=beta_to - beta_from)"
MUTANT = ORIGINAL.replace("beta_to - beta_from", "1.1 * (beta_to - beta_from)")


def run_checks(folder, *arguments):
    environment = os.environ | {
        "PYTHONPATH": str(folder),
        "PAPERLIB_FIGURES": str(folder / "figures"),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)


@pytest.fixture
def library(tmp_path):
    """A copy of the library and of what the checks need."""
    for name in ("paperlib", "tests", "data", "book", "figures"):
        ignored = shutil.ignore_patterns("__pycache__", "cache")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for name in ("_toc.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def mutate(folder):
    source = folder / "paperlib" / "annealing" / "rbm_paths.py"
    text = source.read_text()
    assert text.count(ORIGINAL) == 1, "the line to change has moved: update this test"
    source.write_text(text.replace(ORIGINAL, MUTANT))


ENUMERATION = ("tests/test_ais.py", "-k", "mean_and_variance")
NOTEBOOK = ("--nbval-lax", "--nbval-current-env", "book/05-exact-partition-functions.ipynb")


def test_copy_passes_as_it_is(library):
    # Otherwise a failure of the changed copy would prove nothing. (The notebook's own run is part of `make test`.)
    done = run_checks(library, *ENUMERATION)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


@pytest.mark.parametrize("checks", [ENUMERATION, NOTEBOOK], ids=["enumeration", "notebook"])
def test_a_wrong_constant_in_the_ais_update_is_noticed(library, checks):
    mutate(library)
    done = run_checks(library, *checks)
    # 1: tests ran and one failed; anything else (no tests, a broken import) would prove nothing.
    assert done.returncode == 1, done.stdout[-3000:] + done.stderr[-2000:]
    assert "AssertionError" in done.stdout or "assert " in done.stdout
