"""Bennett's acceptance ratio: exact cases, another implementation's numbers and coverage."""

import math

import pytest
import torch

from paperlib.estimators import bennett
from paperlib.estimators.tempering.bennett import bennett_roots
from paperlib.numerics import seeded_generator

INFINITY = math.inf


def two_gaussians(count_0, count_1, seed, shift=1.5, truth=0.7):
    """f_0 = N(0, 1) and f_1 = e^truth N(shift, 1): ln f_1 / f_0 at draws of both."""
    generator = seeded_generator(seed)
    x = torch.randn(count_0, dtype=torch.float64, generator=generator)
    y = torch.randn(count_1, dtype=torch.float64, generator=generator)
    log_ratio = [truth + shift * draws - shift**2 / 2 for draws in (x, y + shift)]
    return log_ratio[0], -log_ratio[1]


def test_frequencies_that_are_exact_give_the_exact_ratio():
    """Two states with weights (1, 1) and (1, 3), drawn as often as expected, in unequal numbers."""
    log_3 = math.log(3)
    estimate = bennett([0, log_3] * 5, [-log_3] * 30 + [0] * 10)
    assert estimate.log_ratio == pytest.approx(math.log(2), abs=1e-12)


@pytest.mark.parametrize(
    ("counts", "seed", "log_ratio", "std_error"),
    [
        ((100, 100), 0, 0.6756740719800305, 0.11627043158152506),
        ((30, 200), 1, 0.7600635056989173, 0.10857020634329707),
        ((1000, 10), 2, 0.614990886883816, 0.06624042637863137),
    ],
)
def test_pymbar_gives_the_same(counts, seed, log_ratio, std_error):
    """pymbar 4.0.3, run once.

    `other_estimators.bar(-forward, -reverse, uncertainty_method="BAR", relative_tolerance=1e-14)`.
    """
    estimate = bennett(*two_gaussians(*counts, seed))
    assert estimate.log_ratio == pytest.approx(log_ratio, abs=1e-12)
    assert estimate.std_error == pytest.approx(std_error, abs=1e-10)


def test_the_root_is_that_of_the_equation_for_any_numbers():
    generator = seeded_generator(3)
    for counts in ((1, 1), (1, 50), (400, 3)):
        lower, upper = (
            100 * torch.randn(4, count, dtype=torch.float64, generator=generator)
            for count in counts
        )
        roots = bennett_roots(lower, upper)[:, None]
        shift = roots + math.log(counts[0] / counts[1])
        left = torch.sigmoid(lower - shift).sum(1)
        right = torch.sigmoid(shift - upper).sum(1)
        # Far from all draws the slope is tiny, and both sides are equally large.
        torch.testing.assert_close(left, right, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("truth", [10, 50, 300])
def test_newtons_method_takes_few_rounds(truth, monkeypatch):
    """Few steps, for a ratio so large that rounding decides the last ones.

    There would be forty if those were taken for steps out of the bracket.
    """
    pairs = [two_gaussians(100, 100, seed, truth=truth) for seed in range(9)]
    forward, reverse = (torch.stack(sides) for sides in zip(*pairs, strict=True))
    expected = bennett_roots(forward, -reverse)
    monkeypatch.setattr("paperlib.estimators.tempering.bennett._MOST_ROUNDS", 8)
    assert torch.equal(bennett_roots(forward, -reverse), expected)


def test_adding_a_constant_moves_the_estimate_by_it_and_turning_it_round_changes_its_sign():
    forward, reverse = two_gaussians(50, 70, 1)
    estimate = bennett(forward, reverse)
    moved = bennett(forward + 1e6, reverse - 1e6)
    assert moved.log_ratio - 1e6 == pytest.approx(estimate.log_ratio, abs=1e-8)
    turned = bennett(reverse, forward)
    assert turned.log_ratio == pytest.approx(-estimate.log_ratio, abs=1e-9)
    assert turned.std_error == pytest.approx(estimate.std_error)


def test_intervals_cover_as_often_as_they_say():
    covered = 0
    for seed in range(400):
        low, high = bennett(*two_gaussians(60, 40, seed)).interval(0.9)
        covered += low <= 0.7 <= high
    # 360 expected, with a standard deviation of 6
    assert 336 <= covered <= 384


def test_blocks_tell_the_error_of_draws_that_depend_on_each_other():
    """Every draw ten times over: only the error of blocks stays right.

    The asymptotic one is too small by the square root of ten.
    """
    forward, reverse = two_gaussians(400, 400, 5)
    honest = bennett(forward, reverse)
    again = [side.repeat_interleave(10) for side in (forward, reverse)]
    naive = bennett(*again)
    blocks = bennett(*again, num_batches=40)
    assert naive.log_ratio == pytest.approx(honest.log_ratio, abs=1e-9)
    assert naive.std_error == pytest.approx(honest.std_error / math.sqrt(10), rel=1e-6)
    # from 40 blocks an error is known to 11 %
    assert blocks.std_error == pytest.approx(honest.std_error, rel=0.4)
    assert blocks.degrees_of_freedom == 39
    assert blocks.interval()[1] > blocks.log_ratio + 2 * blocks.std_error


def test_infinite_log_ratios():
    """A draw of one side that the other has no room for counts as none in the overlap."""
    some = bennett([0.0, -INFINITY], [0.0, 0.0])
    assert some.log_ratio == pytest.approx(math.log(1 / 2), abs=0.3)
    none = bennett([-INFINITY], [0.0])
    assert none.log_ratio == -INFINITY
    assert none.std_error == INFINITY
    assert "No draw of `forward`" in none.warnings[0]
    assert bennett([0.0], [-INFINITY]).log_ratio == INFINITY


def test_few_draws_in_the_overlap_are_warned_about():
    assert bennett(*two_gaussians(100, 100, 0)).warnings == ()
    (warning,) = bennett(*two_gaussians(100, 100, 0, shift=8.0)).warnings
    assert "overlap" in warning


def normal(mean, scale, count, seed):
    return mean + scale * torch.randn(count, dtype=torch.float64, generator=seeded_generator(seed))


BLOCKS = pytest.mark.parametrize("num_batches", [None, 20])


@BLOCKS
@pytest.mark.parametrize("counts", [(50_000, 50_000), (21, 10_000)])
@pytest.mark.parametrize("apart", [40, 500, 2_000])
def test_without_overlap_the_error_is_infinite(apart, counts, num_batches):
    """l ~ N(-apart, 1) at draws of 0 and N(apart, 1) at draws of 1.

    A bootstrap finds an error of zero.
    """
    lower = normal(-apart, 1, counts[0], 1)
    upper = normal(apart, 1, counts[1], 2)
    for estimate in (
        bennett(lower, -upper, num_batches=num_batches),
        bennett(-upper, lower, num_batches=num_batches),
    ):
        assert abs(estimate.log_ratio) < apart
        assert estimate.std_error == INFINITY
        assert estimate.interval() == (-INFINITY, INFINITY)
        assert "overlap" in estimate.warnings[0]


@BLOCKS
@pytest.mark.parametrize("seed", range(20))
def test_21_draws_against_10_000(seed, num_batches):
    estimate = bennett(*two_gaussians(21, 10_000, seed), num_batches=num_batches)
    # 40 cases: beyond 4 standard errors, of which 20 blocks know little, with probability 2e-2, and
    # the seeds are fixed
    assert 0 < estimate.std_error < 0.3
    assert abs(estimate.log_ratio - 0.7) < 4 * estimate.std_error
    assert estimate.warnings == ()


@BLOCKS
@pytest.mark.parametrize("scales", [(100, 3_500), (3_500, 100)])
def test_sides_that_contradict_each_other_are_warned_about(scales, num_batches):
    """Both sides of N(0, 100) and N(0, 3500) overlap well.

    But no two densities have these log-ratios.
    """
    sides = [normal(0, scale, 50_000, seed) for seed, scale in enumerate(scales)]
    estimate = bennett(*sides, num_batches=num_batches)
    assert 0 < estimate.std_error < INFINITY
    (warning,) = estimate.warnings
    assert "the two sides contradict each other" in warning
    # so do right log-ratios of the wrong sign
    forward, reverse = two_gaussians(500, 500, 0, shift=8.0)
    assert bennett(forward, reverse).warnings[1:] == ()
    assert "contradict" in bennett(-forward, -reverse).warnings[-1]
