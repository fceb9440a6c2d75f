"""A release says one thing about itself, wherever it says it: version, date, authors, address."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import paperlib
from paperlib import provenance

ROOT = Path(__file__).parents[1]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


# ---- the version


def test_the_version_is_written_once_and_cited_alike():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "paperlib.__version__"}
    assert CITATION["version"] == paperlib.__version__


def test_changelog_begins_with_this_version_and_the_date_of_the_citation():
    text = (ROOT / "CHANGELOG.md").read_text()
    version, date = re.search(r"^## \[([\w.]+)\] - (\S+)$", text, re.MULTILINE).groups()
    assert version == paperlib.__version__
    assert date in ("unreleased", str(CITATION["date-released"]))


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ((None, None), ""),
        (("0123456789abcdef", False), ", commit 012345678"),
        (("0123456789abcdef", True), ", commit 012345678 with changes"),
    ],
)
def test_code_is_named_by_version_and_commit(monkeypatch, state, said):
    monkeypatch.setattr(provenance, "repository_state", lambda: state)
    assert provenance.code_version() == f"paperlib {paperlib.__version__}{said}"


# ---- the citation


def test_archive_cites_the_same_authors_title_and_licence():
    archived = json.loads((ROOT / ".zenodo.json").read_text())
    names = [author["name"] for author in CITATION["authors"]]
    assert [creator["name"] for creator in archived["creators"]] == names
    assert (archived["title"], archived["license"]) == (CITATION["title"], CITATION["license"])
    # taken from the release
    assert "version" not in archived


def test_no_doi_is_made_up():
    assert re.fullmatch(r"10\.\d{4,9}/\S+[^.]", CITATION.get("doi", "10.1234/none"))
