"""kill -9 at random moments, and flipped bits: the next run ends with the same numbers.

No file is half-written or wrong.
"""

import json
import os
import random
import signal
import sys
import time

import faults
import nbformat
import pytest
import torch
from enumeration import random_rbm
from faults import FORKS, MOMENT, VICTIM, anneal
from notebooks import notebook

from boltzmann_companion.recipes import store_model, train_recipe
from boltzmann_likelihood import cli
from paperlib import storage
from paperlib.models import RBM
from paperlib.models.files import read_safetensors

# Ten kills in all: three of training, three of AIS, two of RAISE, two of the pipeline.
MOMENTS = random.Random(7)
# Only what never ends at all takes longer, on however busy a machine.
PATIENCE = 1_200
PATH = [os.path.dirname(__file__)]


def kill_in_the_middle(work, arguments, folder, largest, ends_by=signal.SIGPROF):
    """Do work in a process that is killed a random moment after some file was written.

    After a random number of files in `folder` was written or replaced; see `faults`.
    """
    files = MOMENTS.randint(1, largest)
    seconds = MOMENTS.uniform(1e-4, 0.02)
    moment = os.pathsep.join([str(folder), str(files), str(seconds)])
    before = {file: file.stat().st_mtime_ns for file in folder.glob("[!.]*")}
    process = FORKS.Process(target=work, args=(moment, *arguments))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == -ends_by
    after = {file: file.stat().st_mtime_ns for file in folder.glob("[!.]*")}
    assert after != before
    for file in folder.glob("[!.]*.safetensors"):
        read_safetensors(file)


def begin(moment, **environment):
    """What a process does first."""
    os.environ |= environment | {MOMENT: moment}
    torch.set_num_threads(1)


def train(moment, cache, *arguments):
    begin(moment, PAPERLIB_CACHE=cache)
    faults.arm()
    sys.argv = ["paperlib", *arguments]
    cli.main()


def test_killed_training_ends_with_the_undisturbed_model(tmp_path, monkeypatch, command):
    store_model(
        "digits-pcd-16",
        train_recipe("digits-pcd-16", progress=False),
        tmp_path / "whole.safetensors",
        "none",
    )
    output = tmp_path / "model.safetensors"
    cache = tmp_path / "cache"
    arguments = ["train", "digits-pcd-16", "--output", str(output)]
    for _ in range(3):
        kill_in_the_middle(train, [str(cache), *arguments], cache / "checkpoints", 25)
        assert not output.exists()
    monkeypatch.setenv("PAPERLIB_CACHE", str(cache))
    assert command(*arguments)[0] == 0
    assert RBM.load(output).checksum() == RBM.load(tmp_path / "whole.safetensors").checksum()


def walk(moment, name, folder):
    begin(moment)
    faults.arm()
    anneal(name, folder)


@pytest.mark.parametrize(("name", "kills"), [("AIS", 3), ("RAISE", 2)])
def test_killed_annealing_ends_with_the_undisturbed_numbers(tmp_path, name, kills):
    for _ in range(kills):
        kill_in_the_middle(walk, [name, tmp_path / "parts"], tmp_path / "parts", 9)
    files = {file.name for file in (tmp_path / "parts").glob("[!.]*")}
    assert kills <= len(files) < 30
    resumed = anneal(name, tmp_path / "parts")
    whole = anneal(name, tmp_path / "whole")
    assert torch.equal(resumed.log_weights, whole.log_weights)
    names = [{file.name for file in (tmp_path / part).glob("[!.]*")} for part in ("parts", "whole")]
    assert names[0] == names[1]
    assert files < names[0]


def reproduce(moment, root, folders):
    begin(moment, **folders, **{VICTIM: str(os.getpid())})
    storage.repository_root = lambda: root
    sys.argv = ["paperlib", *REPRODUCE]
    cli.main()


REPRODUCE = ["reproduce", "--resume"]
CHAPTER = """
import os, sys
from pathlib import Path
import torch
sys.path[:0] = {path!r}
import faults
from paperlib.datasets import cache_folder
from boltzmann_companion.columns import Column
from boltzmann_companion.profiles import get_profile
from boltzmann_companion.records import Run
torch.set_num_threads(1)
run = Run("01-one", get_profile(profile), 1)
Path("{pid}").write_text(str(os.getpid()))
faults.arm()
estimate = faults.anneal("AIS", cache_folder() / "shards")
run.save("table", {{"log_z": Column("ln Z", "nats")}}, [{{"log_z": estimate.log_z}}])
print(repr(estimate.log_z))
"""


def test_killed_pipeline_ends_with_the_undisturbed_numbers(tmp_path, monkeypatch, command):
    (tmp_path / "book").mkdir()
    pid = tmp_path / "kernel"
    content = notebook(CHAPTER.format(path=PATH, pid=pid), parameters='profile = "digits"')
    nbformat.write(content, tmp_path / "book" / "01-one.ipynb")
    folders = {
        "PAPERLIB_CACHE": str(tmp_path / "cache"),
        "PAPERLIB_FIGURES": str(tmp_path / "figures"),
    }
    shards = tmp_path / "cache" / "shards"
    for _ in range(2):
        kill_in_the_middle(reproduce, [tmp_path, folders], shards, 9, ends_by=signal.SIGKILL)
        # The chapter does not go on without the command that started it.
        deadline = time.monotonic() + PATIENCE
        while os.path.exists(f"/proc/{pid.read_text()}") and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not os.path.exists(f"/proc/{pid.read_text()}")
        assert not list((tmp_path / "_build").rglob("[!.]*.ipynb"))
    assert len(list(shards.glob("[!.]*"))) < 30

    for name, folder in folders.items():
        monkeypatch.setenv(name, folder)
    monkeypatch.setattr(storage, "repository_root", lambda: tmp_path)
    code, output, _ = command(*REPRODUCE)
    assert code == 0
    assert "01-one: executed in" in output
    truth = anneal("AIS", tmp_path / "whole").log_z
    (copy,) = (tmp_path / "_build").rglob("[!.]*.ipynb")
    assert nbformat.read(copy, as_version=4).cells[-1].outputs[-1].text == f"{truth!r}\n"
    record = json.loads((tmp_path / "figures" / "digits" / "table.json").read_text())
    assert record["rows"] == [{"log_z": truth}]
    # and --resume knows that there is nothing left to do
    assert command(*REPRODUCE)[:2] == (0, "01-one: executed already\n")


def test_every_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "model.safetensors"
    rbm = random_rbm(3, 2, 0)
    rbm.save(path, metadata={"seed": "5"})
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    for place in range(len(whole)):
        path.write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        )
        try:
            loaded = RBM.load(path)
        except ValueError:
            continue
        # In the header's padding, or in the name of the checksum, a flipped bit changes nothing
        # that is used.
        assert place < header
        assert loaded.checksum() == rbm.checksum()
