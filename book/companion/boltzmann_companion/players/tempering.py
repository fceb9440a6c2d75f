"""A player for parallel tempering: the temperature of each chain of a replica after every step.

The chain that the reader chooses is drawn in colour, with its round trips so far; the others are
grey. Without scripts, the first chain is shown after the last step.
`boltzmann_companion.players.page` says what holds for every player.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from boltzmann_companion.players.page import Player, player, select, svg
from boltzmann_likelihood.evaluation.picture import LOOKS
from paperlib.errors import InputError
from paperlib.validation import ArrayLike, as_tensor, require_shape

# Size of the drawing in its own units, and where the plotting area begins and ends.
_WIDTH = 480
_HEIGHT = 300
_BOX = {"left": 60, "right": 468, "top": 30, "bottom": 254}
_LEFT, _RIGHT, _TOP, _BOTTOM = _BOX.values()


def tempering_player(visited: ArrayLike, betas: Sequence[float], description: str) -> Player:
    """A player for the chains of one replica.

    Parameters
    ----------
    visited : array or Tensor, shape [T + 1, N]
        The number of each chain's temperature before the first step and after each of at least one
        step. Each row has every whole number from 0 to N - 1.
    betas : sequence of N numbers
        The inverse temperatures, at least two.
    description : str
        What the player shows, in plain text.

    Raises
    ------
    InputError
        If there is no step, there are fewer than two temperatures, or a row does not give each
        chain its own temperature.
    """
    table = as_tensor("visited", visited).cpu()
    require_shape("visited", table, [None, len(betas)])
    if len(table) < 2 or len(betas) < 2:
        raise InputError(
            "visited: expected at least one step at two temperatures, "
            f"got {len(table) - 1} at {len(betas)}"
        )
    if not bool((table.sort(1).values == torch.arange(len(betas))).all()):
        raise InputError("visited: expected each temperature once in every row, got another row")
    rows = table.long().tolist()
    temperatures = [float(beta) for beta in betas]
    last = len(rows) - 1
    trips = _round_trips(rows)
    caption = (
        f"step {last}, chain 1: beta = {temperatures[rows[-1][0]]:.2f}, "
        f"round trips so far: {trips[-1][0]}"
    )
    return player(
        "ladders",
        description,
        f"{len(betas)} chains, {last} steps",
        _drawing(rows, temperatures, f"{description}: {caption}"),
        caption,
        f"Step: {description}",
        last,
        {"rungs": rows, "betas": temperatures, "trips": trips, **_BOX},
        word="step",
        choices=select("chain", [str(chain + 1) for chain in range(len(betas))]),
    )


def _round_trips(visited: Sequence[Sequence[int]]) -> list[list[int]]:
    """Round trips of each chain so far, [T + 1][N]: to the last temperature and back again."""
    last = len(visited[0]) - 1
    trips = [0] * len(visited[0])
    rows = []
    upward = set()
    returning = set()
    for row in visited:
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


def _drawing(visited: Sequence[Sequence[int]], betas: Sequence[float], words: str) -> str:
    """The way of the first chain among the others, up to the last step."""
    last = len(visited) - 1

    def place(step: int, number: int) -> tuple[float, float]:
        x = _LEFT + (_RIGHT - _LEFT) * step / last
        return x, _BOTTOM - (_BOTTOM - _TOP) * number / (len(betas) - 1)

    def points(chain: int) -> str:
        places = (place(step, row[chain]) for step, row in enumerate(visited))
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)

    axes = []
    for number, beta in enumerate(betas):
        _, y = place(0, number)
        axes.append(
            f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#eee"/>'
            f'<text x="{_LEFT - 8}" y="{y + 5:.1f}" text-anchor="end">{beta:.2f}</text>'
        )
    for step, anchor in ((0, "middle"), (last, "end")):
        x, _ = place(step, 0)
        axes.append(f'<text x="{x:.1f}" y="{_BOTTOM + 22}" text-anchor="{anchor}">{step}</text>')
    axes.append(
        f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 38}" text-anchor="middle">steps</text>'
    )
    ends = [place(last, number) for number in visited[-1]]
    color = LOOKS["parallel tempering"]["color"]
    return svg(
        _WIDTH,
        _HEIGHT,
        words,
        f'<text x="{_LEFT}" y="16">inverse temperature of each chain</text>',
        "".join(axes),
        "".join(
            f'<path d="M{points(chain)}" fill="none" stroke="#bbb"/>' for chain in range(len(betas))
        ),
        f'<rect x="{ends[0][0] - 1:.1f}" y="{_TOP}" width="2" height="{_BOTTOM - _TOP}" '
        'fill="#56B4E9"/>',
        f'<polyline points="{points(0)}" fill="none" stroke="{color}" stroke-width="3"/>',
        "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4 if chain else 6}" '
            f'fill="{"#595959" if chain else color}"/>'
            for chain, (x, y) in enumerate(ends)
        ),
    )
