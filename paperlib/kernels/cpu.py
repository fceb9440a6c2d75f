"""What annealing and training do to every unit at every step, compiled for float32 on a CPU.

`paperlib.kernels.reference` defines what these functions compute, and numba compiles them. Each
goes through memory once, where torch goes through it once for every sign in a formula. With torch
the elementwise work would cost more than the fast integer products (`paperlib.kernels.products`).

Random numbers are Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011): a function of a key and of an
element's place. No state passes from one element to the next, so the loop runs in vector
instructions. The key of every call comes from the caller's generator.

Nothing here checks an argument: a wrong shape means a wrong address in memory. The callers in this
folder check shapes first.
"""

# numba's types are called and subscripted in ways that no type checker understands.
# pyright: reportCallIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import float32, int32, int64, njit, uint32, uint64
from numba.extending import intrinsic

from paperlib.kernels import reference
from paperlib.kernels.arguments import (
    ChainArrays,
    LadderArrays,
    ModelArrays,
    PlaceOfChains,
    ProductArrays,
)


def _compiler(**options: Any) -> Any:
    """numba's decorator, which stores what it compiles where there is a folder for it."""

    def compile_function(function: Any) -> Any:
        try:
            return njit(function, nogil=True, cache=True, **options)
        except RuntimeError:
            return njit(function, nogil=True, **options)

    return compile_function


# Division by zero is as in numpy, since a check for it would keep the loops from being vectorised.
_compile = _compiler(fastmath=True, error_model="numpy")
# For functions in which every bit counts.
_compile_exactly = _compiler()
# For functions in which only sums of a product may differ: the processor may round them once, as in
# torch.
_compile_contracted = _compiler(fastmath={"contract"}, error_model="numpy")
_inline: Any = njit(fastmath=True, error_model="numpy", inline="always")
_intrinsic: Any = intrinsic

# The random numbers of so many counters stay in the fastest memory.
_COUNTERS_AT_A_TIME = 512
# The product of this many factors of at least one half stays within the range of float64.
_FACTORS_PER_LOGARITHM = 512


@_intrinsic
def _call(typing_context, function, out, states, matrix):
    """Call a function at an address with three addresses; it returns 0 unless it fails."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.IntType(32), 3 * [ir.IntType(64)])
        address = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(address, arguments[1:])

    return int32(int64, int64, int64, int64), generate


@_inline
def philox(counter: np.uint32, key_low: np.uint32, key_high: np.uint32):
    """Philox4x32-10 of the counter (counter, 0, 0, 0): four independent uniform 32-bit integers."""
    # 64-bit numbers, of which only the lower halves count: nothing has to be widened before a
    # product, or narrowed after it.
    low = uint64(0xFFFFFFFF)
    a = uint64(counter)
    b = uint64(0)
    c = uint64(0)
    d = uint64(0)
    key_a = uint64(key_low)
    key_c = uint64(key_high)
    for _ in range(10):
        product_a = uint64(0xD2511F53) * (a & low)
        product_c = uint64(0xCD9E8D57) * (c & low)
        a = (product_c >> uint64(32)) ^ b ^ key_a
        b = product_c
        c = (product_a >> uint64(32)) ^ d ^ key_c
        d = product_a
        key_a += uint64(0x9E3779B9)
        key_c += uint64(0xBB67AE85)
    return uint32(a), uint32(b), uint32(c), uint32(d)


@_inline
def _uniform(bits: np.uint32):
    """`bits` / 2^32 rounded to float32, from two halves that fit into signed integers."""
    upper = float32(int32(bits >> uint32(16)))
    lower = float32(int32(bits & uint32(0xFFFF)))
    return upper * float32(2.0**-16) + lower * float32(2.0**-32)


@_inline
def _reduced_exponential(x: np.float32):
    """(p, s) with e^x = s (1 + p), s a power of two and |p| < 0.42, for |x| <= 87.

    By the polynomial of the Cephes library.
    """
    exponent = int32(x * float32(1.44269504) + float32(128.5)) - int32(128)
    # from 32 bits, since AVX2 has no vector instruction that converts 64
    n = float32(int32(exponent))
    r = x - n * float32(0.693359375) + n * float32(2.12194440e-4)
    p = float32(1.9875691500e-4)
    p = p * r + float32(1.3981999507e-3)
    p = p * r + float32(8.3334519073e-3)
    p = p * r + float32(4.1665795894e-2)
    p = p * r + float32(1.6666665459e-1)
    p = p * r + float32(5.0000001201e-1)
    scale = np.int32((exponent + int32(127)) << int32(23)).view(np.float32)
    return p * r * r + r, scale


@_inline
def _sigmoid(x: np.float32):
    p, scale = _reduced_exponential(min(max(-x, float32(-87)), float32(87)))
    return float32(1) / (float32(1) + scale * (float32(1) + p))


@_inline
def _write_logits(
    inputs: np.ndarray,
    factors: np.ndarray,
    offsets: np.ndarray,
    temperature_of: np.ndarray,
    low: int,
    high: int,
    logits: np.ndarray,
) -> None:
    """The logits of `draw_bits` for the places from `low` to `high` of all chains' units."""
    width = inputs.shape[1]
    begin = low
    while begin < high:
        chain = begin // width
        end = min(high, (chain + 1) * width)
        k = temperature_of[chain]
        row = offsets[k if len(offsets) > 1 else 0]
        some_offsets = row[begin - chain * width :]
        some_inputs = inputs[chain, begin - chain * width :]
        some_logits = logits[begin - low : end - low]
        factor = factors[k]
        for j in range(some_logits.size):
            some_logits[j] = some_offsets[j] + factor * float32(some_inputs[j])
        begin = end


@_compile
def draw_bits(
    inputs: np.ndarray,
    factors: np.ndarray,
    offsets: np.ndarray,
    temperature_of: np.ndarray,
    place: PlaceOfChains,
    key: np.ndarray,
    out: np.ndarray,
) -> None:
    """Draw bool `out` [chains, n] with the logits `offsets[k] + factors[k] * inputs`.

    Each chain is at its own temperature k; a single row of `offsets` applies to all. `inputs`
    [chains, n] are float32, or int32 sums. The key has its lower half first. Counters run from
    `place.first` chains on; see `paperlib.kernels.reference`.
    """
    width = out.shape[1]
    bits = out.reshape(-1)
    start = place.start * width
    stop = start + bits.size
    total = place.total * width
    quarter = total // 4
    first = uint32(place.first * width)
    key_low = key[0]
    key_high = key[1]
    numbers = np.empty((4, _COUNTERS_AT_A_TIME), np.uint32)
    logits = np.empty(_COUNTERS_AT_A_TIME, np.float32)
    for begin in range(0, quarter, _COUNTERS_AT_A_TIME):
        end = min(begin + _COUNTERS_AT_A_TIME, quarter)
        needed = False
        for k in range(4):
            needed |= k * quarter + begin < stop and k * quarter + end > start
        if not needed:
            continue
        for i in range(end - begin):
            a, b, c, d = philox(first + begin + i, key_low, key_high)
            numbers[0, i] = a
            numbers[1, i] = b
            numbers[2, i] = c
            numbers[3, i] = d
        for k in range(4):
            low = max(k * quarter + begin, start)
            high = min(k * quarter + end, stop)
            if low < high:
                _write_logits(
                    inputs, factors, offsets, temperature_of, low - start, high - start, logits
                )
                integers = numbers[k, low - (k * quarter + begin) :]
                some_bits = bits[low - start : high - start]
                for i in range(some_bits.size):
                    some_bits[i] = _uniform(integers[i]) < _sigmoid(logits[i])
    low = max(4 * quarter, start)
    if low < stop:
        _write_logits(inputs, factors, offsets, temperature_of, low - start, stop - start, logits)
        rest = philox(first + quarter, key_low, key_high)
        for i in range(low, stop):
            bits[i - start] = _uniform(rest[i - 4 * quarter]) < _sigmoid(logits[i - low])


@_compile
def draw_below(
    probabilities: np.ndarray, key_low: np.uint32, key_high: np.uint32, out: np.ndarray
) -> None:
    """`out[i]` is 1 with probability `probabilities[i]`, else 0; both one-dimensional, float32."""
    quarter = probabilities.size // 4
    # The four numbers of a block go to four places far apart, so that all stores are to consecutive
    # addresses.
    probabilities_a = probabilities[:quarter]
    probabilities_b = probabilities[quarter : 2 * quarter]
    probabilities_c = probabilities[2 * quarter : 3 * quarter]
    probabilities_d = probabilities[3 * quarter : 4 * quarter]
    out_a = out[:quarter]
    out_b = out[quarter : 2 * quarter]
    out_c = out[2 * quarter : 3 * quarter]
    out_d = out[3 * quarter : 4 * quarter]
    for i in range(quarter):
        a, b, c, d = philox(i, key_low, key_high)
        out_a[i] = _uniform(a) < probabilities_a[i]
        out_b[i] = _uniform(b) < probabilities_b[i]
        out_c[i] = _uniform(c) < probabilities_c[i]
        out_d[i] = _uniform(d) < probabilities_d[i]
    rest = philox(quarter, key_low, key_high)
    for i in range(4 * quarter, probabilities.size):
        out[i] = _uniform(rest[i - 4 * quarter]) < probabilities[i]


@_compile
def softplus_increment(
    x: np.ndarray, lowers: np.ndarray, steps: np.ndarray, out: np.ndarray
) -> None:
    """`out[i]` is the sum over j of softplus((lower + step) x[i, j]) - softplus(lower x[i, j]).

    It is float64; `lower` and `step`, which is at least 0, are those of i, or a single number for
    every i. The formula is that of `paperlib.kernels.reference`. A sum of logarithms is computed
    as the logarithm of a product, whose factors lie between one half and one.
    """
    rows, columns = x.shape
    terms = np.empty(_FACTORS_PER_LOGARITHM, np.float32)
    for i in range(rows):
        lower = lowers[i if lowers.size > 1 else 0]
        step = steps[i if steps.size > 1 else 0]
        if step == 0:  # of a chain that has no partner
            out[i] = 0.0
            continue
        linear = 0.0
        curved = 0.0
        for begin in range(0, columns, _FACTORS_PER_LOGARITHM):
            part = x[i, begin : begin + _FACTORS_PER_LOGARITHM]
            # float32 and float64 in separate loops, so that vector instructions take eight numbers
            # at a time in the first
            for j in range(part.size):
                magnitude = abs(part[j])
                p, scale = _reduced_exponential(max(-step * magnitude, float32(-87)))
                expm1 = scale * p + (scale - float32(1))
                terms[j] = expm1 * _sigmoid(-lower * magnitude)
            product = 1.0
            for j in range(part.size):
                product *= 1.0 + np.float64(terms[j])
                linear += np.float64(part[j] + abs(part[j]))
            curved += np.log(product)
        out[i] = 0.5 * step * linear + curved


@_compile
def _join_pieces(pieces: np.ndarray, sums: np.ndarray) -> None:
    """`sums = 256 upper + lower` for int32 `pieces` [n, 2 m], upper beside lower."""
    rows, columns = sums.shape
    for i in range(rows):
        for j in range(columns):
            sums[i, j] = pieces[i, j] * int32(256) + pieces[i, columns + j]


@_inline
def _add_rows(
    matrix: np.ndarray, rows: np.ndarray, count: int, sign: np.int32, sums: np.ndarray
) -> None:
    """`sums += sign * matrix[row]` for the first `count` of `rows`.

    Eight rows at a time, so that `sums` is rarely read and written.
    """
    grouped = count - count % 8
    for k in range(0, grouped, 8):
        a = matrix[rows[k]]
        b = matrix[rows[k + 1]]
        c = matrix[rows[k + 2]]
        d = matrix[rows[k + 3]]
        e = matrix[rows[k + 4]]
        f = matrix[rows[k + 5]]
        g = matrix[rows[k + 6]]
        h = matrix[rows[k + 7]]
        for j in range(sums.size):
            total = int32(a[j]) + int32(b[j]) + int32(c[j]) + int32(d[j])
            sums[j] += sign * (total + int32(e[j]) + int32(f[j]) + int32(g[j]) + int32(h[j]))
    for k in range(grouped, count):
        a = matrix[rows[k]]
        for j in range(sums.size):
            sums[j] += sign * int32(a[j])


@_compile
def _sum_rows(matrix: np.ndarray, states: np.ndarray, sums: np.ndarray) -> None:
    """`sums = states @ matrix`, int32 [chains, m], for few chains or weights.

    `matrix` is int16 [n, m], and `states` are bool [chains, n].
    """
    on = np.empty(len(matrix) + 1, np.int64)
    for chain in range(len(states)):
        num_on = 0
        for j in range(len(matrix)):
            on[num_on] = j
            num_on += states[chain, j]
        sums[chain] = 0
        _add_rows(matrix, on, num_on, int32(1), sums[chain])


@_compile
def _add_changed_rows(
    matrix: np.ndarray, states: np.ndarray, last_states: np.ndarray, sums: np.ndarray
) -> None:
    """Make `sums`, the product of `last_states`, that of `states`, and `last_states` equal to them.

    `matrix` is int16 [n, m], states are bool [chains, n], and `sums` are int32 [chains, m].
    """
    width = states.shape[1]
    on, off, changed = np.empty((3, width + 1), np.int64)
    for chain in range(len(states)):
        now = states[chain]
        last = last_states[chain]
        # A unit is always written down, and counted only if it belongs there: no branch.
        num_changed = 0
        for j in range(width):
            changed[num_changed] = j
            num_changed += now[j] != last[j]
        num_on = 0
        num_off = 0
        for k in range(num_changed):
            j = changed[k]
            on[num_on] = j
            off[num_off] = j
            num_on += now[j]
            num_off += last[j]
            last[j] = now[j]
        _add_rows(matrix, on, num_on, int32(1), sums[chain])
        _add_rows(matrix, off, num_off, int32(-1), sums[chain])


@_compile
def multiply(product: ProductArrays, states: np.ndarray) -> None:
    """Bring a product's sums up to date with bool `states` [chains, n], in the cheapest way."""
    if product.most_changed < 0:
        _sum_rows(product.rows, states, product.sums)
        return
    now = states.reshape(-1)
    last = product.last_states.reshape(-1)
    changed = int32(0)
    for i in range(now.size):
        changed += int32(now[i] != last[i])
    if changed <= product.most_changed:
        _add_changed_rows(product.rows, states, product.last_states, product.sums)
        return
    for i in range(now.size):
        last[i] = now[i]
    function, out, factor, matrix = product.call
    if function != 0 and _call(function, out, factor, matrix) == 0:
        _join_pieces(product.pieces, product.sums)
    else:
        _sum_rows(product.rows, states, product.sums)


@_compile
def scale_sums(sums: np.ndarray, factors: np.ndarray, offset: np.ndarray, out: np.ndarray) -> None:
    """`out[i] = offset[i] + factors[i] * sums[i]` for int32 `sums` [n, m].

    A single factor, or a single row of `offset`, applies to every i.
    """
    rows, columns = out.shape
    for i in range(rows):
        factor = factors[i if factors.size > 1 else 0]
        row = offset[i if len(offset) > 1 else 0]
        for j in range(columns):
            out[i, j] = row[j] + factor * float32(sums[i, j])


@_compile
def sum_where(states: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """`out[i]` is the sum of `values[j]` over all j for which `states[i, j]` is True, float64."""
    rows, columns = states.shape
    for i in range(rows):
        total = 0.0
        for j in range(columns):
            total += np.float64(values[j]) * states[i, j]
        out[i] = total


@_inline
def _partner(k: int, parity: int, count: int):
    """The temperature with which k swaps among the pairs of this parity, or k itself."""
    partner = k + 1 - 2 * ((k + parity) % 2)
    return k if partner < 0 or partner >= count else partner


@_compile_contracted
def _swap(
    increments: np.ndarray,
    bias_sums: np.ndarray,
    betas: np.ndarray,
    uniform: np.ndarray,
    parity: int,
    chain_at: np.ndarray,
    ratios: np.ndarray,
) -> None:
    """Write the log-ratios [R, N] of all chains and their partners, and swap the chains.

    `uniform` has a random number for each pair.
    """
    replicas, count = chain_at.shape
    pairs = (count - parity) // 2
    for replica in range(replicas):
        for k in range(count):
            chain = chain_at[replica, k]
            change = betas[_partner(k, parity, count)] - betas[k]
            increment = increments[chain] if change >= 0 else -increments[chain]
            ratios[replica, k] = increment + bias_sums[chain] * change
        for pair in range(pairs):
            k = parity + 2 * pair
            accept = np.exp(ratios[replica, k] + ratios[replica, k + 1])
            if uniform[replica * pairs + pair] < accept:
                below = chain_at[replica, k]
                chain_at[replica, k] = chain_at[replica, k + 1]
                chain_at[replica, k + 1] = below


@_compile
def _swap_all(
    chains: ChainArrays, ladder: LadderArrays, uniform: np.ndarray, ratios: np.ndarray
) -> None:
    """The swaps of the even and of the odd pairs, and the log-ratios [2, R, N] before each.

    `uniform` is a row of those of `paperlib.kernels.tempering.Ladder.draws`.
    """
    betas = ladder.betas
    count = len(chains.v)
    lowers = np.empty(count, np.float32)
    steps = np.empty(count, np.float32)
    increments = np.empty(count)
    for parity in range(2):
        for replica in range(len(ladder.chain_at)):
            for k in range(len(betas)):
                chain = ladder.chain_at[replica, k]
                other = betas[_partner(k, parity, len(betas))]
                lowers[chain] = float32(min(betas[k], other))
                steps[chain] = float32(abs(other - betas[k]))
        softplus_increment(chains.hidden_input, lowers, steps, increments)
        # where the numbers of these replicas begin; those of all replicas' even pairs come first
        even = (ladder.place.total // len(betas)) * (len(betas) // 2)
        pairs = (len(betas) - parity) // 2
        begin = parity * even + ladder.place.start // len(betas) * pairs
        _swap(
            increments,
            chains.bias_sums,
            betas,
            uniform[begin:],
            parity,
            ladder.chain_at,
            ratios[parity],
        )


@_compile
def _gibbs_step(
    model: ModelArrays,
    betas: np.ndarray,
    visible_biases: np.ndarray,
    temperature_of: np.ndarray,
    place: PlaceOfChains,
    keys: np.ndarray,
    chains: ChainArrays,
) -> None:
    """Draw all hidden units, then the visible ones given them, each chain at its temperature.

    Equal, bit for bit, to separate draws and products; see `paperlib.annealing.rbm_paths` for the
    formulas. `keys` are those of the two draws, each with its lower half first.
    """
    factors = np.empty(len(betas), np.float32)
    for k in range(len(betas)):
        factors[k] = float32(betas[k])
    # the inputs to the hidden units have their biases in them
    no_offsets = np.zeros((1, chains.h.shape[1]), np.float32)
    draw_bits(chains.hidden_input, factors, no_offsets, temperature_of, place, keys[:2], chains.h)
    multiply(model.to_visible, chains.h)
    for k in range(len(betas)):
        factors[k] = float32(betas[k] * model.scale)
    sums = model.to_visible.sums
    draw_bits(sums, factors, visible_biases, temperature_of, place, keys[2:], chains.v)
    multiply(model.to_hidden, chains.v)
    scales = np.full(1, float32(model.scale))
    hidden_bias = model.hidden_bias.reshape(1, -1)
    scale_sums(model.to_hidden.sums, scales, hidden_bias, chains.hidden_input)
    sum_where(chains.v, model.bias_difference, chains.bias_sums)


@_compile_contracted
def _add_ratios(
    increments: np.ndarray,
    bias_sums: np.ndarray,
    beta_from: float,
    beta_to: float,
    log_weights: np.ndarray,
) -> None:
    """Add each chain's log-ratio, of these increments between the two betas, to its log-weight."""
    change = beta_to - beta_from
    for i in range(len(log_weights)):
        increment = increments[i] if change >= 0 else -increments[i]
        log_weights[i] += increment + bias_sums[i] * change


@_compile
def anneal(
    model: ModelArrays,
    betas: np.ndarray,
    moving_first: bool,
    place: PlaceOfChains,
    keys: np.ndarray,
    chains: ChainArrays,
    log_weights: np.ndarray,
) -> None:
    """Steps of AIS of an RBM or, if `moving_first`, those of RAISE, from the state of `chains`.

    A step for each row of `keys`, from one of `betas` [T + 1] to the next. `model` has the visible
    biases at the beta of each step's move, which is the second one in AIS and the first in RAISE.
    """
    temperature_of = np.zeros(len(chains.v), np.int64)
    increments = np.empty(len(chains.v))
    lower = np.empty(1, np.float32)
    step = np.empty(1, np.float32)
    for t in range(len(keys)):
        lower[0] = float32(min(betas[t], betas[t + 1]))
        step[0] = float32(abs(betas[t + 1] - betas[t]))
        for moves in (moving_first, not moving_first):
            if moves:
                at = t if moving_first else t + 1
                _gibbs_step(
                    model,
                    betas[at : at + 1],
                    model.visible_biases[t : t + 1],
                    temperature_of,
                    place,
                    keys[t],
                    chains,
                )
            else:
                softplus_increment(chains.hidden_input, lower, step, increments)
                _add_ratios(increments, chains.bias_sums, betas[t], betas[t + 1], log_weights)


@_compile
def temper(
    model: ModelArrays,
    ladder: LadderArrays,
    keys: np.ndarray,
    uniform: np.ndarray,
    chains: ChainArrays,
    ratios: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Steps of parallel tempering of an RBM, from the inputs of `chains`.

    A step for each row of `keys` and `uniform`. Each leaves its log-ratios in `ratios` [T, 2, R, N]
    and the chains at both ends in `ends` [T, R, 2].
    """
    temperature_of = np.empty(len(chains.v), np.int64)
    for t in range(len(keys)):
        for replica in range(len(ladder.chain_at)):
            for k in range(len(ladder.betas)):
                temperature_of[ladder.chain_at[replica, k]] = k
        _gibbs_step(
            model,
            ladder.betas,
            model.visible_biases,
            temperature_of,
            ladder.place,
            keys[t],
            chains,
        )
        _swap_all(chains, ladder, uniform[t], ratios[t])
        # one by one: to assign a slice brings the text of an error, a second of compilation
        for replica in range(len(ladder.chain_at)):
            ends[t, replica, 0] = ladder.chain_at[replica, 0] + ladder.place.start
            ends[t, replica, 1] = ladder.chain_at[replica, -1] + ladder.place.start


# The reference has plain numbers and loops, which numba compiles as they are.
matlab_uniform = _compile_exactly(reference.matlab_uniform)
