"""Files that cannot be used are refused in one sentence that names the argument, and in little memory. `hostile_files` makes them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_files import BOMB, IMAGE_FILES, MODEL_FILES

EVERY = [*(("model", name) for name in MODEL_FILES), *(("images", name) for name in IMAGE_FILES)]
# Beyond the file itself: a bomb unpacks to 128 MiB. The readers of formats load their libraries, too.
MOST_MEMORY = 100 * 2**20


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What one process of its own says of all files: type of the exception, its text, and the memory that it took."""
    lines = []
    for number, (kind, name) in enumerate(EVERY):
        folder = tmp_path_factory.mktemp(f"case{number}")
        path = (MODEL_FILES if kind == "model" else IMAGE_FILES)[name](folder)
        lines.append(json.dumps([kind, str(path)]))
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("hostile_files.py"))],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    # what a pickle would have printed
    assert "unpickled" not in done.stdout.replace("no pickled", "")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(EVERY, found, strict=True))


def test_there_are_a_hundred():
    assert len(EVERY) >= 100


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case[1])
def test_refused(outcomes, case):
    kind, text, memory = outcomes[case]
    assert kind == "InputError", text
    assert text.startswith("path: " if case[0] == "model" else "data: ")
    assert "\n" not in text
    # a name in the message may be longer than that
    assert len(text) < 600 or case[1] == "name too long"
    assert memory < MOST_MEMORY < BOMB
