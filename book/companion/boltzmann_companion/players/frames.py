"""A player for images: frames that a reader steps through in the page, without a kernel.

`boltzmann_companion.players.page` says what holds for every player.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from PIL import Image
from torch import Tensor

from boltzmann_companion.players.page import Slider, card
from paperlib.errors import InputError
from paperlib.validation import as_float_tensor, require_count, require_shape

_TILE = 64  # screen pixels per image, approximately
_LINE = 204  # grey of the lines between images, visible as a border on white
_MILLISECONDS = 400  # per frame while playing


@dataclass(frozen=True)
class FramePlayer:
    """The result of `frame_player`, which shows itself in a notebook and in the book.

    Attributes
    ----------
    pictures : sequence of bytes
        One PNG per frame, all of the same size.
    captions : sequence of str
        One per frame.
    description : str
        Description for readers who cannot see the player.
    """

    pictures: Sequence[bytes]
    captions: Sequence[str]
    description: str

    def __repr__(self) -> str:
        between = f"from {self.captions[0]} to {self.captions[-1]}"
        return f"{self.description} ({len(self.pictures)} frames, {between})"

    def _repr_html_(self) -> str:
        sources = [base64.b64encode(picture).decode("ascii") for picture in self.pictures]
        width, height = Image.open(io.BytesIO(self.pictures[-1])).size
        words = html.escape(f"{self.description}: {self.captions[-1]}")
        return card(
            "frames",
            self.description,
            drawing='<img class="dark-light" style="background: #fff; padding: 0" '
            f'src="data:image/png;base64,{sources[-1]}" alt="{words}" '
            f'width="{width}" height="{height}">',
            caption=self.captions[-1],
            slider=Slider(f"Frame of: {self.description}", first=1, last=len(sources)),
            data={"sources": sources, "captions": list(self.captions)},
            milliseconds=_MILLISECONDS,
            style=f"width: {width + 26}px",  # padding and border
        )


def frame_player(
    frames: Sequence[Tensor],
    captions: Sequence[str],
    description: str,
    image_shape: tuple[int, int],
    columns: int = 4,
) -> FramePlayer:
    """A player for frames, each of which is a grid of images.

    Parameters
    ----------
    frames : sequence of Tensor, shapes [N, D]
        Rows of pixels in [0, 1]; the same N for each frame.
    captions : sequence of str
        Caption of each frame, in plain text.
    description : str
        What the frames show, in plain text. Together with a frame's caption, it is the frame's alternative text.
    image_shape : (int, int)
        Height and width, whose product is D.
    columns : int
        Images per row.

    Raises
    ------
    InputError
        If there are no frames, their number is not that of the captions, their shapes differ, or a
        pixel is not in [0, 1].
    """
    if not frames or len(frames) != len(captions):
        raise InputError(
            "captions: expected one for each of at least one frame, "
            f"got {len(captions)} for {len(frames)} frames"
        )
    columns = require_count("columns", columns)
    height, width = image_shape
    pictures = []
    for frame in frames:
        images = as_float_tensor("frames", frame).cpu()
        require_shape("frames", images, [len(frames[0]), height * width])
        if not bool(((images >= 0) & (images <= 1)).all()):
            raise InputError(
                f"frames: expected values in [0, 1], got {images.min():g} to {images.max():g}"
            )
        pictures.append(_png(_grid(images.view(-1, height, width), columns)))
    return FramePlayer(pictures, list(captions), description)


def _grid(images: Tensor, columns: int) -> Tensor:
    """Grey values, uint8, of images [N, height, width] in a grid with lines; 1 is black."""
    count, height, width = images.shape
    scale = max(1, round(_TILE / width))
    grey = (255 * (1 - images)).round().to(torch.uint8)
    grey = grey.repeat_interleave(scale, 1).repeat_interleave(scale, 2)
    height, width = height * scale, width * scale
    rows = -(-count // columns)
    canvas = torch.full((rows * (height + 1) + 1, columns * (width + 1) + 1), 255).to(torch.uint8)
    canvas[:: height + 1] = _LINE
    canvas[:, :: width + 1] = _LINE
    for index, image in enumerate(grey):
        top, left = index // columns * (height + 1) + 1, index % columns * (width + 1) + 1
        canvas[top : top + height, left : left + width] = image
    return canvas


def _png(grey: Tensor) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(grey.numpy()).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
