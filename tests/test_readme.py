"""What README tells its readers to type works, on small data in a folder of its own."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from paperlib import cli
from paperlib.datasets import binarize
from paperlib.storage import repository_root

README = (repository_root() / "README.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


# The sizes that take minutes, and what stands in for them here. All else is run as it is printed.
SMALLER = {
    "salakhutdinov_murray_betas()": "salakhutdinov_murray_betas(0.01)",
    "uniform_betas(10_000)": "uniform_betas(50)",
    "num_chains=100": "num_chains=20",
    "num_chains=50": "num_chains=5",
}


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What README's snippets take for granted: parameters and images, as `np.load` or `binarize` gives them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    return {
        "np": np,
        "weights": rng.normal(0, 0.3, (30, 27)),
        "visible_bias": np.zeros(30),
        "hidden_bias": np.zeros(27),
        "train": (rng.random((300, 30)) < 0.4).astype(np.uint8),
        "test": (rng.random((120, 30)) < 0.4).astype(np.uint8),
    }


def run_snippets(names):
    """All Python blocks one after the other, as a reader would type them."""
    snippets = blocks("python")
    assert len(snippets) >= 2
    np.save("train.npy", names["train"])  # README: "train.npy alike"
    for snippet in snippets:
        for size, smaller in SMALLER.items():
            snippet = snippet.replace(size, smaller)
        exec(compile(snippet, "README.md", "exec"), names)


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda v: v, id="numpy"),
        pytest.param(lambda v: v.astype(bool), id="numpy booleans"),
        pytest.param(torch.from_numpy, id="tensors of bytes"),
        pytest.param(lambda v: binarize(v * 1.0, 0), id="binarize"),
    ],
)
def test_snippets(names, form, capsys):
    names |= {"train": form(names["train"]), "test": form(names["test"])}
    run_snippets(names)
    assert "+-" in capsys.readouterr().out
    assert names["rbm"].num_visible == 30


def test_every_size_that_is_made_smaller_still_stands_there():
    text = "\n".join(blocks("python"))
    assert all(size in text for size in SMALLER)


def test_evaluate_as_it_is_printed(names):
    run_snippets(names | {"test": torch.from_numpy(names["test"])})
    commands = re.findall(r"^\$ \.venv/bin/paperlib (evaluate .*)$", README, flags=re.MULTILINE)
    assert commands
    for command in commands:
        # two minutes by default
        arguments = [*shlex.split(command), "--minutes", "0.005", "--json", "r.json"]
        result = CliRunner().invoke(cli.app, arguments)
        assert result.exit_code == 0, result.output
        example = next(block for block in blocks("console") if command in block)
        promised, printed = (
            # up to the colon, and without the numbers
            {re.sub(r"-?[\d.,]+", "#", line.split(":")[0].strip()) for line in text.splitlines() if ":" in line}
            for text in (example, result.output)
        )  # fmt: skip
        assert promised <= printed
        assert Path("r.json").is_file()


def test_commands_and_options_exist():
    commands = re.findall(r"^\$ (?:\S+=\S+ )?\.venv/bin/paperlib (.*)$", README, flags=re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        name, *rest = shlex.split(command.split("  #")[0].split(" # ")[0])
        shown = CliRunner().invoke(cli.app, [name, "--help"], env={"COLUMNS": "200"}).output
        for option in (word for word in rest if word.startswith("--")):
            assert option in shown, f"{name} {option}"
