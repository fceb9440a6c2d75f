"""One set of pins: pyproject.toml, constraints.txt and environment.yml say the same."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def normalized(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pins():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_every_requirement_is_pinned_to_one_version():
    requirements = chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    # without the platforms for which they are
    wanted = [requirement.split(";")[0] for requirement in requirements]
    pinned = {normalized(name) for name in pins()}
    assert [name for name in wanted if normalized(name) not in pinned] == []


def test_pins_carry_no_local_versions_and_the_measured_ones():
    assert [version for version in pins().values() if "+" in version] == []
    assert pins()["torch"] == "2.13.0"
    assert pins()["sphinx-book-theme"] == "1.2.0"


def test_conda_environment_uses_the_same_pins_and_extras():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert "python=3.11" in environment["dependencies"]
    pip = next(item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    assert "--constraint constraints.txt" in pip
    extras = ",".join(PROJECT["optional-dependencies"])
    assert f"--editable .[{extras}]" in pip
    assert PROJECT["requires-python"] == ">=3.11,<3.12"


def test_makefile_installs_the_same_extras_with_the_same_constraints():
    makefile = (ROOT / "Makefile").read_text()
    extras = ",".join(PROJECT["optional-dependencies"])
    assert f"-c constraints.txt --editable '.[{extras}]'" in makefile


# ---- the workflow

WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text())
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]


def test_workflow_pins_its_actions_by_commit():
    used = [step["uses"] for step in STEPS if "uses" in step]
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
    assert [step["run"] for step in STEPS if "run" in step] == [".ci/run"]
    commands = (ROOT / ".ci" / "run").read_text()
    for target in re.findall(r"^make (\w+)", commands, re.MULTILINE):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target
