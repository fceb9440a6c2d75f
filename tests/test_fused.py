"""Elementwise work of annealing in one pass: known numbers, exact draws, sums to the last digit."""

import itertools

import numpy as np
import pytest
import torch
from enumeration import assert_rates
from numba import njit
from philox import philox

from paperlib.kernels import (
    bernoulli,
    draw_bits_of_logits,
    draw_units,
    reference,
    softplus_increment,
)
from paperlib.kernels import cpu as fused
from paperlib.kernels.arguments import PlaceOfChains
from paperlib.numerics import seeded_generator


@njit
def compiled_philox(counter, key_low, key_high):
    return fused.philox(counter, key_low, key_high)


def test_philox_known_answers():
    # the vectors of the authors' Random123 library for philox4x32-10: all bits zero, all bits one,
    # digits of pi
    assert philox((0, 0, 0, 0), 0, 0) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    ones = 2**32 - 1
    assert philox((ones,) * 4, ones, ones) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    pi = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
    expected = (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)
    assert philox(pi, 0xA4093822, 0x299F31D0) == expected


@pytest.mark.parametrize("counter", [0, 1, 2**32 - 1])
@pytest.mark.parametrize("key", [(0, 0), (123_456_789, 987_654_321), (2**32 - 1, 2**32 - 1)])
def test_philox_of_the_kernels_and_of_the_reference(counter, key):
    numbers = compiled_philox(np.uint32(counter), *map(np.uint32, key))
    others = reference.philox(torch.tensor([counter]), *key)
    assert (
        [int(n) for n in numbers] == [int(n) for n in others] == [*philox((counter, 0, 0, 0), *key)]
    )


SIZES = pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 101, 4_096])
KEY = 123_456_789, 987_654_321


def drawn(logits, keys, first=0, start=0, total=None, width=1):
    """Draws for logits [n], as rows of this width from a place of a whole of `total` rows on."""
    rows = logits.reshape(-1, width)
    out = np.zeros(rows.shape, dtype=np.bool_)
    factors = np.array([0.7], np.float32)
    no_offsets = np.zeros((1, width), np.float32)
    same_for_all = np.zeros(len(rows), np.int64)
    place = PlaceOfChains(start, len(rows) if total is None else total, first)
    key = np.array(keys, np.uint32)
    fused.draw_bits(rows, factors, no_offsets, same_for_all, place, key, out)
    return out.reshape(-1)


@SIZES
def test_draws_compare_the_references_numbers_with_the_sigmoid(size):
    """`test_kernels` compares these numbers, place by place, with Philox."""
    logits = torch.linspace(-6, 6, size)
    out = drawn(logits.numpy(), KEY)
    uniform = reference._uniform_numbers(size, *KEY, torch.device("cpu")).double()
    distance = torch.sigmoid(0.7 * logits.double()) - uniform
    # a draw may differ only where the number falls within float32's rounding of the probability
    assert ((torch.from_numpy(out) == (distance > 0)) | (distance.abs() < 1e-6)).all()


# few units, most of which are left over after the quarters, and many
@pytest.mark.parametrize("size", [*range(1, 9), 210])
@pytest.mark.parametrize("first", [0, 1_000])
@pytest.mark.parametrize("rows", ["one row", "rows of one"])
def test_draws_are_those_of_the_reference(size, first, rows):
    logits = 4 * torch.sin(torch.arange(float(size)))
    for key in range(4):
        keys = (0x2008 + key, 0x2015)
        width = size if rows == "one row" else 1
        out = drawn(logits.numpy(), keys, first, width=width)
        assert np.array_equal(out, reference.draw_bits(logits, 0.7, *keys, first * width))


@pytest.mark.parametrize("total", [5, 1_003, 2_048, 10_000])
def test_a_part_of_a_whole_is_drawn_as_within_the_whole(total):
    logits = torch.linspace(-6, 6, total).numpy()

    def part(start, stop):
        return drawn(logits[start:stop], KEY, 7, start, total)

    whole = part(0, total)
    assert np.array_equal(whole, reference.draw_bits(torch.from_numpy(logits), 0.7, *KEY, 7))
    assert 0 < whole.sum() < total
    for parts in (2, 3, 4, 5):
        cuts = [total * part // parts for part in range(parts + 1)]
        pieces = [part(start, stop) for start, stop in itertools.pairwise(cuts)]
        assert np.array_equal(np.concatenate(pieces), whole)


def test_frequencies_over_calls_are_the_probabilities():
    logits = torch.tensor([-200.0, -9.0, -3.0, -0.5, 0.0, 0.5, 3.0, 9.0, 200.0]).repeat(11)
    generator = seeded_generator(0)
    calls = 20_000
    counts = sum(draw_bits_of_logits(logits, generator, 0.9).double() for _ in range(calls))
    expected = torch.sigmoid(0.9 * logits.double())
    assert_rates(counts / calls, expected, calls, errors=4.5, slack=1e-6 / calls)
    # also the places of one call are independent of each other
    generator = seeded_generator(1)
    draws = draw_bits_of_logits(torch.zeros(1_000, 400), generator).double()
    assert torch.corrcoef(draws.T).fill_diagonal_(0).abs().max() < 6 / 1_000**0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bernoulli_draws_are_those_of_torch_rand(dtype):
    ours = seeded_generator(3)
    torchs = seeded_generator(3)
    probabilities = torch.rand(5_000, dtype=dtype, generator=seeded_generator(4))
    drawn = bernoulli(probabilities, ours)
    assert drawn.dtype == dtype
    uniform = torch.rand(5_000, dtype=dtype, generator=torchs)
    assert torch.equal(drawn, (uniform < probabilities).to(dtype))
    assert torch.equal(ours.get_state(), torchs.get_state())


@SIZES
def test_draws_of_learning_compare_them_with_the_probability(size):
    probabilities = torch.linspace(0, 1, size)
    out = np.zeros(size, dtype=np.float32)
    fused.draw_below(probabilities.numpy(), *map(np.uint32, KEY), out)
    uniform = reference._uniform_numbers(size, *KEY, torch.device("cpu"))
    assert torch.equal(torch.from_numpy(out), (uniform < probabilities).float())
    assert torch.equal(torch.from_numpy(out), reference.draw_below(probabilities, *KEY))


def test_draws_of_learning_are_of_the_probabilities_and_their_type():
    generator = seeded_generator(0)
    for dtype in (torch.float32, torch.float64):
        probabilities = torch.tensor([0.0, 0.1, 0.5, 0.9, 1.0], dtype=dtype).expand(40_000, 5)
        drawn = draw_units(probabilities, generator)
        assert drawn.dtype == dtype
        assert_rates(drawn.mean(0), probabilities[0], 40_000, errors=4.5)
    assert not torch.equal(draw_units(probabilities, generator), drawn)


def test_bernoulli_draws_of_no_unit_leave_the_generator_where_it_was():
    generator = seeded_generator(3)
    assert bernoulli(torch.empty(0, 5), generator).shape == (0, 5)
    assert torch.equal(
        torch.rand(9, generator=generator), torch.rand(9, generator=seeded_generator(3))
    )


def test_bernoulli_draws_have_no_gradient():
    probabilities = torch.full((3,), 0.5, requires_grad=True)
    assert not bernoulli(probabilities, seeded_generator(0)).requires_grad


def test_draws_do_not_depend_on_how_the_tensor_lies_in_memory():
    logits = torch.randn(30, 50, generator=seeded_generator(0))
    strided = torch.cat([logits, logits], 1)[:, :50]
    first = draw_bits_of_logits(logits, seeded_generator(5))
    second = draw_bits_of_logits(strided, seeded_generator(5))
    assert torch.equal(first, second)


@pytest.mark.parametrize("columns", [1, 20, 512, 1_300])
@pytest.mark.parametrize(
    ("beta_from", "beta_to"), [(0.0, 1.0), (0.3, 0.30001), (1.0, 0.9), (0.0, 1e-5), (0.5, 0.5)]
)
def test_softplus_increment(columns, beta_from, beta_to):
    x = 30 * torch.randn(7, columns, generator=seeded_generator(columns))
    x[0, 0] = 300.0
    result = softplus_increment(x, beta_from, beta_to)
    expected = softplus_increment(x.double(), beta_from, beta_to)
    assert result.dtype == torch.float64
    # relative to the sum of the terms' magnitudes, which float32 rounds by 1e-7, as the betas
    terms = abs(beta_to - beta_from) * x.double().abs().sum(1)
    assert ((result - expected).abs() <= 5e-7 * terms).all()


def test_softplus_increment_with_other_betas_for_each_row():
    lower = torch.tensor([0.0, 0.3, 0.9])
    step = torch.tensor([1.0, 0.01, 0.1])
    # more units than one product's logarithm takes, and inputs beyond the exponential's range
    for x in (torch.linspace(-20, 20, 3 * 70), torch.linspace(-300, 300, 3 * 600)):
        rows = x.view(3, -1)
        out = np.empty(3)
        fused.softplus_increment(rows.numpy(), lower.numpy(), step.numpy(), out)
        expected = reference.softplus_increment(rows.double(), lower[:, None], step[:, None])
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_sums_over_the_units_that_are_on_are_those_of_the_reference():
    states = torch.rand(3, 70, generator=seeded_generator(1)) < 0.4
    values = torch.linspace(-1, 2, 70)
    out = np.empty(3)
    fused.sum_where(states.numpy(), values.numpy(), out)
    np.testing.assert_allclose(out, reference.sum_where(states, values), rtol=0, atol=1e-9)


def test_scaled_sums_are_those_of_the_reference():
    sums = torch.arange(-100, 110, dtype=torch.int32).view(3, 70)
    factors = torch.tensor([0.1, 0.2, 0.3])
    for offset in (torch.linspace(-4, 4, 70).view(1, 70), torch.linspace(-4, 4, 210).view(3, 70)):
        out = np.empty((3, 70), np.float32)
        fused.scale_sums(sums.numpy(), factors.numpy(), offset.numpy(), out)
        expected = reference.scale_sums(sums, factors, offset)
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
