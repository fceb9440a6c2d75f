"""Entries of the index for the glossary's terms, at the places in the chapters that define them.

A term is written once, in the glossary, with a link to its chapter. The book's search and its index
then lead there too.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

_GLOSSARY = "book/glossary"
# What the names of the places that define a term begin with.
_PLACE = "defines-"


def defining_pages(glossary: nodes.document) -> dict[str, str]:
    """The page that defines each term: the last to which its definition links.

    Parameters
    ----------
    glossary : document
        The page with a `{glossary}` directive, as Sphinx has read it.

    Returns
    -------
    dict of str to str
        Page by term, in the order of the glossary.
    """
    pages: dict[str, str] = {}
    for entry in glossary.findall(nodes.definition_list_item):
        links = [link for link in entry.findall(addnodes.pending_xref) if link["reftype"] == "doc"]
        for term in entry.findall(nodes.term):
            if links and term["ids"]:
                pages[term.astext()] = links[-1]["reftarget"]
    return pages


def enter_terms(app: Sphinx, env: BuildEnvironment) -> Iterable[str]:
    """Enter the terms in the index, each at its place in the page that defines it.

    Parameters
    ----------
    app, env
        As Sphinx passes them to listeners of `env-updated`.

    Returns
    -------
    iterable of str
        The pages that have such places, which Sphinx writes anew.
    """
    if _GLOSSARY not in env.found_docs:
        return ()
    terms: dict[str, list[str]] = {}
    for term, target in defining_pages(env.get_doctree(_GLOSSARY)).items():
        page = posixpath.join(posixpath.dirname(_GLOSSARY), target)
        terms.setdefault(page, []).append(term)
    for page, listed in env.get_domain("index").data["entries"].items():
        listed[:] = [entry for entry in listed if not entry[2].startswith(_PLACE)]
        listed += map(_entry, terms.get(page, ()))
    env.paperlib_terms = terms
    return terms


def mark_terms(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Mark the place of each term in the page that defines it.

    Parameters
    ----------
    app, docname
        As Sphinx passes them to listeners of `doctree-resolved`.
    doctree : document
        The page, which is changed.
    """
    paragraphs = [
        each for each in doctree.findall(nodes.paragraph) if isinstance(each.parent, nodes.section)
    ]
    for term in getattr(app.env, "paperlib_terms", {}).get(docname, ()):
        entry = _entry(term)
        paragraph = _defining_paragraph(term, paragraphs)
        paragraph["ids"].append(entry[2])
        # for the search, which reads what a page enters in the index
        place = paragraph.parent.index(paragraph)
        paragraph.parent.insert(place, addnodes.index(entries=[entry], inline=False))


def _entry(term: str) -> tuple[str, str, str, str, None]:
    """What Sphinx has of a main entry of the index."""
    return "single", term, _PLACE + nodes.make_id(term), "main", None


def _defining_paragraph(term: str, paragraphs: list[nodes.paragraph]) -> nodes.paragraph:
    """The first that has the term in emphasis, or else the first that has it at all, or else the first."""
    word = re.escape(term).replace(r"\ ", r"\s+") + r"(?:e?s)?"
    case = re.NOFLAG if term.isupper() else re.IGNORECASE
    pattern = re.compile(rf"(?<![\w/-]){word}(?![\w/-])", case)
    having = [each for each in paragraphs if pattern.search(each.astext())]
    for each in having:
        if any(pattern.fullmatch(words.astext()) for words in each.findall(_is_emphasis)):
            return each
    return having[0] if having else paragraphs[0]


def _is_emphasis(node: nodes.Node) -> bool:
    return isinstance(node, nodes.emphasis | nodes.strong)
