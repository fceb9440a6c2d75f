"""What the chapters suggest under "What to try".

Read from their text and from `suggestions/edits.yaml`, with what re-runners change besides.
"""

from __future__ import annotations

import ast
import re
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import yaml
from notebooks import BOOK, NOTEBOOKS, prose_of, read

EDITS = Path(__file__).parent / "suggestions" / "edits.yaml"
CHANGES = EDITS.with_name("changes.yaml")
# `name = value`, and further ones that belong to it: `name = value` with `other = value`.
_SETTING = r"`(\w+) = ([^`]+)`"
_SETTINGS = re.compile(rf"{_SETTING}(?: with {_SETTING})*")


@dataclass(frozen=True)
class Suggestion:
    """One thing to try: other parameters, or a change of the code."""

    chapter: str
    bullet: str
    parameters: dict[str, object] = field(default_factory=dict)
    replace: dict[str, str] = field(default_factory=dict)
    append: dict[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    until: str = ""
    error: str = ""

    @property
    def name(self) -> str:
        changes = [f"{name}={value!r}" for name, value in self.parameters.items()]
        changes += [*self.replace.values(), *self.append.values()]
        changes = changes or [f"without {piece}" for piece in self.without]
        return f"{self.chapter}: {', '.join(changes)}".splitlines()[0][:90]


def bullets(path: Path) -> list[str]:
    """The items of a chapter's section "What to try"; none if it has no such section."""
    section = re.search(
        r"^## What to try\n(.*?)(?=^## |\Z)", prose_of(path), re.MULTILINE | re.DOTALL
    )
    return re.findall(r"^- (.*)", section[1], re.MULTILINE) if section else []


def settings_of(bullet: str) -> list[dict[str, object]]:
    """The sets of parameters that an item of the list names.

    >>> settings_of("`chains = 10` or `chains = 20`: both, `rate = 0.5` with `steps = 1_000` too")
    [{'chains': 10}, {'chains': 20}, {'rate': 0.5, 'steps': 1000}]
    """
    return [
        {name: ast.literal_eval(value) for name, value in re.findall(_SETTING, match[0])}
        for match in _SETTINGS.finditer(bullet)
    ]


@cache
def edits() -> dict[str, list[dict[str, Any]]]:
    """Changes of code, by chapter: `says` is how the item begins, the rest is what it means."""
    return yaml.safe_load(EDITS.read_text())


def suggestions() -> list[Suggestion]:
    """Everything that the chapters suggest, in their order."""
    collected = []
    for path in NOTEBOOKS:
        for bullet in bullets(path):
            collected += [
                Suggestion(path.stem, bullet, parameters) for parameters in settings_of(bullet)
            ]
        for edit in edits().get(path.stem, []):
            changes = {key: edit[key] for key in ("replace", "append") if key in edit}
            if changes:
                collected.append(Suggestion(path.stem, edit["says"], **changes))
    return collected


def changes() -> list[Suggestion]:
    """What re-runners change besides, from `suggestions/changes.yaml`."""
    table: dict[str, list[dict[str, Any]]] = yaml.safe_load(CHANGES.read_text())
    return [
        Suggestion(chapter, "", **change)
        for chapter, changed in table.items()
        for change in changed
    ]


def cells_to_run(change: Suggestion) -> list[str]:
    """The code of the chapter's cells with a change, as far as `until` and without some.

    Its parameters are among the cells.

    Raises
    ------
    ValueError
        If no cell has one of the pieces of code, or if several have `until`.
    """
    code = [cell.source for cell in changed(change).cells if cell.cell_type == "code"]
    code[0] += "".join(f"\n{name} = {value!r}" for name, value in change.parameters.items())
    for piece in change.without:
        if not any(piece in source for source in code):
            raise ValueError(f"{change.chapter}: expected a cell with {piece!r}, found none")
    last = [index for index, source in enumerate(code) if change.until in source]
    if len(last) != 1:
        raise ValueError(
            f"{change.chapter}: expected {change.until!r} in one cell, not {len(last)}"
        )
    return [
        source
        for source in code[: last[0] + 1]
        if not any(piece in source for piece in change.without)
    ]


def changed(suggestion: Suggestion) -> nbformat.NotebookNode:
    """The chapter with the suggested change of its code, as its reader would make it.

    Raises
    ------
    ValueError
        If a piece of code that is to be changed does not occur exactly once.
    """
    notebook = deepcopy(read(BOOK / f"{suggestion.chapter}.ipynb"))
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for piece in (*suggestion.replace, *suggestion.append):
        number = sum(cell.source.count(piece) for cell in code)
        if number != 1:
            raise ValueError(f"{suggestion.chapter}: expected {piece!r} once, found {number}")
    for cell in code:
        for old, new in suggestion.replace.items():
            cell.source = cell.source.replace(old, new)
        for piece, more in suggestion.append.items():
            if piece in cell.source:
                cell.source += f"\n{more}"
        if "open_chapter(" in cell.source and (suggestion.replace or suggestion.append):
            cell.source += "\nchapter.as_given = False"
    return notebook
