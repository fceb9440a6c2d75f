"""Work on a Dask cluster: the same numbers for any number of workers and any order.

A killed worker loses nothing but time.
"""

import os
import signal

import nbformat
import pytest
import torch
from enumeration import random_rbm
from notebooks import notebook

from boltzmann_companion.build import runner
from boltzmann_likelihood import cluster, store
from boltzmann_likelihood.store import kept
from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.estimators import ais_run, raise_run
from paperlib.models.files import read_metadata
from paperlib.numerics import seeded_generator

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")


@pytest.fixture(autouse=True)
def _patience():
    """A busy machine may take minutes for what takes a second."""
    limits = ("distributed.comm.timeouts.connect", "distributed.comm.timeouts.tcp")
    with dask.config.set(dict.fromkeys(limits, "600s")):
        yield


# float32, where sums depend on how many threads share them
PATH = BaseRatePath(random_rbm(30, 20, 0, dtype=torch.float32))
VECTORS = (torch.rand(20, 30, generator=seeded_generator(0)) < 0.4).to(torch.uint8)
BETAS = uniform_betas(50)


def run(folder, executor=None, betas=BETAS):
    """AIS in 8 shards, RAISE in 4."""
    above = kept(ais_run(PATH, betas, 800, 1), folder, False, executor)
    below = kept(raise_run(PATH, VECTORS, betas, 20, 1), folder, False, executor)
    return above.log_weights, above.final_states, below.log_weights


def start_cluster(workers, processes):
    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=processes,
        # also within this process an address that others can connect to
        protocol="tcp://",
        dashboard_address=None,
    )


def test_what_tasks_share_is_sent_once(tmp_path, monkeypatch):
    sent = []
    original = distributed.Client.submit

    def submit(client, *arguments, **options):
        sent.append(arguments)
        return original(client, *arguments, **options)

    monkeypatch.setattr(distributed.Client, "submit", submit)
    with (
        start_cluster(1, False) as local,
        cluster.ClusterExecutor(local.scheduler_address) as executor,
    ):
        run(tmp_path, executor)
    shared = [arguments[1] for arguments in sent if isinstance(arguments[1], tuple)]
    assert [path.checksum() for path, _ in shared] == [PATH.checksum()] * 2
    # 12 shards of two runs
    assert len(sent) == 14


def test_a_worker_that_dies_loses_at_most_its_shards(tmp_path, monkeypatch):
    """kill -9 of one of two worker processes when the first shard has arrived."""
    betas = uniform_betas(600)
    whole = run(tmp_path / "here", betas=betas)
    folder = tmp_path / "cluster"
    with (
        start_cluster(2, True) as local,
        cluster.ClusterExecutor(local.scheduler_address) as executor,
    ):
        victims = list(executor.client.run(os.getpid).values())[:1]

        def write_and_kill(*shard):
            write(*shard)
            if victims:
                os.kill(victims.pop(), signal.SIGKILL)

        write = store.write_safetensors
        monkeypatch.setattr(store, "write_safetensors", write_and_kill)
        results = run(folder, executor, betas)
    assert victims == []
    assert all(torch.equal(a, b) for a, b in zip(results, whole, strict=True))
    assert len(list(folder.iterdir())) == 12
    # each says what computed it, wherever that was
    assert all("made_by" in read_metadata(file) for file in folder.iterdir())


def test_unreachable_cluster_and_missing_package_are_said(monkeypatch):
    with pytest.raises(ValueError, match=r"cluster: expected the address of .* got 'nowhere'"):
        cluster.ClusterExecutor("nowhere")
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(
        ValueError, match=r"cluster: expected the package distributed .*\[cluster\]"
    ):
        cluster.ClusterExecutor(cluster.LOCAL)


CHAPTER = """
import sys
sys.path[:0] = {path!r}
from test_cluster import BETAS, PATH
from boltzmann_companion.profiles import PROFILES
print(PROFILES["paper"].ais(PATH, BETAS, 800, 1, progress=False).log_z)
"""


def test_a_chapter_sends_its_shards(tmp_path, monkeypatch):
    """It runs here, in a process of its own, and what it prints rests on shards from there."""
    monkeypatch.setattr(runner.storage, "repository_root", lambda: tmp_path)
    monkeypatch.setenv("PAPERLIB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "book").mkdir()
    chapter = tmp_path / "book" / "01-one.ipynb"
    source = CHAPTER.format(path=[os.path.dirname(__file__)])
    nbformat.write(notebook(source, parameters='profile = "digits"'), chapter)
    with start_cluster(1, False) as local:
        address = local.scheduler_address
        [copy] = runner.execute_chapters([chapter], "digits", scheduler=address, report=str)
        computed = [key for key in local.scheduler.task_prefixes if "InWorker" in key]
    assert computed
    log_z = ais_run(PATH, BETAS, 800, 1).result().log_z
    printed = nbformat.read(copy, as_version=4).cells[-1].outputs[-1].text
    assert float(printed) == pytest.approx(log_z, abs=1e-12)
    assert len(list((tmp_path / "cache" / "shards").glob("[!.]*"))) == 8
