"""The proof of unbiasedness on the reference quantiser: the code's isometries commute with it, orbits average 0."""

from itertools import product

import numpy as np
import pytest

from operators.tcdq.trellis import CODES

from . import oracle

D = 6


def quantiser(y, trellis):
    """Nearest admitted sequence; y : float64, exact in binary32."""
    floor = np.floor(y)
    return oracle.nearest((floor.astype(np.int64), (y - floor).astype(np.float32)), trellis, [0] * len(y))


def codewords(trellis, d):
    """Labels 2 z1 + z0 of every admitted sequence: shape (2^d, d)."""
    out = []
    for free in product((0, 1), repeat=d):
        state, labels = 0, []
        for z in free:
            labels.append(2 * z + (state & 1))
            state = trellis.following(state, z)
        out.append(labels)
    return np.array(out)


def isometry(labels, y):
    """n, 1 - n, n + 2, 3 - n for labels 0, 1, 2, 3, coordinate by coordinate."""
    return np.choose(labels, [y, 1 - y, y + 2, 3 - y])


def admitted(n, words):
    return (n % 4 == words).all(axis=1).any()


@pytest.mark.parametrize("states", [4, 8, 64])
def test_every_isometry_maps_admitted_sequences_to_admitted_ones(states):
    words = codewords(CODES[states], D)
    for a in words:
        images = isometry(a, words) % 4
        assert {tuple(row) for row in images.tolist()} == {tuple(row) for row in words.tolist()}


@pytest.mark.parametrize("states", [4, 8, 64])
def test_quantiser_is_nearest_among_all_admitted_sequences(states):
    trellis, rng = CODES[states], np.random.default_rng(states)
    words = codewords(trellis, D)
    for _ in range(60):
        y = rng.integers(-(2**12), 2**12, D) / 2**9 + 2.0**-11
        n = quantiser(y, trellis)
        candidates = words + 4 * np.round((y - words) / 4)
        assert admitted(n, words)
        assert ((y - n) ** 2).sum() == pytest.approx(((y - candidates) ** 2).sum(axis=1).min(), abs=1e-5)


@pytest.mark.parametrize("states", [4, 8, 64])
def test_quantiser_commutes_with_every_isometry_and_with_shifts_by_four(states):
    """So the error law is invariant under e_i -> (-1)^(a_0i) e_i for all codewords a: all 2^6 of them are tried."""
    trellis, rng = CODES[states], np.random.default_rng(states)
    for a in codewords(trellis, D):
        y = rng.integers(0, 2**20, D) / 2**18 + 2.0**-20
        n = quantiser(y, trellis)
        shifted = y + 4 * rng.integers(-3, 4, D)
        assert (quantiser(isometry(a, y), trellis) == isometry(a, n)).all()
        assert (quantiser(shifted, trellis) - shifted == n - y).all()


@pytest.mark.parametrize("states", [4, 8, 64])
def test_every_coordinate_has_a_reflection(states):
    """Either some codeword has an odd label there, or all labels are even and n -> -n maps the code to itself."""
    words = codewords(CODES[states], 8)
    odd = (words % 2 == 1).any(axis=0)
    assert odd.any()
    known = {tuple(row) for row in words.tolist()}
    for i in np.flatnonzero(~odd):
        mirrored = words.copy()
        mirrored[:, i] = -mirrored[:, i] % 4
        assert {tuple(row) for row in mirrored.tolist()} == known


@pytest.mark.parametrize("states", [4, 8, 64])
def test_errors_over_an_orbit_have_mean_zero_no_correlation_and_one_length(states):
    """Exactly: the dither's law is invariant under the group, so its mean is an average of orbit means.

    The group: all 2^6 codewords, times reflections of the coordinates whose labels are always even.
    """
    trellis, rng = CODES[states], np.random.default_rng(states)
    words = codewords(trellis, D)
    even = np.flatnonzero((words % 2 == 0).all(axis=0))
    for _ in range(4):
        y = rng.integers(0, 2**16, D) / 2**14 + 2.0**-18 * rng.integers(1, 8, D)
        errors = []
        for a in words:
            for signs in product((1, -1), repeat=even.size):
                point = isometry(a, y)
                point[even] *= signs
                errors.append(quantiser(point, trellis) - point)
        errors = np.array(errors)
        assert (errors.sum(axis=0) == 0).all()
        products = errors.T @ errors
        assert (products[~np.eye(D, dtype=bool)] == 0).all()
        assert ((errors**2).sum(axis=1) == (errors[0] ** 2).sum()).all()
