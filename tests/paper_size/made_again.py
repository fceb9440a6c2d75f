"""One record, made again from the cells of its chapter that it needs, and compared with the digits that a page prints."""

import ast
import itertools

import nbformat
from notebooks import BOOK, parameters_of, read

from boltzmann_companion.build.runner import execute_copy
from boltzmann_companion.records import read_record
from boltzmann_companion.tables import format_value

# What a cell may call on an object of an earlier cell to change it.
_CHANGING = {"add", "append", "extend", "update", "setdefault"}


def made_again(record, folder, settings=None, environment=None):
    """The record as its chapter makes it in `folder`, with other settings if need be.

    Parameters
    ----------
    record : dict
        One of the committed records.
    folder : Path
        An empty folder for the notebook and its results.
    settings : dict, optional
        Settings and parameters of the chapter that differ from the book's, such as a smaller number of models.
    environment : dict, optional
        Environment variables.
    """
    made = record["provenance"]
    chapter = BOOK / f"{made['chapter']}.ipynb"
    copy = folder / chapter.name
    given = settings or {}
    parameters = {name: value for name, value in given.items() if name in parameters_of(chapter)}
    others = {name: value for name, value in given.items() if name not in parameters}
    nbformat.write(_reduced(read(chapter), record["name"], others), copy)
    figures = folder / "figures"
    execute_copy(
        copy,
        folder / "executed.ipynb",
        {"profile": record["profile"], **parameters},
        folder / "executed.ipynb",
        {"PAPERLIB_FIGURES": str(figures), **(environment or {})},
    )
    return read_record(figures / record["profile"] / f"{record['name']}.json")


def _reduced(notebook, name, settings):
    """The cells that a record needs, in order; parameters and settings are changed where they are read."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    trees = [ast.parse(cell.source) for cell in cells]
    (target,) = [
        i
        for i, cell in enumerate(cells)
        if f'"{name}"' in cell.source and ".record(" in cell.source
    ]
    wanted = _used(trees[target])
    is_chosen = ["parameters" in cell.metadata.get("tags", []) for cell in cells]
    is_chosen[target] = True
    for i in reversed(range(target)):
        if _defined(trees[i]) & wanted:
            is_chosen[i] = True
            wanted |= _used(trees[i])
    reduced = nbformat.v4.new_notebook(metadata=notebook.metadata)
    for cell in itertools.compress(cells, is_chosen):
        cell = nbformat.from_dict(cell)
        cell.outputs = []
        if "open_chapter(" in cell.source:
            cell.source += f"\nchapter.as_given = False\nchapter.settings.update({settings!r})"
        reduced.cells.append(cell)
    return reduced


def _used(tree):
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _defined(tree):
    """Names that a cell binds or changes."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Subscript | ast.Attribute):
            calls_a_change = isinstance(node, ast.Attribute) and node.attr in _CHANGING
            if isinstance(node.ctx, ast.Store) or calls_a_change:
                names |= _used(node.value)
    return names


def moved(record, other):
    """Where the rows of another record differ from the rows with the same settings, in the digits that a page prints.

    Returns the lines that say so, and how many rows were compared.
    """
    lines = []
    pairs = _with_same_settings(record, other)
    for before, after in pairs:
        for key, column in record["columns"].items():
            if column["tolerance"] is not None:
                values = [before.get(key), after.get(key)]
                old, new = (format_value(value, column["unit"]) for value in values)
                if old != new and not _within_last_digit(*values, old):
                    lines.append(f"{next(iter(before.values()))}, {key}: {old} -> {new}")
    return lines, len(pairs)


def _within_last_digit(old, new, printed):
    """Numbers that differ by rounding only may lie on two sides of a half of the last printed digit."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        parts = printed.strip("()").split(", ")
        return all(map(_within_last_digit, old, new, parts))
    if not (isinstance(old, float) and isinstance(new, float)):
        return False
    decimals = len(printed.partition(".")[2])
    return abs(old - new) < 10**-decimals


def _with_same_settings(record, other):
    if len(record["rows"]) == len(other["rows"]):
        return list(zip(record["rows"], other["rows"], strict=True))
    keys = [key for key, column in record["columns"].items() if column["tolerance"] == 0]
    by_settings = {str([row.get(key) for key in keys]): row for row in record["rows"]}
    pairs = [(by_settings.get(str([row.get(key) for key in keys])), row) for row in other["rows"]]
    return [pair for pair in pairs if pair[0] is not None]
