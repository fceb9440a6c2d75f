"""Memory does not grow with the test vectors or the model beyond what is stated.

Measured as the peak of a process of its own.
"""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from enumeration import random_rbm

from boltzmann_likelihood.evaluation import memory
from boltzmann_likelihood.evaluation.evaluation import target_of
from boltzmann_likelihood.evaluation.result import Effort

WIDTH = 64
# The peak of the process, torch and all, in bytes. `getrusage` would not do: its peak begins with
# that of the process which started this one.
PEAK = """
import sys
{work}
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")))
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the peak")
EVALUATE = """
from boltzmann_likelihood.cli import app
files = ["model.npz", "--data", "images.npy", "--train", "images.npy"]
sys.argv = ["paperlib", "evaluate", *files, *sys.argv[1:]]
app(standalone_mode=False)
"""
BACKWARDS = """
import numpy as np, torch
from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import raise_log_prob
from paperlib.models import RBM
path = BaseRatePath(RBM.load("model.npz"))
v = torch.from_numpy(np.load("images.npy", mmap_mode="c"))
raise_log_prob(path, v, uniform_betas(1), 1, torch.Generator().manual_seed(0), progress=False)
"""


# The bound alone takes as long as a test may. These parts of an evaluation need most memory.
BOUND = """
from paperlib.models import RBM
from paperlib.models.bounds import log_z_lower_bound
import torch
rbm = RBM.load("model.npz")
log_z_lower_bound(rbm, torch.zeros(1, rbm.num_visible))
"""
# Of many paths one is prepared, and of the modes only the hidden means are kept.
SEARCH = """
import torch
from boltzmann_likelihood.evaluation.annealing_runs import AnnealingRuns
from boltzmann_likelihood.evaluation.modes import ModeSearch
from paperlib.memory import give_back_at_once
from paperlib.models import RBM
rbm = RBM.load("model.npz")
give_back_at_once(rbm.weights)  # as `evaluate` does
images = torch.zeros(2, rbm.num_visible, dtype=torch.uint8)
runs = AnnealingRuns(rbm, images, torch.zeros(2), None, torch.Generator())
search = ModeSearch(rbm, images)
paths = [runs._path_from(torch.zeros(rbm.num_visible)) for _ in search.of_model() + search.phases()]
"""


def peak_bytes(folder, work, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", PEAK.format(work=work), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def write_images(folder, count, levels):
    images = np.random.default_rng(0).integers(0, levels, (count, WIDTH), dtype=np.uint8)
    np.save(folder / "images.npy", images)
    return images.nbytes


@pytest.mark.parametrize(
    ("work", "arguments", "levels", "count", "allowed"),
    [
        # Two maps of one file (the system counts both), and 8 bytes for each image.
        (EVALUATE, (), 2, 1_500_000, 2 + 8 / WIDTH),
        # The same, and the drawn images.
        (EVALUATE, ("--binarize", "1"), 256, 1_500_000, 4 + 8 / WIDTH),
        # The file, and what comes out: 8 bytes for each image, twice while its parts are joined.
        (BACKWARDS, (), 2, 400_000, 1 + 16 / WIDTH),
    ],
    ids=["evaluate", "binarize", "RAISE"],
)
def test_peak_grows_as_stated(tmp_path, work, arguments, levels, count, allowed):
    random_rbm(WIDTH, 3, 0, scale=0.1).save(tmp_path / "model.npz")
    write_images(tmp_path, 1_000, levels)
    base = peak_bytes(tmp_path, work, *arguments)
    size = write_images(tmp_path, count, levels)
    growth = peak_bytes(tmp_path, work, *arguments) - base
    # Blocks of four million numbers are worked on, in float64 and a few at a time.
    assert growth < allowed * size + 5 * 8 * 2**22


@pytest.mark.parametrize("work", [BOUND, SEARCH], ids=["bound", "search"])
def test_peak_of_large_models(tmp_path, work):
    random_rbm(2, 2, 0, dtype=torch.float32).save(tmp_path / "model.npz")
    base = peak_bytes(tmp_path, work)
    for visible, hidden in ((5_000, 1_000), (40_000, 40)):
        model = random_rbm(visible, hidden, 0, scale=0.01, dtype=torch.float32)
        model.save(tmp_path / "model.npz")
        growth = peak_bytes(tmp_path, work) - base
        # As it was read and beside that while it is copied, and prepared for products; then parts
        # of 16 MiB.
        assert growth < 4 * model.weights.nbytes + 5 * 2**24, (visible, hidden)


def test_large_runs_are_announced(monkeypatch):
    rbm = random_rbm(100, 50, 0)
    rows = torch.zeros(10, 100, dtype=torch.uint8)
    effort = Effort(1_000, 50_000)
    needed = memory.needed_bytes(rbm, rows, effort) - memory._PROGRAM
    for free, is_announced in ((2 * needed - 2, True), (2 * needed + 2, False), (None, False)):
        monkeypatch.setattr(memory, "free_bytes", lambda free=free: free)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            target_of(rbm, rows, effort=effort)
        texts = [str(each.message) for each in caught]
        assert (
            any(text.startswith("memory: this run needs about") for text in texts) is is_announced
        )


def test_what_a_run_needs_grows_with_each_of_its_parts():
    rows = torch.zeros(10, 100, dtype=torch.uint8)
    small = memory.needed_bytes(random_rbm(100, 50, 0), rows, Effort(1_000, 50_000))
    assert small > 0
    assert memory.needed_bytes(random_rbm(100, 60, 0), rows, Effort(1_000, 50_000)) > small
    more = torch.zeros(1_000, 100, dtype=torch.uint8)
    assert memory.needed_bytes(random_rbm(100, 50, 0), more, Effort(1_000, 50_000)) > small
    longer = memory.needed_bytes(random_rbm(100, 50, 0), rows, Effort(1_000, 60_000))
    assert longer - small == 2.6 * 16 * 10_000


def test_free_memory_is_known():
    assert 0 < memory.free_bytes() < 2**50
