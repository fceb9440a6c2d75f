"""Files that cannot be used are refused in one sentence that names the argument, and in little memory. `hostile_files` makes them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from enumeration import random_rbm
from hostile_files import BOMB, IMAGE_FILES, MODEL_FILES

from paperlib import cli

EVERY = [*(("model", name) for name in MODEL_FILES), *(("images", name) for name in IMAGE_FILES)]
# Beyond the file itself: a bomb unpacks to 128 MiB.
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


# What other readers would refuse, for its name or its format.
READ = {
    "mat version 7.3", "wrong suffix", "pt as npz", "npz as pt", "npz as h5", "npz as mat", "npz records", "scikit-learn turned",
    "npy is compressed",
}  # fmt: skip


def test_there_are_a_hundred():
    assert len(EVERY) >= 100


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case[1])
def test_refused(outcomes, case):
    kind, text, memory = outcomes[case]
    assert memory < MOST_MEMORY < BOMB
    if case[1] in READ:
        assert (kind, "6 visible, 4 hidden" in text or text == "(3, 6)") == ("read", True), text
        return
    assert kind == "InputError", text
    assert text.startswith("path: " if case[0] == "model" else "data: ")
    assert "\n" not in text
    # a name in the message may be longer than that
    assert len(text) < 600 or case[1] == "name too long"


# ---- commands


@pytest.fixture
def folder(tmp_path, monkeypatch):
    random_rbm(6, 4, seed=1).save(tmp_path / "m.npz")
    random_rbm(6, 4, seed=2).save(tmp_path / "n.npz")
    images = np.random.default_rng(0).integers(0, 2, (20, 6), dtype=np.uint8)
    np.save(tmp_path / "t.npy", images)
    np.save(tmp_path / "one.npy", images[:1])
    np.save(tmp_path / "wide.npy", np.zeros((20, 7), np.uint8))
    np.save(tmp_path / "grey.npy", images * 0.5)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


T = ("--data", "t.npy")
COMMANDS = {
    "no data": (("evaluate", "m.npz", "--data", "no.npy"), "data: expected a file, found none"),
    "one image": (("evaluate", "m.npz", "--data", "one.npy"), "test: expected at least two images"),
    "wide images": (("evaluate", "m.npz", "--data", "wide.npy"), "data: expected images of 6 values"),
    "grey images": (("evaluate", "m.npz", "--data", "grey.npy"), "data: expected"),
    "a folder of images": (("evaluate", "m.npz", "--data", "folder"), "data: expected a file"),
    "images as a model": (("evaluate", "t.npy", *T), "path: expected a model in t.npy: expected visible and hidden biases"),
    "no time": (("evaluate", "m.npz", *T, "--minutes", "0"), "minutes: expected a positive number"),
    "time without end": (("evaluate", "m.npz", *T, "--minutes", "inf"), "minutes: expected a positive number"),
    "time no number": (("evaluate", "m.npz", *T, "--minutes", "nan"), "minutes: expected a positive number"),
    "device": (("evaluate", "m.npz", *T, "--device", "tpu"), "device: expected"),
    "train wide": (("evaluate", "m.npz", *T, "--train", "wide.npy"), "train: expected images of 6"),
    "json in no folder": (("evaluate", "m.npz", *T, "--json", "no/r.json"), "json: expected a file in a folder"),
    "json is a folder": (("evaluate", "m.npz", *T, "--json", "folder"), "json: expected to be able to write"),
    "plot suffix": (("evaluate", "m.npz", *T, "--plot", "r.txt"), "plot: expected a .svg, .png or .pdf"),
    "claim no number": (("audit", "m.npz", *T, "--claimed-log-z", "nan"), "claimed_log_z: expected a finite number"),
    "claim without end": (("audit", "m.npz", *T, "--claimed-log-prob", "inf"), "claimed_log_prob: expected a finite number"),
    "two claims": (("audit", "m.npz", *T, "--claimed-log-z", "1", "--claimed-log-prob", "1"), "expected one of the two"),
    "tolerance": (("audit", "m.npz", *T, "--claimed-log-z", "1", "--tolerance", "-1"), "tolerance: expected"),
    "second missing": (("compare", "m.npz", "no.npz", *T), "path: expected a file, found none"),
    "second no model": (("compare", "m.npz", "t.npy", *T), "path: expected a model in t.npy: expected visible and hidden biases"),
    "one checkpoint": (("training", "m.npz", *T), "models: expected an archive of rbms"),
    "empty folder": (("training", "folder", *T), "models: expected a folder with at least two"),
    "no such folder": (("training", "no", *T), "models: expected an archive of rbms"),
    "updates of files": (("training", "m.npz", "n.npz", *T, "--updates", "1"), "updates: expected none"),
    "csv in no folder": (("training", "m.npz", "n.npz", *T, "--csv", "no/r.csv"), "csv: expected a file in a folder"),
    "name not UTF-8": (("evaluate", os.fsdecode(b"m\xff.npz"), *T), "path: expected a file, found none"),
}  # fmt: skip


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("arguments", "message"), COMMANDS.values(), ids=COMMANDS)
def test_refused_by_the_command(arguments, message, monkeypatch, capsys):
    """In one sentence on standard error, with exit code 2."""
    monkeypatch.setattr("sys.argv", ["paperlib", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("paperlib: ")
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("seed", [str(2**64), str(-(2**64)), "x"])
@pytest.mark.parametrize("option", ["--seed", "--binarize"])
def test_seeds(seed, option, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["paperlib", "evaluate", "m.npz", *T, option, seed])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err
