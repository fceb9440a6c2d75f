"""A player for a bracket: how AIS from above and RAISE from below close in on an average as the number of steps grows.

Without scripts, the whole course is shown.
`boltzmann_companion.players.page` says what holds for every player.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from boltzmann_companion.players.page import Slider, card
from boltzmann_companion.tables import format_value
from paperlib.errors import InputError

_MILLISECONDS = 500  # per number of steps while playing
# Size of the drawing in its own units, and where the plotting area begins and ends.
_WIDTH, _HEIGHT = 480, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 460, 30, 250
_LINE_HEIGHT = 18
# A colour and a line style each for AIS and RAISE, which can be told apart without colours as well. The orange is darker than that of the
# figures, since a label has it too.
_LOOKS = (("AIS", "#B34700", ""), ("RAISE", "#0072B2", ' stroke-dasharray="6 4"'))


@dataclass(frozen=True)
class BracketPlayer:
    """The result of `bracket_player`, which shows itself in a notebook and in the book.

    Attributes
    ----------
    steps : list of int
        Annealing steps K.
    above, below : list of float
        The averages from AIS and from RAISE, in nats.
    truth : float
        The exact average.
    description : str
        Description for readers who cannot see the player.
    """

    steps: list[int]
    above: list[float]
    below: list[float]
    truth: float
    description: str

    def __repr__(self) -> str:
        return f"{self.description} (K from {self.steps[0]} to {self.steps[-1]})"

    @property
    def captions(self) -> list[str]:
        """The caption for each number of steps."""
        truth = format_value(self.truth)
        return [
            f"K = {steps:,}: AIS {format_value(high)}, RAISE {format_value(low)}, "
            f"gap {format_value(high - low)} nats; exactly {truth}"
            for steps, high, low in zip(self.steps, self.above, self.below, strict=True)
        ]

    def _repr_html_(self) -> str:
        captions = self.captions
        places = [
            [
                [self._x(steps), self._y(value)]
                for steps, value in zip(self.steps, side, strict=True)
            ]
            for side in (self.above, self.below)
        ]
        return card(
            "brackets",
            self.description,
            drawing=self._drawing(places),
            caption=captions[-1],
            slider=Slider(f"Steps: {self.description}", last=len(self.steps) - 1, word="steps"),
            data={"places": places, "captions": captions},
            milliseconds=_MILLISECONDS,
        )

    def _x(self, steps: int) -> float:
        low, high = math.log(self.steps[0]), math.log(self.steps[-1])
        return round(_LEFT + (_RIGHT - _LEFT) * (math.log(steps) - low) / (high - low), 1)

    def _y(self, value: float) -> float:
        everything = [*self.above, *self.below, self.truth]
        low, high = min(everything), max(everything)
        return round(_BOTTOM - (_BOTTOM - _TOP) * (value - low) / (high - low), 1)

    def _drawing(self, places: Sequence[Sequence[Sequence[float]]]) -> str:
        lines, labels = [], []
        for number, ((name, color, dashes), side) in enumerate(zip(_LOOKS, places, strict=True)):
            points = " ".join(f"{x},{y}" for x, y in side)
            x, y = side[-1]
            lines.append(
                f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="3"{dashes}/>'
                f'<circle cx="{x}" cy="{y}" r="6" fill="{color}"/>'
            )
            labels.append(
                f'<tspan x="{_RIGHT}" dy="{_LINE_HEIGHT * number}" fill="{color}">{name} '
                f"{'from above' if number == 0 else 'from below'}</tspan>"
            )
        truth = self._y(self.truth)
        name = html.escape(f"{self.description}: {self.captions[-1]}")
        return f"""\
<svg class="dark-light" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{name}">
<text x="{_LEFT}" y="16">test log-probability (nats)</text>
<text text-anchor="end" y="16">{"".join(labels)}</text>
{self._axes()}
<line x1="{_LEFT}" x2="{_RIGHT}" y1="{truth}" y2="{truth}" stroke="#1a1a1a"/>
{"".join(lines)}
</svg>"""

    def _axes(self) -> str:
        everything = [*self.above, *self.below]
        values = [self.truth]
        # Without the labels that would collide with that of the truth.
        values += [
            value
            for value in (max(everything), min(everything))
            if abs(self._y(value) - self._y(self.truth)) >= _LINE_HEIGHT
        ]
        parts = [
            f'<text x="{_LEFT - 8}" y="{self._y(value) + 5}" text-anchor="end">'
            f"{format_value(value)}</text>"
            for value in values
        ]
        for steps in self.steps:
            parts.append(
                f'<text x="{self._x(steps)}" y="{_BOTTOM + 22}" text-anchor="middle">{steps:,}</text>'
            )
        parts.append(
            f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 42}" text-anchor="middle">'
            "annealing steps K</text>"
        )
        return "".join(parts)


def bracket_player(
    steps: Sequence[int],
    above: Sequence[float],
    below: Sequence[float],
    truth: float,
    description: str,
) -> BracketPlayer:
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
    return BracketPlayer(
        [int(number) for number in steps],
        [float(value) for value in above],
        [float(value) for value in below],
        float(truth),
        description,
    )
