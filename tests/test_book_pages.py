"""The pages of the book: names, citations and links resolve, notebooks are clean, errata hold."""

from __future__ import annotations

import ast
import codecs
import dataclasses
import importlib
import inspect
import json
import math
import re
import sys
from copy import deepcopy
from pathlib import Path

import latexcodec  # noqa: F401 (the encoding ulatex)
import nbformat
import numpy as np
import pytest
import torch
import yaml
from enumeration import (
    all_states,
    joint_log_table,
    log_f_pair_table,
    log_z,
    random_rbm,
    transition_matrix,
)
from notebooks import BOOK, EACH_NOTEBOOK, NOTEBOOKS, ROOT, cells_of, nodes_of, prose_of, read
from public import public
from pybtex.database import parse_file
from sphinx_external_toc.parsing import parse_toc_yaml

import boltzmann_likelihood.evaluation
import boltzmann_likelihood.files
import boltzmann_likelihood.planted
import paperlib.annealing
import paperlib.estimators
import paperlib.learning
import paperlib.mcmc
import paperlib.models
import paperlib.variational
from boltzmann_companion.build.runner import clean_notebook
from boltzmann_companion.claims.checks import answers_of
from boltzmann_companion.claims.conclusions import CONCLUSIONS
from boltzmann_companion.published import load_published
from paperlib.models import RBM

# What the papers have symbols for, and what is documented beside it.
OF_THE_PAPERS = (
    paperlib.annealing,
    paperlib.estimators,
    paperlib.learning,
    paperlib.models,
    boltzmann_likelihood.planted,
)
PACKAGES = (
    *OF_THE_PAPERS,
    boltzmann_likelihood.evaluation,
    boltzmann_likelihood.files,
    paperlib.mcmc,
    paperlib.variational,
)


def public_names(packages):
    return [f"{package.__name__}.{name}" for package in packages for name in public(package)]


def reference_pages():
    """The landing page of the library reference and those of its rooms."""
    return [BOOK / "api.rst", *sorted((BOOK / "api").glob("*.rst"))]


def reference():
    """All of the library reference."""
    return "\n".join(page.read_text(encoding="utf-8") for page in reference_pages())


PAGES = [*sorted(BOOK.glob("*.md")), *NOTEBOOKS]
TEXTS = {
    path.stem: prose_of(path) if path in NOTEBOOKS else path.read_text(encoding="utf-8")
    for path in PAGES
}


# ---- the table of contents, citations, the library reference


def test_every_page_of_the_table_of_contents_exists():
    pages = set(parse_toc_yaml(ROOT / "_toc.yml"))
    suffixes = (".md", ".ipynb", ".rst")
    missing = [p for p in pages if not any((ROOT / f"{p}{s}").is_file() for s in suffixes)]
    assert missing == []
    files = [*PAGES, *reference_pages()]
    names = [str(path.relative_to(ROOT).with_suffix("")) for path in files]
    assert sorted(set(names) - pages) == []


@pytest.mark.parametrize("name", public_names(PACKAGES))
def test_every_public_name_is_in_the_library_reference(name):
    assert re.search(rf"^\.\. auto(class|function):: {re.escape(name)}$", reference(), re.MULTILINE)


def test_every_page_of_the_reference_has_the_name_of_its_room():
    """Nobody has to look for the page that a change belongs on."""
    for page in reference_pages()[1:]:
        modules = re.findall(
            r"^\.\. auto\w+:: (?:paperlib\.|boltzmann_likelihood\.|boltzmann_)(\w+)",
            page.read_text(),
            re.MULTILINE,
        )
        assert page.stem in modules


# ---- the glossary


def test_every_term_is_in_alphabetical_order_and_has_a_chapter():
    body = TEXTS["glossary"].partition("```{glossary}\n")[2].partition("\n```")[0]
    entries = [entry.split("\n") for entry in body.split("\n\n")]
    assert len(entries) > 50
    words = [next(line for line in reversed(e) if not line.startswith(" ")) for e in entries]
    assert words == sorted(words, key=str.lower)
    for *_, definition in entries:
        assert re.findall(r"\{doc\}`([^`<]+)`", definition)[-1] in TEXTS


def test_four_lines_of_numpy_are_the_exact_log_likelihood(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", TEXTS["glossary"], re.DOTALL)
    assert len(code.splitlines()) == 4
    rbm = random_rbm(6, 3, seed=31)
    v = all_states(6)[::5]
    names = dict(zip(("W", "b", "a"), (t.numpy() for t in rbm.tensors().values()), strict=True))
    exec(code, names | {"np": np, "v": v.numpy()})
    truth = (rbm.log_unnormalized(v).mean() - log_z(rbm)).item()
    assert float(capsys.readouterr().out) == pytest.approx(truth, abs=1e-12)


def test_the_front_page_counts_as_the_table_of_contents_does():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    numbered = [
        Path(chapter["file"]).name
        for part in toc["parts"]
        if part.get("numbered")
        for chapter in part["chapters"]
    ]
    named = re.findall(r"\{doc\}`(\d+) <([\w-]+)>`", TEXTS["intro"])
    assert len(named) > 4
    assert set(named) <= {(str(n), name) for n, name in enumerate(numbered, 1)}
    assert not re.search(r"\bnow\b", TEXTS["intro"])


def test_authors_are_those_of_the_citation():
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert config["author"] == ", ".join(author["name"] for author in citation["authors"])


# ---- symbols

HEADER = ["Symbol", "Meaning", "Name in code", "2008 paper", "RAISE paper"]
EQUATIONS = {"2008 paper": 24, "RAISE paper": 14}  # how many each paper numbers
# Attributes that exist only on instances.
INSTANCES = {RBM: RBM([[0.0]], [0.0], [0.0])}


def symbol_rows():
    """All rows of the tables of book/symbols.md as dictionaries."""
    rows = []
    header = None
    for line in TEXTS["symbols"].splitlines():
        if not line.startswith("|"):
            header = None
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if header is None:
            header = cells
        elif set("".join(cells)) - set("-:"):
            rows.append((header, cells))
    return rows


SYMBOLS = symbol_rows()
EACH_SYMBOL = pytest.mark.parametrize(
    ("header", "cells"), SYMBOLS, ids=[f"{i:02}" for i in range(len(SYMBOLS))]
)


def resolve(name):
    """The object of this dotted name, as users find it.

    For a field without a default, the annotation of its class.
    """
    package, *parts = name.split(".")
    thing = importlib.import_module(package)
    for part in parts:
        if hasattr(thing, part):
            thing = getattr(thing, part)
        elif inspect.ismodule(thing):
            thing = importlib.import_module(f"{thing.__name__}.{part}")
        elif hasattr(INSTANCES.get(thing), part):
            thing = getattr(INSTANCES[thing], part)
        elif inspect.isclass(thing) and dataclasses.is_dataclass(thing):
            thing = {field.name: field for field in dataclasses.fields(thing)}[part]
        else:
            annotations = [vars(c).get("__annotations__", {}) for c in inspect.getmro(thing)]
            thing = next(a[part] for a in annotations if part in a)
    return thing


@EACH_SYMBOL
def test_every_symbol_has_all_its_cells_and_equations_of_its_papers(header, cells):
    assert header == HEADER
    assert len(cells) == len(HEADER)
    assert all(cells)
    row = dict(zip(header, cells, strict=True))
    for paper, count in EQUATIONS.items():
        for numbers in re.findall(r"eq\. (\d+(?:(?:, | and | to )\d+)*)", row[paper]):
            assert all(1 <= int(number) <= count for number in re.findall(r"\d+", numbers))


@EACH_SYMBOL
def test_every_name_of_a_symbol_exists(header, cells):
    code = dict(zip(header, cells, strict=True))["Name in code"]
    names = re.findall(r"`([a-z]\w*(?:\.\w+)+)`", code)
    assert names
    for name in names:
        resolve(name)
    arguments = set()
    for group, owner in re.findall(
        r"arguments? ((?:`\w+`(?: and )?)+) of (?:\{py:obj\})?`([\w.]+)`", code
    ):
        arguments |= set(re.findall(r"`(\w+)`", group))
        assert arguments <= set(inspect.signature(resolve(owner)).parameters)
    # Nothing else is quoted as code.
    assert set(re.findall(r"`([^`]+)`", code)) == set(names) | arguments


def test_a_name_that_does_not_exist_is_noticed():
    assert resolve("paperlib.models.RBM.weights").shape == (1, 1)
    for name in ("paperlib.models.RBM.weight", "paperlib.nothing", "paperlib.estimators.aiss"):
        with pytest.raises((ImportError, StopIteration)):
            resolve(name)


def is_of_the_papers(name):
    """Whether what this name stands for is in one of the papers.

    By its documentation or that of its module.
    """
    thing = resolve(name)
    module = sys.modules[thing.__module__]
    texts = (thing.__doc__ or "", module.__doc__ or "")
    return any(re.search(r"Salakhutdinov|Burda|RAISE|2008 paper", text) for text in texts)


@pytest.mark.parametrize("name", list(filter(is_of_the_papers, public_names(OF_THE_PAPERS))))
def test_every_public_name_of_the_papers_has_a_symbol(name):
    assert re.search(rf"`{re.escape(name)}[`.]", TEXTS["symbols"])


# ---- notebooks


@EACH_NOTEBOOK
def test_notebook_is_as_refresh_leaves_it_folded_in_jupyter_as_on_the_page(path):
    """And without traces of its execution, which `clean_notebook` takes away."""
    cells = cells_of(path)
    assert not any("injected-parameters" in cell.metadata.get("tags", []) for cell in cells)
    folded = [cell for cell in cells if cell.metadata.get("jupyter", {}).get("source_hidden")]
    assert {"hide-input", "hide-cell"} & set(folded[0].metadata.tags)
    assert nbformat.writes(clean_notebook(deepcopy(read(path)))) + "\n" == path.read_text()


@EACH_NOTEBOOK
def test_every_figure_has_a_caption_a_name_and_alternative_text(path):
    for cell in cells_of(path):
        settings = cell.metadata.get("mystnb", {})
        draws = any("image/png" in output.get("data", {}) for output in cell.outputs)
        if draws:
            assert settings["figure"]["caption"].strip()
            assert re.fullmatch(r"fig-[\w-]+", settings["figure"]["name"])
            assert len(settings["image"]["alt"].split()) >= 8


@EACH_NOTEBOOK
def test_every_named_table_is_the_one_table_of_its_cell(path):
    for cell in cells_of(path):
        figure = cell.metadata.get("mystnb", {}).get("figure")
        if figure is not None and not figure["name"].startswith("fig-"):
            assert re.fullmatch(r"tab-[\w-]+", figure["name"])
            assert figure["caption"].strip().endswith(".")
            # each of several would be given the name
            (shown,) = [output.data for output in cell.outputs if "data" in output]
            assert shown["text/markdown"].startswith("|"), cell.source[:80]


@EACH_NOTEBOOK
def test_cells_of_checks_fold_and_print_claims(path):
    """And what they print stands in the committed notebook, where a reader can compare it."""
    for cell in cells_of(path):
        if "checks" in cell.metadata.get("tags", []):
            assert "hide-cell" in cell.metadata.tags
            assert {output.output_type for output in cell.outputs} == {"stream"}
            assert set(answers_of(cell.outputs)) == {"yes"}


RECORDS = [json.loads(path.read_text()) for path in (ROOT / "figures").rglob("*.json")]
WRITTEN_BY = {record["name"]: record["provenance"].get("chapter") for record in RECORDS}


# They read ln Z of the authors' model from the records of our longest run of AIS.
_ASK_FOR_LN_Z = {"longest_log_z", "known_models"}


@EACH_NOTEBOOK
def test_notebook_names_the_chapters_whose_records_it_reads(path):
    nodes = nodes_of(path)
    # If a chapter mentions a record, even through a variable, its name is a string in a cell.
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    if any(isinstance(node, ast.Name) and node.id == "conclusion_rows" for node in nodes):
        # The report reads whatever answers a published number or tries a conclusion.
        cells = [entry.same_weights or entry.reproduced_by for entry in load_published()]
        texts |= {cell.record for cell in cells if cell is not None}
        texts |= {record for conclusion in CONCLUSIONS for record in conclusion.records}
    if any(isinstance(node, ast.Name) and node.id in _ASK_FOR_LN_Z for node in nodes):
        texts |= {"exact-binarization", "raise-own-weights-by-k"}
    others = {WRITTEN_BY[text] for text in texts & set(WRITTEN_BY)} - {path.stem}
    declared = read(path).metadata.get("paperlib", {}).get("reads", [])
    assert declared == sorted(others)


# ---- the page on your own RBM


def test_example_of_the_tool_in_python_runs(tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"```python\n(.*?)```", TEXTS["your-own-rbm"], re.DOTALL)
    (code,) = [block for block in blocks if "from boltzmann_likelihood" in block]
    rbm = random_rbm(6, 3, seed=31, scale=0.5)
    rbm.save(tmp_path / "model.npz")
    for name in ("train", "test"):
        np.save(tmp_path / f"{name}.npy", all_states(6).numpy().astype(np.uint8))
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(code, names)
    truth = (rbm.log_unnormalized(all_states(6)).mean() - log_z(rbm)).item()
    assert names["result"].exact.test == pytest.approx(truth, abs=1e-9)
    assert f"{truth:.3f}" in capsys.readouterr().out


# ---- errata


def test_every_test_named_in_the_errata_exists():
    named = re.findall(r"`(tests/\w+\.py)::(\w+)`", TEXTS["errata"])
    assert len(named) > 10
    for file, test in named:
        functions = {
            node.name
            for node in ast.parse((ROOT / file).read_text()).body
            if isinstance(node, ast.FunctionDef)
        }
        assert test in functions, f"{file}::{test}"


def test_errata_energy_sign():
    rbm_a = random_rbm(3, 2, seed=41)
    rbm_b = random_rbm(3, 4, seed=42)
    beta = 0.3
    v = all_states(3)
    product = (1 - beta) * v @ rbm_a.visible_bias + beta * v @ rbm_b.visible_bias
    for rbm, scale in ((rbm_a, 1 - beta), (rbm_b, beta)):
        inputs = scale * (v @ rbm.weights + rbm.hidden_bias)
        product += torch.log1p(inputs.exp()).sum(1)
    # enumeration.py's tables are of -E.
    torch.testing.assert_close(log_f_pair_table(rbm_a, rbm_b, beta), product, rtol=0, atol=1e-12)
    printed = log_f_pair_table(
        *(RBM(-rbm.weights, -rbm.visible_bias, -rbm.hidden_bias) for rbm in (rbm_a, rbm_b)), beta
    )
    assert (printed.softmax(0) - product.softmax(0)).abs().max() > 0.05


def test_errata_partition_function_of_the_start():
    b = torch.tensor([-1.0, 0.5]).double()
    a = torch.tensor([0.7, -2.0, 1.0]).double()
    start = RBM(torch.zeros(2, 3).double(), b, a)
    right = torch.log1p(b.exp()).sum() + torch.log1p(a.exp()).sum()
    assert log_z(start) == pytest.approx(right.item(), abs=1e-12)
    printed = torch.log1p(b.exp()).sum().item() + 3 * math.log(2)
    assert abs(log_z(start) - printed) > 0.1
    unbiased = RBM(start.weights, b, torch.zeros(3).double())
    assert log_z(unbiased) == pytest.approx(printed, abs=1e-12)


def test_errata_base_rate_probability():
    b = torch.tensor([-1.0, 0.5, 2.0]).double()
    v = all_states(3)
    right = ((v * b).exp() / (1 + b.exp())).prod(1)
    assert right.sum().item() == pytest.approx(1, abs=1e-12)
    printed = (1 / (1 + (-b).exp())).prod()
    assert printed == pytest.approx(right[-1].item(), abs=1e-12)  # all pixels on
    assert abs(len(v) * printed - 1) > 0.1


def test_errata_ratio_was_averaged_with_the_negative_logarithm():
    entries = {entry.id: entry for entry in load_published()}
    where = "sm2008/section-5.1/cd1-20-over-cd1-25"
    estimate = entries[f"{where}/log-ratio"].value
    low, high = (end - estimate for end in entries[f"{where}/interval-3-sigma"].interval)
    # ln(r -+ 3 sigma) - ln r: the exponentials of both arms add up to 2. Each arm is known to 0.01.
    assert math.exp(low) + math.exp(high) == pytest.approx(2, abs=0.03)
    assert abs(math.exp(-low) + math.exp(-high) - 2) > 0.2  # the inverse ratio does not fit


class RaiseByEnumeration:
    """All chains of RAISE for a tiny RBM, multiplied out: x = (v, h), along a base-rate path."""

    def __init__(self):
        rbm = random_rbm(2, 2, seed=43, scale=1.5)
        bias = torch.tensor([1.0, -0.5]).double()
        betas = [0.0, 0.2, 0.6, 1.0]
        self.steps = len(betas) - 1
        start = (all_states(2) @ bias)[:, None]
        self.log_f = [(1 - beta) * start + beta * joint_log_table(rbm) for beta in betas]
        self.kernels = [self._kernel(log_f) for log_f in self.log_f]
        self.log_z_start = self.log_f[0].flatten().logsumexp(0)

    @staticmethod
    def _kernel(log_f):
        """T[x, x']: h' from p(h | v), then v' from p(v | h'); not reversible on pairs."""
        step = torch.einsum("vh,wh->vwh", log_f.softmax(1), log_f.softmax(0))
        return step[:, None].expand(-1, log_f.shape[1], -1, -1).reshape(log_f.numel(), -1)

    def reversal(self, k):
        p = self.log_f[k].flatten().softmax(0)
        return self.kernels[k].T * p[None, :] / p[:, None]

    def annealing_model(self):
        """p_ann(v) of eq. 11."""
        p = self.log_f[0].flatten().softmax(0)
        for kernel in self.kernels[1:]:
            p = p @ kernel
        return p.view_as(self.log_f[0]).sum(1)

    def melt(self, mass, shift):
        """Mean weight for every v: x_k from the reversal of T_{k + shift}.

        `mass` is [v, h] at x_K.
        """
        total = torch.diag_embed(mass.T).permute(1, 2, 0).reshape(len(mass), -1)  # [v, (v, h)]
        for k in range(self.steps - 1, -1, -1):
            total = total @ self.reversal(k + shift)
            total = total * (self.log_f[k] - self.log_f[k + 1]).exp().flatten()
        return total.sum(1)

    def algorithm_2(self, shift):
        last = self.log_f[-1]
        weight = (last.logsumexp(1) - self.log_z_start).exp()
        return self.melt(weight[:, None] * last.softmax(1), shift)

    def algorithm_3(self, heating_shift, shift):
        """For fixed v it keeps h with probability 1/2 and else redraws it: its own reversal."""
        mass = (self.log_f[0] - self.log_z_start).exp()
        for k in range(1, self.steps + 1):
            redrawn = mass.sum(1, keepdim=True) * self.log_f[k + heating_shift].softmax(1)
            mass = (mass + redrawn) / 2 * (self.log_f[k] - self.log_f[k - 1]).exp()
        return self.melt(mass, shift)


def test_errata_raise_kernel():
    problem = RaiseByEnumeration()
    truth = problem.annealing_model()
    assert truth.sum().item() == pytest.approx(1, abs=1e-12)
    torch.testing.assert_close(problem.algorithm_2(shift=1), truth, rtol=0, atol=1e-12)
    assert (problem.algorithm_2(shift=0) / truth - 1).abs().max() > 0.01  # as printed


def test_errata_variance_of_y_less_x():
    """ln p_ann, to which RAISE's values tend with many chains.

    Over all images of a tiny model, which are equally likely here.
    """
    rbm = random_rbm(4, 3, seed=46, scale=2.5)
    empty = RBM(*(torch.zeros(size).double() for size in ((4, 1), 4, 1)))
    x = rbm.log_unnormalized(all_states(4))
    for steps, falls in ((1, False), (4, True)):
        p = torch.full((16,), 1 / 16).double()
        for beta in range(1, steps + 1):
            p = p @ transition_matrix(empty, rbm, beta / steps)
        y = p.log()
        slope = torch.cov(torch.stack([y, x]))[0, 1] / x.var()
        change = (y - x).var() - y.var()
        torch.testing.assert_close(change, (1 - 2 * slope) * x.var(), rtol=1e-12, atol=0)
        assert (change < 0, slope > 0.5) == (falls, falls)


@pytest.mark.parametrize("heating_shift", [-1, 0])
@pytest.mark.parametrize("shift", [1, 0])
def test_errata_raise_heating(heating_shift, shift):
    problem = RaiseByEnumeration()
    truth = problem.annealing_model()
    error = (problem.algorithm_3(heating_shift, shift) / truth - 1).abs().max()
    assert error < 1e-12 if (heating_shift, shift) == (-1, 1) else error > 0.01


# ---- what a reader in JupyterLab sees

# The reference has no notebook.
_ROLE = re.compile(r"\{(?:doc\}`(?!api)|cite:[tp]\}`)")


@EACH_NOTEBOOK
def test_chapters_link_and_cite_as_jupyterlab_shows_it(path):
    """In JupyterLab a role for another page leads nowhere, and a citation is shown as its key.

    The book's build makes citations of links to the bibliography.
    """
    texts = [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]
    figures = (cell.metadata.get("mystnb", {}).get("figure") for cell in cells_of(path))
    texts += [figure["caption"] for figure in figures if figure]
    assert [text for text in texts if _ROLE.search(text)] == []
    entries = parse_file(BOOK / "references.bib").entries
    for text in texts:
        for label, key in re.findall(r"\[([^\[\]]*)\]\(bibliography\.md#(\w+)\)", text):
            who = authors(entries[key])
            year = entries[key].fields["year"]
            assert label in (f"{who} ({year})", f"{who}, {year}")


def authors(entry):
    """As the book's own citations name them."""
    names = [" ".join(p.prelast_names + p.last_names) for p in entry.persons["author"]]
    names = [codecs.decode(name, "ulatex").replace("{", "").replace("}", "") for name in names]
    return " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
