"""Rooms: a module imports only from its own and those before it; fast code has one door."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import boltzmann_companion
import boltzmann_likelihood
import paperlib

LIBRARY = Path(paperlib.__file__).parent
TOOL = Path(boltzmann_likelihood.__file__).parent
COMPANION = Path(boltzmann_companion.__file__).parent
# In the order in which they may import each other; `architecture` in the book draws it. Above the
# library stands the tool, and above both the companion: installed or not, nothing below may import
# them, inside a function either.
ROOMS = [
    {"paperlib.errors", "paperlib.torch_settings"},
    {
        "paperlib.numerics",
        "paperlib.uncertain",
        "paperlib.validation",
        "paperlib.storage",
        "paperlib.threads",
        "paperlib.memory",
    },
    {"paperlib.kernels"},
    {"paperlib.models"},
    {"paperlib.resumable"},
    {"paperlib.datasets"},
    {"paperlib.variational"},
    {"paperlib.mcmc"},
    {"paperlib.learning"},
    {"paperlib.annealing"},
    {"paperlib.estimators"},
    {"boltzmann_likelihood.provenance", "boltzmann_likelihood.cluster"},
    {"boltzmann_likelihood.store"},
    {"boltzmann_likelihood.sources"},
    {"boltzmann_likelihood.evaluation", "boltzmann_likelihood.planted"},
    {"boltzmann_likelihood.files"},
    {"boltzmann_likelihood.cli_options"},
    {"boltzmann_likelihood.cli", "boltzmann_likelihood.__main__", "boltzmann_likelihood.__init__"},
    {"boltzmann_companion"},
]
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms}
MODULES = sorted(path for package in (LIBRARY, TOOL, COMPANION) for path in package.rglob("*.py"))
# What only the kernels may name: compilers, and parts of torch that its makers do not promise.
BEHIND_THE_DOOR = {"numba", "llvmlite", "triton"}


def imported(path):
    """Every module that a file imports, at its top or in a function, and whether for types only."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module in (LIBRARY.name, TOOL.name):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module


def room_of(path):
    """The package and the first part of a module's name in it; the companion is one room."""
    if path.is_relative_to(COMPANION):
        return COMPANION.name
    package = LIBRARY if path.is_relative_to(LIBRARY) else TOOL
    return f"{package.name}.{path.relative_to(package).with_suffix('').parts[0]}"


def name_of(path):
    return f"{room_of(path)}/{path.stem}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_import_goes_upwards(path):
    room = room_of(path)
    floor = FLOOR.get(room, -1)  # a package itself imports nothing
    for module in imported(path):
        parts = module.split(".")
        room_of_module = parts[0] if parts[0] == COMPANION.name else ".".join(parts[:2])
        if room_of_module in FLOOR:
            assert FLOOR[room_of_module] <= floor, f"{room} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_compilers_and_private_parts_of_torch_stay_behind_the_door(path):
    if room_of(path) == "paperlib.kernels":
        return
    assert not BEHIND_THE_DOOR & {module.split(".")[0] for module in imported(path)}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            owner = ast.unparse(node.value)
            private = owner.split(".")[0] == "torch" and not node.attr.endswith("__")
            assert not private, f"{owner}.{node.attr}"


# Enumeration, CSL and the bound for DBNs need the model itself. Every other estimator walks paths,
# or knows numbers only.
TAKE_A_MODEL = {"exact", "csl", "dbn_bound"}
WALKERS = [
    path
    for path in MODULES
    if room_of(path) == "paperlib.estimators" and path.stem not in {"__init__", *TAKE_A_MODEL}
]


@pytest.mark.parametrize("path", WALKERS, ids=lambda path: path.stem)
def test_estimators_that_walk_paths_know_no_model(path):
    models = [module for module in imported(path) if module.startswith("paperlib.models")]
    # files of tensors are no model
    assert set(models) <= {"paperlib.models.files"}


def test_every_room_is_known():
    rooms = {room_of(path) for path in MODULES}
    assert rooms - {"paperlib.__init__"} == set(FLOOR)


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
