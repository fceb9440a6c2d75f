"""RBMs with categorical visible units against the enumeration of all their states; `test_every_path` has the path to them."""

import itertools

import numpy as np
import pytest
import torch
from enumeration import all_states, assert_is_its_definition, assert_rates, random_potts

from paperlib.annealing import PottsPath
from paperlib.estimators import exact_log_z
from paperlib.kernels import draw_categories
from paperlib.models import PottsRBM, log_z_lower_bound
from paperlib.numerics import seeded_generator

SITES, STATES, HIDDEN = 2, 3, 3
MODEL = random_potts(SITES, STATES, HIDDEN, seed=1)
# of the start; not uniform
BIAS = torch.tensor([[0.4, -0.2, 0.1], [-0.5, 0.3, 0.0]], dtype=torch.float64)


def every_sequence(sites=SITES, states=STATES):
    return torch.tensor(list(itertools.product(range(states), repeat=sites)))


def one_hot(sequences, states=STATES):
    return torch.nn.functional.one_hot(sequences, states).flatten(1).double()


EVERY_V = one_hot(every_sequence())


def minus_energy(model, v, h):
    """-E of every pair, from the definition."""
    by_site = v.view(len(v), model.num_sites, model.num_states)
    both = torch.einsum("nik,ikj,mj->nm", by_site, model.weights, h)
    return (
        both
        + torch.einsum("nik,ik->n", by_site, model.visible_bias)[:, None]
        + h @ model.hidden_bias
    )


TABLE = minus_energy(MODEL, EVERY_V, all_states(HIDDEN))
LOG_Z = TABLE.flatten().logsumexp(0).item()


# ---- the model


def test_the_model_is_its_definition():
    assert_is_its_definition(MODEL, EVERY_V, all_states(HIDDEN), TABLE)


def test_sequences_and_bits():
    sequences = every_sequence()
    bits = MODEL.one_hot(sequences)
    assert bits.dtype == torch.uint8
    assert torch.equal(bits.double(), EVERY_V)
    assert torch.equal(MODEL.sequences(bits), sequences)
    assert torch.equal(MODEL.one_hot(np.array([[2.0, 1.0]])), bits[7:8])


# ---- ln Z


@pytest.mark.parametrize(
    ("sites", "states", "hidden"), [(2, 3, 3), (1, 2, 1), (3, 4, 2), (4, 2, 5), (2, 5, 6)]
)
def test_exact_log_z(sites, states, hidden):
    model = random_potts(sites, states, hidden, seed=sites + hidden)
    v, h = one_hot(every_sequence(sites, states), states), all_states(hidden)
    log_z = minus_energy(model, v, h).flatten().logsumexp(0).item()
    assert exact_log_z(model) == pytest.approx(log_z, abs=1e-11)


def test_exact_log_z_of_huge_weights():
    """States a thousand nats apart, where products of exponentials would be zero."""
    model = random_potts(3, 3, 4, seed=7, scale=400.0)
    v, h = one_hot(every_sequence(3)), all_states(4)
    log_z = minus_energy(model, v, h).flatten().logsumexp(0).item()
    assert exact_log_z(model) == pytest.approx(log_z, rel=1e-12)


def test_exact_log_z_of_binary_units():
    """With two states a site is a binary unit: the RBM of the differences has the same ln Z up to what state 0 adds."""
    from paperlib.models import RBM

    model = random_potts(5, 2, 4, seed=9)
    weights, bias = model.weights, model.visible_bias
    rbm = RBM(
        weights[:, 1] - weights[:, 0],
        bias[:, 1] - bias[:, 0],
        model.hidden_bias + weights[:, 0].sum(0),
    )
    assert exact_log_z(model) == pytest.approx(
        exact_log_z(rbm) + bias[:, 0].sum().item(), abs=1e-11
    )


def test_all_states_of_twenty_hidden_units():
    """2^20 hidden states at 50 sites of 21 states, against sums over blocks of them without any table."""
    model = random_potts(50, 21, 20, seed=3, scale=0.2)
    log_z = exact_log_z(model)
    # Sum one unit out by hand: two models of 19 units.
    parts = []
    for on in (0, 1):
        bias = model.visible_bias + on * model.weights[:, :, 0]
        rest = PottsRBM(model.weights[:, :, 1:], bias, model.hidden_bias[1:])
        parts.append(exact_log_z(rest) + on * model.hidden_bias[0].item())
    assert log_z == pytest.approx(np.logaddexp(*parts), abs=1e-9)
    some = torch.randint(0, 2, (100, 20), generator=seeded_generator(0)).double().unique(dim=0)
    assert model.log_unnormalized_hidden(some).logsumexp(0) < log_z


def test_lower_bound():
    bound = log_z_lower_bound(MODEL, EVERY_V[:4])
    assert bound <= LOG_Z + 1e-9
    assert bound > LOG_Z - 0.5  # its search enumerates the few hidden states here
    for seed in range(20):
        model = random_potts(4, 3, 6, seed=seed, scale=2.0)
        assert log_z_lower_bound(model, torch.zeros(1, 12)) <= exact_log_z(model) + 1e-9


# ---- the path


def test_draws_of_categories():
    """Of 40,000 draws each state occurs as often as its probability says, within 5 standard errors; far-off logits do no harm."""
    generator = seeded_generator(2)
    logits = torch.tensor([[0.3, -1.0, 2.0, 80.0, 79.0, -900.0]], dtype=torch.float64)
    draws = draw_categories(logits.expand(40_000, -1), 3, generator)
    assert bool((draws.view(-1, 2, 3).sum(-1) == 1).all())
    probs = logits.view(2, 3).softmax(-1).flatten()
    assert_rates(draws.double().mean(0), probs, 40_000, errors=5)
    assert draws.double().mean(0)[5] == 0


def test_one_path_is_not_another():
    """The same numbers with other sites are another path, and so are other biases."""
    weights, bias = MODEL.weights.view(3, 2, 3), MODEL.visible_bias.view(3, 2)
    as_pairs = PottsRBM(weights, bias, MODEL.hidden_bias)
    paths = PottsPath(MODEL), PottsPath(as_pairs), PottsPath(MODEL, BIAS)
    assert len({path.checksum() for path in paths}) == 3
    assert [path.uniform_start for path in paths] == [True, True, False]
