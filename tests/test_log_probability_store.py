"""ln p*(v) of deep models for a test set, in shards: computed once, whatever interrupts it, and the right number."""

import pytest
import torch
from enumeration import all_states, random_rbm
from interruptions import interrupt_call

from boltzmann_companion import log_probability_store
from boltzmann_companion.log_probability_store import log_unnormalized_in_shards
from paperlib.errors import InputError
from paperlib.estimators.shard_log import shards_used
from paperlib.models import DBM, DBN

LOWER, UPPER = random_rbm(4, 3, 0), random_rbm(3, 2, 1)
DBM_4_3_2 = DBM(
    LOWER.weights, UPPER.weights, LOWER.visible_bias, LOWER.hidden_bias, UPPER.hidden_bias
)
MODELS = {"dbm": DBM_4_3_2, "dbn": DBN([LOWER, UPPER])}
V = all_states(4)


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch):
    monkeypatch.setattr(log_probability_store, "_IMAGES_PER_SHARD", 5)


def run(folder, model, v=V, num_samples=30, seed=1):
    return log_unnormalized_in_shards(model, v, num_samples, seed, folder, progress=False)


def exact(model):
    """ln p*(v) by summing over every state of both hidden layers."""
    h1, h2 = all_states(3), all_states(2)
    if isinstance(model, DBM):
        energy = model.energy(V[:, None, None], h1[None, :, None], h2[None, None])
        return (-energy).logsumexp((1, 2))
    given = torch.distributions.Bernoulli(LOWER.visible_probs(h1))
    log_p = given.log_prob(V[:, None]).sum(-1)  # [v, h1]
    return (log_p + UPPER.log_unnormalized(h1)).logsumexp(1)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_right_number(tmp_path, model):
    """40 runs: the mean of p* over its exact value is 1 within 5 standard errors, for the sum over all vectors."""
    truth = exact(model)
    ratios = torch.stack(
        [(run(tmp_path, model, seed=seed) - truth).exp().mean() for seed in range(40)]
    )
    assert abs(ratios.mean() - 1) < 5 * ratios.std() / 40**0.5


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_computed_once(tmp_path, model, monkeypatch):
    whole = run(tmp_path / "whole", model)
    assert whole.dtype == torch.float64
    kept = tmp_path / "parts"
    calls = interrupt_call(monkeypatch, log_probability_store, "_computed", 2)
    threads = torch.get_num_threads()
    with pytest.raises(KeyboardInterrupt):
        run(kept, model)
    assert torch.get_num_threads() == threads
    assert len(list(kept.iterdir())) == 1
    before = len(shards_used())
    assert torch.equal(run(kept, model), whole)
    assert len(calls) == 5  # four blocks, one of them twice
    assert [use.found for use in shards_used()[before:]] == [True, False, False, False]
    assert torch.equal(run(kept, model, V[:10]), whole[:10])
    assert len(calls) == 5


@pytest.mark.parametrize(
    "change",
    [{"num_samples": 31}, {"seed": 2}, {"model": MODELS["dbn"]}, {"v": V.flip(0)}],
    ids=["samples", "seed", "model", "vectors"],
)
def test_other_work_has_other_shards(tmp_path, change):
    run(tmp_path, DBM_4_3_2)
    run(tmp_path, **({"model": DBM_4_3_2} | change))
    assert len(list(tmp_path.iterdir())) == 8


def test_a_damaged_shard(tmp_path):
    run(tmp_path, DBM_4_3_2)
    file = sorted(tmp_path.iterdir())[0]
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(InputError, match=f"remove .*{file.name} and run again"):
        run(tmp_path, DBM_4_3_2)
    with pytest.raises(InputError, match="v: expected"):
        run(tmp_path, DBM_4_3_2, [[0.5, 0, 0, 1]])
    with pytest.raises(InputError, match="num_samples: expected"):
        run(tmp_path, DBM_4_3_2, num_samples=0)
