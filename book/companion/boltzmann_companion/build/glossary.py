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
# Where Sphinx keeps the terms that each page defines.
_TERMS = "paperlib_terms"
# What the names of the places that define a term begin with.
_PLACE = "defines-"


def setup(app: Sphinx) -> None:
    """Listen to the events of a build."""
    app.connect("env-updated", _enter_terms)
    app.connect("doctree-resolved", _mark_terms)


def _enter_terms(app: Sphinx, env: BuildEnvironment) -> Iterable[str]:
    """Enter each term in the index, at its place in the page to which its definition links last.

    Returns the pages whose terms have changed, which Sphinx then writes.
    """
    index = env.get_domain("index").data
    before = index.get(_TERMS, {})
    after = _terms_by_page(env)
    for page, entries in index["entries"].items():
        others = [entry for entry in entries if not entry[2].startswith(_PLACE)]
        entries[:] = [*others, *map(_entry, after.get(page, ()))]
    index[_TERMS] = after
    return [page for page in before | after if before.get(page) != after.get(page)]


def _terms_by_page(env: BuildEnvironment) -> dict[str, list[str]]:
    """The terms that each page defines, by the glossary, if the book has one."""
    terms: dict[str, list[str]] = {}
    if _GLOSSARY not in env.found_docs:
        return terms
    for entry in env.get_doctree(_GLOSSARY).findall(nodes.definition_list_item):
        links = [link for link in entry.findall(addnodes.pending_xref) if link["reftype"] == "doc"]
        page = posixpath.join(posixpath.dirname(_GLOSSARY), links[-1]["reftarget"])
        names = [term.astext() for term in entry.findall(nodes.term) if term["ids"]]
        terms.setdefault(page, []).extend(names)
    return terms


def _mark_terms(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Mark the place of each term in the page that defines it."""
    paragraphs = [
        each for each in doctree.findall(nodes.paragraph) if isinstance(each.parent, nodes.section)
    ]
    for term in app.env.get_domain("index").data[_TERMS].get(docname, ()):
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
    """The first that has the term in emphasis, or else the first that has it, or else the first."""
    word = re.escape(term).replace(r"\ ", r"\s+") + r"(?:e?s)?"
    case = re.NOFLAG if term.isupper() else re.IGNORECASE
    pattern = re.compile(rf"(?<![\w/-]){word}(?![\w/-])", case)
    candidates = [each for each in paragraphs if pattern.search(each.astext())]
    for paragraph in candidates:
        emphasised = paragraph.findall(lambda node: isinstance(node, nodes.emphasis | nodes.strong))
        if any(pattern.fullmatch(words.astext()) for words in emphasised):
            return paragraph
    return candidates[0] if candidates else paragraphs[0]
