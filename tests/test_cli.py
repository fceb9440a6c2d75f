"""What the command says when something goes wrong, and with which exit code."""

import re
import subprocess
import sys
import textwrap

import pytest
import typer
from typer.testing import CliRunner

import paperlib
from boltzmann_likelihood.cli import _OF_THE_BOOK, app
from boltzmann_likelihood.cli_options import Job, _said_of_parameters


def command_that(raises):
    """Run a command whose body raises, in a process of its own."""
    script = f"""
        import sys
        from boltzmann_likelihood import cli
        from paperlib.errors import InputError, ReproductionError

        @cli.app.command()
        def broken():
            raise {raises}

        sys.argv = ["paperlib", "broken"]
        cli.main()
    """
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("raises", "code", "said"),
    [
        ("InputError('minutes: expected a positive number, got 0')", 2, "minutes: expected"),
        ("ReproductionError('chapter raise failed')", 1, "chapter raise failed"),
        ("OSError(28, 'No space left on device', 'x')", 1, "[Errno 28] No space left"),
        ("OSError(30, 'Read-only file system', 'x')", 1, "[Errno 30] Read-only file system: 'x'"),
        ("PermissionError(13, 'Permission denied', 'x')", 1, "[Errno 13] Permission denied: 'x'"),
    ],
)
def test_what_a_user_can_mend_is_one_sentence(raises, code, said):
    result = command_that(raises)
    assert result.returncode == code
    assert result.stderr.startswith(f"paperlib: {said}")
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize("error", ["ValueError", "RuntimeError", "KeyError", "OSError"])
def test_anything_else_keeps_its_traceback_and_is_called_a_bug(error):
    result = command_that(f"{error}('operands could not be broadcast')")
    assert result.returncode == 1
    assert "Traceback" in result.stderr
    assert "in broken" in result.stderr
    assert f"{error}: " in result.stderr
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith(f"This is probably a bug in paperlib {paperlib.__version__}.")


def test_an_interruption_has_neither_traceback_nor_blame():
    result = command_that("KeyboardInterrupt")
    assert result.returncode == 130
    assert "Traceback" not in result.stderr
    assert "bug" not in result.stderr


def test_every_argument_and_option_says_what_it_is():
    """A name that the docstring spells differently would go without help."""
    commands = typer.main.get_command(app).commands
    own = ["evaluate", "audit", "compare", "training"]
    assert list(commands)[:4] == own
    assert set(commands) - set(own) == _OF_THE_BOOK
    silent = [
        f"{name} {parameter.name}"
        for name, command in commands.items()
        for parameter in command.params
        if not parameter.help
    ]
    assert silent == []


def test_no_bracket_of_a_help_text_is_taken_for_markup(monkeypatch):
    """It would not be printed."""
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 2_000)
    printed = " ".join(CliRunner().invoke(app, ["evaluate", "--help"]).stdout.split())
    assert [text for _, text in _said_of_parameters(Job).values() if text not in printed] == []
    for name, command in typer.main.get_command(app).commands.items():
        for text in (command.help, *(parameter.help for parameter in command.params)):
            assert not re.search(r"(?<!\\)\[[a-z]", text), (name, text)


def test_a_paragraph_of_a_help_text_has_no_line_of_its_docstring():
    """It would be broken in the middle of a terminal's line."""
    commands = typer.main.get_command(app).commands
    lines = [line for command in commands.values() for line in command.help.split("\n\n")]
    assert len(lines) > len(commands)
    assert not any("\n" in line for line in lines)
