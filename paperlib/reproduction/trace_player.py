"""A player of mean-field traces for the book: choose a step size, step through the updates, see the means and the bound.

Everything that it shows was computed beforehand; the page only looks it up, so that it cannot disagree with the library. Like
`paperlib.reproduction.player` it asks no other host for anything, moves only when the reader asks, and shows the last state of
its first run where scripts do not run.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from string import Template

from torch import Tensor

from paperlib import storage
from paperlib.validation import require_finite, require_shape

# Both drawings, in units that are about a pixel of the screen: the plotting area begins at (_LEFT, _TOP).
_LEFT, _TOP, _WIDTH, _HEIGHT = 44, 24, 250, 150
_MILLISECONDS = 500  # per update while playing
# JSON with four digits after the point is enough to draw, and small.
_DIGITS = 4

_PAGE = Template("""\
<div class="trace-player" data-trace="$key" role="group" aria-label="$description">
<style>
.trace-player { background: #fff; border: 1px solid #767676; border-radius: 4px; box-sizing: border-box;
  color: #1a1a1a; color-scheme: light; max-width: 100%; padding: 12px; width: 660px; }
.trace-player .drawings { display: flex; flex-wrap: wrap; gap: 8px; justify-content: center; }
.trace-player svg { display: block; flex: 0 1 310px; height: auto; max-width: 100%; min-width: 250px; }
.trace-player text { fill: #1a1a1a; font: 12px sans-serif; }
.trace-player .controls { align-items: center; display: flex; flex-wrap: wrap; gap: 12px; margin-top: 12px; }
.trace-player .controls[hidden] { display: none; }
.trace-player label { align-items: center; display: flex; flex: 1 1 180px; gap: 8px; margin: 0; min-width: 0; }
.trace-player button { background: #fff; border: 1px solid #595959; border-radius: 4px; color: #1a1a1a; cursor: pointer;
  font: inherit; min-width: 4.5em; padding: 4px 8px; }
.trace-player button:focus-visible, .trace-player input:focus-visible { outline: 3px solid #0072B2; outline-offset: 2px; }
.trace-player input { accent-color: #0072B2; flex: 1; min-width: 0; }
.trace-player p { color: #1a1a1a; margin: 8px 0 0; }
</style>
<div class="drawings">
<svg viewBox="0 0 310 210" role="img" aria-label="Bars: means of the hidden units. Black lines: exact posterior means.">
<text x="$left" y="14">means (bars), exact (lines)</text>
<g stroke="#999" stroke-width="1"><path d="M$left $top V$bottom H$right" fill="none"/></g>
<text x="36" y="28" text-anchor="end">1</text><text x="36" y="178" text-anchor="end">0</text>
$bars
<text x="169" y="202" text-anchor="middle">hidden unit</text>
</svg>
<svg viewBox="0 0 310 210" role="img" aria-label="Line: the lower bound at every update so far. Dashed: the bound of coordinate ascent.">
<text x="$left" y="14">lower bound in nats</text>
<g stroke="#999" stroke-width="1"><path d="M$left $top V$bottom H$right" fill="none"/></g>
<text x="40" y="28" text-anchor="end">$high</text><text x="40" y="178" text-anchor="end">$low</text>
<text x="$left" y="188" text-anchor="middle">0</text><text x="$right" y="188" text-anchor="middle">$last</text>
<text x="169" y="202" text-anchor="middle">update</text>
<line x1="$left" x2="$right" y1="$goal" y2="$goal" stroke="#000" stroke-dasharray="4 3"/>
<polyline points="$points" fill="none" stroke="#0072B2" stroke-width="2"/>
<circle cx="$dot_x" cy="$dot_y" r="4" fill="#D55E00"/>
</svg>
</div>
<div class="controls" hidden>
<button type="button">Play</button>
<label>step <input type="range" data-role="run" min="0" max="$last_run" value="0" step="1" aria-label="Step size: $description"></label>
<label>update <input type="range" data-role="time" min="0" max="$last" value="$last" step="1" aria-label="Update: $description"></label>
</div>
<p aria-live="polite">$caption</p>
<script>
(() => {
  const runs = $runs, low = $low_exact, high = $high_exact;
  const [left, top, width, height] = [$left, $top, $width, $height];
  for (const player of document.querySelectorAll('[data-trace="$key"]:not([data-ready])')) {
    player.dataset.ready = "";
    const find = selector => player.querySelector(selector);
    const bars = player.querySelectorAll("rect"), line = find("polyline"), dot = find("circle");
    const run = find('[data-role="run"]'), time = find('[data-role="time"]');
    const button = find("button"), caption = find("p");
    let timer = null;
    const x = t => left + width * t / Number(time.max);
    const y = b => top + height * (high - Math.min(Math.max(b, low), high)) / (high - low);
    const show = () => {
      const {label, means, bounds} = runs[Number(run.value)], t = Number(time.value);
      bars.forEach((bar, i) => {
        bar.setAttribute("y", top + height * (1 - means[t][i]));
        bar.setAttribute("height", height * means[t][i]);
      });
      line.setAttribute("points", bounds.slice(0, t + 1).map((b, s) => x(s) + "," + y(b)).join(" "));
      dot.setAttribute("cx", x(t));
      dot.setAttribute("cy", y(bounds[t]));
      const fell = t > 0 && bounds[t] < bounds[t - 1] - 1e-3 ? ": it fell" : "";
      caption.textContent = label + ", update " + t + ": bound " + bounds[t].toFixed(2).replace("-", "\\u2212") + " nats" + fell;
    };
    const stop = () => {
      clearInterval(timer);
      timer = null;
      button.textContent = "Play";
      caption.setAttribute("aria-live", "polite");
    };
    const advance = () => {
      time.value = Number(time.value) + 1;
      if (time.value === time.max) stop();
      show();
    };
    button.addEventListener("click", () => {
      if (timer !== null) return stop();
      if (time.value === time.max) time.value = 0;
      button.textContent = "Pause";
      caption.setAttribute("aria-live", "off");  // a voice could not keep up
      show();
      timer = setInterval(advance, $milliseconds);
    });
    time.addEventListener("input", () => { stop(); show(); });
    run.addEventListener("input", show);
    find(".controls").hidden = false;
  }
})();
</script>
</div>
""")


@dataclass(frozen=True)
class TracePlayer:
    """What `trace_player` returns: shows itself in a notebook and in the book.

    Attributes
    ----------
    labels : tuple of str
        One for each run.
    means : tuple of lists
        The means of each run, [T + 1][M].
    bounds : tuple of lists
        The bounds of each run, [T + 1].
    exact : list of float
        Exact posterior means, [M].
    goal : float
        The bound of the dashed line.
    limits : tuple of float
        Lowest and highest bound that are drawn; lower ones lie on the lower edge.
    description : str
        What is to be seen, for those who cannot see it.
    """

    labels: tuple[str, ...]
    means: tuple[list[list[float]], ...]
    bounds: tuple[list[float], ...]
    exact: list[float]
    goal: float
    limits: tuple[float, float]
    description: str

    def __repr__(self) -> str:
        return f"{self.description} ({len(self.labels)} runs, {len(self.bounds[0]) - 1} updates)"

    def _repr_html_(self) -> str:
        runs = [
            {"label": label, "means": means, "bounds": bounds}
            for label, means, bounds in zip(self.labels, self.means, self.bounds, strict=True)
        ]
        low, high = self.limits
        last = len(self.bounds[0]) - 1

        def x(update: int) -> float:
            return _LEFT + _WIDTH * update / last

        def y(bound: float) -> float:
            return _TOP + _HEIGHT * (high - min(max(bound, low), high)) / (high - low)

        points = [(x(update), y(bound)) for update, bound in enumerate(self.bounds[0])]
        contents = [runs, self.exact, self.goal, self.limits, self.description]
        return _PAGE.substitute(
            key=storage.sha256(json.dumps(contents).encode())[:16],
            description=html.escape(self.description),
            runs=json.dumps(runs).replace("<", "\\u003c"),
            bars="\n".join(self._bars()),
            points=" ".join(f"{a:.1f},{b:.1f}" for a, b in points),
            dot_x=f"{points[-1][0]:.1f}",
            dot_y=f"{points[-1][1]:.1f}",
            goal=f"{y(self.goal):.1f}",
            caption=html.escape(
                f"{self.labels[0]}, update {last}: bound {self.bounds[0][-1]:.2f} nats".replace(
                    "-", "−"
                )
            ),
            low=f"{low:g}".replace("-", "−"),
            high=f"{high:g}".replace("-", "−"),
            low_exact=low,
            high_exact=high,
            last=last,
            last_run=len(runs) - 1,
            left=_LEFT,
            top=_TOP,
            right=_LEFT + _WIDTH,
            bottom=_TOP + _HEIGHT,
            width=_WIDTH,
            height=_HEIGHT,
            milliseconds=_MILLISECONDS,
        )

    def _bars(self) -> list[str]:
        """The bars of the first run's last means, with a line at the exact mean across each."""
        drawn = []
        pitch = _WIDTH / len(self.exact)
        for unit, (mean, exact) in enumerate(zip(self.means[0][-1], self.exact, strict=True)):
            begin = _LEFT + pitch * (unit + 0.15)
            level = _TOP + _HEIGHT * (1 - exact)
            drawn.append(
                f'<rect x="{begin:.1f}" width="{0.7 * pitch:.1f}" y="{_TOP + _HEIGHT * (1 - mean):.1f}" '
                f'height="{_HEIGHT * mean:.1f}" fill="#56B4E9"/>'
                f'<line x1="{begin - 0.1 * pitch:.1f}" x2="{begin + 0.8 * pitch:.1f}" y1="{level:.1f}" '
                f'y2="{level:.1f}" stroke="#000" stroke-width="2"/>'
                f'<text x="{begin + 0.35 * pitch:.1f}" y="188" text-anchor="middle">{unit + 1}</text>'
            )
        return drawn


def trace_player(
    runs: Mapping[str, tuple[Tensor, Tensor]],
    exact: Tensor,
    goal: float,
    limits: tuple[float, float],
    description: str,
) -> TracePlayer:
    """A player of mean-field runs on one visible vector.

    Parameters
    ----------
    runs : mapping of str to (Tensor, Tensor), shapes [T + 1, M] and [T + 1]
        Means and bounds of each run, by its label; the same T, at least 1, for all.
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
    ValueError
        If there is no run, their shapes differ, or a number is NaN or infinite.
    """
    if not runs:
        raise ValueError("runs: expected at least one run, got none")
    require_shape("exact", exact, [None])
    length = len(next(iter(runs.values()))[1])
    if length < 2:
        raise ValueError(f"runs: expected at least one update, got {length - 1}")
    for label, (means, bounds) in runs.items():
        require_shape(f"means of {label}", means, [length, len(exact)])
        require_shape(f"bounds of {label}", bounds, [length])
        require_finite(f"bounds of {label}", bounds)
        if not bool(((means >= 0) & (means <= 1)).all()):
            raise ValueError(
                f"means of {label}: expected values in [0, 1], got {means.min():g} to {means.max():g}"
            )
    low, high = limits
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"limits: expected two increasing numbers, got {low} and {high}")
    return TracePlayer(
        tuple(runs),
        tuple(_rounded(means) for means, _ in runs.values()),
        tuple(_rounded(bounds) for _, bounds in runs.values()),
        _rounded(exact),
        round(goal, _DIGITS),
        (low, high),
        description,
    )


def _rounded(values: Tensor) -> list:
    """Nested lists of numbers with a few digits."""
    if values.ndim > 1:
        return [_rounded(row) for row in values]
    return [round(value, _DIGITS) for value in values.tolist()]
