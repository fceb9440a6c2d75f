"""Memory does not grow with the number of test vectors beyond what is stated."""

import memory
import numpy as np
import pytest
import torch
from enumeration import random_rbm
from evaluations import run

from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import raise_log_prob
from paperlib.numerics import seeded_generator

WIDTH = 64
RBM = random_rbm(WIDTH, 3, 0, scale=0.1)


def write_images(count, levels):
    images = np.random.default_rng(0).integers(0, levels, (count, WIDTH), dtype=np.uint8)
    np.save("images.npy", images)
    return images.nbytes


def evaluated():
    run("evaluate model.npz --data images.npy --train images.npy")


def binarised():
    run("evaluate model.npz --data images.npy --train images.npy --binarize 1")


def walked_back():
    v = torch.from_numpy(np.load("images.npy", mmap_mode="c"))
    path = BaseRatePath(RBM)
    raise_log_prob(path, v, uniform_betas(1), 1, seeded_generator(0), progress=False)


@pytest.mark.parametrize(
    ("work", "levels", "count", "allowed"),
    [
        # Two maps of one file (the system counts both), and 8 bytes for each image.
        (evaluated, 2, 1_500_000, 2 + 8 / WIDTH),
        # The same, and the drawn images.
        (binarised, 256, 1_500_000, 4 + 8 / WIDTH),
        # The file, and what comes out: 8 bytes for each image, twice while its parts are joined.
        (walked_back, 2, 400_000, 1 + 16 / WIDTH),
    ],
)
def test_peak_grows_as_stated(tmp_path, monkeypatch, work, levels, count, allowed):
    monkeypatch.chdir(tmp_path)
    RBM.save("model.npz")
    # what is imported or compiled first is not counted
    write_images(1_000, levels)
    work()
    size = write_images(count, levels)
    # Blocks of four million numbers are worked on, in float64 and a few at a time.
    with memory.at_most(allowed * size + 5 * 8 * 2**22):
        work()
