"""Eight numbers in a register against numpy, entry by entry.

Loops are compiled anew: code that is kept of a loop outside the package would not follow the package's changes.
"""

import numba
import numpy as np
import pytest

from operators.coding import lanes

A = np.array([0.0, -0.0, 1.5, -1.5, 2.0**53, -7.25, 0.1, 3.0])
B = np.array([0.0, 1.0, 1.5, 2.5, -1.0, -7.5, 0.3, 1e300])


@numba.njit
def plus(a, b, out):
    lanes.store(out, 0, lanes.plus(lanes.load(a, 0), lanes.load(b, 0)))


@numba.njit
def minus(a, b, out):
    lanes.store(out, 0, lanes.minus(lanes.load(a, 0), lanes.load(b, 0)))


@numba.njit
def times(a, b, out):
    lanes.store(out, 0, lanes.times(lanes.load(a, 0), lanes.load(b, 0)))


@numba.njit
def floor(a, b, out):
    lanes.store(out, 0, lanes.floor(lanes.load(a, 0)))


@numba.njit
def size(a, b, out):
    lanes.store(out, 0, lanes.size(lanes.load(a, 0)))


@numba.njit
def larger(a, b, out):
    first, second = lanes.load(a, 0), lanes.load(b, 0)
    lanes.store(out, 0, lanes.where_above(first, second, first, second))


@numba.njit
def third(a, b, out):
    lanes.store(out, 0, lanes.repeated(a[2]))


@numba.njit
def whole(a, out):
    lanes.store_integers(out, 3, lanes.floor(lanes.load(a, 2)))


@numba.njit
def reaches(a, b):
    return lanes.any_reaches(lanes.load(a, 0), lanes.load(b, 0))


@pytest.mark.parametrize(
    ("compiled", "expected"),
    [
        (plus, A + B),
        (minus, A - B),
        (times, A * B),
        (floor, np.floor(A)),
        (size, np.abs(A)),
        (larger, np.where(A > B, A, B)),
        (third, np.full(8, A[2])),
    ],
    ids=["plus", "minus", "times", "floor", "size", "where_above", "repeated"],
)
def test_every_lane_is_that_of_numpy(compiled, expected):
    out = np.full(8, np.nan)
    compiled(A, B, out)
    assert out.tobytes() == expected.tobytes()


def test_whole_numbers_are_stored_where_they_are_asked_for_and_nowhere_else():
    numbers, out = np.arange(-4.0, 6.0) * 1e6, np.full(12, 9)
    whole(numbers, out)
    assert out.tolist() == [9, 9, 9, *numbers[2:].astype(int).tolist(), 9]


@pytest.mark.parametrize("i", range(8))
def test_any_lane_that_reaches_counts_and_equality_reaches(i):
    bound = np.full(8, 1.5)
    bound[i] = A[i]
    assert reaches(np.where(np.arange(8) == i, A, -9.0), bound)
    bound[i] = np.nextafter(A[i], np.inf)
    assert not reaches(np.where(np.arange(8) == i, A, -9.0), bound)
