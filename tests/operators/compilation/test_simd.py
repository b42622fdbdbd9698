"""Numbers at once come out as one after the other.

The loops are numba's own, not those of ``operators.compilation``, where only memory and eight lanes are concerned:
code kept for a test outside the package would not follow the package's changes.
"""

import numba
import numpy as np
import pytest

from operators.compilation import jit
from operators.compilation import simd as lanes
from operators.compilation.simd import LANES, compress, expand, gather, load, load_8, repeated_8, store
from operators.compilation.stamp import stamp
from operators.tcdq.rans import decode_long, encode_long
from operators.tcdq.viterbi import back_rows, forward_rows

RNG = np.random.default_rng(3)
A, B = (RNG.integers(0, 1 << 32, LANES, dtype=np.uint32) for _ in range(2))
B[0] = A[0]
SHIFTS = np.arange(LANES, dtype=np.uint32) * np.uint32(2)


@jit
def _integers(a, b, shifts, out):
    x, y, s = load(a, 0), load(b, 0), load(shifts, 0)
    one = np.uint32(1)
    store(out, 0 * LANES, x + y)
    store(out, 1 * LANES, x - y)
    store(out, 2 * LANES, x * y)
    store(out, 3 * LANES, (x & y) ^ (x | one))
    store(out, 4 * LANES, x << s)
    store(out, 5 * LANES, x >> s)
    store(out, 6 * LANES, lanes.unsigned(lanes.signed(x) >> lanes.signed(s)))
    store(out, 7 * LANES, lanes.upper_half(x, y))
    store(out, 8 * LANES, lanes.choose(x < y, x, one))
    store(out, 9 * LANES, lanes.choose(lanes.signed(x) < lanes.signed(y), one, y))
    store(out, 10 * LANES, lanes.numbers(np.uint32(0xFFFFFFF8)))
    places = lanes.first(x == y), lanes.first(y == x + one), lanes.first(x > y)
    return lanes.bits(x >= y), lanes.count(x == y), lanes.bits(x > y), lanes.total(lanes.signed(x)), places


def test_integers_wrap_shift_and_compare_as_numpy_s_do():
    out = np.empty(11 * LANES, np.uint32)
    at_least, equal, above, total, places = _integers(A, B, SHIFTS, out)
    signed_a, signed_b = A.view(np.int32), B.view(np.int32)
    expected = [
        A + B, A - B, A * B, (A & B) ^ (A | np.uint32(1)), A << SHIFTS, A >> SHIFTS,
        (signed_a >> SHIFTS.view(np.int32)).view(np.uint32),
        ((A.astype(np.uint64) * B) >> np.uint64(32)).astype(np.uint32),
        np.where(A < B, A, np.uint32(1)), np.where(signed_a < signed_b, np.uint32(1), B),
        np.arange(LANES, dtype=np.uint32) - np.uint32(8),
    ]  # fmt: skip
    for row, values in zip(out.reshape(-1, LANES), expected, strict=True):
        assert np.array_equal(row, values)
    assert at_least == sum(1 << i for i in range(LANES) if A[i] >= B[i])
    assert above == sum(1 << i for i in range(LANES) if A[i] > B[i])
    assert equal == 1
    assert places == (0, LANES, int(np.argmax(A > B)))  # none is one less
    assert np.int32(total) == signed_a.sum(dtype=np.int32)


@jit
def _reals(a, b, out):
    x, y = load(a, 0), load(b, 0)
    store(out, 0 * LANES, x + y)
    store(out, 1 * LANES, x * y - y)
    store(out, 2 * LANES, lanes.floor(x))
    store(out, 3 * LANES, lanes.choose(x < y, x, y))
    store(out, 4 * LANES, lanes.real(lanes.whole(x)))


def test_reals_are_rounded_once_for_each_operation():
    a, b = (RNG.standard_normal(LANES).astype(np.float32) * 100 for _ in range(2))
    out = np.empty(5 * LANES, np.float32)
    _reals(a, b, out)
    for row, values in zip(
        out.reshape(-1, LANES), (a + b, a * b - b, np.floor(a), np.minimum(a, b), np.trunc(a)), strict=True
    ):
        assert np.array_equal(row, values)


def memory(words, flags, table, places, spread, packed):
    mask = load(flags, 0) == np.uint32(1)
    store(spread, 0, expand(words, 3, mask))
    compress(packed, 2, gather(table, load(places, 0)), mask)


@pytest.mark.parametrize("instruction", [True, False], ids=["processor's own", "word by word"])
@pytest.mark.parametrize("flags", [np.zeros(LANES), np.ones(LANES), np.arange(LANES) % 3 == 1])
def test_words_go_to_the_lanes_of_the_mask_and_back_in_order(flags, instruction, monkeypatch):
    if not instruction:
        monkeypatch.setattr(lanes, "_moves_words", lambda context: False)
    words, table = RNG.integers(0, 1 << 16, 40, dtype=np.uint16), RNG.integers(0, 1 << 32, 99, dtype=np.uint32)
    places, n = RNG.integers(0, 99, LANES, dtype=np.uint32), int(flags.sum())
    spread, packed = np.full(LANES, 7, np.uint32), np.full(LANES + 4, 9, np.uint16)
    numba.njit(memory)(words, flags.astype(np.uint8), table, places, spread, packed)
    assert spread[flags == 1].tolist() == words[3 : 3 + n].tolist()
    assert not spread[flags == 0].any()
    assert packed[2:].tolist() == [*(table[places][flags == 1] & 0xFFFF), *[9] * (LANES + 2 - n)]
    assert packed[0] == 9


@pytest.mark.parametrize("loop", [forward_rows, back_rows, encode_long, decode_long], ids=lambda loop: loop.__name__)
def test_kept_code_is_stale_once_a_rule_changes(monkeypatch, loop):
    taught = [rule for rule in lanes.Lanes.rules if isinstance(rule, str)]
    assert taught == ["add", "sub", "mul", "and_", "or_", "xor", "lshift", "rshift", "lt", "ge", "gt", "eq"]
    before = stamp(loop.py_func, {})
    assert stamp(loop.py_func, {}) == before

    monkeypatch.setattr(lanes.Lanes, "rules", lanes.Lanes.rules[:-1])

    assert stamp(loop.py_func, {}) != before


C = np.array([0.0, -0.0, 1.5, -1.5, 2.0**53, -7.25, 0.1, 3.0])
D = np.array([0.0, 1.0, 1.5, 2.5, -1.0, -7.5, 0.3, 1e300])


@numba.njit
def eight(a, b, out):
    x, y = load_8(a, 0), load_8(b, 0)
    store(out, 0, x + y)
    store(out, 8, x - y)
    store(out, 16, x * y)
    store(out, 24, lanes.floor(x))
    store(out, 32, lanes.size(x))
    store(out, 40, lanes.choose(x > y, x, y))
    store(out, 48, lanes.choose(x > y, 1.0, -1.0))
    store(out, 56, repeated_8(a[2]))
    store(out, 64, 2.0 * x + 1.0)


def test_eight_numbers_of_binary64_are_those_of_numpy():
    out = np.full(72, np.nan)
    eight(C, D, out)
    above = C > D
    expected = C + D, C - D, C * D, np.floor(C), abs(C), np.where(above, C, D), np.where(above, 1.0, -1.0)
    assert out.tobytes() == np.concatenate([*expected, np.full(8, C[2]), 2 * C + 1]).tobytes()


@numba.njit
def whole(a, out):
    store(out, 3, lanes.floor(load_8(a, 2)))


def test_whole_numbers_are_stored_where_they_are_asked_for_and_nowhere_else():
    numbers, out = np.arange(-4.0, 6.0) * 1e6, np.full(12, 9)
    whole(numbers, out)
    assert out.tolist() == [9, 9, 9, *numbers[2:].astype(int).tolist(), 9]


@numba.njit
def reached(a, b):
    return lanes.first(load_8(a, 0) >= load_8(b, 0))


@pytest.mark.parametrize("i", range(8))
def test_first_lane_that_reaches_is_found_and_equality_reaches(i):
    bound = np.full(8, 1.5)
    bound[i] = C[i]
    assert reached(np.where(np.arange(8) == i, C, -9.0), bound) == i
    bound[i] = np.nextafter(C[i], np.inf)
    assert reached(np.where(np.arange(8) == i, C, -9.0), bound) == 8


@numba.njit
def signs_and_sums(a, word, out):
    store(out, 0, lanes.times_signs(load_8(a, 0), np.float32(3), word))
    store(out, 8, lanes.hadamard(load_8(a, 0)))


def test_signs_follow_the_bits_and_sums_are_hadamards():
    a, out = np.arange(1, 9, dtype=np.float32), np.empty(16, np.float32)
    signs_and_sums(a, np.uint32(0b10010110), out)
    assert out[:8].tolist() == [3, -6, -9, 12, -15, 18, 21, -24]
    assert out[8:].tolist() == [sum(a[j] * (-1) ** (i & j).bit_count() for j in range(8)) for i in range(8)]
