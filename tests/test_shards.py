"""AIS, RAISE and ln p* in shards: the truth, on the right device; stored ones are found.

`test_store` has the rest.
"""

import math
import subprocess
from pathlib import Path

import pytest
import torch
from enumeration import all_states, log_z, random_dbm, random_rbm

from boltzmann_companion import log_probability_store
from boltzmann_companion.log_probability_store import log_unnormalized_run
from boltzmann_companion.recipes import load_model
from boltzmann_likelihood import store
from paperlib.annealing import BaseRatePath, DBMPath, RBMPairPath, uniform_betas
from paperlib.estimators import (
    ais_run,
    raise_log_prob,
    raise_run,
    shards,
)
from paperlib.models import DBN
from paperlib.numerics import seeded_generator

RBM = random_rbm(4, 3, 0)
BETAS = uniform_betas(10)


def run(folder, path=None, chains=250, seed=1, betas=BETAS, device=None):
    work = ais_run(path or BaseRatePath(RBM), betas, chains, seed, device)
    return store.kept(work, folder, False)


@pytest.mark.parametrize(
    "path", [BaseRatePath(RBM), RBMPairPath(random_rbm(4, 2, 5), RBM, burn_in=50)]
)
def test_mean_weight_is_the_partition_function(tmp_path, path):
    estimate = run(tmp_path, path, chains=20_000)
    truth = log_z(RBM) - (0 if isinstance(path, BaseRatePath) else log_z(random_rbm(4, 2, 5)))
    assert abs(math.expm1(estimate.log_z - truth)) < 4 * estimate.relative_std
    # shards are independent of each other: their means scatter as the error says
    means = torch.exp(estimate.log_weights - truth).view(-1, 100).mean(1)
    ratio = means.std().item() / math.sqrt(200) / (estimate.relative_std)
    assert ratio == pytest.approx(1, abs=4 / math.sqrt(400))


STORED = Path(__file__).parents[1] / "data" / "shards"


def test_stored_shards_are_found(tmp_path, monkeypatch):
    """A run of chapter 10 from a uniform start, which needs no data.

    `test_long_runs` has the names of the others.

    A name that moves throws hours of computing away: change `DRAWS` only when the draws have
    changed.
    """
    # as `make shards` does it
    subprocess.run(["tar", "-xJf", STORED / "chapter-10.tar.xz", "-C", tmp_path], check=True)
    monkeypatch.setattr(store, "_compute", lambda *arguments: pytest.fail("a shard is missing"))
    path = DBMPath(load_model("mnist-dbm", torch.float32))
    betas = uniform_betas(10_000)
    stored = run(tmp_path / "shards", path, chains=5_000, seed=3_014, betas=betas)
    assert len(stored.log_weights) == 5_000


def test_shards_of_a_gpu_are_larger_and_never_taken_for_those_of_a_processor(tmp_path, monkeypatch):
    # what is kept where; the chains themselves walk on this processor
    moved = []
    for module in (store, shards):
        monkeypatch.setattr(
            module, "require_device", lambda name, device, present=True: torch.device(device)
        )
    monkeypatch.setattr(shards, "seeded_generator", lambda seed, device: seeded_generator(seed))

    def to(path, device):
        moved.append(str(device))
        return path

    monkeypatch.setattr(BaseRatePath, "to", to)
    on_gpu = run(tmp_path, chains=5_100, device="cuda")
    assert (moved, len(list(tmp_path.iterdir()))) == (["cuda"] * 2, 2)
    assert torch.equal(
        run(tmp_path, chains=5_000, device="cuda").log_weights, on_gpu.log_weights[:5_000]
    )
    assert len(moved) == 2
    here = run(tmp_path, device="cpu")
    assert torch.equal(here.log_weights, run(tmp_path).log_weights)
    assert (len(moved), len(list(tmp_path.iterdir()))) == (2, 5)
    assert not torch.equal(here.log_weights, on_gpu.log_weights[:250])
    below = run_raise(tmp_path, chains=500, device="cuda")
    assert below.log_weights.shape == (16, 500)
    # 16 vectors in shards of ten
    assert (len(moved), len(list(tmp_path.iterdir()))) == (4, 7)


def run_raise(folder, chains, **changes):
    arguments = {"path": BaseRatePath(RBM), "betas": BETAS, "seed": 1} | changes
    return store.kept(raise_run(v=all_states(4), num_chains=chains, **arguments), folder, False)


def test_reverse_shards_agree_with_raise(tmp_path):
    sharded = run_raise(tmp_path, chains=4_000)
    whole = raise_log_prob(BaseRatePath(RBM), all_states(4), BETAS, 4_000, seeded_generator(3))
    weights = sharded.log_weights.exp(), whole.log_weights.exp()
    error = sum(w.var(1) / 4_000 for w in weights).sqrt()
    assert ((weights[0].mean(1) - weights[1].mean(1)).abs() < 4 * error).all()


@pytest.mark.parametrize(
    "model",
    [random_dbm(4, 3, 2, seed=0), DBN([random_rbm(4, 3, 0), random_rbm(3, 2, 1)])],
    ids=["DBM", "DBN"],
)
def test_mean_of_deep_models_is_the_enumerated_one(monkeypatch, model):
    """40 runs: for the sum over all vectors, mean p* / exact is 1 within 5 standard errors."""
    monkeypatch.setattr(log_probability_store, "_IMAGES_PER_SHARD", 5)
    v = all_states(4)
    truth = model.exact_log_unnormalized(v)
    runs = [log_unnormalized_run(model, v, 30, seed).result() for seed in range(40)]
    ratios = torch.stack([(run - truth).exp().mean() for run in runs])
    assert abs(ratios.mean() - 1) < 5 * ratios.std() / 40**0.5
