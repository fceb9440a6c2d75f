"""A player for mean-field traces: choose a step size and step through the updates.

It shows the means and the bound. Both are computed beforehand and only looked up by the page, which
therefore cannot disagree with the library. Without scripts, the last state of the first run is
shown. `boltzmann_companion.players.page` says what holds for every player.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

from torch import Tensor

from boltzmann_companion.players.page import Player, player, svg
from paperlib.errors import InputError
from paperlib.validation import require_finite, require_shape

# The plotting area of both drawings, in units of about one screen pixel.
_BOX = {"left": 44, "top": 24, "width": 250, "height": 150}
_LEFT, _TOP, _WIDTH, _HEIGHT = _BOX.values()
_RIGHT = _LEFT + _WIDTH
_BOTTOM = _TOP + _HEIGHT
_AXES = f'<path d="M{_LEFT} {_TOP} V{_BOTTOM} H{_RIGHT}" fill="none" stroke="#999"/>'
# Four decimals in the JSON are enough for drawing, and keep it small.
_DIGITS = 4


def trace_player(
    runs: Mapping[str, tuple[Tensor, Tensor]],
    exact: Tensor,
    goal: float,
    limits: tuple[float, float],
    description: str,
) -> Player:
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
    data = [
        {"label": label, "means": _rounded(means), "bounds": _rounded(bounds)}
        for label, (means, bounds) in runs.items()
    ]
    first = data[0]
    last = length - 1
    means_drawing = _drawing_of_means(first["means"][-1], _rounded(exact))
    bounds_drawing = _drawing_of_bounds(first["bounds"], round(goal, _DIGITS), low, high)
    name = html.escape(f"Step size: {description}")
    label = html.escape(first["label"])
    last_bound = _minus(f"{first['bounds'][-1]:.2f}")
    return player(
        "traces",
        description,
        f"{len(runs)} runs, {last} updates",
        f'<div class="drawings">\n{means_drawing}\n{bounds_drawing}\n</div>',
        f"{first['label']}, update {last}: bound {last_bound} nats",
        f"Update: {description}",
        last,
        {"runs": data, "low": low, "high": high, **_BOX},
        word="update",
        choices='<label>step <input class="choice" type="range" min="0" '
        f'max="{len(data) - 1}" value="0" step="1" aria-label="{name}" '
        f'aria-valuetext="{label}"></label>',
    )


def _drawing_of_means(means: Sequence[float], exact: Sequence[float]) -> str:
    """A bar for each mean, with a line at the exact one across it."""
    bars = []
    pitch = _WIDTH / len(exact)
    for unit, (mean, truth) in enumerate(zip(means, exact, strict=True)):
        begin = _LEFT + pitch * (unit + 0.15)
        top = _TOP + _HEIGHT * (1 - mean)
        level = _TOP + _HEIGHT * (1 - truth)
        left = begin - 0.1 * pitch
        right = begin + 0.8 * pitch
        middle = begin + 0.35 * pitch
        bars.append(
            f'<rect x="{begin:.1f}" width="{0.7 * pitch:.1f}" y="{top:.1f}" '
            f'height="{_HEIGHT * mean:.1f}" fill="#56B4E9"/>'
            f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{level:.1f}" y2="{level:.1f}" '
            'stroke="#000" stroke-width="2"/>'
            f'<text x="{middle:.1f}" y="188" text-anchor="middle">{unit + 1}</text>'
        )
    all_bars = "\n".join(bars)
    return _picture(
        "Bars: means of the hidden units. Black lines: exact posterior means.",
        f"""\
<text x="{_LEFT}" y="14">means (bars), exact (lines)</text>
{_AXES}
<text x="36" y="28" text-anchor="end">1</text><text x="36" y="178" text-anchor="end">0</text>
{all_bars}
<text x="169" y="202" text-anchor="middle">hidden unit</text>""",
    )


def _drawing_of_bounds(bounds: Sequence[float], goal: float, low: float, high: float) -> str:
    """The curve of the bound, and a dashed line at the goal."""
    last = len(bounds) - 1

    def y(bound: float) -> float:
        return _TOP + _HEIGHT * (high - min(max(bound, low), high)) / (high - low)

    points = [(_LEFT + _WIDTH * update / last, y(bound)) for update, bound in enumerate(bounds)]
    curve = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    now_x, now_y = points[-1]
    return _picture(
        "Line: the lower bound at every update so far. Dashed: the bound of coordinate ascent.",
        f"""\
<text x="{_LEFT}" y="14">lower bound in nats</text>
{_AXES}
<text x="40" y="28" text-anchor="end">{_minus(f"{high:g}")}</text>
<text x="40" y="178" text-anchor="end">{_minus(f"{low:g}")}</text>
<text x="{_LEFT}" y="188" text-anchor="middle">0</text>
<text x="{_RIGHT}" y="188" text-anchor="middle">{last}</text>
<text x="169" y="202" text-anchor="middle">update</text>
<line x1="{_LEFT}" x2="{_RIGHT}" y1="{y(goal):.1f}" y2="{y(goal):.1f}" stroke="#000" \
stroke-dasharray="4 3"/>
<polyline points="{curve}" fill="none" stroke="#0072B2" stroke-width="2"/>
<circle cx="{now_x:.1f}" cy="{now_y:.1f}" r="4" fill="#D55E00"/>""",
    )


def _picture(words: str, lines: str) -> str:
    """One of the two drawings."""
    return svg(310, 210, words, lines, letters=12)


def _rounded(values: Tensor) -> list:
    """Nested lists of numbers, rounded to a few digits."""
    if values.ndim > 1:
        return [_rounded(row) for row in values]
    return [round(value, _DIGITS) for value in values.tolist()]


def _minus(number: str) -> str:
    """A number as text with a real minus sign."""
    return number.replace("-", "−")
