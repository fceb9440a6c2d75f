"""What readers do with the book from disk: search, wait, follow a figure, download, print."""

import ast
import json
import re
from pathlib import Path
from urllib.parse import quote, unquote, urlparse

import nbformat
import pytest
from built_book import EACH_CHAPTER, ROOT, go, page_path, switch

from boltzmann_companion.build.runner import chapters, check_parameters


def search_results(tab):
    """The addresses that a search has listed, once it has finished."""
    tab.wait_for_function("Search.status?.innerText")
    links = tab.locator("#search-results li a")
    return links.evaluate_all("links => links.map(link => link.getAttribute('href'))")


def test_search_finds_what_was_typed(new_tab):
    tab = go(new_tab(), "book/intro")
    tab.get_by_role("button", name="Search").first.click()
    field = tab.get_by_role("searchbox").first
    field.fill("PyTorch")
    field.press("Enter")
    tab.locator("#search-results li a").first.wait_for()
    assert "from-other-programs" in search_results(tab)[0]
    tab.locator("#search-results li a").first.click()
    tab.wait_for_url("**/from-other-programs*")
    assert "another program" in tab.locator("h1").first.inner_text()
    assert tab.problems == []


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        ("evaluate my model", ["your-own-rbm"]),
        ("number of chains", ["glossary.html#term-number-of-chains"]),
        ("what is a nat", ["glossary.html#term-nat"]),
        ("bits per dimension", ["glossary.html#term-bits-per-dimension"]),
        ("PyTorch", ["from-other-programs.html#pytorch"]),
        ("log likelihood RBM scikit-learn", ["from-other-programs.html#scikit-learn"]),
        ("effective sample size", ["glossary.html#term-effective", "04-importance-sampling"]),
        ("control variates", ["09-control-variates", "glossary.html#term-control-variate"]),
        ("detailed balance", ["glossary.html#term-detailed-balance", "02-markov-chains"]),
        ("exact_log_z", ["api/estimators.html#paperlib.estimators.exact_log_z"]),
        ("how many chains do I need", ["glossary.html#term-number-of-chains"]),
        ("install", ["running"]),
        ("run on a GPU", ["running.html#on-a-gpu"]),
        ("how to cite", ["intro.html#how-to-cite-it"]),
        ("error bars", ["glossary.html#term-error-bar", "04-importance-sampling"]),
        ("missed mode", ["04-importance-sampling-and-ais.html#when-ais-misses-a-mode"]),
        ("pseudo-likelihood", ["glossary.html#term-pseudo-likelihood"]),
        ("errors in the papers", ["errata"]),
        ("what does crossed mean", ["glossary.html#term-crossed-bracket"]),
        ("load my weights", ["from-other-programs"]),
        ("thermodynamic integration", ["glossary.html#term-thermodynamic-integration"]),
        ("underflow", ["glossary.html#term-underflow"]),
        ("logsumexp", ["glossary.html#term-logsumexp"]),
        ("how to train an RBM", ["glossary.html#term-training-an-RBM", "03-contrastive"]),
        ("Gaussian RBM", ["glossary.html#term-Gaussian-RBM"]),
    ],
)
def test_page_that_answers_comes_first_in_the_search(new_tab, words, answers):
    tab = new_tab()
    tab.goto(f"{page_path('search').as_uri()}?q={quote(words)}")
    first = search_results(tab)[: len(answers)]
    # where two pages answer, either may be the first
    assert all(any(answer in address for address in first) for answer in answers), first
    assert tab.problems == []


# ---- enlarging a picture


@pytest.mark.parametrize("width", [1400, 360])
def test_picture_is_enlarged_and_put_back(new_tab, width):
    tab = go(new_tab(width), "book/05-exact-partition-functions", formulas=False)
    tab.problems.clear()
    buttons = tab.locator("article button.enlarge")
    assert buttons.count() == tab.locator("article figure img, article .cell_output img").count()
    button = buttons.first
    before = button.locator("img").bounding_box()["width"]
    description = button.locator("img").get_attribute("alt")
    button.focus()
    tab.keyboard.press("Enter")
    dialog = tab.get_by_role("dialog")
    enlarged = dialog.locator("img")
    assert enlarged.get_attribute("alt") == description
    assert enlarged.bounding_box()["width"] > 1.2 * before
    box = dialog.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    tab.keyboard.press("Escape")
    assert dialog.count() == 0
    # the reader is where he was
    assert button.evaluate("button => button === document.activeElement")
    button.click()
    dialog.get_by_role("button", name="Close").click()
    assert dialog.count() == 0
    assert tab.problems == []


# ---- all code of a page


@pytest.mark.parametrize("width", [1400, 360])
def test_one_switch_unfolds_all_code(new_tab, width):
    tab = go(new_tab(width), "book/05-exact-partition-functions", formulas=False)
    tab.problems.clear()
    folded = tab.locator("article details.hide")
    opened = "all => all.map(details => details.open)"
    assert folded.count() > 10
    assert not any(folded.evaluate_all(opened))
    box = tab.get_by_role("checkbox", name="Show all code")
    box.focus()
    for unfolded in (True, False):
        tab.keyboard.press("Space")
        assert box.is_checked() == unfolded
        assert set(folded.evaluate_all(opened)) == {unfolded}
    assert tab.problems == []


# ---- opening a section


@pytest.mark.parametrize("width", [1400, 400])
def test_link_to_a_section_arrives_there(new_tab, width):
    """Also where hundreds of formulas above it are typeset after the jump."""
    tab = new_tab(width)
    tab.goto(page_path("book/04-importance-sampling-and-ais").as_uri() + "#exercises")
    tab.evaluate("MathJax.startup.promise")
    tab.wait_for_function(
        "Math.abs(document.getElementById('exercises').getBoundingClientRect().top) < 200"
    )


# ---- where figures and tables come from


def chapter_of(tab):
    """The committed notebook that a page shows."""
    return ROOT / "book" / f"{Path(unquote(urlparse(tab.url).path)).stem}.ipynb"


@EACH_CHAPTER
def test_figures_and_tables_lead_to_their_records(tab):
    notebook = nbformat.read(chapter_of(tab), as_version=4)
    saved = [
        cell
        for cell in notebook.cells
        if cell.metadata.get("mystnb", {}).get("figure", {}).get("name", "").startswith("fig-")
        and re.search(r"\bfigure=\w", cell.source)
    ]
    figures = sum(cell.source.count("{figure} ../figures/") for cell in notebook.cells)
    assert tab.locator("figcaption small a").count() == len(saved) + figures
    # some tables and figures are folded away until a reader asks for them
    tab.locator("article details").evaluate_all("all => all.forEach(each => { each.open = true; })")
    lines = tab.locator("article small:has(a.record)").evaluate_all(
        "all => all.map(line => [line.querySelector('a').href, line.innerText])"
    )
    shown = [
        cell
        for cell in notebook.cells
        if re.search(r"^chapter\.stored\(", cell.source, re.MULTILINE)
    ]
    assert lines or not (saved or shown)
    for address, text in lines:
        # the page of a record has its file beside it
        page_of_record = Path(unquote(urlparse(address).path))
        assert page_of_record.is_file()
        record = json.loads(page_of_record.with_suffix(".json").read_text())
        assert f"figures/{record['profile']}/{record['name']}.json" in text
        assert record["provenance"]["command"] in text
    heights = tab.locator("article small:has(a.record)").evaluate_all(
        "all => all.map(line => line.getBoundingClientRect().height)"
    )
    assert all(height > 0 for height in heights)


# ---- running a chapter


@EACH_CHAPTER
def test_box_runs_its_chapter_and_shows_one_of_its_parameters(tab):
    path = chapter_of(tab)
    code = tab.locator(".run-this-chapter pre").text_content()
    (number,) = set(re.findall(r"--only (\w+)", code))
    assert chapters([number]) == [path]
    name, value = re.search(r"--set (\w+)=(\S+)$", code, re.MULTILINE).groups()
    check_parameters(path, {name: ast.literal_eval(value)})
    assert (name == "seed") == (path.stem in ("13-reproduction-report", "benchmarks"))


# ---- downloading a chapter


@EACH_CHAPTER
def test_download_is_the_executed_chapter_and_nothing_else(tab):
    addresses = tab.locator("a[href$='.ipynb']").evaluate_all("all => all.map(link => link.href)")
    # From disk a browser shows the file that it would else download.
    (path,) = {Path(unquote(urlparse(a).path)) for a in addresses if a.startswith("file:")}
    got = nbformat.read(path, as_version=4)
    committed = nbformat.read(chapter_of(tab), as_version=4)
    assert [cell.source for cell in got.cells] == [cell.source for cell in committed.cells]
    assert [cell.metadata for cell in got.cells] == [cell.metadata for cell in committed.cells]
    assert any(cell.get("outputs") for cell in got.cells)


# ---- in the dark


@EACH_CHAPTER
def test_figures_stay_white_cards_in_the_dark(tab):
    """Their text is black: behind it the page must be light."""
    switch(tab, "dark")
    dark = tab.locator("article figure img, article .cell_output img").evaluate_all(
        """images => images.filter(image => {
            const colour = getComputedStyle(image).backgroundColor;
            const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);
            return a < 1 || Math.min(r, g, b) < 200;
        }).map(image => image.alt)"""
    )
    assert dark == []


PLAYERS = [
    ("book/06-full-size-rbms", ".frame-player"),
    ("book/02-markov-chains-and-gibbs-sampling", ".chain-player"),
    ("book/11-inference-as-optimisation", ".trace-player"),
]


@pytest.mark.parametrize(("name", "player"), PLAYERS)
def test_player_is_dark_in_the_dark_and_stands_on_no_strip(new_tab, name, player):
    tab = go(new_tab(), name, formulas=False)
    switch(tab, "dark")
    light = tab.locator(player).first.evaluate(
        """player => {
        const colour = element => getComputedStyle(element).backgroundColor;
        const lightest = element =>
            Math.max(...colour(element).match(/[\\d.]+/g).slice(0, 3).map(Number));
        const seen = element => !/, 0\\)$|transparent/.test(colour(element));
        const light = [];
        for (let box = player; box; box = box.parentElement)
            if (seen(box) && lightest(box) > 80) light.push(box.className);
        return light;
        }"""
    )
    assert light == []
