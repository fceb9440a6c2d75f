"""Where the built book is, and how its pages are opened."""

from pathlib import Path

import pytest
from sphinx_external_toc.parsing import parse_toc_yaml

from boltzmann_companion.build.runner import chapters

ROOT = Path(__file__).parents[2]
HTML = ROOT / "_build" / "html"
CHAPTERS = [f"book/{path.stem}" for path in chapters()]
# Chapters first, so that a page has the same place in each list: pytest then runs all tests of a
# page one after the other.
PAGES = sorted(parse_toc_yaml(ROOT / "_toc.yml"), key=lambda name: name not in CHAPTERS)

# Of a window, in pixels.
HEIGHT = 1000

#: For tests that take the fixture `tab`: pages that are opened once for all of them.
EACH_CHAPTER = pytest.mark.parametrize("page", CHAPTERS, indirect=True)
EACH_PAGE = pytest.mark.parametrize("page", PAGES, indirect=True)
EVERY_PAGE = pytest.mark.parametrize("page", [*PAGES, "search"], indirect=True)


def page_path(name):
    path = HTML / f"{name}.html"
    assert path.is_file(), f"{path} is missing: run `make book` first"
    return path


def go(tab, name, formulas=True):
    """Open a page of the book from disk, with its formulas typeset.

    Without formulas, where they do not matter, it takes half the time.
    """
    if not formulas:
        tab.route("**/mathjax/**", lambda route: route.abort())
    tab.goto(page_path(name).as_uri())
    if formulas:
        tab.evaluate("window.MathJax && window.MathJax.startup.promise")
    return tab


def resize(tab, width):
    """The window of a tab in another width."""
    tab.set_viewport_size({"width": width, "height": HEIGHT})


def switch(tab, theme):
    """The page in the theme light or dark, as its button switches it."""
    tab.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)


def set_aside(tab, selector):
    """Take elements out of the page until the next test."""
    tab.evaluate(
        """selector => {
        window.setAside = [...document.querySelectorAll(selector)].map(element => {
            const place = document.createComment('set aside');
            element.replaceWith(place);
            return [place, element];
        });
        }""",
        selector,
    )
