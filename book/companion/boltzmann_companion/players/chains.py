"""A player for finite Markov chains: where a chain may be after t steps from a chosen start.

The page holds the transition matrices and computes the distributions itself, without a kernel.
Without scripts, the first chain is shown after its last step.
`boltzmann_companion.players.page` says what holds for every player.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from boltzmann_companion.players.page import Player, player, select, svg
from paperlib.errors import InputError
from paperlib.mcmc import MarkovChain, total_variation
from paperlib.validation import require_count, require_shape

# Sizes in the drawing's own units, with one picture above the other so that it fits a narrow page.
_WIDTH = 480
_HEIGHT = 366
_LEFT = 60
_RIGHT = 472
_BARS = (14, 194)  # top (probability one) and bottom (zero)
_CURVE = (244, 334)  # distance one and the smallest distance that is shown
_DECADES = 5


def chain_player(
    chains: Mapping[str, MarkovChain],
    state_labels: Sequence[str],
    target: Tensor,
    num_steps: int,
    description: str,
) -> Player:
    """A player for the distributions of chains on the same states.

    Parameters
    ----------
    chains : mapping of str to MarkovChain
        The chains that the reader can choose from.
    state_labels : sequence of str
        One short name for each state.
    target : Tensor, shape [S]
        The distribution that every step is compared with.
    num_steps : int
        Number of steps that the player shows.
    description : str
        What the player shows, in plain text.

    Raises
    ------
    InputError
        If there is no chain, or the chains, labels and target differ in their numbers of states.
    """
    if not chains:
        raise InputError("chains: expected at least one, got none")
    for chain in chains.values():
        require_shape("chains", chain.transition, [len(state_labels), len(state_labels)])
    require_shape("target", target, [len(state_labels)])
    steps = require_count("num_steps", num_steps)
    goal = target.double()
    name, chain = next(iter(chains.items()))
    first_state = torch.eye(chain.num_states, dtype=torch.float64)[0]
    distributions = chain.distributions(first_state, steps)
    distances = total_variation(distributions, goal).tolist()
    caption = (
        f"{name}, started in {state_labels[0]}, step {steps}: "
        f"distance from the target {distances[-1]:.4f}"
    )
    words = f"{description}: {caption}"
    return player(
        "chains",
        description,
        f"{', '.join(chains)}; {steps} steps",
        _drawing(state_labels, distributions[-1].tolist(), goal.tolist(), distances, words),
        caption,
        "Steps of the chain",
        steps,
        {
            "names": list(chains),
            "matrices": [_rounded(chain.transition) for chain in chains.values()],
            "labels": list(state_labels),
            "target": _rounded(goal),
            "steps": steps,
            "left": _LEFT,
            "right": _RIGHT,
            "bars": _BARS,
            "curve": _CURVE,
            "decades": _DECADES,
        },
        choices=select("Chain", list(chains)) + select("Start", state_labels),
    )


def _rounded(probs: Tensor) -> list[Any]:
    """Probabilities without their last digits, in which processors differ."""
    return probs.double().round(decimals=12).tolist()


def _drawing(
    labels: Sequence[str],
    probs: Sequence[float],
    target: Sequence[float],
    distances: Sequence[float],
    words: str,
) -> str:
    """The last step: a bar for each state with the target across it, and the distances so far."""
    slot = (_RIGHT - _LEFT) / len(labels)
    num_steps = len(distances) - 1
    lefts = [_LEFT + slot * (state + 0.15) for state in range(len(labels))]
    width = 0.7 * slot
    rise = _BARS[1] - _BARS[0]
    points = [
        (_LEFT + (_RIGHT - _LEFT) * t / num_steps, _distance_y(distance))
        for t, distance in enumerate(distances)
    ]
    now_x, now_y = points[-1]
    axes = [_level(_BARS[1] - rise * value, f"{value:g}") for value in (0, 0.5, 1)]
    axes += [
        _text(x + width / 2, _BARS[1] + 16, label, "middle")
        for x, label in zip(lefts, labels, strict=True)
    ]
    legend = "bars: the chain; lines on them: the target"
    axes += [
        _text(_RIGHT, _BARS[0] + 20, legend, "end"),
        _text(_LEFT, _CURVE[0] - 12, "distance from the target", "start"),
    ]
    axes += [
        _level(_distance_y(10.0**-decade), f"{10.0**-decade:g}")
        for decade in range(0, _DECADES + 1, 2)
    ]
    axes += [_text(points[t][0], _CURVE[1] + 22, str(t), "middle") for t in (0, num_steps)]
    axes.append(_text((_LEFT + _RIGHT) / 2, _CURVE[1] + 22, "steps", "middle"))
    bars = "".join(
        f'<rect x="{x:.1f}" width="{width:.1f}" y="{_BARS[1] - rise * probability:.1f}" '
        f'height="{rise * probability:.1f}" fill="#56B4E9"/>'
        for x, probability in zip(lefts, probs, strict=True)
    )
    marks = "".join(
        f'<line x1="{x - 3:.1f}" x2="{x + width + 3:.1f}" y1="{_BARS[1] - rise * probability:.1f}" '
        f'y2="{_BARS[1] - rise * probability:.1f}" stroke="#000" stroke-width="2"/>'
        for x, probability in zip(lefts, target, strict=True)
    )
    curve = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return svg(
        _WIDTH,
        _HEIGHT,
        words,
        "".join(axes),
        f'<g class="bars">{bars}</g>',
        f'<g class="targets">{marks}</g>',
        f'<polyline class="distances" points="{curve}" fill="none" stroke="#D55E00" '
        'stroke-width="2"/>',
        f'<circle class="now" r="5" cx="{now_x:.1f}" cy="{now_y:.1f}" fill="#D55E00"/>',
    )


def _distance_y(distance: float) -> float:
    decades = min(_DECADES, -math.log10(max(distance, 1e-300)))
    return _CURVE[0] + (_CURVE[1] - _CURVE[0]) * decades / _DECADES


def _level(y: float, label: str) -> str:
    """A grey line across the picture, with its value on the left."""
    line = f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ccc"/>'
    return line + _text(_LEFT - 6, y + 4, label, "end")


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'
