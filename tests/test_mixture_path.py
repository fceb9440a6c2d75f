"""Paths from a mixture, and starts by mean field, against enumeration."""

import math
import pickle
from functools import partial

import pytest
import torch
from backends import BACKENDS, walked_models
from enumeration import (
    all_states,
    bernoulli_table,
    expected_weights,
    frequencies,
    joint_log_table,
    log_z,
    random_rbm,
    state_numbers,
)
from every_draw import EveryDraw

from paperlib.annealing import (
    BaseRatePath,
    MixturePath,
    mean_field_bias,
    mean_field_mixture,
    mixture_path,
    uniform_betas,
)
from paperlib.errors import InputError
from paperlib.estimators import ais, exact_hidden_samples, exact_log_z, raise_log_prob, smc
from paperlib.models import RBM, BernoulliMixture
from paperlib.numerics import seeded_generator

FLOAT64 = BACKENDS[0]
BETAS = [0.0, 0.3, 0.8, 1.0]


def mixture_of(num_components, num_visible):
    generator = seeded_generator(41)
    logits = 2 * torch.randn(num_components, num_visible, generator=generator).double()
    return BernoulliMixture(logits, torch.linspace(-1, 0.5, num_components).double())


def problem(backend=FLOAT64, num_visible=4, num_hidden=3, num_components=3):
    """A path, its model, and its mixture."""
    rbm = random_rbm(num_visible, num_hidden, seed=42)
    mixture = mixture_of(num_components, num_visible)
    path = MixturePath(backend.place(rbm), mixture).to(backend.device)
    return path, rbm, mixture


def log_components(mixture):
    """ln Bern(v | mu_c), [2^D, C]."""
    v = all_states(mixture.num_visible)
    return bernoulli_table(torch.sigmoid(mixture.logits), v).log().T


def log_f_table(rbm, mixture, beta):
    """ln f_beta(v) of every v, by summing over every h and c."""
    mixed = mixture.log_mixing_weights + (1 - beta) * log_components(mixture)
    scaled = torch.logsumexp(beta * joint_log_table(rbm), 1)
    return torch.logsumexp(mixed, 1) + scaled


def kernel(rbm, mixture, beta):
    """T[v, v']: c and h given v, then v' given both, by summing over every c and h."""
    v, hidden = all_states(rbm.num_visible), all_states(rbm.num_hidden)
    p_h = bernoulli_table(torch.sigmoid(beta * (v @ rbm.weights + rbm.hidden_bias)), hidden)
    p_c = (mixture.log_mixing_weights + (1 - beta) * log_components(mixture)).softmax(1)
    matrix = torch.zeros(len(v), len(v), dtype=torch.float64)
    for c, logits in enumerate(mixture.logits):
        inputs = (1 - beta) * logits + beta * (hidden @ rbm.weights.T + rbm.visible_bias)
        matrix += p_c[:, c : c + 1] * (p_h @ bernoulli_table(torch.sigmoid(inputs), v))
    return matrix


def annealing_model(rbm, mixture, betas):
    probs = mixture.log_prob(all_states(rbm.num_visible)).exp()
    for beta in betas[1:]:
        probs = probs @ kernel(rbm, mixture, beta)
    return probs


def replace_draws(draws, monkeypatch):
    """Of two components, as of units, every one once."""
    draws.replace_draws(monkeypatch)

    def component(log_weights, generator):
        return draws.take((log_weights[:, 1] - log_weights[:, 0])[:, None])[:, 0].long()

    monkeypatch.setattr(mixture_path, "draw_component", component)
    monkeypatch.setattr(mixture_path, "draw_bits", lambda p, generator: draws.take(torch.logit(p)))


def test_densities_are_the_enumerated_ones(backend):
    path, _, mixture = problem(backend)
    walked = walked_models(path)[1]
    state = path.state_at(all_states(4).to(backend.device))
    close = {"rtol": 0, "atol": 2 * backend.tolerance}
    for low in BETAS:
        expected = log_f_table(walked, mixture, low)
        torch.testing.assert_close(path.log_f(state, low).cpu(), expected, **close)
        for high in BETAS:
            ratio = path.log_ratio(state, low, high).cpu()
            difference = log_f_table(walked, mixture, high) - expected
            torch.testing.assert_close(ratio, difference, **close)


def test_ends_are_the_mixture_and_the_model(backend):
    path, rbm, mixture = problem(backend)
    v = all_states(4)
    state = path.state_at(v.to(backend.device))
    close = {"rtol": 0, "atol": 2 * backend.tolerance}
    start = path.log_f(state, 0.0).cpu() - path.end_correction(state, 0).cpu() - path.log_z_start
    torch.testing.assert_close(start, mixture.log_prob(v), **close)
    torch.testing.assert_close(path.log_start(v).cpu(), mixture.log_prob(v), **close)
    assert start.logsumexp(0).item() == pytest.approx(0, abs=2 * backend.tolerance)
    end = path.log_f(state, 1.0).cpu() + path.end_correction(state, 1).cpu()
    torch.testing.assert_close(end, torch.logsumexp(joint_log_table(rbm), 1), **close)


@pytest.mark.parametrize("beta", BETAS)
def test_the_transition_is_reversible(beta):
    path, rbm, mixture = problem()
    p = log_f_table(rbm, mixture, beta).softmax(0)
    flow = p[:, None] * kernel(rbm, mixture, beta)
    torch.testing.assert_close(flow, flow.T, rtol=0, atol=1e-14)
    assert path.reversible


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_every_draw_of_a_transition_makes_up_the_enumerated_kernel(beta, backend, monkeypatch):
    path, _, mixture = problem(backend, num_components=2)
    bits = 1 + 3 + 4
    v = all_states(4).repeat_interleave(2**bits, 0).to(backend.device)
    draws = EveryDraw(bits, copies=16)
    replace_draws(draws, monkeypatch)
    moved = path.transition(path.state_at(v), beta, backend.generator(0))
    numbers = state_numbers(path.units(moved).cpu()).view(16, -1)
    found = torch.zeros(16, 16).double().scatter_add_(1, numbers, draws.log_probs.exp())
    expected = kernel(walked_models(path)[1], mixture, beta)
    torch.testing.assert_close(found, expected, rtol=0, atol=backend.tolerance)


def test_draws_of_the_start_and_of_components():
    path, _, mixture = problem()
    count = 40_000
    found = frequencies(path.units(path.sample_start(count, seeded_generator(1))))
    p = mixture.log_prob(all_states(4)).exp()
    assert ((found - p).abs() < 4.5 * (p * (1 - p) / count).sqrt()).all()
    shares = torch.tensor([0.5, 0.0, 0.2, 0.3], dtype=torch.float64)
    drawn = mixture_path.draw_component(shares.log().expand(count, -1), seeded_generator(2))
    rates = torch.bincount(drawn, minlength=4) / count
    assert ((rates - shares).abs() <= 4.5 * (shares * (1 - shares) / count).sqrt()).all()


def test_every_draw_of_ais_makes_up_the_models_own_partition_function(backend, monkeypatch):
    path, rbm, _ = problem(backend, 3, 2, 2)
    draws = EveryDraw(bits=(1 + 3) + 2 * (1 + 2 + 3))
    replace_draws(draws, monkeypatch)
    found = ais(path, [0, 0.4, 1], draws.outcomes, backend.generator(0), check=False)
    log_weights = found.log_weights.cpu()
    log_mean = torch.logsumexp(log_weights + draws.log_probs[0], 0).item()
    assert log_mean == pytest.approx(log_z(rbm), abs=2 * backend.tolerance)
    assert log_weights.std() > 0.1


def test_weights_of_ais_have_the_enumerated_mean_and_spread(backend):
    path, rbm, mixture = problem(backend)
    betas, truth, count = uniform_betas(5).tolist(), log_z(rbm), 20_000
    walked = walked_models(path)[1]
    state = path.state_at(all_states(4).to(backend.device))
    corrections = [path.end_correction(state, end).cpu() for end in (0, 1)]
    log_f, matrix = (partial(one, walked, mixture) for one in (log_f_table, kernel))
    start = mixture.log_prob(all_states(4))
    mean, square = (
        expected_weights(start, log_f, matrix, betas, corrections, power) for power in (1, 2)
    )
    assert mean.log().item() + path.log_z_start == pytest.approx(truth, abs=2 * backend.tolerance)
    found = ais(path, betas, count, backend.generator(3), check=False)
    error = (square / mean**2 - 1).sqrt().item() / math.sqrt(count)
    assert abs((found.log_weights.cpu() - truth).exp().mean() - 1) < 4 * error


def test_every_draw_of_raise_makes_up_the_annealing_model(backend, monkeypatch):
    path, rbm, mixture = problem(backend, 3, 2, 2)
    betas = [0, 0.4, 1]
    draws = EveryDraw(bits=2 * (1 + 2 + 3), copies=8)
    replace_draws(draws, monkeypatch)
    found = raise_log_prob(path, all_states(3), betas, draws.outcomes, backend.generator(0))
    mean = torch.logsumexp(found.log_weights.cpu() + draws.log_probs, 1).exp()
    walked = walked_models(path)[1]
    expected = annealing_model(walked, mixture, betas)
    torch.testing.assert_close(mean, expected, rtol=0, atol=2 * backend.tolerance)
    # a normalised model, which is not yet the target
    assert mean.sum().item() == pytest.approx(1, abs=2 * backend.tolerance)
    target = torch.logsumexp(joint_log_table(rbm), 1) - log_z(rbm)
    assert (mean - target.exp()).abs().max() > 0.01


def test_one_component_is_a_base_rate_path():
    _, rbm, _ = problem()
    bias = torch.tensor([-1.0, 0.5, 2.0, 0.0], dtype=torch.float64)
    one, other = MixturePath(rbm, BernoulliMixture(bias[None], [0.0])), BaseRatePath(rbm, bias)
    v = all_states(4)
    for low, high in ((0.0, 0.3), (0.3, 1.0)):
        ratios = [path.log_ratio(path.state_at(v), low, high) for path in (one, other)]
        # their f_beta differ by what does not depend on v
        shift = torch.nn.functional.softplus(bias).sum() * (high - low)
        torch.testing.assert_close(ratios[0] - shift, ratios[1], rtol=0, atol=1e-12)


def test_one_beta_for_each_chain(backend):
    path, _, _ = problem(backend)
    state = path.state_at(all_states(4)[3:7].to(backend.device))
    low = torch.tensor([0.0, 0.3, 0.9, 1.0], dtype=torch.float64).to(backend.device)
    high = torch.tensor([0.5, 0.1, 1.0, 0.0], dtype=torch.float64).to(backend.device)
    log_f, ratio = path.log_f(state, low).cpu(), path.log_ratio(state, low, high).cpu()
    for chain in range(4):
        alone = path.select(state, torch.tensor([chain]).to(backend.device))
        here, there = low.tolist()[chain], high.tolist()[chain]
        close = {"abs": 2 * backend.tolerance}
        assert log_f[chain].item() == pytest.approx(path.log_f(alone, here).item(), **close)
        assert ratio[chain].item() == pytest.approx(
            path.log_ratio(alone, here, there).item(), **close
        )


def test_chains_at_two_betas_draw_from_their_own_kernels():
    path, rbm, mixture = problem()
    count, v = 20_000, all_states(4)[5]
    state = path.state_at(v.expand(2 * count, -1))
    betas = torch.tensor([0.2, 0.9], dtype=torch.float64).repeat_interleave(count)
    moved = path.units(path.transition(state, betas, seeded_generator(4))).view(2, count, 4)
    for found, beta in zip(frequencies(moved), (0.2, 0.9), strict=True):
        p = kernel(rbm, mixture, beta)[5]
        assert ((found - p).abs() < 4.5 * (p * (1 - p) / count).sqrt() + 1e-9).all()


def two_modes():
    """Two modes, half of Z in each, between which chains hardly cross: 40 pixels on, or all off."""
    weights = torch.full((40, 1), 6.0, dtype=torch.float64)
    rbm = RBM(weights, torch.full((40,), -3.0, dtype=torch.float64), [-120.0])
    return rbm, exact_log_z(rbm)


def test_a_component_for_each_mode_beats_base_rates():
    rbm, truth = two_modes()
    train, _ = exact_hidden_samples(rbm, 200, seeded_generator(5))
    rates = train.mean(0)
    assert ((rates > 0.3) & (rates < 0.7)).all()
    betas = uniform_betas(30)
    by_rates = ais(BaseRatePath(rbm, torch.logit(rates)), betas, 200, seeded_generator(6))
    by_modes = ais(MixturePath(rbm, mean_field_mixture(rbm)), betas, 200, seeded_generator(6))
    assert abs(by_modes.log_z - truth) < 4 * by_modes.std_error
    assert by_modes.std_error < 0.05
    # the truth lies ten times farther from the other, or its weights say nothing
    assert abs(by_rates.log_z - truth) > 10 * by_modes.std_error


def test_other_estimators_walk_it_too():
    path, rbm, _ = problem()
    found = smc(path, 50, seeded_generator(7), num_populations=20)
    assert abs(found.log_z - log_z(rbm)) < 4 * found.std_error
    assert found.warnings == ()
    assert found.lower_bound <= log_z(rbm) + 1e-9


def test_a_path_travels(backend):
    path, _, mixture = problem(backend)
    again = pickle.loads(pickle.dumps(problem(backend)[0])) if not backend.on_gpu else path
    assert again.checksum() == path.checksum()
    other = MixturePath(random_rbm(4, 3, seed=42), mixture_of(2, 4))
    assert other.checksum() != MixturePath(random_rbm(4, 3, seed=42), mixture).checksum()
    assert path.num_visible == 4
    assert path.divide(path.sample_start(200, backend.generator(8)), 2) == []
    assert not path.uniform_start


# ---- mean field


def test_mean_field_without_weights_is_the_model_itself():
    bias = torch.tensor([-1.0, 0.5, 2.0, 0.0], dtype=torch.float64)
    rbm = RBM(torch.zeros(4, 3).double(), bias, torch.ones(3))
    torch.testing.assert_close(mean_field_bias(rbm), bias)
    mixture = mean_field_mixture(rbm)
    assert mixture.num_components == 1
    torch.testing.assert_close(mixture.logits[0], bias)


def test_mean_field_is_a_fixed_point_of_both_layers():
    rbm = random_rbm(5, 4, seed=43, scale=0.5)
    mixture = mean_field_mixture(rbm)
    for logits in mixture.logits:
        hidden = rbm.hidden_probs(torch.sigmoid(logits))
        again = hidden @ rbm.weights.T + rbm.visible_bias
        # two decimals, and a weight of about a half on each of them
        assert (again - logits).abs().max() < 0.02


def test_a_mean_field_start_finds_what_a_uniform_one_misses():
    weights = torch.zeros(100, 2, dtype=torch.float64)
    weights[:60, 0], weights[60:, 0], weights[:, 1] = 3.0, -3.0, 0.05
    hidden_bias = torch.tensor([-105.0, 0.0], dtype=torch.float64)
    rbm = RBM(weights, torch.full((100,), -0.2, dtype=torch.float64), hidden_bias)
    truth, betas = exact_log_z(rbm), uniform_betas(300)
    missed = ais(BaseRatePath(rbm), betas, 50, seeded_generator(0))
    assert missed.log_z < truth - 5
    bias = mean_field_bias(rbm)
    assert bias.abs().max() <= math.log(999) + 0.01
    found = ais(BaseRatePath(rbm, bias), betas, 50, seeded_generator(0))
    assert abs(found.log_z - truth) < 4 * found.std_error
    assert found.warnings == ()


def test_mean_field_in_every_type(backend):
    rbm = backend.place(random_rbm(6, 4, seed=44)).to(backend.device)
    exact = mean_field_bias(random_rbm(6, 4, seed=44))
    bias, mixture = mean_field_bias(rbm), mean_field_mixture(rbm, num_components=2)
    assert bias.dtype == rbm.dtype
    assert bias.device == mixture.logits.device == rbm.device
    torch.testing.assert_close(bias.cpu().double(), exact, rtol=0, atol=0.011)
    assert mixture.num_components <= 2
    path = BaseRatePath(rbm, bias)
    assert path.device == rbm.device


# ---- bad input


RBM_4_3 = random_rbm(4, 3, seed=42)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MixturePath("RBM", mixture_of(2, 4)), "rbm: expected an RBM, got str"),
        (lambda: MixturePath(RBM_4_3, None), "mixture: expected a BernoulliMixture, got NoneType"),
        (lambda: MixturePath(RBM_4_3, mixture_of(2, 5)), "mixture: expected 4 visible units as in"),
        (lambda: mean_field_bias(None), "rbm: expected an RBM, got NoneType"),
        (lambda: mean_field_mixture([1]), "rbm: expected an RBM, got list"),
        (lambda: mean_field_mixture(RBM_4_3, 0), "num_components: expected a whole number"),
        (lambda: problem()[0].state_at([[0, 1, 2, 0]]), "v: expected only 0 and 1"),
        (lambda: problem()[0].state_at([[0, 1]]), "v: expected shape"),
        (
            lambda: problem()[0].log_f(BaseRatePath(RBM_4_3).state_at([[0, 1, 1, 0]]), 0.5),
            "state: expected a MixtureState of this path, got VisibleState",
        ),
        (
            lambda: problem()[0].log_f(problem()[0].state_at([[0, 1, 1, 0]]), torch.zeros(2)),
            "beta: expected a number, or one for each of 1 chains",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
