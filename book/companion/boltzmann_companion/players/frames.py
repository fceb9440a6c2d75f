"""A player for images: frames that a reader steps through in the page, without a kernel.

`boltzmann_companion.players.page` says what holds for every player.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence

import torch
from PIL import Image
from torch import Tensor

from boltzmann_companion.players.page import Player, player
from paperlib.errors import InputError
from paperlib.validation import as_float_tensor, require_count, require_shape

_TILE = 64  # screen pixels per image, approximately
_LINE = 204  # grey of the lines between images, visible as a border on white


def frame_player(
    frames: Sequence[Tensor],
    captions: Sequence[str],
    description: str,
    image_shape: tuple[int, int],
    columns: int = 4,
) -> Player:
    """A player for frames, each of which is a grid of images.

    Parameters
    ----------
    frames : sequence of Tensor, shapes [N, D]
        Rows of pixels in [0, 1]; the same N for each frame.
    captions : sequence of str
        Caption of each frame, in plain text.
    description : str
        What the frames show, in plain text. Together with a frame's caption, it is the frame's
        alternative text.
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
    sources = [base64.b64encode(picture).decode("ascii") for picture in pictures]
    across, down = Image.open(io.BytesIO(pictures[-1])).size
    words = html.escape(f"{description}: {captions[-1]}")
    return player(
        "frames",
        description,
        f"{len(sources)} frames, from {captions[0]} to {captions[-1]}",
        '<img class="dark-light" style="background: #fff; padding: 0" '
        f'src="data:image/png;base64,{sources[-1]}" alt="{words}" '
        f'width="{across}" height="{down}">',
        captions[-1],
        f"Frame of: {description}",
        len(sources),
        {"sources": sources, "captions": list(captions)},
        first=1,
        milliseconds=400,
        style=f"width: {across + 26}px",  # padding and border
    )


def _grid(images: Tensor, columns: int) -> Tensor:
    """Grey values, uint8, of images [N, height, width] in a grid with lines; 1 is black."""
    count, height, width = images.shape
    scale = max(1, round(_TILE / width))
    grey = (255 * (1 - images)).round().to(torch.uint8)
    grey = grey.repeat_interleave(scale, 1).repeat_interleave(scale, 2)
    height = height * scale
    width = width * scale
    rows = -(-count // columns)
    canvas = torch.full((rows * (height + 1) + 1, columns * (width + 1) + 1), 255).to(torch.uint8)
    canvas[:: height + 1] = _LINE
    canvas[:, :: width + 1] = _LINE
    for index, image in enumerate(grey):
        top = index // columns * (height + 1) + 1
        left = index % columns * (width + 1) + 1
        canvas[top : top + height, left : left + width] = image
    return canvas


def _png(grey: Tensor) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(grey.numpy()).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
