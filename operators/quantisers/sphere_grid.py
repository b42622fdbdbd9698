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

from ..compilation import jit
from ..kernels.fields.cpu import pack_fields
from .lloyd_max import added

MAX_BITS = 8
STEPS = {2: 0.9957, 3: 0.5860, 4: 0.3352, 5: 0.1881, 6: 0.1041, 7: 0.0569, 8: 0.0308}  # of least error, Max (1960)


def pack_direction(v: np.ndarray, bits: int, out: np.ndarray) -> tuple[float, float]:
    """Write the levels of c, from 0, the most negative, to 2^bits - 1, as fields; return (<v, c>, ``|c|^2``).

    Parameters
    ----------
    v : ndarray
        float32, shape (d,).
    bits : int
        Of a coordinate.
    out : ndarray
        uint8, shape (ceil(bits d/8),).
    """
    if bits == 1:
        return _pack_signs(v, out) / 2, v.size / 4
    codes = _nearest_direction(v, bits)
    pack_fields(codes, bits, out)
    return _moments(v, codes, ((1 << bits) - 1) / 2)


@jit
def _pack_signs(v, out):
    """Write 0 where v_i < 0, else 1; return the sum of ``|v_i|`` in float64."""
    total = np.zeros(8)
    whole = v.size >> 3
    for group in range(whole):
        byte = 0
        for i in range(8):
            value = v[8 * group + i]
            byte |= (not value < 0) << (7 - i)
            total[i] += np.float64(abs(value))
        out[group] = byte
    byte = 0
    for i in range(v.size - 8 * whole):
        byte |= (not v[8 * whole + i] < 0) << (7 - i)
        total[i] += np.float64(abs(v[8 * whole + i]))
    if v.size & 7:
        out[whole] = byte
    return added(total)


@jit
def _moments(v, codes, middle):
    """Return (<v, c>, ``|c|^2``) of the levels c_i = codes_i - middle, in float64."""
    inner, square = np.zeros(8), 0.0
    for i in range(v.size):
        level = np.float64(codes[i]) - middle
        inner[i & 7] += np.float64(v[i]) * level
        square += level * level
    return added(inner), square


def _nearest_direction(v: np.ndarray, bits: int) -> np.ndarray:
    """Return the levels for two bits and more: uint32, shape (d,)."""
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
