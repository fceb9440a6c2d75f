"""No public call may end the interpreter: thousands of them, valid and not, in a process of its own (tests/fuzz_calls.py)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).with_name("fuzz_calls.py")
# Only a defect takes so long.
PATIENCE = 1_200
#: What no check of an argument raises.
UNCHECKED = ("AttributeError", "IndexError", "RuntimeError", "SystemError")


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """What came of the calls."""
    folder = tmp_path_factory.mktemp("fuzz")
    # numba's compiled code reads and writes beyond the ends of arrays without a word, and the process ends later, or not at all. With
    # this it says so at once; code that was compiled without it lies elsewhere.
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder / "numba")}
    log = folder / "last-call"
    done = subprocess.run(
        [sys.executable, FUZZ, log],
        env=os.environ | checked | {"OMP_NUM_THREADS": "1", "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    last = log.read_text(errors="replace") if log.exists() else "none"
    assert done.returncode == 0, f"the last call was {last}\n{done.stderr[-5_000:]}"
    found = json.loads(done.stdout.splitlines()[-1])
    for key, count in sorted(found["others"].items()):
        print(f"{count:5} {key}: {found['examples'][key]}")
    return found


def test_calls_are_many_and_a_good_part_of_them_valid(outcome):
    counts = outcome["outcomes"]
    assert sum(counts.values()) > 5_000
    assert counts["returned"] > sum(counts.values()) / 3
    assert counts["InputError"] > 500
    assert sum(outcome["unmade"].values()) < sum(counts.values()) / 20, outcome["unmade"]


def test_no_call_leaves_the_bounds_of_an_array(outcome):
    assert [text for key, text in outcome["examples"].items() if "out of bounds" in key] == []


def test_kernels_get_nothing_that_was_not_checked(outcome):
    found = {
        key.removesuffix(" in kernels").partition(".")[2] or key: text
        for key, text in outcome["examples"].items()
        if key.endswith(tuple(f": {error} in kernels" for error in UNCHECKED))
    }
    assert found == {}
