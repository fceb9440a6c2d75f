"""The PDF of a small book: all pages in order, bookmarks by part, links that lead within, and no address of this machine."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from pypdf import PdfReader

from boltzmann_companion.build.pdf import print_book
from paperlib.errors import ReproductionError

PAGE = """<!doctype html><html lang="en"><title>x</title><body>
<h1>{title}<a class="headerlink" href="#">#</a></h1><p>{words}</p>
<a href="one.html#there">one</a> <a href="data.json">record</a> <a href="https://example.org/">elsewhere</a></body></html>"""
TITLES = {"start": "The book", "one": "First", "two": "Second"}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("html")
    (folder / "data.json").write_text("{}")
    for name, title in TITLES.items():
        words = "word " * (2_000 if name == "one" else 1)
        (folder / f"{name}.html").write_text(PAGE.format(title=title, words=words))
    target = folder / "book.pdf"
    parts = {"": ["start"], "Part": ["one", "two"]}
    # In a thread of its own: that of the tests has a browser open already.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(print_book, folder, parts, target).result()
    return PdfReader(target)


def test_every_page_is_there_in_order(book):
    text = [page.extract_text() for page in book.pages]
    assert "The book" in text[0]
    assert "First" in text[1]
    assert "Second" in text[-1]
    assert len(text) > 3  # the long page takes several


def test_bookmarks_follow_the_table_of_contents(book):
    start, part, below = book.outline
    assert [start.title, part.title] == ["The book", "Part"]
    assert [entry.title for entry in below] == ["First", "Second"]
    places = [book.get_destination_page_number(entry) for entry in (start, part, *below)]
    assert places == [0, 1, 1, len(book.pages) - 1]


def test_links_lead_within_and_none_to_this_machine(book):
    annotations = [a.get_object() for a in book.pages[0].get("/Annots", [])]
    addresses = [a["/A"]["/URI"] for a in annotations if "/A" in a]
    assert addresses == ["https://example.org/"]
    (inside,) = [a for a in annotations if "/Dest" in a]
    assert inside["/Dest"][0].get_object() == book.pages[1].get_object()
    assert not re.search(r"file:", "".join(str(a) for a in annotations))


def test_a_missing_page_is_named(tmp_path):
    with pytest.raises(ReproductionError, match=r"nothing\.html is missing"):
        print_book(tmp_path, {"": ["nothing"]}, tmp_path / "book.pdf")
