"""The card of a player, one piece of HTML for both a notebook and the book.

A player shows moments, one at a time: frames, steps of a chain, or updates. The players share
the card, its style (`player.css`) and its script (`player.js`). `frames`, `chains`, `traces`,
`ladders`, `particles` and `brackets` each add their own drawing.

The card holds everything it needs and fetches nothing. Nothing moves until the reader asks for it.
Where scripts are off, the last moment is shown, without controls. A page may hold several players,
and the same one more than once.
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

from paperlib import storage

_FOLDER = Path(__file__).parent

# The pictures' class `dark-light` keeps the book's theme from dimming them on dark pages.
_CARD = Template("""\
<div class="paperlib-player $kind-player" data-player="$key" role="group" \
aria-label="$description"$style>
<style>
$css</style>
$drawing
$choices<div class="controls" hidden>
<button type="button">Play</button>
<label>$slider_word<input class="time" type="range" min="$first" max="$last" value="$last" \
step="1" aria-label="$slider_name"></label>
</div>
<p aria-live="polite">$caption</p>
<script type="application/json">$data</script>
<script>{
$script
startPlayers("$key");
}</script>
</div>
""")


@dataclass(frozen=True)
class Slider:
    """The time slider.

    Attributes
    ----------
    name : str
        What the slider chooses, for a screen reader.
    last : int
        The last moment, which the player shows before it is played.
    first : int
        The first moment.
    word : str
        The word before the slider; none by default.
    """

    name: str
    last: int
    first: int = 0
    word: str = ""


def card(
    kind: str,
    description: str,
    drawing: str,
    caption: str,
    slider: Slider,
    data: dict[str, Any],
    *,
    milliseconds: int,
    choices: str = "",
    style: str = "",
) -> str:
    """A player as HTML.

    Parameters
    ----------
    kind : str
        The kind of drawing in `player.js`: frames, chains, traces, ladders, particles or brackets.
    description : str
        Description for readers who cannot see the player, in plain text.
    drawing : str
        HTML of the picture at the last moment.
    caption : str
        Caption of the last moment, in plain text.
    slider : Slider
        The time slider.
    data : dict
        Data that the script draws: anything that JSON can hold.
    milliseconds : int
        How long each moment is shown while playing.
    choices : str
        HTML of further controls, each with the class `choice`.
    style : str
        CSS style of the card itself.

    Returns
    -------
    str
        The HTML, the same for the same arguments.
    """
    everything = {
        "kind": kind,
        "description": description,
        "milliseconds": milliseconds,
        **data,
    }
    text = _in_script(everything)
    return _CARD.substitute(
        # Elements are found by a key made from the contents, so that a script starts only its own
        # player, and never one that another version of the library has made.
        key=storage.sha256((text + _source("player.js")).encode())[:16],
        kind=kind.removesuffix("s"),
        description=html.escape(description),
        style=f' style="{html.escape(style)}"' if style else "",
        css=_source("player.css"),
        drawing=drawing,
        choices=f'<div class="controls" hidden>\n{choices}\n</div>\n' if choices else "",
        slider_word=f"{html.escape(slider.word)} " if slider.word else "",
        slider_name=html.escape(slider.name),
        first=slider.first,
        last=slider.last,
        caption=html.escape(caption),
        data=text,
        script=_source("player.js"),
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
    """JSON that may be placed inside a script element, because it has no `<` that could end the element."""
    return json.dumps(value).replace("<", "\\u003c")


@cache
def _source(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
