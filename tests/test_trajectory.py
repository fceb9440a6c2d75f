"""Paths through checkpoints, and ln Z along training, against enumeration."""

import itertools
import math
import pickle
from functools import partial

import pytest
import torch
from backends import BACKENDS
from enumeration import (
    WeightlessRBM,
    all_states,
    expected_weights,
    frequencies,
    joint_log_table,
    log_z,
    random_rbm,
    state_numbers,
    transition_matrix,
)
from every_draw import EveryDraw

from paperlib.annealing import BaseRatePath, TrajectoryPath, trajectory_path, uniform_betas
from paperlib.datasets import base_rate_bias, binary_images
from paperlib.errors import InputError
from paperlib.estimators import (
    TrajectoryEstimate,
    ais,
    exact_log_z,
    log_z_along_training,
    raise_log_prob,
    smc,
)
from paperlib.learning import ContrastiveDivergence, train_rbm
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

FLOAT64 = BACKENDS[0]
BIAS = torch.tensor([-1.0, 0.5, 2.0, 0.0], dtype=torch.float64)
# knots, places within each of the three segments, and both ends
BETAS = [0.0, 0.2, 1 / 3, 0.5, 2 / 3, 0.9, 1.0]


def checkpoints(num_visible=4, num_hidden=3):
    """Weights that grow, each with a part of its own."""
    return [
        random_rbm(num_visible, num_hidden, seed, scale)
        for seed, scale in ((51, 0.4), (52, 0.8), (51, 1.3))
    ]


def problem(backend=FLOAT64, num_visible=4, num_hidden=3):
    rbms = checkpoints(num_visible, num_hidden)
    path = TrajectoryPath([backend.place(rbm) for rbm in rbms], BIAS[:num_visible])
    return path.to(backend.device), rbms


def model_at(rbms, beta):
    """The RBM between the two knots next to beta, with the base rates before the first."""
    wide = [RBM(0 * rbms[0].weights, BIAS[: rbms[0].num_visible], 0 * rbms[0].hidden_bias), *rbms]
    segment = min(int(beta * len(rbms) + 1e-12), len(rbms) - 1)
    share = beta * len(rbms) - segment
    ends = [one.tensors().values() for one in wide[segment : segment + 2]]
    return RBM(*((1 - share) * low + share * high for low, high in zip(*ends, strict=True)))


def log_f_table(rbms, beta):
    return torch.logsumexp(joint_log_table(model_at(rbms, beta)), 1)


def kernel(rbms, beta):
    model = model_at(rbms, beta)
    return transition_matrix(WeightlessRBM(0 * model.visible_bias), model, 1.0)


def replace_draws(draws, monkeypatch):
    draws.replace_draws(monkeypatch)
    monkeypatch.setattr(trajectory_path, "draw_bits_of_logits", lambda x, generator: draws.take(x))
    monkeypatch.setattr(
        trajectory_path, "draw_bits", lambda p, generator: draws.take(torch.logit(p))
    )


# ---- the path


def test_densities_are_those_of_the_model_between_two_knots(backend):
    path, rbms = problem(backend)
    state = path.state_at(all_states(4).to(backend.device))
    close = {"rtol": 0, "atol": 2 * backend.tolerance}
    for low in BETAS:
        expected = log_f_table(rbms, low)
        torch.testing.assert_close(path.log_f(state, low).cpu(), expected, **close)
        for high in BETAS[::2]:
            ratio = path.log_ratio(state, low, high).cpu()
            torch.testing.assert_close(ratio, log_f_table(rbms, high) - expected, **close)
    total = path.log_f(state, 0.0).cpu().logsumexp(0).item()
    assert total == pytest.approx(path.log_z_start, abs=2 * backend.tolerance)


def test_knots_are_the_checkpoints():
    path, rbms = problem()
    v = all_states(4)
    assert path.knots.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    for beta, rbm in zip(path.knots[1:].tolist(), rbms, strict=True):
        found = path.log_f(path.state_at(v), beta)
        torch.testing.assert_close(found, rbm.log_unnormalized(v), rtol=0, atol=1e-12)
    torch.testing.assert_close(
        path.log_start(v), (v @ BIAS).log_softmax(0), rtol=0, atol=1e-12
    )  # fmt: skip


def test_the_first_segment_is_a_base_rate_path():
    path, rbms = problem()
    other, v = BaseRatePath(rbms[0], BIAS), all_states(4)
    for low, high in ((0.0, 0.3), (0.3, 1.0)):
        found = path.log_ratio(path.state_at(v), low / 3, high / 3)
        expected = other.log_ratio(other.state_at(v), low, high)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert path.log_z_start == other.log_z_start


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("each", [False, True], ids=["one beta", "one for each chain"])
def test_every_draw_of_a_transition_makes_up_the_enumerated_kernel(
    beta, each, backend, monkeypatch
):
    path, rbms = problem(backend)
    bits = 3 + 4
    v = all_states(4).repeat_interleave(2**bits, 0).to(backend.device)
    draws = EveryDraw(bits, copies=16)
    replace_draws(draws, monkeypatch)
    given = torch.full((len(v),), beta, dtype=torch.float64).to(backend.device) if each else beta
    moved = path.transition(path.state_at(v), given, backend.generator(0))
    numbers = state_numbers(path.units(moved).cpu()).view(16, -1)
    found = torch.zeros(16, 16).double().scatter_add_(1, numbers, draws.log_probs.exp())
    torch.testing.assert_close(found, kernel(rbms, beta), rtol=0, atol=backend.tolerance)


def test_chains_in_all_segments_do_what_each_does_alone(backend):
    """As parallel tempering asks: densities, ratios to any other place, and the inputs after a transition."""
    path, _ = problem(backend)
    state = path.state_at(all_states(4)[2:9].to(backend.device))
    low = torch.tensor(BETAS, dtype=torch.float64).to(backend.device)
    high = torch.tensor(BETAS[3:] + BETAS[:3], dtype=torch.float64).to(backend.device)
    log_f, ratio = path.log_f(state, low).cpu(), path.log_ratio(state, low, high).cpu()
    moved = path.transition(state, low, backend.generator(1))
    fresh = path.state_at(moved.v)
    for chain, (here, there) in enumerate(zip(BETAS, high.tolist(), strict=True)):
        index = torch.tensor([chain]).to(backend.device)
        alone = path.select(state, index)
        close = {"abs": 2 * backend.tolerance}
        assert log_f[chain].item() == pytest.approx(path.log_f(alone, here).item(), **close)
        expected = path.log_ratio(alone, here, there).item()
        assert ratio[chain].item() == pytest.approx(expected, **close)
        # what the transition has remembered of its segment is true of the new units
        for beta in BETAS:
            found = path.log_f(path.select(moved, index), beta).item()
            assert found == pytest.approx(path.log_f(path.select(fresh, index), beta).item(), **close)  # fmt: skip


def test_chains_in_two_segments_draw_from_their_own_kernels():
    path, rbms = problem()
    count, betas = 20_000, (0.2, 0.9)
    state = path.state_at(all_states(4)[5].expand(2 * count, -1))
    # in turn, so that chains of a segment do not stand together
    given = torch.tensor(betas, dtype=torch.float64).repeat(count)
    moved = path.units(path.transition(state, given, seeded_generator(2)))
    for part, beta in enumerate(betas):
        found, p = frequencies(moved[part::2]), kernel(rbms, beta)[5]
        assert ((found - p).abs() < 4.5 * (p * (1 - p) / count).sqrt() + 1e-9).all()


def test_every_draw_of_ais_makes_up_the_last_partition_function(backend, monkeypatch):
    path, rbms = problem(backend, 3, 2)
    betas = [0, 0.5, 1]
    draws = EveryDraw(bits=3 + 2 * (2 + 3))
    replace_draws(draws, monkeypatch)
    found = ais(path, betas, draws.outcomes, backend.generator(0), check=False)
    log_mean = torch.logsumexp(found.log_weights.cpu() + draws.log_probs[0], 0).item()
    assert log_mean == pytest.approx(log_z(rbms[-1]), abs=2 * backend.tolerance)


def test_every_draw_of_raise_makes_up_the_annealing_model(backend, monkeypatch):
    path, rbms = problem(backend, 3, 2)
    betas, v = [0, 0.5, 1], all_states(3)
    draws = EveryDraw(bits=2 * (2 + 3), copies=8)
    replace_draws(draws, monkeypatch)
    found = raise_log_prob(path, v, betas, draws.outcomes, backend.generator(0))
    mean = torch.logsumexp(found.log_weights.cpu() + draws.log_probs, 1).exp()
    expected = (v @ BIAS[:3]).softmax(0)
    for beta in betas[1:]:
        expected = expected @ kernel(rbms, beta)
    torch.testing.assert_close(mean, expected, rtol=0, atol=2 * backend.tolerance)
    assert mean.sum().item() == pytest.approx(1, abs=2 * backend.tolerance)


def test_small_steps_of_float32_add_up():
    rbms = [random_rbm(50, 30, seed, 0.4) for seed in (53, 54)]
    v = (torch.rand(40, 50, generator=seeded_generator(0)) < 0.5).double()
    betas, sums = uniform_betas(1_000).tolist(), []
    for dtype in (torch.float32, torch.float64):
        path = TrajectoryPath([rbm.to(dtype=dtype) for rbm in rbms])
        state = path.state_at(v)
        steps = itertools.pairwise(betas)
        sums.append(sum(path.log_ratio(state, low, high) for low, high in steps))
    # 1,000 steps lose less than a thousandth of a nat, as along a base-rate path
    torch.testing.assert_close(sums[0], sums[1], rtol=0, atol=1e-3)


def test_huge_steps_overflow_nowhere():
    rbm = RBM(torch.full((4, 2), 300.0), torch.zeros(4), torch.tensor([0.0, -2_000.0]))
    path = TrajectoryPath([rbm])
    state = path.state_at(torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0]]))
    for low, high in ((0.0, 1.0), (1.0, 0.0)):
        expected = path.log_f(state, high) - path.log_f(state, low)
        torch.testing.assert_close(path.log_ratio(state, low, high), expected)


def test_a_path_travels(backend):
    path, rbms = problem(backend)
    if not backend.on_gpu:
        again = pickle.loads(pickle.dumps(path))
        assert again.checksum() == path.checksum()
        assert again.log_z_start == path.log_z_start
    fewer = TrajectoryPath(rbms[1:], BIAS)
    assert fewer.checksum() != TrajectoryPath(rbms, BIAS).checksum()
    assert not path.uniform_start
    assert TrajectoryPath(rbms).uniform_start
    assert path.num_visible == 4


# ---- ln Z along training


def test_estimates_at_all_knots_are_unbiased(backend):
    path, rbms = problem(backend)
    found = log_z_along_training(
        path, 20, backend.generator(3), betas=uniform_betas(6), num_populations=600, threshold=0.9
    )  # fmt: skip
    assert found.chain_steps == 6 * 20 * 600
    for t, rbm in enumerate(rbms):
        ratio = (found.log_weights[:, t].cpu() - log_z(rbm)).exp()
        error = ratio.std().item() / math.sqrt(len(ratio))
        # 45 cases: beyond four standard errors with probability 3e-3 in all, and the seed is fixed
        assert abs(ratio.mean().item() - 1) < 4 * error
        assert error < 0.03


def test_weights_at_a_knot_are_those_of_ais_to_there():
    """Without resampling, chain by chain: expectation and variance by enumeration."""
    path, rbms = problem()
    betas = [0, 1 / 6, 1 / 3, 0.5, 2 / 3, 0.8, 1]
    found = log_z_along_training(
        path, 1, seeded_generator(4), betas=betas, num_populations=20_000, threshold=0
    )  # fmt: skip
    start = (all_states(4) @ BIAS).log_softmax(0)
    log_f, matrix = (partial(one, rbms) for one in (log_f_table, kernel))
    for t, knot in enumerate((2, 4, 6)):
        mean, square = (
            expected_weights(start, log_f, matrix, betas[: knot + 1], (0.0, 0.0), power)
            for power in (1, 2)
        )
        assert mean.log().item() + path.log_z_start == pytest.approx(log_z(rbms[t]), abs=1e-12)
        ratio = (found.log_weights[:, t] - log_z(rbms[t])).exp()
        std = (square / mean**2 - 1).sqrt().item()
        assert abs(ratio.mean().item() - 1) < 4 * std / math.sqrt(20_000)
        # skewed weights: their sample deviation is itself noisy
        assert ratio.std().item() == pytest.approx(std, rel=0.2)
    last = smc(path, 1, seeded_generator(4), betas=betas, num_populations=20_000, threshold=0)
    assert torch.equal(last.log_weights, found.log_weights[:, -1])


@pytest.fixture(scope="module")
def training():
    """Checkpoints of a small RBM that is trained, and ln Z of each."""
    train = binary_images("digits").train[:300]
    kept = []

    def keep(epoch, rbm):
        if epoch % 6 == 1:
            kept.append(rbm)

    recipe = ContrastiveDivergence(8, epochs=31, batch_size=20, learning_rate=0.1)
    train_rbm(train, recipe, 0, dtype=torch.float64, on_epoch=keep, progress=False)
    truth = torch.tensor([exact_log_z(rbm) for rbm in kept], dtype=torch.float64)
    return TrajectoryPath(kept, base_rate_bias(train)), truth


def test_intervals_cover_along_training(training):
    path, truth = training
    assert len(truth) == 6
    # it is a training in which ln Z moves by nats
    assert truth.max() - truth.min() > 5
    covered = torch.zeros(len(truth))
    for seed in range(5):
        found = log_z_along_training(path, 200, seeded_generator(seed), chain_steps=160_000, num_populations=8)  # fmt: skip
        low, high = found.interval(0.95)
        covered += (low <= truth) & (truth <= high)
        # Student's quantile for 8 populations at one in 2,000
        assert ((found.log_z - truth).abs() < 6 * found.std_error).all()
        assert (found.std_error < 0.25).all()
        assert found.warnings == ()
    # of 5 runs 3 or more cover with probability 0.999 at each checkpoint, and the seeds are fixed
    assert (covered >= 3).all()


def test_intervals_cover_as_often_as_they_say():
    rbms = checkpoints(5, 4)
    path = TrajectoryPath(rbms)
    truth = torch.tensor([log_z(rbm) for rbm in rbms], dtype=torch.float64)
    runs, level, covered, differences = 200, 0.9, torch.zeros(3), []
    for seed in range(runs):
        found = log_z_along_training(
            path, 20, seeded_generator(seed), betas=uniform_betas(6), num_populations=8
        )  # fmt: skip
        low, high = found.interval(level)
        covered += (low <= truth) & (truth <= high)
        differences.append(found.difference(0, 2))
    spread = 4 * math.sqrt(runs * level * (1 - level)) + 0.01 * runs
    assert ((covered - level * runs).abs() < spread).all()
    # the error that is stated of a difference is that which is made
    change, stated = torch.tensor(differences, dtype=torch.float64).T
    made = (change - (truth[2] - truth[0])).square().mean().sqrt()
    # a deviation of 200 numbers is known to 5 %
    assert stated.square().mean().sqrt() == pytest.approx(made.item(), rel=0.2)


def test_the_error_of_a_difference_is_that_of_paired_populations():
    shared = torch.randn(9, 1, generator=seeded_generator(7)).double()
    own = torch.randn(9, 2, generator=seeded_generator(8)).double()
    log_weights, none = 1e-3 * (5 * shared + own), torch.zeros(9, 1)
    found = TrajectoryEstimate(log_weights, none, 9, none, none, none)
    pairs = log_weights[:, 1] - log_weights[:, 0]
    # weights so alike that logarithms of means are means
    change, error = found.difference(0, 1)
    assert change == pytest.approx(pairs.mean().item(), abs=1e-4)
    assert error == pytest.approx(pairs.std().item() / 3, rel=0.01)
    assert error < 0.5 * found.std_error[0]


def test_checkpoints_that_are_alike_differ_by_nothing():
    rbm = random_rbm(4, 3, 51)
    found = log_z_along_training(TrajectoryPath([rbm, rbm]), 20, seeded_generator(5))
    change, error = found.difference(0, 1)
    assert change == pytest.approx(0, abs=1e-12)
    assert error == pytest.approx(0, abs=1e-12)
    assert (found.std_error > 0.01).all()


def test_budgets_schedules_and_warnings():
    path, _ = problem()
    told = []
    found = log_z_along_training(path, 20, seeded_generator(6), chain_steps=2_000, num_populations=5, on_step=told.append)  # fmt: skip
    assert sum(told) == found.chain_steps <= 2_000
    assert set(path.knots.tolist()) <= set(found.betas.tolist())
    assert found.warnings == ()
    least = log_z_along_training(path, 20, seeded_generator(6), chain_steps=800, num_populations=5)
    assert least.chain_steps <= 800
    lone = log_z_along_training(TrajectoryPath(checkpoints()), 10, betas=[0, 1], num_populations=1)
    assert any("One population" in warning for warning in lone.warnings)
    assert any("uniformly random" in warning for warning in lone.warnings)
    assert lone.difference(0, 1)[1] == math.inf
    assert torch.isinf(lone.std_error).all()
    assert lone.betas.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])


# ---- bad input


RBM_4_3 = random_rbm(4, 3, seed=51)


def along(**options):
    return log_z_along_training(**({"path": problem()[0], "num_chains": 10} | options))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TrajectoryPath([]), r"rbms: expected a sequence of at least one RBM, got \[\]"),
        (lambda: TrajectoryPath(RBM_4_3), "rbms: expected a sequence of at least one RBM"),
        (lambda: TrajectoryPath("RBMs"), "rbms: expected a sequence of at least one RBM"),
        (lambda: TrajectoryPath([RBM_4_3, None]), r"rbms\[1\]: expected an RBM, got NoneType"),
        (
            lambda: TrajectoryPath([RBM_4_3, random_rbm(4, 2, 1)]),
            r"rbms\[1\]: expected num_hidden 3 as in rbms\[0\], got 2",
        ),
        (
            lambda: TrajectoryPath([RBM_4_3, random_rbm(5, 3, 1)]),
            r"rbms\[1\]: expected num_visible 4",
        ),
        (
            lambda: TrajectoryPath([RBM_4_3, RBM_4_3.to(dtype=torch.float32)]),
            r"rbms\[1\]: expected dtype torch.float64",
        ),
        (lambda: TrajectoryPath([RBM_4_3], [0.0]), "visible_bias: expected shape"),
        (lambda: TrajectoryPath([RBM_4_3], [math.nan] * 4), "visible_bias: expected finite"),
        (lambda: problem()[0].state_at([[0.5] * 4]), "v: expected only 0 and 1"),
        (
            lambda: problem()[0].log_f(BaseRatePath(RBM_4_3).state_at([[0, 1, 1, 0]]), 0.5),
            "state: expected a TrajectoryState of this path, got VisibleState",
        ),
        (
            lambda: problem()[0].log_f(problem(FLOAT64, 3, 2)[0].state_at([[0, 1, 1]]), 0.5),
            "state: expected 4 units with 3 inputs, got 3 and 2",
        ),
        (
            lambda: problem()[0].log_f(problem()[0].state_at([[0, 1, 1, 0]]), torch.zeros(2)),
            "beta: expected a number, or one for each of 1 chains",
        ),
        (
            lambda: problem()[0].log_f(problem()[0].state_at([[0, 1, 1, 0]]), "warm"),
            "beta: expected a number or a tensor, got str",
        ),
        (
            lambda: along(path=BaseRatePath(RBM_4_3)),
            "path: expected a TrajectoryPath, got BaseRate",
        ),
        (lambda: along(num_chains=0), "num_chains: expected a whole number of at least 1"),
        (lambda: along(chain_steps=799), "chain_steps: expected a whole number of at least 800"),
        (lambda: along(betas=[0, 0.5]), "betas: expected to run from 0 to 1"),
        (lambda: along(cess=2), "cess: expected a number between 0 and 1"),
        (lambda: along(betas=[0, 1]).difference(0, 3), "second: expected a number from 0 to 2"),
        (lambda: along(betas=[0, 1]).difference(-1, 2), "first: expected a whole number"),
        (lambda: along(betas=[0, 1]).interval(95), "level: expected a number between 0 and 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()
