"""RBMs with categorical visible units against the enumeration of all their states, written down from the definition."""

import itertools
import math

import numpy as np
import pytest
import torch
from backends import walked_models
from enumeration import all_states, bernoulli_table, expected_weights

from paperlib.annealing import PottsPath, uniform_betas
from paperlib.datasets import site_frequency_bias
from paperlib.errors import InputError
from paperlib.estimators import (
    ais,
    certified_lower_bound,
    exact_log_z,
    parallel_tempering,
    raise_log_prob,
    smc,
)
from paperlib.kernels import draw_categories
from paperlib.models import PottsRBM, log_z_lower_bound
from paperlib.numerics import seeded_generator

SITES, STATES, HIDDEN = 2, 3, 3
BETAS = [0.0, 0.3, 0.7, 1.0]


def random_potts(sites=SITES, states=STATES, hidden=HIDDEN, seed=1, scale=1.0):
    generator = seeded_generator(seed)
    shapes = (sites, states, hidden), (sites, states), (hidden,)
    return PottsRBM(
        *(scale * torch.randn(*s, dtype=torch.float64, generator=generator) for s in shapes)
    )


MODEL = random_potts()
# of the start; not uniform
BIAS = torch.tensor([[0.4, -0.2, 0.1], [-0.5, 0.3, 0.0]], dtype=torch.float64)


def every_sequence(sites=SITES, states=STATES):
    return torch.tensor(list(itertools.product(range(states), repeat=sites)))


def one_hot(sequences, states=STATES):
    return torch.nn.functional.one_hot(sequences, states).flatten(1).double()


EVERY_V = one_hot(every_sequence())


def minus_energy(model, v, h):
    """-E of every pair, site by site, from the definition."""
    table = torch.zeros(len(v), len(h), dtype=torch.float64)
    by_site = v.view(len(v), model.num_sites, model.num_states)
    for n, k in itertools.product(range(len(v)), range(len(h))):
        total = (model.hidden_bias.double() * h[k]).sum()
        for i in range(model.num_sites):
            state = by_site[n, i].argmax()
            total += model.visible_bias[i, state] + (model.weights[i, state].double() * h[k]).sum()
        table[n, k] = total
    return table


TABLE = minus_energy(MODEL, EVERY_V, all_states(HIDDEN))
LOG_Z = TABLE.flatten().logsumexp(0).item()


def numbers(v):
    """The place of each vector of bits in `EVERY_V`."""
    states = v.view(len(v), SITES, STATES).double().argmax(-1)
    return (states * STATES ** torch.arange(SITES - 1, -1, -1)).sum(-1)


# ---- the model


def test_the_model_is_its_definition():
    h = all_states(HIDDEN)
    close = {"rtol": 0, "atol": 1e-12}
    torch.testing.assert_close(-MODEL.energy(EVERY_V[:, None], h[None]), TABLE, **close)
    torch.testing.assert_close(MODEL.log_unnormalized(EVERY_V), TABLE.logsumexp(1), **close)
    torch.testing.assert_close(MODEL.log_unnormalized_hidden(h), TABLE.logsumexp(0), **close)
    flipped = MODEL.log_unnormalized_hidden((h[:, None] - torch.eye(HIDDEN).double()).abs())
    torch.testing.assert_close(MODEL.log_unnormalized_flips(h), flipped, **close)
    given_v = TABLE.softmax(1) @ h
    torch.testing.assert_close(MODEL.hidden_probs(EVERY_V), given_v, **close)
    given_h = TABLE.softmax(0).T @ EVERY_V
    torch.testing.assert_close(MODEL.visible_probs(h), given_h, **close)


def test_sequences_and_bits():
    sequences = every_sequence()
    bits = MODEL.one_hot(sequences)
    assert bits.dtype == torch.uint8
    assert torch.equal(bits.double(), EVERY_V)
    assert torch.equal(MODEL.sequences(bits), sequences)
    assert torch.equal(MODEL.one_hot(np.array([[2.0, 1.0]])), bits[7:8])


@pytest.mark.parametrize("suffix", [".safetensors", ".npz"])
def test_files(tmp_path, suffix):
    path = tmp_path / f"potts{suffix}"
    if suffix == ".npz":
        np.savez(path, **{name: tensor.numpy() for name, tensor in MODEL.tensors().items()})
    else:
        MODEL.save(path)
    assert PottsRBM.load(path).checksum() == MODEL.checksum()


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
    error = (probs * (1 - probs) / 40_000).sqrt()
    assert bool(((draws.double().mean(0) - probs).abs() <= 5 * error).all())
    assert draws.double().mean(0)[5] == 0


def walked(path):
    """The model that the path really walks to, whose weights its products may have rounded."""
    _, flat = walked_models(path)
    shape = (SITES, STATES)
    return PottsRBM(flat.weights.view(*shape, -1), flat.visible_bias.view(shape), flat.hidden_bias)


def log_f_table(model, beta, bias=BIAS):
    """ln f_beta of every v, by summing over every h."""
    scaled = torch.logsumexp(beta * minus_energy(model, EVERY_V, all_states(HIDDEN)), 1)
    return (1 - beta) * (EVERY_V @ bias.flatten()) + scaled


def kernel(model, beta, bias=BIAS):
    """T[v, v']: all hidden units given v, then the sites given them."""
    h = all_states(HIDDEN)
    given_v = bernoulli_table(
        torch.sigmoid(beta * (EVERY_V @ model.flat.weights + model.hidden_bias)), h
    )
    inputs = (1 - beta) * bias + beta * (
        model.visible_bias + torch.einsum("hj,isj->his", h, model.weights)
    )
    sites = inputs.softmax(-1).flatten(1)  # [h, L q]
    by_site = EVERY_V.view(-1, SITES, STATES)
    chosen = torch.einsum("nis,his->hni", by_site, sites.view(-1, SITES, STATES)).prod(-1)
    return given_v @ chosen


@pytest.mark.parametrize("beta", BETAS)
def test_the_kernel_keeps_p_beta(beta):
    """So that the walks below are compared with what they should be."""
    p = log_f_table(MODEL, beta).softmax(0)
    flow = p[:, None] * kernel(MODEL, beta)
    torch.testing.assert_close(flow, flow.T, rtol=0, atol=1e-14)


def test_the_path_walks_this_kernel(backend):
    """Transitions from every state, each 3,000 times, with one beta for each chain: all frequencies within 5 standard errors."""
    path = PottsPath(backend.place(MODEL), BIAS).to(backend.device)
    model, repeats = walked(path), 3_000
    chains = EVERY_V.repeat(repeats, 1).to(torch.uint8)
    for beta in (0.4, 1.0):
        betas = torch.full((len(chains),), beta, dtype=torch.float64, device=backend.device)
        state = path.state_at(chains.to(backend.device))
        torch.testing.assert_close(
            path.log_f(state, betas).cpu()[: len(EVERY_V)],
            log_f_table(model, beta),
            rtol=0,
            atol=20 * backend.tolerance,
        )
        after = path.transition(state, betas, backend.generator(5))
        assert bool((path.units(after).cpu().view(-1, SITES, STATES).sum(-1) == 1).all())
        pairs = numbers(chains) * len(EVERY_V) + numbers(path.units(after).cpu())
        found = torch.bincount(pairs, minlength=len(EVERY_V) ** 2).view(len(EVERY_V), -1) / repeats
        expected = kernel(model, beta)
        error = (expected * (1 - expected) / repeats).sqrt() + 1e-6
        assert bool(((found - expected).abs() < 5 * error).all())


def test_ais_is_unbiased(backend):
    """The mean weight is what products of the matrices say, within 5 standard errors, and times Z_0 that is Z of the model itself."""
    path = PottsPath(backend.place(MODEL), BIAS).to(backend.device)
    target = walked(path)
    correction = log_f_table(backend.place(MODEL).to(dtype=torch.float64).to("cpu"), 1.0)
    correction = correction - log_f_table(target, 1.0)
    log_start = (EVERY_V @ BIAS.flatten()).log_softmax(0)
    tables = (
        log_start,
        lambda beta: log_f_table(target, beta),
        lambda beta: kernel(target, beta),
        BETAS,
        (torch.zeros(len(EVERY_V)), correction),
    )
    mean = expected_weights(*tables).log().item()
    second = expected_weights(*tables, power=2).log().item()
    estimate = ais(path, BETAS, 4_000, backend.generator(3), progress=False)
    error = math.sqrt(math.expm1(second - 2 * mean) / 4_000)
    ratio = math.exp(estimate.log_z - path.log_z_start - mean)
    assert abs(ratio - 1) < 5 * error
    assert mean + path.log_z_start == pytest.approx(LOG_Z, abs=1e-5)


def test_raise_is_unbiased(backend):
    """For every v the mean weight is p_ann(v), a product of matrices, within 5 standard errors."""
    path = PottsPath(backend.place(MODEL), BIAS).to(backend.device)
    target, chains = walked(path), 2_000
    p_ann = (EVERY_V @ BIAS.flatten()).softmax(0)
    for beta in BETAS[1:]:
        p_ann = p_ann @ kernel(target, beta)
    v = EVERY_V.to(torch.uint8).to(backend.device)
    weights = (
        raise_log_prob(path, v, BETAS, chains, backend.generator(4), progress=False)
        .log_weights.cpu()
        .exp()
    )
    error = weights.std(1) / math.sqrt(chains)
    assert bool(((weights.mean(1) - p_ann).abs() < 5 * error).all())


def test_tempering_smc_and_certified_bound():
    model = random_potts(12, 4, 8, seed=2, scale=0.7)
    truth = exact_log_z(model)
    path = PottsPath(model)
    tempering = parallel_tempering(path, 40_000, seeded_generator(1), progress=False)
    low, high = tempering.interval(0.999)
    assert low < truth < high
    assert tempering.std_error < 0.1
    assert tempering.samples.shape[1] == 48
    assert tempering.lower_bound <= truth
    found = smc(path, 1_000, generator=seeded_generator(2), progress=False)
    low, high = found.interval(0.999)
    assert low < truth < high
    weights = ais(path, uniform_betas(300), 100, seeded_generator(3), progress=False)
    bound = certified_lower_bound(weights.log_weights, 0.999)
    assert bound <= truth


def test_start_at_the_frequencies():
    train = torch.randint(0, 3, (50, 2), generator=seeded_generator(1))
    bias = site_frequency_bias(train, 3)
    torch.testing.assert_close(bias.exp().sum(1), torch.ones(2, dtype=torch.float64))
    counts = torch.stack([torch.bincount(column, minlength=3) for column in train.T])
    torch.testing.assert_close(bias.exp(), (counts.double() / 50 + 0.05 / 3) / 1.05)
    path = PottsPath(MODEL, bias)
    assert not path.uniform_start
    assert PottsPath(MODEL).uniform_start
    units = path.units(path.sample_start(20_000, seeded_generator(2)))
    probs = bias.exp().flatten()
    error = (probs * (1 - probs) / 20_000).sqrt()
    assert bool(((units.mean(0) - probs).abs() < 5 * error).all())


def test_one_path_is_not_another():
    """The same numbers with other sites are another path, and so are other biases."""
    as_pairs = PottsRBM(
        MODEL.weights.view(3, 2, 3), MODEL.visible_bias.view(3, 2), MODEL.hidden_bias
    )
    checksums = {
        PottsPath(MODEL).checksum(),
        PottsPath(as_pairs).checksum(),
        PottsPath(MODEL, BIAS).checksum(),
    }
    assert len(checksums) == 3
    import pickle

    copied = pickle.loads(pickle.dumps(PottsPath(MODEL, BIAS)))
    assert copied.checksum() == PottsPath(MODEL, BIAS).checksum()
    assert PottsPath(MODEL, BIAS).to("cpu").checksum() == copied.checksum()


# ---- wrong input

PATH = PottsPath(MODEL)
WRONG = {
    "two dimensions": (lambda: PottsRBM(torch.zeros(2, 3), torch.zeros(2, 3), [0.0]), "weights: "),
    "one state": (
        lambda: PottsRBM(torch.zeros(2, 1, 3), torch.zeros(2, 1), torch.zeros(3)),
        "weights: expected at least two states",
    ),
    "flat bias": (
        lambda: PottsRBM(torch.zeros(2, 3, 1), torch.zeros(6), [0.0]),
        r"visible_bias: expected shape \[2, 3\], got \[6\]",
    ),
    "nan": (
        lambda: PottsRBM(torch.zeros(2, 3, 1), torch.zeros(2, 3), [float("nan")]),
        "hidden_bias: expected finite",
    ),
    "no such state": (lambda: MODEL.one_hot([[0, 3]]), "whole numbers from 0 to 2"),
    "negative": (lambda: MODEL.one_hot([[0, -1]]), "whole numbers from 0 to 2"),
    "half": (lambda: MODEL.one_hot([[0.5, 1.0]]), "whole numbers from 0 to 2"),
    "other length": (lambda: MODEL.one_hot([[0, 1, 2]]), "sequences: expected 2 sites"),
    "a number": (lambda: MODEL.one_hot(1), "sequences: expected 2 sites"),
    "two bits on": (lambda: PATH.state_at([[1, 1, 0, 0, 1, 0]]), "expected one bit on of each"),
    "no bit on": (
        lambda: raise_log_prob(PATH, [[0, 0, 0, 0, 1, 0]], BETAS, 2),
        "expected one bit on of each",
    ),
    "sequences for bits": (lambda: raise_log_prob(PATH, [[0, 1]], BETAS, 2), "v: expected"),
    "start's shape": (lambda: PottsPath(MODEL, torch.zeros(6)), "visible_bias: expected shape"),
    "too many": (
        lambda: exact_log_z(random_potts(2, 2, 30)),
        "rbm: expected a layer of at most 25 units to enumerate, got 4 visible and 30 hidden",
    ),
    "logits": (
        lambda: draw_categories(torch.zeros(1, 5), 3, seeded_generator(0)),
        "logits: expected a multiple of 3",
    ),
    "no sequences": (lambda: site_frequency_bias(torch.zeros(0, 3), 3), "train: expected shape"),
    "state of train": (lambda: site_frequency_bias([[4]], 3), "train: expected whole numbers"),
    "pseudo-count": (lambda: site_frequency_bias([[1]], 3, 0.0), "pseudo_count: expected a"),
}


@pytest.mark.parametrize(("call", "message"), WRONG.values(), ids=WRONG)
def test_wrong_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
