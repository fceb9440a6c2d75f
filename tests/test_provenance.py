"""What records and shards say of their making.

It is asked once, covers all that numbers depend on, and is never untrue.
"""

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from enumeration import random_rbm

from boltzmann_companion import records
from boltzmann_companion.columns import Column
from boltzmann_companion.profiles import get_profile
from boltzmann_companion.record_files import read_record
from boltzmann_companion.records import History, Run, history
from boltzmann_likelihood import provenance, store
from boltzmann_likelihood.store import kept, shards_used, summarize_shards
from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import ais_run
from paperlib.models.files import read_metadata, read_safetensors, write_safetensors

PATH = BaseRatePath(random_rbm(4, 3, 0))
BETAS = uniform_betas(10)
ROOT = Path(__file__).parents[1]

COUNTS = [
    "paperlib/estimators/ais.py",
    "book/08-raise.ipynb",
    "benchmarks/run.py",
    "data/published.csv",
    "data/models/mnist.safetensors",
    "constraints.txt",
    "pyproject.toml",
]
# What a run writes, and what no number hangs on.
DOES_NOT = ["figures/digits/table.json", "data/shards/chapter.tar.xz", "README.md", "tests/test.py"]


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path):
    """A small checkout in which everything is committed."""
    for name in (*COUNTS, *DOES_NOT):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("old")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "all")
    return tmp_path


@pytest.fixture
def _ask_again():
    provenance.repository_state.cache_clear()
    yield
    provenance.repository_state.cache_clear()


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("is_new", [False, True])
def test_what_numbers_depend_on_makes_a_checkout_dirty(checkout, name, is_new):
    commit, dirty = provenance.state_of(checkout)
    assert (len(commit), dirty) == (40, False)
    file = checkout / name
    if is_new and name.count("/") == 0:
        file.unlink()
    else:
        (file.with_name("new.py") if is_new and "published" not in name else file).write_text("new")
    assert provenance.state_of(checkout) == (commit, True)


@pytest.mark.parametrize("name", DOES_NOT)
def test_what_a_run_writes_does_not(checkout, name):
    (checkout / name).write_text("new")
    (checkout / name).with_name("new").write_text("new")
    assert provenance.state_of(checkout)[1] is False


def test_without_git_or_a_repository_of_its_own_nothing_is_known(checkout, monkeypatch):
    inside = checkout / "data"
    assert provenance.state_of(inside) == (None, None)
    with monkeypatch.context() as without:
        without.setenv("PATH", "")
        assert provenance.state_of(checkout) == (None, None)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(checkout.parent))
    (checkout / ".git").rename(checkout / "no-git")
    assert provenance.state_of(checkout) == (None, None)


@pytest.mark.usefixtures("_ask_again")
def test_commit_of_a_checkout_says_nothing_of_an_installed_copy_used_in_it(checkout, monkeypatch):
    monkeypatch.setattr(provenance.storage, "repository_root", lambda: checkout)
    assert provenance.repository_state() == (None, None)


@pytest.mark.usefixtures("_ask_again")
def test_git_is_asked_once_and_not_for_each_shard(tmp_path, monkeypatch):
    calls = []

    def state_of(root):
        calls.append(root)
        return "1f0c", False

    monkeypatch.setattr(provenance, "state_of", state_of)
    kept(ais_run(PATH, BETAS, 500, 1), tmp_path, False)
    Run("05-x", get_profile("digits"), 7)
    assert calls == [ROOT]


# ---- shards


def run(folder, chains=300):
    """The summary of the shards that were used."""
    before = len(shards_used())
    estimate = kept(ais_run(PATH, BETAS, chains, 1), folder, False)
    return estimate, summarize_shards(shards_used()[before:])


def say(monkeypatch, module, **state):
    """What this module says of the code: the commit, and whether it is all."""
    monkeypatch.setattr(module, "made_by", lambda: provenance.made_by() | state)


def forget(folder):
    """Make the shards of a folder like earlier ones, which do not say what computed them."""
    for file in folder.iterdir():
        write_safetensors(file, read_safetensors(file))


def test_file_of_a_shard_says_what_computed_it(tmp_path, monkeypatch):
    say(monkeypatch, store, commit="1f0c")
    run(tmp_path, 100)
    (file,) = tmp_path.iterdir()
    made_by = json.loads(read_metadata(file)["made_by"])
    keys = {"commit", "dirty", "version", "processor", "instructions", "os", "python", "torch"}
    assert set(made_by) == keys | {"numpy", "numba", "draws", "device", "seconds", "utc"}
    assert made_by["commit"] == "1f0c"
    assert made_by["instructions"] == torch.backends.cpu.get_cpu_capability()
    assert 0 < made_by["seconds"] < 600
    # a flipped bit in it is noticed, too
    file.write_bytes(file.read_bytes().replace(b"1f0c", b"1f0d"))
    with pytest.raises(ValueError, match="folder: expected whole shards"):
        run(tmp_path, 100)


def test_found_and_computed_shards_are_told_apart_and_old_ones_are_unknown(tmp_path, monkeypatch):
    say(monkeypatch, store, commit="1f0c", dirty=False)
    first, summary = run(tmp_path)
    kind = f"{provenance.processor_name()}, {torch.backends.cpu.get_cpu_capability()}"
    expected = {"count": 3, "found": 0, "unknown": 0, "uncommitted": 0}
    assert summary == expected | {
        "seconds": pytest.approx(0, abs=60),
        "commits": ["1f0c"],
        "processors": [kind],
    }
    forget(tmp_path)
    again, summary = run(tmp_path)
    nothing = {"seconds": None, "commits": [], "processors": []}
    assert summary == expected | nothing | {"found": 3, "unknown": 3}
    assert torch.equal(again.log_weights, first.log_weights)
    say(monkeypatch, store, commit="2e1d", dirty=True)
    _, summary = run(tmp_path, 500)
    assert (summary["count"], summary["found"], summary["unknown"]) == (5, 3, 3)
    assert (summary["uncommitted"], summary["commits"]) == (2, ["2e1d"])


def test_a_shard_that_is_used_twice_counts_once(tmp_path):
    before = len(shards_used())
    run(tmp_path)
    run(tmp_path)
    summary = summarize_shards(shards_used()[before:])
    assert (summary["count"], summary["found"]) == (3, 0)


# ---- records


@pytest.fixture
def save(monkeypatch, tmp_path):
    """Save a record of the papers' size in which some shards were used."""
    monkeypatch.setenv("PAPERLIB_FIGURES", str(tmp_path / "figures"))
    monkeypatch.setenv("PAPERLIB_CACHE", str(tmp_path / "cache"))
    images = SimpleNamespace(grey=SimpleNamespace(checksum=""))
    monkeypatch.setattr(records, "binary_images", lambda name: images)

    def saved(chains, commit="1f0c", dirty=False):
        say(monkeypatch, records, commit=commit, dirty=dirty)
        size = get_profile("paper")
        # what came before the chapter is not its own
        size.ais(PATH, BETAS, 100, 99, progress=False)
        chapter = Run("05-x", size, 7)
        if chains:
            size.ais(PATH, BETAS, chains, 1, progress=False)
        return chapter.save("one", {"a": Column("a")}, [{"a": chains}])

    saved.shards = tmp_path / "cache" / "shards"
    return saved


def test_record_sums_up_the_shards_of_its_chapter(save, monkeypatch):
    say(monkeypatch, store, commit="1f0c", dirty=False)
    for chains, counted in ((0, (0, 0)), (300, (3, 0)), (500, (5, 3))):
        record = save(chains)
        shards = record["provenance"]["shards"]
        assert (shards["count"], shards["found"]) == counted
    assert history(record) == History("committed", "committed", "committed")
    assert read_record(records.results_folder("paper") / "one.json") == record


def test_record_with_old_shards_does_not_claim_to_know_them(save, monkeypatch):
    say(monkeypatch, store, commit="1f0c", dirty=True)
    assert history(save(300)).shards == "uncommitted"
    forget(save.shards)
    record = save(300)
    assert history(record) == History("committed", "committed", "unknown")


@pytest.mark.parametrize(
    ("commit", "dirty", "expected"),
    [
        ("1f0c", False, History("committed", "committed", "none")),
        ("1f0c", True, History("uncommitted", "uncommitted", "none")),
        (None, None, History("unknown", "unknown", "none")),
    ],
)
def test_history_says_what_the_check_of_the_code_found(save, commit, dirty, expected):
    record = save(0, commit, dirty)
    assert history(record) == expected
    assert set(record["provenance"]["checked"]) == set(provenance.CHECKED)


OLD = [
    record
    for record in map(read_record, sorted((ROOT / "figures" / "paper").glob("*.json")))
    if "checked" not in record["provenance"]
]


@pytest.mark.parametrize("record", OLD, ids=lambda record: record["name"])
def test_older_records_leave_their_chapter_and_shards_unknown(record):
    """Some of them name commits in which there is no chapter at all."""
    assert history(record) == History("committed", "unknown", "unknown")
