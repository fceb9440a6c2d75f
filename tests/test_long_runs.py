"""The longest runs: their shards have the stored names, and the chapters find the results."""

import math
import os
import re
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from enumeration import log_z, random_rbm
from evaluations import run
from interruptions import interrupt_call
from test_store import archived

from boltzmann_companion import DEVICE, commands, profiles
from boltzmann_companion.profiles import get_profile
from boltzmann_companion.recipes import recipe
from boltzmann_companion.studies import bracket_tables, long_runs
from boltzmann_companion.studies.bracket_tables import (
    STARTS,
    TABLES,
    bracket_runs,
    start_path,
    steps_for,
    stored_csl,
)
from boltzmann_likelihood import store
from boltzmann_likelihood.store import kept
from paperlib.annealing import uniform_betas
from paperlib.datasets import binary_images
from paperlib.errors import InputError
from paperlib.estimators.csl import csl_run
from paperlib.models import DBM, DBN
from paperlib.numerics import seeded_generator

LONG = [f"long-{number:02}" for number in (1, 2, 3)]
SEED = 2008
RBM = random_rbm(6, 4, 0)
IMAGES = torch.randint(0, 2, (5, 6), generator=seeded_generator(1))


@pytest.fixture(scope="module")
def stored():
    """Names of the shards of chapters 8 and 10 in `data/shards`."""
    return {Path(name).stem for name in archived("chapter-08", "chapter-10", *LONG)}


def runs_of(size, record, name, start, steps):
    """RAISE and AIS of a table's row for every K; skip where the data set is missing."""
    table = TABLES["paper"][record]
    number = [*table.models].index(name)
    model_id = table.models[name]
    try:
        images = binary_images(recipe(model_id).dataset)
    except InputError as error:
        pytest.skip(str(error))
    path = start_path(size.model(model_id), images.train, start, number, SEED)
    v = images.test[table.chosen(number, len(images.test), SEED)]
    return [
        bracket_runs(size, table, path, v, k, SEED + table.stream(number, start, k)) for k in steps
    ]


# The start that needs no training images, and data sets that every machine has; the others are
# compared where MNIST is at hand.
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(
    ("record", "name", "most"),
    [
        ("raise-table-1", "mnistPCD-20", 100_000),
        ("raise-table-1", "mnistCD1-500", 10_000),
        ("raise-table-1", "omniPCD-1000", 10_000),
        ("raise-table-2", "MNIST DBM", 10_000),
        ("raise-table-2", "Omniglot DBN", 10_000),
    ],
)
def test_names_are_those_of_the_stored_shards(stored, record, name, most, start):
    steps = [k for k in TABLES["paper"][record].steps if 10_000 <= k <= most]
    for runs in runs_of(get_profile("paper"), record, name, start, steps):
        assert [len(run.parts) for run in runs] == [50, 50]
        assert {part.name for run in runs for part in run.parts} <= stored


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ("raise-table-1", "mnistPCD-500"),
        ("raise-table-1", "omniPCD-1000"),
        ("raise-table-2", "MNIST DBM"),
        ("raise-table-2", "Omniglot DBN"),
    ],
)
def test_the_papers_own_k_was_walked_on_a_gpu(stored, record, name, monkeypatch):
    monkeypatch.setenv(DEVICE, "cuda")
    [runs] = runs_of(get_profile("paper"), record, name, "base rates", [100_000])
    assert [len(run.parts) for run in runs] == [1, 1]
    assert {part.name for run in runs for part in run.parts} <= stored


# ---- small runs of the same kind


WIDE = random_rbm(64, 16, 2)
UNTRAINED = {
    "digits-cd1-16": random_rbm(64, 16, 3),
    "digits-pcd-16": WIDE,
    "digits-dbm": DBM(
        WIDE.weights, RBM.weights.new_zeros(16, 3), *(torch.zeros(n).double() for n in (64, 16, 3))
    ),
    "digits-dbn-cd25": DBN([WIDE, random_rbm(16, 3, 4)]),
}

# In the order in which they are run.
RBMS = ("digitsPCD-16", "digitsCD1-16")
DEEP = ("DBN-CD25", "DBM")


@pytest.fixture
def small(monkeypatch, tmp_path):
    """The papers' profile with an empty cache and tables of small models: runs of a second."""
    monkeypatch.setenv("PAPERLIB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(DEVICE, raising=False)
    monkeypatch.delenv("PAPERLIB_CLUSTER", raising=False)
    monkeypatch.setattr(profiles, "load_model", lambda model_id, dtype: UNTRAINED[model_id])
    monkeypatch.setattr(bracket_tables, "_CSL_CHAINS", 200)
    monkeypatch.setattr(bracket_tables, "_CSL_STEPS", 5)
    effort = {"steps": (3, 5), "ais_chains": 150, "raise_chains": 40, "images": 5}
    rbms, deep = (
        replace(table, **effort, models=dict([*table.models.items()][:2]))
        for table in TABLES["digits"].values()
    )
    tables = {"raise-table-1": rbms, "raise-table-2": deep}
    monkeypatch.setattr(long_runs, "TABLES", {"paper": tables})
    monkeypatch.setattr(long_runs, "_RBMS", RBMS)
    monkeypatch.setattr(long_runs, "_DEEP", DEEP)
    return get_profile("paper"), tables


@pytest.fixture
def csl(small):
    """The size, an RBM, and the images of its row in the table, for which CSL is asked."""
    size, tables = small
    test = binary_images("digits").test
    chosen = test[tables["raise-table-1"].chosen(1, len(test), SEED)]
    return size, size.model("digits-pcd-16"), chosen


def test_order_and_what_is_left(small):
    size, _ = small
    runs = [*long_runs.long_runs(size)]

    def both(names, start):
        return [f"{name}, {start}: {method}" for name in names for method in ("RAISE", "AIS")]

    assert [one.name for one in runs] == [
        *both(RBMS, "base rates"),
        *(f"{name}: CSL" for name in RBMS),
        *both(DEEP, "base rates"),
        *both(RBMS, "uniform"),
        *both(DEEP, "uniform"),
    ]
    first = runs[0]
    # five images by 40 chains, two images a shard; 5 steps
    done, count, hours = first.progress(size.folder)
    assert (done, count) == (0, 3)
    assert hours == pytest.approx(5 * 40 * 5 * 64 * 16 * long_runs._SECONDS / 3_600)
    [_, one, two] = store.part_files(first.run, size.folder)
    kept(first.run, size.folder, False)
    seconds = [store.part_seconds(file) for file in store.part_files(first.run, size.folder)[:2]]
    two.unlink()
    done, _, hours = first.progress(size.folder)
    assert done == 2
    # the last shard has one image, the others have two
    assert hours == pytest.approx(sum(seconds) / 4 / 3_600)
    assert one.is_file()


@pytest.mark.parametrize("record", ["raise-table-1", "raise-table-2"])
def test_the_chapters_function_finds_what_the_command_computes(small, monkeypatch, record):
    size, tables = small
    table = tables[record]
    name = {"raise-table-1": "digitsPCD-16", "raise-table-2": "DBM"}[record]
    number = [*table.models].index(name)
    images = binary_images("digits")
    model = size.model(table.models[name])
    paths = {start: start_path(model, images.train, start, number, SEED) for start in STARTS}
    v = images.test[table.chosen(number, len(images.test), SEED)]
    arguments = size, table, 3, paths, v, number, SEED
    runs = [
        run for run in long_runs.long_runs(size) if re.match(f"{name}, .*: (RAISE|AIS)", run.name)
    ]
    assert len(runs) == 4
    for one in runs:
        # RAISE and AIS from one start are not enough
        assert steps_for(*arguments) == [3]
        kept(one.run, size.folder, False)
    assert steps_for(*arguments) == [3, 5]
    monkeypatch.setattr(store, "_compute", lambda *_: pytest.fail("a shard is missing"))
    for start, path in paths.items():
        stream = SEED + table.stream(number, start, 5)
        assert len(size.ais(path, uniform_betas(5), 150, stream).log_weights) == 150
        assert len(size.raise_log_prob(path, v, uniform_betas(5), 40, stream + 1).log_prob) == 5
    # small sizes take no shards, whatever there is
    assert steps_for(get_profile("digits"), *arguments[1:]) == [3]


@pytest.fixture
def command(small, monkeypatch):
    """`paperlib long` in this process, which computes here and leaves the process its priority."""
    monkeypatch.setattr(commands, "_cluster", lambda address: nullcontext())
    monkeypatch.setattr(os, "nice", lambda by: by)
    return lambda options="": run(f"long {options}")


def test_command_lists_stops_goes_on_and_packs(small, command, monkeypatch, tmp_path):
    size, _ = small
    monkeypatch.setenv(DEVICE, "cpu")
    total = sum(len(one.run.parts) for one in long_runs.long_runs(size))
    assert command("--list").splitlines()[-1].split()[:5] == ["in", "all", "0", "/", f"{total}"]
    assert not size.folder.exists()
    (tmp_path / "data" / "shards").mkdir(parents=True)
    monkeypatch.setattr("paperlib.storage.repository_root", lambda: tmp_path)
    assert command("--pack") == "no new shards\n"
    calls = interrupt_call(monkeypatch, store, "write_safetensors", 5)
    with pytest.raises((KeyboardInterrupt, AssertionError)):
        command()
    assert len(list(size.folder.iterdir())) == 4
    first = Path(command("--pack").split()[-1])
    whole = first.read_bytes()
    command()
    files = {file for file, *_ in calls}
    assert len(calls) - 1 == total == len(files)
    second = Path(command("--pack").split()[-1])
    assert [first.name, second.name] == ["long-01.tar.xz", "long-02.tar.xz"]
    assert first.read_bytes() == whole
    assert command("--pack") == "no new shards\n"
    for archive in (first, second):
        subprocess.run(["tar", "-xJf", archive, "-C", tmp_path], check=True)
    for file in files:
        assert (tmp_path / "shards" / file.name).read_bytes() == file.read_bytes()
    command()
    assert len(calls) - 1 == total


# ---- CSL in shards


def test_csl_in_shards_is_the_mean_over_independent_draws(tmp_path):
    # long enough that hardly any state remembers the uniform start
    run = csl_run(RBM, IMAGES, 2_000, 400, 1)
    estimate = kept(run, tmp_path, False)
    values = estimate.log_prob
    exact = RBM.log_unnormalized(IMAGES.double()) - log_z(RBM)
    parts = torch.stack([shard["log_prob"] for shard in kept(replace(run, join=list), tmp_path)])
    assert parts.shape == (20, 5)
    assert torch.equal(estimate.log_means, parts.T)
    ratios = (parts - exact).exp()
    assert torch.allclose(ratios.mean(0), (values - exact).exp())
    # 4 standard errors, from the scatter of the shards
    assert bool(((ratios.mean(0) - 1).abs() < 4 * ratios.std(0) / math.sqrt(20)).all())


def test_csl_so_far_counts_the_shards_that_are_stored(csl):
    size, rbm, chosen = csl
    assert stored_csl(size, rbm, chosen, 1, SEED) == (None, 0)
    [one] = [one for one in long_runs.long_runs(size) if one.name == "digitsPCD-16: CSL"]
    kept(one.run, size.folder, False)
    whole, states = stored_csl(size, rbm, chosen, 1, SEED)
    assert states == 200 * 5
    store.part_files(one.run, size.folder)[1].unlink()
    half, states = stored_csl(size, rbm, chosen, 1, SEED)
    assert states == 100 * 5
    assert not torch.equal(half.log_prob, whole.log_prob)
    assert stored_csl(get_profile("digits"), rbm, chosen, 1, SEED) == (None, 0)


def test_shards_of_another_device_are_taken_if_all_are_stored(csl):
    size, rbm, chosen = csl
    there = csl_run(rbm, chosen, 200, 5, SEED + bracket_tables.CSL_STREAM + 1, "cuda")
    [file] = store.part_files(there, size.folder)
    with pytest.raises(InputError, match="device: expected a device that torch finds"):
        kept(there, size.folder, False)
    # what a GPU would have written
    values = kept(replace(there, device=torch.device("cpu")), size.folder, False).log_prob
    assert file.is_file()
    estimate, states = stored_csl(size, rbm, chosen, 1, SEED)
    assert (states, size.device) == (5_000 * 5, "cpu")
    assert torch.equal(estimate.log_prob, values)
