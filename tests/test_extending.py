"""The examples of book/architecture.md: each is run, compared with enumeration, and short."""

import importlib.util
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path

import pytest
import torch
from enumeration import all_states, assert_unbiased, log_z, random_rbm

from boltzmann_companion.published import Cell, load_published
from boltzmann_companion.record_files import read_record
from boltzmann_companion.studies import annealed_smc as smc_module
from boltzmann_companion.studies.annealed_smc import annealed_smc
from boltzmann_likelihood.evaluation import evaluate
from paperlib.annealing import AnnealingPath, BaseRatePath, base_rate_path, uniform_betas
from paperlib.datasets import binary_images
from paperlib.datasets.binary_images import LOADERS
from paperlib.estimators import ais, exact_log_z, parallel_tempering, raise_log_prob
from paperlib.learning import ContrastiveDivergence, train_rbm
from paperlib.numerics import seeded_generator

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "book" / "examples"


def example(name):
    specification = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


IsingRingPath = example("ising_ring_path").IsingRingPath
ThreeStateRBM = example("three_state_rbm").ThreeStateRBM
load_bars_and_stripes = example("bars_and_stripes").load_bars_and_stripes


# ---- a path

WEAK = [0.9, -0.4, 0.7, 0.3]
STRONG = [3.0, -2.0, 2.0, 1.0]
STATES = all_states(4).bool()


@pytest.fixture
def ring():
    return IsingRingPath(WEAK)


def ring_log_f(beta, couplings=WEAK):
    """ln f_beta of every state, without the path's code."""
    energies = []
    for state in STATES.tolist():
        spins = [1 if up else -1 for up in state]
        bonds = pairwise([*spins, spins[0]])
        energies.append(sum(j * a * b for j, (a, b) in zip(couplings, bonds, strict=True)))
    return beta * torch.tensor(energies, dtype=torch.float64)


def test_ring_has_the_densities_that_it_promises(ring):
    for beta in (0.0, 0.3, 1.0):
        torch.testing.assert_close(ring.log_f(STATES, beta), ring_log_f(beta), rtol=0, atol=1e-12)
    betas = torch.linspace(0, 1, 16, dtype=torch.float64)  # one for each chain
    expected = torch.stack([ring_log_f(beta)[i] for i, beta in enumerate(betas)])
    torch.testing.assert_close(ring.log_f(STATES, betas), expected, rtol=0, atol=1e-12)
    assert ring.log_z_start == pytest.approx(ring_log_f(0.0).logsumexp(0).item())


@dataclass(frozen=True)
class Coins:
    """One coin for each chain, and two that follow it."""

    first: torch.Tensor
    others: torch.Tensor


class CoinsPath(AnnealingPath[Coins]):
    """Three verbs, and a dataclass as state: ln f_beta = beta first (ln 3 + sum of the others)."""

    log_z_start = 3 * math.log(2)

    def sample_start(self, num_chains, generator):
        coins = torch.rand(num_chains, 3, generator=generator) < 0.5
        return Coins(coins[:, 0], coins[:, 1:].double())

    def log_f(self, state, beta):
        return beta * state.first * (math.log(3) + state.others.sum(1))

    def transition(self, state, beta, generator):
        beta = torch.as_tensor(beta, dtype=torch.float64)
        uniform = torch.rand(len(state.first), 3, dtype=torch.float64, generator=generator)
        first = uniform[:, 0] < torch.sigmoid(beta * (math.log(3) + state.others.sum(1)))
        return Coins(first, (uniform[:, 1:] < torch.sigmoid(beta * first)[:, None]).double())


def test_three_verbs_are_enough_with_a_dataclass_as_state():
    path = CoinsPath()
    truth = math.log(4 + 3 * (1 + math.e) ** 2)
    estimate = ais(path, uniform_betas(4), 5_000, seeded_generator(2))
    assert_unbiased(estimate.log_weights, truth)
    assert estimate.final_states.shape == (5_000, 3)
    for other in (
        annealed_smc(path, uniform_betas(5), 20, 2_000, seeded_generator(4)),
        parallel_tempering(path, 20_000, seeded_generator(6)),
    ):
        assert abs(other.log_z - truth) < 4 * other.std_error < 0.5
    with pytest.raises(ValueError, match=r"^state: expected a tensor or a dataclass of tensors"):
        path.units({"first": torch.zeros(2)})


@pytest.mark.parametrize("couplings", [[1.0, 1.0, 1.0], [1.0, 1.0]])
def test_ring_refuses_other_lengths(couplings):
    with pytest.raises(ValueError, match="couplings: expected an even number"):
        IsingRingPath(couplings)


# ---- a kind of model

PIXELS = all_states(5)


GENERATOR = seeded_generator(8)
SHAPES = [(5, 3), (5,), (3, 2)]
MODEL = ThreeStateRBM(
    *(torch.randn(shape, dtype=torch.float64, generator=GENERATOR) for shape in SHAPES)
)


def enumerated_masses(model):
    """ln p*(v) of every v, from the energies of all joint states."""
    log_masses = []
    for v in PIXELS:
        on = (v @ model.weights)[:, None] + model.biases_of_ways
        inputs = [[torch.zeros(()), *unit] for unit in on]
        terms = [
            sum(unit[s] for unit, s in zip(inputs, h, strict=True))
            for h in product(range(3), repeat=3)
        ]
        log_masses.append(torch.stack(terms).logsumexp(0) + v @ model.visible_bias)
    return torch.stack(log_masses)


MASSES = enumerated_masses(MODEL)


def test_a_new_kind_of_model_is_enumerated():
    torch.testing.assert_close(MODEL.log_unnormalized(PIXELS), MASSES, rtol=0, atol=1e-12)
    assert exact_log_z(MODEL) == pytest.approx(MASSES.logsumexp(0).item(), abs=1e-12)
    assert repr(MODEL) == "ThreeStateRBM(5-3, torch.float64, cpu)"


def test_a_new_kind_of_model_is_evaluated():
    log_p = MASSES.log_softmax(0)
    chosen = torch.multinomial(log_p.exp(), 100, True, generator=seeded_generator(4))
    truth = log_p[chosen].mean().item()
    images = PIXELS[chosen]
    assert evaluate(MODEL, images).average.mean == pytest.approx(truth, abs=1e-12)
    generator = seeded_generator(5)
    evaluation = evaluate(MODEL, images, generator=generator, progress=False, steps=64, exact=False)
    assert evaluation.word == "trusted"
    assert evaluation.average.mean == pytest.approx(truth, abs=0.1)
    assert evaluation.runs[-1].bracket.lower.mean == pytest.approx(truth, abs=0.2)


@pytest.mark.parametrize(
    ("path", "states", "log_f"),
    [
        (IsingRingPath(WEAK), STATES, ring_log_f(1.0)),
        (base_rate_path(MODEL, PIXELS[::3], seeded_generator(1)), PIXELS, MASSES),
    ],
    ids=["a path", "a kind of model"],
)
def test_ais_and_raise_walk_what_is_new(path, states, log_f):
    estimate = ais(path, uniform_betas(4), 5_000, seeded_generator(2))
    assert_unbiased(estimate.log_weights, log_f.logsumexp(0))
    assert len(estimate.final_states) == 5_000
    # What RAISE estimates is a distribution: over all states it adds up to 1.
    below = raise_log_prob(path, states, uniform_betas(4), 5_000, seeded_generator(3))
    assert_unbiased(below.log_weights.logsumexp(0), 0.0)


# ---- an estimator


RBM = random_rbm(5, 4, seed=1, scale=2.0)
PATHS = {
    "RBM": (BaseRatePath(RBM), log_z(RBM)),
    "RBM in single precision": (BaseRatePath(RBM.to(dtype=torch.float32)), log_z(RBM)),
    "ring": (IsingRingPath(STRONG), ring_log_f(1.0, STRONG).logsumexp(0).item()),
}


@pytest.mark.parametrize(("path", "truth"), PATHS.values(), ids=PATHS)
def test_resampled_populations_are_unbiased(path, truth):
    estimate = annealed_smc(path, uniform_betas(5), 20, 2_000, seeded_generator(4))
    assert_unbiased(estimate.log_weights, truth)
    assert abs(estimate.log_z - truth) < 4 * estimate.std_error < 0.5
    # 40,000 chains, in more than one block
    assert path.chains_per_block < 40_000
    # in easy problems fewer than in others, but many of them, and not all at the same steps
    assert estimate.resampled.sum() > 1_000


def test_without_resampling_it_is_ais(ring):
    never = annealed_smc(ring, uniform_betas(5), 100, 1, seeded_generator(5), threshold=0)
    same = ais(ring, uniform_betas(5), 100, seeded_generator(5))
    assert never.log_z == pytest.approx(same.log_z, abs=1e-12)
    assert (never.resampled.item(), never.std_error) == (0, math.inf)


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": 2},
        {"num_chains": 0},
        {"num_populations": 0},
        {"path": "ring"},
        {"betas": [0, 0.5]},
        {"generator": "3"},
    ],
)
def test_populations_refuse_bad_input(ring, wrong):
    arguments = {"path": ring, "betas": [0, 1], "num_chains": 10} | wrong
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name}: expected"):
        annealed_smc(**arguments)


# ---- a data set


def test_bars_and_stripes_can_be_trained_on_by_name(monkeypatch):
    monkeypatch.setitem(LOADERS, "bars-and-stripes", load_bars_and_stripes)
    images = binary_images("bars-and-stripes")
    assert images.train.shape == (500, 16)
    assert images.grey.train.mean() == pytest.approx(0.5, abs=0.05)
    rbm, _ = train_rbm(images.train, ContrastiveDivergence(6, epochs=30, batch_size=20), seed=0)
    test = images.test.to(rbm.dtype)
    average = rbm.log_unnormalized(test).double().mean().item() - exact_log_z(rbm)
    assert average > -16 * math.log(2) + 1  # better than coin flips


def test_bars_and_stripes_are_that():
    dataset = load_bars_and_stripes(side=3, num_train=50, num_test=5)
    for image, label in zip(dataset.train.view(-1, 3, 3), dataset.train_labels, strict=True):
        lines = image if label else image.T
        assert (lines == lines[0]).all()
    assert dataset.checksum == load_bars_and_stripes(3, 50, 5).checksum


# ---- a chapter and a published number


def test_chapter_saves_its_record(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAPERLIB_FIGURES", str(tmp_path))
    cells = re.split(r"^# %%.*$", (EXAMPLES / "new_chapter.py").read_text(), flags=re.MULTILINE)
    assert len(cells) == 7  # nothing before the first
    names = {}
    for cell in cells:
        exec(cell, names)
    record = read_record(tmp_path / "digits" / "how-many-steps.json")
    assert [row["model"] for row in record["rows"]] == ["K = 10", "K = 100", "K = 1,000"]
    claim, _, new = capsys.readouterr().out.splitlines()
    assert claim == "with 1,000 steps AIS is within a nat: yes"
    assert new == "how-many-steps: is not among the records of the book"
    assert record["provenance"]["models"].keys() == {"digits-cd1-16"}


def test_published_number():
    (entry,) = load_published(EXAMPLES / "published_number.csv")
    assert entry.value == 279.59
    assert entry.reproduced_by == Cell("how-many-steps", "K = 1,000", "log_z")


# ---- sizes


# What a page promises: files and lines of the library. Beside the module that is an import and a
# name in the package's `__init__`, and three lines in the reference; for a data set its import and
# its line in the registry.
@pytest.mark.parametrize(
    ("name", "elsewhere", "allowed"),
    [
        ("ising_ring_path", 5, 120),
        ("bars_and_stripes", 2, 80),
        ("three_state_rbm", 2, 120),
    ],
)
def test_examples_are_short(name, elsewhere, allowed):
    lines = (EXAMPLES / f"{name}.py").read_text().splitlines()
    assert len(lines) + elsewhere <= allowed


# Each example's file, with the room, the other file and the name it would have in the library.
HOMES = {
    EXAMPLES / "ising_ring_path.py": ("annealing", "__init__.py", "IsingRingPath"),
    Path(smc_module.__file__): ("estimators", "__init__.py", "annealed_smc"),
    EXAMPLES / "bars_and_stripes.py": ("datasets", "binary_images.py", "load_bars_and_stripes"),
}
USE = """
import doctest
import sys
from paperlib import annealing, datasets, estimators
from paperlib.datasets import binary_images
path = annealing.IsingRingPath([0.9, -0.4, 0.7, 0.3])
assert estimators.annealed_smc(path, [0, 0.5, 1], 10).log_weights.shape == (10,)
assert binary_images("bars-and-stripes").train.shape == (500, 16)
for name in sys.argv[1:]:
    failed, tried = doctest.testmod(sys.modules[name])
    assert failed == 0 and (tried > 0 or "datasets" in name), name
"""


def test_examples_become_parts_of_the_library(tmp_path):
    """Each file as it is, in the folder of its room, and its lines in one more file of code.

    As the page says.
    """
    library = tmp_path / "paperlib"
    shutil.copytree(
        ROOT / "paperlib", library, ignore=shutil.ignore_patterns("__pycache__", "*.nb?")
    )
    for source, (room, elsewhere, public) in HOMES.items():
        shutil.copy(source, library / room)
        file = library / room / elsewhere
        line = f"from paperlib.{room}.{source.stem} import {public}\n"
        text = file.read_text().replace("from paperlib.", f"{line}from paperlib.", 1)
        file.write_text(
            re.sub(
                r"^LOADERS: .* = \{$",
                rf'\g<0>"bars-and-stripes": {public},',
                text,
                flags=re.MULTILINE,
            )
        )
    modules = [f"paperlib.{room}.{source.stem}" for source, (room, *_) in HOMES.items()]
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", USE, *modules]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_example_is_on_a_page():
    page = "".join(
        (ROOT / "book" / f"{name}.md").read_text()
        for name in ("architecture", "from-other-programs")
    )
    shown = {
        ROOT / "book" / path
        for path in re.findall(r"\{literalinclude\} (\S+)$", page, re.MULTILINE)
    }
    files = {path for path in EXAMPLES.iterdir() if path.suffix in (".py", ".csv", ".md")}
    assert shown == files
