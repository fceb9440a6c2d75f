"""Fast functions are compared with plain torch when they are first used, and make way for it where they do not agree."""

import sys
import warnings

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
from paperlib.kernels import MatlabUniform, Memory, capability, cpu, draw_units, reference
from paperlib.kernels.capability import _CHECKS, agrees, chosen, multiplies_integers
from paperlib.numerics import seeded_generator


@pytest.fixture(scope="module", autouse=True)
def _all_compiled():
    """A function would not compile while something else stands in for one that it calls."""
    for name in _CHECKS:
        agrees(name)


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """Nothing has been chosen or checked before, and nothing of a test's own checks is left behind."""
    monkeypatch.setattr(capability, "_compile_anew", lambda: None)
    monkeypatch.delenv("PAPERLIB_KERNELS", raising=False)
    caches = agrees, multiplies_integers
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


SIZES = pytest.mark.parametrize("hidden", [6, 140], ids=["narrow", "wide"])


def everything(hidden):
    """What every compiled function has a part in: runs along all paths that differ in the kernels, and draws of learning."""
    kinds, betas = ("base rates", "pair", "DBM"), uniform_betas(6)
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


@pytest.mark.parametrize("name", sorted(_CHECKS))
def test_every_compiled_function_agrees_here(name):
    """Otherwise the tests of the fast kernels would be tests of the reference."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert agrees(name)


def test_every_compiled_function_is_checked():
    compiled = {name for name, value in vars(cpu).items() if hasattr(value, "py_func")}
    inlined = {name for name in compiled if name.startswith("_") or name == "philox"}
    assert compiled - inlined == set(_CHECKS)


@SIZES
def test_results_are_those_of_the_reference(hidden, monkeypatch):
    fast = everything(hidden)
    monkeypatch.setenv("PAPERLIB_KERNELS", "reference")
    agrees.cache_clear()
    monkeypatch.setattr(paperlib.kernels, "cpu", None)  # nothing compiled is called
    assert_same(everything(hidden), fast)


def lies(*arguments):
    """Leaves its last argument or arguments, in which the result belongs, as if nothing had come out."""
    for each in arguments[-1] if isinstance(arguments[-1], tuple) else arguments[-1:]:
        each[...] = 0


def fails(*arguments):
    raise RuntimeError("no such instruction")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [(lies, "its results differ from those of plain torch"), (fails, "no such instruction")],
)
@pytest.mark.parametrize("name", sorted(_CHECKS))
def test_a_function_that_does_not_agree_is_told_once_and_not_used(name, wrong, reason, monkeypatch):
    expected = everything(6)
    agrees.cache_clear()
    monkeypatch.setattr(cpu, name, wrong)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert_same(everything(6), expected)
        everything(6)
    (warning,) = told
    assert warning.category is RuntimeWarning
    assert f"the compiled {name} is not used on this machine" in str(warning.message)
    assert reason in str(warning.message)


def test_a_check_that_one_number_fails_is_a_check_that_fails(monkeypatch):
    """The smallest disagreement that there can be: one draw of two hundred."""
    right = cpu.draw_bits

    def almost(*arguments):
        right(*arguments)
        arguments[-1][-1] ^= len(arguments[-1]) > 200  # only in one of its pairs

    monkeypatch.setattr(cpu, "draw_bits", almost)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert not agrees("draw_bits")
    assert len(told) == 1


def test_without_a_compiler_the_reference_computes(monkeypatch):
    expected = everything(6)
    agrees.cache_clear()
    monkeypatch.setitem(sys.modules, "paperlib.kernels.cpu", None)
    monkeypatch.delattr(paperlib.kernels, "cpu")
    with pytest.warns(RuntimeWarning) as told:
        assert_same(everything(6), expected)
    messages = [str(warning.message) for warning in told]
    assert len(set(messages)) == len(messages)
    assert all("ModuleNotFoundError" in message for message in messages)


@pytest.mark.parametrize("value", ["nonsense", "Fast", "1"])
def test_a_setting_that_is_none_is_refused(value, monkeypatch):
    monkeypatch.setenv("PAPERLIB_KERNELS", value)
    message = f"PAPERLIB_KERNELS: expected fast or reference, got '{value}'"
    with pytest.raises(InputError, match=message):
        agrees("draw_bits")
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
        assert not agrees("draw_bits")
        assert not multiplies_integers()


def test_a_product_of_integers_that_is_wrong_is_not_used(monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: True, raising=False)
    right = capability.call_of_torch
    monkeypatch.setattr(
        capability, "call_of_torch", lambda out, states, matrix: right(out, states, matrix // 2)
    )
    assert not multiplies_integers()


def test_a_product_of_integers_that_torch_does_not_have_is_not_used(monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: True, raising=False)
    monkeypatch.setattr(torch._C, "__file__", "a file without such a function")
    assert not multiplies_integers()


def test_a_product_of_integers_is_used_where_the_processor_has_it_and_it_is_right(monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: True, raising=False)
    assert multiplies_integers()
    # a later torch need not say what the processor can do
    multiplies_integers.cache_clear()
    monkeypatch.delattr(torch.cpu, "_is_vnni_supported")
    assert not multiplies_integers()


TAKES = {
    "float64": set(),
    "float32 reference": set(),
    "float32 fast, narrow": {"draw_visible", "scale_sums"},
    "float32 fast, narrow, no fast integers": {"draw_visible", "multiply"},
    "float32 fast, wide, rows added": {"draw_bits", "multiply"},
    "float32 fast, wide, summed anew": {"draw_bits", "multiply"},
    "pretended GPU": set(),
    "GPU": set(),
}
# What the products of a layer of six with one of four units do at most, see `paperlib.kernels.cpu.Product`.
MOST_CHANGED = {
    "float32 fast, narrow": -1,
    "float32 fast, narrow, no fast integers": -1,
    "float32 fast, wide, rows added": 120,
    "float32 fast, wide, summed anew": 0,
}


def test_the_backends_of_the_tests_take_the_code_that_they_are_named_after(backend, monkeypatch):
    # one of them is among the backends only where there is a GPU
    assert set(TAKES) == {backend.name for backend in BACKENDS} | {"GPU"}
    called = set()
    for name in _CHECKS:
        original = getattr(cpu, name)
        agrees(name)

        def spy(*arguments, original=original, name=name):
            called.add(name)
            return original(*arguments)

        monkeypatch.setattr(cpu, name, spy)
    path = BaseRatePath(backend.place(random_rbm(6, 4, 1))).to(backend.device)
    assert path._sampler._to_hidden.rounded == (backend.dtype == torch.float32)
    ais(path, uniform_betas(4), 20, backend.generator(1))
    assert called >= TAKES[backend.name]
    if not backend.name.startswith("float32 fast"):
        assert not called
    elif backend.name in MOST_CHANGED:
        assert path._sampler._to_hidden.kept(20, Memory())[-1] == MOST_CHANGED[backend.name]
        assert ("draw_visible" in called) == path._sampler._to_hidden.narrow


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 6, 7, 8, 101])
def test_uniform_numbers_of_the_reference_have_their_places(count):
    numbers = reference._uniform_numbers(count, 5, 6, torch.device("cpu"))
    assert numbers.dtype == torch.float32
    quarter = count // 4
    expected = [philox((i % max(quarter, 1), 0, 0, 0), 5, 6)[i // max(quarter, 1)] for i in range(4 * quarter)]  # fmt: skip
    expected += philox((quarter, 0, 0, 0), 5, 6)[: count - 4 * quarter]
    np.testing.assert_allclose(numbers, np.array(expected) / 2**32, rtol=0, atol=2**-24)
