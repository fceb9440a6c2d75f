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


def go(tab, name, formulas=True):
    """Open a page of the book from disk, with its formulas typeset; without, where they do not matter, in half the time."""
    if not formulas:
        tab.route("**/mathjax/**", lambda route: route.abort())
    tab.goto(page_path(name).as_uri())
    if formulas:
        tab.evaluate("window.MathJax && window.MathJax.startup.promise")
    return tab
