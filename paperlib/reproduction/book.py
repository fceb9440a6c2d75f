"""Building the book from executed chapters: stage the sources, build with warnings as errors, check the pages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from paperlib import storage
from paperlib.reproduction import ReproductionError
from paperlib.reproduction.runner import chapters, executed_path


def build_book(profile: str) -> Path:
    """Build the HTML book with the executed copies of the chapters in the place of the committed ones.

    Parameters
    ----------
    profile : str
        Whose executed copies; each chapter must have one.

    Returns
    -------
    Path
        `_build/html/index.html`.

    Raises
    ------
    ReproductionError
        If a chapter has not been executed, the build warns or fails, or a page of the table of contents is missing.
    """
    root = storage.repository_root()
    source = root / "_build" / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(root / "book", source / "book", ignore=shutil.ignore_patterns(".*"))
    shutil.copytree(root / "figures", source / "figures")
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(root / name, source / name)
    for chapter in chapters():
        executed = executed_path(chapter, profile)
        if not executed.is_file():
            raise ReproductionError(
                f"{chapter.stem} has not been executed; run `paperlib reproduce --profile {profile}`"
            )
        shutil.copy(executed, source / "book" / chapter.name)
    # The module has no __main__: `python -m jupyter_book.cli.main` would build nothing and report success.
    start = "from jupyter_book.cli.main import main; main()"
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
    return html / "index.html"


def toc_pages(toc: Path) -> list[str]:
    """Every page of a table of contents, without suffixes."""
    pages: list[str] = []

    def walk(node: object) -> None:
        if isinstance(node, dict):
            pages.extend(str(node[key]) for key in ("root", "file") if key in node)
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for item in node:
                walk(item)

    walk(yaml.safe_load(toc.read_text()))
    return pages
