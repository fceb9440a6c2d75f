"""Rooms: a module imports only from its own room and from those before it; fast code stands behind one door."""

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

import pytest
from notebooks import NOTEBOOKS, cells_of

import boltzmann_companion
import paperlib

LIBRARY, COMPANION = (Path(package.__file__).parent for package in (paperlib, boltzmann_companion))
# In the order in which they may import each other; `architecture` in the book draws it. With each room stands how many lines of code it
# may have, without docstrings and comments. A change that needs more raises the number, and says why.
ROOMS = [
    {"errors": 17, "surroundings": 45},
    {
        "numerics": 81,
        "validation": 158,
        "storage": 97,
        "threads": 71,
        "cluster": 50,
        "provenance": 79,
    },
    {"kernels": 1_268},
    {"models": 2_876},
    {"keep": 200},
    {"datasets": 425},
    {"variational": 907},
    {"mcmc": 305},
    {"learning": 676},
    {"annealing": 803},
    {"estimators": 2_037},
    {"evaluation": 2_763},
    {"cli_options": 234},
    {"cli": 240, "__main__": 2},
    # installed or not: nothing of the library may import it, inside of a function either
    {"boltzmann_companion": 10_963},
]
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms}
MODULES = sorted([*LIBRARY.rglob("*.py"), *COMPANION.rglob("*.py")])
# What only the kernels may name: compilers, and parts of torch that its makers do not promise.
BEHIND_THE_DOOR = {"numba", "llvmlite", "triton"}


def imported(path):
    """Every module that a file imports, at its top or inside of a function, and whether for types only."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module == "paperlib":
                yield from (f"paperlib.{alias.name}" for alias in node.names)
            else:
                yield node.module


def room_of(path):
    """The first part of a module's name behind `paperlib`; the companion is one room."""
    if path.is_relative_to(COMPANION):
        return COMPANION.name
    return path.relative_to(LIBRARY).with_suffix("").parts[0]


def name_of(path):
    return f"{room_of(path)}/{path.stem}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_import_goes_upwards(path):
    room = room_of(path)
    floor = FLOOR.get(room, -1)  # the package itself imports nothing
    for module in imported(path):
        named = next((part for part in module.split(".")[:2] if part in FLOOR), None)
        if named and module.startswith(("paperlib.", COMPANION.name)):
            assert FLOOR[named] <= floor, f"{room} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_compilers_and_private_parts_of_torch_stay_behind_the_door(path):
    if room_of(path) == "kernels":
        return
    assert not BEHIND_THE_DOOR & {module.split(".")[0] for module in imported(path)}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            owner = ast.unparse(node.value)
            private = owner.split(".")[0] == "torch" and not node.attr.endswith("__")
            assert not private, f"{owner}.{node.attr}"


# Enumeration, CSL and the bound for DBNs need the model itself. Every other estimator walks paths, or knows numbers only.
TAKE_A_MODEL = {"exact", "csl", "dbn_bound"}
WALKERS = [
    path
    for path in MODULES
    if room_of(path) == "estimators" and path.stem not in {"__init__", *TAKE_A_MODEL}
]


@pytest.mark.parametrize("path", WALKERS, ids=lambda path: path.stem)
def test_estimators_that_walk_paths_know_no_model(path):
    models = [module for module in imported(path) if module.startswith("paperlib.models")]
    # files of tensors are no model
    assert set(models) <= {"paperlib.models.files"}


def code_lines(path):
    """How many lines hold code: neither blank nor a comment nor part of a docstring."""
    text = path.read_text()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, documented) and ast.get_docstring(node) is not None
        for line in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }
    code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.string.strip() and token.type != tokenize.COMMENT
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(code - docstrings)


def test_every_room_is_known_and_within_its_budget():
    lines = Counter()
    for path in MODULES:
        lines[room_of(path)] += code_lines(path)
    del lines["__init__"]
    budgets = {room: budget for rooms in ROOMS for room, budget in rooms.items()}
    assert set(lines) == set(budgets)
    assert {room: number for room, number in lines.items() if number > budgets[room]} == {}


# Lines of code that a chapter may have in all of its cells, in one cell, and before its first output.
CHAPTER, CELL, OPENING = 300, 40, 25
SHOWN = {"display_data", "execute_result"}


CHAPTERS = [path for path in NOTEBOOKS if path.stem[:2].isdigit()]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem[:2])
def test_a_chapter_is_short(path):
    sizes, opening, shown = [], 0, False
    for cell in cells_of(path):
        lines = [line.strip() for line in cell.source.splitlines()]
        sizes.append(sum(bool(line) and not line.startswith("#") for line in lines))
        if not shown and "parameters" not in cell.metadata.get("tags", ()):
            opening += sizes[-1]
        shown |= any(out.output_type in SHOWN for out in cell.outputs)
    assert sum(sizes) <= CHAPTER
    assert max(sizes) <= CELL
    assert shown
    assert opening <= OPENING


def test_lines_of_code_are_counted(tmp_path):
    file = tmp_path / "x.py"
    file.write_text(
        '"""Two\nlines."""\n\n# why\nx = (\n    1\n)\n\ndef f():\n    """One."""\n    return x  # said\n'
    )
    assert code_lines(file) == 5


@pytest.mark.parametrize(
    ("module", "without"),
    [
        # as long to import as the rest of the library, and few calls need it
        ("paperlib.estimators", "scipy"),
        # the driver of a chapter only starts a kernel, which imports it again
        ("boltzmann_companion.build.execute", "torch"),
    ],
)
def test_what_takes_seconds_to_import_is_left_to_those_who_need_it(module, without):
    code = f"import sys, {module}; sys.exit({without!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
