"""What the pages say: their words stand where the claims have them, and every claim that is refuted is told."""

from __future__ import annotations

import functools
import math
import re
from pathlib import Path

import pytest
import torch
from notebooks import BOOK, ROOT, cells_of, prose_of
from prose import ANSWERS, PROSE, near

from boltzmann_companion.build.linked import LINK
from boltzmann_companion.claims.checks import AS_SAID
from boltzmann_companion.recipes import model_path
from paperlib.estimators import exact_hidden_samples, exact_log_z
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

CHAPTERS = ("05", "06", "07", "08", "09", "10", "13", "15", "16")
OF_PAPERS_RECORDS = ('"paper")', "chapter.stored(", "comparison_table(")
TELL = {place: claim.said for claim in PROSE for place in claim.said}


def chapter(page: str) -> Path:
    [path] = BOOK.glob(f"{page}-*.ipynb")
    return path


def markdown(page: str) -> str:
    """The prose of a page, every run of white space as one blank."""
    written = (ROOT if page == "README" else BOOK) / f"{page}.md"
    text = written.read_text(encoding="utf-8") if written.is_file() else prose_of(chapter(page))
    return " ".join(LINK.sub(lambda link: link["words"], text).split())


@functools.cache
def printed(page: str) -> set[str]:
    """The answers in stored outputs of cells that read the papers' records."""
    lines = set()
    for cell in cells_of(chapter(page)):
        if any(mark in cell.source for mark in OF_PAPERS_RECORDS):
            text = "".join(out.get("text", "") for out in cell.outputs)
            lines |= {line for line in text.splitlines() if line.endswith(ANSWERS)}
    return lines


@pytest.mark.parametrize(("page", "words"), TELL, ids=lambda value: value[:60])
def test_the_page_says_so(page, words):
    where = printed(page) if words.endswith(ANSWERS) else markdown(page)
    assert words in where, f"page {page} no longer says {words!r}: change PROSE with it"


def test_the_prose_tells_of_every_claim_that_it_refutes():
    for page in CHAPTERS:
        for line in printed(page):
            if line.endswith(AS_SAID):
                told = [words for where, words in TELL[page, line] if where == page]
                assert any(words in markdown(page) for words in told), f"{page}: {line}"


def share_of_few_on(beta: float) -> float:
    """Of hidden states with at most one unit on, along mnistPCD-20's path from uniform pixels, by enumeration."""
    rbm = RBM.load(model_path("mnist-pcd-20"))
    weights, visible, hidden = (
        beta * part.double() for part in (rbm.weights, rbm.visible_bias, rbm.hidden_bias)
    )
    few = torch.cat([torch.zeros(1, len(hidden)), torch.eye(len(hidden))]).double()
    inside = torch.nn.functional.softplus(visible + few @ weights.T).sum(1)
    log_share = (few @ hidden + inside).logsumexp(0) - exact_log_z(RBM(weights, visible, hidden))
    return math.exp(float(log_share))


def test_one_small_model_has_a_dominating_hidden_state_and_one_has_not():
    assert "one with a dominating hidden state and one without" in markdown("13")
    shares = {}
    for model in ("mnist-cd1-20", "mnist-pcd-20"):
        _, h = exact_hidden_samples(RBM.load(model_path(model)), 1_000, seeded_generator(1))
        shares[model] = h.unique(dim=0, return_counts=True)[1].max().item() / 1_000
    assert shares["mnist-cd1-20"] > 0.5
    assert shares["mnist-pcd-20"] < 0.1


def test_a_blank_page_is_more_probable_than_what_the_machine_draws():
    words = (
        "it beats 98 in a hundred of the images that the machine itself draws, and in thousands of "
        "draws it does not come up once"
    )
    assert words in markdown("01")
    rbm = RBM.load(model_path("mnist-cd1-20"))
    v, _ = exact_hidden_samples(rbm, 4_000, seeded_generator(1))
    blank = rbm.log_unnormalized(torch.zeros_like(v[:1]))
    assert near((rbm.log_unnormalized(v) < blank).double().mean().item(), 0.98, 0.01)
    assert v.any(1).all()


def test_a_path_with_a_jump_is_why_mnist_pcd_20_stays_open():
    words = (
        "At $\\beta = 0.5$ states with at most one hidden unit on hold practically all of the "
        "probability, at $\\beta = 0.55$ three per cent"
    )
    assert words in markdown("08")
    assert share_of_few_on(0.5) > 0.99
    assert near(share_of_few_on(0.55), 0.03, 0.005)


def findings(page: str, heading: str) -> list[list[str]]:
    """The numbers in each of the findings that a page lists after these words."""
    text = LINK.sub(lambda link: link["words"], (ROOT / page).read_text())
    text = re.sub(r"\{doc\}`.*?`", "", text)
    text = text.partition(heading)[2]
    listed = text.partition("\n\n")[2].partition("\n\n")[0]
    return [re.findall(r"\d[\d.,]*\d|\d", point) for point in listed.split("\n- ")]


def test_readme_has_three_findings_of_the_landing_page():
    on_page = findings("book/intro.md", "Six of the findings")
    assert len(on_page) == 6
    # A year is no finding.
    chosen = [
        [n for n in found if n != "2008"]
        for found in findings("README.md", "Three of the findings")
    ]
    assert len(chosen) == 3
    assert all(any(set(found) <= set(other) for other in on_page) for found in chosen)
