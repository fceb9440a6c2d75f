"""Pages for those who change the code: they name what is there, all of it, and nothing else."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from test_rooms import FLOOR

ROOT = Path(__file__).parents[1]
BOOK = ROOT / "book"


def variables_of_the_code():
    files = [
        path
        for part in ("paperlib", "likelihood", "book/companion", "benchmarks")
        for path in (ROOT / part).rglob("*.py")
    ]
    texts = [path.read_text() for path in (*files, ROOT / "Makefile", ROOT / ".ci" / "run")]
    return set(re.findall(r"PAPERLIB_[A-Z]+", "\n".join(texts)))


def test_every_environment_variable_is_on_one_page():
    rows = re.findall(r"^\| `(\w+)` \|", (BOOK / "running.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(variables_of_the_code())


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "book/running.md",
        "book/your-own-rbm.md",
    ],
)
def test_other_pages_name_no_other_variables(page):
    assert set(re.findall(r"PAPERLIB_[A-Z]+", (ROOT / page).read_text())) <= variables_of_the_code()


# The command's own parts are drawn as one room; imports from the tool bear its package's name.
NOT_DRAWN = {
    "boltzmann_likelihood.__init__",
    "boltzmann_likelihood.__main__",
    "boltzmann_likelihood.cli_options",
}


def drawing():
    """The text in the drawing, in letters of code: each package, then its rooms with heights."""
    frames = {}
    for frame in ElementTree.parse(BOOK / "_static" / "rooms.svg").findall("{*}g"):
        name, *rooms = [
            text for text in frame.findall("{*}text") if text.get("font-family", "")[:5] == "Menlo"
        ]
        assert name.text == frame.get("id")
        frames[name.text] = [(f"{name.text}.{room.text}", int(room.get("y"))) for room in rooms]
    return frames


def test_the_rooms_are_drawn_and_described():
    frames = drawing()
    # a package that is one room has its frame alone
    drawn = [room for name, rooms in frames.items() for room, _ in rooms or [(name, 0)]]
    assert sorted(drawn) == sorted(set(FLOOR) - NOT_DRAWN)
    table = (BOOK / "architecture.md").read_text().split("| room |")[1].split("\n\n")[0]
    for room in FLOOR:
        assert f"`{room}`" in table
    # From top to bottom, and from right to left within a row, no room is drawn above one that may
    # not import it.
    floors = []
    for name, rooms in frames.items():
        heights = [height for _, height in rooms]
        assert heights == sorted(heights)
        rows = [[room for room, y in rooms if y == height] for height in dict.fromkeys(heights)]
        floors += [FLOOR[room] for row in rows or [[name]] for room in reversed(row)]
    assert floors == sorted(floors, reverse=True)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "AGENTS.md"])
def test_commands_and_files_that_are_named_exist(page):
    text = (ROOT / page).read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z]+)\b(?=`| *#|$)", text, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    named = re.findall(
        r"`((?:book|tests|paperlib|likelihood|benchmarks|data|figures)/[\w./-]*)`", text
    )
    named += re.findall(r"tests/test_\w+\.py", text)
    named += [path for path in re.findall(r"\]\(([^)#]+)", text) if "//" not in path]
    # a clone has no folder yet for what is computed
    missing = [path for path in named if not (ROOT / path).exists() and path != "data/cache"]
    assert missing == []


def test_a_typo_is_mended_with_the_tests_that_read_pages():
    """Those named for it are all those that read the pages and take no part in a build."""
    part = (ROOT / "CONTRIBUTING.md").read_text().partition("## A typo")[2].partition("\n## ")[0]
    named = set(re.findall(r"tests/(test_\w+)\.py", part))
    assert named == {
        "test_book_pages",
        "test_numbers",
        "test_prose",
        "test_readme",
        "test_contributor_pages",
    }
    assert ".ci/run" not in part
