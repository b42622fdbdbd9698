"""Metrics of bytes: least sums of rounded distances, the same in lanes, and no preference among equal paths."""

import numpy as np
import pytest

from operators import Key
from operators.tcdq import viterbi
from operators.tcdq.quantise import EARLY, FIRST_COST, FULL, GRAIN, LEAST, back_coarse, forward_coarse, last_states
from operators.tcdq.trellis import CODES, LANES, Grid, seeds

from . import oracle
from .test_unbiasedness import codewords, isometry

COARSE = [states for states, trellis in CODES.items() if trellis.coarse]
WORDS = seeds(Key(1))
GRID = Grid(np.float32(1), np.float32(1), *WORDS)


def plain(x, states, lanes):
    out, survivors = np.empty(x.size, np.int32), np.empty((-(-x.size // lanes), lanes, states), np.uint8)
    metric = np.full((states, lanes), FULL, np.uint8)
    metric[0] = LEAST
    forward_coarse(x, GRID, CODES[states].before, metric, out, survivors)
    back_coarse(out, survivors, last_states(metric, GRID), CODES[states].before, GRID)
    return out


@pytest.mark.parametrize("states", COARSE)
@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0, 1e5])
def test_symbols_in_lanes_equal_those_of_the_plain_passes(scale, states):
    for d in (1024, 1025, 3072 + 15 * LANES, 4096 + 15 * LANES + 7):  # the last row is settled, and is not whole
        x = (np.random.default_rng(d).standard_normal(d) * scale).astype(np.float32)
        symbols = np.empty(d, np.int32)
        viterbi.symbols_in_pairs(x, GRID, states, symbols)
        assert np.array_equal(symbols, plain(x, states, LANES))


@pytest.mark.parametrize("states", COARSE)
@pytest.mark.parametrize(("lanes", "d"), [(1, 200), (3, 200), (40, 600)])  # of 40 ends, some are equally good
def test_plain_passes_equal_the_reference(states, lanes, d):
    x = np.random.default_rng(d).standard_normal(d).astype(np.float32)
    symbols = plain(x, states, lanes)
    hashes = [oracle.hashed(i, *(int(w) for w in WORDS)) for i in range(d)]
    u = np.array([2 * (h >> 8) + 1 - (1 << 24) for h in hashes])
    g = (x - np.floor(x)) + u.astype(np.float32) * np.float32(2.0**-23)
    floor = np.floor(x).astype(np.int64) + np.floor(g).astype(np.int64)
    for lane in range(lanes):
        own = slice(lane, None, lanes)
        n = oracle.nearest((floor[own], (g - np.floor(g))[own]), CODES[states], hashes[own])
        parity = oracle.parities(n, CODES[states])
        a = u[own] - (parity << 23)
        assert np.array_equal(symbols[own], ((n - parity) // 2 - (a >> 24)) << 6 | (a & 0xFFFFFF) >> 18)


def quantiser(y, trellis, ties, order):
    floor = np.floor(y)
    hashes = ties.tolist()
    hashes[0] = order  # no branches compete in the first row
    return oracle.nearest((floor.astype(np.int64), (y - floor).astype(np.float32)), trellis, hashes)


def drawn(rng, trellis, d):
    """Points of which many paths are equally far, and the bits that decide between them."""
    return rng.integers(0, 8, d) / 2 + 0.25, rng.integers(0, 2, d), int(rng.integers(0, trellis.states))


@pytest.mark.parametrize("states", COARSE)
def test_sum_of_rounded_distances_is_least_among_all_admitted_sequences(states):
    trellis, rng, d = CODES[states], np.random.default_rng(states), EARLY + 3
    words = codewords(trellis, d)
    most = np.where(np.arange(d) < EARLY, FIRST_COST, FULL)

    def cost(n, y):
        away = np.abs((y - n + 2) % 4 - 2)
        return np.minimum(np.floor(away * away * float(GRAIN)), most).sum(axis=-1)

    for _ in range(30):
        y, ties, order = drawn(rng, trellis, d)
        n = quantiser(y, trellis, ties, order)
        assert (n % 4 == words).all(axis=1).any()
        assert cost(n, y) == cost(words, y).min()
        assert (np.abs(y - n) <= 2).all()


def codeword(trellis, free):
    """Labels, the states before each of them, and the last state."""
    states, labels = [0], []
    for z in free:
        labels.append(2 * z + (states[-1] & 1))
        states.append(trellis.following(states[-1], z))
    return np.array(labels), np.array(states[:-1]), states[-1]


@pytest.mark.parametrize("states", COARSE)
def test_quantiser_commutes_with_isometries_that_move_the_deciding_bits_alike(states):
    """A codeword adds its states to all: the two before a state change their order where it has the upper one's bit.

    Both uniform, the bits have the same law after it, and so has the error, with (-1)^(a_0i) before coordinate i.
    """
    trellis, rng, d = CODES[states], np.random.default_rng(states), 90
    upper = (2 * trellis.b).bit_length() - 1
    changed = 0
    for _ in range(9):
        y, ties, order = drawn(rng, trellis, d)
        labels, before, last = codeword(trellis, rng.integers(0, 2, d).tolist())
        n = quantiser(y, trellis, ties, order)
        moved = quantiser(isometry(labels, y), trellis, ties ^ (before >> upper & 1), order ^ last)
        assert (moved == isometry(labels, n)).all()
        changed += (quantiser(isometry(labels, y), trellis, ties, order) != isometry(labels, n)).any()
    assert changed > 0  # a fixed rule would prefer some signs


@pytest.mark.parametrize("states", COARSE)
def test_deciding_bits_are_those_that_the_dither_leaves(states):
    """In lanes, on points that are equally far from many paths: the same as the reference with the hash's last bits."""
    d = 40 * LANES
    x = np.random.default_rng(1).integers(-8, 8, d).astype(np.float32)
    symbols = np.empty(d, np.int32)
    viterbi.symbols_in_pairs(x, GRID, states, symbols)
    other = np.empty(d, np.int32)
    viterbi.symbols_in_pairs(x, GRID._replace(first=GRID.first ^ np.uint32(1)), states, other)
    assert np.array_equal(symbols, plain(x, states, LANES))
    assert not np.array_equal(symbols, other)
