"""One look for all figures.

The colours are a palette that colour-blind readers can tell apart, and lines differ in their style
as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import torch
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patches import Circle, FancyArrowPatch
from matplotlib.ticker import LogLocator, NullLocator
from torch import Tensor

from boltzmann_likelihood.evaluation.picture import EXACT, LOOKS
from paperlib.errors import InputError
from paperlib.validation import require_shape

# Okabe & Ito's colours without the light ones, which vanish on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#000000")
LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
# Radius of the states of a drawn chain, in which neighbours are about 1 apart.
_RADIUS = 0.2


def use_style() -> None:
    """Set matplotlib's defaults for this book, whatever the user's settings.

    `open_chapter` calls it.
    """
    # A `matplotlibrc` may ask for LaTeX, which many machines do not have.
    mpl.rcdefaults()
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
            # Figures are white cards even on a dark page, so that black text stays readable.
            "figure.facecolor": "white",
            "savefig.facecolor": "white",
            "svg.hashsalt": "paperlib",
        }
    )


def look_of(estimator: str, *, hollow: bool = False) -> dict[str, Any]:
    """How a line shows an estimator: `LOOKS` of the tool.

    A uniform start beside one at base rates is hollow and thin, and so is the second of two models.

    Examples
    --------
    >>> look_of("AIS", hollow=True)["markerfacecolor"]
    'white'
    """
    second = {"linewidth": 1, "markerfacecolor": "white"} if hollow else {}
    return {"linewidth": 1.8, "markersize": 5} | LOOKS[estimator] | second


def arrow_of(estimator: str) -> dict[str, Any]:
    """An arrow for the transitions of `AIS`, or for those of `RAISE` in the other direction."""
    look = LOOKS[estimator]
    return {"arrowstyle": "-|>", "color": look["color"], "linestyle": look["linestyle"]}


def label_logarithmic(*axes: Axis, between: bool = True) -> None:
    """Label logarithmic axes with plain numbers.

    Parameters
    ----------
    *axes : Axis
        For example `axes.xaxis`; logarithmic already.
    between : bool
        Label 1, 2, 5, 10, ..., and not powers of ten alone. It suits an axis that spans no more
        than two of them.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> figure, axes = plt.subplots()
    >>> [line] = axes.loglog([1, 40], [1, 40])
    >>> label_logarithmic(axes.xaxis, axes.yaxis)
    >>> plt.close(figure)
    """
    for axis in axes:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if between else (1,)))
        axis.set_major_formatter("{x:,.12g}")
        axis.set_minor_locator(NullLocator())


def draw_frame(axes: Axes) -> None:
    """Draw a frame and nothing else around a matrix."""
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set(visible=True, color="0.5")


def draw_images(axes: Axes, images: Tensor, image_shape: tuple[int, int], columns: int) -> None:
    """Draw images [N, D] with pixels in [0, 1] as one grid into the given axes."""
    height, width = image_shape
    rows = -(-len(images) // columns)
    canvas = torch.zeros(rows * (height + 1) + 1, columns * (width + 1) + 1)
    for index, image in enumerate(images):
        top = (index // columns) * (height + 1) + 1
        left = (index % columns) * (width + 1) + 1
        canvas[top : top + height, left : left + width] = image.reshape(image_shape)
    axes.imshow(canvas, vmin=0, vmax=1, interpolation="nearest")
    # Thin lines between the images, so that blank images stay visible.
    for edge in range(columns + 1):
        axes.axvline(edge * (width + 1), color="0.8", linewidth=0.6, linestyle="-")
    for edge in range(rows + 1):
        axes.axhline(edge * (height + 1), color="0.8", linewidth=0.6, linestyle="-")
    axes.set_axis_off()


def draw_layer(
    axes: Axes,
    count: int,
    middle: tuple[float, float],
    name: str,
    name_x: float,
    *,
    spacing: float = 1.0,
    **look: Any,
) -> list[tuple[float, float]]:
    """Draw the units of a layer as circles in a row, and return their places.

    Parameters
    ----------
    axes : Axes
        Where to draw.
    count : int
        Number of units.
    middle : pair of float
        The middle of the row.
    name : str
        Name of the layer.
    name_x : float
        The place of its name in the row.
    spacing : float
        From one unit to the next.
    **look
        Of matplotlib's `Circle`, for example `facecolor`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> draw_layer(Figure().add_subplot(), 3, (0, 1.6), "h", -2)
    [(-1.0, 1.6), (0.0, 1.6), (1.0, 1.6)]
    """
    x, y = middle
    places = [(x + spacing * (unit - (count - 1) / 2), y) for unit in range(count)]
    look = {"radius": 0.2, "facecolor": "white", "edgecolor": "black", "zorder": 3} | look
    for place in places:
        axes.add_patch(Circle(place, **look))
    axes.text(name_x, y, name, ha="center", va="center", fontsize=12)
    return places


def join(
    axes: Axes, pairs: Iterable[tuple[tuple[float, float], tuple[float, float]]], **look: Any
) -> None:
    """Draw a line from the first place of each pair to the second.

    Parameters
    ----------
    axes : Axes
        Where to draw.
    pairs : iterable of pairs of places
        For example `itertools.product(upper, lower)`, two layers of `draw_layer`.
    **look
        Of matplotlib's arrows, for example `color`; with `arrowstyle="-|>"`, arrows are drawn.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> axes = Figure().add_subplot()
    >>> join(axes, [((0, 0), (0, 1)), ((0, 0), (1, 1))], color="0.4")
    >>> len(axes.texts)
    2
    """
    look = {"arrowstyle": "-", "linewidth": 0.9, "shrinkA": 9, "shrinkB": 9} | look
    for start, end in pairs:
        axes.annotate("", end, start, arrowprops=look)


def draw_runs(axes: Axes, points: Sequence[Mapping[str, Any]], zero: float) -> None:
    r"""Draw estimates of ln Z and their 3-sigma intervals against the number of AIS runs.

    An interval without a lower end, or with a very low one, is cut off. An arrow marks the former.

    Parameters
    ----------
    axes : Axes
        Where to draw.
    points : sequence of mappings
        Rows of a record with the columns `runs`, `log_z` and `interval_3_sigma`.
    zero : float
        What is subtracted: ln Z, or an estimate.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> axes = Figure().add_subplot()
    >>> rows = [{"runs": 10, "log_z": 9.8, "interval_3_sigma": [-math.inf, 10.3]}]
    >>> draw_runs(axes, rows, 10.0)
    >>> [line.get_marker() for line in axes.lines]
    ['None', 'None', '$\\downarrow$', 'v']
    """
    axes.axhline(0, linewidth=1, **EXACT)
    look = look_of("AIS")
    floor = min(max(row["interval_3_sigma"][0], row["log_z"] - 2) for row in points) - zero - 0.2
    for row in points:
        low, high = row["interval_3_sigma"]
        ends = [max(low - zero, floor), high - zero]
        axes.plot([row["runs"]] * 2, ends, color=look["color"], linestyle="-", linewidth=1)
        if low == -math.inf:
            axes.plot(row["runs"], floor, marker=r"$\downarrow$", color=look["color"])
        axes.plot(row["runs"], row["log_z"] - zero, **look)
    axes.set(xscale="log", xlabel="AIS runs")


def draw_chain(
    axes: Axes,
    rates: Tensor,
    places: Tensor | None = None,
    labels: Sequence[str] | None = None,
    shades: Tensor | None = None,
) -> None:
    """Draw a finite Markov chain as a graph.

    It has an arrow for every move and a loop for every chance to stay, which are the wider the
    larger the rate is. Rates of up to a hundredth of the largest have none.

    Parameters
    ----------
    axes : Axes
        Where to draw.
    rates : Tensor, shape [S, S]
        Rates from row to column: a transition matrix or a flow.
    places : Tensor, shape [S, 2], optional
        Positions of the states, in units in which neighbours are about 1 apart. By default the
        states are on a circle, clockwise from the top.
    labels : sequence of str, optional
        Text inside the states.
    shades : Tensor, shape [S], optional
        How dark the states are, from 0 (white) to 1 (black). By default all are white.

    Raises
    ------
    InputError
        If a shape does not fit, or a rate is negative or not a number.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> _, axes = plt.subplots()
    >>> draw_chain(axes, torch.tensor([[0.5, 0.5], [1.0, 0.0]]), labels=["A", "B"])
    >>> len(axes.patches)  # two states, two arrows, one loop
    5
    """
    require_shape("rates", rates, (len(rates), len(rates)))
    if not bool((rates >= 0).all()):
        raise InputError("rates: expected no negative number and no NaN")
    places = _on_a_circle(len(rates)) if places is None else places
    require_shape("places", places, (len(rates), 2))
    if labels is not None and len(labels) != len(rates):
        raise InputError(f"labels: expected {len(rates)}, got {len(labels)}")
    if shades is not None:
        require_shape("shades", shades, (len(rates),))
    largest = rates.max().item()
    for x in range(len(rates)):
        for following in range(len(rates)):
            rate = rates[x, following].item()
            if rate <= 0.01 * largest:
                continue
            width = 0.3 + 1.4 * rate / largest
            if x == following:
                axes.add_patch(_loop(places[x], places.mean(0), width))
            else:
                # Two arrows between the same states bend away from each other.
                bend = 0.22 if rates[following, x] > 0.01 * largest else 0.0
                axes.add_patch(_arrow(places[x], places[following], width, bend))
    for x in range(len(rates)):
        dark = 0.0 if shades is None else shades[x].item()
        face = {"facecolor": str(1 - dark), "edgecolor": "black", "zorder": 3}
        axes.add_patch(Circle(_point(places[x]), _RADIUS, **face))
        if labels is not None:
            ink = {"color": "white" if dark > 0.5 else "black", "fontsize": 7, "zorder": 4}
            axes.annotate(labels[x], _point(places[x]), ha="center", va="center", **ink)
    # A square around the graph, so that graphs of different shapes line up.
    low = places.min(0).values
    high = places.max(0).values
    x, y = _point((low + high) / 2)
    half = (high - low).max().item() / 2 + 3 * _RADIUS
    axes.set(xlim=(x - half, x + half), ylim=(y - half, y + half), aspect="equal")
    axes.set_axis_off()


def _point(place: Tensor) -> tuple[float, float]:
    return place[0].item(), place[1].item()


def _loop(place: Tensor, middle: Tensor, width: float) -> Circle:
    """A circle behind a state, on the side away from the middle of the graph."""
    outwards = place - middle
    if outwards.norm() == 0:
        # Upwards for the only state of a chain, or for one in the middle.
        outwards = torch.tensor([0.0, 1.0])
    centre = _point(place + 1.3 * _RADIUS * (outwards / outwards.norm()))
    return Circle(centre, 0.7 * _RADIUS, fill=False, linewidth=width, zorder=1)


def _arrow(start: Tensor, end: Tensor, width: float, bend: float) -> FancyArrowPatch:
    """An arrow from the edge of one state to the edge of another."""
    gap = _RADIUS * (end - start) / (end - start).norm()
    return FancyArrowPatch(
        _point(start + gap),
        _point(end - gap),
        connectionstyle=f"arc3,rad={bend}",
        arrowstyle=f"-|>,head_length={2 + width},head_width={1 + 0.6 * width}",
        shrinkA=0,
        shrinkB=0,
        linewidth=width,
        color=PALETTE[0],
        zorder=2,
    )


def _on_a_circle(number: int) -> Tensor:
    """Places [number, 2] on a circle, clockwise from the top, with neighbours 1 apart."""
    angles = 2 * math.pi * torch.arange(number, dtype=torch.float64) / number
    radius = 0.5 / math.sin(math.pi / number) if number > 1 else 0.0
    return radius * torch.stack([angles.sin(), angles.cos()], dim=1)
