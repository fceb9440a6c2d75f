"""README fits on two screens, and its commands and those of the page on your own RBM work."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from enumeration import random_rbm
from evaluations import run
from typer.testing import CliRunner

from boltzmann_likelihood import cli
from paperlib.datasets import binarize
from paperlib.estimators import exact_log_z
from paperlib.storage import repository_root

ROOT = repository_root()
README = (ROOT / "README.md").read_text()
PAGE = (ROOT / "book" / "your-own-rbm.md").read_text()


NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def numbers(line):
    return [float(number.replace(",", "")) for number in NUMBER.findall(line)]


def blocks(language, text):
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


# ---- README


def test_the_report_in_the_readme_is_one_run(monkeypatch, tmp_path):
    """That of its commands; and the sentence below says what these lines say."""
    example = next(block for block in blocks("console", README) if "compare" in block)
    snippet, command = re.findall(
        r"^\$ \.venv/bin/(?:python|paperlib) (.*)$", example, re.MULTILINE
    )
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    exec(shlex.split(snippet.removeprefix("-c "))[0])
    printed = {NUMBER.sub("#", line): line for line in run(command).splitlines()}
    shown = [line for line in example.splitlines() if not line.startswith("$")]
    assert len(shown) == 6
    for line in shown:
        # chains are the same bits on every processor, sums may differ in a last digit
        assert numbers(line) == pytest.approx(numbers(printed[NUMBER.sub("#", line)]), abs=0.011)
    first, second, (_, pixels), (apart,), _, _ = map(numbers, shown)
    assert f"by {apart:.2f} nats, and independent pixels by {first[0] - pixels:.2f}." in README
    assert apart == pytest.approx(first[0] - second[0], abs=0.011)


def test_bibtex_says_what_the_citation_says():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    (entry,) = blocks("bibtex", README)
    fields = dict(re.findall(r"^  (\w+) += \{+(.*?)\}+,?$", entry, flags=re.MULTILINE))
    assert fields.pop("year") == str(citation["date-released"].year)
    assert fields.pop("author") == " and ".join(a["name"] for a in citation["authors"])
    fields.pop("url", None)  # tests/test_release.py compares it
    assert fields == {"title": citation["title"], "version": citation["version"]}


# ---- the page on your own RBM


# The schedules that take minutes, and what replaces them here. All else is run as printed.
SMALLER = {
    "salakhutdinov_murray_betas()": "uniform_betas(100)",
    "uniform_betas(10_000)": "uniform_betas(100)",
    "minutes=2,": "minutes=0.005,",
}
MODEL = random_rbm(16, 30, seed=32, scale=0.3)


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What the page's snippets take for granted: parameters and images.

    As `np.load` or `binarize` gives them.
    """
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    parameters = {name: tensor.numpy() for name, tensor in MODEL.tensors().items()}
    return parameters | {
        "np": np,
        "train": (rng.random((300, 16)) < 0.4).astype(np.uint8),
        "test": (rng.random((120, 16)) < 0.4).astype(np.uint8),
    }


def run_snippets(names):
    """All Python blocks one after the other, as a reader would type them."""
    np.save("train.npy", names["train"])  # the page: "train.npy alike"
    snippets = blocks("python", PAGE)
    assert all("\n".join(snippets).count(long) == 1 for long in SMALLER)
    for snippet in snippets:
        code = snippet
        for long, short in SMALLER.items():
            code = code.replace(long, short)
        exec(compile(code, "your-own-rbm.md", "exec"), names)


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
    images = torch.from_numpy(names["test"]).double()
    names |= {"train": form(names["train"]), "test": form(names["test"])}
    run_snippets(names)
    assert "+-" in capsys.readouterr().out
    assert np.load("test.npy").shape == (120, 16)
    exact = exact_log_z(MODEL)
    average = MODEL.log_unnormalized(images).mean().item() - exact
    # the runs have no seed; this is six times the deviation of ln Z, 0.03
    assert names["average"].mean == pytest.approx(average, abs=0.2)
    assert names["above"].log_z == pytest.approx(exact, abs=0.2)


@pytest.mark.usefixtures("_estimated")
def test_evaluate_as_it_is_printed(names):
    run_snippets(names | {"test": torch.from_numpy(names["test"])})
    (command,) = re.findall(r"^\$ \.venv/bin/paperlib (evaluate .*)$", PAGE, flags=re.MULTILINE)
    # two minutes by default
    run(f"{command} --minutes 0.005 --json r.json")
    assert Path("r.json").is_file()


def test_commands_and_options_exist():
    running = (ROOT / "book" / "running.md").read_text()
    text = "\n".join([README, PAGE, running])
    commands = re.findall(
        r"^(?:\$ )?(?:\S+=\S+ )?\.venv/bin/paperlib (.*)$", text, flags=re.MULTILINE
    )
    commands += re.findall(r"`paperlib (\w+ .*?)`", text)
    assert len(commands) >= 12
    for command in commands:
        name, *rest = shlex.split(command.split(" # ")[0])
        shown = CliRunner().invoke(cli.app, [name, "--help"], env={"COLUMNS": "200"}).output
        for option in (word for word in rest if word.startswith("--")):
            assert option in shown, f"{name} {option}"
