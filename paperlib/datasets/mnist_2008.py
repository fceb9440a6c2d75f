"""The binary MNIST images of Salakhutdinov & Murray (2008), rebuilt bit for bit.

The authors' code release says how the images of the paper were made: sorted by class, reordered and
binarised once, with MATLAB's random numbers. So these are the very images on which the published
models were trained and tested.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import torch
from torch import Tensor

from paperlib import storage
from paperlib.datasets.binarization import BinaryImages
from paperlib.datasets.mnist import load_mnist
from paperlib.errors import InputError
from paperlib.kernels import MatlabUniform

# SHA-256 of the binary images as bytes, row after row.
_SHA256 = {
    "train": "9ba5be132d07fef6e91b347f2896a1eb4b1f0c2d086aca723307c591e1efa943",
    "test": "37b73bafad592c26d7efb96914ff372703d242db503569f16f42c6299e301f02",
}
# The states in which the release puts MATLAB's generator before ordering and before binarising.
_ORDER_STATE = 0
_BINARIZATION_STATE = 30
_MINIBATCH = 100


@cache
def load_mnist_2008() -> BinaryImages:
    """The binary images on which the first paper's models were trained and tested, in their order.

    Minibatch b of the paper's training holds the rows 100 b to 100 b + 99. MNIST itself is found or
    downloaded as by `load_mnist`.

    Returns
    -------
    BinaryImages
        `train` [60000, 784] and `test` [10000, 784], uint8; `grey` has the images that they were
        drawn from and their labels, in the same order.

    Raises
    ------
    InputError
        If MNIST cannot be found or downloaded, or the result does not have the known checksums.

    Notes
    -----
    Source: the authors' release "Learning and Evaluating Boltzmann Machines", to which section 5 of
    the paper points.
    """
    mnist = load_mnist()
    train, train_labels = _in_order(mnist.train, mnist.train_labels)
    test, test_labels = _in_order(mnist.test, mnist.test_labels)
    grey = replace(
        mnist,
        name="mnist-2008",
        train=train,
        test=test,
        train_labels=train_labels,
        test_labels=test_labels,
        checksum=storage.sha256("".join(_SHA256.values()).encode()),
    )
    return BinaryImages(_binarized(train, "train"), _binarized(test, "test"), grey)


def _in_order(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Images and labels sorted by class, then by one random number for each."""
    by_class = torch.argsort(labels, stable=True)
    numbers = torch.from_numpy(MatlabUniform(_ORDER_STATE).draw(len(labels)))
    order = by_class[torch.argsort(numbers, stable=True)]
    return images[order], labels[order]


def _binarized(images: Tensor, split: str) -> Tensor:
    """Binary images [N, D]: a pixel is on where its intensity exceeds its random number.

    MATLAB draws the numbers as an array [100, D, minibatches], column by column.
    """
    generator = MatlabUniform(_BINARIZATION_STATE)
    binary = np.empty(images.shape, np.uint8)
    for first in range(0, len(images), _MINIBATCH):
        # Pixels are whole 255ths; the division has to be done in float64.
        intensities = (images[first : first + _MINIBATCH] * 255).round().double().numpy() / 255
        numbers = generator.draw(intensities.size).reshape(images.shape[1], _MINIBATCH)
        binary[first : first + _MINIBATCH] = intensities > numbers.T
    checksum = storage.sha256(binary.tobytes())
    if checksum != _SHA256[split]:
        raise InputError(
            f"MNIST of 2008, {split}: expected binary images with SHA-256 {_SHA256[split]}, "
            f"got {checksum}; "
            "MNIST's own files have the right contents, so this machine's arithmetic is at fault"
        )
    return torch.from_numpy(binary)
