"""Small notebooks to execute, and the committed ones, each of which is read once."""

import ast
from functools import cache
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
BOOK = ROOT / "book"
NOTEBOOKS = sorted(BOOK.glob("*.ipynb"))
EACH_NOTEBOOK = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def notebook(*sources, parameters='profile = "digits"\nseed = 1', reads=()):
    """One of a cell of parameters and these cells, which reads the records of other chapters."""
    cells = [nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})]
    cells += [nbformat.v4.new_code_cell(source) for source in sources]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    if reads:
        metadata["paperlib"] = {"reads": list(reads)}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


@cache
def read(path):
    """A committed notebook; whoever changes it takes a copy."""
    return nbformat.read(path, as_version=4)


def cells_of(path, kind="code"):
    return [cell for cell in read(path).cells if cell.cell_type == kind]


def prose_of(path):
    """The text of a notebook, without its code."""
    return "\n\n".join(cell.source for cell in cells_of(path, "markdown"))


def nodes_of(path):
    """Every part of a notebook's code, as its syntax has it."""
    return [node for cell in cells_of(path) for node in ast.walk(ast.parse(cell.source))]


def parameters_of(path):
    """A chapter's parameters as they are given."""
    (cell,) = [c for c in cells_of(path) if "parameters" in c.metadata.get("tags", [])]
    return {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in ast.parse(cell.source).body
    }
