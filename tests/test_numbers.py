"""Numbers in the text are links to cells: what the check notices, and where the links lead."""

import copy
import json
import re
import shutil

import pytest
from docutils import nodes
from notebooks import ROOT

from boltzmann_companion.build import numbers
from boltzmann_companion.build.linked import (
    LINK,
    Page,
    agrees,
    check_links,
    check_pages,
    links,
    pages,
    unlinked,
    write_links,
)
from boltzmann_companion.cells import DERIVED, Cell, find_cell, read_table, row_names
from boltzmann_companion.derived import checksum, derived_table, is_current

PAGES = pages(ROOT)
GAPS = "figures/paper/raise-gaps.json"
DIGITS = "figures/digits/raise-gaps.json"
PUBLISHED = "data/published.csv"
CSL = "raise2015/table-1/mnistcd25-500/csl"
GAP = "mnistCD1-500,base-rates/gap"


@pytest.fixture
def tree(tmp_path):
    """A book of a page and a chapter, with three tables; returns a function that checks it."""
    for name in (GAPS, DIGITS, PUBLISHED):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "book").mkdir()
    text = (
        f"The gap is [3.9](../{GAPS}#{GAP}) nats.\n"
        f"The paper prints [−145.26](../{PUBLISHED}#{CSL}).\n"
    )
    (tmp_path / "book" / "page.md").write_text(text, encoding="utf-8")
    cell = read_table(tmp_path / DIGITS)["rows"][0]
    name = row_names(read_table(tmp_path / DIGITS))[0]
    source = [
        f"It is [{abs(cell['gap']):.2f}](../{DIGITS}#{name}/gap) nats here.\n",
        "And no more.",
    ]
    chapter = {"cells": [{"cell_type": "markdown", "metadata": {}, "source": source}]}
    (tmp_path / "book" / "01-one.ipynb").write_text(json.dumps(chapter, indent=1) + "\n")

    def wrong():
        read_table.cache_clear()
        return [line for page in pages(tmp_path) for line in check_links(tmp_path, page)]

    assert wrong() == []
    yield wrong
    read_table.cache_clear()


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


# ---- this book


def test_every_number_says_what_its_cell_has():
    assert check_pages(ROOT, PAGES) == []


def test_another_last_digit_is_noticed_on_every_page():
    """But for cells that lie halfway between the two."""
    unnoticed = []
    tried = 0
    for page in PAGES:
        for _, link in links(page):
            digit = re.search(r"\d(?!.*\d)", link["words"])
            cell = find_cell(ROOT, link["table"], link["address"])
            for other in (1, 9) if digit else ():
                changed = str((int(digit[0]) + other) % 10)
                words = link["words"][: digit.start()] + changed + link["words"][digit.end() :]
                tried += 1
                if agrees(words, cell, link.string[link.end() :]):
                    unnoticed.append(f"{page.path.stem}: {words} for {cell.value}")
    assert tried > 1_000
    assert len(unnoticed) < tried / 100, unnoticed


def test_the_example_for_contributors_is_right():
    path = ROOT / "book" / "examples" / "number_links.md"
    # it shows what a page of the book says
    example = Page(ROOT / "book" / path.name, (path.read_text(encoding="utf-8"),), ("",))
    assert len(list(links(example))) == 4
    assert check_links(ROOT, example) == []


def test_the_derived_numbers_are_those_of_the_records():
    assert is_current(ROOT)
    assert read_table(ROOT / DERIVED) == json.loads(json.dumps(derived_table()))


def test_a_record_that_lacks_a_row_is_told_with_the_function_that_needs_it(monkeypatch):
    def needs(stored):
        yield "gap", "nats", stored.row("raise-gaps", model="none")["gap"], "a gap"

    monkeypatch.setattr("boltzmann_companion.derivations.DERIVATIONS", [needs])
    with pytest.raises(ValueError, match=r"needs: the records lack .*raise-gaps has no row"):
        derived_table()


def test_every_derived_number_is_said_somewhere():
    addresses = {
        link["address"] for page in PAGES for _, link in links(page) if link["table"] == DERIVED
    }
    names = {row["name"] for row in read_table(ROOT / DERIVED)["rows"]}
    assert names == {address.partition("/")[0] for address in addresses}


@pytest.mark.parametrize("path", sorted(ROOT.glob("figures/*/*.json")), ids=lambda path: path.stem)
def test_rows_of_every_record_have_names_of_their_own(path):
    record = read_table(path)
    names = row_names(record)
    assert len(set(names)) == len(record["rows"])
    assert not any(re.search(r"[\s()\[\]#/]", name) for name in names)


# ---- what is noticed


def test_a_digit_changed_in_the_prose_is_noticed(tree, tmp_path):
    change(tmp_path / "book" / "page.md", "[3.9]", "[3.8]")
    [line] = tree()
    assert line.startswith("book/page.md, line 1: [3.8], but figures/paper/raise-gaps.json#")
    assert "has 3.8" in line
    assert "`paperlib check --write`" in line
    assert "changelog" in line


def test_a_digit_changed_in_a_record_of_the_papers_size_is_noticed(tree, tmp_path):
    change(tmp_path / GAPS, '"gap": 3.8', '"gap": 3.7')
    [line] = tree()
    assert line.startswith("book/page.md, line 1: [3.9]")


def test_a_digit_changed_in_a_record_on_digits_is_noticed(tree, tmp_path):
    record = json.loads((tmp_path / DIGITS).read_text())
    record["rows"][0]["gap"] += 0.02
    (tmp_path / DIGITS).write_text(json.dumps(record))
    [line] = tree()
    assert line.startswith("book/01-one.ipynb, cell 1, line 1: [")


def test_a_digit_changed_in_the_published_numbers_is_noticed(tree, tmp_path):
    change(tmp_path / PUBLISHED, "-145.26", "-145.36")
    [line] = tree()
    assert line.startswith("book/page.md, line 2: [−145.26], but data/published.csv#")


def test_derived_numbers_of_other_records_are_noticed(tree, tmp_path):
    record = read_table(tmp_path / GAPS)
    value = {"name": "six", "what": "", "value": 6, "unit": "count", "records": ["raise-gaps"]}
    columns = {key: {"label": key, "unit": "", "tolerance": 0} for key in value}
    provenance = {"rows": {"raise-gaps": checksum(record)}}
    table = {"name": "derived", "columns": columns, "rows": [value], "provenance": provenance}
    (tmp_path / DERIVED).write_text(json.dumps(table))
    change(tmp_path / "book" / "page.md", "[3.9]", f"[six](../{DERIVED}#six/value), [3.9]")
    assert tree() == []
    chosen = pages(tmp_path, ["page"])
    assert check_pages(tmp_path, chosen) == []
    # so small a change that no text notices it
    change(tmp_path / GAPS, '"gap": 3.86', '"gap": 3.87')
    assert tree() == []
    [line] = check_pages(tmp_path, chosen)
    assert line == f"{DERIVED} was made of other records: `paperlib check --write` makes it again"


@pytest.mark.parametrize(
    ("old", "new", "advice"),
    [
        ("raise-gaps.json", "raise-gap.json", "there is no figures/paper/raise-gap.json"),
        (
            "base-rates",
            "base-rate",
            "mnistCD1-500,base-rate; the nearest is mnistCD1-500,base-rates",
        ),
        (",base-rates", "", "raise-gaps has 2 rows mnistCD1-500, such as mnistCD1-500,uniform and"),
        ("/gap", "/gaps", "no column gaps; the nearest is gap"),
        ("/gap)", "/gap/0)", "has no place 0"),
        ("500/csl", "500/cls", "no row raise2015/table-1/mnistcd25-500/cls; the nearest is"),
        ("500/csl", "500/csl/low", "published.csv has no low for"),
        ("(../figures", "(figures", "from here the path is ../figures/paper/raise-gaps.json"),
        ("[3.9]", "[no more]", "these words are no number"),
        ("[3.9]", "[$3.9$]", "a screen reader would not read a formula"),
    ],
)
def test_a_broken_link_names_the_nearest(tree, tmp_path, old, new, advice):
    change(tmp_path / "book" / "page.md", old, new)
    [line] = tree()
    assert advice in line


def test_any_settings_that_fit_one_row_name_it():
    address = "steps=10000,uniform,mnistPCD-20/ais"
    assert find_cell(ROOT, "figures/paper/raise-figure-3.json", address).row == (
        "mnistPCD-20,uniform,steps=10000"
    )


# ---- words and cells


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("3.2", 3.246),
        ("3.2", 3.1501),
        ("−121.56", -121.5599),
        ("−199", -199.09),
        ("1.1", -1.08),
        ("100,000", 100_000),
        ("10⁵", 100_000),
        ("seven", 7.35),
        ("Five", 5),
        ("none", 0),
        ("half", 0.515),
        ("a tenth", 0.104),
        ("two thirds", 0.67),
        ("ten thousand", 10_000),
        ("93 %", 0.93),
        ("three per cent", 0.03),
        ("+0.3", 0.31),
        ("∞", float("inf")),
        ("less than a hundredth", -0.003),
        ("within 0.2", 0.174),
        ("more than three", 3.6),
        ("some fifty", 47),
        ("closed", "closed"),
        ("**Open**", "open"),
    ],
)
def test_words_that_say_what_the_cell_has(words, value):
    assert agrees(words, Cell(value, "", "", ""))


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("3.2", 3.26),
        ("3.20", 3.21),
        ("−121.56", 121.56),
        ("+0.3", -0.3),
        ("1.1", 1.16),
        ("100,000", 10_000),
        ("10⁵", 10_000),
        ("seven", 7.6),
        ("none", 1),
        ("half", 0.4),
        ("a tenth", 0.2),
        ("93 %", 0.94),
        ("∞", 12.0),
        ("-∞", float("inf")),
        ("less than a hundredth", 0.02),
        ("less than a hundredth", 0.0004),
        ("within 0.3", 0.174),
        ("as much as 43", 41.6),
        ("at least 1.1", 1.24),
        ("more than a hundred", 230),
        ("more than three", 2.9),
        ("some fifty", 60),
        ("closed", "open"),
    ],
)
def test_words_that_say_something_else(words, value):
    assert not agrees(words, Cell(value, "", "", ""))


def test_a_share_in_per_cent_may_stand_before_its_sign():
    share = Cell(0.288, "fraction", "", "")
    nats = Cell(28.8, "nats", "", "")
    after = " to [58 %](../figures/derived.json#covered-10/value/1) of the runs"
    assert agrees("29", share, after)
    assert not agrees("29", share, " to 58 nats")
    assert agrees("29", Cell(28.8, "%", "", ""), " % of the runs")
    with pytest.raises(ValueError, match="in nats, not in per cent"):
        agrees("29 %", nats)


@pytest.mark.parametrize(
    ("words", "value", "new"),
    [
        ("3.2", 4.16, "4.2"),
        ("−121.56", -99.1, "−99.10"),
        ("-121.56", -99.1, "-99.10"),
        ("−199", -86.4, "−86"),
        ("1,024", 999_999.6, "1,000,000"),
        ("0.1", -0.01, "0.0"),
        ("seven", 8.3, "eight"),
        ("Seven", 23, "23"),
        ("58 %", 0.61, "61 %"),
    ],
)
def test_a_new_value_is_written_in_the_form_of_the_old(tree, tmp_path, words, value, new):
    record = copy.deepcopy(read_table(tmp_path / GAPS))
    names = row_names(record)
    record["rows"][names.index("mnistCD1-500,base-rates")]["gap"] = value
    record["columns"]["gap"]["unit"] = ""
    (tmp_path / GAPS).write_text(json.dumps(record))
    change(tmp_path / "book" / "page.md", "[3.9]", f"[{words}]")
    read_table.cache_clear()
    [page] = pages(tmp_path, ["page"])
    assert write_links(tmp_path, page) == [f"book/page.md: {words} -> {new}"]
    assert tree() == []
    [page] = pages(tmp_path, ["page"])
    assert write_links(tmp_path, page) == []


def test_a_chapter_is_written_without_any_other_change(tree, tmp_path):
    path = tmp_path / "book" / "01-one.ipynb"
    before = path.read_text()
    words = LINK.search(before)["words"]
    path.write_text(before.replace(f"[{words}]", "[77.77]"))
    [page] = pages(tmp_path, ["01"])
    write_links(tmp_path, page)
    assert path.read_text() == before


def test_what_cannot_be_written_stays_a_mistake(tree, tmp_path):
    change(tmp_path / "book" / "page.md", "[3.9]", "[less than a tenth]")
    [page] = pages(tmp_path, ["page"])
    assert write_links(tmp_path, page) == []
    assert len(tree()) == 1


# ---- numbers without a link


def test_a_number_with_a_decimal_point_needs_a_link(tree, tmp_path):
    path = tmp_path / "book" / "page.md"
    needs = "It is 0.52 nats, or $-12.5$ nats.\n"
    needs_none = (
        "Section 3.1 and eq. 19.36 hold for $\\beta = 0.5$ and `0.25`, with Python 3.11.\n"
        "```\n0.75\n```\nSee <https://a.b/0.1> and {doc}`5.5`.\n"
    )
    path.write_text(needs + needs_none)
    [page] = pages(tmp_path, ["page"])
    assert [place for place, _ in unlinked(page)] == ["line 1: 0.52", "line 1: -12.5"]
    assert [place for place, _ in unlinked(page, {"0.52 nats": "defined"})] == ["line 1: -12.5"]


# ---- the pages


def test_a_link_leads_to_its_row_on_the_page_of_its_record():
    text = [f"[3.9](../{GAPS}#{GAP}), [-145.26](../{PUBLISHED}#{CSL}), [file](../{GAPS})"]
    numbers.to_cells(None, "book/page", text)
    addresses = re.findall(r"\((.*?)\)", text[0])

    class Builder:
        @staticmethod
        def get_relative_uri(page, other):
            return f"../{other}.html"

    class App:
        builder = Builder

    page = nodes.Element()
    page += [nodes.reference("", "", refuri=address) for address in addresses]
    numbers.resolve(App, page, "book/page")
    assert [link["refuri"] for link in page.children] == [
        "../cells/paper/raise-gaps.html#mnistCD1-500-base-rates",
        "../cells/published.html#raise2015-table-1-mnistcd25-500-csl",
        "../cells/paper/raise-gaps.html",
    ]
    assert [link["classes"] for link in page.children] == [["number"], ["number"], ["record"]]


def test_the_page_of_a_record_has_its_rows_and_says_where_it_comes_from():
    record = read_table(ROOT / GAPS)
    body = numbers.body_of(GAPS, record)
    assert body.count("<tr id=") == len(record["rows"])
    assert 'id="mnistCD1-500-base-rates"' in body
    assert f"Made by <code>{record['provenance']['command']}</code>" in body
    assert record["provenance"]["commit"] in body
    published = numbers.body_of(PUBLISHED, read_table(ROOT / PUBLISHED))
    assert 'id="raise2015-table-1-mnistcd25-500-csl"' in published


def test_every_link_has_its_place_on_a_page():
    places = {}
    for page in PAGES:
        for _, link in links(page):
            table = link["table"]
            if table not in places:
                body = numbers.body_of(table, read_table(ROOT / table))
                anchors = re.findall(r'<tr id="([^"]*)"', body)
                places[table] = set(anchors)
                assert len(places[table]) == len(anchors)
                # scripts of the page look for anchors by a selector
                assert all(re.fullmatch(r"[A-Za-z][\w-]*", each, re.ASCII) for each in anchors)
            assert numbers.anchor(ROOT, table, link["address"]) in places[table]


# ---- the command


def test_the_command_counts_and_refuses(tree, tmp_path, monkeypatch, command):
    monkeypatch.setattr("paperlib.storage.repository_root", lambda: tmp_path)
    code, out, _ = command("check", "--numbers")
    assert (code, out) == (0, "3 numbers on 2 pages, 0 mistakes\n")
    change(tmp_path / "book" / "page.md", "[3.9]", "[3.8]")
    code, out, _ = command("check", "--numbers", "page")
    assert (code, out.splitlines()[-1]) == (1, "2 numbers on 1 pages, 1 mistakes")
    code, out, _ = command("check", "--write")
    assert (code, out.splitlines()[0]) == (0, "book/page.md: 3.8 -> 3.9")
    code, _, error = command("check", "--numbers", "nowhere")
    assert code != 0
    assert "expected part of a page's name" in error
