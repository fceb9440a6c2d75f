"""Where the book's repository is, and what pages say and offer of it.

The address is `repository: url` in `_config.yml` or, if that is empty, that of the GitHub workflow
that builds the book. Without an address no page refers to one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from boltzmann_likelihood.provenance import repository_state
from paperlib import __version__


def setup(app: Sphinx) -> None:
    """Listen to the events of a build."""
    app.connect("config-inited", _describe_book)
    app.connect("doctree-read", _cite_address)


def _describe_book(app: Sphinx, config: Config) -> None:
    """Set the links to the repository, and what the foot of a page says."""
    options, context = _with_repository(config.html_theme_options, os.environ)
    options["extra_footer"] = _footer(options["repository_url"], *repository_state())
    config.html_theme_options = options
    config.html_context = config.html_context | context


def _with_repository(
    options: Mapping[str, Any], environment: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The theme's options and its context, with links and buttons if the address is known."""
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


def _footer(url: str, commit: str | None, dirty: bool | None) -> str:
    """Version, commit and date."""
    built = f"Version {__version__}"
    if commit is not None:
        name = commit[:9]
        built += ", commit " + (f'<a href="{url}/commit/{commit}">{name}</a>' if url else name)
        built += " with changes" if dirty else ""
    return f"{built}, built on {datetime.now(UTC):%Y-%m-%d}"


def _cite_address(app: Sphinx, doctree: nodes.document) -> None:
    """Add the address, if it is known, to the BibTeX entry of the book."""
    url = app.config.html_theme_options["repository_url"]
    for code in doctree.findall(nodes.literal_block):
        if url and code.get("language") == "bibtex":
            *lines, year, end = code.astext().splitlines()
            code.rawsource = "\n".join([*lines, f"  url     = {{{url}}},", year, end])
            code[:] = [nodes.Text(code.rawsource)]
