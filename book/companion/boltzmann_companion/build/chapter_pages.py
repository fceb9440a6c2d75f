"""What the page of a chapter shows beyond its notebook.

Nothing of it is in the file that a reader opens or downloads.

A table with a caption is numbered. Each figure of a record names the record and the command that
makes it again. A cell of checks folds to a line that counts its claims, a folded cell that shows
nothing is joined to the next, and a box tells how to run the chapter. All this is done to the page
that Sphinx has parsed. Its cells have the metadata of those of the notebook, and their numbers, by
which the outputs of a cell are found.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import Any

import nbformat
from docutils import nodes
from docutils.utils import new_document
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from boltzmann_companion.build.numbers import with_cells
from boltzmann_companion.build.runner import copy_for_the_book
from boltzmann_companion.claims.checks import answers_of
from boltzmann_companion.records import load_result, source_line

# Where Sphinx keeps the notebook of the page that it is reading.
_NOTEBOOK = "paperlib_notebook"
_RUN_BOX = """\
:::{{dropdown}} Run this chapter
:class-container: run-this-chapter
<a href="../_sources/book/{name}.ipynb" download>Download the notebook</a> \
and open it in Jupyter, with the book's packages installed: {{doc}}`running` says how.
Its settings are in the cell below.
Or execute a copy in a clone of the repository, with a setting of your own if you like:
```console
paperlib reproduce --only {number}
paperlib reproduce --only {number} --set {setting}
```
{elsewhere}
:::"""
_ELSEWHERE = """
These commands make a clone, and install the packages in a notebook that you have uploaded to \
[Colab](https://colab.research.google.com/):
```ipython3
!git clone {url} companion
%pip install ./companion ./companion/likelihood ./companion/book/companion
```"""
# A setting that a chapter suggests, other than its profile and its seed.
_SETTING = re.compile(r"(?!profile|seed)\w+ = .+")


def setup(app: Sphinx) -> None:
    """Listen to the events of a build."""
    # before the extension makes citations of the links in it
    app.connect("source-read", _read_notebook, priority=400)
    app.add_transform(ChapterPage)


def _read_notebook(app: Sphinx, docname: str, source: list[str]) -> None:
    """Keep the notebook for `ChapterPage`, and show its executed copy if there is to be one."""
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".ipynb":
        notebook = copy_for_the_book(path, app.config.paperlib_executed)
        app.env.temp_data[_NOTEBOOK] = notebook
        source[0] = nbformat.writes(notebook)


class ChapterPage(SphinxTransform):
    """Adds to the page of a chapter what this module says."""

    # Before Sphinx notes the names of tables and the files to download.
    default_priority = 300

    def apply(self, **kwargs: Any) -> None:
        """Change the page."""
        notebook = self.env.temp_data.get(_NOTEBOOK)
        if notebook is None:
            return
        for cell in filter(_is_cell, list(self.document.findall(nodes.container))):
            outputs = notebook.cells[cell["cell_index"]].outputs
            record_name = _record_saved(outputs)
            for figure in list(cell.findall(nodes.figure)):
                if figure.next_node(nodes.table):
                    self._number_table(figure)
                else:
                    profile = self.config.paperlib_executed or "digits"
                    self._name_source(figure, record_name, profile)
            tags = cell["cell_metadata"].get("tags", [])
            if "checks" in tags:
                _count_claims(cell, answers_of(outputs).total())
            elif "parameters" in tags:
                cell.parent.insert(cell.parent.index(cell), self._run_box())
            elif _is_folded(cell):
                _join_to_next(cell)
        for figure in self.document.findall(nodes.figure):
            (image,) = figure.findall(nodes.image)
            folder = posixpath.dirname(self.env.docname)
            uri = posixpath.normpath(posixpath.join(folder, image["uri"]))
            if uri.startswith("figures/"):
                _, profile, name = PurePosixPath(uri).with_suffix("").parts
                self._name_source(figure, name, profile)

    def _number_table(self, figure: nodes.figure) -> None:
        """Put the caption and the name of a figure on the table in it, which is then numbered."""
        (table,) = figure.findall(nodes.table)
        *outputs, caption = figure.children
        table.insert(0, nodes.title("", "", *caption.children))
        table["ids"] = figure["ids"]
        table["names"] = figure["names"]
        for identifier in table["ids"]:
            self.document.ids[identifier] = table
        figure.replace_self(outputs)

    def _name_source(self, figure: nodes.figure, name: str, profile: str) -> None:
        """Say in the caption of a record's picture where the record is and what makes it again."""
        record = load_result(name, profile)
        if record is not None:
            (line,) = self._parsed(with_cells(source_line(record)))
            (caption,) = figure.findall(nodes.caption)
            caption += [nodes.Text(" "), *line.children]

    def _run_box(self) -> list[nodes.Node]:
        name = PurePosixPath(self.env.docname).name
        url = self.config.html_theme_options["repository_url"]
        text = _RUN_BOX.format(
            name=name,
            number=name.split("-")[0],
            setting=self._suggested_setting(),
            elsewhere=_ELSEWHERE.format(url=url) if url else "",
        )
        return self._parsed(text)

    def _suggested_setting(self) -> str:
        """The first setting of the section "What to try", as an option has it."""
        for section in self.document.findall(nodes.section):
            if "what to try" not in section["names"]:
                continue
            for code in section.findall(nodes.literal):
                if _SETTING.fullmatch(code.astext()):
                    return code.astext().replace(" ", "")
        return "seed=1"

    def _parsed(self, markdown: str) -> list[nodes.Node]:
        part = new_document(self.document["source"], self.document.settings)
        MystParser().parse(markdown, part)
        # Sphinx stores a page with all that it refers to, and would store the settings of this
        # part.
        for node in part.findall():
            node.document = self.document
        return part.children


def _is_cell(part: nodes.container) -> bool:
    """Whether a part of a page is a code cell with its outputs."""
    return part.get("nb_element") == "cell_code"


def _record_saved(outputs: list[nbformat.NotebookNode]) -> str:
    """The name of the record that a cell has saved with its figure, from the output's metadata."""
    for output in outputs:
        metadata = output.get("metadata", {}).get("paperlib")
        if metadata:
            return metadata["record"]
    return ""


def _is_folded(cell: nodes.Element) -> bool:
    """Whether a page folds the code of a cell; one of checks folds to a line of its own."""
    tags = cell["cell_metadata"].get("tags", [])
    return cell.get("hide_mode") in ("input", "all") and "checks" not in tags


def _count_claims(cell: nodes.Element, count: int) -> None:
    """Make the line to which a cell of checks is folded say how many claims it has checked."""
    cell["prompt_show"] = f"Checked: {count} claim{'' if count == 1 else 's'}"
    cell["prompt_hide"] = cell["prompt_show"]


def _join_to_next(cell: nodes.Element) -> None:
    """Put the code of a folded cell that shows nothing above that of the folded cell below.

    Then each line to unfold shows something.
    """
    below = cell.next_node(descend=False, siblings=True)
    shows_something = len(cell) > 1
    if shows_something or not isinstance(below, nodes.container):
        return
    if not (_is_cell(below) and _is_folded(below)):
        return
    above_code = next(cell.findall(nodes.literal_block))
    code = next(below.findall(nodes.literal_block))
    code.rawsource = f"{above_code.astext()}\n\n\n{code.astext()}"
    code[:] = [nodes.Text(code.rawsource)]
    cell.parent.remove(cell)
