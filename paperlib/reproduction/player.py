"""A player of images for the book: frames that a reader steps through in the page itself, without a kernel.

The page gets everything in one piece, pictures and script included, and asks no other host for anything. Nothing moves
until the reader asks for it. Without scripts the last frame is shown.
"""

from __future__ import annotations

import base64
import html
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from string import Template

import torch
from PIL import Image
from torch import Tensor

from paperlib import storage
from paperlib.validation import as_float_tensor, require_count, require_shape

_TILE = 64  # pixels of the screen per image, about
_LINE = 204  # grey of the lines between images, readable as a border on white
_MILLISECONDS = 400  # per frame while playing

# One white card in both of the book's themes, as its figures are. Elements are found by a key made from the contents, so
# that the same frames give the same text, and so that several players on a page do not mind each other. The class
# `dark-light` and the picture's own style keep the book's theme from dimming and framing it on dark pages.
_PAGE = Template("""\
<div class="frame-player" data-frames="$key" role="group" aria-label="$description">
<style>
.frame-player { background: #fff; border: 1px solid #767676; border-radius: 4px; box-sizing: border-box;
  color: #1a1a1a; color-scheme: light; max-width: 100%; padding: 12px; width: ${width}px; }
.frame-player img { display: block; height: auto; image-rendering: pixelated; margin: 0 auto; max-width: 100%; }
.frame-player .controls { align-items: center; display: flex; gap: 12px; margin-top: 12px; }
.frame-player .controls[hidden] { display: none; }
.frame-player button { background: #fff; border: 1px solid #595959; border-radius: 4px; color: #1a1a1a; cursor: pointer;
  font: inherit; min-width: 4.5em; padding: 4px 8px; }
.frame-player button:focus-visible, .frame-player input:focus-visible { outline: 3px solid #0072B2; outline-offset: 2px; }
.frame-player input { accent-color: #0072B2; flex: 1; min-width: 0; }
.frame-player p { color: #1a1a1a; margin: 8px 0 0; }
</style>
<img class="dark-light" style="background: #fff; padding: 0" src="$last_source" alt="$description: $last_caption"
  width="$image_width" height="$image_height">
<div class="controls" hidden>
<button type="button">Play</button>
<input type="range" min="1" max="$count" value="$count" step="1" aria-label="Frame of: $description">
</div>
<p aria-live="polite">$last_caption</p>
<script>
(() => {
  const sources = $sources, captions = $captions, description = $description_json;
  for (const player of document.querySelectorAll('[data-frames="$key"]:not([data-ready])')) {
    player.dataset.ready = "";
    const image = player.querySelector("img"), caption = player.querySelector("p");
    const range = player.querySelector("input"), button = player.querySelector("button");
    let timer = null;
    const show = () => {
      const frame = Number(range.value) - 1;
      image.src = "data:image/png;base64," + sources[frame];
      image.alt = description + ": " + captions[frame];
      caption.textContent = captions[frame];
    };
    const stop = () => {
      clearInterval(timer);
      timer = null;
      button.textContent = "Play";
      caption.setAttribute("aria-live", "polite");
    };
    const step = () => {
      range.value = Number(range.value) + 1;
      if (range.value === range.max) stop();
      show();
    };
    button.addEventListener("click", () => {
      if (timer !== null) return stop();
      if (range.value === range.max) range.value = 1;
      button.textContent = "Pause";
      caption.setAttribute("aria-live", "off");  // a voice could not keep up
      show();
      timer = setInterval(step, $milliseconds);
    });
    range.addEventListener("input", () => { stop(); show(); });
    player.querySelector(".controls").hidden = false;
  }
})();
</script>
</div>
""")


@dataclass(frozen=True)
class FramePlayer:
    """What `frame_player` returns: shows itself in a notebook and in the book.

    Attributes
    ----------
    pictures : sequence of bytes
        One PNG per frame, all of one size.
    captions : sequence of str
        One per frame.
    description : str
        What is to be seen, for those who cannot see it.
    """

    pictures: Sequence[bytes]
    captions: Sequence[str]
    description: str

    def __repr__(self) -> str:
        return f"{self.description} ({len(self.pictures)} frames, from {self.captions[0]} to {self.captions[-1]})"

    def _repr_html_(self) -> str:
        sources = [base64.b64encode(picture).decode("ascii") for picture in self.pictures]
        contents = [sources, list(self.captions), self.description]
        width, height = Image.open(io.BytesIO(self.pictures[-1])).size
        return _PAGE.substitute(
            key=storage.sha256(json.dumps(contents).encode())[:16],
            description=html.escape(self.description),
            description_json=_in_script(self.description),
            captions=_in_script(list(self.captions)),
            sources=_in_script(sources),
            last_caption=html.escape(self.captions[-1]),
            last_source=f"data:image/png;base64,{sources[-1]}",
            image_width=width,
            image_height=height,
            width=width + 26,  # padding and border
            count=len(sources),
            milliseconds=_MILLISECONDS,
        )


def frame_player(
    frames: Sequence[Tensor],
    captions: Sequence[str],
    description: str,
    image_shape: tuple[int, int],
    columns: int = 4,
) -> FramePlayer:
    """A player of frames, each a grid of images.

    Parameters
    ----------
    frames : sequence of Tensor, shapes [N, D]
        Rows of pixels in [0, 1]; the same N for each frame.
    captions : sequence of str
        What is said of each frame, in plain text.
    description : str
        What the frames show, in plain text: their alternative text, to which a frame's caption is added.
    image_shape : (int, int)
        Height and width, whose product is D.
    columns : int
        Images beside each other.

    Raises
    ------
    ValueError
        If there is no frame, their number is not that of the captions, their shapes differ, or a pixel is not in [0, 1].
    """
    if not frames or len(frames) != len(captions):
        raise ValueError(
            f"captions: expected one for each of at least one frame, got {len(captions)} for {len(frames)} frames"
        )
    columns = require_count("columns", columns)
    height, width = image_shape
    pictures = []
    for frame in frames:
        images = as_float_tensor("frames", frame).cpu()
        require_shape("frames", images, [len(frames[0]), height * width])
        if not bool(((images >= 0) & (images <= 1)).all()):
            raise ValueError(
                f"frames: expected values in [0, 1], got {images.min():g} to {images.max():g}"
            )
        pictures.append(_png(_grid(images.view(-1, height, width), columns)))
    return FramePlayer(pictures, list(captions), description)


def _grid(images: Tensor, columns: int) -> Tensor:
    """Grey values, uint8, of images [N, height, width] in a grid with lines between them; 1 is black."""
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


def _in_script(value: object) -> str:
    """JSON that may stand inside of a script element: no `<` can end it."""
    return json.dumps(value).replace("<", "\\u003c")
