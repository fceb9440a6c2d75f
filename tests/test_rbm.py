"""The RBM against enumeration."""

import math

import numpy as np
import pytest
import torch
from enumeration import (
    all_states,
    assert_is_its_definition,
    assert_rates,
    frequencies,
    joint_log_table,
    log_z,
    random_rbm,
)
from writers import as_mat

from paperlib import memory, numerics
from paperlib.estimators import exact_hidden_samples, exact_log_z
from paperlib.models import RBM
from paperlib.models.rbm import in_double
from paperlib.numerics import seeded_generator


@pytest.mark.parametrize("width", [1, 2, 5])
def test_all_states_count_upwards(width):
    states = numerics.all_states(width)
    assert states.shape == (2**width, width)
    numbers = states.long() @ (2 ** torch.arange(width - 1, -1, -1))
    assert numbers.tolist() == list(range(2**width))


def test_softplus_and_its_slope_are_exact():
    x = torch.tensor([-800.0, -30.0, 0.0, 30.0, 800.0], dtype=torch.float64, requires_grad=True)
    value = numerics.softplus(x)
    small = math.log1p(math.exp(-30))
    expected = torch.tensor([0.0, small, math.log(2), 30 + small, 800.0], dtype=torch.float64)
    torch.testing.assert_close(value, expected, rtol=1e-15, atol=0)
    value.sum().backward()
    torch.testing.assert_close(x.grad, torch.sigmoid(x.detach()), rtol=1e-14, atol=0)


@pytest.mark.parametrize("shape", [(1, 1), (5, 4), (4, 6), (2, 7)])
def test_the_model_is_its_definition(shape):
    rbm = random_rbm(*shape, seed=3)
    assert_is_its_definition(rbm, *map(all_states, shape), joint_log_table(rbm))


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (1, 1)])
def test_a_large_model_is_in_double_without_a_copy_of_its_weights(shape, monkeypatch):
    monkeypatch.setattr(memory, "_MANY_NUMBERS", 0)
    monkeypatch.setattr(memory, "_NUMBERS_CONVERTED", 10)
    rbm = random_rbm(*shape, seed=6, dtype=torch.float32)
    copy = rbm.to(dtype=torch.float64)
    double = in_double(rbm)
    assert double.weights.data_ptr() == rbm.weights.data_ptr()
    visible, hidden = (all_states(units)[None] for units in shape)
    for name, states in (
        ("log_unnormalized", visible),
        ("hidden_probs", visible),
        ("log_unnormalized_hidden", hidden),
        ("log_unnormalized_flips", hidden),
        ("visible_probs", hidden),
    ):
        expected = getattr(copy, name)(states)
        torch.testing.assert_close(getattr(double, name)(states), expected, rtol=1e-14, atol=1e-14)


def test_transposed_model_is_the_same_joint_distribution(tiny_rbm):
    torch.testing.assert_close(joint_log_table(tiny_rbm.transposed()), joint_log_table(tiny_rbm).T)


def test_flipped_and_dead_hidden_units_move_ln_z_and_no_probability(tiny_rbm):
    """Unit 1 flipped, and a unit without weights added: the same p(v), as chapter 1 derives it."""
    weights = tiny_rbm.weights
    bias = tiny_rbm.hidden_bias
    sign = torch.tensor([1, -1, 1, 1])
    flipped = RBM(weights * sign, tiny_rbm.visible_bias + weights[:, 1], bias * sign)
    dead = RBM(
        torch.cat([weights, torch.zeros(5, 1)], 1),
        tiny_rbm.visible_bias,
        torch.cat([bias, torch.tensor([2.0])]),
    )
    before = log_z(tiny_rbm)
    states = all_states(5)
    for model, moved in ((flipped, -bias[1].item()), (dead, math.log1p(math.exp(2)))):
        assert exact_log_z(model) - before == pytest.approx(moved)
        change = model.log_unnormalized(states) - tiny_rbm.log_unnormalized(states)
        torch.testing.assert_close(change, torch.full_like(change, moved))


def test_gradient_of_the_likelihood_is_that_of_both_phases(tiny_rbm):
    names = ("weights", "visible_bias", "hidden_bias")
    free = [getattr(tiny_rbm, name).clone().requires_grad_() for name in names]
    model = RBM(*free)
    states = all_states(5)
    data = all_states(5)[[3, 17]]
    log_p = model.log_unnormalized(data).mean() - model.log_unnormalized(states).logsumexp(0)
    gradients = torch.autograd.grad(log_p, free)
    p_v = joint_log_table(tiny_rbm).logsumexp(1).softmax(0)
    seen = tiny_rbm.hidden_probs(data)
    on = tiny_rbm.hidden_probs(states)
    expected = (
        data.T @ seen / 2 - states.T @ (p_v[:, None] * on),
        data.mean(0) - p_v @ states,
        seen.mean(0) - p_v @ on,
    )
    for ours, theirs in zip(expected, gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_gibbs_step_frequencies_equal_the_transition_probabilities(tiny_rbm):
    count = 100_000
    start = all_states(5)[13].expand(count, -1)
    rates = frequencies(tiny_rbm.gibbs_step(start, seeded_generator(0)))
    table = joint_log_table(tiny_rbm)
    expected = table[13].softmax(0) @ table.softmax(0).T
    # 32 comparisons fail together in fewer than 1 of 4,000 suites of seeds
    assert_rates(rates, expected, count, errors=4.5)


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_files_give_the_same_model_back(tmp_path, suffix, dtype):
    rbm = random_rbm(6, 3, seed=5, dtype=dtype)
    rbm.save(tmp_path / f"model{suffix}")
    assert RBM.load(tmp_path / f"model{suffix}").checksum() == rbm.checksum()
    assert [path.name for path in tmp_path.iterdir()] == [f"model{suffix}"]


@pytest.mark.parametrize("orientation", ["row", "column"])
def test_matlab_bias_vectors_may_be_rows_or_columns(tmp_path, orientation):
    rbm = random_rbm(6, 3, seed=5)
    parameters = (tensor.numpy() for tensor in rbm.tensors().values())
    arrays = dict(zip(("vishid", "visbiases", "hidbiases"), parameters, strict=True))
    (tmp_path / "model.mat").write_bytes(as_mat(arrays, oned_as=orientation))
    assert RBM.load(tmp_path / "model.mat").checksum() == rbm.checksum()


def test_numpy_arrays_integers_and_lists_make_a_model():
    rbm = RBM(np.ones((2, 3), dtype=np.int64), [0, 1], np.zeros(3, dtype=np.float32))
    assert (rbm.num_visible, rbm.num_hidden, rbm.dtype) == (2, 3, torch.float64)


# 2^12 states at most by brute force; scales at which e^{W h} overflows float64 included
@pytest.mark.parametrize(
    ("num_visible", "num_hidden", "scale"),
    [(1, 1, 1), (2, 1, 1), (7, 5, 1), (5, 7, 1), (6, 6, 30), (4, 5, 400), (60, 2, 100), (61, 9, 1)],
)
def test_exact_log_z_equals_brute_force(num_visible, num_hidden, scale):
    rbm = random_rbm(num_visible, num_hidden, seed=6, scale=scale)
    if num_visible + num_hidden <= 14:
        expected = log_z(rbm)
    else:
        expected = torch.logsumexp(rbm.log_unnormalized_hidden(all_states(num_hidden)), 0).item()
    assert exact_log_z(rbm) == pytest.approx(expected, rel=1e-13, abs=1e-12)


def test_exact_log_z_crosses_block_borders():
    # 2^19 states: more than one block of rows and of columns
    rbm = random_rbm(30, 19, seed=8, scale=0.5)
    h = torch.arange(2**19)[:, None] >> torch.arange(19)
    expected = torch.cat(
        [rbm.log_unnormalized_hidden((part & 1).double()) for part in h.split(2**16)]
    ).logsumexp(0)
    assert exact_log_z(rbm) == pytest.approx(expected.item(), abs=1e-10)


def test_exact_samples_have_the_exact_distribution(tiny_rbm):
    count = 100_000
    v, h = exact_hidden_samples(tiny_rbm, count, seeded_generator(0))
    expected = joint_log_table(tiny_rbm).flatten().softmax(0)
    rates = frequencies(torch.cat([v, h], 1))
    chi_square = (count * (rates - expected).square() / expected).sum()
    # 511 degrees of freedom: mean 511, standard deviation 32; the bound is 4.5 of these away
    assert chi_square < 511 + 4.5 * 32
