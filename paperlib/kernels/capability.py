"""Which kernels can be trusted on this machine: each compiled function is compared with the reference when it is first used.

A mismatch, or a compiler that is missing or fails, leads to one warning, and plain torch takes that function's place. Results stay
the same except for the rounding of float32 sums; they only take longer. `PAPERLIB_KERNELS=reference` selects plain torch from the
start.
"""

from __future__ import annotations

import ctypes
import os
import warnings
import weakref
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import torch

from paperlib.errors import InputError
from paperlib.kernels import reference
from paperlib.kernels.tempering import Ladder
from paperlib.surroundings import undisturbed

VARIABLE = "PAPERLIB_KERNELS"
FAST, REFERENCE = "fast", "reference"

# Any key will do; it is fixed so that a check gives the same answer in every process.
_KEY = (0x2008, 0x2015)
_ROWS, _COLUMNS = 3, 70
# What a compiled function gives, and what it should give.
_Pairs: TypeAlias = Iterator[tuple[np.ndarray, Any]]


def chosen() -> str:
    """The kernels that the environment variable `PAPERLIB_KERNELS` selects: `fast`, the default, or `reference`."""
    value = os.environ.get(VARIABLE) or FAST
    if value not in (FAST, REFERENCE):
        raise InputError(f"{VARIABLE}: expected {FAST} or {REFERENCE}, got {value!r}")
    return value


def compiled(name: str) -> Callable[..., Any] | None:
    """The compiled function of this name, or None where plain torch takes its place."""
    return getattr(_module(), name) if agrees(name) else None


@cache
def _module() -> ModuleType:
    from paperlib.kernels import cpu

    return cpu


@cache
def _compile_anew() -> None:
    """Replace what numba has stored, at most once: files of which an interrupted write left a part would fail in every later run."""
    for function in vars(_module()).values():
        if hasattr(function, "recompile"):
            function.recompile()


@cache
@undisturbed
def agrees(name: str) -> bool:
    """Whether the compiled function of this name in `paperlib.kernels.cpu` agrees with the reference, and so may be used."""
    if chosen() == REFERENCE:
        return False
    check, rtol, atol = _CHECKS[name]
    reason = ""
    for prepare in (_module, _compile_anew):
        try:
            prepare()
            from paperlib.kernels import cpu

            if all(np.allclose(*pair, rtol, atol) for pair in check(cpu)):
                return True
            reason = "its results differ from those of plain torch"
        except Exception as error:  # a compiler may raise any exception
            reason = f"{type(error).__name__}: {error}"
    warnings.warn(
        f"paperlib.kernels: the compiled {name} is not used on this machine ({reason}); plain torch takes its place and is slower",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


@cache
@undisturbed
def multiplies_integers() -> bool:
    """Whether products of eight-bit integers are correct here, and fast because the processor has instructions for them (VNNI)."""
    if chosen() == REFERENCE or not _says("_is_vnni_supported"):
        return False
    # so many rows that their sums need more than 16 bits
    states = (np.arange(40 * 700) % 3 == 0).astype(np.int8).reshape(40, 700)
    matrix = (np.arange(700 * 70) * 37 % 256 - 128).astype(np.int8).reshape(70, 700).T
    sums = np.zeros((40, 70), np.int32)
    function, *tensors = call_of_torch(sums, states, matrix)
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, *3 * [ctypes.c_void_p])
    done = function != 0 and kind(function)(*tensors) == 0
    return done and bool((sums == states.astype(int) @ matrix).all())


def call_of_torch(out: np.ndarray, states: np.ndarray, matrix: np.ndarray) -> tuple[int, ...]:
    """How compiled functions compute int32 `out = states @ matrix` for int8 factors.

    These are the addresses of a function of torch's C interface, which torch keeps the same for models that it has compiled, and of three
    tensors with the memory of the arrays; zeros where there is no such function. They hold for as long as `out` is there.
    """
    try:
        library = _library(torch._C.__file__)
        function = ctypes.cast(library.aoti_torch_cpu__int_mm_out, ctypes.c_void_p)
        tensors = [_tensor(library, array) for array in (out, states, matrix)]
    except (AttributeError, OSError):
        return 0, 0, 0, 0

    def release(*_: np.ndarray) -> None:
        for tensor in tensors:
            library.aoti_torch_delete_tensor_object(tensor)

    weakref.finalize(out, release, states, matrix).atexit = False
    return tuple(each.value or 0 for each in (function, *tensors))


# once, since each block of chains asks for it
_library = cache(ctypes.CDLL)


def _tensor(library: ctypes.CDLL, matrix: np.ndarray) -> ctypes.c_void_p:
    """A tensor with the memory of a matrix."""
    tensor, pair = ctypes.c_void_p(), ctypes.c_int64 * 2
    strides = pair(*(stride // matrix.itemsize for stride in matrix.strides))
    failed = library.aoti_torch_create_tensor_from_blob(
        ctypes.c_void_p(matrix.ctypes.data), ctypes.c_int64(2), pair(*matrix.shape), strides,
        ctypes.c_int64(0), getattr(library, f"aoti_torch_dtype_{matrix.dtype}")(),
        library.aoti_torch_device_type_cpu(), 0, ctypes.byref(tensor),
    )  # fmt: skip
    if failed:
        raise OSError("torch has made no tensor of a matrix")
    return tensor


def multiplies_tiles() -> bool:
    """Whether the processor has instructions for whole tiles of a matrix (AMX)."""
    return _says("_is_amx_tile_supported")


def _says(name: str) -> bool:
    return bool(getattr(torch.cpu, name, lambda: False)())


def _logits() -> torch.Tensor:
    return torch.linspace(-4, 4, _ROWS * _COLUMNS).view(_ROWS, _COLUMNS)


def _states() -> torch.Tensor:
    return reference.draw_bits(_logits(), 1.0, *_KEY)


def _columns(count: int = 5) -> np.ndarray:
    """16-bit integers, [count, columns]."""
    numbers = (np.arange(count * _COLUMNS) * 12_347) % 64_000 - 32_000
    return numbers.astype(np.int16).reshape(count, -1)


def _sums() -> torch.Tensor:
    return torch.arange(-100, 110, dtype=torch.int32).view(_ROWS, _COLUMNS)


def _draws() -> Iterator[tuple[torch.Tensor, tuple[int, int]]]:
    """Logits of few units, most of which are left over after the quarters, and of many units, each with several keys."""
    for count in (*range(1, 9), _ROWS * _COLUMNS):
        for key in range(4):
            yield 4 * torch.sin(torch.arange(count, dtype=torch.float32)), (_KEY[0] + key, _KEY[1])


def _draw_bits(cpu: Any) -> _Pairs:
    for first in (0, 1_000):
        for logits, key in _draws():
            out = np.empty(len(logits), bool)
            keys = map(np.uint32, (*key, first))
            cpu.draw_bits(logits.numpy(), np.float32(0.7), *keys, 0, len(out), out)
            yield out, reference.draw_bits(logits, 0.7, *key, first)
    # parts of a whole of which each quarter takes more than one round of counters
    for start, count in ((0, 5_000), (1_237, 900), (4_990, 10), (2_048, 1)):
        logits, out = 4 * torch.sin(torch.arange(float(count))), np.empty(count, bool)
        cpu.draw_bits(logits.numpy(), np.float32(0.7), *map(np.uint32, (*_KEY, 9)), start, 5_000, out)  # fmt: skip
        yield out, reference.draw_bits(logits, 0.7, *_KEY, 9, start, 5_000)


def _draw_below(cpu: Any) -> _Pairs:
    for logits, key in _draws():
        given, out = torch.sigmoid(logits), np.empty(len(logits), np.float32)
        cpu.draw_below(given.numpy(), *map(np.uint32, key), out)
        yield out, reference.draw_below(given, *key)


def _softplus_increment(cpu: Any) -> _Pairs:
    lower, step = torch.tensor([0.0, 0.3, 0.9]), torch.tensor([1.0, 0.01, 0.1])
    # more units than go into the logarithm of one product, and inputs beyond the range of the exponential
    for x in (5 * _logits(), torch.linspace(-300, 300, _ROWS * 600).view(_ROWS, 600)):
        out = np.empty(_ROWS)
        cpu.softplus_increment(x.numpy(), lower.numpy(), step.numpy(), out)
        yield out, reference.softplus_increment(x.double(), lower[:, None], step[:, None])


def _sum_where(cpu: Any) -> _Pairs:
    states, values, out = _states(), torch.linspace(-1, 2, _COLUMNS), np.empty(_ROWS)
    cpu.sum_where(states.numpy(), values.numpy(), out)
    yield out, reference.sum_where(states, values)


def _product(matrix: np.ndarray) -> tuple[Any, ...]:
    """See `paperlib.kernels.cpu.Product`, with what torch needs, although so small a matrix needs no product of torch."""
    from paperlib.kernels.products import IntegerProduct, Memory

    product = IntegerProduct(torch.from_numpy(matrix).float(), 1.0)
    rows, states, sums, *_, most_changed = product.kept(_ROWS, Memory())
    pieces = np.zeros((_ROWS, 2 * sums.shape[1]), np.int32)
    call = call_of_torch(pieces, states.view(np.int8), product.pieces)
    return rows, states, sums, pieces, call, most_changed


def _multiply(cpu: Any) -> _Pairs:
    matrix = _columns(30).T.copy()
    given = _product(matrix)
    for most_changed in (-1, 0, _ROWS * _COLUMNS):
        for states in (_states(), ~_states(), _states().roll(1)):
            expected = reference.integer_sums(states, torch.from_numpy(matrix))
            cpu.multiply((*given[:-1], most_changed), states.numpy())
            yield given[2], expected


def _scale_sums(cpu: Any) -> _Pairs:
    sums, factor = _sums(), torch.tensor([0.1, 0.2, 0.3])
    for offset in (_logits()[:1], _logits()):
        out = np.empty((_ROWS, _COLUMNS), np.float32)
        cpu.scale_sums(sums.numpy(), factor.numpy(), offset.numpy(), out)
        yield out, reference.scale_sums(sums, factor, offset)


def _ladder() -> Ladder:
    """Three temperatures, whose chains have swapped before, of the second of three replicas."""
    ladder = Ladder(torch.tensor([0.0, 0.3, 1.0]), 1, torch.device("cpu"))
    ladder.chain_at = ladder.chain_at.roll(1, 1)
    ladder.stand(1, 3)
    return ladder


def _drawn(logits: torch.Tensor) -> torch.Tensor:
    """The draws of its chains."""
    return reference.draw_bits(logits, 1.0, *_KEY, 0, logits.numel(), 3 * logits.numel())


def _model() -> tuple[Any, ...]:
    """See `paperlib.kernels.cpu.Model`; enough hidden units for rows to be added eight at a time."""
    columns, (hidden_bias, bias_difference, _) = _columns(30), _logits().numpy()
    biases = hidden_bias[:30].copy(), _logits().numpy(), bias_difference
    return _product(columns.T.copy()), _product(columns), 1e-4, *biases


def _gibbs(ladder: Ladder, inputs: torch.Tensor) -> torch.Tensor:
    """What `draw_visible` should give."""
    _, (columns, *_), scale, _, biases, _ = _model()
    betas, offset = ladder.pairs(0)[0], torch.from_numpy(biases)[ladder.temperature_of()]
    h = _drawn(betas.float()[:, None] * inputs)
    sums = reference.integer_sums(h, torch.from_numpy(columns))
    return _drawn(reference.scale_sums(sums, (scale * betas).float(), offset))


def _draw_visible(cpu: Any) -> _Pairs:
    inputs, v = _logits()[:, :30].contiguous(), np.empty((_ROWS, _COLUMNS), bool)
    given = inputs.numpy(), _model(), _ladder().numbers(), np.array(2 * _KEY, np.uint32)
    cpu.draw_visible(*given, v)
    yield v, _gibbs(_ladder(), inputs)


def _exchanged(ladder: Ladder, v: torch.Tensor, uniform: torch.Tensor) -> tuple[Any, ...]:
    """What a step to `v` should leave, with the swaps of the ladder's chains."""
    (rows, *_), _, scale, hidden_bias, _, bias_difference = _model()
    sums = reference.integer_sums(v, torch.from_numpy(rows))
    factors = torch.full((_ROWS,), scale)
    inputs = reference.scale_sums(sums, factors, torch.from_numpy(hidden_bias))
    bias_sums, halves = reference.sum_where(v, torch.from_numpy(bias_difference)), []
    for parity in (0, 1):
        betas, partners = ladder.pairs(parity)
        lower, change = torch.minimum(betas, partners)[:, None], partners - betas
        part = reference.softplus_increment(inputs.double(), lower, change.abs()[:, None])
        halves.append((part * change.sign() + bias_sums * change)[ladder.chain_at])
        reference.swap(halves[-1], uniform[1 + 3 * parity].view(1, 1), parity, ladder.chain_at)
    return inputs, bias_sums, torch.stack(halves), ladder.ends()


def _temper(cpu: Any) -> _Pairs:
    ours, theirs, (one, two) = _ladder(), _ladder(), map(torch.Generator, 2 * ["cpu"])
    for keys, uniform in zip(*ours.draws(one, 2), strict=True):
        yield keys.view(np.int64), torch.randint(2**63 - 1, (2,), generator=two)
        yield uniform, torch.rand(6, dtype=torch.float64, generator=two)
    # one pair swaps in any case, the other only if it always does
    uniform = torch.tensor([[2.0, 0, 2, 2, 1, 2], [2, 1, 2, 2, 0, 2]], dtype=torch.float64)
    inputs, v = _logits()[:, :30], np.empty((_ROWS, _COLUMNS), bool)
    ratios, ends = np.empty((2, 2, 1, _ROWS)), np.empty((2, 1, 2), np.int64)
    state = v, np.array(inputs.numpy(), order="C"), np.empty(_ROWS)
    keys = np.array(2 * [2 * _KEY], np.uint32)
    cpu.temper(_model(), ours.numbers(), keys, uniform.numpy(), state, (ratios, ends))
    drawn, bias_sums = torch.from_numpy(v), torch.empty(0)
    for t in range(2):
        drawn = _gibbs(theirs, inputs)
        inputs, bias_sums, *left = _exchanged(theirs, drawn, uniform[t])
        yield from zip((ratios[t], ends[t]), left, strict=True)
    yield from zip(state, (drawn, inputs, bias_sums), strict=True)


def _matlab_uniform(cpu: Any) -> _Pairs:
    results = []
    for fill in (cpu.matlab_uniform, reference.matlab_uniform):
        registers = np.append((np.arange(32) * 0.37) % 1, 0.0)
        state = registers, np.array([3, 2**31], np.int64)
        numbers = np.empty(200), np.empty(200, np.int64)
        fill(*state, *numbers)
        results.append((*state, *numbers))
    yield from zip(*results, strict=True)


# For each compiled function, what it gives and what it should give, and how far these may differ, relatively and absolutely.
_CHECKS: dict[str, tuple[Callable[[Any], _Pairs], float, float]] = {
    "draw_bits": (_draw_bits, 0, 0),
    "draw_below": (_draw_below, 0, 0),
    "softplus_increment": (_softplus_increment, 1e-5, 1e-5),
    "sum_where": (_sum_where, 0, 1e-9),
    "multiply": (_multiply, 0, 0),
    "scale_sums": (_scale_sums, 1e-5, 1e-5),
    "draw_visible": (_draw_visible, 0, 0),
    "temper": (_temper, 1e-5, 1e-5),
    "matlab_uniform": (_matlab_uniform, 0, 0),
}
