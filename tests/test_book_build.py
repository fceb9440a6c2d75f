"""What the book's build adds to its copies of the chapters, and to its settings."""

import ast
import re
from collections import Counter

import nbformat
import pytest
import yaml
from docutils import nodes
from docutils.core import publish_doctree
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebooks import EACH_NOTEBOOK, ROOT, read
from sphinx import addnodes

from boltzmann_companion.build.book import (
    as_download,
    as_page,
    claims_checked,
    with_address,
    with_footer,
    with_repository,
)
from boltzmann_companion.build.extension import mark_columns, prose_of
from boltzmann_companion.build.glossary import add_index_entries, defining_chapters
from boltzmann_companion.build.runner import chapters, check_parameters
from boltzmann_companion.build.status import status_table
from boltzmann_companion.records import read_record
from paperlib import __version__

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text())
CONFIG["repository"]["url"] = ""  # whatever it is


def chapter(*records):
    """A notebook whose last cell shows a figure, and saves it with these records."""
    figure = {"figure": {"caption": "Dots.", "name": "fig-x"}}
    cells = [
        new_markdown_cell("# Title"),
        new_code_cell("seed = 1", metadata={"tags": ["parameters"]}),
        new_code_cell("1", metadata={"mystnb": figure}),
    ]
    cells[-1].outputs = [
        new_output("stream", text="printed"),
        new_output("display_data", {"image/png": ""}),
    ]
    for record in records:
        saved = {"paperlib": {"record": record}}
        cells[-1].outputs.append(new_output("display_data", {"image/png": ""}, metadata=saved))
    return new_notebook(cells=cells)


def page_of(notebook):
    return as_page(notebook, "05-exact-partition-functions", "digits")


def caption(*records):
    return page_of(chapter(*records)).cells[-1].metadata["mystnb"]["figure"]["caption"]


def test_figure_of_a_record_gets_its_source():
    text = caption("sm2008-figure-3")
    assert text.startswith("Dots. <small>[figures/digits/sm2008-figure-3.json]")
    assert "paperlib reproduce --profile digits --only 05" in text


@pytest.mark.parametrize("records", [(), ("no-such-record",)])
def test_figure_without_a_record_keeps_its_caption(records):
    assert caption(*records) == "Dots."


def test_stored_figure_in_the_text_gets_its_source():
    text = "```{figure} ../figures/paper/sm2008-figure-3.svg\n:name: x\n\nDots.\n```\n\nMore.\n```\ncode\n```"
    notebook = chapter()
    notebook.cells.append(new_markdown_cell(text))
    lines = page_of(notebook).cells[-1].source.split("\n")
    assert lines[3] == "Dots."
    assert "paperlib reproduce --profile paper --only 05" in lines[4]
    assert lines[5:] == text.split("\n")[4:]


def test_box_stands_before_the_parameters_and_the_notebook_is_left_alone():
    notebook = chapter()
    before = nbformat.writes(notebook)
    page = page_of(notebook)
    assert "--only 05\n" in page.cells[1].source
    assert page.cells[2].metadata["tags"] == ["parameters"]
    assert nbformat.writes(notebook) == before


@EACH_NOTEBOOK
def test_box_runs_its_chapter_and_shows_one_of_its_parameters(path):
    page = as_page(read(path), path.stem, "digits")
    (box,) = [cell.source for cell in page.cells if "Run this chapter" in cell.source]
    (number,) = set(re.findall(r"--only (\w+)", box))
    assert chapters([number]) == [path]
    name, value = re.search(r"--set (\w+)=(\S+)$", box, re.MULTILINE).groups()
    check_parameters(path, {name: ast.literal_eval(value)})
    assert (name == "seed") == (path.stem in ("13-reproduction-report", "benchmarks"))


def page_cell(printed, metadata):
    """The last cell of a page, which has shown this."""
    notebook = chapter()
    notebook.cells.append(new_code_cell("1", metadata=metadata, outputs=[printed]))
    return page_of(notebook).cells[-1]


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("it holds: yes\n", "Checked: 1 claim"),
        (
            "a: yes\nwhat came out: 3\nb: no, as the text says\nc: no (with your settings)\n"
            "d: no, not as the text says\n",
            "Checked: 4 claims",
        ),
    ],
)
def test_line_to_which_a_cell_of_checks_folds_counts_them(text, prompt):
    printed = new_output("stream", text=text)
    cell = page_cell(printed, {"tags": ["checks", "hide-cell"]})
    assert cell.metadata["mystnb"]["code_prompt_show"] == prompt
    assert cell.outputs == [printed]


def test_folded_cell_that_shows_nothing_is_joined_to_the_folded_one_below():
    printed = new_output("stream", text="it holds: yes\n")
    folded, checks = {"tags": ["hide-input"]}, {"tags": ["checks", "hide-cell"]}
    cells = [
        new_code_cell("a = 1", metadata=folded),
        new_code_cell("b = 2", metadata=folded),
        new_code_cell("print(a)", metadata=folded, outputs=[printed]),
        new_code_cell("c = 3", metadata=folded),
        new_code_cell("check(c)", metadata=checks, outputs=[printed]),
        new_code_cell("d = 4", metadata=folded),
        new_code_cell("open"),
    ]
    notebook = chapter()
    notebook.cells += cells
    page = page_of(notebook)
    assert [cell.source for cell in page.cells[-5:]] == [
        "a = 1\n\n\nb = 2\n\n\nprint(a)",
        "c = 3",
        "check(c)",
        "d = 4",
        "open",
    ]
    assert page.cells[-5].outputs == [printed]


def test_table_with_a_caption_is_numbered_and_keeps_its_source():
    markdown = "| a |\n| --- |\n| 1 |\n\n<small>source</small>"
    table = new_output("execute_result", {"text/markdown": markdown})
    named = {"paperlib": {"table": {"caption": "Costs.", "name": "tab-05-costs"}}}
    lines = page_cell(table, named).outputs[0].data["text/markdown"].split("\n")
    assert lines[:2] == [":::{table} Costs.", ":name: tab-05-costs"]
    assert lines[3:] == [*markdown.split("\n")[:3], ":::", "", "<small>source</small>"]
    assert page_cell(table, {}).outputs[0].data["text/markdown"] == markdown


def theme_options(environment, config=CONFIG):
    return with_repository(config, environment)["sphinx"]["config"]["html_theme_options"]


def test_without_an_address_there_are_no_links_to_it():
    assert set(theme_options({})) == {"show_toc_level", "logo"}


def test_workflow_gives_its_own_address_and_commit_and_pages_are_edited_on_its_branch():
    environment = {"GITHUB_REPOSITORY": "someone/companion", "GITHUB_SHA": "abc"}
    sphinx = with_repository(CONFIG, environment)["sphinx"]["config"]
    options = sphinx["html_theme_options"]
    assert options["repository_url"] == "https://github.com/someone/companion"
    assert options["repository_branch"] == "abc"
    assert options["launch_buttons"]["binderhub_url"] == "https://mybinder.org"
    for button in ("repository", "issues", "edit_page"):
        assert options[f"use_{button}_button"]
    assert options["show_toc_level"] == 2
    edit = sphinx["html_context"]["edit_page_url_template"]
    assert edit == "https://github.com/someone/companion/edit/main/{{ file_name }}"
    assert "edit_page_url_template" not in CONFIG["sphinx"]["config"]["html_context"]


def test_a_written_address_comes_first():
    config = CONFIG | {"repository": {"url": "https://example.org/a/b", "branch": "main"}}
    options = theme_options({"GITHUB_REPOSITORY": "someone/fork", "GITHUB_SHA": "abc"}, config)
    assert options["repository_url"] == "https://example.org/a/b"
    assert options["repository_branch"] == "main"


# ---- one address, in all places or in none


ADDRESS = "https://example.org/someone/companion"
SOURCES = {path.name: path.read_text() for path in (ROOT / "book").glob("*.md")}


def with_it(url):
    """Everything of the book in which the address stands, in one text."""
    pages = [with_address(text, url) for text in SOURCES.values()]
    pages += [cell.source for cell in as_page(chapter(), "05-x", "digits", url).cells]
    pages += [cell.source for cell in as_download(chapter(), url, "main").cells]
    return "\n".join(pages)


def test_with_an_address_it_can_be_cloned_cited_and_opened_on_colab():
    text = with_it(ADDRESS)
    assert f"git clone {ADDRESS} companion\n" in text
    assert f"  url     = {{{ADDRESS}}},\n" in text
    assert "[Colab](https://colab.research.google.com/)" in text
    assert f"installs them from <{ADDRESS}>" in text
    for name, where in (
        ("paperlib", "main"),
        ("likelihood", "main#subdirectory=likelihood"),
        ("companion", "main#subdirectory=book/companion"),
    ):
        assert f'"boltzmann-{name} @ git+{ADDRESS}@{where}"' in text
    assert "REPOSITORY_URL" not in text


def test_without_an_address_there_is_neither_one_nor_a_placeholder():
    text = with_it("")
    for word in ("REPOSITORY_URL", "git clone", "google.com", "git+", "url     ="):
        assert word not in text
    # Nothing else is left out.
    gone = sum(page.count("\n") - with_address(page, "").count("\n") for page in SOURCES.values())
    assert gone == 2


def test_only_a_download_installs_the_packages_and_only_on_colab():
    notebook = chapter()
    before = nbformat.writes(notebook)
    cell = as_download(notebook, ADDRESS, "abc").cells[1]
    assert nbformat.writes(notebook) == before
    assert cell.metadata["tags"] == ["colab"]
    magic = cell.source.replace("%pip install", "installed = ").replace('--quiet "', '"')
    names = {}
    exec(magic, names)
    assert "installed" not in names


# ---- what a page says of its making


@pytest.mark.parametrize(
    ("url", "state", "said"),
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
def test_foot_of_a_page_has_version_commit_and_date(url, state, said):
    config = CONFIG | {"repository": {"url": url, "branch": "main"}}
    options = with_footer(with_repository(config, {}), *state)["sphinx"]["config"]
    footer = options["html_theme_options"]["extra_footer"]
    assert footer.startswith(f"Version {__version__}{said}20")


def test_claims_are_counted_by_their_answer():
    text = "a: yes\nb: no, as the text says\nc: yes\nd: no, not as the text says\ne: no comment\n"
    printed = new_output("stream", text=text)
    notebook = chapter()
    notebook.cells.append(new_code_cell("", metadata={"tags": ["checks"]}))
    notebook.cells[-1].outputs = [printed]
    notebook.cells[-2].outputs = [printed]  # no check
    assert claims_checked(notebook) == {
        "yes": 2,
        "no, as the text says": 1,
        "no, not as the text says": 1,
    }


def test_status_counts_a_no_that_the_text_says_among_what_came_out_as_it_says():
    made = {"chapter": "05-exact", "utc": "2026-11-24T22:55:46+00:00", "seconds": 56.3}
    made |= {"version": "0.3.0", "commit": "0123456789", "python": "3.11.7"}
    record = {"profile": "digits", "provenance": made}
    said = {"yes": 5, "no, as the text says": 2, "no, not as the text says": 1}
    said["yes, not as the text says"] = said["no (with your settings)"] = 1
    table = status_table([record], {("05-exact", "digits"): Counter(said)})
    assert table.endswith(" | 7 of 10 | 2 |\n")


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


def test_terms_are_entered_where_the_chapter_defines_them():
    terms = defining_chapters(GLOSSARY)
    assert terms == {
        "AIS": "04-chapter",
        "annealed importance sampling": "04-chapter",
        "gap": "08-other",
        "mode": "04-chapter",
        "nothing of it": "04-chapter",
    }
    cells = [
        "# Title\n\nA model, and ais.",
        "```python\nmode = 1\n\nmode = 2\n```\n\n| mode |\n\nMany modes, gap.",
        "AIS first.\n\nThat is *annealed importance sampling*.",
    ]
    page = new_notebook(cells=[new_markdown_cell(c) for c in cells])
    add_index_entries(page, "04-chapter", terms)

    def entry(term):
        return f"```{{index}} ! single: {term}\n```\n\n"

    assert [cell.source for cell in page.cells] == [
        f"# Title\n\n{entry('nothing of it')}A model, and ais.",
        f"```python\nmode = 1\n\nmode = 2\n```\n\n| mode |\n\n{entry('mode')}Many modes, gap.",
        f"{entry('AIS')}AIS first.\n\n{entry('annealed importance sampling')}That is *annealed importance sampling*.",
    ]


def test_index_entry_stands_outside_of_boxes_figures_and_formulas():
    box = "````{admonition} Key\nSome mode.\n\n```{figure} x.svg\n:alt: x\n\nA mode.\n```\n\nA mode.\n````"
    formula = "$$\nx\n\ny\n$$ (eq-x)\n\n$$z$$"
    page = new_notebook(cells=[new_markdown_cell(f"{box}\n\n{formula}\n\nA mode at last.")])
    add_index_entries(page, "04-chapter", {"mode": "04-chapter"})
    assert (
        page.cells[0].source
        == f"{box}\n\n{formula}\n\n```{{index}} ! single: mode\n```\n\nA mode at last."
    )
