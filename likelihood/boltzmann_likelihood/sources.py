"""Models and images with the way in which they were read, and what a result says of it.

A `ForeignRBM` is a model from a file, and `Images` are images from one. Whatever takes a model or
images takes these as well: `model_of` and `pixels_of` give the parts that are evaluated, and
`inputs_of` what the result says of their origin.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from paperlib.errors import InputError
from paperlib.models.dbm import DBM
from paperlib.models.dbn import DBN
from paperlib.models.rbm import RBM
from paperlib.models.unnormalized_model import UnnormalizedModel
from paperlib.validation import ArrayLike

AS_GIVEN = "images binary as given"
NO_IMAGES = "no images"


@dataclass(frozen=True)
class ForeignRBM:
    """An RBM as this library represents it, and how it was obtained from the file.

    Whatever evaluates a model takes it as well, and the result says what is known of it.

    Attributes
    ----------
    rbm : RBM, DBM or DBN
        With units 0 and 1.
    origin : str
        What was read.
    spin_visible : bool
        Whether the visible units of the model in the file, and the images that belong to it, have
        values -1 and 1.
    log_z_offset : float
        ln Z of the model in the file minus that of `rbm`, in nats; 0 unless units are -1 and 1.
    stored_log_z : float or None
        ln Z of the model in the file as the file states it, if it does. It has not been checked.
    notes : tuple of str
        What was changed in the conversion or not used, to be shown to the user.
    """

    rbm: RBM | DBM | DBN
    origin: str
    spin_visible: bool = False
    log_z_offset: float = 0.0
    stored_log_z: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Images:
    """Binary images, and how they were obtained from the file.

    Whatever takes a tensor of test images takes them as well, and the result says how they became
    binary.

    Attributes
    ----------
    pixels : Tensor, shape [N, D]
        uint8, 0 and 1.
    binarization : str
        How they became binary.
    notes : tuple of str
        What in the file was not used: the header of a table, or a column of labels.

    Examples
    --------
    >>> import torch
    >>> Images(torch.eye(3, dtype=torch.uint8), "pixels on where above 0.5")
    <Images: 3 of 3 pixels, pixels on where above 0.5>
    """

    pixels: Tensor
    binarization: str = AS_GIVEN
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        count, width = self.pixels.shape
        return f"<Images: {count:,} of {width:,} pixels, {self.binarization}>"


@dataclass(frozen=True)
class Inputs:
    """What a result says of the files that it was made from; empty where there was none.

    Attributes
    ----------
    binarization : str
        How the test images became binary.
    image_notes : tuple of str
        What was not used of their file, and of that of the training images.
    origin : str
        What the model was read from.
    notes : tuple of str
        What was changed in the conversion of the model, or not used of its file.
    spin_visible, log_z_offset, stored_log_z
        As for `ForeignRBM`.
    """

    binarization: str = AS_GIVEN
    image_notes: tuple[str, ...] = ()
    origin: str = ""
    notes: tuple[str, ...] = ()
    spin_visible: bool = False
    log_z_offset: float = 0.0
    stored_log_z: float | None = None


def inputs_of(
    model: UnnormalizedModel | ForeignRBM,
    test: ArrayLike | Images | None,
    train: ArrayLike | Images | None = None,
) -> Inputs:
    """What is known of a model, of test images and of training images."""
    images = [each for each in (test, train) if isinstance(each, Images)]
    binarization = test.binarization if isinstance(test, Images) else AS_GIVEN
    if test is None:
        binarization = NO_IMAGES
    image_notes = tuple(note for each in images for note in each.notes)
    if not isinstance(model, ForeignRBM):
        return Inputs(binarization, image_notes)
    return Inputs(
        binarization,
        image_notes,
        model.origin,
        model.notes,
        model.spin_visible,
        model.log_z_offset,
        model.stored_log_z,
    )


def model_of(model: object, name: str = "model") -> UnnormalizedModel:
    """The model itself, wherever it is from."""
    model = model.rbm if isinstance(model, ForeignRBM) else model
    if not isinstance(model, UnnormalizedModel):
        raise InputError(
            f"{name}: expected an RBM, DBM or DBN, or what read_model returns, "
            f"got {type(model).__name__}; read_model(path) reads a file, and "
            "RBM(weights, visible_bias, hidden_bias) takes arrays"
        )
    return model


def pixels_of(images: ArrayLike | Images | None) -> ArrayLike | None:
    """The images themselves, wherever they are from."""
    return images.pixels if isinstance(images, Images) else images
