"""The book's own Sphinx extension, which `_config.yml` lists.

With it, `jupyter-book build .` makes the whole book. This module lets the search find only prose,
makes a column of a table as wide as its sentences or values need, and makes citations of links.
Other modules add to the pages of chapters (`chapter_pages`), enter the glossary's terms in the
index (`glossary`), make the tables of when a record was made (`status`), and lead to the repository
(`repository`).

Sphinx feeds its search index in `StandaloneHTMLBuilder.index_page` and has no event for this, so
the builder is replaced by one that feeds the index less. Its domain of references by number is
replaced by one that reads each page once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any
from unittest.mock import patch

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment

from boltzmann_companion.build import chapter_pages, glossary, repository
from boltzmann_companion.build.status import StatusTable

#: The variable that names a profile: the pages then show the executed copies of the chapters in the
#: place of their stored outputs. It is the default of the setting `paperlib_executed`.
EXECUTED = "PAPERLIB_EXECUTED"

# A cell with more characters than this, and at least this many words, is a sentence and no value.
_CHARACTERS = 24
_WORDS = 4


class ProseFirstBuilder(StandaloneHTMLBuilder):
    """The HTML builder, with a search index of the prose only.

    Examples
    --------
    >>> ProseFirstBuilder.name
    'html'
    """

    def index_page(self, pagename: str, doctree: nodes.document, title: str) -> None:
        """Feed the search index one page without its code, printed output and formulas."""
        super().index_page(pagename, prose_of(doctree), title)


def prose_of(doctree: nodes.document) -> nodes.document:
    r"""A copy of a page without code, printed output and formulas.

    Its headings are those of its sections and the glossary's terms, while Sphinx would take
    captions of tables for headings as well. It also has the words of its main entries of the index.

    Parameters
    ----------
    doctree : document
        A page as Sphinx has parsed it.

    Examples
    --------
    >>> from docutils.core import publish_doctree
    >>> prose_of(publish_doctree("Words first::\n\n  code()")).astext()
    'Words first:'
    """
    prose = doctree.deepcopy()
    for node in list(prose.findall(_is_no_prose)):
        # it may have been removed with an outer node already
        if node.parent is not None and node in node.parent:
            node.parent.remove(node)
    for title in list(prose.findall(nodes.title)):
        if not isinstance(title.parent, nodes.section):
            title.replace_self(nodes.paragraph("", "", *title.children))
    for term in list(prose.findall(nodes.term)):
        if term["ids"]:
            term.replace_self(nodes.section("", nodes.title("", term.astext()), ids=term["ids"]))
    indexed = [
        value
        for index in prose.findall(addnodes.index)
        for _, value, _, main, _ in index["entries"]
        if main == "main"
    ]
    if indexed:
        prose += nodes.paragraph("", "; ".join(indexed))
    return prose


def _is_no_prose(node: nodes.Node) -> bool:
    code = (nodes.literal_block, nodes.doctest_block, nodes.math, nodes.math_block)
    return isinstance(node, code) or (
        isinstance(node, nodes.Element) and node.get("nb_element") == "cell_code_source"
    )


def mark_columns(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give cells of tables the class `words` or `values`, by what their column holds.

    The style sheet widens columns of sentences, and breaks no line in columns of short values,
    where names of models and intervals have hyphens and spaces. A long heading is marked with
    `words`, too: above narrow values it would stand a word to a line on a phone.

    Parameters
    ----------
    app, docname
        As Sphinx passes them to listeners of `doctree-resolved`.
    doctree : document
        The page, whose tables are changed.
    """
    for group in doctree.findall(nodes.tgroup):
        rows = [row for body in group.findall(nodes.tbody) for row in body.findall(nodes.row)]
        for column in zip(*(row.children for row in rows), strict=False):
            texts = [cell.astext() for cell in column]
            if any(len(text) > _CHARACTERS and len(text.split()) >= _WORDS for text in texts):
                kind = "words"
            elif all(len(text) <= _CHARACTERS for text in texts):
                kind = "values"
            else:
                continue
            for cell in column:
                cell["classes"].append(kind)
        for head in group.findall(nodes.thead):
            for cell in head.findall(nodes.entry):
                if len(cell.astext()) > _CHARACTERS:
                    cell["classes"].append("words")


# A citation as chapters write it, so that JupyterLab shows a link:
# [Author (year)](bibliography.md#key), or several [Author, year](bibliography.md#key) in
# parentheses with semicolons between them.
_CITED = r"\[[^\[\]]*\]\(bibliography\.md#(\w+)\)"
_IN_PARENTHESES = re.compile(rf"\({_CITED}(?:; {_CITED})*\)")


def cite(app: Sphinx, docname: str, source: list[str]) -> None:
    r"""Make citations of links to the bibliography.

    Parameters
    ----------
    app, docname
        As Sphinx passes them to listeners of `source-read`.
    source : list of str
        The text of the page, which is changed.

    Examples
    --------
    >>> text = ["[Neal (2001)](bibliography.md#neal) says "
    ...         "([Neal, 2001](bibliography.md#neal); [A, 1](bibliography.md#a))"]
    >>> cite(None, "page", text)
    >>> text
    ['{cite:t}`neal` says {cite:p}`neal,a`']
    """

    def in_parentheses(citations: re.Match[str]) -> str:
        return f"{{cite:p}}`{','.join(re.findall(_CITED, citations[0]))}`"

    source[0] = _IN_PARENTHESES.sub(in_parentheses, source[0])
    source[0] = re.sub(_CITED, r"{cite:t}`\1`", source[0])


class ReferencesByNumber(StandardDomain):
    """Sphinx's own domain, which would read a page again for each reference to a table on it."""

    @cached_property
    def _read_once(self) -> Callable[[str], nodes.document]:
        return cache(self.env.get_doctree)

    def resolve_xref(
        self,
        env: BuildEnvironment,
        fromdocname: str,
        builder: Builder,
        typ: str,
        target: str,
        node: addnodes.pending_xref,
        contnode: nodes.Element,
    ) -> nodes.Element | None:
        """The link that takes the place of a reference, as for `StandardDomain`."""
        with patch.object(env, "get_doctree", self._read_once):
            return super().resolve_xref(env, fromdocname, builder, typ, target, node, contnode)


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls this when it loads the extension.

    Parameters
    ----------
    app : Sphinx
        The running build.
    """
    app.add_builder(ProseFirstBuilder, override=True)
    app.add_domain(ReferencesByNumber, override=True)
    app.connect("doctree-resolved", mark_columns)
    app.connect("source-read", cite)
    app.add_config_value("paperlib_executed", os.environ.get(EXECUTED, ""), "env", str)
    app.add_directive("status-table", StatusTable)
    for part in (chapter_pages, glossary, repository):
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
