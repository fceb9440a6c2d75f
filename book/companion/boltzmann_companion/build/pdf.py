"""The whole book as one PDF: a browser prints every page, and the pages are joined, with bookmarks and internal links."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from boltzmann_companion.build.book import toc_parts
from paperlib import storage
from paperlib.errors import ReproductionError

if TYPE_CHECKING:
    from pypdf import PdfWriter

#: Milliseconds to wait for anything on a page. Only a defect takes so long.
PATIENCE = 600_000
#: Arguments for Chromium; without most of them it tries to reach its maker's hosts at every start.
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def build_pdf() -> Path:
    """Print the built book to `_build/companion.pdf`.

    The index is left out, since it consists of links.

    Returns
    -------
    Path
        Path of the PDF.

    Raises
    ------
    ReproductionError
        If the book has not been built, or no Chromium is on the path.
    """
    root = storage.repository_root()
    parts = {
        part: [page for page in pages if page != "genindex"]
        for part, pages in toc_parts(root / "_toc.yml").items()
    }
    target = root / "_build" / "companion.pdf"
    print_book(root / "_build" / "html", parts, target)
    return target


def print_book(html: Path, parts: Mapping[str, Sequence[str]], target: Path) -> None:
    """Print pages and join them, with a bookmark for each page below that of its part.

    Parameters
    ----------
    html : Path
        The folder of the built book.
    parts : mapping of str to sequence of str
        Pages by part, without suffix. The pages of a part without a name have bookmarks at the top level.
    target : Path
        The file to write.

    Raises
    ------
    ReproductionError
        If a page is missing, or no Chromium is on the path.
    """
    from pypdf import PdfWriter

    pages = [page for names in parts.values() for page in names]
    missing = [page for page in pages if not (html / f"{page}.html").is_file()]
    if missing:
        raise ReproductionError(f"{missing[0]}.html is missing; run `paperlib book` first")
    with tempfile.TemporaryDirectory() as folder:
        titles = _print_pages(html, pages, Path(folder))
        book, first = PdfWriter(), {}
        for part, names in parts.items():
            above = None
            for name in names:
                number = first[name] = len(book.pages)
                book.append(Path(folder) / f"{pages.index(name)}.pdf", import_outline=False)
                if part and above is None:
                    above = book.add_outline_item(title=part, page_number=number)
                book.add_outline_item(title=titles[name], page_number=number, parent=above)
        _lead_within(book, html, first)
        book.add_metadata({"/Title": titles[pages[0]]})
        book.compress_identical_objects()
        with storage.atomic_path(target) as path:
            book.write(path)


def _print_pages(html: Path, pages: Sequence[str], folder: Path) -> dict[str, str]:
    """Print every page to its own file, named after its position, and return the titles."""
    from playwright.sync_api import sync_playwright

    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        raise ReproductionError("the PDF is printed by Chromium, and none is on the path")
    titles = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable,
            args=QUIET,
            timeout=PATIENCE,
        )
        for number, name in enumerate(pages):
            tab = browser.new_page(color_scheme="light", reduced_motion="reduce")
            tab.set_default_timeout(PATIENCE)
            tab.goto((html / f"{name}.html").as_uri())
            tab.evaluate("window.MathJax && window.MathJax.startup.promise")
            tab.evaluate("document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
            tab.wait_for_function("[...document.images].every(image => image.complete)")
            heading = tab.locator("h1").first
            heading.locator(".headerlink").evaluate_all("all => all.forEach(link => link.remove())")
            titles[name] = heading.inner_text().strip()
            tab.pdf(
                path=folder / f"{number}.pdf",
                prefer_css_page_size=True,
                format="A4",
                display_header_footer=True,
                header_template="<span></span>",
                footer_template=(
                    '<div style="font-size: 8px; width: 100%; text-align: center">'
                    '<span class="title"></span></div>'
                ),
            )
            tab.close()
        browser.close()
    return titles


def _lead_within(book: PdfWriter, html: Path, first: Mapping[str, int]) -> None:
    """Make links to other pages of the book lead to their place in the PDF, and remove links to other files of this machine."""
    from pypdf.generic import ArrayObject, NameObject

    places = {(html / f"{name}.html").resolve(): number for name, number in first.items()}
    for page in book.pages:
        kept = ArrayObject()
        for reference in page.get("/Annots", ArrayObject()):
            annotation = reference.get_object()
            address = str(annotation.get("/A", {}).get("/URI", ""))
            if address.startswith("file:"):
                place = places.get(Path(unquote(urlparse(address).path)).resolve())
                if place is None:
                    continue
                del annotation["/A"]
                annotation[NameObject("/Dest")] = ArrayObject(
                    [book.pages[place].indirect_reference, NameObject("/Fit")]
                )
            kept.append(reference)
        if "/Annots" in page:
            page[NameObject("/Annots")] = kept
