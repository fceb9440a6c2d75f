"""Where the book's repository is, and what pages offer of it.

The address is `repository: url` in `_config.yml` or, if that is empty, that of the GitHub workflow
that builds the book. Without an address no page refers to one.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms import SphinxTransform

from boltzmann_companion.build.runner import shown_notebook
from boltzmann_likelihood.provenance import repository_state
from paperlib import __version__

_ON_COLAB = """\
# Installs the book's packages on Colab, and does nothing elsewhere.
import sys

if "google.colab" in sys.modules:
    %pip install --quiet {packages}"""
# The names by which pip knows the three packages, and where each is in the repository.
_PACKAGES = {
    "boltzmann-paperlib": "",
    "boltzmann-likelihood": "#subdirectory=likelihood",
    "boltzmann-companion": "#subdirectory=book/companion",
}


def describe_book(app: Sphinx, config: Config) -> None:
    """Add to the settings the links to the repository, and what the foot of a page says.

    Parameters
    ----------
    app, config
        As Sphinx passes them to listeners of `config-inited`; the settings are changed.
    """
    options, context = with_repository(config.html_theme_options, os.environ)
    options["extra_footer"] = footer(options["repository_url"], *repository_state())
    config.html_theme_options = options
    config.html_context = config.html_context | context


def with_repository(
    options: Mapping[str, Any], environment: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Options of the theme with links to the repository and buttons that open a chapter on Binder, if the address is known.

    Parameters
    ----------
    options : mapping
        Options that Jupyter Book has made of `_config.yml`.
    environment : mapping
        Environment variables.

    Returns
    -------
    options, context : dict
        The options, and what Sphinx has to know for the button that edits a page.
    """
    options = dict(options)
    branch = options["repository_branch"]
    if not options["repository_url"] and "GITHUB_REPOSITORY" in environment:
        server = environment.get("GITHUB_SERVER_URL", "https://github.com")
        options["repository_url"] = f"{server}/{environment['GITHUB_REPOSITORY']}"
        # The exact commit, so that the button opens what the page shows.
        options["repository_branch"] = environment.get("GITHUB_SHA", branch)
    url = options["repository_url"]
    if not url:
        del options["launch_buttons"]
        return options, {}
    for button in ("repository", "edit_page", "issues"):
        options[f"use_{button}_button"] = True
    # A page is edited on its branch, even if it was built from a commit.
    template = f"{url}/edit/{branch}/{{{{ file_name }}}}"
    return options, {"edit_page_provider_name": "GitHub", "edit_page_url_template": template}


def footer(url: str, commit: str | None, dirty: bool | None) -> str:
    """Version, commit and date, as the foot of every page says them.

    Parameters
    ----------
    url : str
        Address of the repository, or nothing.
    commit, dirty
        From `boltzmann_likelihood.provenance.repository_state`.
    """
    built = f"Version {__version__}"
    if commit is not None:
        name = commit[:9]
        built += ", commit " + (f'<a href="{url}/commit/{commit}">{name}</a>' if url else name)
        built += " with changes" if dirty else ""
    return f"{built}, built on {datetime.now(UTC):%Y-%m-%d}"


class CitedAddress(SphinxTransform):
    """Gives the BibTeX entry of the book its address, if that is known."""

    default_priority = 300

    def apply(self, **kwargs: Any) -> None:
        """Add a line above the last one of the entry."""
        url = self.config.html_theme_options["repository_url"]
        for code in self.document.findall(nodes.literal_block):
            if url and code.get("language") == "bibtex":
                *lines, year, end = code.astext().splitlines()
                code.rawsource = "\n".join([*lines, f"  url     = {{{url}}},", year, end])
                code[:] = [nodes.Text(code.rawsource)]


def as_download(notebook: NotebookNode, url: str, branch: str) -> NotebookNode:
    """A copy of a chapter for readers to download: with the address of the repository, a cell below the title installs the packages on Colab.

    Parameters
    ----------
    notebook : NotebookNode
        The chapter as its page shows it.
    url, branch : str
        Of the repository; an empty address adds nothing.
    """
    notebook = copy.deepcopy(notebook)
    if url:
        packages = " ".join(
            f'"{name} @ git+{url}@{branch}{folder}"' for name, folder in _PACKAGES.items()
        )
        cell = nbformat.v4.new_code_cell(
            _ON_COLAB.format(packages=packages), metadata={"tags": ["colab"]}
        )
        notebook.cells.insert(1, cell)
    return notebook


def write_downloads(app: Sphinx, exception: Exception | None) -> None:
    """Put the chapters as their pages show them in the place of the files that Sphinx offers for download.

    Parameters
    ----------
    app, exception
        As Sphinx passes them to listeners of `build-finished`.
    """
    if exception is not None or app.builder.name != "html":
        return
    options = app.config.html_theme_options
    repository = {name: options[f"repository_{name}"] for name in ("url", "branch")}
    for docname in app.env.found_docs:
        path = Path(app.env.doc2path(docname))
        if path.suffix == ".ipynb":
            notebook = shown_notebook(path, app.config.paperlib_executed)
            target = Path(app.outdir, "_sources", f"{docname}.ipynb")
            nbformat.write(as_download(notebook, **repository), target)
