"""Data sets: contents, order of places, downloads from a local server, binarisation, base rates."""

import gzip
import http.server
import math
import struct
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from enumeration import assert_rates

from paperlib import storage
from paperlib.datasets import (
    base_rate_bias,
    binarize,
    binary_images,
    load_digits,
    load_mnist,
    mnist,
)
from paperlib.errors import InputError


@pytest.fixture
def small_mnist(monkeypatch, tmp_path):
    """The four files of a data set in MNIST's layout, with a few random images.

    Their checksums replace the real ones.
    """
    rng = np.random.default_rng(0)
    contents = {}
    for split, count in (("train", 6), ("t10k", 3)):
        pixels = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = rng.integers(0, 10, count, dtype=np.uint8)
        contents[f"{split}-images-idx3-ubyte"] = (
            struct.pack(">IIII", 2051, count, 28, 28) + pixels.tobytes()
        )
        contents[f"{split}-labels-idx1-ubyte"] = struct.pack(">II", 2049, count) + labels.tobytes()
    checksums = {name: storage.sha256(data) for name, data in contents.items()}
    monkeypatch.setattr(mnist, "_MNIST_SHA256", checksums)
    monkeypatch.delenv("PAPERLIB_DATA", raising=False)
    monkeypatch.setenv("PAPERLIB_CACHE", str(tmp_path / "cache"))
    return contents


@pytest.fixture
def server(small_mnist):
    """A local HTTP server of the four files; `faults` maps a file's name to what goes wrong."""
    faults = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.strip("/").removesuffix(".gz")
            fault = faults.get(name)
            if fault == "missing" or name not in small_mnist:
                self.send_error(404)
                return
            data = small_mnist[name]
            body = gzip.compress(data[:-1] + b"?" if fault == "altered" else data)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if fault == "cut off" else body)

        def log_message(self, *arguments):
            pass

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}", faults
    running.shutdown()
    running.server_close()


def cached(tmp_path):
    return sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file())


def test_download_is_checked_and_cached(server, small_mnist, tmp_path):
    url, faults = server
    first = load_mnist(url)
    assert (first.train.shape, first.test.shape) == ((6, 784), (3, 784))
    pixels = np.frombuffer(small_mnist["train-images-idx3-ubyte"][16:], np.uint8)
    assert torch.equal(first.train.flatten(), torch.from_numpy(pixels / np.float32(255)))
    assert cached(tmp_path) == sorted(f"{name}.gz" for name in small_mnist)
    faults.update(dict.fromkeys(small_mnist, "missing"))  # the second time nothing is asked for
    assert torch.equal(load_mnist(url).test, first.test)


@pytest.mark.parametrize(
    ("fault", "message"),
    [("altered", "SHA-256"), ("cut off", "IncompleteRead|damaged"), ("missing", "404")],
)
def test_failed_download_leaves_nothing_and_says_what_to_do(server, tmp_path, fault, message):
    url, faults = server
    faults["train-images-idx3-ubyte"] = fault
    with pytest.raises(ValueError, match=message) as caught:
        load_mnist(url)
    for part in ("train-images-idx3-ubyte", url, str(tmp_path / "cache"), "PAPERLIB_DATA"):
        assert part in str(caught.value)
    assert cached(tmp_path) == []


def test_a_download_without_a_connection_is_told_in_a_few_words(small_mnist):
    """And not with the text of another library.

    It ends what `papermill` prints of a chapter without its images.
    """
    with pytest.raises(InputError) as caught:
        load_mnist("http://127.0.0.1:9")
    message = str(caught.value)
    assert "which failed: no connection to 127.0.0.1:9 (ConnectionError). To supply" in message
    assert message.endswith(
        "set PAPERLIB_DATA to a folder that holds mnist/ with the four IDX files."
    )
    for foreign in ("HTTPConnectionPool", "Max retries", "urllib3"):
        assert foreign not in message


@pytest.mark.parametrize("layout", ["mnist", "."])
@pytest.mark.parametrize("zipped", [True, False])
def test_own_data_folder_comes_first(small_mnist, monkeypatch, tmp_path, layout, zipped):
    folder = tmp_path / "own" / layout
    folder.mkdir(parents=True)
    for name, data in small_mnist.items():
        if zipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(data))
        else:
            (folder / name).write_bytes(data)
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path / "own"))
    assert load_mnist("http://127.0.0.1:9").train.shape == (6, 784)


def test_a_relative_folder_is_named_by_where_it_leads(small_mnist, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAPERLIB_DATA", "own")
    with pytest.raises(InputError, match=f"in one of {tmp_path / 'own' / 'mnist'}, "):
        load_mnist("http://127.0.0.1:9")


@pytest.mark.parametrize("damage", ["truncated gzip", "wrong contents"])
def test_damaged_file_in_own_folder_is_named(small_mnist, monkeypatch, tmp_path, damage):
    name = "train-images-idx3-ubyte"
    data = gzip.compress(small_mnist[name])
    (tmp_path / f"{name}.gz").write_bytes(
        data[:50] if damage == "truncated gzip" else gzip.compress(b"x")
    )
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=f"{name}.gz"):
        load_mnist("http://127.0.0.1:9")


def test_digits_are_split_alike_every_time():
    digits = load_digits()
    assert (digits.train.shape, digits.test.shape) == ((1438, 64), (359, 64))
    assert (digits.train.min(), digits.train.max()) == (0, 1)
    assert digits.checksum == load_digits().checksum
    assert set(digits.test_labels.tolist()) == set(range(10))


def test_binarisation_follows_intensities_and_its_seed_alone():
    images = torch.linspace(0, 1, 11).expand(20_000, 11)
    binary = binarize(images, seed=1)
    assert binary.dtype == torch.uint8
    assert torch.equal(binary, binarize(images.numpy(), seed=1))
    assert not torch.equal(binary, binarize(images, seed=2))
    # the first and the last exactly
    assert_rates(binary.float().mean(0), images[0], 20_000, errors=4.5)


def test_base_rates_are_smoothed_as_stated():
    train = torch.tensor([[0, 1, 0], [0, 1, 1]], dtype=torch.uint8)
    frequency = torch.sigmoid(base_rate_bias(train, pseudo_on=0.5, pseudo_off=0.5))
    torch.testing.assert_close(frequency, torch.tensor([0.25, 0.75, 0.5]).double())
    # the authors' smoothing: (count + 5 per minibatch of 100) / (cases + 5 per minibatch)
    many = torch.zeros(1000, 1)
    many[:300] = 1
    expected = torch.logit(torch.tensor([(300 + 50) / (1000 + 50)]).double())
    torch.testing.assert_close(base_rate_bias(many), expected)


def test_pixels_that_are_always_on_are_smoothed_like_those_that_are_never_on():
    train = torch.zeros(40, 4, dtype=torch.uint8)
    train[:, 0] = 1
    train[:39, 1] = 1
    train[:7, 2] = 1
    bias = base_rate_bias(train)
    assert bias[0] == pytest.approx(-bias[3].item(), abs=1e-12)
    assert bias[0] == pytest.approx(math.log(1 / 0.05), abs=1e-12)
    # the other pixels by the formula, to the last bit
    counts = torch.tensor([39, 7, 0]).double()
    assert torch.equal(bias[1:], torch.logit((counts / 40 + 0.05) / 1.05))
    assert base_rate_bias(train[:1]).isfinite().all()


def test_images_of_ones_own_are_a_copy_and_an_assignment_says_how_to_make_it():
    images = binary_images("digits")
    mine = images.test.flip(1)
    with pytest.raises(AttributeError, match=r"write images = dataclasses\.replace\(images, test="):
        images.test = mine
    assert torch.equal(replace(images, test=mine).test, mine)
    assert binary_images("digits").test is images.test
