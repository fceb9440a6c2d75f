"""A player for particles on a line: how they move and how their weights grow apart along a path.

The upper part shows the density at the current temperature and, in grey, that of the target. In the
lower part every particle has its own lane, whose height means nothing, and its disc is larger the
larger its weight is among the particles. The reader chooses among runs.
`boltzmann_companion.players.page` says what holds for every player.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from boltzmann_companion.players.page import Player, player, select, svg
from boltzmann_likelihood.evaluation.picture import LOOKS
from paperlib.errors import InputError
from paperlib.validation import ArrayLike, as_float_tensor, as_tensor, require_shape

# Size of the drawing in its own units, and where the density and the lanes begin and end.
_WIDTH = 480
_HEIGHT = 372
_BOX = {"left": 12, "right": 468, "top": 30, "bottom": 160}
_LEFT, _RIGHT, _TOP, _BOTTOM = _BOX.values()
_LANES = (198, 340)
# Radius of a disc with weight zero, and how much the largest weight adds.
_RADIUS = 2.0
_GROWTH = 7.0


@dataclass(frozen=True)
class ParticleRun:
    """Particles of one run, moment by moment.

    Attributes
    ----------
    label : str
        Name by which the reader chooses the run.
    betas : list of float
        The temperature of each moment, [T + 1].
    places : list of lists of int
        Places of the particles, [T + 1][N].
    weights : list of lists of float
        Weights relative to the largest of the moment, [T + 1][N].
    captions : list of str
        Caption of each moment, [T + 1].
    """

    label: str
    betas: list[float]
    places: list[list[int]]
    weights: list[list[float]]
    captions: list[str]


def particle_run(
    label: str,
    betas: Sequence[float],
    places: ArrayLike,
    log_weights: ArrayLike,
    captions: Sequence[str],
) -> ParticleRun:
    """A run for `particle_player`.

    Parameters
    ----------
    label : str
        Name by which the reader chooses the run.
    betas : sequence of T + 1 numbers
        The temperature of each moment.
    places : array or Tensor, shape [T + 1, N]
        Places of the particles, whole numbers.
    log_weights : array or Tensor, shape [T + 1, N]
        Log-weights of the particles, in nats, up to a constant.
    captions : sequence of T + 1 str
        Caption of each moment, in plain text.

    Raises
    ------
    InputError
        If there are fewer than two moments, or the shapes do not match.
    """
    moments = len(betas)
    if moments < 2 or len(captions) != moments:
        raise InputError(
            "captions: expected one for each of at least two betas, "
            f"got {len(captions)} for {moments}"
        )
    table = as_tensor("places", places).cpu()
    require_shape("places", table, [moments, None])
    logs = as_float_tensor("log_weights", log_weights).double().cpu()
    require_shape("log_weights", logs, list(table.shape))
    weights = torch.exp(logs - logs.max(1, keepdim=True).values)
    return ParticleRun(
        label,
        [float(beta) for beta in betas],
        table.long().tolist(),
        [[round(weight, 4) for weight in row] for row in weights.tolist()],
        list(captions),
    )


def particle_player(
    runs: Sequence[ParticleRun],
    start: ArrayLike,
    target: ArrayLike,
    description: str,
    estimator: str,
    opening: int | None = None,
) -> Player:
    """A player for particles between two densities on a line.

    Parameters
    ----------
    runs : sequence of ParticleRun
        At least one run from `particle_run`; all have as many moments and particles as the first.
    start, target : array or Tensor, shape [G]
        ln f of every place at beta = 0 and at beta = 1, in nats; between them, ln f_beta is linear
        in beta.
    description : str
        What the player shows, in plain text.
    estimator : str
        Whose particles they are, and so their colour: AIS or RAISE.
    opening : int, optional
        The moment of the first run at which the player opens, by default the last.

    Raises
    ------
    InputError
        If there is no run, runs differ in size, or a place is not on the line.
    """
    log_start = as_float_tensor("start", start).double().cpu()
    log_target = as_float_tensor("target", target).double().cpu()
    require_shape("target", log_target, list(log_start.shape))
    sizes = {(len(run.betas), len(run.places[0])) for run in runs}
    if len(sizes) != 1:
        raise InputError(f"runs: expected at least one, all of one size, got sizes {sorted(sizes)}")
    last = len(log_start) - 1
    for run in runs:
        if not all(0 <= place <= last for row in run.places for place in row):
            raise InputError(f"runs: expected places from 0 to {last}, got another one")
    start_values = [round(value, 4) for value in log_start.tolist()]
    target_values = [round(value, 4) for value in log_target.tolist()]
    first = runs[0]
    labels = [run.label for run in runs]
    moments = len(first.betas)
    moment = moments - 1 if opening is None else opening
    color = LOOKS[estimator]["color"]
    return player(
        "particles",
        description,
        f"{', '.join(labels)}; {len(first.places[0])} particles, {moments} moments",
        _drawing(first, moment, start_values, target_values, description, color),
        first.captions[moment],
        f"Moment: {description}",
        moments - 1,
        {
            "runs": [vars(run) for run in runs],
            "start": start_values,
            "target": target_values,
            **_BOX,
            "radius": _RADIUS,
            "growth": _GROWTH,
        },
        opening=moment,
        word="moment",
        milliseconds=300,
        choices=select("run", labels),
    )


def _drawing(
    run: ParticleRun,
    moment: int,
    start: Sequence[float],
    target: Sequence[float],
    description: str,
    color: str,
) -> str:
    """A moment of a run."""

    def x_of(place: int) -> float:
        return _LEFT + (_RIGHT - _LEFT) * place / (len(start) - 1)

    def curve(beta: float) -> str:
        """Points of the density at beta, whose largest value is at the top."""
        log_f = [low + beta * (high - low) for low, high in zip(start, target, strict=True)]
        largest = max(log_f)
        return " ".join(
            f"{x_of(place):.1f},{_BOTTOM - (_BOTTOM - _TOP) * math.exp(value - largest):.1f}"
            for place, value in enumerate(log_f)
        )

    places = run.places[moment]
    weights = run.weights[moment]
    height = (_LANES[1] - _LANES[0]) / len(places)
    circles = "".join(
        f'<circle cx="{x_of(place):.1f}" cy="{_LANES[0] + height * (lane + 0.5):.1f}" '
        f'r="{_RADIUS + _GROWTH * math.sqrt(weight):.2f}" fill="{color}" fill-opacity="0.75"/>'
        for lane, (place, weight) in enumerate(zip(places, weights, strict=True))
    )
    return svg(
        _WIDTH,
        _HEIGHT,
        f"{description}: {run.captions[moment]}",
        f'<text x="{_LEFT}" y="16">density now (solid) and of the target (dashed)</text>'
        f'<text x="{_LEFT}" y="{_LANES[0] - 12}">'
        "particles: size is weight, height means nothing</text>"
        f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">'
        "place on the line</text>",
        f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{_BOTTOM}" y2="{_BOTTOM}" stroke="#767676"/>',
        f'<path d="M{curve(1.0)}" fill="none" stroke="#999" stroke-dasharray="5 4" '
        'stroke-width="2"/>',
        f'<polyline points="{curve(run.betas[moment])}" fill="none" stroke="#1a1a1a" '
        'stroke-width="3"/>',
        circles,
    )
