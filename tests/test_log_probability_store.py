"""ln p*(v) of deep models for a test set, in shards: the right number; `test_keep` has the rest."""

import pytest
import torch
from enumeration import all_states, random_rbm

from boltzmann_companion import log_probability_store
from boltzmann_companion.log_probability_store import log_unnormalized_run
from paperlib.keep import kept
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


def run(folder, model, seed):
    return kept(log_unnormalized_run(model, V, 30, seed), folder, progress=False)


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
    ratios = torch.stack([(run(tmp_path, model, seed) - truth).exp().mean() for seed in range(40)])
    assert abs(ratios.mean() - 1) < 5 * ratios.std() / 40**0.5
