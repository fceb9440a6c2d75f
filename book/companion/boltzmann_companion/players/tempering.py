"""A player for parallel tempering: at which temperature each chain of a replica is after every step.

The chain that the reader chooses is drawn in colour, with its round trips so far; the others are
grey. Without scripts, the first chain is shown after the last step.
`boltzmann_companion.players.page` says what holds for every player.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from boltzmann_companion.players.page import Slider, card, select
from paperlib.errors import InputError
from paperlib.validation import ArrayLike, as_tensor, require_shape

_MILLISECONDS = 500  # per step while playing
# Size of the drawing in its own units, and where the plotting area begins and ends.
_WIDTH, _HEIGHT = 480, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 468, 30, 254


@dataclass(frozen=True)
class TemperingPlayer:
    """The result of `tempering_player`, which shows itself in a notebook and in the book.

    Attributes
    ----------
    visited : list of lists of int
        The number of each chain's temperature after each step, [T + 1][N].
    betas : list of float
        The inverse temperatures, [N].
    description : str
        Description for readers who cannot see the player.
    """

    visited: list[list[int]]
    betas: list[float]
    description: str

    def __repr__(self) -> str:
        chains, steps = len(self.betas), len(self.visited) - 1
        return f"{self.description} ({chains} chains, {steps} steps)"

    @property
    def trips(self) -> list[list[int]]:
        """Round trips of each chain so far, from the first temperature to the last and back, [T + 1][N]."""
        last = len(self.betas) - 1
        trips, rows, upward, returning = [0] * len(self.betas), [], set(), set()
        for row in self.visited:
            for chain, number in enumerate(row):
                if number == 0:
                    trips[chain] += chain in returning
                    returning.discard(chain)
                    upward.add(chain)
                elif number == last and chain in upward:
                    upward.discard(chain)
                    returning.add(chain)
            rows.append(list(trips))
        return rows

    def _repr_html_(self) -> str:
        last, trips = len(self.visited) - 1, self.trips
        caption = (
            f"step {last}, chain 1: beta = {self.betas[self.visited[-1][0]]:.2f}, "
            f"round trips so far: {trips[-1][0]}"
        )
        return card(
            "ladders",
            self.description,
            drawing=self._drawing(caption),
            caption=caption,
            slider=Slider(f"Step: {self.description}", last=last, word="step"),
            data={
                "rungs": self.visited,
                "betas": self.betas,
                "trips": trips,
                "left": _LEFT,
                "right": _RIGHT,
                "top": _TOP,
                "bottom": _BOTTOM,
            },
            milliseconds=_MILLISECONDS,
            choices=select("chain", [str(chain + 1) for chain in range(len(self.betas))]),
        )

    def _place(self, step: int, number: int) -> tuple[float, float]:
        x = _LEFT + (_RIGHT - _LEFT) * step / (len(self.visited) - 1)
        return x, _BOTTOM - (_BOTTOM - _TOP) * number / (len(self.betas) - 1)

    def _points(self, chain: int) -> str:
        places = (self._place(step, row[chain]) for step, row in enumerate(self.visited))
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)

    def _drawing(self, caption: str) -> str:
        last = len(self.visited) - 1
        paths = "".join(
            f'<path d="M{self._points(chain)}" fill="none" stroke="#bbb"/>'
            for chain in range(len(self.betas))
        )
        places = [self._place(last, number) for number in self.visited[-1]]
        circles = "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4 if chain else 6}" '
            f'fill="{"#595959" if chain else "#D55E00"}"/>'
            for chain, (x, y) in enumerate(places)
        )
        return f"""\
<svg class="dark-light" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" \
aria-label="{html.escape(f"{self.description}: {caption}")}">
<text x="{_LEFT}" y="16">inverse temperature of each chain</text>
{self._axes()}
{paths}
<rect x="{places[0][0] - 1:.1f}" y="{_TOP}" width="2" height="{_BOTTOM - _TOP}" fill="#56B4E9"/>
<polyline points="{self._points(0)}" fill="none" stroke="#D55E00" stroke-width="3"/>
{circles}
</svg>"""

    def _axes(self) -> str:
        parts = []
        for number, beta in enumerate(self.betas):
            _, y = self._place(0, number)
            parts.append(
                f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#eee"/>'
            )
            parts.append(
                f'<text x="{_LEFT - 8}" y="{y + 5:.1f}" text-anchor="end">{beta:.2f}</text>'
            )
        for step, anchor in ((0, "middle"), (len(self.visited) - 1, "end")):
            x, _ = self._place(step, 0)
            parts.append(
                f'<text x="{x:.1f}" y="{_BOTTOM + 22}" text-anchor="{anchor}">{step}</text>'
            )
        parts.append(
            f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 38}" text-anchor="middle">steps</text>'
        )
        return "".join(parts)


def tempering_player(
    visited: ArrayLike, betas: Sequence[float], description: str
) -> TemperingPlayer:
    """A player for the chains of one replica.

    Parameters
    ----------
    visited : array or Tensor, shape [T + 1, N]
        The number of each chain's temperature before the first step and after each of at least one step. Each row has every whole number
        from 0 to N - 1.
    betas : sequence of N numbers
        The inverse temperatures, at least two.
    description : str
        What the player shows, in plain text.

    Raises
    ------
    InputError
        If there is no step, there are fewer than two temperatures, or a row does not give each chain its own temperature.
    """
    table = as_tensor("visited", visited).cpu()
    require_shape("visited", table, [None, len(betas)])
    if len(table) < 2 or len(betas) < 2:
        raise InputError(
            f"visited: expected at least one step at two temperatures, got {len(table) - 1} at {len(betas)}"
        )
    if not bool((table.sort(1).values == torch.arange(len(betas))).all()):
        raise InputError("visited: expected each temperature once in every row, got another row")
    return TemperingPlayer(table.long().tolist(), [float(beta) for beta in betas], description)
