"""A player for finite Markov chains: where a chain may be after t steps from a chosen start.

The page holds the transition matrices and computes the distributions itself, without a kernel.
Without scripts, the first chain is shown after its last step.
`boltzmann_companion.players.page` says what holds for every player.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from boltzmann_companion.players.page import Slider, card, select
from paperlib.errors import InputError
from paperlib.mcmc import MarkovChain, total_variation
from paperlib.validation import require_count, require_shape

_MILLISECONDS = 500  # per step while playing
# Sizes in the drawing's own units, with one picture above the other so that it fits a narrow page.
_WIDTH, _HEIGHT = 480, 366
_LEFT, _RIGHT = 60, 472
_BARS = (14, 194)  # top (probability one) and bottom (zero)
_CURVE = (244, 334)  # distance one and the smallest distance that is shown
_DECADES = 5


@dataclass(frozen=True)
class ChainPlayer:
    """The result of `chain_player`, which shows itself in a notebook and in the book.

    Attributes
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
        Description for readers who cannot see the player.
    """

    chains: Mapping[str, MarkovChain]
    state_labels: Sequence[str]
    target: Tensor
    num_steps: int
    description: str

    def __repr__(self) -> str:
        return f"{self.description} ({', '.join(self.chains)}; {self.num_steps} steps)"

    def _repr_html_(self) -> str:
        name, chain = next(iter(self.chains.items()))
        start = torch.eye(chain.num_states, dtype=torch.float64)[0]
        shown = chain.distributions(start, self.num_steps)
        distances = total_variation(shown, self.target).tolist()
        caption = (
            f"{name}, started in {self.state_labels[0]}, step {self.num_steps}: "
            f"distance from the target {distances[-1]:.4f}"
        )
        return card(
            "chains",
            self.description,
            drawing=self._drawing(caption, shown[-1].tolist(), distances),
            caption=caption,
            slider=Slider("Steps of the chain", last=self.num_steps),
            data={
                "names": list(self.chains),
                "matrices": [chain.transition.tolist() for chain in self.chains.values()],
                "labels": list(self.state_labels),
                "target": self.target.tolist(),
                "steps": self.num_steps,
                "left": _LEFT,
                "right": _RIGHT,
                "bars": _BARS,
                "curve": _CURVE,
                "decades": _DECADES,
            },
            milliseconds=_MILLISECONDS,
            choices=select("Chain", list(self.chains)) + select("Start", self.state_labels),
        )

    def _drawing(self, caption: str, shown: list[float], distances: list[float]) -> str:
        points = [(self._step_x(t), _distance_y(d)) for t, d in enumerate(distances)]
        curve = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        now_x, now_y = points[-1]
        bars = "".join(self._bar(state, p) for state, p in enumerate(shown))
        marks = "".join(self._mark(state, p) for state, p in enumerate(self.target.tolist()))
        return f"""\
<svg class="dark-light" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" \
aria-label="{html.escape(f"{self.description}: {caption}")}">
{self._axes()}
<g class="bars">{bars}</g>
<g class="targets">{marks}</g>
<polyline class="distances" points="{curve}" fill="none" stroke="#D55E00" stroke-width="2"/>
<circle class="now" r="5" cx="{now_x:.1f}" cy="{now_y:.1f}" fill="#D55E00"/>
</svg>"""

    def _step_x(self, t: int) -> float:
        return _LEFT + (_RIGHT - _LEFT) * t / self.num_steps

    def _place(self, state: int) -> tuple[float, float]:
        """Left end and width of a state's bar."""
        slot = (_RIGHT - _LEFT) / len(self.state_labels)
        return _LEFT + slot * (state + 0.15), 0.7 * slot

    def _bar(self, state: int, probability: float) -> str:
        x, width = self._place(state)
        height = (_BARS[1] - _BARS[0]) * probability
        return (
            f'<rect x="{x:.1f}" width="{width:.1f}" y="{_BARS[1] - height:.1f}" '
            f'height="{height:.1f}" fill="#56B4E9"/>'
        )

    def _mark(self, state: int, probability: float) -> str:
        x, width = self._place(state)
        y = _BARS[1] - (_BARS[1] - _BARS[0]) * probability
        return (
            f'<line x1="{x - 3:.1f}" x2="{x + width + 3:.1f}" y1="{y:.1f}" y2="{y:.1f}" '
            'stroke="#000" stroke-width="2"/>'
        )

    def _axes(self) -> str:
        """Lines, ticks and labels that never change."""
        parts = []
        for value in (0, 0.5, 1):
            y = _BARS[1] - (_BARS[1] - _BARS[0]) * value
            parts.append(_grid_line(y) + _text(_LEFT - 6, y + 4, f"{value:g}", "end"))
        for state, label in enumerate(self.state_labels):
            x, width = self._place(state)
            parts.append(_text(x + width / 2, _BARS[1] + 16, label, "middle"))
        parts.append(
            _text(_RIGHT, _BARS[0] + 20, "bars: the chain; lines on them: the target", "end")
        )
        parts.append(_text(_LEFT, _CURVE[0] - 12, "distance from the target", "start"))
        for decade in range(0, _DECADES + 1, 2):
            y = _distance_y(10.0**-decade)
            label = "1" if decade == 0 else f"{10.0**-decade:g}"
            parts.append(_grid_line(y) + _text(_LEFT - 6, y + 4, label, "end"))
        for t in (0, self.num_steps):
            parts.append(_text(self._step_x(t), _CURVE[1] + 22, str(t), "middle"))
        parts.append(_text((_LEFT + _RIGHT) / 2, _CURVE[1] + 22, "steps", "middle"))
        return "".join(parts)


def chain_player(
    chains: Mapping[str, MarkovChain],
    state_labels: Sequence[str],
    target: Tensor,
    num_steps: int,
    description: str,
) -> ChainPlayer:
    """A player for the distributions of chains on the same states; arguments as in `ChainPlayer`.

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
    return ChainPlayer(dict(chains), list(state_labels), target.double(), steps, description)


def _distance_y(distance: float) -> float:
    decades = min(_DECADES, -math.log10(max(distance, 1e-300)))
    return _CURVE[0] + (_CURVE[1] - _CURVE[0]) * decades / _DECADES


def _grid_line(y: float) -> str:
    return f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ccc"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'
