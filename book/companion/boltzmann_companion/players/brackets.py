"""A player for a bracket: how AIS and RAISE close in on an average as the number of steps grows.

Both are drawn with their errors. The player opens with the whole course.
`boltzmann_companion.players.page` says what holds for every player.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from boltzmann_companion.players.page import Player, player, svg
from boltzmann_companion.tables import format_value
from boltzmann_likelihood.evaluation.picture import LOOKS
from paperlib.errors import InputError

# Size of the drawing in its own units, where the plotting area begins and ends, and how far both
# sides stand from their K, so that error bars do not hide each other.
_WIDTH = 480
_HEIGHT = 318
_LEFT = 64
_RIGHT = 460
_TOP = 48
_BOTTOM = 268
_LINE_HEIGHT = 18
_ASIDE = 3
# The names of both lines, with the code of all figures: colours, dashes and, at the end of a line,
# a triangle that points to the truth.
_NAMES = {"AIS": "AIS, on average too high", "RAISE": "RAISE, on average too low"}
_DASHES = {"-": "", "--": ' stroke-dasharray="6 4"'}
_MARKERS = {"v": "-7,-5 7,-5 0,8", "^": "-7,5 7,5 0,-8"}
_LOOKS = [
    (name, LOOKS[key]["color"], _DASHES[LOOKS[key]["linestyle"]], _MARKERS[LOOKS[key]["marker"]])
    for key, name in _NAMES.items()
]
#: The ends of an interval and, between them, the estimate.
End = tuple[float, float, float]


def bracket_player(
    steps: Sequence[int],
    above: Sequence[End],
    below: Sequence[End],
    truth: float,
    description: str,
) -> Player:
    """A player for the course of a bracket.

    Parameters
    ----------
    steps : sequence of at least two int
        Annealing steps K, increasing.
    above, below : sequences of (float, float, float)
        The averages from AIS and from RAISE for these numbers of steps, in nats, each between the
        ends of its interval of three standard errors. An end may be infinite.
    truth : float
        The exact average.
    description : str
        What the player shows, in plain text.

    Raises
    ------
    InputError
        If the sequences differ in length, steps do not increase, or a value is not finite.
    """
    if not len(steps) == len(above) == len(below) >= 2:
        raise InputError(
            "steps: expected at least two, with a value of AIS and of RAISE for each, "
            f"got {len(steps)}, {len(above)} and {len(below)}"
        )
    if steps[0] < 1 or any(high <= low for low, high in pairwise(steps)):
        raise InputError(f"steps: expected increasing numbers from 1, got {list(steps)}")
    highs = [float(value) for _, value, _ in above]
    lows = [float(value) for _, value, _ in below]
    counts = [int(k) for k in steps]
    exact = float(truth)
    values = [*highs, *lows]
    if not all(map(math.isfinite, (*values, exact))):
        raise InputError("above, below, truth: expected finite numbers, got another one")
    if not all(low <= value <= high for low, value, high in (*above, *below)):
        raise InputError("above, below: expected values inside their intervals, got another one")
    columns = [_scaled(_LEFT, _RIGHT, math.log(k), map(math.log, counts)) for k in counts]
    finite = [exact]
    for interval in (*above, *below):
        finite += filter(math.isfinite, interval)
    bottom_value = min(finite)
    top_value = max(finite)

    def row(value: float) -> float:
        """Where a value is; an infinite end is at the edge of the drawing."""
        return _scaled(_BOTTOM, _TOP, min(max(value, bottom_value), top_value), finite)

    captions = [
        f"K = {count:,}: AIS {format_value(high)}, RAISE {format_value(low)}, "
        f"gap {format_value(high - low)} nats; exactly {format_value(exact)}"
        for count, high, low in zip(counts, highs, lows, strict=True)
    ]
    places = []
    errors = []
    for side, aside in ((above, -_ASIDE), (below, _ASIDE)):
        ends = [(round(x + aside, 1), *map(row, end)) for x, end in zip(columns, side, strict=True)]
        places.append([[x, y] for x, _, y, _ in ends])
        errors.append([f"M{x} {bottom}V{top}" for x, bottom, _, top in ends])
    # Without the labels that would collide with that of the truth.
    labels = [
        end for end in (max(values), min(values)) if abs(row(end) - row(exact)) >= _LINE_HEIGHT
    ]
    drawing = svg(
        _WIDTH,
        _HEIGHT,
        f"{description}: {captions[-1]}",
        f'<text x="{_LEFT}" y="16">test log-probability (nats)</text>',
        f'<text text-anchor="end" y="16">{_names()}</text>',
        "".join(
            [
                f'<text x="{_LEFT - 8}" y="{row(value) + 5}" text-anchor="end">'
                f"{format_value(value)}</text>"
                for value in (exact, *labels)
            ]
            + [
                f'<text x="{x}" y="{_BOTTOM + 22}" text-anchor="middle">{count:,}</text>'
                for x, count in zip(columns, counts, strict=True)
            ]
        )
        + f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 42}" text-anchor="middle">'
        "annealing steps K</text>",
        f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{row(exact)}" y2="{row(exact)}" stroke="#1a1a1a"/>',
        "".join(
            f'<path d="{"".join(bars)}" stroke="{color}"/>'
            f'<polyline points="{" ".join(f"{x},{y}" for x, y in side)}" fill="none" '
            f'stroke="{color}" stroke-width="3"{dashes}/>'
            f'<polygon points="{marker}" fill="{color}" '
            f'transform="translate({side[-1][0]} {side[-1][1]})"/>'
            for (_, color, dashes, marker), side, bars in zip(_LOOKS, places, errors, strict=True)
        ),
    )
    return player(
        "brackets",
        description,
        f"K from {counts[0]} to {counts[-1]}",
        drawing,
        captions[-1],
        f"Steps: {description}",
        len(counts) - 1,
        {"places": places, "errors": errors, "captions": captions},
        word="steps",
    )


def _names() -> str:
    """What the two lines are, one below the other in their colours, and what the bars are."""
    names = "".join(
        f'<tspan x="{_RIGHT}" dy="{_LINE_HEIGHT * number}" fill="{color}">{name}</tspan>'
        for number, (name, color, *_) in enumerate(_LOOKS)
    )
    return f'{names}<tspan x="{_RIGHT}" dy="{_LINE_HEIGHT}">bars: three standard errors</tspan>'


def _scaled(start: int, end: int, value: float, values: Iterable[float]) -> float:
    """Where a value is between two places for the least and the largest of all values."""
    all_values = list(values)
    low = min(all_values)
    high = max(all_values)
    return round(start + (end - start) * (value - low) / (high - low), 1)
