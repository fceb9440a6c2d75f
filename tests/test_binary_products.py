"""Fast products of binary states: exact integers, and one rounding for both directions."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch
from enumeration import random_rbm

from paperlib.annealing import BaseRatePath
from paperlib.kernels import Memory, cpu, draw_bits, draw_bits_of_logits, products, reference
from paperlib.kernels.arguments import ProductArrays
from paperlib.kernels.capability import call_of_torch, multiplies_integers
from paperlib.kernels.products import binary_product
from paperlib.models import RBM
from paperlib.numerics import seeded_generator


@pytest.fixture(params=["torch's products", "rows alone"], autouse=True)
def ways(request, monkeypatch):
    """With torch's products of integers, where the processor has them, and without."""
    fast = request.param == "torch's products"
    if fast and not multiplies_integers():
        pytest.skip("this processor has no fast integer products")
    monkeypatch.setattr(products, "_FAST_INTEGERS", fast)


def matrix_and_states(rows, columns, dtype=torch.float32):
    generator = seeded_generator(rows)
    matrix = torch.randn(rows, columns, dtype=dtype, generator=generator)
    states = draw_bits(torch.full((50, rows), 0.3), generator)
    return matrix, states, torch.randn(columns, dtype=dtype, generator=generator)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (7, 3), (784, 500), (2000, 33)])
def test_products(rows, columns, dtype):
    matrix, states, offset = matrix_and_states(rows, columns, dtype)
    product = binary_product(matrix, matrix.abs().max())
    used = product.matrix.double()
    expected = offset.double() + 0.7 * (states.double() @ used)
    # float32 sums of up to 2,000 terms; the integers themselves are exact
    tolerance = 1e-12 if dtype == torch.float64 else 2e-4
    torch.testing.assert_close(
        product(states, 0.7, offset).double(), expected, rtol=0, atol=tolerance
    )


@pytest.mark.parametrize(("rows", "columns"), [(7, 3), (61, 130), (784, 500), (20, 784)])
def test_memory_of_the_last_product_changes_no_bit(rows, columns):
    matrix, states, offset = matrix_and_states(rows, columns)
    product = binary_product(matrix, matrix.abs().max())
    generator = seeded_generator(1)
    memory = Memory()
    # nothing changes; single units, of which most chains have none; a fraction that still counts as
    # few; almost all
    for share in (0, 0.0, 0.002, 0.1, 0.2, 0.9, 0.05, 1.0, 0.0):
        states = states ^ draw_bits(torch.full(states.shape, float(share)), generator)
        assert torch.equal(product(states, 0.7, offset, memory), product(states, 0.7, offset))
    _, remembered, sums, *_, most_changed = memory[product]
    if most_changed >= 0:
        # what is remembered belongs to the states that it is remembered with, whatever became of
        # them elsewhere
        assert np.array_equal(remembered, states)
        assert np.array_equal(sums, remembered.astype(np.int64) @ product.rows.astype(np.int64))
    # another number of chains begins anew
    assert torch.equal(product(states[:7], 0.7, offset, memory), product(states[:7], 0.7, offset))


@pytest.mark.parametrize("copy", [deepcopy, lambda memory: pickle.loads(pickle.dumps(memory))])
def test_a_copy_of_the_memory_begins_anew(copy):
    matrix, states, offset = matrix_and_states(61, 130)
    product = binary_product(matrix, matrix.abs().max())
    memory = Memory()
    expected = product(states, 0.7, offset, memory)
    copied = copy(memory)
    assert isinstance(copied, Memory)
    assert not copied
    for others in (~states, states):
        product(others, 0.7, offset, copied)
    assert torch.equal(product(states, 0.7, offset, copied), expected)
    assert torch.equal(product(states, 0.7, offset, memory), expected)


@pytest.mark.parametrize("most_changed", [-1, 0, 10**6], ids=["rows", "torch", "changed rows"])
def test_sums_are_brought_up_to_date_in_each_way(most_changed):
    """The compiled function alone, whether or not the processor has fast products of torch."""
    _, states, _ = matrix_and_states(40, 70)
    # no lower piece is so small that processors without these instructions would saturate
    upper = torch.arange(40 * 70) * 37 % 201 - 100
    lower = torch.arange(40 * 70) * 53 % 199 - 99
    matrix = (256 * upper + lower).float().view(40, 70)
    product = binary_product(matrix, torch.tensor(32_639.0))
    rows, last, sums, *_ = product.take_arrays(len(states), Memory())
    pieces = np.zeros((len(states), 140), np.int32)
    call = call_of_torch(pieces, last.view(np.int8), product.pieces)
    for now in (states, ~states, states.roll(1)):
        cpu.multiply(ProductArrays(rows, last, sums, pieces, call, most_changed), now.numpy())
        expected = reference.integer_sums(now, torch.from_numpy(rows))
        assert np.array_equal(sums, expected)


def test_the_sums_are_the_same_where_torch_has_no_such_function_or_it_fails(monkeypatch):
    matrix, states, offset = matrix_and_states(200, 130)
    product = binary_product(matrix, matrix.abs().max())
    expected = product(states, 0.7, offset)

    def other_shapes(out, states, matrix):
        return call_of_torch(out, states[:, 1:], matrix)

    for function in (lambda *arrays: (0, 0, 0, 0), other_shapes):
        monkeypatch.setattr(products, "call_of_torch", function)
        memory = Memory()
        for operand in (states, ~states, states):
            sums = product(operand, 0.7, offset, memory)
        assert torch.equal(sums, expected)


@pytest.mark.parametrize("columns", [1, 3, 4, 5, 20, 127, 128])
def test_sums_are_exact_in_the_largest_matrix(columns):
    # as many rows as may be, and terms that agree in sign: sums close to the limit of 32 bits, or
    # of 24 for each half
    matrix = torch.full((65_000, columns), 1.0)
    matrix[:, ::2] -= torch.rand(65_000, (columns + 1) // 2, generator=seeded_generator(1)) * 1e-3
    states = torch.ones(2, 65_000, dtype=torch.bool)
    states[1, ::3] = False
    product = binary_product(matrix, matrix.abs().max())
    arrays = product.take_arrays(len(states), Memory())
    cpu.multiply(arrays, states.numpy())
    sums = arrays.sums
    assert np.array_equal(sums, states.numpy().astype(np.int64) @ product.rows.astype(np.int64))


def test_rounding_is_small_and_the_same_in_both_directions():
    matrix, _, _ = matrix_and_states(784, 500)
    largest = matrix.abs().max()
    forward = binary_product(matrix, largest)
    backward = binary_product(matrix.T.contiguous(), largest)
    assert forward.rounded
    assert torch.equal(forward.matrix, backward.matrix.T)
    assert (forward.matrix - matrix).abs().max() <= 0.51 * largest / (127 * 256 + 127)
    # a part of the matrix is rounded like the whole
    part = binary_product(matrix[:, 100:200].contiguous(), largest)
    assert torch.equal(part.matrix, forward.matrix[:, 100:200])


def test_nothing_is_rounded_where_nothing_is_won():
    matrix = torch.randn(5, 4)
    assert not binary_product(matrix.double(), matrix.abs().max()).rounded
    assert not binary_product(torch.zeros(5, 4), torch.tensor(0.0)).rounded
    assert not binary_product(torch.zeros(5, 0), torch.tensor(1.0)).rounded
    # more terms than 32 bits can hold
    assert not binary_product(torch.ones(70_000, 1), torch.tensor(1.0)).rounded


@pytest.mark.parametrize(("visible", "hidden", "chains"), [(7, 3, 1), (784, 20, 100), (61, 127, 9)])
def test_a_compiled_step_is_the_step_bit_for_bit(visible, hidden, chains):
    rbm = random_rbm(visible, hidden, 6, scale=0.5, dtype=torch.float32)
    path = BaseRatePath(rbm, torch.linspace(-2, 1, visible))
    one = seeded_generator(4)
    two = seeded_generator(4)
    state = path.sample_start(chains, seeded_generator(5))
    for beta in (0.3, 0.31, 1):
        h = draw_bits_of_logits(state.hidden_input, two, beta)
        bias = path._visible_bias(beta)
        logits = path._sampler._to_visible[0](h, beta, bias)
        expected = path.state_at(draw_bits_of_logits(logits, two))
        state = path.transition(state, beta, one)
        assert torch.equal(state.v, expected.v)
        assert torch.equal(state.hidden_input, expected.hidden_input)
        assert torch.equal(state.bias_difference, expected.bias_difference)
    assert state.v.any()


def test_rounding_hardly_matters_at_sixteen_bits():
    rbm = random_rbm(300, 200, 5, scale=0.5, dtype=torch.float32)
    path = BaseRatePath(rbm)
    state = path.sample_start(200, seeded_generator(1))
    for beta in (0.5, 1.0):
        state = path.transition(state, beta, seeded_generator(2))
    correction = path.end_correction(state, 1)
    exact = rbm.to(dtype=torch.float64).log_unnormalized(path.units(state).double())
    rounded = RBM(path._sampler._to_hidden.matrix.double(), rbm.visible_bias, rbm.hidden_bias)
    expected = exact - rounded.log_unnormalized(path.units(state).double())
    torch.testing.assert_close(correction, expected, rtol=0, atol=2e-3)
    assert correction.abs().max() < 0.02
    assert not BaseRatePath(rbm.to(dtype=torch.float64)).end_correction(state, 1).any()
