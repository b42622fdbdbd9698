"""Deterministic Sparse Dithering: uniform levels on the unit sphere, projected back on the input."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from bounds.claims import StrictlyContractive

from ..coding import sparse_levels
from ..coding.support_set import RANKED, support_bits
from ..compilation import jit
from ..key import Key
from ..operator import Size
from ..pieces import InRuns, Runs
from ..quantisers.scale import energy, nearest, negligible, norm_of
from ..rate import Rate

FINEST = 2.0**-30  # keeps levels far below 2^31 at every d that fits memory
COARSEST = 1 - 2.0**-40  # at nu = 1 every level may be zero


@jit
def _round(x, spacing, most, levels):
    """Round to the nearest signed levels."""
    for i in range(x.size):
        n = np.int32(min(np.floor(np.float64(abs(x[i])) / spacing + 0.5), most))
        levels[i] = -n if x[i] < 0 else n


@jit
def _project(x, levels, sums):
    """Add <x, n> to two sums, over even and odd positions, and return ``|n|^2``; only the last run may be odd."""
    a, b, square = sums[0], sums[1], np.int64(0)
    for i in range(0, x.size - 1, 2):
        a += np.float64(x[i]) * np.float64(levels[i])
        b += np.float64(x[i + 1]) * np.float64(levels[i + 1])
        square += np.int64(levels[i]) * np.int64(levels[i]) + np.int64(levels[i + 1]) * np.int64(levels[i + 1])
    if x.size & 1:
        a += np.float64(x[-1]) * np.float64(levels[-1])
        square += np.int64(levels[-1]) * np.int64(levels[-1])
    sums[0], sums[1] = a, b
    return square


def quantise(x: np.ndarray, nu: float) -> tuple[float, np.ndarray]:
    """Return (g, signed levels n), such that g h n projects x on the rounded direction, h = 2 sqrt(nu/d).

    g is a positive binary32 number, 0 if x is negligible.

    Raises
    ------
    ValueError
        If it exceeds binary32.
    """
    levels, sums = np.zeros(x.size, np.int32), np.zeros(2)
    if negligible(x):
        return 0.0, levels
    h = spacing(nu, x.size)
    _round(x, h * math.sqrt(energy(x)), float(highest(nu, x.size)), levels)
    square = _project(x, levels, sums)
    return _scale(sums, square, h, max(float(levels.max()), -float(levels.min()))), levels


def _scale(sums: np.ndarray, square: int, h: float, top: float) -> float:
    """Return g from the two sums, ``|n|^2``, h and the largest level."""
    g = nearest(float(sums[0] + sums[1]) / float(square) / h)
    nearest(g * h * top)
    return g


class Quantised:
    """Levels and scale of a vector that is read run by run.

    The constructor reads it twice for the scale; every call of ``levels`` reads it again.

    Attributes
    ----------
    g : float
        Scale of the levels, as in ``quantise``.
    """

    def __init__(self, runs: Runs, nu: float, d: int) -> None:
        self._runs, self._most, h = runs, float(highest(nu, d)), spacing(nu, d)
        norm, self.g = norm_of(runs, float), 0.0
        if not norm:
            return
        self._spacing, sums, square, top = h * norm, np.zeros(2), 0, 0.0
        for x, levels in self._rounded():
            square += int(_project(x, levels, sums))
            top = max(top, float(levels.max()), -float(levels.min()))
        self.g = _scale(sums, square, h, top)

    def _rounded(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for _, x in self._runs():
            levels = np.zeros(x.size, np.int32)
            _round(x, self._spacing, self._most, levels)
            yield x, levels

    def levels(self) -> Iterator[np.ndarray]:
        """Yield the levels of each run."""
        return (levels for _, levels in self._rounded())


def spacing(nu: float, d: int) -> float:
    """Return the distance h = 2 sqrt(nu/d) of neighbouring levels on the unit sphere."""
    return 2 * math.sqrt(nu / d)


def highest(nu: float, d: int) -> int:
    """Return the level of a one-hot vector."""
    return math.floor(1 / spacing(nu, d) + 0.5)


@dataclass(frozen=True)
class SparseDithering(InRuns):
    """Round ``x/|x|`` to multiples of h = 2 sqrt(nu/d), and send the projection of x on the result.

    Parameters
    ----------
    x : float tensor, shape (d,)
    nu : float, optional
        2^-30 <= nu < 1.

    Raises
    ------
    ValueError
        For nu out of range or a scale beyond binary32.

    Notes
    -----
    Strictly contractive with alpha = nu: the rounding error is at most d h^2/4 = nu, and projecting cannot be worse
    (Albasyoni et al. 2020).  Bits: scale 31, count, signs, unary levels, support within 2 bits of log2 C(d, k); below
    30 + log2 d + 3.35 d at nu = 0.1 and d >= 93.  Zero sends the scale only.
    """

    nu: float = 0.1

    name = "sparse_dithering"
    sources = ("albasyoni2020",)
    randomness = "none"
    rate = Rate("nu", few=COARSEST, many=FINEST)
    projects = True
    equivariant = frozenset({"permutation", "scale", "sign"})

    def __post_init__(self) -> None:
        if not FINEST <= self.nu <= COARSEST:
            raise ValueError(f"nu must satisfy 2^-30 <= nu <= 1 - 2^-40; got nu = {self.nu}")

    def claim(self, d: int) -> StrictlyContractive:
        """Return alpha = nu."""
        return StrictlyContractive(self.nu)

    def bits(self, d: int) -> Size:
        """Return the worst length under the budget sum (n_i - 1/2)^2 <= d/(4 nu) of the non-zero levels."""
        worst = _exact_worst(self.nu, d) if d <= RANKED else _worst(self.nu, d)
        return Size(None, worst, worst)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(nu=0.1), cls(nu=0.01), cls(nu=0.9)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        g, levels = quantise(x, self.nu)
        if g == 0:
            return np.zeros(4, np.uint8), sparse_levels.SCALE_BITS
        return sparse_levels.write(g, levels, 1)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        return sparse_levels.read(payload, bits, d, 1, spacing(self.nu, d), highest(self.nu, d))

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        quantised = Quantised(runs, self.nu, d)
        if quantised.g == 0:
            return np.zeros(4, np.uint8), sparse_levels.SCALE_BITS
        return sparse_levels.write_runs(quantised.g, quantised.levels, d, 1)

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        return sparse_levels.read_runs(
            payload, bits, d, 1, spacing(self.nu, d), highest(self.nu, d), list(self._runs(d))
        )


@lru_cache(maxsize=1024)
def _exact_worst(nu: float, d: int) -> int:
    """Return the largest length over all k, at equal levels m of which as many as the budget allows become m + 1."""
    budget, most = d / (4 * nu) * (1 + 1e-12), 0.0
    for k in range(1, d + 1):
        m = math.floor(0.5 + math.sqrt(budget / k))
        raised = min(k, math.floor((budget - k * (m - 0.5) ** 2) / (2 * m)))
        most = max(most, support_bits(d, k) + k + k * m + raised)
    return sparse_levels.SCALE_BITS + (d - 1).bit_length() + int(most)


@lru_cache(maxsize=1024)
def _worst(nu: float, d: int) -> float:
    def cost(t: float) -> float:
        n = math.floor(0.5 + 1 / (2 * t))
        return max(m - t * (m - 0.5) ** 2 for m in (max(n, 1), n + 1))

    return sparse_levels.ends_bits(d, 1) + d * sparse_levels.per_coordinate(cost, 1 / (4 * nu))
