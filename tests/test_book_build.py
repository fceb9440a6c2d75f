"""What the book's Sphinx extension adds to pages and settings, in small books that are built."""

import io
import pickle
import shutil
from collections import Counter
from types import SimpleNamespace

import nbformat
import pytest
import yaml
from docutils import nodes
from docutils.core import publish_doctree
from jupyter_book.config import get_final_config
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebooks import ROOT
from sphinx import addnodes
from sphinx.application import ENV_PICKLE_FILENAME, Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from boltzmann_companion.build.extension import EXECUTED, mark_columns, prose_of
from boltzmann_companion.build.repository import _describe_book, _footer, _with_repository
from boltzmann_companion.build.status import claims_checked, status_table
from boltzmann_companion.record_files import read_record
from paperlib import __version__

ADDRESS = "https://github.com/someone/companion"
NAME = "05-exact-partition-functions"


def chapter(*cells):
    """A notebook with a title, a cell of parameters, and these cells."""
    parameters = new_code_cell("seed = 1", metadata={"tags": ["parameters"]})
    return new_notebook(
        cells=[new_markdown_cell("# Title\n\nWords."), parameters, *cells],
        metadata={"language_info": {"name": "python"}},
    )


class Book:
    """A book of these pages with the settings of `_config.yml`, as Sphinx has read it.

    Its chapter is called as the one that has written the records that tests use.
    """

    def __init__(self, folder, pages, url=""):
        (folder / "book" / "_static").mkdir(parents=True)
        for name in ("logo.svg", "favicon.svg", "search.js"):
            shutil.copy(ROOT / "book" / "_static" / name, folder / "book" / "_static")
        (folder / "figures").symlink_to(ROOT / "figures")
        (folder / "book" / "references.bib").touch()
        pages = {"intro": "# The book", "running": "# Running"} | pages
        for name, page in pages.items():
            if isinstance(page, str):
                (folder / "book" / f"{name}.md").write_text(page)
            else:
                nbformat.write(page, folder / "book" / f"{name}.ipynb")
        listed = [{"file": f"book/{name}"} for name in pages if name != "intro"]
        toc = {"format": "jb-book", "root": "book/intro", "chapters": listed}
        (folder / "_toc.yml").write_text(yaml.safe_dump(toc))
        config = yaml.safe_load((ROOT / "_config.yml").read_text())
        config["repository"]["url"] = url
        config["sphinx"]["config"]["extensions"].remove("sphinx-mathjax-offline")
        (folder / "_config.yml").write_text(yaml.safe_dump(config))
        settings, _ = get_final_config(
            user_yaml=folder / "_config.yml", cli_config={"latex_individualpages": False}
        )
        settings |= {"external_toc_path": str(folder / "_toc.yml"), "nitpicky": True}
        self._folder = folder
        self._settings = settings
        self.read()

    def read(self):
        """Read what has changed, and return the pages that are to be written."""
        warnings = io.StringIO()
        output = self._folder / "_build"
        with patch_docutils(), docutils_namespace():
            self.app = Sphinx(
                self._folder,
                None,
                output,
                output / ".doctrees",
                "dummy",
                self._settings,
                status=None,
                warning=warnings,
            )
            written = self.app.builder.read()
            pickled = output / ".doctrees" / ENV_PICKLE_FILENAME
            pickled.write_bytes(pickle.dumps(self.app.env, pickle.HIGHEST_PROTOCOL))
        self.warnings = warnings.getvalue()
        return written

    def page(self, name=NAME):
        return self.app.env.get_doctree(f"book/{name}")


@pytest.fixture(scope="module")
def page_of(tmp_path_factory):
    """The page of a chapter with these cells, which is built without a warning."""

    def built(*cells, url=""):
        book = Book(tmp_path_factory.mktemp("book"), {NAME: chapter(*cells)}, url)
        assert book.warnings == ""
        return book.page()

    return built


def cells_of(page):
    return [c for c in page.findall(nodes.container) if c.get("nb_element") == "cell_code"]


def only(page, kind):
    (node,) = page.findall(kind)
    return node


# ---- figures and tables


#: A PNG file of one pixel.
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def drawn(*records):
    """A cell that has drawn, and saved its figure with these records."""
    figure = {"figure": {"caption": "Dots.", "name": "fig-x"}, "image": {"alt": "Dots"}}
    saved = {"paperlib": {"record": records[0]}} if records else {}
    outputs = [
        new_output("stream", text="printed"),
        new_output("display_data", {"image/png": PICTURE}, metadata=saved),
    ]
    return new_code_cell("1", metadata={"mystnb": figure}, outputs=outputs)


def test_figure_of_a_record_gets_its_source(page_of):
    page = page_of(drawn("sm2008-figure-3"))
    caption = only(page, nodes.caption)
    assert caption.astext().startswith("Dots. ")
    assert "figures/digits/sm2008-figure-3.json" in caption.astext()
    assert "paperlib reproduce --profile digits --only 05" in caption.astext()


@pytest.mark.parametrize("records", [(), ("no-such-record",)])
def test_figure_without_a_record_keeps_its_caption(page_of, records):
    assert only(page_of(drawn(*records)), nodes.caption).astext() == "Dots."


def test_stored_figure_in_the_text_gets_its_source(page_of):
    text = "```{figure} ../figures/paper/sm2008-figure-3.svg\n:alt: x\n\nDots.\n```\n\nMore."
    page = page_of(new_markdown_cell(text))
    caption = only(page, nodes.caption).astext()
    assert caption.startswith("Dots. ")
    assert "figures/paper/sm2008-figure-3.json" in caption
    assert "paperlib reproduce --profile paper --only 05" in caption
    assert list(page.findall(nodes.paragraph))[-1].astext() == "More."


def test_table_with_a_caption_is_numbered_and_keeps_its_source(page_of):
    markdown = "| a |\n| --- |\n| 1 |\n\n<small>source</small>"
    table = new_output("display_data", {"text/markdown": markdown, "text/plain": markdown})
    named = {"mystnb": {"figure": {"caption": "Costs of $K$.", "name": "tab-05-costs"}}}
    numbered = new_code_cell("1", metadata=named, outputs=[table])
    plain = new_code_cell("2", outputs=[table])
    page = page_of(numbered, plain, new_markdown_cell("See {numref}`tab-05-costs`."))
    first, second = page.findall(nodes.table)
    assert (first["names"], first["ids"]) == (["tab-05-costs"], ["tab-05-costs"])
    assert only(first, nodes.title).astext() == "Costs of K."
    assert only(first, nodes.math).astext() == "K"
    assert first.parent[first.parent.index(first) + 1].astext() == "<small>source</small>"
    assert not second["names"]
    assert second.next_node(nodes.title) is None
    assert list(page.findall(nodes.figure)) == []


# ---- the box that runs a chapter


def box_of(page):
    (box,) = [c for c in page.findall(nodes.container) if "run-this-chapter" in str(c.attributes)]
    return box


def test_box_stands_before_the_parameters(page_of):
    page = page_of()
    box = box_of(page)
    following = box.parent[box.parent.index(box) + 1]
    assert following["cell_metadata"]["tags"] == ["parameters"]
    assert only(box, nodes.literal_block).astext().splitlines() == [
        "paperlib reproduce --only 05",
        "paperlib reproduce --only 05 --set seed=1",
    ]


def test_box_shows_the_first_setting_that_the_chapter_suggests(page_of):
    text = """## Before

`steps = 1`

## What to try

- `profile = "paper"`: hours.
- `counts = [1, 10]`: more.
- `steps = 10`"""
    code = only(box_of(page_of(new_markdown_cell(text))), nodes.literal_block).astext()
    assert code.endswith("--set counts=[1,10]\n")


# ---- lines to unfold

FOLDED = {"tags": ["hide-input"]}
CHECKS = {"tags": ["checks", "hide-cell"]}


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("it holds: yes\n", "Checked: 1 claim"),
        (
            "a: yes\nwhat came out: 3\nb: no\nc: no (with your settings)\nd: cannot be told\n",
            "Checked: 4 claims",
        ),
    ],
)
def test_line_to_which_a_cell_of_checks_folds_counts_them(page_of, text, prompt):
    printed = new_output("stream", text=text)
    cell = cells_of(page_of(new_code_cell("1", metadata=CHECKS, outputs=[printed])))[-1]
    assert (cell["prompt_show"], cell["prompt_hide"]) == (prompt, prompt)
    assert text.strip() in cell.astext()


def test_folded_cell_that_shows_nothing_is_joined_to_the_folded_one_below(page_of):
    printed = new_output("stream", text="it holds: yes\n")
    page = page_of(
        new_code_cell("a = 1", metadata=FOLDED),
        new_code_cell("b = 2", metadata=FOLDED),
        new_code_cell("print(a)", metadata=FOLDED, outputs=[printed]),
        new_code_cell("c = 3", metadata=FOLDED),
        new_code_cell("check(c)", metadata=CHECKS, outputs=[printed]),
        new_code_cell("d = 4", metadata=FOLDED),
        new_markdown_cell("Words between."),
        new_code_cell("e = 5", metadata=FOLDED),
        new_code_cell("open"),
    )
    shown = [cell.next_node(nodes.literal_block).astext() for cell in cells_of(page)]
    joined = "a = 1\n\n\nb = 2\n\n\nprint(a)"
    assert shown == ["seed = 1", joined, "c = 3", "check(c)", "d = 4", "e = 5", "open"]
    assert "it holds" in cells_of(page)[1].astext()


# ---- which outputs a page shows


def test_executed_copy_is_shown_if_its_profile_is_asked_for(tmp_path, monkeypatch):
    def printing(text):
        return chapter(new_code_cell("1", outputs=[new_output("stream", text=text)]))

    executed = tmp_path / "_build" / "executed" / "paper" / f"{NAME}.ipynb"
    executed.parent.mkdir(parents=True)
    nbformat.write(printing("executed"), executed)
    monkeypatch.setenv(EXECUTED, "paper")
    book = Book(tmp_path, {NAME: printing("committed")})
    assert "executed" in book.page().astext()
    assert "committed" not in book.page().astext()


# ---- one address, in all places or in none


def theme_options(environment, url=""):
    options = {"show_toc_level": 2, "repository_url": url, "repository_branch": "main"}
    return _with_repository(options | {"launch_buttons": {"binderhub_url": "x"}}, environment)


def test_without_an_address_there_are_no_links_to_it():
    options, context = theme_options({})
    assert options["repository_url"] == ""
    assert not [name for name in options if "button" in name]
    assert context == {}


def test_workflow_gives_its_own_address_and_commit_and_pages_are_edited_on_its_branch():
    environment = {"GITHUB_REPOSITORY": "someone/companion", "GITHUB_SHA": "abc"}
    options, context = theme_options(environment)
    assert options["repository_url"] == "https://github.com/someone/companion"
    assert options["repository_branch"] == "abc"
    assert options["launch_buttons"] == {"binderhub_url": "x"}
    for button in ("repository", "issues", "edit_page"):
        assert options[f"use_{button}_button"]
    assert options["show_toc_level"] == 2
    edit = context["edit_page_url_template"]
    assert edit == "https://github.com/someone/companion/edit/main/{{ file_name }}"


def test_a_written_address_comes_first():
    environment = {"GITHUB_REPOSITORY": "someone/fork", "GITHUB_SHA": "abc"}
    options, _ = theme_options(environment, "https://example.org/a/b")
    assert options["repository_url"] == "https://example.org/a/b"
    assert options["repository_branch"] == "main"


CITED = "# The book\n\n```bibtex\n@software{x,\n  title = {T},\n  year    = {2026}\n}\n```"


def with_it(folder, url):
    """Everything of a book in which the address stands, in one text."""
    book = Book(folder, {NAME: chapter(), "intro": CITED}, url)
    assert book.warnings == ""
    text = book.page().astext() + book.page("intro").astext()
    return text + "".join(link["refuri"] for link in book.page().findall(nodes.reference))


def test_with_an_address_it_can_be_cloned_cited_and_opened_on_colab(tmp_path):
    text = with_it(tmp_path, ADDRESS)
    assert f"!git clone {ADDRESS} companion\n" in text
    assert f"  title = {{T}},\n  url     = {{{ADDRESS}}},\n  year    = {{2026}}\n}}" in text
    assert "https://colab.research.google.com/" in text
    assert "%pip install ./companion ./companion/likelihood ./companion/book/companion" in text


def test_without_an_address_there_is_none(tmp_path):
    text = with_it(tmp_path, "")
    for word in ("git clone", "google.com", "companion", "url     ="):
        assert word not in text


def test_no_page_has_a_placeholder():
    """Whoever reads the sources sees what a reader of the pages sees."""
    sources = [*ROOT.glob("*.md"), *ROOT.glob("book/*.md"), *ROOT.glob("book/*.ipynb")]
    for path in sources:
        text = path.read_text(encoding="utf-8")
        for word in ("REPOSITORY_URL", "YOUR_", "TODO", "OWNER", "user/repo"):
            assert word not in text, (path.name, word)


# ---- what a page says of its making


@pytest.mark.parametrize(
    ("url", "state", "words"),
    [
        ("", (None, None), ", built on "),
        ("", ("0123456789ab", True), ", commit 012345678 with changes, built on "),
        (
            ADDRESS,
            ("0123456789ab", False),
            f', commit <a href="{ADDRESS}/commit/0123456789ab">012345678</a>, built on ',
        ),
    ],
)
def test_foot_of_a_page_has_version_commit_and_date(url, state, words):
    assert _footer(url, *state).startswith(f"Version {__version__}{words}20")


def test_settings_keep_what_they_have():
    options = {"repository_url": "", "repository_branch": "main", "launch_buttons": {}, "a": 1}
    config = SimpleNamespace(html_theme_options=options, html_context={"default_mode": "auto"})
    _describe_book(None, config)
    assert config.html_theme_options["a"] == 1
    assert config.html_theme_options["extra_footer"].startswith("Version ")
    assert config.html_context == {"default_mode": "auto"}


def test_claims_are_counted_by_their_answer():
    text = "a: yes\nb: no\nc: yes (with your settings)\nd: cannot be told\ne: no comment\n"
    printed = new_output("stream", text=text)
    no_check = new_code_cell("", outputs=[printed])
    checks = new_code_cell("", outputs=[printed], metadata={"tags": ["checks"]})
    assert claims_checked(chapter(no_check, checks)) == {
        "yes": 2,
        "no": 1,
        "cannot be told": 1,
    }


def test_status_counts_the_claims_that_hold_among_all():
    made = {"chapter": "05-exact", "utc": "2026-11-24T22:55:46+00:00", "seconds": 56.3}
    made |= {"version": "0.3.0", "commit": "0123456789", "python": "3.11.7"}
    record = {"profile": "digits", "provenance": made}
    answers = Counter({"yes": 5, "no": 2, "cannot be told": 1})
    table = status_table([record], {("05-exact", "digits"): answers})
    assert table.endswith(" | 5 of 8 |\n")


def test_status_is_what_the_records_say():
    """The table of the committed book, from its records alone."""
    records = [read_record(path) for path in (ROOT / "figures").glob("*/*.json")]
    rows = status_table(records, {}).splitlines()[3:]
    seen = {(row.split("`")[1], row.split(" | ")[1]) for row in rows}
    assert len(rows) == len(seen)
    made = {(r["provenance"].get("chapter"), r["profile"]) for r in records}
    assert seen == {(name, profile) for name, profile in made if name}
    one = next(row for row in rows if "`05-" in row and "| digits |" in row)
    last = max(
        r["provenance"]["utc"]
        for r in records
        if r["profile"] == "digits" and r["provenance"].get("chapter", "").startswith("05-")
    )
    assert f"| {last[:10]} |" in one


# ---- what search finds


def test_search_is_fed_prose_and_no_code_output_or_formulas():
    page = publish_doctree(
        "Title\n=====\n\nWords :math:`\\beta_k` first::\n\n  call()\n\nThen more."
    )
    source = nodes.container(nb_element="cell_code_source")
    source += nodes.paragraph("", "loop()")
    output = nodes.container(nb_element="cell_code_output")
    output += [nodes.literal_block("", "printed"), nodes.paragraph("", "a table of words")]
    page += [source, output, nodes.math_block("", "\\sum")]
    before = page.pformat()
    text = prose_of(page).astext()
    for word in ("Title", "Words", "first:", "Then more.", "a table of words"):
        assert word in text
    for other in ("beta", "call", "loop", "printed", "sum"):
        assert other not in text
    assert page.pformat() == before


def test_search_takes_for_headings_those_of_sections_and_terms_and_for_words_the_index_too():
    text = "Title\n=====\n\nA part\n------\n\n.. table:: A caption\n\n   = =\n   a b\n   = ="
    page = publish_doctree(text, settings_overrides={"doctitle_xform": False})
    term = nodes.term("", "nat", ids=["term-nat"])
    page += nodes.definition_list("", nodes.definition_list_item("", term))
    entries = [("single", "evaluate my model", "index-0", "main", None)]
    entries += [("single", "ais() (in module x)", "x.ais", "", None)]
    page += addnodes.index(entries=entries)
    prose = prose_of(page)
    titles = {title.astext(): title.parent["ids"] for title in prose.findall(nodes.title)}
    assert titles == {"Title": ["title"], "A part": ["a-part"], "nat": ["term-nat"]}
    for word in ("A caption", "evaluate my model"):
        assert word in prose.astext()
    assert "ais()" not in prose.astext()
    assert [node["entries"] for node in prose.findall(addnodes.index)] == [entries]


TABLE = """
======= ===================================== ===========================
model   reason                                command
======= ===================================== ===========================
CD1(20) the start is too far off for this K   paperlib evaluate model.npz
CD3(20) none                                  none
======= ===================================== ===========================
"""


def test_columns_are_marked_by_what_they_hold():
    page = publish_doctree(TABLE)
    mark_columns(None, page, "page")
    classes = [cell["classes"] for cell in page.findall(nodes.entry)]
    # a command is neither a sentence nor a value that must stay on its line
    assert classes == [[], [], []] + [["values"], ["words"], []] * 2


def test_long_heading_is_marked_above_short_values():
    page = publish_doctree(TABLE.replace("command\n", "what computed it, and when\n"))
    mark_columns(None, page, "page")
    heads = list(page.findall(nodes.entry))[:3]
    assert [head["classes"] for head in heads] == [[], [], ["words"]]


# ---- the glossary's terms


GLOSSARY = """# Glossary

```{glossary}
AIS
annealed importance sampling
  An estimate, see {doc}`08-other`. See {doc}`04-chapter`.

gap
  A difference. See {doc}`08-other`.

mode
  A region. See {doc}`04-chapter`.

nothing of it
  Is there. See {doc}`04-chapter`.
```
"""
TEXT = """# Title

A model, and ais.

```python
mode = 1
```

| mode |
| --- |
| 1 |

```{note}
A mode in a box.
```

- a mode in a list

Many modes, gap.

## Section

AIS first.

That is *annealed importance sampling*.
"""


def test_terms_are_entered_where_the_chapter_defines_them(tmp_path):
    pages = {"04-chapter": TEXT, "08-other": "# Other\n\nA gap.", "glossary": GLOSSARY}
    book = Book(tmp_path, pages)
    assert book.warnings == ""
    app = book.app
    entries = app.env.get_domain("index").data["entries"]
    entered = {place: term for _, term, place, *_ in entries["book/04-chapter"]}
    assert {term for _, term, *_ in entries["book/08-other"]} == {"gap"}
    page = book.page("04-chapter")
    app.emit("doctree-resolved", page, "book/04-chapter")
    places = {
        entered.pop(identifier): paragraph.astext()
        for paragraph in page.findall(nodes.paragraph)
        for identifier in paragraph["ids"]
    }
    assert places == {
        "nothing of it": "A model, and ais.",
        "mode": "Many modes, gap.",
        "AIS": "AIS first.",
        "annealed importance sampling": "That is annealed importance sampling.",
    }
    assert entered == {}
    # the search reads them from the page
    assert len([i for i in page.findall(addnodes.index) if i["entries"][0][3] == "main"]) == 4


def test_a_changed_glossary_changes_the_index(tmp_path):
    book = Book(
        tmp_path, {"04-chapter": TEXT, "08-other": "# Other\n\nA gap.", "glossary": GLOSSARY}
    )
    glossary = tmp_path / "book" / "glossary.md"
    glossary.write_text(GLOSSARY.replace("A region. See {doc}`04-chapter`", "See {doc}`08-other`"))
    written = book.read()
    entries = book.app.env.get_domain("index").data["entries"]
    assert "mode" not in {term for _, term, *_ in entries["book/04-chapter"]}
    assert {term for _, term, *_ in entries["book/08-other"]} == {"gap", "mode"}
    assert {"book/04-chapter", "book/08-other", "book/glossary"} == set(written)
