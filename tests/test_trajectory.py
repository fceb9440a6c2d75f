"""Paths through checkpoints, and ln Z along training; `test_every_path` has what holds for all paths."""

import math

import pytest
import torch
from enumeration import assert_unbiased, expected_weights, log_z, random_rbm
from walks import checkpoints, trajectory

from paperlib.annealing import TrajectoryPath, uniform_betas
from paperlib.datasets import base_rate_bias, binary_images
from paperlib.estimators import TrajectoryEstimate, exact_log_z, log_z_along_training, smc
from paperlib.learning import ContrastiveDivergence, train_rbm
from paperlib.models import RBM
from paperlib.numerics import seeded_generator

# ---- the path


def test_huge_steps_overflow_nowhere():
    rbm = RBM(torch.full((4, 2), 300.0), torch.zeros(4), torch.tensor([0.0, -2_000.0]))
    path = TrajectoryPath([rbm])
    state = path.state_at(torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0]]))
    for low, high in ((0.0, 1.0), (1.0, 0.0)):
        expected = path.log_f(state, high) - path.log_f(state, low)
        torch.testing.assert_close(path.log_ratio(state, low, high), expected)


# ---- ln Z along training


def test_estimates_at_all_knots_are_unbiased(backend):
    path, rbms = trajectory(backend).path, checkpoints()
    found = log_z_along_training(
        path, 20, backend.generator(3), betas=uniform_betas(6), num_populations=600, threshold=0.9
    )  # fmt: skip
    assert found.chain_steps == 6 * 20 * 600
    for t, rbm in enumerate(rbms):
        # 45 cases: beyond four standard errors with probability 3e-3 in all, and the seed is fixed
        assert_unbiased(found.log_weights[:, t], log_z(rbm), 0.03)


def test_weights_at_a_knot_are_those_of_ais_to_there():
    """Without resampling, chain by chain: expectation and variance by enumeration."""
    walk, rbms = trajectory(), checkpoints()
    path = walk.path
    betas = [0, 1 / 6, 1 / 3, 0.5, 2 / 3, 0.8, 1]
    found = log_z_along_training(
        path, 1, seeded_generator(4), betas=betas, num_populations=20_000, threshold=0
    )  # fmt: skip
    tables = walk.log_start, walk.log_f, walk.kernel
    for t, knot in enumerate((2, 4, 6)):
        mean, square = (
            expected_weights(*tables, betas[: knot + 1], (0.0, 0.0), power) for power in (1, 2)
        )
        assert mean.log().item() + path.log_z_start == pytest.approx(log_z(rbms[t]), abs=1e-12)
        ratio = (found.log_weights[:, t] - log_z(rbms[t])).exp()
        std = (square / mean**2 - 1).sqrt().item()
        assert abs(ratio.mean().item() - 1) < 4 * std / math.sqrt(20_000)
        # skewed weights: their sample deviation is itself noisy
        assert ratio.std().item() == pytest.approx(std, rel=0.2)
    last = smc(path, 1, seeded_generator(4), betas=betas, num_populations=20_000, threshold=0)
    assert torch.equal(last.log_weights, found.log_weights[:, -1])


def test_intervals_cover_along_training():
    train, kept = binary_images("digits").train[:300], []

    def keep(epoch, rbm):
        if epoch % 6 == 1:
            kept.append(rbm)

    recipe = ContrastiveDivergence(8, epochs=31, batch_size=20, learning_rate=0.1)
    train_rbm(train, recipe, 0, dtype=torch.float64, on_epoch=keep, progress=False)
    path = TrajectoryPath(kept, base_rate_bias(train))
    truth = torch.tensor([exact_log_z(rbm) for rbm in kept], dtype=torch.float64)
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
    found = TrajectoryEstimate(
        log_weights, none, 9, none, none, none, ancestors=none, resampled=none
    )
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
    path, told = trajectory().path, []
    found = log_z_along_training(path, 20, seeded_generator(6), chain_steps=2_000, num_populations=5, on_step=told.append)  # fmt: skip
    assert sum(told) == found.chain_steps <= 2_000
    assert path.knots.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
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
