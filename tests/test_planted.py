"""Planted models: ln Z and draws by enumeration where possible, and what holds at any size."""

import hashlib
import itertools
import math
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from enumeration import all_states, log_z, random_rbm, state_numbers
from scipy.stats import chi2

from benchmarks import planted as published
from boltzmann_likelihood import planted
from boltzmann_likelihood.evaluation import evaluate
from boltzmann_likelihood.planted.ising import _CRITICAL_COUPLING, _draw_spins, _ising_log_z
from paperlib.estimators import exact_log_z
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

FOLDER = Path(__file__).parents[1] / "data" / "planted"
# Of sums in float64 of some hundred nats.
TOLERANCE = 1e-10


def block_diagonal(dtype, seed=0):
    return planted.block_diagonal(9, 7, 3, 2.0, generator=seeded_generator(seed), dtype=dtype)


def hidden_mode(dtype, units=3, fraction=0.7):
    base = planted.block_diagonal(8, 5, 2, generator=seeded_generator(1), dtype=dtype)
    return planted.hidden_mode(
        base.rbm, 1.0, units, fraction, strength=4.0, generator=seeded_generator(2)
    )


def low_rank(dtype, rank=2, values=(-1, 0, 1), **options):
    return planted.low_rank(
        9, 6, rank, values, bias_std=1.0, generator=seeded_generator(3), dtype=dtype, **options
    )


SMALL = {
    "block-diagonal": block_diagonal,
    "more hidden than visible units": lambda dtype: planted.block_diagonal(
        6, 9, 2, generator=seeded_generator(4), dtype=dtype
    ),
    "units without weights": lambda dtype: planted.from_components(
        RBM(
            torch.tensor([[1.0, 0.0], [0.0, 0.0], [-2.0, 0.0]], dtype=dtype),
            [0.1, 1.3, -0.4],
            [0.5, -0.7],
        )
    ),
    "one piece": lambda dtype: planted.from_components(random_rbm(7, 5, seed=5, dtype=dtype)),
    "low rank": low_rank,
    "rank one, larger steps": lambda dtype: low_rank(dtype, 1, (-2, 0, 1, 3), threshold=2.0),
    "low rank, few visible units": lambda dtype: planted.low_rank(
        6, 10, 1, (-1, 2), generator=seeded_generator(9), dtype=dtype
    ),
    "low rank, strong": lambda dtype: low_rank(dtype, strength=6.0),
    "hidden mode": hidden_mode,
    "hidden mode of one unit": lambda dtype: hidden_mode(dtype, 1, 1.0),
    "Ising 2 x 2": lambda dtype: planted.ising_2d(2, 0.4, dtype),
    "Ising 2 x 2, ordered": lambda dtype: planted.ising_2d(2, 0.6, dtype),
    "Ising 3 x 3": lambda dtype: planted.ising_2d(3, 0.25, dtype),
    "Ising 3 x 3, critical": lambda dtype: planted.ising_2d(3, None, dtype),
    "Ising 3 x 3, ordered": lambda dtype: planted.ising_2d(3, 0.5, dtype),
    "Ising 3 x 3, frozen": lambda dtype: planted.ising_2d(3, 2.0, dtype),
}
EACH_SMALL = pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)


# ---- small models: enumeration


@EACH_SMALL
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_log_z_is_the_enumerated_one(make, dtype):
    model = make(dtype)
    assert model.rbm.dtype == dtype
    few = model.rbm.num_visible + model.rbm.num_hidden <= 16
    truth = log_z(model.rbm) if few else exact_log_z(model.rbm, progress=False)
    assert model.log_z == pytest.approx(truth, abs=TOLERANCE)


def are_draws_of(rbm, drawn):
    """By a chi-square test that one seed in a hundred thousand fails."""
    masses = rbm.log_unnormalized(all_states(rbm.num_visible))
    expected = len(drawn) * torch.softmax(masses, 0)
    observed = torch.bincount(state_numbers(drawn), minlength=len(expected)).double()
    # States of less than five expected draws are counted as one.
    often = expected >= 5
    expected = torch.cat([expected[often], expected[~often].sum()[None]])
    observed = torch.cat([observed[often], observed[~often].sum()[None]])
    likely = expected > 0.5
    statistic = ((observed - expected)[likely] ** 2 / expected[likely]).sum().item()
    return statistic < chi2.isf(1e-5, max(1, likely.sum().item() - 1))


@EACH_SMALL
def test_draws_have_the_enumerated_frequencies(make):
    model = make(torch.float64)
    drawn = model.draws(20_000, seeded_generator(6))
    assert drawn.shape == (20_000, model.rbm.num_visible)
    assert drawn.dtype == torch.float64
    assert are_draws_of(model.rbm, drawn)


def test_a_wrong_distribution_would_be_noticed():
    model = planted.ising_2d(3, 0.4)
    other = planted.ising_2d(3, 0.43)
    assert not are_draws_of(other.rbm, model.draws(20_000, seeded_generator(6)))


# ---- medium models: a transfer matrix, weights of one's own


@pytest.mark.parametrize("coupling", [0.01, 0.3, _CRITICAL_COUPLING, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("side", [5, 8])
def test_kaufman_is_the_transfer_matrix(side, coupling):
    rows = 2 * all_states(side) - 1
    within = (rows * rows.roll(1, 1)).sum(1)
    log_matrix = coupling * (rows @ rows.T + (within[:, None] + within) / 2)
    largest = log_matrix.max()
    power = torch.linalg.matrix_power((log_matrix - largest).exp(), side)
    truth = power.trace().log() + side * largest
    assert _ising_log_z(side, coupling) == pytest.approx(truth.item(), rel=1e-12)


def test_own_factors_keep_their_weights():
    u = torch.tensor([[1, 0], [-2, 1], [0, 3], [1, 1]])
    w = torch.tensor([[0.3, -0.7], [1.1, 0.2], [1e-3, 0.0]])
    b = torch.tensor([0.1, 0.2, -0.3, 0.0])
    a = torch.tensor([0.5, -1.0, 0.0])
    for dtype, error in ((torch.float32, 1e-6), (torch.float64, 1e-15)):
        model = planted.from_factors(u, w.double(), b, a, dtype)
        exact = u.double() @ w.double().T
        assert (model.rbm.weights.double() - exact).abs().max() < error * exact.abs().max()
        assert model.log_z == pytest.approx(log_z(model.rbm), abs=TOLERANCE)


# ---- full size: what must hold of any exact ln Z


def flipped(rbm, visible):
    """The model of v_i -> 1 - v_i for these units, and by how much its ln Z is less."""
    sign = torch.ones(rbm.num_visible, dtype=rbm.dtype)
    sign[visible] = -1
    moved = RBM(
        sign[:, None] * rbm.weights,
        sign * rbm.visible_bias,
        rbm.hidden_bias + rbm.weights[visible].sum(0),
    )
    return moved, rbm.visible_bias[visible].sum().item()


def test_block_diagonal_at_full_size_moves_as_it_must():
    model = planted.block_diagonal(generator=seeded_generator(11))
    rbm = model.rbm
    assert (rbm.num_visible, rbm.num_hidden) == (784, 500)
    other, less = flipped(rbm, torch.arange(0, 784, 3))
    assert planted.from_components(other).log_z == pytest.approx(model.log_z - less, abs=1e-9)
    rows = torch.randperm(784, generator=seeded_generator(784))
    columns = torch.randperm(500, generator=seeded_generator(500))
    shuffled = RBM(rbm.weights[rows][:, columns], rbm.visible_bias[rows], rbm.hidden_bias[columns])
    assert planted.from_components(shuffled).log_z == pytest.approx(model.log_z, abs=1e-9)
    assert planted.from_components(rbm.transposed()).log_z == pytest.approx(model.log_z, abs=1e-9)


def test_low_rank_at_full_size_moves_as_it_must():
    generator = seeded_generator(12)
    u = torch.randint(-1, 2, (784, 2), generator=generator)
    u[100:, 1] = 0  # fewer counts, less time
    w = 0.02 * torch.randn(500, 2, dtype=torch.float64, generator=generator)
    w = (w * 2**20).round() / 2**20
    b = 0.3 * torch.randn(784, dtype=torch.float64, generator=generator)
    a = torch.randn(500, dtype=torch.float64, generator=generator)
    first = planted.from_factors(u, w, b, a)
    units = torch.arange(0, 784, 5)
    other, less = flipped(first.rbm, units)
    turned = u.clone()
    turned[units] *= -1
    # The same model from other factors, in another order, and with a hidden unit without weights.
    order = torch.randperm(784, generator=generator)
    wider = torch.cat([w, torch.zeros(1, 2, dtype=torch.float64)])
    second = planted.from_factors(
        turned[order], wider, other.visible_bias[order], torch.cat([other.hidden_bias, a[:1]])
    )
    assert torch.equal(second.rbm.weights[:, :500], other.weights[order])
    expected = first.log_z - less + math.log1p(a[0].exp().item())
    assert second.log_z == pytest.approx(expected, abs=1e-8)


def z_score(values, expected):
    return (values.mean() - expected) / (values.std() / math.sqrt(len(values)))


def test_draws_of_low_rank_at_full_size_have_the_mean_that_log_z_says():
    generator = seeded_generator(13)
    u = torch.randint(-1, 2, (784, 1), generator=generator)
    w = 0.01 * torch.randn(500, 1, dtype=torch.float64, generator=generator)
    direction = torch.randn(784, dtype=torch.float64, generator=generator)
    model = planted.from_factors(u, w, 0 * direction, torch.zeros(500))
    more = planted.from_factors(u, w, 1e-4 * direction, torch.zeros(500))
    less = planted.from_factors(u, w, -1e-4 * direction, torch.zeros(500))
    # d ln Z / d step is the mean of direction' v; 4.5 standard errors
    slope = (more.log_z - less.log_z) / 2e-4
    assert abs(z_score(model.draws(2_000, seeded_generator(14)) @ direction, slope)) < 4.5


@pytest.mark.parametrize("coupling", [0.3, 0.55])
def test_draws_of_ising_at_full_size_have_the_energy_that_log_z_says(coupling):
    spins = 2.0 * _draw_spins(28, coupling, 300, seeded_generator(15)) - 1
    bonds = spins * spins.roll(1, 1) + spins * spins.roll(1, 2)
    step = 1e-5
    slope = (_ising_log_z(28, coupling + step) - _ising_log_z(28, coupling - step)) / (2 * step)
    assert abs(z_score(bonds.sum((1, 2)), slope)) < 4.5
    # Up and down are alike.
    assert abs(z_score(spins.mean((1, 2)), 0.0)) < 4.5


def test_threshold_makes_a_transition_of_first_order():
    """Phases of comparable weight with hardly anything between them.

    At the sizes and numbers that the documentation names.
    """
    model = planted.low_rank(
        rank=1, strength=0.61, threshold=4.0, bias_std=0.0, generator=seeded_generator(0)
    )
    programme = model.draws.draw.__self__  # the counts and their weights
    log_probs = programme.log_masses - model.log_z
    distance = (programme.counts[:, 0] - programme.counts[:, 0].double().mean()).abs()
    near = torch.logsumexp(log_probs[distance < 60], 0).item()
    far = torch.logsumexp(log_probs[distance > 160], 0).item()
    between = torch.logsumexp(log_probs[(distance > 90) & (distance < 110)], 0).item()
    assert min(near, far) > -12
    assert between < min(near, far) - 3


def test_mode_has_its_odds_and_base_draws_are_far_from_it():
    base = planted.block_diagonal(200, 100, 10, generator=seeded_generator(16))
    model = planted.hidden_mode(base.rbm, 3.0, generator=seeded_generator(17))
    assert model.log_z - base.log_z == pytest.approx(math.log1p(math.exp(3)), abs=1e-9)
    towards = model.rbm.weights[:, -1].sign()
    follows = model.draws(2_000, seeded_generator(18)) @ towards / towards.clamp(min=0).sum()
    in_mode = (follows > 0.8).double().mean().item()
    odds = 1 / (1 + math.exp(-3))
    assert in_mode == pytest.approx(odds, abs=4 * math.sqrt(odds * (1 - odds) / 2_000))
    assert (base.draws(2_000, seeded_generator(19)) @ towards).max() < 0.8 * towards.clamp(
        min=0
    ).sum()


# ---- generators, types


def test_models_and_draws_are_functions_of_their_generators():
    first = block_diagonal(torch.float64, 0)
    second = block_diagonal(torch.float64, 0)
    third = block_diagonal(torch.float64, 1)
    assert first.rbm.checksum() == second.rbm.checksum() != third.rbm.checksum()
    for make in SMALL.values():
        model = make(torch.float32)
        again = pickle.loads(pickle.dumps(model))
        drawn = model.draws(50, seeded_generator(1))
        assert drawn.dtype == torch.float32
        assert torch.equal(drawn, again.draws(50, seeded_generator(1)))
        assert not torch.equal(drawn, model.draws(50, seeded_generator(2)))
        assert model.draws(1).shape == (1, model.rbm.num_visible)


# ---- files


def test_a_file_holds_what_was_written(tmp_path):
    model = hidden_mode(torch.float32)
    path = tmp_path / "model.npz"
    planted.write_planted(path, model, 30, seeded_generator(23), {"seed": "2"})
    stored = planted.read_planted(path)
    assert stored.rbm.checksum() == model.rbm.checksum() == RBM.load(path).checksum()
    assert stored.log_z == model.log_z
    assert torch.equal(stored.draws, model.draws(30, seeded_generator(23)).to(torch.uint8))
    assert stored.provenance == {"seed": "2"}
    content = path.read_bytes()
    planted.write_planted(path, model, 30, seeded_generator(23), {"seed": "2"})
    assert path.read_bytes() == content
    for damaged in (content[:-30], content[:200], b""):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="path: expected an undamaged"):
            planted.read_planted(path)
    model.rbm.save(path)
    with pytest.raises(ValueError, match="path: expected the arrays"):
        planted.read_planted(path)


def recomputed_blocks(rbm):
    return planted.from_components(rbm).log_z


def recomputed_mode(rbm):
    """The last hidden unit off, and on."""
    rbm = rbm.to(dtype=torch.float64)
    weights = rbm.weights[:, :-1]
    hidden_bias = rbm.hidden_bias[:-1]
    off = RBM(weights, rbm.visible_bias, hidden_bias)
    on = RBM(weights, rbm.visible_bias + rbm.weights[:, -1], hidden_bias)
    log_z_on = rbm.hidden_bias[-1].item() + planted.from_components(on).log_z
    return np.logaddexp(planted.from_components(off).log_z, log_z_on)


def recomputed_low_rank(rbm):
    """By factors found in the weights: two different rows, of which all are whole multiples."""
    weights = rbm.weights.double()
    rows = weights.unique(dim=0)
    for pair in itertools.combinations(range(len(rows)), 2):
        basis = rows[list(pair)]
        u = torch.linalg.lstsq(basis.T, weights.T).solution.T
        if (u - u.round()).abs().max() < 1e-3 and torch.equal(u.round() @ basis, weights):
            return planted.from_factors(
                u.round(), basis.T, rbm.visible_bias, rbm.hidden_bias, torch.float64
            ).log_z
    return None


def recomputed_ising(rbm):
    weight = rbm.weights.max().item()
    side = math.isqrt(rbm.num_visible)
    assert rbm.num_hidden == 2 * side**2
    assert ((rbm.weights == weight).sum(0) == 2).all()
    assert ((rbm.weights == weight).sum(1) == 4).all()
    assert torch.equal(rbm.weights != 0, rbm.weights == weight)
    assert (rbm.visible_bias == -2 * weight).all()
    assert (rbm.hidden_bias == -weight).all()
    coupling = math.log(math.cosh(weight / 2)) / 2
    return _ising_log_z(side, coupling) + 2 * side**2 * (math.log(2) + coupling - weight / 2)


RECOMPUTED = {
    "block-diagonal-784x500": recomputed_blocks,
    "hidden-mode-784x501": recomputed_mode,
    "ising-100x200": recomputed_ising,
    "ising-784x1568": recomputed_ising,
    "low-rank-100x80": recomputed_low_rank,
    "low-rank-784x500": recomputed_low_rank,
}


@pytest.mark.parametrize("name", published.MODELS)
def test_published_file(name):
    path = FOLDER / f"{name}.npz"
    assert path.stat().st_size < 300_000
    rbm, log_z, draws, provenance = planted.read_planted(path)
    assert rbm.dtype == torch.float32
    assert log_z == pytest.approx(RECOMPUTED[name](rbm), abs=1e-8)
    assert provenance | {"paperlib": ""} == published.provenance(name) | {"paperlib": ""}
    if name != "low-rank-784x500":  # a second time that long is not worth it
        # Normal numbers may differ in their last bits between processors.
        assert torch.allclose(published.make(name).rbm.weights, rbm.weights, rtol=0, atol=1e-5)
    # The row of the README: file, size, ln Z.
    row = f"| `{name}.npz` | {rbm.num_visible} x {rbm.num_hidden} | {log_z:.9f} |"
    assert row in (FOLDER / "README.md").read_text()
    # A Gibbs step leaves the distribution of perfect draws as it is. Means of 784 units: at most
    # 5.5 standard errors.
    assert draws.shape == (1_000, rbm.num_visible)
    double = rbm.to(dtype=torch.float64)
    stepped = double.gibbs_step(draws.double(), seeded_generator(24))
    difference = stepped - draws.double()
    standard_errors = difference.std(0).clamp(min=1e-2) / math.sqrt(1_000)
    assert (difference.mean(0).abs() / standard_errors).max() < 5.5


def test_evaluate_finds_the_log_z_of_a_published_file():
    rbm, log_z, draws, _ = planted.read_planted(FOLDER / "ising-100x200.npz")
    evaluation = evaluate(rbm, draws, steps=1_000, generator=seeded_generator(0))
    assert evaluation.trustworthy
    low, high = evaluation.log_z_interval(0.95)
    assert low < log_z < high


def test_published_files_are_listed_and_small():
    files = sorted(FOLDER.glob("*.npz"))
    assert [path.stem for path in files] == sorted(published.MODELS)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_000_000
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in files]
    assert (FOLDER / "SHA256SUMS").read_text().splitlines() == sums


def test_the_example_of_the_readme_runs(monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(FOLDER)
    exec(code, {})
    rbm, log_z, draws, _ = planted.read_planted(FOLDER / "block-diagonal-784x500.npz")
    expected = rbm.to(dtype=torch.float64).log_unnormalized(draws).mean().item() - log_z
    assert float(capsys.readouterr().out) == pytest.approx(expected, abs=1e-9)
