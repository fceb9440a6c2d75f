"""ln p*(v) of deep models for a test set, in shards: the right number; `test_keep` has the rest, `test_evaluate_models` what is exact."""

import pytest
import torch
from enumeration import all_states, random_dbm, random_rbm

from boltzmann_companion import log_probability_store
from boltzmann_companion.log_probability_store import log_unnormalized_run
from paperlib.keep import kept
from paperlib.models import DBN

MODELS = {
    "dbm": random_dbm(4, 3, 2, seed=0),
    "dbn": DBN([random_rbm(4, 3, 0), random_rbm(3, 2, 1)]),
}
V = all_states(4)


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch):
    monkeypatch.setattr(log_probability_store, "_IMAGES_PER_SHARD", 5)


def run(folder, model, seed):
    return kept(log_unnormalized_run(model, V, 30, seed), folder, progress=False)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_right_number(tmp_path, model):
    """40 runs: the mean of p* over its exact value is 1 within 5 standard errors, for the sum over all vectors."""
    truth = model.exact_log_unnormalized(V)
    ratios = torch.stack([(run(tmp_path, model, seed) - truth).exp().mean() for seed in range(40)])
    assert abs(ratios.mean() - 1) < 5 * ratios.std() / 40**0.5
