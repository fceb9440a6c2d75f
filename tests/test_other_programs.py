"""What the pages for users of other programs tell them to type works as they say."""

import html
import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from enumeration import all_states, random_rbm
from evaluations import run
from scipy.io import savemat
from sklearn.neural_network import BernoulliRBM
from test_foreign import train_archive
from writers import as_julia

from boltzmann_likelihood.evaluation.audit import EXIT_CODES
from boltzmann_likelihood.files import read_model
from paperlib.estimators import exact_log_z
from paperlib.storage import repository_root

BOOK = repository_root() / "book"
FIGURES = repository_root() / "figures"
PAGE = (BOOK / "from-other-programs.md").read_text()
REPORT = (BOOK / "how-to-report.md").read_text()
D = 8
M = 5


def section(name):
    return re.search(rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def images(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pixels = np.random.default_rng(0).integers(0, 2, (60, D), dtype=np.uint8)
    for name in ("test", "train", "validation"):
        np.save(f"{name}.npy", pixels)
    return pixels


def type_in(name, names=None):
    """All Python of a section, then its commands; what these print."""
    for snippet in blocks(section(name), "python"):
        exec(compile(snippet, name, "exec"), names)
    console = "".join(blocks(section(name), "console"))
    printed = []
    for line in re.findall(r"^\$ \.venv/bin/paperlib (.*)$", console, re.MULTILINE):
        printed.append(run(line, *(EXIT_CODES.values() if line.startswith("audit") else [])))
        assert "Verdict: " in printed[-1]
    assert printed
    return printed


def test_pytorch(images):
    """A module whose weights lie as those of a `Linear` do; `test_model_files` has others."""
    rbm = random_rbm(D, M, seed=1)
    model = torch.nn.Module()
    model.W = torch.nn.Parameter(rbm.weights.T.contiguous())
    model.v_bias = torch.nn.Parameter(rbm.visible_bias)
    model.h_bias = torch.nn.Parameter(rbm.hidden_bias)
    evaluated, audited = type_in(
        "PyTorch", {"np": np, "torch": torch, "model": model, "test": images}
    )
    assert f"ln Z = {exact_log_z(rbm):.3f}, exact" in evaluated
    assert "Claimed: " in audited


def test_rbms(images, tmp_path):
    train_archive(tmp_path / "RBM.h5")
    printed = type_in("rbms")
    assert len(printed) == 3
    assert (tmp_path / "training.svg").is_file()
    last = run("evaluate RBM.h5:update_20 --data test.npy --train train.npy")
    assert last == printed[0]


def test_scikit_learn(images):
    rbm = BernoulliRBM(M, n_iter=2, random_state=0).fit(images)
    [printed] = type_in("scikit-learn", {"np": np, "rbm": rbm, "test": images})
    read = read_model("model.npz").rbm
    np.testing.assert_array_equal(read.weights.numpy(), rbm.components_.T)
    assert f"ln Z = {exact_log_z(read):.3f}, exact" in printed


def test_pydeep(images):
    """The energy as its documentation has it: units less offsets."""
    rng = np.random.default_rng(1)
    shapes = {"w": (D, M), "bv": (1, D), "bh": (1, M), "ov": (1, D), "oh": (1, M)}
    theirs = SimpleNamespace(**{name: rng.normal(size=shape) for name, shape in shapes.items()})
    names = {"np": np, "rbm": theirs, "test": images}
    type_in("PyDeep", names)
    ours = read_model("model.npz").rbm
    v = all_states(D).numpy() - theirs.ov
    h = all_states(M).numpy() - theirs.oh
    minus_energy = v @ theirs.bv.T + (h @ theirs.bh.T).T + v @ theirs.w @ h.T
    expected = -ours.energy(all_states(D)[:, None], all_states(M)[None]).numpy()
    np.testing.assert_allclose(minus_energy - names["log_z_offset"], expected, rtol=0, atol=1e-12)


def test_julia(images):
    """The file that `save_rbm` writes, and rows of numbers with commas between them."""
    rbm = random_rbm(D, M, seed=1)
    Path("model.h5").write_bytes(as_julia(rbm.tensors().values()))
    np.savetxt("test.csv", images, fmt="%d", delimiter=",")
    [printed] = type_in("Julia")
    assert f"ln Z = {exact_log_z(rbm):.3f}, exact" in printed


def test_matlab(images):
    rbm = random_rbm(D, M, seed=1)
    arrays = dict(zip(("vishid", "visbiases", "hidbiases"), rbm.tensors().values(), strict=True))
    [save_model, save_test] = blocks(section("MATLAB"), "matlab")[0].splitlines()
    assert all(f"'{name}'" in save_model for name in arrays)
    stored = {name: tensor.numpy() for name, tensor in arrays.items()}
    savemat("model.mat", stored, oned_as="column", do_compression=True)
    savemat("test.mat", {"test": images}, do_compression=True)
    assert "'test'" in save_test
    [printed] = type_in("MATLAB")
    assert f"ln Z = {exact_log_z(rbm):.3f}, exact" in printed


def test_every_program_that_is_promised_has_a_section():
    named = ["PyTorch", "rbms", "scikit-learn", "PyDeep", "Julia", "MATLAB"]
    assert "RestrictedBoltzmannMachines.jl" in section("Julia")
    mistakes = "Estimators that are known to be wrong"
    assert re.findall(r"^## (.*)$", PAGE, re.MULTILINE) == [*named, mistakes]


def test_search_leads_to_the_section_on_pytorch():
    """Main entries of the index come first in the search; the browser's test types these words."""
    before = PAGE[: PAGE.index("## PyTorch")]
    assert re.findall(r"^```\{index\} ! single: (.*)$", before, re.MULTILINE) == [
        "PyTorch",
        "loading weights",
    ]


# ---- estimators that are known to be wrong


def test_the_page_has_what_the_example_prints(capsys):
    runpy.run_path(str(BOOK / "examples" / "known_mistakes.py"))["main"]()
    printed = capsys.readouterr().out
    assert [printed] == blocks(section("Estimators that are known to be wrong"), "text")
    # what is right is consistent, and each of the three mistakes is found out
    verdicts = re.findall(r"^(- .*): ln Z = .*\n  audit: (\w+)\.", printed, re.MULTILINE)
    assert len(verdicts) == 5
    for name, verdict in verdicts:
        assert verdict == ("consistent" if name.endswith("as it should be") else "impossible"), name


def test_base_rates_of_mnist_are_those_of_the_record():
    (printed,) = re.findall(r"base rates .* reach about \$(-\d+)\$", PAGE)
    rows = json.loads((FIGURES / "paper" / "likelihood-scale.json").read_text())["rows"]
    (row,) = (row for row in rows if row["model"] == "base rates")
    assert round(row["test"]) == int(printed)


# ---- how to report a likelihood


def test_the_chart_says_what_the_list_says():
    chart, words = REPORT.split("</svg>")
    labels = [html.unescape(text) for text in re.findall(r'font-style="italic">([^<]*)<', chart)]
    assert len(labels) >= 9
    for word in (
        "25",
        "trusted",
        "too noisy",
        "open",
        "AIS's weights",
        "round trips",
        "mode",
        "still not trusted",
    ):
        assert any(word in label for label in labels), word
        assert word in words.lower() or word in words, word
    # no line is wider than its box: at 14 px a letter has 6.8 px on average
    boxes = re.findall(r'<text x="(\d+)"[^>]*>([^<]*)</text>', chart)
    assert all(int(x) + 6.8 * len(html.unescape(text)) < 392 for x, text in boxes)


def test_commands_of_the_page_exist():
    commands = set(re.findall(r"`paperlib (\w+)", REPORT + PAGE))
    assert {"evaluate", "audit", "compare", "training"} <= commands
    for command in commands:
        run(f"{command} --help")


def test_placeholders_of_the_paragraph_stand_in_brackets():
    paragraph = "".join(re.findall(r"^> (.*)$", REPORT, re.MULTILINE))
    outside = re.sub(r"\[[^\]]*\]", "", paragraph)
    # 95 % is the library's own level
    assert re.findall(r"\d+", outside) == ["95"]
    assert len(paragraph) > 500
