"""A headless Chromium, and pages of the built book in it.

Needs `make book` first, and Chromium (Debian: `apt-get install chromium`).
"""

import shutil

import pytest
from built_book import HEIGHT, go
from playwright.sync_api import sync_playwright

# Milliseconds to wait for anything on a page. Only a defect takes so long.
PATIENCE = 600_000
# Arguments for Chromium; without most of them it tries to reach its maker's hosts at every start.
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    assert executable, "expected Chromium on the path"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=executable, args=QUIET, timeout=PATIENCE
        )
        yield running
        running.close()


def open_tab(browser, width):
    """A tab; complaints of the browser collect in its `.problems`."""
    tab = browser.new_context(viewport={"width": width, "height": HEIGHT}).new_page()
    tab.set_default_timeout(PATIENCE)
    tab.problems = []

    def on_console(message):
        if message.type == "error":
            tab.problems.append(message.text)

    def on_request(request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            tab.problems.append(f"asks another host: {request.url}")

    tab.on("console", on_console)
    tab.on("request", on_request)
    tab.on("pageerror", lambda error: tab.problems.append(str(error)))
    tab.on("requestfailed", lambda request: tab.problems.append(f"failed: {request.url}"))
    return tab


@pytest.fixture
def new_tab(browser):
    """Opens tabs of a width."""
    tabs = []

    def open_(width=1400):
        tabs.append(open_tab(browser, width))
        return tabs[-1]

    yield open_
    for tab in tabs:
        tab.context.close()


@pytest.fixture(scope="session")
def page(browser, request):
    """A page of the book, opened once for all tests that look at it.

    Most of their time is that of typesetting its formulas.
    """
    tab = open_tab(browser, 1400)
    # what unfolds would fade in, and be measured half-way
    tab.emulate_media(reduced_motion="reduce")
    go(tab, request.param)
    tab.evaluate("document.querySelectorAll('details').forEach(d => d.dataset.found = d.open)")
    tab.problems_at_load = tab.problems.copy()
    yield tab
    tab.context.close()


@pytest.fixture
def tab(page):
    """The page as a reader finds it, whatever the test before has done with it."""
    page.emulate_media(media="screen", reduced_motion="reduce")
    page.set_viewport_size({"width": 1400, "height": HEIGHT})
    page.evaluate(
        """() => {
        dispatchEvent(new Event('afterprint'));
        for (const [place, element] of window.setAside ?? []) place.replaceWith(element);
        window.setAside = [];
        scrollTo(0, 0);
        document.documentElement.dataset.theme = 'light';
        document.querySelectorAll('details').forEach(d => d.open = d.dataset.found === 'true');
        document.querySelectorAll('[data-look]').forEach(e => delete e.dataset.look);
        }"""
    )
    page.problems.clear()
    return page
