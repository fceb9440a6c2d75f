"""A player of finite Markov chains for the book: where a chain is likely to be after t steps, for a start of the reader's choice.

The page holds the transition matrices and computes the distributions itself, without a kernel and without asking another host for
anything. Nothing moves until the reader asks for it. Without scripts the first chain is shown after its last step.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template

import torch
from torch import Tensor

from paperlib import storage
from paperlib.mcmc import MarkovChain, total_variation
from paperlib.validation import require_count, require_shape

_MILLISECONDS = 500  # per step while playing
# The drawing's own units: one picture above the other, so that it fits a narrow page.
_WIDTH, _HEIGHT = 480, 366
_LEFT, _RIGHT = 60, 472
_BARS = (14, 194)  # top (probability one) and bottom (zero)
_CURVE = (244, 334)  # distance one and the smallest that is shown
_DECADES = 5

# A white card in both of the book's themes, as in `player`, whose words on keys and themes hold here too.
_PAGE = Template("""\
<div class="chain-player" data-chains="$key" role="group" aria-label="$description">
<style>
.chain-player { background: #fff; border: 1px solid #767676; border-radius: 4px; box-sizing: border-box; color: #1a1a1a;
  color-scheme: light; max-width: 100%; padding: 12px; width: 560px; }
.chain-player svg { background: #fff; display: block; height: auto; width: 100%; }
.chain-player svg text { fill: #1a1a1a; font: 14px sans-serif; }
.chain-player .controls { align-items: center; display: flex; flex-wrap: wrap; gap: 8px 16px; margin-top: 8px; }
.chain-player .controls[hidden] { display: none; }
.chain-player label { align-items: center; display: flex; gap: 8px; max-width: 100%; }
.chain-player button, .chain-player select { background: #fff; border: 1px solid #595959; border-radius: 4px; color: #1a1a1a;
  font: inherit; max-width: 100%; min-width: 0; padding: 4px 8px; }
.chain-player button { cursor: pointer; min-width: 4.5em; }
.chain-player :focus-visible { outline: 3px solid #0072B2; outline-offset: 2px; }
.chain-player input { accent-color: #0072B2; flex: 1; min-width: 8em; }
.chain-player p { color: #1a1a1a; margin: 8px 0 0; }
</style>
<svg class="dark-light" viewBox="0 0 $svg_width $svg_height" role="img" aria-label="$description: $caption">
$axes
<g class="bars">$bars</g>
<g class="targets">$targets</g>
<polyline class="distances" points="$distances" fill="none" stroke="#D55E00" stroke-width="2"/>
<circle class="now" r="5" cx="$now_x" cy="$now_y" fill="#D55E00"/>
</svg>
<div class="controls" hidden>
<label>Chain <select class="chain">$chain_options</select></label>
<label>Start <select class="start">$start_options</select></label>
</div>
<div class="controls" hidden>
<button type="button">Play</button>
<input type="range" min="0" max="$steps" value="$steps" step="1" aria-label="Steps of the chain">
</div>
<p aria-live="polite">$caption</p>
<script>
(() => {
  const {names, matrices, labels, target, steps, left, right, bars, curve, decades} = $data, description = $description_json;
  for (const player of document.querySelectorAll('[data-chains="$key"]:not([data-ready])')) {
    player.dataset.ready = "";
    const find = (selector) => player.querySelector(selector);
    const chain = find(".chain"), start = find(".start"), range = find("input"), button = find("button");
    const svg = find("svg"), caption = find("p"), rectangles = player.querySelectorAll(".bars rect");
    const x = (t) => left + (right - left) * t / steps;
    const y = (d) => curve[0] + (curve[1] - curve[0]) * Math.min(decades, -Math.log10(Math.max(d, 1e-300))) / decades;
    const distance = (p) => p.reduce((sum, value, state) => sum + Math.abs(value - target[state]), 0) / 2;
    let rows = [], timer = null;
    const walk = () => {
      const matrix = matrices[Number(chain.value)];
      rows = [labels.map((_, state) => Number(state === Number(start.value)))];
      for (let t = 0; t < steps; t++) {
        rows.push(labels.map((_, to) => rows[t].reduce((sum, value, from) => sum + value * matrix[from][to], 0)));
      }
    };
    const show = () => {
      const t = Number(range.value), p = rows[t], d = distance(p);
      rectangles.forEach((rectangle, state) => {
        const height = (bars[1] - bars[0]) * p[state];
        rectangle.setAttribute("height", height);
        rectangle.setAttribute("y", bars[1] - height);
      });
      find(".distances").setAttribute("points", rows.map((row, s) => x(s) + "," + y(distance(row))).join(" "));
      find(".now").setAttribute("cx", x(t));
      find(".now").setAttribute("cy", y(d));
      caption.textContent = names[Number(chain.value)] + ", started in " + labels[Number(start.value)] + ", step " + t
        + ": distance from the target " + d.toFixed(4);
      svg.setAttribute("aria-label", description + ": " + caption.textContent);
    };
    const stop = () => {
      clearInterval(timer);
      timer = null;
      button.textContent = "Play";
      caption.setAttribute("aria-live", "polite");
    };
    const step = () => {
      range.value = Number(range.value) + 1;
      if (range.value === range.max) stop();
      show();
    };
    button.addEventListener("click", () => {
      if (timer !== null) return stop();
      if (range.value === range.max) range.value = 0;
      button.textContent = "Pause";
      caption.setAttribute("aria-live", "off");  // a voice could not keep up
      show();
      timer = setInterval(step, $milliseconds);
    });
    range.addEventListener("input", () => { stop(); show(); });
    for (const choice of [chain, start]) choice.addEventListener("change", () => { walk(); show(); });
    for (const controls of player.querySelectorAll(".controls")) controls.hidden = false;
    walk();
  }
})();
</script>
</div>
""")


@dataclass(frozen=True)
class ChainPlayer:
    """What `chain_player` returns: shows itself in a notebook and in the book.

    Attributes
    ----------
    chains : mapping of str to MarkovChain
        What the reader can choose from.
    state_labels : sequence of str
        One short name for each state.
    target : Tensor, shape [S]
        The distribution with which every step is compared.
    num_steps : int
        How far the player goes.
    description : str
        What is to be seen, for those who cannot see it.
    """

    chains: Mapping[str, MarkovChain]
    state_labels: Sequence[str]
    target: Tensor
    num_steps: int
    description: str

    def __repr__(self) -> str:
        return f"{self.description} ({', '.join(self.chains)}; {self.num_steps} steps)"

    def _repr_html_(self) -> str:
        data = {
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
        }
        name, chain = next(iter(self.chains.items()))
        start = torch.eye(chain.num_states, dtype=torch.float64)[0]
        shown = chain.distributions(start, self.num_steps)
        distances = total_variation(shown, self.target).tolist()
        points = [(self._step_x(t), _distance_y(d)) for t, d in enumerate(distances)]
        caption = (
            f"{name}, started in {self.state_labels[0]}, step {self.num_steps}: "
            f"distance from the target {distances[-1]:.4f}"
        )
        return _PAGE.substitute(
            key=storage.sha256(json.dumps([data, self.description]).encode())[:16],
            data=_in_script(data),
            description=html.escape(self.description),
            description_json=_in_script(self.description),
            caption=html.escape(caption),
            svg_width=_WIDTH,
            svg_height=_HEIGHT,
            axes=self._axes(),
            bars="".join(self._bar(x, p) for x, p in enumerate(shown[-1].tolist())),
            targets="".join(self._mark(x, p) for x, p in enumerate(self.target.tolist())),
            distances=" ".join(f"{x:.1f},{y:.1f}" for x, y in points),
            now_x=f"{points[-1][0]:.1f}",
            now_y=f"{points[-1][1]:.1f}",
            chain_options=_options(list(self.chains)),
            start_options=_options(self.state_labels),
            steps=self.num_steps,
            milliseconds=_MILLISECONDS,
        )

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
            f'<rect x="{x:.1f}" width="{width:.1f}" y="{_BARS[1] - height:.1f}" height="{height:.1f}" '
            'fill="#56B4E9"/>'
        )

    def _mark(self, state: int, probability: float) -> str:
        x, width = self._place(state)
        y = _BARS[1] - (_BARS[1] - _BARS[0]) * probability
        return (
            f'<line x1="{x - 3:.1f}" x2="{x + width + 3:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#000" '
            'stroke-width="2"/>'
        )

    def _axes(self) -> str:
        """Lines, ticks and names that never change."""
        parts = []
        for value in (0, 0.5, 1):
            y = _BARS[1] - (_BARS[1] - _BARS[0]) * value
            parts.append(_grid_line(y) + _text(_LEFT - 6, y + 4, f"{value:g}", "end"))
        for state, label in enumerate(self.state_labels):
            x, width = self._place(state)
            parts.append(_text(x + width / 2, _BARS[1] + 16, label, "middle"))
        parts.append(
            _text(_RIGHT, _BARS[0] + 20, "bars: the chain; black lines: the target", "end")
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
    """A player of the distributions of chains on the same states; arguments as in `ChainPlayer`.

    Raises
    ------
    ValueError
        If there is no chain, or the chains, labels and target do not have the same number of states.
    """
    if not chains:
        raise ValueError("chains: expected at least one, got none")
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


def _options(words: Sequence[str]) -> str:
    return "".join(
        f'<option value="{number}">{html.escape(word)}</option>'
        for number, word in enumerate(words)
    )


def _in_script(value: object) -> str:
    """JSON that may stand inside of a script element: no `<` can end it."""
    return json.dumps(value).replace("<", "\\u003c")
