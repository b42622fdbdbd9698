"""Scales of a vector: largest magnitude, norm and mean, accumulated in float64 and sent as binary32."""

from __future__ import annotations

import numba
import numpy as np

TINY = 2.0**-126  # below this largest magnitude a scaled operator sends zero
_LARGEST = float(np.finfo(np.float32).max)


@numba.njit(cache=True, nogil=True)
def largest_pattern(patterns):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Largest bit pattern without its sign: above 0x7F7FFFFF if and only if some entry is NaN or infinite."""
    top = np.uint32(0)
    for p in patterns:
        top = max(top, p & np.uint32(0x7FFFFFFF))
    return top


@numba.njit(cache=True, nogil=True)
def largest(x):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """max|x| of a float32 array; 0 for an empty one."""
    a, b, c, d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    whole = x.size - (x.size & 3)
    for i in range(0, whole, 4):
        a, b = max(a, abs(x[i])), max(b, abs(x[i + 1]))
        c, d = max(c, abs(x[i + 2])), max(d, abs(x[i + 3]))
    for i in range(whole, x.size):
        a = max(a, abs(x[i]))
    return max(max(a, b), max(c, d))


@numba.njit(cache=True, nogil=True)
def energy(x):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Sum of squares in float64, in an order that does not depend on the machine."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = x.size - (x.size & 3)
    for i in range(0, whole, 4):
        a += np.float64(x[i]) * np.float64(x[i])
        b += np.float64(x[i + 1]) * np.float64(x[i + 1])
        c += np.float64(x[i + 2]) * np.float64(x[i + 2])
        d += np.float64(x[i + 3]) * np.float64(x[i + 3])
    for i in range(whole, x.size):
        a += np.float64(x[i]) * np.float64(x[i])
    return (a + b) + (c + d)


@numba.njit(cache=True, nogil=True)
def absolute_sum(x):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Sum of magnitudes in float64, in an order that does not depend on the machine."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = x.size - (x.size & 3)
    for i in range(0, whole, 4):
        a += np.float64(abs(x[i]))
        b += np.float64(abs(x[i + 1]))
        c += np.float64(abs(x[i + 2]))
        d += np.float64(abs(x[i + 3]))
    for i in range(whole, x.size):
        a += np.float64(abs(x[i]))
    return (a + b) + (c + d)


def negligible(x: np.ndarray) -> bool:
    """Whether a scaled operator sends the zero vector: max|x| < 2^-126."""
    return bool(largest(x) < TINY)


def upward(value: float) -> float:
    """The least binary32 number that is not below ``value`` >= 0.

    Raises ValueError if that number is infinite.
    """
    if value > _LARGEST:
        raise ValueError(f"the scale of x must fit binary32 (<= {_LARGEST:.4g}); got {value:.4g}: rescale x")
    rounded = np.float32(value)  # compared as a float64: numpy would first round the other side to binary32
    return float(rounded if float(rounded) >= value else np.nextafter(rounded, np.float32(np.inf)))


def upward_all(values: np.ndarray) -> np.ndarray:
    """``upward`` of a float64 array, elementwise, as float64."""
    if values.max() > _LARGEST:
        raise ValueError(f"the scale of x must fit binary32 (<= {_LARGEST:.4g}); got {values.max():.4g}: rescale x")
    rounded = values.astype(np.float32)
    wide = rounded.astype(np.float64)
    return np.where(wide < values, np.nextafter(rounded, np.float32(np.inf)).astype(np.float64), wide)


def nearest(value: float) -> float:
    """The binary32 number nearest to ``value`` >= 0.  Raises ValueError if it is infinite."""
    if value > _LARGEST:
        raise ValueError(f"the scale of x must fit binary32 (<= {_LARGEST:.4g}); got {value:.4g}: rescale x")
    return float(np.float32(value))
