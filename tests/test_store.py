"""What holds for everything that is kept: computed once, whatever interrupts it.

Never mistaken for other work, and found by its old name.
"""

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from enumeration import all_states, log_z, random_rbm
from faults import FORKS
from interruptions import interrupt_call

from boltzmann_companion import log_probability_store
from boltzmann_companion.log_probability_store import log_unnormalized_run
from boltzmann_companion.studies import (
    estimator_study,
    known_models,
    mixture_grid,
    tempering_runs,
    training_paths,
)
from boltzmann_companion.studies import study as evaluate_study
from boltzmann_companion.studies.known_models import KnownModel
from boltzmann_companion.studies.study import Case, FullSizeCase
from boltzmann_likelihood import store
from boltzmann_likelihood.planted import read_planted
from boltzmann_likelihood.store import kept, remembered, shards_used
from paperlib import storage, threads
from paperlib.annealing import BaseRatePath, RBMPairPath, uniform_betas
from paperlib.datasets import BinaryImages, load_authors_rbm, load_digits, load_mnist_2008
from paperlib.errors import InputError
from paperlib.estimators import ais_run, csl_run, raise_run
from paperlib.kernels import DRAWS
from paperlib.learning import ContrastiveDivergence
from paperlib.models import DBM, DBN
from paperlib.numerics import seeded_generator
from paperlib.resumable import Part, Work

ARCHIVES = Path(__file__).parents[1] / "data" / "shards"
LOWER = random_rbm(4, 3, 0)
UPPER = random_rbm(3, 2, 1)
OTHER = random_rbm(4, 3, 1)
PATH = BaseRatePath(LOWER)
MOVED = BaseRatePath(LOWER, torch.ones(4))
V = all_states(4)
DEEP = DBM(LOWER.weights, UPPER.weights, LOWER.visible_bias, LOWER.hidden_bias, UPPER.hidden_bias)
WIDE = random_rbm(6, 4, 0, scale=0.5)
KNOWN = KnownModel("small", "planted", WIDE, log_z(WIDE), torch.zeros(6))


LARGE = """
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor
import torch
from boltzmann_likelihood.store import kept
from paperlib.annealing import BaseRatePath
from paperlib.estimators import ais_run
from paperlib.models import RBM
torch.set_num_threads(2)
path = BaseRatePath(RBM(torch.full((784, 500), 0.1), torch.zeros(784), torch.zeros(500)))
with ProcessPoolExecutor(1, mp.get_context("fork")) as executor:
    kept(ais_run(path, 2, 20, seed=1), None, executor=executor)
"""


EVALUATED = [
    Case(f"{units} units", "digits", ContrastiveDivergence(units, 1, batch_size=100))
    for units in (3, 4)
]
FULL_SIZE = [FullSizeCase(name, "digits", f"digits-cd1-{name}") for name in ("12", "16")]


def images(count):
    generator = seeded_generator(count)
    return (torch.rand(count, 12, generator=generator, dtype=torch.float32) < 0.3).to(torch.uint8)


@dataclass(frozen=True)
class Kind:
    """A computation that is kept: `run` of a folder and `arguments`.

    It calls `inner` for each of its `parts`.
    """

    run: Callable[..., Any]
    arguments: Mapping[str, Any]
    inner: str
    parts: int
    # each makes other work of it
    changes: Sequence[Mapping[str, Any]]
    # a larger computation that begins with the same parts, and how many it adds
    larger: Mapping[str, Any] = field(default_factory=dict)
    added: int = 0

    def __call__(self, folder, **changes):
        return self.run(folder=folder, **self.arguments | changes)


def anneal(folder, executor=None, **arguments):
    estimate = kept(ais_run(**arguments), folder, False, executor)
    return estimate.log_weights, estimate.final_states


def raise_log_weights(folder, executor=None, **arguments):
    return (kept(raise_run(**arguments), folder, False, executor).log_weights,)


def csl_log_means(folder, executor=None, **arguments):
    return (kept(csl_run(**arguments), folder, False, executor).log_means,)


def log_unnormalized(folder, executor=None, **arguments):
    return (kept(log_unnormalized_run(**arguments), folder, False, executor),)


def without_clocks(rows):
    return [{k: v for k, v in row.items() if k not in ("seconds", "made_by")} for row in rows]


def tempering(**arguments):
    return without_clocks(tempering_runs.repeated_runs(progress=False, **arguments))


def study(folder, **arguments):
    return without_clocks(estimator_study.run_study(folder=folder, progress=False, **arguments))


def evaluations(**arguments):
    return evaluate_study.study(progress=False, **arguments)


def full_size(folder, **arguments):
    rows = evaluate_study.full_size_study(folder=folder, progress=False, **arguments)
    return without_clocks(rows)


def path_of_training(folder, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_paths, "path_file", lambda row, seed: folder / f"{row}-{seed}.json")
        return without_clocks(training_paths.training_path("tiny", seed, False)["points"])


def mixtures(folder, seeds, dtype=torch.float64):
    tiny = BinaryImages(images(200), images(50), load_digits())
    return without_clocks(mixture_grid.grid_rows(tiny, seeds, dtype, folder))


SHARDS = {
    "AIS": Kind(
        anneal,
        {"path": PATH, "betas": uniform_betas(10), "num_chains": 250, "seed": 1},
        "paperlib.estimators.shards.run_chains",
        3,
        [
            {"path": MOVED},
            {"path": BaseRatePath(OTHER)},
            *({"path": RBMPairPath(OTHER, LOWER, burn_in=steps)} for steps in (3, 4)),
            {"path": RBMPairPath(LOWER, OTHER, burn_in=3)},
            {"betas": uniform_betas(11)},
            {"seed": 2},
        ],
        {"num_chains": 301},
        1,
    ),
    # 16 vectors in shards of three
    "RAISE": Kind(
        raise_log_weights,
        {"path": PATH, "v": V, "betas": uniform_betas(10), "num_chains": 30, "seed": 1},
        "paperlib.estimators.shards.run_reverse_chains",
        6,
        [
            {"path": MOVED},
            {"v": V.flip(0)},
            {"betas": uniform_betas(11)},
            {"num_chains": 31},
            {"seed": 2},
        ],
    ),
    "CSL": Kind(
        csl_log_means,
        {"rbm": LOWER, "v": V, "num_chains": 250, "num_steps": 5, "seed": 1},
        "paperlib.estimators.csl.csl_log_prob",
        3,
        [{"rbm": OTHER}, {"v": V.flip(0)}, {"num_steps": 6}, {"seed": 2}],
        {"num_chains": 301},
        1,
    ),
    # five vectors in a shard
    "ln p*(v)": Kind(
        log_unnormalized,
        {"model": DEEP, "v": V[:15], "num_samples": 30, "seed": 1},
        "boltzmann_companion.log_probability_store._log_unnormalized",
        3,
        [
            {"model": DBN([LOWER, UPPER])},
            {"v": V[:15].flip(0)},
            {"num_samples": 31},
            {"seed": 2},
        ],
        {"v": V},
        1,
    ),
}
RUNS = {
    f"tempering runs, {name}": Kind(
        tempering,
        {"estimator": name, "path": PATH, "chain_steps": 2_000, "repeats": 2, "seed": 1},
        f"boltzmann_companion.studies.tempering_runs.{inner}",
        2,
        [{"path": MOVED}, {"chain_steps": 3_000}, {"seed": 3}],
        {"repeats": 3},
        1,
    )
    for name, inner in (("parallel tempering", "_temper"), ("AIS", "_ais"))
}
STUDIES = {
    "estimator study": Kind(
        study,
        {"models": [KNOWN], "budgets": {2_000: 2}, "estimators": ("AIS", "importance sampling")},
        "boltzmann_companion.studies.estimator_study.run_once",
        4,
        [
            {"models": [replace(KNOWN, name="other")]},
            {"models": [replace(KNOWN, rbm=random_rbm(6, 4, 1))]},
            {"budgets": {3_000: 2}},
            {"seed": 2},
        ],
        {
            "budgets": {2_000: 3},
            "estimators": ("importance sampling", "SMC", "AIS"),
        },
        5,
    ),
    "study of evaluate": Kind(
        evaluations,
        {"cases": EVALUATED[:1], "largest_steps": (32, 64), "starts": ("uniform",)},
        "boltzmann_companion.studies.study._row",
        2,
        [
            {"cases": EVALUATED[1:]},
            {"cases": [replace(EVALUATED[0], bias_shift=0.5)]},
            {"largest_steps": (33, 65)},
            {"starts": ("test images",)},
        ],
        {"cases": EVALUATED[::-1], "starts": ("test images", "uniform")},
        6,
    ),
    "study of full size": Kind(
        full_size,
        {"cases": FULL_SIZE[:1], "seeds": {2: 2}},
        "boltzmann_companion.studies.study.evaluate",
        2,
        [{"cases": FULL_SIZE[1:]}],
        {"seeds": {2: 3, 6: 1}},
        2,
    ),
    "training path": Kind(
        path_of_training,
        {"seed": 3},
        "boltzmann_companion.studies.training_paths.look_at",
        3,
        [{"seed": 4}],
    ),
    "mixture": Kind(
        mixtures,
        {"seeds": {2: 1}},
        "boltzmann_companion.studies.mixture_grid._trained",
        4,
        [{"seeds": {3: 1}}, {"dtype": torch.float32}],
        {"seeds": {2: 2}},
        4,
    ),
}
KINDS = SHARDS | RUNS | STUDIES
EACH_KIND = pytest.mark.parametrize("name", KINDS)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(log_probability_store, "_IMAGES_PER_SHARD", 5)
    monkeypatch.setattr(evaluate_study, "code_checksum", lambda: "of this version")
    monkeypatch.setattr(evaluate_study, "MINUTES", {2: (32, 5_000), 6: (64, 6_000)})
    monkeypatch.setattr(evaluate_study, "_TRUTH_STEPS", 5_000)
    # a training of eight epochs on tiny images, looked at after 2, 5 and 8
    tiny = BinaryImages(images(200), images(50), load_digits())
    monkeypatch.setattr(training_paths, "load_mnist_2008", lambda: tiny)
    monkeypatch.setattr(training_paths, "LENGTHS", (2, 5, 8, 11))
    recipe = ContrastiveDivergence(4, epochs=8, batch_size=20, shuffle=False)
    row = replace(training_paths.ROWS["cd1-20"], recipe=recipe)
    monkeypatch.setitem(training_paths.ROWS, "tiny", row)


def names(folder):
    """Of all files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def same(one, other):
    if isinstance(one, list):
        return one == other
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def count_calls(monkeypatch, kind, interrupted=0):
    """The calls of what computes a part; the one of this number ends as by Ctrl-C."""
    module, _, function = kind.inner.rpartition(".")
    return interrupt_call(monkeypatch, __import__(module, fromlist=["_"]), function, interrupted)


@EACH_KIND
def test_interrupted_and_resumed_gives_the_same_and_nothing_is_computed_twice(
    tmp_path, monkeypatch, name
):
    kind = KINDS[name]
    whole = kind(tmp_path / "whole")
    calls = count_calls(monkeypatch, kind, interrupted=2)
    threads = torch.get_num_threads()
    with pytest.raises(KeyboardInterrupt):
        kind(tmp_path / "parts")
    assert torch.get_num_threads() == threads
    begun = {file: (tmp_path / "parts" / file).read_bytes() for file in names(tmp_path / "parts")}
    assert begun
    assert same(kind(tmp_path / "parts"), whole)
    assert len(calls) == kind.parts + 1
    assert names(tmp_path / "parts") == names(tmp_path / "whole")
    assert same(kind(tmp_path / "parts"), whole)
    assert len(calls) == kind.parts + 1
    if kind.larger:
        kind(tmp_path / "parts", **kind.larger)
        assert len(calls) == kind.parts + 1 + kind.added
    if name not in STUDIES:
        [(first, content)] = begun.items()
        assert (tmp_path / "parts" / first).read_bytes() == content


@EACH_KIND
def test_other_work_has_other_files(tmp_path, name):
    kind = KINDS[name]
    kind(tmp_path)
    count = len(names(tmp_path))
    seen = {file: (tmp_path / file).read_bytes() for file in names(tmp_path)}
    for number, change in enumerate(kind.changes):
        kind(tmp_path, **change)
        assert len(names(tmp_path)) == count * (2 + number), change
    assert all((tmp_path / file).read_bytes() == content for file, content in seen.items())


@EACH_KIND
def test_a_file_that_was_not_finished_is_not_taken(tmp_path, monkeypatch, name):
    """Writing stops at any moment: nothing but a whole file has the name of one."""
    kind = KINDS[name]

    def stop(handle):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", stop)
        with pytest.raises(KeyboardInterrupt):
            kind(tmp_path / "parts")
    assert names(tmp_path / "parts") == []
    # as after kill -9: what was begun stays behind under a name of its own
    whole = kind(tmp_path / "whole")
    for file in names(tmp_path / "whole"):
        begun = tmp_path / "parts" / file
        begun.parent.mkdir(parents=True, exist_ok=True)
        begun.with_name(f".{begun.stem}-x7{begun.suffix}").write_bytes(b"half")
    assert same(kind(tmp_path / "parts"), whole)


@EACH_KIND
def test_a_damaged_file_is_said(tmp_path, name):
    kind = KINDS[name]
    kind(tmp_path)
    file = tmp_path / names(tmp_path)[0]
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(
        InputError, match=f"folder: expected whole shards; remove .*{re.escape(file.name)} and"
    ):
        kind(tmp_path)


@pytest.mark.parametrize("name", RUNS | STUDIES)
def test_a_file_of_other_work_is_not_believed(tmp_path, name):
    """A result says what it is the result of; older files are believed by their names."""
    kind = KINDS[name]
    result = kind(tmp_path / "own")
    kind(tmp_path / "other", **kind.changes[0])
    for name_here, other in zip(names(tmp_path / "own"), names(tmp_path / "other"), strict=True):
        file = tmp_path / "own" / name_here
        kept_there = (tmp_path / "other" / other).read_text()
        whole = file.read_text()
        for not_ours in (kept_there, "[1]"):
            file.write_text(not_ours)
            with pytest.raises(InputError, match=f"remove .*{re.escape(file.name)} and run again"):
                kind(tmp_path / "own")
        older = json.loads(whole)
        del older["identity"]
        storage.write_json(file, older)
    assert same(kind(tmp_path / "own"), result)


def test_what_does_not_describe_itself_is_no_identity(tmp_path):
    """An object would be named by its address, and a number that is none is equal to nothing."""
    for wrong, error in ((object(), TypeError), (float("nan"), ValueError)):
        with pytest.raises(error):
            remembered(tmp_path, ["work", wrong], dict)
    assert names(tmp_path) == []


# As version 0.3 named them. A name that moves throws hours of computing away.
NAMES = {
    "AIS": "97afdd5bfe71286f",
    "RAISE": "11a8f53f7f7d6e37",
    "CSL": "b4d5a5d086ab3a91",
    "ln p*(v)": "134abc766a0944cd",
    "tempering runs, parallel tempering": "360001dcec0f52db",
    "tempering runs, AIS": "3b70e0e5325434a3",
    "estimator study": "608149340c35940e",
    "study of evaluate": "6e72a48ec9b7e65c",
    "study of full size": "4f4a744e915588be",
    "training path": "956a3dbd83133944",
    "mixture": "15f2b4368987460b",
}


@EACH_KIND
def test_names_stay(tmp_path, name):
    kind = KINDS[name]
    kind(tmp_path)
    files = names(tmp_path)
    assert storage.sha256(" ".join(files).encode())[:16] == NAMES[name], files


# ---- what is stored in data/shards; `test_long_runs` has the shards of chapters 8 and 10


def archived(*names):
    """The files in these archives, as they lie in the cache."""
    files = set()
    for name in names:
        with tarfile.open(ARCHIVES / f"{name}.tar.xz") as packed:
            files |= {member.name for member in packed if member.isfile()}
    return files


def test_training_paths_of_chapter_15_have_their_names(monkeypatch, tmp_path):
    monkeypatch.setenv("PAPERLIB_CACHE", str(tmp_path))
    files = {
        str(training_paths.path_file(row, seed).relative_to(tmp_path))
        for row in training_paths.ROWS.keys() - {"tiny"}
        for seed in range(2 if row == "cd25-500" else 10)
    }
    assert files == archived("training-paths")


def test_runs_of_chapter_16_have_their_names():
    try:
        path = BaseRatePath(load_authors_rbm(), load_mnist_2008().base_rate_bias())
    except InputError as error:
        pytest.skip(str(error))
    files = {
        f"tempering-runs/{store.name_of(tempering_runs._identity(estimator, path, steps, seed))}"
        for estimator in tempering_runs.ESTIMATORS
        for steps, repeats in ((10_000, 50), (100_000, 100), (1_000_000, 20))
        for seed in range(2_108, 2_108 + repeats)
    }
    assert files <= archived("chapter-16")


def test_outcomes_of_chapter_17_have_their_names():
    """Those of planted models, which need no data."""
    folder = ARCHIVES.parent / "planted"
    stored = archived("chapter-17")
    for file in known_models._PLANTED:
        rbm, log_z, _, _ = read_planted(folder / f"{file}.npz")
        model = KnownModel(file, "planted", rbm, log_z, torch.zeros(rbm.num_visible))
        files = {
            f"estimator-study/{DRAWS}/{estimator_study.outcome_file(model, budget, seed)}"
            for budget in (10_000, 100_000)
            for seed in range(2_008, 2_108)
        }
        assert files <= stored


# ---- executors


class Backwards(Executor):
    """Pickles what it gets, as for other processes; computes so many waiting tasks, last first."""

    def __init__(self, count):
        self.count = count
        self.waiting = []
        self.sent = 0

    def submit(self, function, /, *arguments):
        self.sent += 1
        self.waiting.append((Future(), pickle.dumps((function, arguments))))
        future, _ = self.waiting[-1]
        if len(self.waiting) == self.count:
            self.compute()
        return future

    def compute(self):
        while self.waiting:
            future, task = self.waiting.pop()
            function, arguments = pickle.loads(task)
            try:
                future.set_result(function(*arguments))
            except Exception as error:
                future.set_exception(error)


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, FORKS) as executor:
        yield executor


@pytest.mark.parametrize("name", SHARDS)
def test_any_workers_give_the_same_in_any_order_with_a_window_of_parts_ahead(
    tmp_path, monkeypatch, processes, name
):
    kind = SHARDS[name]
    backwards = Backwards(3)
    monkeypatch.setattr(store, "_PARTS_AHEAD", 3)
    here = kind(tmp_path / "here")
    for folder, executor in (("backwards", backwards), ("processes", processes)):
        # the second time every part is found, and nothing more is sent
        for _ in range(2):
            assert same(kind(tmp_path / folder, executor=executor), here)
            assert backwards.sent == kind.parts
        assert names(tmp_path / folder) == names(tmp_path / "here")


@pytest.mark.parametrize("changed", ["__version__", "DRAWS"])
def test_workers_of_another_version_are_refused(tmp_path, changed):
    ours = store._versions()

    class Elsewhere(Backwards):
        def compute(self):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(store, changed, "99")
                self.theirs = store._versions()
                super().compute()

    executor = Elsewhere(3)
    with pytest.raises(RuntimeError) as refused:
        SHARDS["AIS"](tmp_path, executor=executor)
    assert str(refused.value) == (
        f"cluster: expected workers with {ours}, got one with {executor.theirs}"
    )
    assert not names(tmp_path)


def test_a_part_that_fails_takes_back_what_was_sent(tmp_path):
    sent = []

    class Failing(Executor):
        def submit(self, function, /, *arguments):
            sent.append(Future())
            if len(sent) == 3:
                sent[0].set_exception(ZeroDivisionError())
            return sent[-1]

    with pytest.raises(ZeroDivisionError):
        SHARDS["AIS"](tmp_path, executor=Failing())
    assert [future.cancelled() for future in sent] == [False, True, True]


# ---- what is said of it


def test_what_was_found_and_what_was_computed_is_noted(tmp_path):
    def note(number, device, on_step):
        return {"values": torch.tensor([number])}

    def values(parts):
        return [part["values"].item() for part in parts]

    parts = [Part(f"{n}", note) for n in range(3)]
    assert kept(Work("one", 7, parts[:1], values), tmp_path, False) == [7]
    before = len(shards_used())
    assert kept(Work("all", 7, parts, values), tmp_path, False) == [7, 7, 7]
    assert [(use.name, use.is_stored) for use in shards_used()[before:]] == [
        ("0", True),
        ("1", False),
        ("2", False),
    ]
    # nothing is kept without a folder, and so nothing is said of it
    assert kept(Work("all", 8, parts, values), None, False) == [8, 8, 8]
    assert len(shards_used()) == before + 3
    assert names(tmp_path) == ["0.safetensors", "1.safetensors", "2.safetensors"]


def test_a_file_of_json_holds_what_computed_it(tmp_path):
    def once():
        return remembered(tmp_path, ["one"], lambda: {"log_z": -torch.inf, "pair": (1, 2)})

    result = once()
    assert set(result) == {"log_z", "pair", "seconds"}
    [file] = tmp_path.iterdir()
    stored = json.loads(file.read_text())
    assert stored.pop("made_by")["draws"] == store.DRAWS
    assert stored.pop("identity") == ["one"]
    assert stored == result | {"pair": [1, 2]}
    # those of earlier versions name no device, or hold nothing but the result
    for older in ({"seconds": 2.5, "made_by": {"processor": "x", "instructions": "y"}}, {}):
        storage.write_json(file, {"log_z": 1.5} | older)
        result = once()
        assert result == {"log_z": 1.5} | {k: older[k] for k in older if k == "seconds"}
        assert shards_used()[-1].seconds == older.get("seconds")
        assert shards_used()[-1].processor == ("x, y" if older else None)
    # nothing is kept without a folder, and so nothing is said of it
    before = len(shards_used())
    assert remembered(None, ["one"], lambda: {"x": 1})["x"] == 1
    assert len(shards_used()) == before


def test_a_forked_process_does_not_wait_for_threads_of_its_parent():
    """It would, if it prepared a large path with more than one thread."""
    process = subprocess.Popen([sys.executable, "-c", LARGE], start_new_session=True)
    try:
        assert process.wait(timeout=300) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the worker would go on waiting
        raise


def test_the_bar_counts_parts_that_do_not_count_themselves(tmp_path, monkeypatch):
    def walk(shared, device, on_step):
        on_step(2)
        return {"x": torch.ones(1)}

    shown = []

    class Bar(threads.tqdm):
        def update(self, n=1):
            super().update(n)
            shown.append(self.n)

    monkeypatch.setattr(threads, "tqdm", Bar)
    parts = [
        Part("a", walk, 2),
        Part("b", lambda *_: {"x": torch.ones(1)}, 5),
    ]
    kept(Work("bar", None, parts[:1], list), tmp_path, True)
    kept(Work("bar", None, parts, list), tmp_path, True)
    assert shown == [2, 2, 2, 7]
