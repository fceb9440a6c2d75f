"""The first paper's images and weights: MATLAB's random numbers, order and binarisation.

And what becomes of bad files.
"""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from paperlib import storage
from paperlib.datasets import (
    authors_release,
    binary_images,
    load_authors_rbm,
    load_mnist_2008,
    mnist_2008,
)
from paperlib.errors import InputError
from paperlib.kernels import MatlabUniform
from paperlib.models import RBM

DATA = Path(os.environ.get("PAPERLIB_DATA") or "no such folder")
needs_mnist = pytest.mark.skipif(not (DATA / "mnist").is_dir(), reason="no MNIST")


def test_numbers_are_those_that_matlab_documents():
    """The first numbers of `rand('state', 0)`, in every edition of MATLAB's manual."""
    expected = [0.95013, 0.23114, 0.60684, 0.48598, 0.89130]
    assert MatlabUniform(0).draw(5).round(5).tolist() == expected


def test_a_stream_goes_on_from_one_call_to_the_next():
    whole = MatlabUniform(30).draw(500)
    stream = MatlabUniform(30)
    parts = [stream.draw(count) for count in (1, 0, 36, 463)]
    assert np.array_equal(np.concatenate(parts), whole)
    assert (whole > 0).all()
    assert (whole < 1).all()
    assert not np.array_equal(whole, MatlabUniform(31).draw(500))


@pytest.fixture
def few_images(monkeypatch):
    """Two hundred training and a hundred test images of random grey, in place of MNIST.

    And their checksums once binarised.
    """
    rng = np.random.default_rng(0)

    class Few:
        name = "mnist"
        image_shape = (1, 3)
        checksum = "-"

    def images(count):
        pixels = rng.integers(0, 256, (count, 3)).astype(np.float32) / 255
        return torch.from_numpy(pixels), torch.from_numpy(rng.integers(0, 10, count))

    few = Few()
    few.train, few.train_labels = images(200)
    few.test, few.test_labels = images(100)
    monkeypatch.setattr(mnist_2008, "load_mnist", lambda: few)
    monkeypatch.setattr(mnist_2008, "replace", lambda of, **changes: changes)
    load_mnist_2008.cache_clear()
    yield few
    load_mnist_2008.cache_clear()


def by_hand(grey, labels):
    """The release's steps, one image and one pixel at a time."""
    by_class = sorted(range(len(labels)), key=lambda n: (int(labels[n]), n))
    numbers = MatlabUniform(0).draw(len(labels))
    order = [by_class[n] for n in sorted(range(len(labels)), key=lambda n: numbers[n])]
    pixels = grey.shape[1]
    uniform = MatlabUniform(30).draw(len(labels) * pixels)
    binary = torch.zeros(len(labels), pixels, dtype=torch.uint8)
    for place, image in enumerate(order):
        minibatch, row = divmod(place, 100)
        for pixel in range(pixels):
            # column-major: first the row within the minibatch, then the pixel, then the minibatch
            number = uniform[row + 100 * (pixel + pixels * minibatch)]
            binary[place, pixel] = int(float(grey[image, pixel]) > number)
    return order, binary


def test_order_and_binarisation_are_the_releases(few_images, monkeypatch):
    parts = {
        "train": by_hand(few_images.train, few_images.train_labels),
        "test": by_hand(few_images.test, few_images.test_labels),
    }
    checksums = {
        name: storage.sha256(binary.numpy().tobytes()) for name, (_, binary) in parts.items()
    }
    monkeypatch.setattr(mnist_2008, "_SHA256", checksums)
    images = load_mnist_2008()
    assert torch.equal(images.train, parts["train"][1])
    assert torch.equal(images.test, parts["test"][1])
    order = parts["test"][0]
    assert torch.equal(images.grey["test"], few_images.test[order])
    assert torch.equal(images.grey["test_labels"], few_images.test_labels[order])


def test_other_images_are_refused(few_images):
    with pytest.raises(
        InputError, match=r"MNIST of 2008, train: expected binary images with SHA-256 9ba5be13"
    ):
        load_mnist_2008()


@needs_mnist
def test_the_exact_images():
    images = binary_images("mnist-2008")
    assert images.train.shape == (60_000, 784)
    assert int(images.train.sum()) == 6_146_077
    assert int(images.test.sum()) == 1_038_371
    assert images.grey.name == "mnist-2008"
    # a pixel that is off in the grey image is off, and one that is fully on is on
    assert not images.test[images.grey.test == 0].any()
    assert images.test[images.grey.test == 1].all()


@pytest.fixture
def released(monkeypatch, tmp_path):
    """A small model in the release's file, whose checksum replaces the real one."""
    from scipy.io import savemat

    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    monkeypatch.setenv("PAPERLIB_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "authors" / "mnistvh_CD25.mat"
    file.parent.mkdir()
    savemat(
        file, {"vishid": np.eye(3, 2), "visbiases": np.zeros((1, 3)), "hidbiases": np.ones((1, 2))}
    )
    monkeypatch.setattr(authors_release, "_SHA256", storage.file_sha256(file))
    return file


def test_the_authors_weights_are_found(released):
    rbm = load_authors_rbm(torch.float64)
    assert isinstance(rbm, RBM)
    assert torch.equal(rbm.weights, torch.eye(3, 2, dtype=torch.float64))
    assert "retained and prominently displayed" in authors_release.NOTICE


def test_a_damaged_file_of_weights_is_named(released):
    released.write_bytes(gzip.compress(b"something else"))
    with pytest.raises(
        InputError, match=r"CD25\(500\): expected contents with SHA-256 .*mnistvh_CD25.mat"
    ):
        load_authors_rbm()


def test_missing_weights_say_where_to_put_them(released, tmp_path):
    released.unlink()
    with pytest.raises(
        InputError, match=r"expected mnistvh_CD25.mat in one of .* which failed: .*PAPERLIB_DATA"
    ):
        load_authors_rbm(url="http://127.0.0.1:9")
    assert not list((tmp_path / "cache").rglob("*.mat"))
