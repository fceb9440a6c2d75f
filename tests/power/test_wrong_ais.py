"""Do the chapters notice a wrong AIS by their claims?

The cells that lead to one are run with the right one and with a wrong one.

The wrong one is off by a thousandth in every increment of the log-weights, far less than any
picture shows.
"""

import importlib

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from suggested import NOTEBOOKS, read

from boltzmann_companion.claims import ch05
from boltzmann_companion.records import load_result
from paperlib.threads import one_thread

# A piece of each cell that a claim about AIS needs, and of the cell with the claim.
CELLS = {
    "04": [
        "open_chapter(",
        "from itertools import pairwise",
        "true_log_z =",
        "log_weight = log_f - log_start",
        "def one_jump(",
        "class Line(",
        "def annealed_runs(",
        "estimate = ais(path, betas,",
        "claims.same_runs(",
    ],
    "05": [
        "open_chapter(",
        "images = size.images()",
        "def estimate(",
        "points = []",
        "curve = chapter.record(",
        "claims.unbiased(curve",
    ],
}
CLAIMS = {
    "04": "the loop above and paperlib's ais give the same weights",
    "05": "all runs together pass a chi-square test",
}


@pytest.fixture
def wrong_ais(monkeypatch):
    # the package has a function of the module's name
    module = importlib.import_module("paperlib.estimators.ais")
    right = module.run_chains

    def wrong(path, *arguments):
        log_weights, states = right(path, *arguments)
        start = path.log_z_start or 0.0
        return start + 1.001 * (log_weights - start), states

    monkeypatch.setattr(module, "run_chains", wrong)


def run_to_the_claim(chapter):
    [path] = [path for path in NOTEBOOKS if path.stem.startswith(chapter)]
    sources = [cell.source for cell in read(path).cells if cell.cell_type == "code"]
    names = {}
    parameters = next(source for source in sources if "\nprofile = " in f"\n{source}")
    for piece in (parameters, *CELLS[chapter]):
        [source] = [source for source in sources if piece in source]
        exec(source, names)


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch, tmp_path):
    monkeypatch.setenv("PAPERLIB_FIGURES", str(tmp_path))
    with one_thread(), mpl.rc_context():
        yield
    plt.close("all")


def test_chapter_04_passes_with_the_right_ais():
    run_to_the_claim("04")


def test_chapter_05_passes_with_the_right_ais():
    """By its record, which `make test` compares with a run."""
    [row] = ch05.unbiased(load_result("sm2008-figure-3", "digits")["rows"])
    _, holds = row
    assert holds


@pytest.mark.usefixtures("wrong_ais")
@pytest.mark.parametrize("chapter", CELLS)
def test_a_chapter_notices_a_wrong_ais(chapter):
    with pytest.raises(AssertionError, match=CLAIMS[chapter]):
        run_to_the_claim(chapter)
