"""What the pages say that no record holds: it is computed here.

And what has to be said together.
"""

from __future__ import annotations

import math
import re

import torch
from notebooks import BOOK, NOTEBOOKS, ROOT, cells_of, prose_of

from boltzmann_companion.build.linked import LINK
from boltzmann_companion.recipes import model_path
from paperlib.estimators import exact_hidden_samples, exact_log_z
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

# What the README of commit 901b8c1 showed as six lines of one report.
TWO_RUNS = """\
Average test log-probability, by parallel tempering: -28.50, 95 % interval -28.56 to -28.43
For scale: uniform model -69.31, independent pixels with the base rates of the test images -69.07.
To quote: -28.48 nats, 95 % interval -28.55 to -28.42
"""


def without_links(text: str) -> str:
    return LINK.sub(lambda link: link["words"], text)


def markdown(page: str) -> str:
    """The prose of a page, with white space as one blank and links of numbers as their words."""
    written = (ROOT if page == "README" else BOOK) / f"{page}.md"
    if written.is_file():
        text = written.read_text(encoding="utf-8")
    else:
        [path] = BOOK.glob(f"{page}-*.ipynb")
        text = prose_of(path)
    return " ".join(without_links(text).split())


# ---- computed here


def share_of_few_on(beta: float) -> float:
    """Of hidden states with at most one unit on, along mnistPCD-20's path from uniform pixels."""
    rbm = RBM.load(model_path("mnist-pcd-20"))
    weights = beta * rbm.weights.double()
    visible = beta * rbm.visible_bias.double()
    hidden = beta * rbm.hidden_bias.double()
    few = torch.cat([torch.zeros(1, len(hidden)), torch.eye(len(hidden))]).double()
    inside = torch.nn.functional.softplus(visible + few @ weights.T).sum(1)
    log_share = (few @ hidden + inside).logsumexp(0) - exact_log_z(RBM(weights, visible, hidden))
    return math.exp(float(log_share))


def test_one_small_model_has_a_dominating_hidden_state_and_one_has_not():
    assert (
        "has a hidden state that dominates it, by which the paper explains its own exception;"
        " the second has none"
    ) in markdown("13")
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
    assert abs((rbm.log_unnormalized(v) < blank).double().mean().item() - 0.98) <= 0.01
    assert v.any(1).all()


def test_a_path_with_a_jump_is_why_mnist_pcd_20_stays_open():
    words = (
        "At $\\beta = 0.5$ states with at most one hidden unit on hold practically all of the "
        "probability, at $\\beta = 0.55$ three per cent"
    )
    assert words in markdown("08")
    assert share_of_few_on(0.5) > 0.99
    assert abs(share_of_few_on(0.55) - 0.03) <= 0.005


# ---- said together


def findings(page: str, heading: str) -> list[str]:
    """The points of the list that follows these words."""
    text = (ROOT / page).read_text(encoding="utf-8").partition(heading)[2]
    return text.partition("\n- ")[2].partition("\n\n")[0].split("\n- ")


def test_readme_has_the_three_findings_of_the_landing_page():
    """The same numbers from the same cells."""

    def links(page):
        return [
            [(link["words"], link["address"]) for link in LINK.finditer(finding)]
            for finding in findings(page, "Three of the findings")
        ]

    on_page = links("book/intro.md")
    assert on_page == links("README.md")
    assert len(on_page) == 3
    assert all(on_page)


def test_coverage_is_told_of_one_model_at_a_time():
    """A share of the runs of several models averages intervals that are too short and too long."""
    pooled = re.compile(r"estimator-coverage\.json#no-hidden-mode|derived\.json#held-(?:AIS|par)")
    for name in ("README.md", "book/intro.md", "book/what-we-learned.md"):
        assert not pooled.search((ROOT / name).read_text(encoding="utf-8")), name


def reports_of_two_runs(text: str) -> list[tuple[str, str]]:
    """Reports of `evaluate` in a text whose average is not the one to quote."""
    reports = re.findall(
        r"^Average test log-prob.*?^To quote: .*?$", text, re.MULTILINE | re.DOTALL
    )
    pairs = []
    for first, *_, last in map(str.splitlines, reports):
        averages = [re.findall(r"-?\d+\.\d+", line) for line in (first, last)]
        if averages[0] != averages[1]:
            pairs.append((first, last))
    return pairs


def test_a_report_is_of_one_run():
    texts = [path.read_text() for path in (ROOT / "README.md", *BOOK.glob("*.md"))]
    texts += [
        "\n".join(out.get("text", "") for cell in cells_of(path) for out in cell.outputs)
        for path in NOTEBOOKS
    ]
    assert [wrong for text in texts for wrong in reports_of_two_runs(text)] == []
    assert reports_of_two_runs(TWO_RUNS)
