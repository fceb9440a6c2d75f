"""A player for a bracket: how AIS from above and RAISE from below close in on an average as the number of steps grows.

Without scripts, the whole course is shown.
`boltzmann_companion.players.page` says what holds for every player.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from boltzmann_companion.players.page import Player, player, svg
from boltzmann_companion.tables import format_value
from paperlib.errors import InputError

# Size of the drawing in its own units, and where the plotting area begins and ends.
_WIDTH, _HEIGHT = 480, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 460, 30, 250
_LINE_HEIGHT = 18
# A colour and a line style each for AIS and RAISE, which can be told apart without colours as well. The orange is darker than that of the
# figures, since a label has it too.
_LOOKS = (
    ("AIS from above", "#B34700", ""),
    ("RAISE from below", "#0072B2", ' stroke-dasharray="6 4"'),
)


def bracket_player(
    steps: Sequence[int],
    above: Sequence[float],
    below: Sequence[float],
    truth: float,
    description: str,
) -> Player:
    """A player for the course of a bracket.

    Parameters
    ----------
    steps : sequence of at least two int
        Annealing steps K, increasing.
    above, below : sequences of float
        The averages from AIS and from RAISE for these numbers of steps, in nats.
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
    if not all(map(math.isfinite, (*above, *below, truth))):
        raise InputError("above, below, truth: expected finite numbers, got another one")
    counts, exact = [int(number) for number in steps], float(truth)
    sides = [[float(value) for value in side] for side in (above, below)]
    values = [*sides[0], *sides[1]]
    columns = [_scaled(_LEFT, _RIGHT, math.log(k), map(math.log, counts)) for k in counts]
    rows = {value: _scaled(_BOTTOM, _TOP, value, [*values, exact]) for value in [*values, exact]}
    captions = [
        f"K = {count:,}: AIS {format_value(high)}, RAISE {format_value(low)}, "
        f"gap {format_value(high - low)} nats; exactly {format_value(exact)}"
        for count, high, low in zip(counts, *sides, strict=True)
    ]
    places = [[[x, rows[value]] for x, value in zip(columns, side, strict=True)] for side in sides]
    # Without the labels that would collide with that of the truth.
    ends = [
        end for end in (max(values), min(values)) if abs(rows[end] - rows[exact]) >= _LINE_HEIGHT
    ]
    drawing = svg(
        _WIDTH,
        _HEIGHT,
        f"{description}: {captions[-1]}",
        f'<text x="{_LEFT}" y="16">test log-probability (nats)</text>',
        f'<text text-anchor="end" y="16">{_names()}</text>',
        "".join(
            [
                f'<text x="{_LEFT - 8}" y="{rows[value] + 5}" text-anchor="end">'
                f"{format_value(value)}</text>"
                for value in (exact, *ends)
            ]
            + [
                f'<text x="{x}" y="{_BOTTOM + 22}" text-anchor="middle">{count:,}</text>'
                for x, count in zip(columns, counts, strict=True)
            ]
        )
        + f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 42}" text-anchor="middle">'
        "annealing steps K</text>",
        f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{rows[exact]}" y2="{rows[exact]}" stroke="#1a1a1a"/>',
        "".join(
            f'<polyline points="{" ".join(f"{x},{y}" for x, y in side)}" fill="none" '
            f'stroke="{color}" stroke-width="3"{dashes}/>'
            f'<circle cx="{side[-1][0]}" cy="{side[-1][1]}" r="6" fill="{color}"/>'
            for (_, color, dashes), side in zip(_LOOKS, places, strict=True)
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
        {"places": places, "captions": captions},
        word="steps",
    )


def _names() -> str:
    """What the two lines are, one below the other in their colours."""
    return "".join(
        f'<tspan x="{_RIGHT}" dy="{_LINE_HEIGHT * number}" fill="{color}">{name}</tspan>'
        for number, (name, color, _) in enumerate(_LOOKS)
    )


def _scaled(start: int, end: int, value: float, values: Iterable[float]) -> float:
    """Where a value is between two places that stand for the least and the largest of all values."""
    everything = [*values]
    low, high = min(everything), max(everything)
    return round(start + (end - start) * (value - low) / (high - low), 1)
