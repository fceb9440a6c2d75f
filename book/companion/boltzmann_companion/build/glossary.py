"""Entries of the index for the glossary's terms, at the places in the chapters that define them.

A term is written once, in the glossary, with a link to its chapter. The book's search and its index then lead there too.
"""

from __future__ import annotations

import re

from nbformat import NotebookNode

_DEFINITION = re.compile(r"^((?:\S.*\n)+)((?:[ \t]+\S.*\n?)+)", re.MULTILINE)
_FENCE = re.compile(r"^\s*(`{3,}|~{3,}|\$\$)")


def defining_chapters(glossary: str) -> dict[str, str]:
    """The page that defines each term.

    Parameters
    ----------
    glossary : str
        A page with a `{glossary}` directive, whose definitions end with a link to a page.

    Returns
    -------
    dict of str to str
        Page by term, in the order of the glossary.
    """
    body = glossary.partition("```{glossary}\n")[2].partition("\n```")[0] + "\n"
    found: dict[str, str] = {}
    for terms, definition in _DEFINITION.findall(body):
        pages = re.findall(r"\{doc\}`([^`<]+)`", definition)
        if pages:
            found |= dict.fromkeys(terms.strip().splitlines(), pages[-1])
    return found


def add_index_entries(page: NotebookNode, chapter: str, terms: dict[str, str]) -> None:
    """Put an index entry before the paragraph of a chapter that defines a term.

    That is the first paragraph that has the term in emphasis, or else the first that has it at all, or else the chapter's first.

    Parameters
    ----------
    page : NotebookNode
        A copy of the chapter; its Markdown cells are changed.
    chapter : str
        Its name, without suffix.
    terms : dict of str to str
        From `defining_chapters`.
    """
    cells = [cell for cell in page.cells if cell.cell_type == "markdown"]
    for term in (term for term, home in terms.items() if home == chapter):
        word = re.escape(term).replace(r"\ ", r"\s+") + r"(?:e?s)?"
        case = re.NOFLAG if term.isupper() else re.IGNORECASE
        for pattern in (rf"\*{word}\*", rf"(?<![\w/-]){word}(?![\w/-])", r"\w"):
            if any(_enter(cell, term, re.compile(pattern, case)) for cell in cells):
                break


def _enter(cell: NotebookNode, term: str, pattern: re.Pattern[str]) -> bool:
    """Put the entry into this cell, before its first matching paragraph; returns whether there is one."""
    paragraphs = cell.source.split("\n\n")
    fences: list[str] = []
    for number, paragraph in enumerate(paragraphs):
        plain = not fences and re.match(r"[A-Za-z*_]", paragraph) is not None
        if plain and pattern.search(paragraph):
            paragraphs[number] = f"```{{index}} ! single: {term}\n```\n\n{paragraph}"
            cell.source = "\n\n".join(paragraphs)
            return True
        for line in paragraph.splitlines():
            _follow(line, fences)
    return False


def _follow(line: str, fences: list[str]) -> None:
    """Update the list of open fences with a line; a fence inside another is longer or shorter than that, never equal."""
    found = _FENCE.match(line)
    if found is None:
        return
    mark, rest = found[1], line[found.end() :].strip()
    closes = bool(fences) and fences[-1][0] == mark[0] and len(mark) >= len(fences[-1])
    if mark == "$$":
        # A formula may be on one line, and its label may follow its end.
        closes = closes or rest.endswith("$$")
        if rest.endswith("$$") and not (fences and fences[-1] == "$$"):
            return
    elif rest:
        closes = False
    if closes:
        fences.pop()
    else:
        fences.append(mark)
