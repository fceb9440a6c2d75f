"""Where the built book is, and how its pages are opened."""

from pathlib import Path

from paperlib.reproduction.book import toc_pages

ROOT = Path(__file__).parents[2]
HTML = ROOT / "_build" / "html"
PAGES = toc_pages(ROOT / "_toc.yml")


def page_path(name):
    path = HTML / f"{name}.html"
    assert path.is_file(), f"{path} is missing: run `make book` first"
    return path


def go(tab, name):
    """Open a page of the book from disk, with its formulas typeset."""
    tab.goto(page_path(name).as_uri())
    tab.evaluate("window.MathJax && window.MathJax.startup.promise")
    return tab
