"""One look for all figures: a palette that colour-blind readers can tell apart, line styles beside colours."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import torch
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

# Okabe & Ito's colours, the light ones left out: they vanish on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#000000")
LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))


def use_style() -> None:
    """Set matplotlib's defaults for this book; called once at the top of a chapter."""
    mpl.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=PALETTE) + cycler(linestyle=LINE_STYLES),
            "axes.grid": True,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "figure.constrained_layout.use": True,
            "figure.dpi": 110,
            "figure.figsize": (7.0, 3.6),
            "font.size": 10,
            "grid.alpha": 0.3,
            "image.cmap": "gray_r",
            "legend.frameon": False,
            # Figures are white cards also on a dark page, so that black text stays readable.
            "figure.facecolor": "white",
            "savefig.facecolor": "white",
            "svg.hashsalt": "paperlib",
        }
    )


def show_images(
    images: Tensor, image_shape: tuple[int, int], columns: int = 10, title: str | None = None
) -> Figure:
    """Images as one grid.

    Parameters
    ----------
    images : Tensor, shape [N, D]
        Rows of pixels in [0, 1].
    image_shape : (int, int)
        Height and width.
    columns : int
        Images beside each other.
    title : str, optional
        Above the grid.
    """
    figure, axes = plt.subplots(figsize=(0.62 * columns, 0.62 * -(-len(images) // columns) + 0.3))
    draw_images(axes, images, image_shape, columns)
    if title:
        axes.set_title(title)
    return figure


def draw_images(axes: Axes, images: Tensor, image_shape: tuple[int, int], columns: int) -> None:
    """Draw images as one grid into given axes; arguments as in `show_images`."""
    height, width = image_shape
    rows = -(-len(images) // columns)
    canvas = torch.zeros(rows * (height + 1) + 1, columns * (width + 1) + 1)
    for index, image in enumerate(images):
        top, left = (
            (index // columns) * (height + 1) + 1,
            (index % columns) * (width + 1) + 1,
        )
        canvas[top : top + height, left : left + width] = image.reshape(image_shape)
    axes.imshow(canvas, vmin=0, vmax=1, interpolation="nearest")
    # thin lines between the images, drawn rather than coloured, so that blank images stay visible
    for edge in range(columns + 1):
        axes.axvline(edge * (width + 1), color="0.8", linewidth=0.6, linestyle="-")
    for edge in range(rows + 1):
        axes.axhline(edge * (height + 1), color="0.8", linewidth=0.6, linestyle="-")
    axes.set_axis_off()
