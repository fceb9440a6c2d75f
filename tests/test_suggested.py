"""Every suggestion under "What to try" names something in its chapter; `make try` runs them."""

import ast
import doctest
import re
import textwrap

import pytest
import suggested
from notebooks import EACH_NOTEBOOK, NOTEBOOKS, parameters_of, prose_of
from suggested import Suggestion, bullets, changed, edits, settings_of

SUGGESTIONS = suggested.suggestions()


def test_example_of_the_reader():
    assert doctest.testmod(suggested).failed == 0


@EACH_NOTEBOOK
def test_chapters_that_compute_suggest_something(path):
    assert bullets(path) or path.stem in ("13-reproduction-report", "benchmarks")


@EACH_NOTEBOOK
def test_every_item_is_a_setting_a_change_of_code_or_a_question(path):
    edited = [edit["says"] for edit in edits().get(path.stem, [])]
    for bullet in bullets(path):
        assert settings_of(bullet) or any(bullet.startswith(says) for says in edited), bullet
    for says in edited:
        assert any(bullet.startswith(says) for bullet in bullets(path)), says


@pytest.mark.parametrize("suggestion", SUGGESTIONS, ids=lambda suggestion: suggestion.name)
def test_suggestion_changes_something_that_is_there(suggestion):
    (path,) = [path for path in NOTEBOOKS if path.stem == suggestion.chapter]
    parameters = parameters_of(path)
    for name, value in suggestion.parameters.items():
        assert name in parameters
        assert value != parameters[name]
    for cell in changed(suggestion).cells:
        if cell.cell_type == "code":
            ast.parse(cell.source)


@EACH_NOTEBOOK
def test_chapters_with_changes_of_code_say_how_to_go_on(path):
    if any(len(edit) > 1 for edit in edits().get(path.stem, [])):
        assert "add the line `chapter.as_given = False`" in prose_of(path)


@EACH_NOTEBOOK
def test_code_that_a_chapter_shows_is_what_is_run(path):
    shown = re.findall(r"^  ```python\n(.*?)^  ```$", prose_of(path), re.MULTILINE | re.DOTALL)
    run = [more for s in SUGGESTIONS if s.chapter == path.stem for more in s.append.values()]
    for code in shown:
        assert textwrap.dedent(code).strip() in run


def test_code_that_is_not_there_is_noticed():
    with pytest.raises(ValueError, match="expected 'no such code' once, found 0"):
        changed(Suggestion("05-exact-partition-functions", "", replace={"no such code": ""}))


@EACH_NOTEBOOK
def test_numbers_in_the_text_are_settings_only_with_their_name(path):
    # `a = 1` or `2` would leave the second one unread.
    for bullet in bullets(path):
        assert not re.search(r"` or `[\d_.]+`|, then `[\d_.]+`", bullet), bullet
