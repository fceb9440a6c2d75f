"""The card of a player, one piece of HTML for both a notebook and the book.

A player shows moments, one at a time: frames, steps of a chain, or updates. The players share
the card, its style (`player.css`) and its script (`player.js`). `frames`, `chains`, `traces`,
`ladders`, `particles` and `brackets` each add their own drawing.

The card holds everything it needs and fetches nothing. Nothing moves until the reader asks for it.
A player opens at its last moment, or at one that shows better what it is about; where scripts are
off, that is all, without controls. JupyterLab shows a notebook that it does not trust without
drawings, style and scripts, but with the words in them, and with images. So the opening moment is
an image, of which the script makes a drawing, and the controls are text of a script until it runs.
The card then begins with words on what it holds. `make lab` trusts the chapters. A page may hold
several players, and the same one more than once.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import quote

from paperlib import storage

_FOLDER = Path(__file__).parent
# What may stand in the address of an image as it is.
_PLAIN = " =/(),;-."

_CARD = Template("""\
<div class="paperlib-player $kind-player" data-player="$key" role="group" \
aria-label="$description"$style>
<style>
$css</style>
<div class="not-run">$description ($contents). Run this cell to see it.</div>
$drawing
$choices<script type="text/html" class="controls">
<button type="button">Play</button>
<label>$slider_word<input class="time" type="range" min="$first" max="$last" value="$opening" \
step="1" aria-label="$slider_name" aria-valuetext="$value"></label>
</script>
<p aria-live="polite">$caption</p>
<script type="application/json">$data</script>
<script>{
$script
startPlayers("$key");
}</script>
</div>
""")

_CHOICES = Template("""\
<script type="text/html" class="controls">
$choices
</script>
""")


@dataclass(frozen=True)
class Player:
    """A player, which shows itself in a notebook and in the book.

    Attributes
    ----------
    description : str
        Description for readers who cannot see the player, in plain text.
    contents : str
        What it holds, in a few words, where only text is shown.
    card : str
        Its HTML.
    """

    description: str
    contents: str
    card: str

    def __repr__(self) -> str:
        return f"{self.description} ({self.contents})"

    def _repr_html_(self) -> str:
        return self.card


def player(
    kind: str,
    description: str,
    contents: str,
    drawing: str,
    caption: str,
    slider: str,
    last: int,
    data: dict[str, Any],
    *,
    first: int = 0,
    opening: int | None = None,
    word: str = "",
    milliseconds: int = 500,
    choices: str = "",
    style: str = "",
) -> Player:
    """A player, whose HTML is the same for the same arguments.

    Parameters
    ----------
    kind : str
        The kind of drawing in `player.js`: frames, chains, traces, ladders, particles or brackets.
    description, contents : str
        As in `Player`.
    drawing : str
        HTML of the picture at the moment at which the player opens.
    caption : str
        Caption of that moment, in plain text. Up to its first colon it says in words which moment
        that is.
    slider : str
        What the time slider chooses, for a screen reader.
    last, first : int
        The last moment and the first.
    opening : int, optional
        The moment that is shown before the player is played, by default the last.
    data : dict
        Data that the script draws: anything that JSON can hold.
    word : str
        The word before the slider.
    milliseconds : int
        How long each moment is shown while playing.
    choices : str
        HTML of further controls, each with the class `choice`.
    style : str
        CSS style of the card itself.
    """
    text = _in_script(
        {"kind": kind, "description": description, "milliseconds": milliseconds, **data}
    )
    card = _CARD.substitute(
        # Elements are found by a key made from the contents, so that a script starts only its own
        # player, and never one that another version of the library has made.
        key=storage.sha256((text + _source("player.js")).encode())[:16],
        kind=kind.removesuffix("s"),
        description=html.escape(description),
        style=f' style="{html.escape(style)}"' if style else "",
        css=_source("player.css"),
        contents=html.escape(contents),
        drawing=drawing,
        choices=_CHOICES.substitute(choices=choices) if choices else "",
        slider_word=f"{html.escape(word)} " if word else "",
        slider_name=html.escape(slider),
        first=first,
        last=last,
        opening=last if opening is None else opening,
        value=html.escape(caption.partition(": ")[0]),
        caption=html.escape(caption),
        data=text,
        script=_source("player.js"),
    )
    return Player(description, contents, card)


def svg(width: int, height: int, words: str, *lines: str, letters: int = 14) -> str:
    """A picture of these SVG elements, as an image of which the script makes a drawing.

    `words` say what it shows, and `letters` is the size of its text in pixels. The book's theme
    does not dim it on dark pages.
    """
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dark-light" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="{letters}" '
        f'role="img" aria-label="{html.escape(words)}">\n' + "\n".join(lines) + "\n</svg>"
    )
    return (
        f'<img class="still dark-light" width="{width}" alt="{html.escape(words)}" '
        f'src="data:image/svg+xml,{quote(drawing, safe=_PLAIN)}">'
    )


def select(word: str, choices: Sequence[str]) -> str:
    """A list to choose from, for the `choices` of a card; the script gets the number of the choice.

    Parameters
    ----------
    word : str
        The word before the list.
    choices : sequence of str
        The choices in plain text.
    """
    options = "".join(
        f'<option value="{number}">{html.escape(choice)}</option>'
        for number, choice in enumerate(choices)
    )
    return f'<label>{word} <select class="choice">{options}</select></label>'


def _in_script(value: object) -> str:
    """JSON for a script element: it has no `<`, which could end the element."""
    return json.dumps(value).replace("<", "\\u003c")


@cache
def _source(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
