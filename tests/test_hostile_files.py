"""Files that cannot be used are refused in one sentence that names the argument, and in little memory. `hostile_files` makes them."""

import sys
from pathlib import Path

import numpy as np
import pytest
from enumeration import random_potts, random_rbm
from hostile_files import EVERY, D, write
from test_training_likelihood import write_archive

from paperlib.errors import InputError
from paperlib.evaluation import read_images, read_model
from paperlib.models import RBM

# Beyond the file itself: a bomb unpacks to 128 MiB.
MOST_MEMORY = 100 * 2**20


def memory(line):
    """A number of bytes that Linux knows of this process."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(row.split()[1]) * 1024 for row in status if row.startswith(line))


def refused_with(read, *arguments):
    """The sentence with which a reader refuses a file, in little memory."""
    linux = sys.platform == "linux"
    if linux:
        # the peak is counted anew
        Path("/proc/self/clear_refs").write_text("5")
        before = memory("VmRSS")
    with pytest.raises(InputError) as refused:
        read(*arguments)
    assert not linux or memory("VmHWM") - before < MOST_MEMORY
    return str(refused.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "content", "message"), EVERY, ids=[name[-40:] for name, *_ in EVERY]
)
def test_refused(tmp_path, capsys, name, content, message):
    """By the tool in these words, and by `RBM.load` in others."""
    path = write(tmp_path, name, content)
    if name.startswith("t"):
        begins, said = "data: expected", [refused_with(read_images, "data", path, D)]
    else:
        begins, said = "path: expected", [refused_with(r, path) for r in (read_model, RBM.load)]
    said = [text.replace(f"{tmp_path}/", "") for text in said]
    assert message in said[0]
    for text in said:
        assert text.startswith(begins)
        assert "\n" not in text
        # a name in the message may be longer than that
        assert len(text) < 600 or "too long a name" in name
    # what a pickle would have printed
    assert capsys.readouterr().out == ""


# ---- commands


@pytest.fixture
def _folder(folder):
    random_rbm(5, 4, seed=2).save("narrow.npz")
    random_potts(3, 4, 4, seed=3).save("sequences.safetensors")
    write_archive(folder / "RBM.h5")
    images = np.load("t.npy")
    np.save("one.npy", images[:1])
    np.save("seven.npy", images[:, :7])
    np.save("grey.npy", images * 0.5)
    (folder / "folder").mkdir()


COMMANDS = {
    "evaluate m.npz --data no.npy": "data: expected a file, found none",
    "evaluate no.npz --data t.npy": "path: expected a file, found none",
    "evaluate m.npz --data one.npy": "data: expected at least two images, got 1",
    "evaluate m.npz --data seven.npy": "data: expected images of 8 values, as many as the model has visible units, got 7",
    "evaluate narrow.npz --data t.npy": "data: expected images of 5 values, as many as the model has visible units, got 8",
    "evaluate m.npz --data grey.npy": "data: expected only 0 and 1",
    "evaluate m.npz --data folder": "data: expected a file",
    "evaluate t.npy --data t.npy": "path: expected a model in t.npy: expected visible and hidden biases",
    "evaluate m.npz --data t.npy --minutes 0": "minutes: expected a positive number",
    "evaluate m.npz --data t.npy --minutes inf": "minutes: expected a positive number",
    "evaluate m.npz --data t.npy --device tpu": "device: expected",
    "evaluate m.npz --data t.npy --train no.npy": "train: expected a file, found none",
    "evaluate m.npz --data t.npy --json no/r.json": "json: expected a file in a folder that exists",
    "evaluate m.npz --data t.npy --json folder": "json: expected to be able to write",
    "evaluate m.npz --data t.npy --plot r.txt": "plot: expected a .svg, .png or .pdf file",
    "evaluate sequences.safetensors --data t.npy --binarize 1": "binarize: expected none for sequences of 4 states",
    "evaluate sequences.safetensors --data t.npy --threshold 0": "threshold: expected none for sequences of 4 states",
    "evaluate m\udcff.npz --data t.npy": "path: expected a file, found none",
    "audit m.npz --data t.npy": "claimed-log-z: expected it",
    "audit m.npz --data t.npy --claimed-log-z nan": "claimed_log_z: expected a finite number",
    "audit m.npz --data t.npy --claimed-log-z 1 --tolerance -1": "tolerance: expected",
    "audit m.npz --data t.npy --claimed-log-z 1 --json no/r.json": "json: expected a file in a folder that exists",
    "compare m.npz no.npz --data t.npy": "path: expected a file, found none",
    "compare m.npz t.npy --data t.npy": "path: expected a model in t.npy: expected visible and hidden biases",
    "compare m.npz narrow.npz --data t.npy": "expected images of 5 values",
    "training m.npz --data t.npy": "models: expected an archive of rbms",
    "training folder --data t.npy": "models: expected a folder with at least two",
    "training no --data t.npy": "models: expected an archive of rbms",
    "training m.npz other.npz --data t.npy --updates 1": "updates: expected none",
    "training m.npz other.npz --data t.npy --csv no/r.csv": "csv: expected a file in a folder that exists",
    "training RBM.h5 --data seven.npy --updates 1,x": "updates: expected whole numbers",
    "training RBM.h5 --data seven.npy --updates 7": "update: expected one of 1, 5, 10, 200",
    "training RBM.h5 --data seven.npy --minutes -1": "minutes: expected a positive number",
    "training RBM.h5 --data seven.npy --steps 5": "steps: expected",
    "training RBM.h5 --data seven.npy --plot r.gif": "plot: expected a .svg, .png or .pdf file",
    "training RBM.h5 --data seven.npy --csv no/r.csv": "csv: expected a file in a folder that exists",
    "training RBM.h5 --data seven.npy --device tpu": "device: expected",
    "training RBM.h5 --data seven.npy --train no.npy": "train: expected a file, found none",
    "reproduce --only 99": "only: expected part of a chapter's name",
    "check 05 99": "names: expected part of a chapter's name",
    "reproduce --only 05 --device tpu": "device: expected cpu or cuda, got 'tpu'",
    "reproduce --profile imagenet": "profile: expected one of digits, paper",
    "reproduce --set seed": "set: expected NAME=VALUE, got 'seed'",
    "reproduce --only 05 --set colour=1": "set: expected parameters of 05",
    "train mnist-x": "model_id: expected one of",
    "train digits-cd1-12 --output x.pkl": "output: expected a .safetensors file",
    "book --profile x": "profile: expected",
}  # fmt: skip


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("line", COMMANDS)
def test_refused_by_the_command(refusal, line):
    """In one sentence on standard error."""
    said, output = refusal(line)
    assert said.startswith("paperlib: ")
    assert COMMANDS[line] in said
    assert said.count("\n") == 1
    # before anything is computed that would then be lost
    assert "Verdict" not in output


@pytest.mark.usefixtures("_folder")
def test_nothing_is_printed_of_what_is_no_model(refusal):
    assert refusal("evaluate t.npy --data t.npy --json r.json")[1] == ""


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("seed", [str(2**64), str(-(2**64)), "x"])
@pytest.mark.parametrize("option", ["--seed", "--binarize"])
def test_seeds(refusal, seed, option):
    refusal(f"evaluate m.npz --data t.npy {option} {seed}")
