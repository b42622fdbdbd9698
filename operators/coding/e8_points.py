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
from ..compilation.simd import choose, floor, size, store
from ..compilation.simd import load_8 as load
from ..compilation.simd import repeated_8 as repeated
from .e8_model import CLASSES, COSETS, LAST, SINGLES, SYMBOLS

BLOCKS = 8  # at once
ROW = float(SYMBOLS + 1)  # counts of a context and their sum
STARTS, SUMS = 8, 8 + 256  # where the coordinates and the sums begin in a plan, after the cosets
_UNIT = 2.0**-31  # of the dither, which lies in (0, 2)


@jit
def _parity(a):
    """Return 0 for an even number, 1 for an odd one."""
    return a - 2.0 * floor(a * 0.5)


@jit
def _differ(a, b):
    """Return the parity of a sum from those of its terms."""
    return size(a - b)


@jit
def _least(a, most):
    return choose(a < most, a, most)


@jit
def nearest(y, half, points, offs):
    """Write whole numbers nearest to y - half, and how far they are; return what a point of D8 needs.

    That is: whether their sum is odd, which of them lies farthest, as it then moves to its second nearest number, and
    the squared distance of the result.  Both arrays are filled from place 128 ``half`` on.
    """
    plane, zero, worst = np.int64(128 * half), repeated(0.0), repeated(-1.0)
    odd, total, farthest = zero, zero, zero
    for i in range(8):
        z = load(y, 8 * i) - half
        f = floor(z + 0.5)
        off = z - f
        odd = _differ(odd, _parity(f))
        total = total + off * off
        off = size(off)
        store(points, plane + 8 * i, f), store(offs, plane + 8 * i, off)
        farthest = choose(off > worst, np.float64(i), farthest)
        worst = choose(off > worst, off, worst)
    return odd, farthest, total + odd * (1.0 - 2.0 * worst)


@jit
def _coset_rows(distance, other_distance):
    """Return the rows of the coset decisions: 16 classes of how much nearer u is to the second one."""
    step = floor((distance - other_distance + 1.0) * 8.0)
    return (choose(step > 0.0, _least(step, 15.0), 0.0) + np.float64(COSETS)) * ROW


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
    flip = choose(off > farthest, 2.0 * CLASSES * ROW, CLASSES * ROW)
    return _least(floor(off * 16.0), CLASSES - 1.0) * ROW, flip


@jit
def _last(z, parity):
    """Return (likeliest number, direction from it to z, row) of the last coordinate, which has this parity."""
    base = parity + 2.0 * floor((z - parity) * 0.5 + 0.5)
    off = z - base
    context = _least(floor(size(off) * 8.0), CLASSES - 1.0) + np.float64(LAST)
    return base, choose(off < 0.0, -1.0, 1.0), context * ROW


@jit
def _toward(base, z):
    """Return the direction in which z lies from the likeliest number."""
    return choose(base > z, -1.0, 1.0)


@jit
def _chosen(coset, array, place):
    """Return lanes of the coset's plane."""
    return choose(coset > 0.0, load(array, 64 + place), load(array, place))


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
    sum_0, _, near_0 = nearest(u, 0.0, bases, offs)
    sum_1, _, near_1 = nearest(u, 0.5, bases, offs)
    store(rows, 0, _coset_rows(near_0, near_1))
    odd_0, farthest_0, distance_0 = nearest(y, 0.0, points, flips)
    odd_1, farthest_1, distance_1 = nearest(y, 0.5, points, flips)
    second = distance_0 > distance_1
    coset = choose(second, 1.0, 0.0)
    store(aways, 0, coset)
    moves, mover = choose(second, odd_1, odd_0), choose(second, farthest_1, farthest_0)
    odd, half, farthest = choose(second, sum_1, sum_0), coset * 0.5, repeated(-1.0)
    for i in range(7, -1, -1):
        off = _chosen(coset, offs, 8 * i)
        store(flips, 8 * i, _row(off, farthest)[1])
        farthest = choose(off > farthest, off, farthest)
    for i in range(8):
        point, base, z = _chosen(coset, points, 8 * i), _chosen(coset, bases, 8 * i), load(u, 8 * i) - half
        step = choose(load(y, 8 * i) - half > point, 1.0, -1.0)
        point = point + choose(size(mover - np.float64(i)) < 1.0, moves, 0.0) * step
        if i < 7:
            away = point - base
            store(aways, 8 * i + 8, away * _toward(base, z))
            store(rows, 8 * i + 8, _row(_chosen(coset, offs, 8 * i), farthest)[0] + odd * load(flips, 8 * i))
            odd = _differ(odd, _parity(away))
        else:
            base, direction, row = _last(z, _differ(odd, _parity(base)))
            store(aways, 64, (point - base) * 0.5 * direction)
            store(rows, 64, row)


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
    store(plan, 0, _coset_rows(near_0, near_1))
    store(plan, SUMS, sum_0), store(plan, SUMS + 8, sum_1)
    for c in range(2):
        last = load(bases, 64 * c + 56)
        for p in range(2):
            parity = _differ(repeated(np.float64(p)), _parity(last))
            store(plan, STARTS + 64 * (2 * c + p) + 56, _last(load(u, 56) - 0.5 * c, parity)[2])
        farthest = load(offs, 64 * c + 56)
        for i in range(6, -1, -1):
            off = load(offs, 64 * c + 8 * i)
            row, flip = _row(off, farthest)
            place = STARTS + 128 * c + 8 * i
            store(plan, place, row), store(plan, place + 64, row + flip)
            farthest = choose(off > farthest, off, farthest)


@jit
def errors(u, bases, aways):
    """Replace the distances from the likeliest numbers, in their directions, by q - u: lanes, after those of cosets."""
    coset, parity = load(aways, 0), repeated(0.0)
    half = coset * 0.5
    for i in range(8):
        base, z, away = _chosen(coset, bases, 8 * i), load(u, 8 * i) - half, load(aways, 8 * i + 8)
        if i < 7:
            point = base + away * _toward(base, z)
            parity = _differ(parity, _parity(point))
        else:
            base, direction, _ = _last(z, parity)
            point = base + (away + away) * direction
        store(aways, 8 * i + 8, point + half - load(u, 8 * i))


@jit
def single(word):
    """Return (dither, likeliest number, direction from it to the dither, row) after the last full block."""
    z = (np.float64(word) + 0.5) * _UNIT
    base = np.int64(np.floor(z + 0.5))
    step = np.int64(abs(z - base) * 16)
    return z, base, 1 if z >= base else -1, (SINGLES + (step if step < CLASSES else CLASSES - 1)) * np.int64(ROW)
