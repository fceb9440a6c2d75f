"""What the book's build adds to its copies of the chapters, and to its settings."""

from pathlib import Path

import nbformat
import pytest
import yaml

from paperlib.reproduction.book import as_page, toc_pages, with_repository

ROOT = Path(__file__).parents[1]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text())


def chapter(code):
    figure = {"figure": {"caption": "Dots.", "name": "fig-x"}}
    return nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("# Title"),
            nbformat.v4.new_code_cell("seed = 1", metadata={"tags": ["parameters"]}),
            nbformat.v4.new_code_cell(code, metadata={"mystnb": figure}),
        ]
    )


def caption(code):
    page = as_page(chapter(code), "05-exact-partition-functions", "digits")
    return page.cells[-1].metadata["mystnb"]["figure"]["caption"]


@pytest.mark.parametrize(
    "code",
    [
        'run.save("sm2008-figure-3", {}, rows, figure=figure)',
        'name = "sm2008-figure-3"\nif rows:\n    run.save(name, {}, rows, figure=figure)',
        'first = run.save("sm2008-table-1", {}, [])\nrun.save("sm2008-figure-3", {}, [], figure=f)',
    ],
)
def test_figure_of_a_record_gets_its_source(code):
    assert caption(code).startswith("Dots. <small>[figures/digits/sm2008-figure-3.json]")
    assert "paperlib reproduce --profile digits --only 05" in caption(code)


@pytest.mark.parametrize(
    "code", ["plt.plot(x)", 'run.save("sm2008-table-1", {}, rows)', "draw(figure=figure)"]
)
def test_figure_without_a_record_keeps_its_caption(code):
    assert caption(code) == "Dots."


def test_stored_figure_in_the_text_gets_its_source():
    text = "```{figure} ../figures/paper/sm2008-figure-3.svg\n:name: x\n\nDots.\n```\n\nMore.\n```\ncode\n```"
    notebook = chapter("1")
    notebook.cells.append(nbformat.v4.new_markdown_cell(text))
    lines = as_page(notebook, "05-exact-partition-functions", "digits").cells[-1].source.split("\n")
    assert lines[3] == "Dots."
    assert "paperlib reproduce --profile paper --only 05" in lines[4]
    assert lines[5:] == text.split("\n")[4:]


def test_box_stands_before_the_parameters_and_the_notebook_is_left_alone():
    notebook = chapter("1")
    before = nbformat.writes(notebook)
    page = as_page(notebook, "05-exact-partition-functions", "digits")
    assert "--only 05\n" in page.cells[1].source
    assert page.cells[2].metadata["tags"] == ["parameters"]
    assert nbformat.writes(notebook) == before


def theme_options(environment, config=CONFIG):
    return with_repository(config, environment)["sphinx"]["config"]["html_theme_options"]


def test_without_an_address_there_are_no_links_to_it():
    assert theme_options({}) == {"show_toc_level": 2}


def test_workflow_gives_its_own_address_and_commit():
    environment = {"GITHUB_REPOSITORY": "someone/companion", "GITHUB_SHA": "abc"}
    options = theme_options(environment)
    assert options["repository_url"] == "https://github.com/someone/companion"
    assert options["repository_branch"] == "abc"
    assert options["launch_buttons"]["binderhub_url"] == "https://mybinder.org"
    assert options["use_repository_button"]
    assert options["show_toc_level"] == 2


def test_a_written_address_comes_first():
    config = CONFIG | {"repository": {"url": "https://example.org/a/b", "branch": "main"}}
    options = theme_options({"GITHUB_REPOSITORY": "someone/fork", "GITHUB_SHA": "abc"}, config)
    assert options["repository_url"] == "https://example.org/a/b"
    assert options["repository_branch"] == "main"


def test_table_of_contents_is_read_whole():
    pages = toc_pages(ROOT / "_toc.yml")
    assert pages[0] == "book/intro"
    assert "book/running" in pages
    assert len(pages) == len(set(pages)) > 18
