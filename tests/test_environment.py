"""Dependencies: all are declared, and the same everywhere.

In pyproject.toml, constraints.txt, environment.yml and the workflows.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from itertools import chain
from pathlib import Path

import nbformat
import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TOOL = tomllib.loads((ROOT / "likelihood" / "pyproject.toml").read_text())["project"]
COMPANION = tomllib.loads((ROOT / "book/companion" / "pyproject.toml").read_text())["project"]
# What make, conda and the workflow install, with all extras.
INSTALLED = ((".", PROJECT), ("./likelihood", TOOL), ("./book/companion", COMPANION))
OWN = ("paperlib", "boltzmann_likelihood", "boltzmann_companion", "benchmarks")


def normalized(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pins():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def all_of(project):
    return [*project["dependencies"], *chain(*project["optional-dependencies"].values())]


# The first of the tool's is the library itself, and the first of the companion's is the tool.
REQUIREMENTS = [*map(Requirement, (*all_of(PROJECT), *all_of(TOOL)[1:], *all_of(COMPANION)[1:]))]


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.name)
def test_every_requirement_is_pinned_to_one_version_that_it_allows(requirement):
    pinned = {normalized(name): version for name, version in pins().items()}
    assert requirement.specifier.contains(pinned[normalized(requirement.name)])


@pytest.mark.parametrize("text", [*PROJECT["dependencies"], *TOOL["dependencies"][1:]])
def test_library_and_tool_give_lower_bounds_and_no_upper_ones(text):
    assert {bound.operator for bound in Requirement(text).specifier} == {">="}


# ---- imports


def imports(path):
    """The top-level name of every import outside the standard library."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for inner in node.body:  # only a type checker reads these
                inner.names = []
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.names:
            yield node.module.split(".")[0]


def foreign_imports(folder):
    ours = {*OWN, *sys.stdlib_module_names}
    for path in sorted((ROOT / folder).rglob("*.py")):
        for name in imports(path):
            if name not in ours:
                yield path.relative_to(ROOT), name


DISTRIBUTIONS = packages_distributions()


def declared(requirements):
    return {normalized(Requirement(text).name) for text in requirements}


def undeclared(imported, requirements):
    known = declared(requirements)
    return sorted(
        {
            f"{path}: {name}"
            for path, name in imported
            if not known & {normalized(package) for package in DISTRIBUTIONS.get(name, [name])}
        }
    )


@pytest.mark.parametrize(
    ("folder", "projects"),
    [
        ("paperlib", [PROJECT]),
        ("likelihood", [TOOL]),
        ("book/companion", [PROJECT, TOOL, COMPANION]),
        ("benchmarks", [PROJECT, TOOL]),
    ],
)
def test_every_import_is_declared(folder, projects):
    imported = list(foreign_imports(folder))
    assert len({name for _, name in imported}) >= 4
    assert undeclared(imported, [text for project in projects for text in all_of(project)]) == []


def test_an_undeclared_import_is_noticed():
    imported = [(Path("x.py"), "yaml"), (Path("x.py"), "jax")]
    assert undeclared(imported, ["PyYAML>=6"]) == ["x.py: jax"]


# ---- with less than the whole environment


BLOCK = """
import sys

class Blocked:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked)
if "triton" in {modules!r}:
    sys.modules["triton"] = None  # whoever looks for it finds none
"""


def run_without(modules, code, *arguments, **environment):
    """Run code in a process that cannot import these modules; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", BLOCK.format(modules=set(modules)) + code, *arguments],
        env=os.environ | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def installed_by(requirements):
    """The distributions that pip installs for these requirements, as far as they are here."""
    installed = set()
    todo = [Requirement(text) for text in requirements]
    while todo:
        requirement = todo.pop()
        name = normalized(requirement.name)
        marker = requirement.marker
        if name not in installed and (marker is None or marker.evaluate({"extra": ""})):
            try:
                todo += map(Requirement, distribution(name).requires or ())
                installed.add(name)
            except PackageNotFoundError:
                continue
    return installed


def others_than(requirements):
    """Top-level modules of this environment that these requirements would not bring along."""
    installed = installed_by(requirements)
    return {
        module
        for module, names in DISTRIBUTIONS.items()
        if not installed & set(map(normalized, names)) and module not in OWN
    }


def test_every_chapter_imports_without_extras_of_the_companion():
    tool, *dependencies = COMPANION["dependencies"]
    assert Requirement(tool).extras == {"plot"}
    fast = PROJECT["optional-dependencies"]["fast"]
    plot = TOOL["optional-dependencies"]["plot"]
    others = others_than(
        [*PROJECT["dependencies"], *fast, *TOOL["dependencies"], *plot, *dependencies]
    )
    assert others >= {"jupyter_book", "sphinx", "papermill", "nbformat", "playwright", "dask"}
    cells = (
        cell.source
        for path in sorted((ROOT / "book").glob("*.ipynb"))
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "code"
    )
    lines = {
        ast.unparse(node)
        for source in cells
        for node in ast.parse(source).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert len(lines) > 50
    run_without(others, "\n".join(sorted(lines)))


EVALUATE = """
import numpy, sys
from boltzmann_likelihood.evaluation import evaluate
from boltzmann_likelihood.evaluation.report import as_dict
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

file = numpy.load(sys.argv[1])
rbm = RBM(*(file[name] for name in ("weights", "visible_bias", "hidden_bias")))
effort = {"steps": 32, "tempering_steps": 5_000}
options = {"generator": seeded_generator(1), "progress": False}
print(as_dict(evaluate(rbm, file["draws"][:50], **effort, **options))["ladder"]["log_z"])
"""


IMPORT_ALL = """
import importlib, pkgutil, boltzmann_likelihood, paperlib
left_out = ("__main__", "kernels.cpu", "kernels.gpu")  # compiled functions
for package in (paperlib, boltzmann_likelihood):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not any(name in module.name for name in left_out):
            importlib.import_module(module.name)
            print(module.name)
"""


def test_modules_are_imported_and_a_model_is_evaluated_without_extras_and_compiler(
    monkeypatch, capsys
):
    """The numbers are those of the compiled kernels, which this process has, but for rounding."""
    others = others_than([*PROJECT["dependencies"], *TOOL["dependencies"]])
    assert others >= {"matplotlib", "IPython", "ipykernel", "h5py", "jupyter_book"}
    model = "data/planted/low-rank-100x80.npz"
    without = others | {"numba", "llvmlite", "sklearn", "triton"}
    printed = run_without(without, IMPORT_ALL + EVALUATE, model, PAPERLIB_KERNELS="reference")
    *modules, average = printed.splitlines()
    assert len(modules) > 100
    monkeypatch.setattr(sys, "argv", ["", str(ROOT / model)])
    exec(EVALUATE, {})
    assert float(average) == pytest.approx(float(capsys.readouterr().out), abs=1e-3)


# ---- the same in each file


def declared_pythons():
    return re.findall(
        r"^Programming Language :: Python :: (3\.\d+)$",
        "\n".join(PROJECT["classifiers"]),
        re.MULTILINE,
    )


def test_pins_carry_no_local_versions():
    assert [version for version in pins().values() if "+" in version] == []


# What conda-forge calls by another name than the package index.
CONDA = {
    "torch": "pytorch-cpu",
    "matplotlib": "matplotlib-base",
    "jupyter-client": "jupyter_client",
}
NOT_ON_CONDA_FORGE = {"sphinx-mathjax-offline"}


def test_conda_environment_is_what_the_book_needs_with_the_same_bounds():
    """And nothing of the tests: a reader on Binder waits for all of it."""
    extras = {name: project["optional-dependencies"] for name, project in INSTALLED}
    needed = [*PROJECT["dependencies"], *extras["."]["fast"], *TOOL["dependencies"][1:]]
    needed += [*extras["./likelihood"]["plot"], *COMPANION["dependencies"][1:]]
    needed += [*extras["./book/companion"]["lab"], *extras["./book/companion"]["book"]]
    expected = {
        f"{CONDA.get(normalized(r.name), normalized(r.name))}{r.specifier}"
        for r in map(Requirement, needed)
        if normalized(r.name) not in NOT_ON_CONDA_FORGE
    }
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *conda, last = environment["dependencies"]
    as_there = {str(Requirement(text)) for text in conda if ">=" in text}
    assert {str(Requirement(text)) for text in expected} == as_there
    assert {text for text in conda if ">=" not in text} == {"python=3.11", "make", "pip"}
    extras = ("fast", "plot", "lab,book")
    installed = {f"--editable {name}[{e}]" for (name, _), e in zip(INSTALLED, extras, strict=True)}
    assert set(last["pip"]) == NOT_ON_CONDA_FORGE | installed


FIRST = int(declared_pythons()[0].partition(".")[2])
LAST = int(declared_pythons()[-1].partition(".")[2])


@pytest.mark.parametrize(
    ("minor", "refused"), [(FIRST - 1, True), (FIRST, False), (LAST, False), (LAST + 1, True)]
)
def test_makefile_refuses_other_pythons_before_it_makes_anything(tmp_path, minor, refused):
    """With an interpreter that says it is this version, and that fails to make an environment."""
    python = tmp_path / "python"
    check = "import sys; sys.version_info = {}; exec(sys.argv[1])"
    python.write_text(
        f"#!/bin/sh\n[ $1 = -c ] && exec {sys.executable} -c '{check.format((3, minor))}' \"$2\"\n"
        "[ $1 = --version ] && echo Python of the test\nexit 3\n"
    )
    python.chmod(0o755)
    projects = [f"{folder}/pyproject.toml" for folder, _ in INSTALLED]
    for name in ("Makefile", "constraints.txt", *projects):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    command = ["make", "install", f"PYTHON={python}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ("expected Python 3.11, 3.12 or 3.13, got Python of the test" in done.stdout) == refused
    assert ("Installing the pinned packages" in done.stdout) != refused
    assert done.returncode == 2


def test_makefile_installs_all_extras_with_the_same_constraints():
    makefile = (ROOT / "Makefile").read_text()
    assert (
        "INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile"
        " -c constraints.txt --editable\n"
    ) in makefile
    for folder, project in INSTALLED:
        installed = re.findall(rf"'{folder}\[(.+?)\]'", makefile)
        assert {*",".join(installed).split(",")} == {*project["optional-dependencies"]}
    # whoever reads the book needs neither
    first = next(line for line in makefile.splitlines() if line.startswith("\t$(INSTALL)"))
    assert not re.search("lab|test", first)


# ---- the workflows


def workflow(name):
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())


def steps(content):
    return [step for job in content["jobs"].values() for step in job["steps"]]


WORKFLOW = workflow("book")
LIBRARY = workflow("library")


def test_both_workflows_pin_their_actions_by_commit():
    assert len(list((ROOT / ".github" / "workflows").iterdir())) == 2
    used = [step["uses"] for step in [*steps(WORKFLOW), *steps(LIBRARY)] if "uses" in step]
    assert used
    assert [name for name in used if not re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", name)] == []


def test_workflow_may_write_only_where_it_publishes():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert "permissions" not in WORKFLOW["jobs"]["build"]
    publish = WORKFLOW["jobs"]["publish"]
    assert publish["permissions"] == {"pages": "write", "id-token": "write"}
    assert publish["if"] == "github.event_name == 'push'"
    assert WORKFLOW[True]["push"]["branches"] == ["main"]  # YAML reads `on` as true


def test_workflow_runs_what_everyone_runs():
    assert [step["run"] for step in steps(WORKFLOW) if "run" in step] == [".ci/run"]
    commands = (ROOT / ".ci" / "run").read_text()
    for target in re.findall(r"^make (\w+)", commands, re.MULTILINE):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target


def test_library_is_tested_on_every_python_that_it_declares_each_week_too():
    declared = declared_pythons()
    assert {project["requires-python"] for _, project in INSTALLED} == {f">={declared[0]}"}
    assert LIBRARY["jobs"]["test"]["strategy"]["matrix"]["python"] == declared
    assert "schedule" in LIBRARY[True]
    assert LIBRARY["permissions"] == {"contents": "read"}
    commands = [step["run"] for step in steps(LIBRARY) if "run" in step]
    for folder, project in INSTALLED:
        assert f"'{folder}[{','.join(project['optional-dependencies'])}]'" in commands[0]
    assert not any("constraints" in command for command in commands)


def test_library_is_tested_by_what_make_test_runs_without_notebooks():
    """The folders that it leaves out have commands of their own."""
    (command,) = [step["run"] for step in steps(LIBRARY) if "-m pytest" in step.get("run", "")]
    makefile = (ROOT / "Makefile").read_text()
    both = (ROOT / ".ci/run").read_text()
    assert re.fullmatch(r"python -m pytest -n \d --dist worksteal", command)
    assert len(re.findall(r"-m pytest -n \d --dist worksteal$", makefile, re.MULTILINE)) == 1
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    for folder in settings["ini_options"]["norecursedirs"]:
        assert re.search(rf"-m pytest .*tests/{folder}$", makefile + both, re.MULTILINE)
