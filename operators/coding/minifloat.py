"""Rounding of binary32 numbers to floating-point formats of fewer significant bits, in integers.

A format has p significant bits, the leading one included, and binades 2^lowest, 2^(lowest + 1), ...; below
2^lowest its numbers are multiples of h 2^lowest, h = 2^(1 - p).  The code of a magnitude counts the numbers of the
format that are smaller, so codes are the bit patterns of IEEE 754 without the sign.
"""

from __future__ import annotations

import math

import numpy as np

from ..compilation import jit

NEAREST = np.empty(0, np.uint32)  # in place of random words
TILE = 4096  # numbers that are rounded at once where all are normal


@jit
def round_floats(patterns, shift, p, lowest, sign, words, out):
    """Codes of 2^shift times binary32 numbers, with the bit ``sign`` added for negative ones but never for zero.

    Parameters
    ----------
    patterns
        uint32, shape (d,).
    words
        One a number for stochastic rounding, or none for rounding to nearest, ties to an even significand (with p = 1
        up).  Stochastic probabilities are exact multiples of 2^-32, rounded down if a number lies more than 8 + p
        binades below 2^lowest.  The caller excludes overflow.
    """
    least = np.uint32(min(max(1, 127 + lowest - shift), 255) << 23)  # that is normal before and after
    for tile in range(0, patterns.size, TILE):
        stop = min(tile + TILE, patterns.size)
        if _round_normal(patterns, tile, stop, shift, p, lowest, sign, words, out) < least:
            for i in range(tile, stop):
                if patterns[i] & np.uint32(0x7FFFFFFF) < least:
                    out[i] = _round(patterns[i], shift, p, lowest, sign, words[i] if words.size > 0 else -1)


@jit
def _round_normal(patterns, start, stop, shift, p, lowest, sign, words, out):
    """Round numbers that are normal before and after, others wrongly; returns the smallest pattern without its sign.

    Of a normal number the leading bits of its pattern count the numbers below it but for a constant: one vector loop.
    """
    drop = np.uint32(24 - p)
    offset = np.uint32((np.int64(shift) - 126 - lowest) << (p - 1))  # modulo 2^32
    below, half = np.uint32((1 << (24 - p)) - 1), np.uint32(1 << (23 - p))
    left, sign = np.uint32(8 + p), np.uint32(sign)
    smallest = np.uint32(0x7FFFFFFF)
    for j in range(np.uint64(start), np.uint64(stop)):
        pattern = np.uint32(patterns[j])
        bits = np.uint32(pattern & np.uint32(0x7FFFFFFF))
        smallest = min(smallest, bits)
        if words.size > 0:
            code = np.uint32((bits >> drop) + (words[j] < np.uint32((bits & below) << left)))
        else:
            even = np.uint32((bits >> drop) & np.uint32(1)) if p > 1 else np.uint32(1)
            code = np.uint32((bits + half - np.uint32(1) + even) >> drop)
        out[j] = np.uint32(code + offset) | (np.uint32(pattern >> np.uint32(31)) * sign)
    return smallest


@jit
def _round(pattern, shift, p, lowest, sign, word):
    """Return the code of any number; ``word`` is below 0 for rounding to nearest."""
    bits = np.int64(pattern & np.uint32(0x7FFFFFFF))
    if bits == 0:
        return np.uint32(0)
    binade, m = bits >> 23, bits & 0x7FFFFF
    if binade > 0:
        m |= 1 << 23
    else:
        binade = np.int64(1)
        while m < 1 << 23:
            m <<= 1
            binade -= 1
    binade += shift - 127 - lowest
    drop = 24 - p - min(binade, 0)
    kept = m >> min(drop, 63)
    below = m - (kept << drop) if drop <= 32 else m
    rest = below << (32 - drop) if drop <= 32 else below >> min(drop - 32, 63)  # in units of 2^-32
    code = (max(binade, 0) << (p - 1)) + kept
    if word >= 0:
        code += np.int64(word) < rest
    else:
        code += rest > 1 << 31 or (rest == 1 << 31 and kept & 1 == 1)
    return np.uint32(code | sign) if pattern >> np.uint32(31) and code > 0 else np.uint32(code)


@jit
def scale_numbers(codes, numbers, factor, sign, out):
    """Write ``factor`` times the number of each code, as binary32; returns the largest code without its sign bit.

    Parameters
    ----------
    codes
        Unsigned integers, shape (d,).
    numbers
        Of every code, float64.
    sign
        The bit that makes a number negative.

    Returns
    -------
    (int, bool)
        And whether a zero is negative.
    """
    most, minus_zero = np.int64(0), False
    for i in range(codes.size):
        code = np.int64(codes[i])
        most = max(most, code & (sign - 1))
        minus_zero |= code == sign
        out[i] = np.float32(numbers[code] * factor)
    return most, minus_zero


def values(p: int, lowest: int, codes: int) -> np.ndarray:
    """Return the magnitudes of codes 0 .. codes - 1, float64."""
    code = np.arange(codes)
    binade = np.maximum((code >> (p - 1)) - 1, 0)
    kept = code - (binade << (p - 1))
    return np.ldexp(kept.astype(np.float64), binade + lowest + 1 - p)


def cells(x: np.ndarray, p: int, lowest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return distance of ``|x|`` to the format's number below it, and the spacing there; float64, shape (d,)."""
    a = np.abs(np.asarray(x, np.float64))
    spacing = np.ldexp(1.0, np.maximum(np.frexp(a)[1] - 1, lowest) + 1 - p)
    return np.mod(a, spacing), spacing


def nearest_alpha(p: int, depth: int, d: int) -> float:
    """Return sharp sup ``|C(x) - x|^2 / |x|^2`` of rounding to nearest, with the largest magnitude in [1, 2) and lowest
    = -depth.

    Write u = h 2^-depth, q = (d - 1) u^2 / 4.  Let alpha be the supremum.  No normal coordinate with error e at y
    has e^2 - alpha y^2 > 0 once alpha >= (h/(2 + h))^2, which y = 1 + h/2 alone reaches; of the others
    e^2 - alpha y^2 is largest at y = u/2, where it is (1 - alpha) u^2/4.  So alpha is the largest root, over the
    first coordinate M, of (1 - alpha) q = alpha M^2 - e(M)^2, and M = 1 + h/2 or M = 1.
    """
    h = 2.0 ** (1 - p)
    q = (d - 1) * (h * 2.0**-depth) ** 2 / 4
    return max((h * h / 4 + q) / ((1 + h / 2) ** 2 + q), q / (1 + q))


def stochastic_omega(p: int, depth: int, d: int) -> float:
    """Return sharp sup ``E|C(x) - x|^2 / |x|^2`` of stochastic rounding, with ``max|x|`` in [1, 2) and lowest = -depth.

    A normal y = 2^e m has variance 4^e (m - 1)(1 + h - m) in the cell above its power of two (others are lower
    relative to y^2), at most h^2/(4 (1 + h)) y^2.  Below 2^-depth, variance - omega y^2 is at most
    u^2/(4 (1 + omega)), at y = u/(2 (1 + omega)), u = h 2^-depth.  With n = d - 1 of these, the best first
    coordinate is M = (2 + h)/(2 (1 + omega)), which gives omega = (h^2 + n u^2)/(4 (1 + h)), or M = 1 if that
    exceeds h/2: then omega (1 + omega) = n u^2/4.
    """
    h = 2.0 ** (1 - p)
    q = (d - 1) * (h * 2.0**-depth) ** 2
    omega = (h * h + q) / (4 * (1 + h))
    return omega if omega <= h / 2 else (math.sqrt(1 + q) - 1) / 2
