"""Every page of the built book in a real browser, wide and narrow.

It needs nothing from outside, and nothing is cut off.
"""

import re
from pathlib import Path
from urllib.parse import unquote, urljoin, urlparse

import pytest
from bs4 import BeautifulSoup
from built_book import EACH_PAGE, PAGES, go, page_path, resize, switch

# A page costs a reader 0.05 seconds for each thousand of its elements, formulas included; the
# longest chapter has 25,000.
MOST_ELEMENTS = 40_000


@EACH_PAGE
@pytest.mark.parametrize("width", [1400, 400])
def test_page_is_whole(tab, width):
    resize(tab, width)
    assert tab.problems_at_load == []
    # it is shown in two seconds: counted, since a measured time would include other work
    assert tab.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS
    # formulas: every source element was typeset, none as an error
    sources = tab.locator(".math").count()
    assert tab.locator("mjx-container").count() >= sources
    assert tab.locator("mjx-merror, merror").count() == 0
    # nothing is wider than the window: what is wide scrolls inside its own box
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")
    cut_off = tab.evaluate(
        """() => [...document.querySelectorAll(
            'article table, article pre, article img, article mjx-container[display]'
        )].filter(element => {
            if (element.getBoundingClientRect().right <= window.innerWidth + 1) return false;
            for (let box = element; box; box = box.parentElement)
                if (['auto', 'scroll'].includes(getComputedStyle(box).overflowX)) return false;
            return true;
        }).map(element => element.outerHTML.slice(0, 80))"""
    )
    assert cut_off == []
    # images: loaded; `test_accessibility` sees that they are described
    tab.evaluate("document.querySelectorAll('img').forEach(image => image.loading = 'eager')")
    tab.wait_for_function("[...document.images].every(image => image.complete)")
    assert (
        tab.evaluate("[...document.images].filter(i => i.src && !i.naturalWidth).map(i => i.src)")
        == []
    )
    assert tab.problems == []
    # markup that was not understood
    text = tab.locator("article").inner_text()
    for raw in ("```", "{cite", "{eq}", "{doc}", "{numref}", "{prf:", "$$", ":label:", "Traceback"):
        assert raw not in text, raw


# Formulas of which a part can neither be seen nor scrolled to: wider than a box that cuts off what
# does not fit.
CLIPPED_FORMULAS = """() => [
    ...document.querySelectorAll('article mjx-container > mjx-math')
].filter(formula => {
    const { left, right, width } = formula.getBoundingClientRect();
    for (let box = formula.parentElement; width && box !== document.body; box = box.parentElement) {
        const { overflowX } = getComputedStyle(box), edges = box.getBoundingClientRect();
        if (['auto', 'scroll'].includes(overflowX)) return false;
        const sticksOut = right > edges.right + 1 || left < edges.left - 1;
        if (overflowX !== 'visible' && sticksOut) return true;
    }
    return right > window.innerWidth + 1;
}).map(formula => formula.parentElement.innerText.slice(0, 80))"""


@EACH_PAGE
@pytest.mark.parametrize("width", [800, 360])
def test_no_formula_is_clipped(tab, width):
    """Also not in what unfolds."""
    resize(tab, width)
    tab.evaluate("document.querySelectorAll('details').forEach(folded => folded.open = true)")
    tab.evaluate(
        "document.querySelectorAll('.toggle-hidden')"
        ".forEach(box => box.classList.remove('toggle-hidden'))"
    )
    assert tab.evaluate(CLIPPED_FORMULAS) == []


def test_a_clipped_formula_would_be_noticed(new_tab):
    tab = go(new_tab(360), "book/02-markov-chains-and-gibbs-sampling")
    tab.add_style_tag(content="article .math, article .math > * { overflow: hidden !important; }")
    assert len(tab.evaluate(CLIPPED_FORMULAS)) > 5


def test_what_scrolls_shows_on_which_side_there_is_more(new_tab):
    tab = go(new_tab(360), "book/02-markov-chains-and-gibbs-sampling")
    formula = tab.locator(".more-right").first
    formula.scroll_into_view_if_needed()
    formula.evaluate("box => { window.watched = box; box.scrollLeft = 1e6; }")
    tab.wait_for_function(
        "watched.matches('.more-left:not(.more-right)')"
        " && getComputedStyle(watched).maskImage !== 'none'"
    )
    assert tab.problems == []


def test_a_numbered_formula_shows_it_in_a_window_made_narrow(new_tab):
    tab = go(new_tab(1400), "book/11-inference-as-optimisation")
    tab.wait_for_load_state("load")
    tab.evaluate("document.fonts.ready")
    assert tab.locator("article .math.more-right, article .math .more-right").count() == 0
    resize(tab, 360)
    tab.wait_for_selector("article div.math mjx-container.more-right")
    formula = tab.locator("article div.math mjx-container.more-right").first
    formula.evaluate("box => { window.watched = box; box.scrollLeft = 1e6; }")
    tab.wait_for_function("watched.matches('.more-left:not(.more-right)')")


def test_only_formulas_that_scroll_are_tab_stops(new_tab):
    """A chapter has some 300 formulas, and the keyboard would stop at each of them."""
    tab = go(new_tab(390), "book/04-importance-sampling-and-ais")
    tab.wait_for_load_state("load")
    tab.evaluate("document.fonts.ready")
    formulas = tab.locator("article mjx-container")
    stops = formulas.evaluate_all(
        "all => all.filter(one => one.tabIndex >= 0).map(one => one.scrollWidth - one.clientWidth)"
    )
    assert formulas.count() > 100
    assert len(stops) < formulas.count() / 10
    assert all(hidden > 0 for hidden in stops)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_first_column_stays_while_a_table_is_scrolled(new_tab, theme):
    tab = go(new_tab(390), "book/08-raise", formulas=False)
    switch(tab, theme)
    tab.evaluate("document.querySelectorAll('details').forEach(folded => folded.open = true)")
    tab.wait_for_selector(".first-stays")
    box = tab.locator(".first-stays").first
    box.evaluate("box => { window.watched = box; box.scrollLeft = 120; }")
    tab.wait_for_selector(".first-stays.more-left")
    edges, backgrounds = box.evaluate(
        """box => {
            const cells = [...box.querySelectorAll("tr > :first-child")];
            const inside = box.getBoundingClientRect().left;
            return [cells.map(cell => cell.getBoundingClientRect().left - inside),
                    cells.map(cell => getComputedStyle(cell).backgroundColor)];
        }"""
    )
    assert max(map(abs, edges)) <= 1
    # what passes below cannot be seen
    assert all(colour.startswith("rgb(") for colour in backgrounds), backgrounds


def test_letters_in_pictures_can_be_read_on_a_phone(new_tab):
    tab = go(new_tab(390), "book/04-importance-sampling-and-ais", formulas=False)
    tab.evaluate("document.querySelectorAll('img').forEach(image => image.loading = 'eager')")
    tab.wait_for_function("[...document.images].every(image => image.complete)")
    scales = tab.locator("article button.enlarge img").evaluate_all(
        "images => images.map(image => image.clientWidth / image.naturalWidth)"
    )
    smallest = 7 * 96 / 72  # pixels, of the smallest letters that a figure has
    assert len(scales) > 3
    assert min(scales) * smallest >= 9


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_sign_beside_a_heading_can_be_seen(new_tab, theme):
    """axe does not look at it, since it is shown only where the pointer or the focus is."""
    tab = go(new_tab(), "book/05-exact-partition-functions", formulas=False)
    switch(tab, theme)
    colours = tab.evaluate(
        """() => [document.querySelector("article a.headerlink"), document.body]
            .map((part, number) => getComputedStyle(part)[number ? "backgroundColor" : "color"])"""
    )
    sign, page = (luminance(colour) for colour in colours)
    assert (max(sign, page) + 0.05) / (min(sign, page) + 0.05) >= 4.5


def luminance(colour):
    """Relative luminance of a colour as a browser writes it, by WCAG 2."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("width", [1400, 360])
def test_columns_of_sentences_are_wide_enough_to_read_and_values_stay_on_their_line(new_tab, width):
    tab = go(new_tab(width), "book/08-raise")
    # in letters' heights: where several columns hold sentences, and where one does
    for cells, least in (
        ("article td.words", 8.9),
        ("article tr:not(:has(td.words ~ td.words)) > td.words", 11.9),
    ):
        widths = tab.locator(cells).evaluate_all(
            "cells => cells.map(cell => cell.getBoundingClientRect().width"
            " / parseFloat(getComputedStyle(cell).fontSize))"
        )
        assert widths
        assert min(widths) >= least
    # values such as CD1(500) and −83.1 to −82.9 could break at their hyphens and spaces
    breaks = tab.locator("article td.values").evaluate_all(
        """cells => cells.map(cell => {
            const text = document.createRange();
            text.selectNodeContents(cell);
            const tops = Array.from(text.getClientRects(), box => box.top);
            const letter = parseFloat(getComputedStyle(cell).fontSize);
            return Math.max(...tops) - Math.min(...tops) > letter;
        })"""
    )
    assert breaks
    assert not any(breaks)


@pytest.mark.parametrize("name", PAGES)
def test_links_within_the_book_lead_somewhere(name):
    page = page_path(name)
    anchors = BeautifulSoup(page.read_text(), "html.parser").find_all("a", href=True)
    links = {urljoin(page.as_uri(), anchor["href"]) for anchor in anchors}
    inside = [link for link in links if link.startswith("file:")]
    assert inside
    for link in inside:
        parts = urlparse(link)
        target = Path(unquote(parts.path))
        assert target.is_file(), link
        if parts.fragment and target.suffix == ".html":
            identifier = unquote(parts.fragment)
            html = target.read_text()
            assert f'id="{identifier}"' in html or f'name="{identifier}"' in html, link
