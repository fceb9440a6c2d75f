"""What the command says when something goes wrong, and with which exit code."""

import re
import subprocess
import sys
import textwrap
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

import paperlib
from boltzmann_likelihood.cli import _OF_THE_BOOK, app
from boltzmann_likelihood.cli_options import Job


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
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("raises", "code", "sentence"),
    [
        ("InputError('minutes: expected a positive number, got 0')", 2, "minutes: expected"),
        ("ReproductionError('chapter raise failed')", 1, "chapter raise failed"),
        ("OSError(28, 'No space left on device', 'x')", 1, "[Errno 28] No space left"),
        ("OSError(30, 'Read-only file system', 'x')", 1, "[Errno 30] Read-only file system: 'x'"),
        ("PermissionError(13, 'Permission denied', 'x')", 1, "[Errno 13] Permission denied: 'x'"),
    ],
)
def test_what_a_user_can_mend_is_one_sentence(raises, code, sentence):
    result = command_that(raises)
    assert result.returncode == code
    assert result.stderr.startswith(f"paperlib: {sentence}")
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


@pytest.fixture
def command_with(command, monkeypatch):
    """Runs a command with this body: exit code, standard output and standard error."""

    def run(body):
        monkeypatch.setattr(app, "registered_commands", [*app.registered_commands])
        app.command("broken")(body)
        return command("broken")

    return run


TORCH = "DefaultCPUAllocator: can't allocate memory: you tried to allocate {} bytes. Error code 12"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (RuntimeError(TORCH.format(3 * 1024**3)), "the memory is not enough: 3.00 GiB more"),
        (RuntimeError(TORCH.format(2**20)), "the memory is not enough: 1 MiB more"),
        (
            RuntimeError(
                "DefaultCPUAllocator: not enough memory: you tried to allocate 8589934592 bytes."
            ),
            "the memory is not enough: 8.00 GiB more",
        ),
        (MemoryError(), "the memory is not enough: more had"),
        (
            MemoryError(
                "Unable to allocate 7.11 TiB for an array with shape (1, 2) and data type float64"
            ),
            "the memory is not enough: 7,280.64 GiB more",
        ),
        (
            torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 20.50 GiB. GPU 0 has a total capacity"
            ),
            "the GPU's memory is not enough: 20.50 GiB more",
        ),
        (OSError(12, "Cannot allocate memory"), "the memory is not enough: more had"),
        (RuntimeError("std::bad_alloc"), "the memory is not enough: more had"),
    ],
)
def test_want_of_memory_is_one_sentence_with_what_helps(error, sentence, command_with):
    def fail():
        raise error

    code, output, message = command_with(fail)
    assert (code, output) == (1, "")
    assert message.startswith(f"paperlib: {sentence}")
    assert len(message.splitlines()) == 1
    assert "What helps: " in message
    assert ("--device cpu" in message) is ("GPU" in sentence)
    assert "bug" not in message


@pytest.mark.parametrize(
    ("allocate", "amount"), [(torch.empty, "3,725,290.30 GiB more"), (np.empty, "7,")]
)
def test_real_want_of_memory_is_no_bug(allocate, amount, command_with):
    code, _, message = command_with(lambda: allocate(10**15))
    assert code == 1
    assert message.startswith(f"paperlib: the memory is not enough: {amount}")


def test_an_interruption_has_neither_traceback_nor_blame():
    result = command_that("KeyboardInterrupt")
    assert result.returncode == 130
    assert result.stderr == "paperlib: interrupted\n"
    assert "Traceback" not in result.stderr
    assert "bug" not in result.stderr


def test_every_argument_and_option_says_what_it_is():
    commands = typer.main.get_command(app).commands
    jobs = ["evaluate", "audit", "compare", "training"]
    assert list(commands)[:4] == jobs
    assert set(commands) - set(jobs) == _OF_THE_BOOK
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
    options = typer.main.get_command(app).commands["evaluate"].params
    assert [
        option.name for option in options if option.help.replace("\\[", "[") not in printed
    ] == []
    for name, command in typer.main.get_command(app).commands.items():
        for text in (command.help, *(parameter.help for parameter in command.params)):
            assert not re.search(r"(?<!\\)\[[a-z]", text), (name, text)


def test_the_options_of_a_job_are_the_same_in_every_command():
    """With the defaults of `Job`, and each in the field of its name."""
    commands = typer.main.get_command(app).commands
    expected = {field.name: field.default for field in fields(Job) if field.name != "data"}
    for name in ("evaluate", "audit", "compare", "training"):
        options = {option.name: option.default for option in commands[name].params}
        assert expected.items() <= options.items(), name


ALL_OPTIONS = {
    "data": Path("t.npy"),
    "train": Path("u.npy"),
    "weights": Path("w.npy"),
    "binarize": 3,
    "threshold": 0.5,
    "names": "weights=W",
    "minutes": 0.25,
    "steps": 64,
    "tempering_steps": 5_000,
    "seed": 7,
    "device": "cpu",
    "json": Path("r.json"),
}


@pytest.mark.parametrize("models", ["evaluate m", "audit m", "compare m n", "training m n"])
def test_every_option_reaches_its_field(models, monkeypatch):
    reached = []

    def stop(job, *_, **__):
        reached.append(job)
        raise typer.Exit

    monkeypatch.setattr("boltzmann_likelihood.cli.require_files", stop)
    words = [f"--{name.replace('_', '-')}={value}" for name, value in ALL_OPTIONS.items()]
    CliRunner().invoke(app, [*models.split(), *words])
    assert reached == [Job(**ALL_OPTIONS)]


def test_a_paragraph_of_a_help_text_is_one_line():
    """It would be broken in the middle of a terminal's line."""
    commands = typer.main.get_command(app).commands
    lines = [line for command in commands.values() for line in command.help.split("\n\n")]
    assert len(lines) > len(commands)
    assert not any("\n" in line for line in lines)
