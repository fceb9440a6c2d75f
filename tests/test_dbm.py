"""DBMs, and what is particular to paths to DBMs and DBNs.

`test_every_path` has AIS and RAISE along them.
"""

import math

import pytest
import torch
from backends import walked_models
from enumeration import all_states, bernoulli_table, random_dbm, random_rbm, state_numbers
from every_draw import EveryDraw

from paperlib.annealing import BaseRatePath, DBMPath, DBNPath, base_rate_path, uniform_betas
from paperlib.datasets import base_rate_bias
from paperlib.estimators import exact_log_z, raise_log_prob
from paperlib.models import DBN, RBM
from paperlib.numerics import seeded_generator

DBM_ = random_dbm(3, 3, 2, 0)
V = all_states(3)
H1 = all_states(3)
H2 = all_states(2)
BIAS = torch.tensor([0.5, -1.0, 0.3], dtype=torch.float64)


def negative_energies(dbm):
    """-E for every state: [2^D, 2^M1, 2^M2], written down from the definition."""
    v = all_states(dbm.num_visible)
    h1 = all_states(dbm.num_hidden_1)
    h2 = all_states(dbm.num_hidden_2)
    return (
        torch.einsum("ai,ij,bj->ab", v, dbm.weights_1, h1)[:, :, None]
        + torch.einsum("bj,jk,ck->bc", h1, dbm.weights_2, h2)[None]
        + (v @ dbm.visible_bias)[:, None, None]
        + (h1 @ dbm.hidden_bias_1)[None, :, None]
        + (h2 @ dbm.hidden_bias_2)[None, None, :]
    )


def test_energies_and_sums():
    table = negative_energies(DBM_)
    ours = -DBM_.energy(V[:, None, None], H1[None, :, None], H2[None, None])
    torch.testing.assert_close(ours, table, rtol=0, atol=1e-13)
    joint = DBM_.log_unnormalized_joint(V[:, None], H2[None])
    torch.testing.assert_close(joint, table.logsumexp(1), rtol=0, atol=1e-13)
    assert exact_log_z(DBM_.joint_rbm) == pytest.approx(
        table.flatten().logsumexp(0).item(), abs=1e-12
    )


def test_mean_field_is_a_fixed_point_and_a_bound():
    truth = negative_energies(DBM_).logsumexp((1, 2))
    field = DBM_.mean_field(V, tolerance=1e-12)
    means_1 = torch.sigmoid(field.logits_1)
    means_2 = torch.sigmoid(field.logits_2)
    again = torch.sigmoid(V @ DBM_.weights_1 + means_2 @ DBM_.weights_2.T + DBM_.hidden_bias_1)
    torch.testing.assert_close(again, means_1, rtol=0, atol=1e-11)
    assert bool(field.converged.all())
    assert field.warnings == ()
    bound = DBM_.log_unnormalized_bound(V, field)
    # the same bound from the definition: E_Q[-E] + H(Q), both layers factorial
    q = bernoulli_table(means_1, H1)[:, :, None] * bernoulli_table(means_2, H2)[:, None, :]
    direct = (q * (negative_energies(DBM_) - q.log())).sum((1, 2))
    torch.testing.assert_close(bound, direct, rtol=0, atol=1e-9)
    assert (bound < truth).all()


def test_mean_field_never_lowers_the_bound():
    strong = random_dbm(4, 5, 4, 3, scale=3)
    v = all_states(4)
    bounds = torch.stack(
        [
            strong.log_unnormalized_bound(v, strong.mean_field(v, updates, 1e-14))
            for updates in range(1, 40)
        ]
    )
    assert (bounds.diff(dim=0) > -1e-10).all()
    assert (bounds[-1] > bounds[0] + 0.1).any()


def test_mean_field_says_what_has_not_converged():
    field = random_dbm(4, 5, 4, 3, scale=3).mean_field(all_states(4), max_updates=2)
    missing = int((~field.converged).sum())
    assert missing > 0
    assert f"not converged for {missing} of 16 cases" in field.warnings[0]


def test_rows_that_are_repeated_have_one_mean_field(monkeypatch):
    dbm = random_dbm(4, 3, 3, 4)
    rows = all_states(4)[[5, 5, 5, 9, 5]]
    every = dbm.mean_field(rows).logits_2
    counts = []
    mean_field = type(dbm).mean_field

    def counted(model, v):
        counts.append(len(v))
        return mean_field(model, v)

    monkeypatch.setattr(type(dbm), "mean_field", counted)
    torch.testing.assert_close(dbm.proposal(rows).logits(0, []), every, rtol=1e-12, atol=1e-12)
    assert counts == [3]


def test_importance_sampling_of_the_posterior():
    truth = negative_energies(DBM_).logsumexp((1, 2))
    count = 200_000
    estimate = DBM_.log_unnormalized(V, count, seeded_generator(1))
    # weights of a factorial proposal on four states of h2 vary little: 2e-3 is over four errors
    torch.testing.assert_close(estimate, truth, rtol=0, atol=5e-3)
    assert (DBM_.log_unnormalized_bound(V) <= estimate + 5e-3).all()
    # the log of a single weight is too low on average, by the divergence to the posterior
    singles = DBM_.log_unnormalized(V.repeat_interleave(5_000, 0), 1, seeded_generator(2)).view(
        8, -1
    )
    q = bernoulli_table(torch.sigmoid(DBM_.mean_field(V).logits_2), H2)
    expected = (q * (DBM_.log_unnormalized_joint(V[:, None], H2[None]) - q.log())).sum(1)
    assert (expected < truth).all()
    error = singles.std(1) / math.sqrt(5_000)
    assert ((singles.mean(1) - expected).abs() < 4 * error).all()


HIDDEN_BIAS = torch.tensor([-1.2, 0.7], dtype=torch.float64)


# One for all 32 states of v and h2, or one for each of them.
ONE_OR_EACH = [[0.0], [0.6], [1.0], [0.0, 0.6, 1.0, 0.3] * 8]


@pytest.mark.parametrize("betas", ONE_OR_EACH, ids=["0", "0.6", "1", "one for each"])
def test_every_draw_of_a_heating_step_makes_up_its_kernel(betas, backend, monkeypatch):
    """h1 given v and h2, then h2 given h1, with v fixed: T[h2, h2'] by the conditionals."""
    path = DBMPath(backend.place(DBM_), BIAS, HIDDEN_BIAS).to(backend.device)
    start, joint = walked_models(path)
    states = all_states(5)
    each = torch.tensor(betas, dtype=torch.float64).expand(32)
    logits = each[:, None] * (states @ joint.weights + joint.hidden_bias)
    first = bernoulli_table(torch.sigmoid(logits), H1)
    inputs = H1 @ joint.weights[3:].T + joint.visible_bias[3:]
    second = torch.stack(
        [
            bernoulli_table(torch.sigmoid(b * inputs + (1 - b) * start.visible_bias[3:]), H2)
            for b in each
        ]
    )
    expected = torch.einsum("sh,sht->st", first, second).view(8, 4, 4)

    draws = EveryDraw(bits=3 + 2, copies=32)
    v = states.repeat_interleave(draws.outcomes, 0).to(backend.device)
    state = path.state_at(v)
    draws.replace_draws(monkeypatch)
    beta = each.repeat_interleave(draws.outcomes).to(backend.device)
    beta = beta if len(betas) > 1 else betas[0]
    moved = path._clamped_transition(state, beta, backend.generator(0))
    units = path.units(moved).cpu()
    assert torch.equal(units[:, :3].double(), v.cpu()[:, :3])
    numbers = state_numbers(units[:, 3:]).view(32, -1)
    kernel = torch.zeros(32, 4).double().scatter_add_(1, numbers, draws.log_probs.exp())
    torch.testing.assert_close(kernel.view(8, 4, 4), expected, rtol=0, atol=backend.tolerance)
    again = path.state_at(path.units(moved))
    torch.testing.assert_close(moved.hidden_input, again.hidden_input, rtol=0, atol=1e-6)


DBNS = [
    DBN([random_rbm(3, 4, 5), random_rbm(4, 3, 6)]),
    DBN([random_rbm(3, 2, 7), random_rbm(2, 4, 8), random_rbm(4, 2, 9)]),
]

LAYERS = pytest.mark.parametrize("dbn", DBNS, ids=["two layers", "three layers"])


@LAYERS
def test_importance_sampling_for_dbns(dbn):
    widths = [layer.num_hidden for layer in dbn.directed]
    hidden = all_states(sum(widths)).split(widths, dim=-1)
    truth = dbn.log_joint_unnormalized(V[:, None], [h[None] for h in hidden]).logsumexp(1)
    log_q = dbn.log_recognition(
        V[:, None].expand(-1, len(hidden[0]), -1), [h.expand(8, -1, -1) for h in hidden]
    )
    torch.testing.assert_close(log_q.exp().sum(1), torch.ones(8).double(), rtol=0, atol=1e-12)
    draws = 30_000
    parts = torch.stack([dbn.log_unnormalized(V, draws, seeded_generator(s)) for s in range(10)])
    error = parts.exp().std(0) / math.sqrt(10)
    # ten repetitions: Student's t with 9 degrees of freedom exceeds 6.5 with probability 1e-4
    assert ((parts.exp().mean(0) - truth.exp()).abs() < 6.5 * error).all()


def test_base_rate_paths():
    """At the start each unit is on as often as for the training images, smoothed.

    The smoothing is that of `base_rate_bias`.
    """
    train = V[[0, 1, 1, 5, 7]].repeat(10_000, 1)
    rbm = random_rbm(3, 4, 12)
    dbn = DBNS[0]
    assert type(base_rate_path(rbm, train)) is BaseRatePath
    assert (
        base_rate_path(rbm, train).checksum() == BaseRatePath(rbm, base_rate_bias(train)).checksum()
    )
    h2 = torch.sigmoid(DBM_.mean_field(train[:5]).logits_2).mean(0)
    h1 = dbn.directed[0].hidden_probs(train[:5]).mean(0)
    for model, kind, rates in (
        (DBM_, DBMPath, torch.cat([train.mean(0), h2])),
        (dbn, DBNPath, h1),
    ):
        path = base_rate_path(model, train, seeded_generator(1))
        assert type(path) is kind
        drawn = path.sample_start(100_000, seeded_generator(2)).v.double().mean(0)
        # 5,000 images of 5 kinds, draws, biases rounded by up to 0.005: together below 0.02
        torch.testing.assert_close(drawn, (rates + 0.05) / 1.05, rtol=0, atol=0.02)


def test_a_unit_that_is_always_on_may_be_off_at_the_start():
    hidden = torch.tensor([[50.0, -50.0], [50.0, -50.0], [50.0, -50.0]], dtype=torch.float64)
    always = RBM(hidden, torch.zeros(3).double(), torch.tensor([50.0, -50.0]).double())
    path = base_rate_path(DBN([always, random_rbm(2, 2, 1)]), V, seeded_generator(1))
    rates = path.sample_start(1_000_000, seeded_generator(2)).v.double().mean(0)
    assert 0.9998 < rates[0] < 1
    assert rates[1] == pytest.approx(0.05 / 1.05, abs=0.002)


def test_one_layer_is_ordinary_raise():
    rbm = random_rbm(3, 4, 12)
    betas = uniform_betas(5)
    ours = raise_log_prob(DBNPath(DBN([rbm])), V, betas, 10, seeded_generator(0))
    plain = raise_log_prob(BaseRatePath(rbm), V, betas, 10, seeded_generator(0))
    assert torch.equal(ours.log_weights, plain.log_weights)
