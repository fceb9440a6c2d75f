"""Binarisation, and the base rates of a training set.

"Each pixel value was stochastically set to 1 in proportion to its pixel intensity" (Salakhutdinov &
Murray 2008, section 5) is read here as: once, with a fixed seed, so that training and evaluation
see the same binary images.

`binarize` makes binary images of grey ones. `base_rate_bias` gives the biases of a model of
independent pixels, from which annealing starts. `BinaryImages` holds both splits of a data set.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from paperlib.datasets.images import ImageDataset
from paperlib.errors import InputError, never_changed
from paperlib.numerics import seeded_generator
from paperlib.torch_settings import plain_torch
from paperlib.validation import (
    ArrayLike,
    as_binary,
    as_float_tensor,
    as_tensor,
    blocks,
    require_finite,
)


@plain_torch()
def binarize(images: ArrayLike, seed: int, white: float = 1.0) -> Tensor:
    """Binary images: each pixel is 1 with a probability equal to its intensity.

    Parameters
    ----------
    images : array or Tensor, shape [..., D]
        Intensities in [0, 1], or from 0 to `white`.
    seed : int
        The same seed gives the same binary images, on every machine and with any number of threads.
    white : float
        The value that stands for intensity 1: 255 for grey levels in bytes.

    Returns
    -------
    Tensor
        uint8 of the same shape, on the CPU: a quarter of the memory of float32 for a full data set.

    Raises
    ------
    InputError
        If an intensity lies outside [0, 1] or is not a number.

    Notes
    -----
    Beyond the images and the result, it takes the memory of a few million numbers.

    Examples
    --------
    >>> binarize([[0.0, 0.5, 0.5, 1.0]], seed=0)[:, [0, 3]]
    tensor([[0, 1]], dtype=torch.uint8)
    """
    images = as_tensor("images", images)
    if images.numel() == 0:
        raise InputError(f"images: expected at least one image, got shape {list(images.shape)}")
    generator = seeded_generator(seed)
    result = torch.empty(images.shape, dtype=torch.uint8)
    for block, binary in zip(blocks(images), blocks(result), strict=True):
        intensities = as_float_tensor("images", block).cpu() / white
        require_finite("images", intensities)
        low = float(intensities.min())
        high = float(intensities.max())
        if low < 0 or high > 1:
            raise InputError(
                f"images: expected intensities in [0, 1], got values from {low:g} to {high:g}"
            )
        uniform = torch.rand(intensities.shape, dtype=intensities.dtype, generator=generator)
        binary.copy_(uniform < intensities)
    return result


def pixel_means(images: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean of each pixel over images [N, D] in [0, 1], float64 [D]; `weights` are [N]."""
    total = torch.zeros(images.shape[1], dtype=torch.float64, device=images.device)
    start = 0
    for block in blocks(images):
        intensities = as_float_tensor("train", block)
        require_finite("train", intensities)
        low = float(intensities.min())
        high = float(intensities.max())
        if low < 0 or high > 1:
            raise InputError(f"train: expected values in [0, 1], got {low:g} to {high:g}")
        if weights is None:
            total += intensities.sum(0, dtype=torch.float64)
        else:
            part = weights[start : start + len(block)].to(total)
            total += part @ intensities.double()
        start += len(block)
    return total / (len(images) if weights is None else weights.sum().item())


@plain_torch()
def base_rate_bias(
    train: ArrayLike,
    pseudo_on: float = 0.05,
    pseudo_off: float = 0.0,
    weights: Tensor | None = None,
) -> Tensor:
    """Visible biases of the base-rate model, in which pixels are independent.

    Each is on with its smoothed frequency in the training set. With n training images of which c_i
    have pixel i on, the frequency is

        (c_i + pseudo_on * n) / (n + (pseudo_on + pseudo_off) * n)

    and the bias its logit. The default is the smoothing of the 2008 paper's authors (5 imagined
    images with the pixel on for each minibatch of 100, none with it off), which keeps pixels that
    are never on from getting probability 0. A pixel that is always on would get probability 1 from
    it. Its bias is that of a pixel that is never on, with the sign reversed.

    Parameters
    ----------
    train : array or Tensor, shape [N, D]
        Training images, binary or intensities in [0, 1].
    pseudo_on, pseudo_off : float
        Imagined images with every pixel on, or off, as fractions of n.
    weights : Tensor, shape [N], optional
        Weights of the images; by default all count alike.

    Returns
    -------
    Tensor
        float64, shape [D].

    Raises
    ------
    InputError
        If the data are not in [0, 1], a pseudo-count is negative, or a frequency comes out as 0 or
        1 because `pseudo_on` is 0.

    Notes
    -----
    Beyond the images, it takes the memory of a few million numbers.

    Examples
    --------
    >>> bias = base_rate_bias([[0, 1, 0], [0, 1, 1]], pseudo_on=0.5, pseudo_off=0.5)
    >>> torch.sigmoid(bias)
    tensor([0.2500, 0.7500, 0.5000], dtype=torch.float64)
    """
    images = as_tensor("train", train)
    if images.ndim != 2 or images.numel() == 0:
        raise InputError(f"train: expected shape [any, any], got {list(images.shape)}")
    means = pixel_means(images, weights)
    for name, fraction in (("pseudo_on", pseudo_on), ("pseudo_off", pseudo_off)):
        if not 0 <= fraction < float("inf"):
            raise InputError(f"{name}: expected a finite number of at least 0, got {fraction}")
    count = 1 + pseudo_on + pseudo_off
    frequency = (means + pseudo_on) / count
    frequency[frequency >= 1] = 1 - pseudo_on / count
    always = int((frequency >= 1).sum())
    never = int((frequency <= 0).sum())
    if always or never:
        raise InputError(
            "pseudo_on, pseudo_off: expected smoothing that keeps every frequency between 0 and 1, "
            f"but {always} pixels are always on and {never} always off; raise pseudo_on above 0"
        )
    return torch.logit(frequency)


@never_changed("write images = dataclasses.replace(images, test=...)")
@dataclass(frozen=True)
class BinaryImages:
    """A data set that is binarised once, as every model and every evaluation here sees it.

    Attributes
    ----------
    train, test : Tensor, shape [N, D]
        Binary, uint8.
    grey : ImageDataset
        The grey images that they were drawn from.

    Raises
    ------
    InputError
        If `train` or `test` are not rows of zeros and ones, all of as many pixels.

    Examples
    --------
    >>> from paperlib.datasets import binary_images
    >>> binary_images("digits").base_rate_bias().shape
    torch.Size([64])
    """

    train: Tensor
    test: Tensor
    grey: ImageDataset

    def __post_init__(self) -> None:
        """Raise unless the images, which may be a reader's own, are rows of zeros and ones."""
        for name, images in (("train", self.train), ("test", self.test)):
            rows = as_tensor(name, images)
            if rows.ndim != 2:
                raise InputError(
                    f"{name}: expected a row of pixels for each image, "
                    f"got shape {list(rows.shape)}; {name}.flatten(1) makes rows"
                )
            as_binary(name, rows, self.train.shape[1])

    def base_rate_bias(self) -> Tensor:
        """Biases of the base-rate model of the training images, float64 [D]."""
        return base_rate_bias(self.train)
