"""Memory does not grow with the number of test vectors beyond what is stated: measured as the peak of a process of its own."""

import subprocess
import sys

import numpy as np
import pytest
from enumeration import random_rbm

WIDTH = 64
# The peak of the process, torch and all, in bytes. `getrusage` would not do: its peak begins with that of the process which started this one.
PEAK = """
import sys
{work}
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")))
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the peak")
EVALUATE = """
from boltzmann_likelihood.cli import app
sys.argv = ["paperlib", "evaluate", "model.npz", "--data", "images.npy", "--train", "images.npy", *sys.argv[1:]]
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


def peak_bytes(folder, work, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", PEAK.format(work=work), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
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
