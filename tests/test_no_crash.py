"""No public call may end the interpreter.

Thousands of them, valid and not, in a process of its own (tests/fuzz_calls.py).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).with_name("fuzz_calls.py")
# Only a defect takes so long.
PATIENCE = 1_200
#: What no check of an argument raises.
UNCHECKED = ("AttributeError", "IndexError", "RuntimeError", "SystemError")


def test_no_call_crashes_or_gives_the_kernels_what_was_not_checked(tmp_path):
    # numba's compiled code reads and writes beyond the ends of arrays without a word, and the
    # process ends later, or not at all. With this it says so at once; code that was compiled
    # without it lies elsewhere. The code need not be fast.
    checked = {
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_OPT": "0",
        "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
    }
    log = tmp_path / "last-call"
    done = subprocess.run(
        [sys.executable, FUZZ, log],
        env=os.environ | checked | {"OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    last = log.read_text(errors="replace") if log.exists() else "none"
    assert done.returncode == 0, f"the last call was {last}\n{done.stderr[-5_000:]}"
    report = json.loads(done.stdout.splitlines()[-1])
    counts = report["outcomes"]
    examples = report["examples"]
    assert [text for key, text in examples.items() if key.startswith("out of bounds")] == []
    in_kernels = tuple(f"in kernels, {error}:" for error in UNCHECKED)
    assert [text for key, text in examples.items() if key.startswith(in_kernels)] == []
    # they are many, and a good part of them valid
    assert sum(counts.values()) > 8_000
    assert counts["returned"] > sum(counts.values()) / 3
    assert counts["InputError"] > 500
