"""A release says one thing about itself, wherever it says it: version, date, authors, address."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import paperlib
from boltzmann_likelihood import provenance

ROOT = Path(__file__).parents[1]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TOOL = tomllib.loads((ROOT / "likelihood" / "pyproject.toml").read_text())
COMPANION = tomllib.loads((ROOT / "book/companion" / "pyproject.toml").read_text())


# ---- the version


def test_the_version_is_written_once_and_cited_alike():
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "paperlib.__version__"}
    # Their source distributions are without the library.
    for one in (TOOL, COMPANION):
        assert one["project"]["version"] == paperlib.__version__
    assert CITATION["version"] == paperlib.__version__
    # the other dependencies have lower bounds
    library, *_ = TOOL["project"]["dependencies"]
    assert library == f"boltzmann-paperlib[fast]=={paperlib.__version__}"
    tool, *_ = COMPANION["project"]["dependencies"]
    assert tool == f"boltzmann-likelihood[plot]=={paperlib.__version__}"


def test_changelog_begins_with_this_version_and_the_date_of_the_citation():
    text = (ROOT / "CHANGELOG.md").read_text()
    version, date = re.search(r"^## \[([\w.]+)\] - (\S+)$", text, re.MULTILINE).groups()
    assert version == paperlib.__version__
    assert date in ("unreleased", str(CITATION["date-released"]))


@pytest.mark.parametrize(
    ("state", "name"),
    [
        ((None, None), ""),
        (("0123456789abcdef", False), ", commit 012345678"),
        (("0123456789abcdef", True), ", commit 012345678 with changes"),
    ],
)
def test_code_is_named_by_version_and_commit(monkeypatch, state, name):
    monkeypatch.setattr(provenance, "repository_state", lambda: state)
    assert provenance.code_version() == f"paperlib {paperlib.__version__}{name}"


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


def test_the_page_cites_as_readme_does():
    """The address apart, which the book's build adds if it is known."""
    readme, page = (
        re.search(r"```bibtex\n(.*?)```", path.read_text(), re.DOTALL)[1]
        for path in (ROOT / "README.md", ROOT / "book" / "intro.md")
    )
    assert page.splitlines() == [
        line for line in readme.splitlines() if not line.startswith("  url")
    ]


# ---- the address


def addresses(root):
    """Where the repository is, by each file that a program or a reader takes the address from."""
    config = yaml.safe_load((root / "_config.yml").read_text())
    citation = yaml.safe_load((root / "CITATION.cff").read_text())
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    url = re.search(r"^  url +=\s*\{(.*)\},$", (root / "README.md").read_text(), re.MULTILINE)
    return {
        "_config.yml, repository: url": config["repository"]["url"],
        "CITATION.cff, repository-code": citation.get("repository-code", ""),
        "pyproject.toml, [project.urls] Repository": project.get("urls", {}).get("Repository", ""),
        "README.md, url of the BibTeX entry": url[1] if url else "",
    }


def test_the_address_of_the_settings_is_in_every_other_file_or_in_none():
    places = addresses(ROOT)
    assert set(places.values()) == {
        yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]
    }, places
