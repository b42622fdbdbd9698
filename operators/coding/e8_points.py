"""Points of the lattice E8 near a dither, and how a code that knows the dither names them; eight blocks at once.

E8 = D8 + {0, h}, D8 the integer vectors of even sum, h = (1/2, ..., 1/2).  A point q of a block of eight is named
given the dither u of that block, which both ends know: which of the two cosets, then each coordinate by its
distance to the coset's number nearest to u_i, counted towards the side on which u_i lies.  The last coordinate of
a block has a known parity, so its candidates are two apart.  Coordinates after the last full block are quantised
one by one to the multiples of sqrt(12 G), whose cell has the same second moment.

Each decision has a context.  For the coset: by how much u is nearer to one of them (16 classes).  For a coordinate:
how far u_i lies from the nearest candidate (8 classes), and whether the sum would be even if this and all later
coordinates took theirs; if not, one of them will not, most likely the one that lies farthest, so whether it is
this one.  The last coordinate has 8 classes of its own, and so have those after the last full block.

Arrays of lanes hold coordinate i of block b of eight in place 8 i + b.  All numbers are binary64, the whole ones too.
"""

from __future__ import annotations

import numpy as np

from ..compilation import jit
from .e8_model import CLASSES, COSETS, LAST, SINGLES, SYMBOLS
from .lanes import floor, load, minus, plus, repeated, size, store, store_integers, times, where_above

BLOCKS = 8  # at once
ROW = SYMBOLS + 1  # counts of a context and their sum
STARTS, SUMS = 8, 8 + 256  # where the coordinates and the sums begin in a plan, after the cosets
_UNIT = 2.0**-31  # of the dither, which lies in (0, 2)


@jit
def _parity(a):
    """Return 0 for an even number, 1 for an odd one."""
    return minus(a, times(repeated(2.0), floor(times(a, repeated(0.5)))))


@jit
def _differ(a, b):
    """Return the parity of a sum from those of its terms."""
    return size(minus(a, b))


@jit
def _least(a, most):
    return where_above(repeated(most), a, a, repeated(most))


@jit
def nearest(y, half, points, offs):
    """Write whole numbers nearest to y - half, and how far they are; return what a point of D8 needs.

    That is: whether their sum is odd, which of them lies farthest, as it then moves to its second nearest number, and
    the squared distance of the result.  Both arrays are filled from place 128 ``half`` on.
    """
    plane, half, zero, unit = np.int64(128 * half), repeated(half), repeated(0.0), repeated(1.0)
    odd, total, worst, farthest = zero, zero, repeated(-1.0), zero
    for i in range(8):
        z = minus(load(y, 8 * i), half)
        f = floor(plus(z, repeated(0.5)))
        off = minus(z, f)
        odd = _differ(odd, _parity(f))
        total = plus(total, times(off, off))
        off = size(off)
        store(points, plane + 8 * i, f), store(offs, plane + 8 * i, off)
        farthest = where_above(off, worst, repeated(np.float64(i)), farthest)
        worst = where_above(off, worst, off, worst)
    return odd, farthest, plus(total, times(odd, minus(unit, times(repeated(2.0), worst))))


@jit
def _coset_rows(distance, other_distance):
    """Return the rows of the coset decisions: 16 classes of how much nearer u is to the second one."""
    step = floor(times(plus(minus(distance, other_distance), repeated(1.0)), repeated(8.0)))
    step = where_above(step, repeated(0.0), _least(step, 15.0), repeated(0.0))
    return times(plus(step, repeated(np.float64(COSETS))), repeated(np.float64(ROW)))


@jit
def _row(off, farthest):
    """Return (row of a coordinate should the sum of all be even, what an odd sum adds to it).

    Parameters
    ----------
    off : lanes
        Distance from the likeliest number.
    farthest : lanes
        The largest such distance of the later coordinates: the contexts of one that lies farther are others.
    """
    flip = where_above(off, farthest, repeated(2.0 * CLASSES * ROW), repeated(np.float64(CLASSES * ROW)))
    return times(_least(floor(times(off, repeated(16.0))), CLASSES - 1.0), repeated(np.float64(ROW))), flip


@jit
def _last(z, parity):
    """Return (likeliest number, direction from it to z, row) of the last coordinate, which has this parity."""
    steps = floor(plus(times(minus(z, parity), repeated(0.5)), repeated(0.5)))
    base = plus(parity, times(repeated(2.0), steps))
    off = minus(z, base)
    direction = where_above(repeated(0.0), off, repeated(-1.0), repeated(1.0))
    context = plus(_least(floor(times(size(off), repeated(8.0))), CLASSES - 1.0), repeated(np.float64(LAST)))
    return base, direction, times(context, repeated(np.float64(ROW)))


@jit
def _toward(base, z):
    """Return the direction in which z lies from the likeliest number."""
    return where_above(base, z, repeated(-1.0), repeated(1.0))


@jit
def _chosen(coset, array, place):
    """Return lanes of the coset's plane."""
    return where_above(coset, repeated(0.0), load(array, 64 + place), load(array, place))


@jit
def dithers(words, start, count, u):
    """Write the dithers of ``count`` blocks."""
    for b in range(count):
        for i in range(8):
            u[8 * i + b] = (np.float64(words[start + 8 * b + i]) + 0.5) * _UNIT


@jit
def symbols(u, y, bases, offs, points, flips, rows, aways):
    """Write the nine decisions of eight blocks near y, each a context and a distance from the likeliest.

    Parameters
    ----------
    u, y : float64
        The dithers and what is quantised, lanes.
    bases, offs, points, flips : float64
        Overwritten, two planes of lanes.
    rows, aways : int64
        Filled, shape (72,): decision j of block b in place 8 j + b, the coset first.  Of a context its row's start.
    """
    zero, unit = repeated(0.0), repeated(1.0)
    sum_0, _, near_0 = nearest(u, 0.0, bases, offs)
    sum_1, _, near_1 = nearest(u, 0.5, bases, offs)
    store_integers(rows, 0, _coset_rows(near_0, near_1))
    odd_0, farthest_0, distance_0 = nearest(y, 0.0, points, flips)
    odd_1, farthest_1, distance_1 = nearest(y, 0.5, points, flips)
    coset = where_above(distance_0, distance_1, unit, zero)
    store_integers(aways, 0, coset)
    moves = where_above(coset, zero, odd_1, odd_0)
    mover = where_above(coset, zero, farthest_1, farthest_0)
    odd = where_above(coset, zero, sum_1, sum_0)
    half, farthest = times(coset, repeated(0.5)), repeated(-1.0)
    for i in range(7, -1, -1):
        off = _chosen(coset, offs, 8 * i)
        store(flips, 8 * i, _row(off, farthest)[1])
        farthest = where_above(off, farthest, off, farthest)
    for i in range(8):
        point, base, z = _chosen(coset, points, 8 * i), _chosen(coset, bases, 8 * i), minus(load(u, 8 * i), half)
        step = where_above(minus(load(y, 8 * i), half), point, unit, repeated(-1.0))
        moved = where_above(unit, size(minus(mover, repeated(np.float64(i)))), moves, zero)
        point = plus(point, times(moved, step))
        if i < 7:
            away = minus(point, base)
            row = plus(_row(_chosen(coset, offs, 8 * i), zero)[0], times(odd, load(flips, 8 * i)))
            store_integers(aways, 8 * i + 8, times(away, _toward(base, z)))
            store_integers(rows, 8 * i + 8, row)
            odd = _differ(odd, _parity(away))
        else:
            base, direction, row = _last(z, _differ(odd, _parity(base)))
            store_integers(aways, 64, times(times(minus(point, base), repeated(0.5)), direction))
            store_integers(rows, 64, row)


@jit
def candidates(u, bases, offs, plan):
    """Write what the decisions of eight blocks may mean, for both cosets c and parities p.

    Parameters
    ----------
    u : float64
        The dithers, lanes.
    bases, offs : float64
        Filled for each coset: the likeliest numbers and their distances, two planes of lanes.
    plan : int64
        Filled, shape (SUMS + 16,): the rows of the coset decisions; from place ``STARTS`` + 64 (2 c + p) on lanes of
        coordinates, the row of the context where p is the parity of the sum if this and all later coordinates take
        their likeliest number; and from ``SUMS`` on for each coset the first p.
    """
    sum_0, _, near_0 = nearest(u, 0.0, bases, offs)
    sum_1, _, near_1 = nearest(u, 0.5, bases, offs)
    store_integers(plan, 0, _coset_rows(near_0, near_1))
    store_integers(plan, SUMS, sum_0), store_integers(plan, SUMS + 8, sum_1)
    for c in range(2):
        last = load(bases, 64 * c + 56)
        for p in range(2):
            parity = _differ(repeated(np.float64(p)), _parity(last))
            z = minus(load(u, 56), repeated(0.5 * c))
            store_integers(plan, STARTS + 64 * (2 * c + p) + 56, _last(z, parity)[2])
        farthest = load(offs, 64 * c + 56)
        for i in range(6, -1, -1):
            off = load(offs, 64 * c + 8 * i)
            row, flip = _row(off, farthest)
            place = STARTS + 128 * c + 8 * i
            store_integers(plan, place, row), store_integers(plan, place + 64, plus(row, flip))
            farthest = where_above(off, farthest, off, farthest)


@jit
def errors(u, bases, aways):
    """Replace the distances from the likeliest numbers, in their directions, by q - u: lanes, after those of cosets."""
    coset, parity = load(aways, 0), repeated(0.0)
    half = times(coset, repeated(0.5))
    for i in range(8):
        base, z, away = _chosen(coset, bases, 8 * i), minus(load(u, 8 * i), half), load(aways, 8 * i + 8)
        if i < 7:
            point = plus(base, times(away, _toward(base, z)))
            parity = _differ(parity, _parity(point))
        else:
            base, direction, _ = _last(z, parity)
            point = plus(base, times(plus(away, away), direction))
        store(aways, 8 * i + 8, minus(plus(point, half), load(u, 8 * i)))


@jit
def single(word):
    """Return (dither, likeliest number, direction from it to the dither, row) after the last full block."""
    z = (np.float64(word) + 0.5) * _UNIT
    base = np.int64(np.floor(z + 0.5))
    step = np.int64(abs(z - base) * 16)
    return z, base, 1 if z >= base else -1, (SINGLES + (step if step < CLASSES else CLASSES - 1)) * ROW
