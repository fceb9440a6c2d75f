"""Compiled functions are compared with plain torch before their first use.

They make way for it where they do not agree.
"""

import ctypes
import os
import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import pytest
import torch
from backends import BACKENDS
from enumeration import random_rbm
from philox import philox
from walks import path_of

import paperlib.kernels
from paperlib.annealing import BaseRatePath, uniform_betas
from paperlib.errors import InputError
from paperlib.estimators import ais, parallel_tempering, raise_log_prob
from paperlib.kernels import (
    MatlabUniform,
    Memory,
    capability,
    comparison,
    cpu,
    draw_units,
    products,
    reference,
)
from paperlib.kernels.capability import chosen
from paperlib.numerics import seeded_generator

#: What the compiled functions do, one by one.
COMPILED = [
    "anneal",
    "draw_below",
    "draw_bits",
    "matlab_uniform",
    "multiply",
    "scale_sums",
    "softplus_increment",
    "sum_where",
    "temper",
]


@pytest.fixture(autouse=True)
def _uncompared(monkeypatch):
    """Nothing was chosen or compared before, and nothing of a test's comparison stays behind."""
    monkeypatch.setattr(capability, "_compile_anew", lambda: None)
    monkeypatch.delenv("PAPERLIB_KERNELS", raising=False)
    forget(monkeypatch)


def forget(monkeypatch):
    """What the comparison and the products have found out."""
    for name in ("agrees", "multiplies_integers"):
        function = getattr(capability, name)
        monkeypatch.setattr(capability, name, cache(function.__wrapped__))


SIZES = pytest.mark.parametrize("hidden", [6, 140], ids=["narrow", "wide"])


def everything(hidden):
    """Runs in which every compiled function has a part.

    Along all paths that differ in the kernels, and draws of learning.
    """
    kinds = ("base rates", "pair", "DBM")
    betas = uniform_betas(6)
    paths = [path_of(kind, 150, hidden, torch.float32, scale=0.3) for kind in kinds]
    forward = [ais(path, betas, 9, seeded_generator(3)) for path in paths]
    back = raise_log_prob(paths[-1], forward[0].final_states, betas, 2, seeded_generator(4))
    # given temperatures, since those that pilots choose hang on the last digits of sums
    tempered = parallel_tempering(
        paths[0], 1_000, seeded_generator(6), betas=[0, 0.4, 1], num_replicas=4, check=False
    )
    units = [estimate.final_states for estimate in forward]
    units.append(tempered.samples)
    units.append(draw_units(torch.linspace(0, 1, 50), seeded_generator(5)))
    units.append(torch.from_numpy(MatlabUniform(0).draw(50)))
    weights = [e.log_weights for e in forward] + [back.log_weights.flatten()]
    return torch.cat([*weights, tempered.log_z_at_betas]), units


def assert_same(ours, theirs):
    """The same draws; log-weights up to the rounding of float32 sums."""
    torch.testing.assert_close(ours[0], theirs[0], rtol=0, atol=1e-3)
    for one, other in zip(ours[1], theirs[1], strict=True):
        assert torch.equal(one, other)


def test_the_compiled_functions_agree_here():
    """Otherwise the tests of the fast kernels would be tests of the reference."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert capability.agrees()


def test_every_compiled_function_has_a_part_in_the_comparison(monkeypatch):
    compiled = {name for name, value in vars(cpu).items() if hasattr(value, "py_func")}
    inlined = {name for name in compiled if name.startswith("_") or name == "philox"}
    assert sorted(compiled - inlined) == COMPILED
    called = spied(monkeypatch)
    assert capability.agrees()
    assert sorted(called) == COMPILED


def spied(monkeypatch):
    """The names of the compiled functions that are called from now on."""
    called = set()
    for name in COMPILED:
        original = getattr(cpu, name)

        def spy(*arguments, original=original, name=name):
            called.add(name)
            return original(*arguments)

        monkeypatch.setattr(cpu, name, spy)
    return called


@pytest.mark.parametrize("seed", range(5))
def test_no_draw_of_the_comparison_hangs_on_the_last_digits(seed, monkeypatch):
    """Or a processor that rounds differently would be told that its functions are wrong."""
    expected = capability._walk("reference")
    generator = seeded_generator(seed)
    for name in ("_weights", "_biases"):
        original = getattr(comparison, name)

        def moved(*sizes, original=original):
            parameters = original(*sizes)
            return parameters + 1e-6 * (2 * torch.rand(parameters.shape, generator=generator) - 1)

        monkeypatch.setattr(comparison, name, moved)
    for one, other in zip(capability._walk("reference"), expected, strict=True):
        # a draw that falls otherwise moves a sum by far more
        torch.testing.assert_close(one, other, rtol=0, atol=2e-3)


def test_some_swaps_of_the_comparison_are_accepted_and_some_are_not():
    for ends in (result for result in capability._walk("reference") if result.shape[-1] == 2):
        temperatures_left = ends[:, :, 1] % 3 != 2
        assert 0 < temperatures_left.double().mean() < 1


@SIZES
def test_results_are_those_of_the_reference(hidden, monkeypatch):
    fast = everything(hidden)
    monkeypatch.setenv("PAPERLIB_KERNELS", "reference")
    forget(monkeypatch)
    monkeypatch.setattr(paperlib.kernels, "cpu", None)  # nothing compiled is called
    assert_same(everything(hidden), fast)


def lies(*arguments):
    """Leaves its last arguments, which take the result, as if nothing had come out."""
    for each in arguments[-1] if isinstance(arguments[-1], tuple) else arguments[-1:]:
        each[...] = 0


def fails(*arguments):
    raise RuntimeError("no such instruction")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [(lies, "their results differ from those of plain torch"), (fails, "no such instruction")],
)
@pytest.mark.parametrize("name", COMPILED)
def test_a_function_that_does_not_agree_is_told_once_and_none_is_used(
    name, wrong, reason, monkeypatch
):
    expected = everything(6)
    forget(monkeypatch)
    monkeypatch.setattr(cpu, name, wrong)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert_same(everything(6), expected)
        everything(6)
    (warning,) = caught
    assert warning.category is RuntimeWarning
    assert "the compiled functions are not used on this machine" in str(warning.message)
    assert reason in str(warning.message)


def test_a_single_draw_is_a_difference(monkeypatch):
    right = cpu.draw_bits
    calls = []

    def almost(*arguments):
        right(*arguments)
        calls.append(arguments)
        if len(calls) % 8 == 2:  # the first visible units
            arguments[-1][-1, -1] ^= True

    monkeypatch.setattr(cpu, "draw_bits", almost)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert not capability.agrees()
    assert len(caught) == 1
    assert len(calls) == 16  # of two walks, before and after all is compiled anew


def test_without_a_compiler_the_reference_computes(monkeypatch):
    expected = everything(6)
    forget(monkeypatch)
    monkeypatch.setattr(capability, "_module", capability._module.__wrapped__)
    monkeypatch.setitem(sys.modules, "paperlib.kernels.cpu", None)
    monkeypatch.delattr(paperlib.kernels, "cpu")
    with pytest.warns(RuntimeWarning, match="ModuleNotFoundError") as caught:
        assert_same(everything(6), expected)
    assert len(caught) == 1


@pytest.mark.parametrize("value", ["nonsense", "Fast", "1"])
def test_a_setting_that_is_none_is_refused(value, monkeypatch):
    monkeypatch.setenv("PAPERLIB_KERNELS", value)
    message = f"PAPERLIB_KERNELS: expected fast or reference, got '{value}'"
    with pytest.raises(InputError, match=message):
        capability.agrees()
    with pytest.raises(InputError, match=message):
        everything(6)


def test_no_setting_and_an_empty_one_are_fast(monkeypatch):
    for value in ("", "fast"):
        monkeypatch.setenv("PAPERLIB_KERNELS", value)
        assert chosen() == "fast"
    monkeypatch.delenv("PAPERLIB_KERNELS")
    assert chosen() == "fast"


def test_the_reference_is_no_reason_for_a_warning(monkeypatch):
    monkeypatch.setenv("PAPERLIB_KERNELS", "reference")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not capability.agrees()
        assert not capability.multiplies_integers()


@pytest.fixture
def _vnni(monkeypatch):
    """A processor that says it has instructions for products of eight-bit integers."""
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: True, raising=False)


def in_place_of_torch(product, monkeypatch):
    """Let a function of numpy arrays make the products of eight-bit integers.

    It is called by its address.
    """
    callbacks = []

    def call(out, states, matrix):
        def multiply(*_):
            out[...] = product(states.astype(int), matrix.astype(int))
            return 0

        function = ctypes.CFUNCTYPE(ctypes.c_int32, *3 * [ctypes.c_void_p])(multiply)
        callbacks.append(function)
        return ctypes.cast(function, ctypes.c_void_p).value, 0, 0, 0

    monkeypatch.setattr(capability, "call_of_torch", call)
    monkeypatch.setattr(products, "call_of_torch", call)


def halved(states, matrix):
    return states @ (matrix // 2)


def saturating(states, matrix):
    """As by processors without instructions for such products.

    States from 128 on are without sign, and pairs of terms are in 16 bits.
    """
    terms = (states + 128)[:, :, None] * matrix
    pairs = terms[:, ::2] + terms[:, 1::2]
    return pairs.clip(-(2**15), 2**15 - 1).sum(1) - 128 * matrix.sum(0)


@pytest.mark.usefixtures("_vnni")
@pytest.mark.parametrize("wrong", [halved, saturating])
def test_a_product_of_integers_that_is_wrong_is_not_used(wrong, monkeypatch):
    in_place_of_torch(wrong, monkeypatch)
    assert not capability.multiplies_integers()
    # if it were used, the walk would differ
    monkeypatch.setattr(products, "_FAST_INTEGERS", True)
    with pytest.warns(RuntimeWarning, match="their results differ"):
        assert not capability.agrees()


@pytest.mark.usefixtures("_vnni")
def test_a_product_of_integers_that_torch_does_not_have_is_not_used(monkeypatch):
    monkeypatch.setattr(torch._C, "__file__", "a file without such a function")
    assert not capability.multiplies_integers()


@pytest.mark.usefixtures("_vnni")
def test_a_product_of_integers_is_used_where_the_processor_has_it_and_it_is_right(monkeypatch):
    in_place_of_torch(np.matmul, monkeypatch)
    assert capability.multiplies_integers()
    monkeypatch.setattr(products, "_FAST_INTEGERS", True)
    assert capability.agrees()
    # a later torch need not say what the processor can do
    forget(monkeypatch)
    monkeypatch.delattr(torch.cpu, "_is_vnni_supported")
    assert not capability.multiplies_integers()


@pytest.mark.parametrize("instructions", ["AVX2", "AVX512_CORE"])
def test_sums_are_exact_where_onednn_may_not_use_the_instructions_for_them(instructions):
    """As on clusters that want equal results everywhere.

    Neighbours of -128 are then too much for 16 bits.
    """
    code = """if True:
        import torch
        from paperlib.kernels.capability import compiled
        from paperlib.kernels.products import Memory, binary_product
        # in 16 bits, 256 * -100 - 128 for all weights but one column of the largest one
        matrix = torch.full((784, 300), -25_728 / 32_639)
        matrix[:, 0] = 1.0
        states = torch.rand(200, 784, generator=torch.Generator().manual_seed(0)) < 0.5
        product = binary_product(matrix, matrix.max())
        arrays = product.take_arrays(len(states), Memory())
        compiled("multiply")(arrays, states.numpy())
        sums = torch.from_numpy(arrays.sums)
        print(torch.equal(sums.long(), states.long() @ torch.from_numpy(product.rows).long()))
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"ONEDNN_MAX_CPU_ISA": instructions},
    )
    assert done.stdout == "True\n"


TAKES = {
    "float64": set(),
    "float32 reference": set(),
    "float32 fast, narrow": {"anneal", "scale_sums"},
    "float32 fast, narrow, no fast integers": {"anneal", "multiply"},
    "float32 fast, wide, rows added": {"anneal", "multiply"},
    "float32 fast, wide, summed anew": {"anneal", "multiply"},
    "pretended GPU": set(),
    "GPU": set(),
}
# What the products of a layer of six with one of four units do at most, see
# `paperlib.kernels.arguments.ProductArrays`.
MOST_CHANGED = {
    "float32 fast, narrow": -1,
    "float32 fast, narrow, no fast integers": -1,
    "float32 fast, wide, rows added": 120,
    "float32 fast, wide, summed anew": 0,
}


def test_the_backends_of_the_tests_take_the_code_that_they_are_named_after(backend, monkeypatch):
    # one of them is among the backends only where there is a GPU
    assert set(TAKES) == {backend.name for backend in BACKENDS} | {"GPU"}
    if backend.name != "float32 reference":
        monkeypatch.setattr(capability, "agrees", lambda: True)
    called = spied(monkeypatch)
    path = BaseRatePath(backend.place(random_rbm(6, 4, 1))).to(backend.device)
    assert path._sampler._to_hidden.rounded == (backend.dtype == torch.float32)
    ais(path, uniform_betas(4), 20, backend.generator(1))
    assert called >= TAKES[backend.name]
    if not backend.name.startswith("float32 fast"):
        assert not called
    elif backend.name in MOST_CHANGED:
        assert (
            path._sampler._to_hidden.take_arrays(20, Memory()).most_changed
            == MOST_CHANGED[backend.name]
        )


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 6, 7, 8, 101])
def test_uniform_numbers_of_the_reference_have_their_places(count):
    numbers = reference._uniform_numbers(count, 5, 6, torch.device("cpu"))
    assert numbers.dtype == torch.float32
    quarter = count // 4
    expected = [
        philox((i % max(quarter, 1), 0, 0, 0), 5, 6)[i // max(quarter, 1)]
        for i in range(4 * quarter)
    ]
    expected += philox((quarter, 0, 0, 0), 5, 6)[: count - 4 * quarter]
    np.testing.assert_allclose(numbers, np.array(expected) / 2**32, rtol=0, atol=2**-24)
