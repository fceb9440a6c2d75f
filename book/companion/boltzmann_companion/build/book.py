"""Building the book from executed chapters: stage the sources, build with warnings as errors, check the pages.

A page shows more than its notebook: it tells how to run the chapter, and names below every figure its record and the command that
reproduces it. Each cell that checks claims is folded to one line, a folded cell that shows nothing is joined to the next, tables with a
caption are numbered, and the glossary's terms are entered in the index. The notebook that a reader downloads from the page has none of
these additions.
"""

from __future__ import annotations

import copy
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
import yaml

from boltzmann_companion.build.glossary import add_index_entries, defining_chapters
from boltzmann_companion.build.runner import chapters, copy_for_the_book
from boltzmann_companion.build.status import records_table, status_table
from boltzmann_companion.claims.checks import AS_SAID, NOT_AS_SAID, OWN_SETTINGS
from boltzmann_companion.records import load_result, read_record, source_line
from boltzmann_likelihood.provenance import repository_state
from paperlib import __version__, storage
from paperlib.errors import ReproductionError

# A cell that papermill adds although it only repeats the chapter's own parameters.
_SAYS_NOTHING = '# Parameters\nprofile = "digits"'
# The picture of a record in a chapter's text, up to the end of its caption.
_STORED_FIGURE = re.compile(
    r"^```\{figure\} \.\./figures/(?P<profile>\w+)/(?P<name>[\w-]+)\.\w+\n.*?(?=\n```$)",
    re.MULTILINE | re.DOTALL,
)
# The end of a claim that `Chapter.check` prints.
_CHECKED = re.compile(
    rf": (yes|no{AS_SAID}|(?:yes|no)(?:{NOT_AS_SAID}|{re.escape(OWN_SETTINGS)}))$", re.MULTILINE
)
_RUN_BOX = """\
:::{{dropdown}} Run this chapter
:class-container: run-this-chapter
<a href="../_sources/book/{name}.ipynb" download>Download the notebook</a> and open it in Jupyter, with the book's packages installed: {{doc}}`running` says how.
Its settings are in the cell below.
Or execute a copy in a clone of the repository, with a setting of your own if you like:
```console
paperlib reproduce --only {number}
paperlib reproduce --only {number} --set {setting}
```
Or upload the notebook to [Colab](https://colab.research.google.com/), where its first code cell installs them from <REPOSITORY_URL>.
:::"""
# The first setting that a chapter suggests, other than its profile and its seed.
_TO_TRY = re.compile(
    r"^## What to try\n.*?^- [^\n]*?`(?!profile|seed)(\w+) = ([^`]+)`", re.MULTILINE | re.DOTALL
)
# What stands in a page for the address of the repository.
_ADDRESS = "REPOSITORY_URL"
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


def build_book(profile: str) -> Path:
    """Build the HTML book from the executed copies of the chapters instead of the committed ones.

    Parameters
    ----------
    profile : str
        Profile whose executed copies are used; each chapter must have one.

    Returns
    -------
    Path
        `_build/html/index.html`.

    Raises
    ------
    ReproductionError
        If a chapter has not been executed with its own parameters, the build warns or fails, or a page of the table of contents is missing.
    """
    root = storage.repository_root()
    source = root / "_build" / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(root / "book", source / "book", ignore=shutil.ignore_patterns(".*"))
    shutil.copytree(root / "figures", source / "figures")
    shutil.copy(root / "_toc.yml", source)
    # Sphinx puts its index in place of this page; without the page, the table of contents could not list the index.
    (source / "genindex.md").write_text("# Index\n")
    terms = defining_chapters((root / "book" / "glossary.md").read_text(encoding="utf-8"))
    config = yaml.safe_load((root / "_config.yml").read_text())
    config = with_repository(config, os.environ)
    repository = config["repository"]
    (source / "_config.yml").write_text(yaml.safe_dump(with_footer(config, *repository_state())))
    for text in (source / "book").glob("*.md"):
        text.write_text(with_address(text.read_text(encoding="utf-8"), repository["url"]))
    downloads, claims = {}, {}
    for chapter in chapters():
        notebook = copy_for_the_book(chapter, profile)
        notebook.cells = [cell for cell in notebook.cells if cell.source.strip() != _SAYS_NOTHING]
        downloads[chapter.name] = as_download(notebook, **repository)
        claims[chapter.stem, profile] = claims_checked(notebook)
        page = as_page(notebook, chapter.stem, profile, repository["url"])
        add_index_entries(page, chapter.stem, terms)
        nbformat.write(page, source / "book" / chapter.name)
    records = [read_record(path) for path in sorted((root / "figures").glob("*/*.json"))]
    with (source / "book" / "status.md").open("a", encoding="utf-8") as status:
        status.write(status_table(records, claims) + records_table(records))
    # The module has no __main__: `python -m jupyter_book.cli.main` would build nothing and report success.
    # Half of the build would go into looking for garbage, while the pages live to its end: it takes 1.9 GB instead of 0.6.
    start = "import gc; gc.disable(); from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", start, "build", str(source)]
    command += ["--path-output", str(root), "--all", "-W", "-n", "--keep-going", "-q"]
    if subprocess.run(command, cwd=root).returncode != 0:
        raise ReproductionError(
            "the book's build reported errors or warnings; they are printed above"
        )
    html = root / "_build" / "html"
    missing = [
        page for page in toc_pages(root / "_toc.yml") if not (html / f"{page}.html").is_file()
    ]
    if missing:
        raise ReproductionError(f"pages of the table of contents are missing: {', '.join(missing)}")
    for name, notebook in downloads.items():
        nbformat.write(notebook, html / "_sources" / "book" / name)
    return html / "index.html"


def as_page(
    notebook: nbformat.NotebookNode, chapter: str, profile: str, url: str = ""
) -> nbformat.NotebookNode:
    """A copy of an executed chapter with the additions that only its page shows.

    Parameters
    ----------
    notebook : NotebookNode
        The executed chapter.
    chapter : str
        Its name, without suffix.
    profile : str
        Profile of the records that its figures belong to.
    url : str
        Address of the repository, or nothing.
    """
    page = copy.deepcopy(notebook)
    page.cells = _without_empty_folds(page.cells)
    for cell in page.cells:
        figure = cell.metadata.get("mystnb", {}).get("figure")
        record = _record_of_figure(cell, profile) if figure else None
        if record is not None:
            figure["caption"] += " " + source_line(record)
        if cell.cell_type == "markdown":
            cell.source = _STORED_FIGURE.sub(_with_source, cell.source)
        elif "checks" in cell.metadata.get("tags", []):
            _count_checks(cell)
        elif "table" in cell.metadata.get("paperlib", {}):
            _number_table(cell, **cell.metadata["paperlib"]["table"])
    tags = [cell.metadata.get("tags", []) for cell in page.cells]
    text = "\n".join(cell.source for cell in page.cells if cell.cell_type == "markdown")
    found = _TO_TRY.search(text)
    setting = f"{found[1]}={found[2]}".replace(" ", "") if found else "seed=1"
    number = chapter.split("-")[0]
    box = with_address(_RUN_BOX.format(name=chapter, number=number, setting=setting), url)
    place = next(index for index, names in enumerate(tags) if "parameters" in names)
    page.cells.insert(place, nbformat.v4.new_markdown_cell(box))
    return page


def _without_empty_folds(cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """The cells, of which a folded one that shows nothing is joined to the folded one below: each line to unfold then shows something."""
    joined: list[nbformat.NotebookNode] = []
    for cell in cells:
        above = joined[-1] if joined else None
        if above is not None and _is_folded(above) and _is_folded(cell) and not above.outputs:
            cell.source = f"{above.source}\n\n\n{cell.source}"
            joined.pop()
        joined.append(cell)
    return joined


def _is_folded(cell: nbformat.NotebookNode) -> bool:
    """Whether a page folds the code of a cell; one of checks folds to a line of its own."""
    tags = set(cell.metadata.get("tags", []))
    return bool(tags & {"hide-input", "hide-cell"}) and "checks" not in tags


def _count_checks(cell: nbformat.NotebookNode) -> None:
    """Make the line to which a cell of checks is folded say how many claims it has checked."""
    count = _verdicts_in(cell).total()
    prompt = f"Checked: {count} claim{'' if count == 1 else 's'}"
    cell.metadata.setdefault("mystnb", {}).update(code_prompt_show=prompt, code_prompt_hide=prompt)


def claims_checked(notebook: nbformat.NotebookNode) -> Counter[str]:
    r"""How many claims an executed chapter has checked, by the answer: `yes`, `no, as the text says`, or another.

    Examples
    --------
    >>> printed = nbformat.v4.new_output("stream", text="it holds: yes\n")
    >>> cell = nbformat.v4.new_code_cell("", outputs=[printed], metadata={"tags": ["checks"]})
    >>> claims_checked(nbformat.v4.new_notebook(cells=[cell]))
    Counter({'yes': 1})
    """
    checks = (cell for cell in notebook.cells if "checks" in cell.metadata.get("tags", []))
    return sum(map(_verdicts_in, checks), Counter())


def _verdicts_in(cell: nbformat.NotebookNode) -> Counter[str]:
    printed = "".join(output.get("text", "") for output in cell.outputs)
    return Counter(_CHECKED.findall(printed))


def as_download(notebook: nbformat.NotebookNode, url: str, branch: str) -> nbformat.NotebookNode:
    """A copy of a chapter for readers to download: with the address of the repository, a cell below the title installs the packages on Colab.

    Parameters
    ----------
    notebook : NotebookNode
        The executed chapter.
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


def _number_table(cell: nbformat.NotebookNode, caption: str, name: str) -> None:
    """Give a cell's only table a caption, so that the page numbers it, and a name for references."""
    for output in cell.outputs:
        markdown = output.get("data", {}).get("text/markdown", "")
        if markdown.startswith("|"):
            table, blank, source = markdown.partition("\n\n")
            # Colons, because a caption that contains a role could not follow backticks.
            numbered = f":::{{table}} {caption}\n:name: {name}\n\n{table}\n:::"
            output.data["text/markdown"] = numbered + blank + source


def _with_source(figure: re.Match[str]) -> str:
    record = load_result(figure["name"], figure["profile"])
    return figure[0] if record is None else f"{figure[0]}\n{source_line(record)}"


def _record_of_figure(cell: nbformat.NotebookNode, profile: str) -> dict[str, Any] | None:
    """The record that a cell has saved with its figure, found by the name in the output's metadata."""
    for output in cell.get("outputs", []):
        if "paperlib" in output.get("metadata", {}):
            return load_result(output.metadata["paperlib"]["record"], profile)
    return None


def with_repository(config: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """The book's settings, with links to its repository and buttons that open a chapter on Binder if the address is known.

    Parameters
    ----------
    config : dict
        `_config.yml`. The address is `repository: url` or, if that is empty, that of the GitHub workflow that builds the book.
    environment : mapping
        Environment variables.
    """
    config = copy.deepcopy(config)
    repository = config["repository"]
    branch = repository["branch"]
    if not repository["url"] and "GITHUB_REPOSITORY" in environment:
        server = environment.get("GITHUB_SERVER_URL", "https://github.com")
        repository["url"] = f"{server}/{environment['GITHUB_REPOSITORY']}"
        # The exact commit, so that the button opens what the page shows.
        repository["branch"] = environment.get("GITHUB_SHA", branch)
    if repository["url"]:
        # Jupyter Book would do this itself if the book did not set other options of the theme.
        config["sphinx"]["config"]["html_theme_options"] |= {
            "repository_url": repository["url"],
            "repository_branch": repository["branch"],
            "use_repository_button": True,
            "use_edit_page_button": True,
            "use_issues_button": True,
            "launch_buttons": config["launch_buttons"],
        }
        # A page is edited on its branch, even if it was built from a commit.
        config["sphinx"]["config"]["html_context"] |= {
            "edit_page_provider_name": "GitHub",
            "edit_page_url_template": f"{repository['url']}/edit/{branch}/{{{{ file_name }}}}",
        }
    return config


def with_address(text: str, url: str) -> str:
    r"""A page with the address of its repository where it says REPOSITORY_URL; without an address, such lines are left out.

    Parameters
    ----------
    text : str
        The page's source.
    url : str
        The address, or nothing.

    Examples
    --------
    >>> with_address("git clone REPOSITORY_URL\nmake install", "https://example.org/a/b")
    'git clone https://example.org/a/b\nmake install'
    >>> with_address("git clone REPOSITORY_URL\nmake install", "")
    'make install'
    """
    lines = text.splitlines(keepends=True)
    return "".join(line.replace(_ADDRESS, url) for line in lines if url or _ADDRESS not in line)


def with_footer(config: dict[str, Any], commit: str | None, dirty: bool | None) -> dict[str, Any]:
    """The book's settings, with version, commit and date at the foot of every page.

    Parameters
    ----------
    config : dict
        From `with_repository`.
    commit, dirty
        From `boltzmann_likelihood.provenance.repository_state`.
    """
    config = copy.deepcopy(config)
    built = f"Version {__version__}"
    if commit is not None:
        url, name = config["repository"]["url"], commit[:9]
        built += ", commit " + (f'<a href="{url}/commit/{commit}">{name}</a>' if url else name)
        built += " with changes" if dirty else ""
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    config["sphinx"]["config"]["html_theme_options"]["extra_footer"] = f"{built}, built on {day}"
    return config


def toc_pages(toc: Path) -> list[str]:
    """Every page of a table of contents, without suffixes.

    Parameters
    ----------
    toc : Path
        A `_toc.yml`.
    """

    def files(chapters: list[dict[str, Any]]) -> list[str]:
        return [
            page
            for chapter in chapters
            for page in (chapter["file"], *files(chapter.get("sections", [])))
        ]

    contents = yaml.safe_load(toc.read_text())
    return [
        contents["root"],
        *(page for part in contents["parts"] for page in files(part["chapters"])),
    ]
