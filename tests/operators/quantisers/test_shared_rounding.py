"""Rounding with shared bits: a plain sender, exact unbiasedness, optimality of sender and levels, exact variances."""

import json
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import linprog
from scipy.stats import norm

from operators import Key
from operators.quantisers.shared_rounding import (
    LEVELS,
    MAX_BITS,
    SHARED_BITS,
    largest_variance,
    mean_variance,
    mirrored,
    round_with_shared,
    sender_path,
    shared_grid,
    shared_numbers,
    unpack_shared,
)
from operators.random import bits32

from ... import scripts
from ..quic_fl_sender import move_of, moves

BEYOND = 2**32 - 1
STUDY = scripts.load("studies", "quic_fl_levels")


def rounded(bits, v, words, shared):
    grid, codes = shared_grid(bits), np.empty(v.size, np.uint32)
    tables = grid.knots, grid.moving, grid.codes, grid.start, grid.per_unit, grid.first
    round_with_shared(v, np.float32(1), grid.top, *tables, shared, words, codes)
    return codes


def variance(bits, v):
    """Of one number, by search over the knots of the plain sender."""
    move = move_of(bits, v)
    if not move.low <= v <= move.high:
        return 0.0
    return (
        float(move.square_low + (v - move.low) / (move.high - move.low) * (move.square_high - move.square_low)) - v * v
    )


@pytest.mark.parametrize("bits", range(1, MAX_BITS + 1))
def test_knots_and_squares_are_those_of_the_plain_sender(bits):
    grid, plain = shared_grid(bits), moves(bits)
    assert grid.levels.shape == (2 ** SHARED_BITS[bits], 2**bits)
    assert (np.diff(grid.levels, axis=1) > 0).all()
    assert np.array_equal(grid.levels, -grid.levels[::-1, ::-1])
    assert grid.knots == pytest.approx([float(p.low) for p in plain] + [float(plain[-1].high)], rel=1e-13, abs=1e-13)
    squares = [float(p.square_low) for p in plain] + [float(plain[-1].square_high)]
    assert grid.squares == pytest.approx(squares, rel=1e-12, abs=1e-13)
    assert grid.knots[grid.moving.size // 2] == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("bits", range(1, MAX_BITS + 1))
def test_mean_level_over_shared_numbers_and_coin_is_the_number_itself(bits):
    """In fractions: with probability (v - low)/(high - low) the one undecided h sends its next code."""
    levels = [[Fraction(float(r)) for r in row] for row in shared_grid(bits).levels]
    for move in moves(bits)[:: max(1, len(moves(bits)) // 60)]:
        for v in (move.low, (2 * move.low + move.high) / 3):
            share = (v - move.low) / (move.high - move.low)
            mean = sum(row[c] for row, c in zip(levels, move.codes, strict=True))
            mean += share * (levels[move.h][move.codes[move.h] + 1] - levels[move.h][move.codes[move.h]])
            assert mean / len(levels) == v


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_compiled_sender_sends_the_codes_of_the_plain_one(bits):
    grid, rng = shared_grid(bits), np.random.default_rng(bits)
    knots = grid.knots.astype(np.float32)
    near = [np.nextafter(knots, np.float32(side)) for side in (-9, 9)]
    v = np.concatenate([1.5 * rng.standard_normal(1500), [0.0, -0.0, 1e9, -1e9], [grid.top, -grid.top], knots, *near])
    v, words = v.astype(np.float32), rng.integers(0, 2**32, v.size, dtype=np.uint32)
    shared = rng.integers(0, 256, v.size).astype(np.uint8)
    top, decided = float(grid.top), 0
    for x, word, byte, code in zip(
        v.tolist(), words.tolist(), shared.tolist(), rounded(bits, v, words, shared), strict=True
    ):
        h = byte % 2 ** SHARED_BITS[bits]
        if abs(x) > top:
            assert code == BEYOND
            continue
        move = move_of(bits, x)
        up = h == move.h and word / 2**32 < (x - move.low) / (move.high - move.low)
        assert code == move.codes[h] + up
        decided += h == move.h
    assert decided > 0


@pytest.mark.parametrize("bits", [1, 3])
def test_kernel_is_unbiased_at_numbers_next_to_every_knot(bits):
    """The words at which the only undecided h changes its code are the probability, to 2^-32."""
    grid = shared_grid(bits)
    count, knots = len(grid.levels), grid.knots
    v = np.sort(np.concatenate([knots[:-1] + f * np.diff(knots) for f in (0.001, 0.5, 0.999)])).astype(np.float32)
    for x in v[np.abs(v) <= grid.top]:
        k = np.searchsorted(knots, float(x)) - 1
        share = (float(x) - knots[k]) / (knots[k + 1] - knots[k])
        edges = np.clip([math.floor(share * 2**32) - 1, math.ceil(share * 2**32) + 1], 0, 2**32 - 1).astype(np.uint32)
        h = np.arange(count, dtype=np.uint8)
        low, high = (rounded(bits, np.full(count, x), np.full(count, w, np.uint32), h) for w in edges)
        means = [grid.levels[h, codes].astype(np.float64).mean() for codes in (low, high)]
        assert (1 - share) * means[1] + share * means[0] == pytest.approx(float(x), abs=1e-9)


@pytest.mark.parametrize(("bits", "shared_bits"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_no_unbiased_sender_has_a_smaller_mean_square(bits, shared_bits):
    """A linear programme over all probabilities of (h, x), for symmetric levels drawn at random."""
    rng, count, width = np.random.default_rng(bits + shared_bits), 2**shared_bits, 2**bits
    levels = mirrored(np.sort(3 * rng.standard_normal((count // 2, width)), axis=1))
    knots, squares, _, _ = sender_path(levels)
    for v in np.linspace(knots[0], knots[-1], 9)[1:-1]:
        rows = np.kron(np.eye(count), np.ones(width))
        found = linprog(
            (levels**2).ravel() / count,
            A_eq=np.vstack([rows, levels.ravel() / count]),
            b_eq=np.append(np.ones(count), v),
        )
        assert found.fun == pytest.approx(np.interp(v, knots, squares), rel=1e-9)


@pytest.mark.parametrize("bits", range(1, MAX_BITS + 1))
def test_no_small_change_of_the_levels_has_a_smaller_error(bits):
    """To first order a level moved by the mean step gains at most 1e-6 of the error; the largest have the mean T."""
    levels = shared_grid(bits).levels.astype(np.float64)
    assert levels[:, -1].mean() == pytest.approx(-norm.ppf(1 / 1024), abs=1e-6)
    error, gradient = STUDY.mean_error(levels)
    assert np.abs(STUDY.projected(gradient)).max() * 2 * STUDY.TOP / 2**bits < 1e-6 * error
    assert error == pytest.approx(mean_variance(bits, 10**9), rel=1e-6)


@pytest.mark.parametrize(("bits", "shared_bits"), [(1, 2), (2, 2), (3, 1)])
def test_gradient_is_the_difference_quotient(bits, shared_bits):
    rng, step = np.random.default_rng(0), 1e-5
    levels = STUDY.with_top(STUDY.companded(bits, shared_bits))
    change = STUDY.projected(rng.standard_normal(levels.shape))  # the range of v stays
    up, down = (STUDY.mean_error(levels + sign * step * change)[0] for sign in (1, -1))
    assert (up - down) / (2 * step) == pytest.approx((STUDY.mean_error(levels)[1] * change).sum(), rel=1e-6)


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_other_starts_find_no_better_levels(bits):
    error, _ = STUDY.best_levels(bits, SHARED_BITS[bits], starts=3, seed=7)
    assert mean_variance(bits, 10**9) <= error * (1 + 1e-6)


@pytest.mark.parametrize(("bits", "theirs"), [(1, 1.466), (2, 0.2154), (3, 0.04316), (4, 0.009688)])
def test_mean_error_is_that_of_the_authors_code_or_up_to_two_percent_less(bits, theirs):
    """Their levels solve the same problem on 256 quantiles."""
    assert 0.98 * theirs < mean_variance(bits, 10**9) < theirs


def test_committed_levels_are_written_for_all_bits():
    table = json.loads(LEVELS.read_text())
    assert {int(b): len(half) for b, half in table.items()} == {b: 2**s // 2 for b, s in SHARED_BITS.items()}


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("d", [2, 64])
def test_mean_variance_on_the_sphere_is_the_integral_over_the_angle(bits, d):
    size = math.sqrt(d)
    knots = shared_grid(bits).knots
    edges = sorted([0.0, math.pi, *(math.acos(c / size) for c in knots if -size < c < size)])
    nodes, weights = np.polynomial.legendre.leggauss(6)
    total = 0.0
    for a, b in pairwise(edges):
        for t, w in zip((a + b) / 2 + (b - a) / 2 * nodes, (b - a) / 2 * weights, strict=True):
            total += w * variance(bits, size * math.cos(t)) * math.sin(t) ** (d - 2)
    sphere = quad(lambda t: math.sin(t) ** (d - 2), 0, math.pi)[0]
    assert mean_variance(bits, d) == pytest.approx(total / sphere, rel=1e-6)


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_largest_variance_bounds_every_two_valued_vector_and_is_nearly_reached(bits):
    """Shares p and 1 - p of squares e and f with p e + (1 - p) f = 1: the extremal case of a concave majorant."""
    squares = np.concatenate([np.linspace(0, 1, 200), np.linspace(1.001, 12, 400), [1000.0]])
    values = np.array([variance(bits, math.sqrt(e)) for e in squares])
    low, high = squares <= 1, squares > 1
    e, f = squares[low][:, None], squares[high][None]
    share = (f - 1) / (f - e)
    mixed = share * values[low][:, None] + (1 - share) * values[high][None]
    assert 0.98 * largest_variance(bits) < mixed.max() <= largest_variance(bits) * (1 + 1e-9)


@pytest.mark.parametrize("bits", [1, 3, 8])
@pytest.mark.parametrize("n", [1, 8, 13])
def test_receiver_reads_the_level_of_its_shared_number(bits, n):
    rng, out = np.random.default_rng(n), np.empty(n, np.float32)
    codes, shared = rng.integers(0, 2**bits, n), rng.integers(0, 256, n).astype(np.uint8)
    fields = "".join(f"{c:0{bits}b}" for c in codes)
    payload = np.packbits(np.array([int(c) for c in fields], np.uint8))
    levels = shared_grid(bits).levels
    unpack_shared(payload, bits, levels, shared, out)
    assert out.tolist() == [levels[s % len(levels), c] for s, c in zip(shared, codes, strict=True)]


def test_shared_numbers_are_the_bytes_of_the_stream_in_any_piece():
    key, n = Key(3, rank=2), 77
    words = [int(w) for w in bits32(key, 20)]
    expected = [words[i // 4] >> 8 * (i % 4) & 255 for i in range(n)]
    assert shared_numbers(key, n).tolist() == expected
    assert shared_numbers(key, n - 40, start=40).tolist() == expected[40:]
    assert shared_numbers(Key(3, rank=1), n).tolist() != expected
