"""A headless Chromium, and pages of the built book in it. Needs `make book` first, and Chromium (Debian: `apt-get install chromium`)."""

import shutil

import pytest
from playwright.sync_api import sync_playwright

# Without these Chromium tries to reach its maker's hosts at every start.
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
        running = playwright.chromium.launch(executable_path=executable, args=QUIET)
        yield running
        running.close()


@pytest.fixture
def new_tab(browser):
    """Opens a tab of a width; complaints of the browser collect in its `.problems`."""
    contexts = []

    def open_(width=1400):
        contexts.append(browser.new_context(viewport={"width": width, "height": 1000}))
        tab = contexts[-1].new_page()
        tab.problems = []
        tab.on("console", lambda m: m.type == "error" and tab.problems.append(m.text))
        tab.on("pageerror", lambda error: tab.problems.append(str(error)))
        tab.on("requestfailed", lambda r: tab.problems.append(f"failed: {r.url}"))
        tab.on(
            "request",
            lambda r: (
                r.url.startswith(("file:", "data:", "blob:"))
                or tab.problems.append(f"asks another host: {r.url}")
            ),
        )
        return tab

    yield open_
    for context in contexts:
        context.close()
