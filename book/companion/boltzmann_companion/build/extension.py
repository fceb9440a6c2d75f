"""The book's own Sphinx extension: search finds only prose, and a column of a table is as wide as its sentences or values need.

`_config.yml` lists it. Sphinx feeds its search index in `StandaloneHTMLBuilder.index_page` and has no event for this, so the builder
is replaced by one that feeds the index less.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

# A cell with more characters than this and at least this many words is read as a sentence, not compared as a value.
_CHARACTERS, _WORDS = 24, 4


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
    return prose


def _is_no_prose(node: nodes.Node) -> bool:
    code = (nodes.literal_block, nodes.doctest_block, nodes.math, nodes.math_block)
    return isinstance(node, code) or (
        isinstance(node, nodes.Element) and node.get("nb_element") == "cell_code_source"
    )


def mark_columns(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give the class `words` to the cells of every column that holds sentences, and `values` to those of every column of short entries.

    The style sheet widens the first, and breaks no line in the second, where names of models and intervals have hyphens and spaces.
    A long heading is marked with `words`, too: above narrow values it would stand a word to a line on a phone.

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
        for cell in (
            cell for head in group.findall(nodes.thead) for cell in head.findall(nodes.entry)
        ):
            if len(cell.astext()) > _CHARACTERS:
                cell["classes"].append("words")


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls this when it loads the extension.

    Parameters
    ----------
    app : Sphinx
        The running build.
    """
    app.add_builder(ProseFirstBuilder, override=True)
    app.connect("doctree-resolved", mark_columns)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
