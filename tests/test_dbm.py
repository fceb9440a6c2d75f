"""DBMs, and RAISE on paths to DBMs and DBNs, against sums over every state and products of transition matrices."""

import math
from functools import partial
from itertools import pairwise

import pytest
import torch
from backends import BACKENDS, walked_models
from enumeration import (
    all_states,
    annealing_model,
    bernoulli_table,
    directed_table,
    expected_weights,
    log_f_table,
    log_z,
    random_rbm,
    state_numbers,
    transition_matrix,
)
from every_draw import EveryDraw

from paperlib.annealing import BaseRatePath, DBMPath, DBNPath, base_rate_path, uniform_betas
from paperlib.datasets import base_rate_bias
from paperlib.estimators import ais, exact_log_z, raise_log_prob
from paperlib.models import DBM, DBN, RBM
from paperlib.numerics import seeded_generator


def random_dbm(num_visible, num_hidden_1, num_hidden_2, seed, scale=1.0):
    generator = seeded_generator(seed)
    shapes = [
        (num_visible, num_hidden_1),
        (num_hidden_1, num_hidden_2),
        (num_visible,),
        (num_hidden_1,),
        (num_hidden_2,),
    ]
    return DBM(*(scale * torch.randn(*s, dtype=torch.float64, generator=generator) for s in shapes))


DBM_ = random_dbm(3, 3, 2, 0)
V, H1, H2 = all_states(3), all_states(3), all_states(2)
BIAS = torch.tensor([0.5, -1.0, 0.3], dtype=torch.float64)


def negative_energies(dbm):
    """-E for every state: [2^D, 2^M1, 2^M2], written down from the definition."""
    v, h1, h2 = (all_states(n) for n in (dbm.num_visible, dbm.num_hidden_1, dbm.num_hidden_2))
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
    means_1, means_2 = torch.sigmoid(field.logits_1), torch.sigmoid(field.logits_2)
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


def test_importance_sampling_of_the_posterior():
    truth = negative_energies(DBM_).logsumexp((1, 2))
    count = 200_000
    estimate = DBM_.log_unnormalized(V, count, seeded_generator(1))
    # weights of a factorial proposal on four states of h2 vary little: 2e-3 is four standard errors and more
    torch.testing.assert_close(estimate, truth, rtol=0, atol=5e-3)
    assert (DBM_.log_unnormalized_bound(V) <= estimate + 5e-3).all()
    # the logarithm of a single weight is too low on average, by the divergence from the proposal to the posterior
    singles = DBM_.log_unnormalized(V.repeat_interleave(5_000, 0), 1, seeded_generator(2)).view(
        8, -1
    )
    q = bernoulli_table(torch.sigmoid(DBM_.mean_field(V).logits_2), H2)
    expected = (q * (DBM_.log_unnormalized_joint(V[:, None], H2[None]) - q.log())).sum(1)
    assert (expected < truth).all()
    error = singles.std(1) / math.sqrt(5_000)
    assert ((singles.mean(1) - expected).abs() < 4 * error).all()


def test_mean_field_of_other_vectors_is_refused():
    field = DBM_.mean_field(V[:5])
    for call in (DBM_.log_unnormalized_bound, DBM_.log_unnormalized):
        with pytest.raises(ValueError, match=r"mean_field.logits_2: expected shape \[8, 2\]"):
            call(V, mean_field=field)


def visible_probs_of_dbm(path, betas, width):
    """p_ann(v) of a DBM's path, h2 summed out, by enumeration of what the path really walks."""
    return annealing_model(*walked_models(path), betas).view(2**width, -1).sum(1)


def visible_probs_of_dbn(path, dbn, betas):
    """p_ann of the top RBM, as the path really walks it, passed down through the directed layers."""
    probs = annealing_model(*walked_models(path), betas)
    for layer in reversed(dbn.directed):
        probs = probs @ directed_table(layer)
    return probs


def check_mean_weights(path, truth, betas, chains, backend, seed):
    estimate = raise_log_prob(path, V, betas, chains, backend.generator(seed))
    weights = estimate.log_weights.cpu().exp()
    error = weights.std(1) / math.sqrt(chains)
    # eight vectors: beyond 4 standard errors with probability 5e-4; 0.025 for all cases of this file, and the seeds are fixed
    assert ((weights.mean(1) - truth).abs() < 4 * error).all()
    assert abs(weights.mean(1).sum() - 1) < 4 * error.square().sum().sqrt()
    assert (weights.log().mean(1) < truth.log()).all()


def check_every_draw(path, truth, bits, vectors, backend, monkeypatch):
    """Two steps, all that can be drawn in them: E[w] of the code as it stands is p_ann, a distribution, exactly."""
    draws = EveryDraw(bits, copies=len(vectors))
    draws.replace_draws(monkeypatch)
    estimate = raise_log_prob(path, vectors, UNEVEN, draws.outcomes, backend.generator(0))
    log_weights = estimate.log_weights.cpu()
    means = torch.logsumexp(log_weights + draws.log_probs, 1).exp()
    torch.testing.assert_close(means, truth, rtol=backend.tolerance, atol=0)
    assert means.sum().item() == pytest.approx(1, abs=backend.tolerance)
    assert (log_weights.std(1) > 0.05).all()


UNEVEN = [0.0, 0.4, 1.0]
FLOAT64 = BACKENDS[0]
HIDDEN_BIAS = torch.tensor([-1.2, 0.7], dtype=torch.float64)


@pytest.mark.parametrize("hidden_bias", [None, HIDDEN_BIAS], ids=["h2 uniform", "h2 base rates"])
@pytest.mark.parametrize("bias", [None, BIAS], ids=["uniform", "base rates"])
@pytest.mark.parametrize("steps", [1, 2, 6])
def test_raise_for_dbms(hidden_bias, bias, steps):
    """Algorithm 3: the mean weight is p_ann(v), h2 summed out of the joint annealing model."""
    path, betas = DBMPath(DBM_, bias, hidden_bias), uniform_betas(steps).tolist()
    truth = visible_probs_of_dbm(path, betas, 3)
    check_mean_weights(path, truth, betas, 10_000, FLOAT64, steps)


def test_raise_for_dbms_on_every_backend(backend):
    path = DBMPath(backend.place(DBM_), BIAS, HIDDEN_BIAS).to(backend.device)
    betas = uniform_betas(3).tolist()
    truth = visible_probs_of_dbm(path, betas, 3)
    check_mean_weights(path, truth, betas, 5_000, backend, 21)


def test_every_draw_of_raise_for_dbms(backend, monkeypatch):
    dbm = backend.place(random_dbm(2, 2, 1, 4))
    path = DBMPath(dbm, [0.5, -1.0], [0.7]).to(backend.device)
    truth = visible_probs_of_dbm(path, UNEVEN, 2)
    heating, back = 1 + 2 * (2 + 1), 2 * (2 + 3)
    check_every_draw(path, truth, heating + back, all_states(2), backend, monkeypatch)


# One for all 32 states of v and h2, or one for each of them.
ONE_OR_EACH = [[0.0], [0.6], [1.0], [0.0, 0.6, 1.0, 0.3] * 8]


@pytest.mark.parametrize("betas", ONE_OR_EACH, ids=["0", "0.6", "1", "one for each"])
def test_every_draw_of_a_heating_step_makes_up_its_kernel(betas, backend, monkeypatch):
    """h1 given v and h2, then h2 given h1, v held fixed: T[h2, h2'] for each v, written down from the conditionals."""
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
@pytest.mark.parametrize("steps", [1, 4])
def test_raise_for_dbns(dbn, steps):
    """Section 3.3: p_ann of the top RBM, passed down through the directed layers."""
    path, betas = DBNPath(dbn), uniform_betas(steps).tolist()
    truth = visible_probs_of_dbn(path, dbn, betas)
    check_mean_weights(path, truth, betas, 10_000, FLOAT64, 10 + steps)


def test_raise_for_dbns_on_every_backend(backend):
    dbn = backend.place(DBNS[1])
    path, betas = DBNPath(dbn, BIAS.repeat(2)[:4]).to(backend.device), uniform_betas(3).tolist()
    truth = visible_probs_of_dbn(path, dbn, betas)
    check_mean_weights(path, truth, betas, 5_000, backend, 22)


@pytest.mark.parametrize("widths", [(2, 2, 2), (2, 2, 3, 2)], ids=["two layers", "three layers"])
def test_every_draw_of_raise_for_dbns(widths, backend, monkeypatch):
    """The rounded top RBM is that of the first weight as well: otherwise the weights would be those of no distribution."""
    layers = [random_rbm(*pair, 30 + n) for n, pair in enumerate(pairwise(widths))]
    dbn = backend.place(DBN(layers))
    top = dbn.top.num_visible
    path = DBNPath(dbn, torch.linspace(-1, 0.5, top)).to(backend.device)
    truth = visible_probs_of_dbn(path, dbn, UNEVEN)
    bits = sum(widths[1:-1]) + 2 * (widths[-1] + top)
    check_every_draw(path, truth, bits, all_states(2), backend, monkeypatch)


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


def check_ais(path, exact, seed, backend):
    """The mean weight is Z of the model itself, as sums over states and as sampled."""
    start, target = walked_models(path)
    betas, count = uniform_betas(5).tolist(), 20_000
    states = all_states(target.num_visible)
    log_start = (states @ start.visible_bias).log_softmax(0)
    state = path.state_at(states.to(path.device))
    corrections = [torch.as_tensor(path.end_correction(state, end)).cpu() for end in (0, 1)]
    log_f, kernel = (
        partial(log_f_table, target, start.visible_bias),
        partial(transition_matrix, start, target),
    )
    mean, square = (
        expected_weights(log_start, log_f, kernel, betas, corrections, power) for power in (1, 2)
    )
    truth = log_z(exact)
    assert mean.log().item() + path.log_z_start == pytest.approx(truth, abs=backend.tolerance)
    estimate = ais(path, betas, count, backend.generator(seed))
    # 30 cases: beyond 4 standard errors with probability 2e-3 in all, and the seeds are fixed
    relative_std = (square / mean**2 - 1).sqrt().item() / math.sqrt(count)
    assert abs(math.expm1(estimate.log_z - truth)) < 4 * relative_std


def test_ais_for_dbms(backend):
    dbm = random_dbm(3, 3, 1, 5)
    path = DBMPath(backend.place(dbm), BIAS, HIDDEN_BIAS[:1]).to(backend.device)
    check_ais(path, dbm.joint_rbm, 2, backend)


def test_ais_for_dbns(backend):
    path = DBNPath(backend.place(DBNS[0]), [0.5, -1.0, 0.0, 1.0]).to(backend.device)
    check_ais(path, DBNS[0].top, 3, backend)


def test_base_rate_paths():
    """At the start each unit is on as often as for the training images, with the smoothing of `base_rate_bias`."""
    train = V[[0, 1, 1, 5, 7]].repeat(10_000, 1)
    rbm, dbn = random_rbm(3, 4, 12), DBNS[0]
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


def test_files(tmp_path):
    path = tmp_path / "dbm.safetensors"
    DBM_.save(path, metadata={"id": "x"})
    assert DBM.load(path).checksum() == DBM_.checksum()
    assert DBM.load(path, dtype=torch.float32).dtype == torch.float32
    RBM(torch.zeros(2, 2), torch.zeros(2), torch.zeros(2)).save(tmp_path / "rbm.safetensors")
    with pytest.raises(ValueError, match="path: expected the arrays weights_1"):
        DBM.load(tmp_path / "rbm.safetensors")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: DBM(torch.zeros(3, 2), torch.zeros(3, 2), torch.zeros(3), torch.zeros(2), torch.zeros(2)),
            r"weights_2: expected shape \[2, any\], got \[3, 2\]",
        ),
        (
            lambda: DBM(torch.zeros(3, 2), torch.zeros(2, 4), torch.zeros(3), torch.zeros(2), torch.zeros(2)),
            r"hidden_bias_2: expected shape \[4\]",
        ),
        (lambda: DBM_.log_unnormalized(V / 2), "v: expected only 0 and 1"),
        (lambda: DBM_.log_unnormalized(V[:, :2]), r"v: expected shape \[any, 3\]"),
        (lambda: DBM_.mean_field(V, max_updates=0), "max_updates: expected a whole number"),
        (lambda: DBMPath(DBM_, torch.zeros(5)), r"visible_bias: expected shape \[3\]"),
        (lambda: DBMPath(DBM_, None, torch.zeros(3)), r"hidden_bias_2: expected shape \[2\]"),
        (lambda: DBMPath(DBM_, None, [0.0, math.nan]), "hidden_bias_2: expected finite"),
        (lambda: base_rate_path(BaseRatePath(DBNS[0].top), V), "model: expected an RBM, DBM or DBN, got BaseRatePath"),
        (lambda: base_rate_path(DBM_, V[:, :2]), r"train: expected shape \[any, 3\]"),
        (lambda: base_rate_path(DBM_, V * 2), r"train: expected values in \[0, 1\]"),
        (lambda: base_rate_path(DBM_, V, 5), "generator: expected a torch.Generator"),
        (lambda: raise_log_prob(DBMPath(DBM_), all_states(5), [0, 1], 1), r"v: expected shape \[any, 3\]"),
        (lambda: raise_log_prob(DBNPath(DBNS[0]), all_states(4), [0, 1], 1), r"v: expected shape \[any, 3\]"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
