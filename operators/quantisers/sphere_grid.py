"""The direction of {+-1/2, +-3/2, ..}^d, 2^b values a coordinate, nearest to that of a vector (Gao et al. 2025).

If c is that direction's point and ``t = |c|^2/<v, c>``, then c is the point nearest to t v: so it is among the
roundings of t v for t > 0.  They change at ``t = k/|v_i|``, k = 1 .. 2^(b-1) - 1, where ``|c_i|`` grows from k - 1/2 to
k + 1/2; in this order <v, c> and ``|c|^2`` are running sums.

Its angle to a uniformly random v, ``|v|^2 = d``, has E tan^2 = E S/(1 - S), S = sin^2, bounded by two facts.  The signs
alone are among the points: tan^2 <= ``d^2/|v|_1^2 - 1``.  And ``S <= T = |v - U(v)|^2/d`` for the uniform quantiser U
of any step h, because U(v)/h is a point.  As S/(1 - S) = S + S tan^2 <= ``T d^2/|v|_1^2``, all v_i alike and ``|v|_1``
at least what v_1 leaves to the others, ::

    E tan^2 <= d^2 E (v_1 - U(v_1))^2/(d - v_1^2) E|u|_1^-2 = d^2/(d - 3) E (w - U'(w))^2 E|u|_1^-2,   d >= 4:

u is uniform on the unit sphere of R^(d-1), and dividing by d - v_1^2 turns the law of v_1 into that of a coordinate
of the sphere of radius sqrt(d) in R^(d-2), times (d-2)/(d (d-3)); w is scaled to E w^2 = 1, and U' is U so scaled.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from bounds.special.inverse_square_of_l1 import inverse_square_of_l1
from bounds.special.sphere_quantiser import level_moments

MAX_BITS = 8
STEPS = {2: 0.9957, 3: 0.5860, 4: 0.3352, 5: 0.1881, 6: 0.1041, 7: 0.0569, 8: 0.0308}  # of least error, Max (1960)


def nearest_direction(v: np.ndarray, bits: int) -> np.ndarray:
    """Return levels from 0, the most negative, to 2^bits - 1: uint32, shape (d,).

    Parameters
    ----------
    v : ndarray, shape (d,)
    """
    if bits == 1:
        return np.logical_not(v < 0).astype(np.uint32)
    half, size = 1 << (bits - 1), np.abs(v.astype(np.float64))
    support = np.flatnonzero(size)
    k = np.arange(1, half)
    grows = np.argsort((k / size[support, None]).ravel(), kind="stable")
    along = size.sum() / 2 + np.concatenate([[0.0], np.cumsum(np.repeat(size[support], half - 1)[grows])])
    square = v.size / 4 + np.concatenate([[0], np.cumsum(np.tile(2 * k, support.size)[grows])])
    taken = grows[: int(np.argmax(along * along / square))]
    steps = np.bincount(support[taken // (half - 1)], minlength=v.size)
    return np.where(v < 0, half - 1 - steps, half + steps).astype(np.uint32)


@lru_cache(maxsize=256)
def mean_square_tangent(bits: int, d: int) -> float:
    """Return E tan^2 of the angle, exact for 1 bit; above, the smaller of the two bounds."""
    signs = d * inverse_square_of_l1(d) - 1
    if bits == 1 or d < 4:
        return max(0.0, signs)
    half, scale = 1 << (bits - 1), STEPS[bits] * math.sqrt((d - 2) / d)
    along, square = level_moments(d - 2, scale * (np.arange(half) + 0.5), scale * np.arange(1, half))
    return min(signs, d * d / (d - 3) * (1 - 2 * along + square) * inverse_square_of_l1(d - 1))
