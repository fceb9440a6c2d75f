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
    wanted = list(chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()))
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
