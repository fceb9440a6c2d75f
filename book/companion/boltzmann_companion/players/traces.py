"""A player for mean-field traces: choose a step size and step through the updates.

It shows the means and the bound. Both are computed beforehand and only looked up by the page, which
therefore cannot disagree with the library. Without scripts, the last state of the first run is shown.
`boltzmann_companion.players.page` says what holds for every player.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from boltzmann_companion.players.page import Slider, card
from paperlib.errors import InputError
from paperlib.validation import require_finite, require_shape

# The plotting area of both drawings, in units of about one screen pixel.
_LEFT, _TOP, _WIDTH, _HEIGHT = 44, 24, 250, 150
_RIGHT, _BOTTOM = _LEFT + _WIDTH, _TOP + _HEIGHT
_AXES = f'<path d="M{_LEFT} {_TOP} V{_BOTTOM} H{_RIGHT}" fill="none" stroke="#999"/>'
_MILLISECONDS = 500  # per update while playing
# Four decimals in the JSON are enough for drawing, and keep it small.
_DIGITS = 4


@dataclass(frozen=True)
class TracePlayer:
    """The result of `trace_player`, which shows itself in a notebook and in the book.

    Attributes
    ----------
    labels : tuple of str
        One for each run.
    means : tuple of lists
        The means of each run, [T + 1][M].
    bounds : tuple of lists
        The bounds of each run, [T + 1].
    exact : list of float
        Exact posterior means, [M].
    goal : float
        The bound at which the dashed line is drawn.
    limits : tuple of float
        Lowest and highest bound in the drawing; lower ones are drawn on the lower edge.
    description : str
        Description for readers who cannot see the player.
    """

    labels: tuple[str, ...]
    means: tuple[list[list[float]], ...]
    bounds: tuple[list[float], ...]
    exact: list[float]
    goal: float
    limits: tuple[float, float]
    description: str

    def __repr__(self) -> str:
        return f"{self.description} ({len(self.labels)} runs, {len(self.bounds[0]) - 1} updates)"

    def _repr_html_(self) -> str:
        runs = [
            {"label": label, "means": means, "bounds": bounds}
            for label, means, bounds in zip(self.labels, self.means, self.bounds, strict=True)
        ]
        low, high = self.limits
        last = len(self.bounds[0]) - 1
        drawing = f'<div class="drawings">\n{self._drawn_means()}\n{self._drawn_bounds()}\n</div>'
        caption = (
            f"{self.labels[0]}, update {last}: bound {_minus(f'{self.bounds[0][-1]:.2f}')} nats"
        )
        name = html.escape(f"Step size: {self.description}")
        return card(
            "traces",
            self.description,
            drawing=drawing,
            caption=caption,
            slider=Slider(f"Update: {self.description}", last=last, word="update"),
            data={
                "runs": runs,
                "low": low,
                "high": high,
                "left": _LEFT,
                "top": _TOP,
                "width": _WIDTH,
                "height": _HEIGHT,
            },
            milliseconds=_MILLISECONDS,
            choices='<label>step <input class="choice" type="range" min="0" '
            f'max="{len(runs) - 1}" value="0" step="1" aria-label="{name}"></label>',
        )

    def _drawn_means(self) -> str:
        bars = "\n".join(self._bars())
        return f"""\
<svg viewBox="0 0 310 210" role="img" \
aria-label="Bars: means of the hidden units. Black lines: exact posterior means.">
<text x="{_LEFT}" y="14">means (bars), exact (lines)</text>
{_AXES}
<text x="36" y="28" text-anchor="end">1</text><text x="36" y="178" text-anchor="end">0</text>
{bars}
<text x="169" y="202" text-anchor="middle">hidden unit</text>
</svg>"""

    def _drawn_bounds(self) -> str:
        low, high = self.limits
        last = len(self.bounds[0]) - 1

        def y(bound: float) -> float:
            return _TOP + _HEIGHT * (high - min(max(bound, low), high)) / (high - low)

        points = [
            (_LEFT + _WIDTH * update / last, y(bound))
            for update, bound in enumerate(self.bounds[0])
        ]
        curve = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        now_x, now_y = points[-1]
        goal = f"{y(self.goal):.1f}"
        return f"""\
<svg viewBox="0 0 310 210" role="img" \
aria-label="Line: the lower bound at every update so far. Dashed: the bound of coordinate ascent.">
<text x="{_LEFT}" y="14">lower bound in nats</text>
{_AXES}
<text x="40" y="28" text-anchor="end">{_minus(f"{high:g}")}</text>
<text x="40" y="178" text-anchor="end">{_minus(f"{low:g}")}</text>
<text x="{_LEFT}" y="188" text-anchor="middle">0</text>
<text x="{_RIGHT}" y="188" text-anchor="middle">{last}</text>
<text x="169" y="202" text-anchor="middle">update</text>
<line x1="{_LEFT}" x2="{_RIGHT}" y1="{goal}" y2="{goal}" stroke="#000" stroke-dasharray="4 3"/>
<polyline points="{curve}" fill="none" stroke="#0072B2" stroke-width="2"/>
<circle cx="{now_x:.1f}" cy="{now_y:.1f}" r="4" fill="#D55E00"/>
</svg>"""

    def _bars(self) -> list[str]:
        """The bars of the first run's last means, with a line at the exact mean across each."""
        drawn = []
        pitch = _WIDTH / len(self.exact)
        for unit, (mean, exact) in enumerate(zip(self.means[0][-1], self.exact, strict=True)):
            begin = _LEFT + pitch * (unit + 0.15)
            top, level = _TOP + _HEIGHT * (1 - mean), _TOP + _HEIGHT * (1 - exact)
            left, right = begin - 0.1 * pitch, begin + 0.8 * pitch
            middle = begin + 0.35 * pitch
            drawn.append(
                f'<rect x="{begin:.1f}" width="{0.7 * pitch:.1f}" y="{top:.1f}" '
                f'height="{_HEIGHT * mean:.1f}" fill="#56B4E9"/>'
                f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{level:.1f}" y2="{level:.1f}" '
                'stroke="#000" stroke-width="2"/>'
                f'<text x="{middle:.1f}" y="188" text-anchor="middle">{unit + 1}</text>'
            )
        return drawn


def trace_player(
    runs: Mapping[str, tuple[Tensor, Tensor]],
    exact: Tensor,
    goal: float,
    limits: tuple[float, float],
    description: str,
) -> TracePlayer:
    """A player for mean-field runs on one visible vector.

    Parameters
    ----------
    runs : mapping of str to (Tensor, Tensor), shapes [T + 1, M] and [T + 1]
        Means and bounds of each run, by its label. T is at least 1 and the same for all runs.
    exact : Tensor, shape [M]
        Exact posterior means.
    goal : float
        A bound to compare with, drawn as a dashed line.
    limits : (float, float)
        The range of bounds to draw.
    description : str
        What the player shows, in plain text.

    Raises
    ------
    InputError
        If there is no run, their shapes differ, or a number is NaN or infinite.
    """
    if not runs:
        raise InputError("runs: expected at least one run, got none")
    require_shape("exact", exact, [None])
    length = len(next(iter(runs.values()))[1])
    if length < 2:
        raise InputError(f"runs: expected at least one update, got {length - 1}")
    for label, (means, bounds) in runs.items():
        require_shape(f"means of {label}", means, [length, len(exact)])
        require_shape(f"bounds of {label}", bounds, [length])
        require_finite(f"bounds of {label}", bounds)
        if not bool(((means >= 0) & (means <= 1)).all()):
            raise InputError(
                f"means of {label}: expected values in [0, 1], "
                f"got {means.min():g} to {means.max():g}"
            )
    low, high = limits
    if not -math.inf < low < high < math.inf:
        raise InputError(f"limits: expected two increasing numbers, got {low} and {high}")
    return TracePlayer(
        tuple(runs),
        tuple(_rounded(means) for means, _ in runs.values()),
        tuple(_rounded(bounds) for _, bounds in runs.values()),
        _rounded(exact),
        round(goal, _DIGITS),
        (low, high),
        description,
    )


def _rounded(values: Tensor) -> list:
    """Nested lists of numbers, rounded to a few digits."""
    if values.ndim > 1:
        return [_rounded(row) for row in values]
    return [round(value, _DIGITS) for value in values.tolist()]


def _minus(number: str) -> str:
    """A number as text with a real minus sign."""
    return number.replace("-", "−")
