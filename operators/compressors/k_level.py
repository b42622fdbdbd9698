"""Stochastic k-level quantisation between the extremes, of a vector and of its rotation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
import torch

from bounds.claims import Unbiased

from .. import rows
from ..compilation import jit
from ..kernels.philox import TILE
from ..kernels.threads import shared
from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Size
from ..pieces import RUN
from ..quantisers.rotation import HAAR_LIMIT, Rotation, prescale, unscale
from ..quantisers.scale import nearest, negligible
from ..random import bits32_of_rows
from ..rate import Rate
from ..streamed import Streamed

# Largest and least coordinate of a uniform unit vector; ``bounds.special.sphere_quantiser`` is about any one.

_RANGE = 10.0  # normal numbers beyond are too rare to matter in float64


@lru_cache(maxsize=64)
def extremes(d: int) -> tuple[float, float]:
    """Return (d E(max u - min u)^2, d E max u min u) for u uniform on the unit sphere of R^d, d >= 2.

    Both are the moments of d independent standard normal numbers, since quadratic forms scale with ``E|g|^2 = d``.
    With H(x, y) = P(min < x, max > y) = 1 - F(y)^d - (1 - F(x))^d + (F(y) - F(x))^d for x < y, the mean square range is
    2 times the integral of H over x < y; and max min = (max^2 + min^2 - range^2)/2.
    """
    from scipy.special import ndtr

    nodes, weights = np.polynomial.legendre.leggauss(200)
    x, gap = _RANGE * nodes[:, None], _RANGE * (nodes[None] + 1)
    low, high = ndtr(x), ndtr(x + gap)
    both = 1 - high**d - (1 - low) ** d + np.maximum(high - low, 0) ** d
    squared = float(2 * _RANGE**2 * (weights @ both @ weights))
    v = _RANGE * nodes
    density = d * ndtr(v) ** (d - 1) * np.exp(-v * v / 2) / math.sqrt(2 * math.pi)
    return squared, float(_RANGE * (weights @ (v * v * density))) - squared / 2


# Stochastic rounding to k levels between the smallest and the largest coordinate.

ENDS_BYTES = 8
UNIT = 2.0**-32  # a random word times UNIT is uniform on [0, 1)
MOST = 1 << 16


@jit
def _levels(x, low, high, most, words, out):
    span = np.float64(high) - np.float64(low)
    for i in range(x.size):
        if x[i] == high:
            out[i] = most
        else:
            a = most * (np.float64(x[i]) - np.float64(low)) / span
            out[i] = min(np.int64(a + np.float64(words[i]) * UNIT), most)


@jit
def _values(levels, low, step, high, most, out):
    """Fill ``out`` with the values of the levels; return the smallest and the largest level."""
    first, last = np.uint32(0xFFFFFFFF), np.uint32(0)
    for i in range(levels.size):
        level = levels[i]
        first, last = min(first, level), max(last, level)
        out[i] = high if level == most else np.float32(low + step * np.float64(level))
    return first, last


@dataclass(frozen=True)
class KLevel(Streamed):
    """Send min x, max x and, per coordinate, one of the two nearest among k equally spaced levels, at random.

    Parameters
    ----------
    x : float tensor, shape (d,)
    k : int, optional
        Levels, 2 .. 65536.

    Raises
    ------
    ValueError
        For a k out of range.

    Notes
    -----
    Unbiased (each coordinate to 2^-32 of a step); with D = max(0, d - 2) sharp for every k: omega = D/(2 (k-1)^2) for
    even k, reached at (1, -1, 0, ..., 0), and omega = (d/4) (sqrt(1 + 4 D/(d (k-1)^2)) - 1) for odd k, see ``omega``
    (algorithm, and d/(2 (k-1)^2) for every k: Suresh et al. 2017). 64 bits and ceil(log2 k) a coordinate.
    """

    k: int = 16

    name = "klevel"
    sources = ("suresh2017",)
    randomness = "private"
    rate = Rate("k", few=2, many=MOST)
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        if not 2 <= self.k <= MOST:
            raise ValueError(f"k must satisfy 2 <= k <= {MOST}; got k = {self.k}")

    def claim(self, d: int) -> Unbiased:
        """Return the sharp omega."""
        return Unbiased(omega(self.k, d))

    def witness(self, d: int) -> np.ndarray:
        """Return a vector that reaches omega: two ends, all others where variance over energy is largest.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        if d == 1:
            return np.ones(1)
        shift, rest = (0.0, 0.0) if self.k % 2 == 0 else _odd(self.k, d)
        half = (self.k - 1) / 2
        return np.concatenate([[half + shift, shift - half], np.full(d - 2, -rest)])

    def claim_at(self, x: np.ndarray) -> Unbiased:
        """Return the exact relative variance at one non-zero vector.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        wide = np.asarray(x, np.float64)
        step = (wide.max() - wide.min()) / (self.k - 1)
        rest = np.mod((wide - wide.min()) / step, 1) if step > 0 else np.zeros_like(wide)
        return Unbiased(float((rest * (1 - rest)).sum()) * step**2 / float(wide @ wide), tight=True)

    @property
    def width(self) -> int:  # type: ignore[override]
        """Bits per coordinate."""
        return (self.k - 1).bit_length()

    def _count(self, d: int) -> int:
        return 2

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(k=2), cls(k=3)

    def _statistics(self, x: torch.Tensor, step: int) -> np.ndarray:
        """Return the ends of every row."""
        return np.array([ends(row) for row in x.numpy().reshape(-1, x.shape[-1])])

    def _combined(self, statistics: np.ndarray) -> np.ndarray:
        return np.array([[statistics[:, 0].min(), statistics[:, 1].max()]])

    def _numbers(self, statistics: np.ndarray, d: int) -> list[float]:
        return statistics.reshape(-1).tolist()

    def _words(self, keys: Sequence[Key], n: int, start: int) -> np.ndarray:
        """Return the words of n coordinates of every row, from coordinate ``start`` on."""
        return bits32_of_rows(keys, n, start=start)

    def _fields(self, x: np.ndarray, start: int, numbers: list[float], keys: Sequence[Key]) -> np.ndarray:
        levels, words = np.zeros(x.shape, np.uint32), self._words(keys, x.shape[1], start)
        for row, (low, high) in enumerate(zip(numbers[::2], numbers[1::2], strict=True)):
            if low < high:
                _levels(x[row], np.float32(low), np.float32(high), self.k - 1, words[row], levels[row])
        return rows.packed(levels, self.width)

    def round_stochastically(self, x: np.ndarray, factor: float, key: Key) -> tuple[np.ndarray, int]:
        """Return (payload, bits) of x / factor, rounded and packed run by run.

        Parameters
        ----------
        x : ndarray
            Finite float32, shape (d,).
        factor : float
            A power of two, by which the ends are divided when they are sent.
        key : Key
            Stream of the words.
        """
        numbers = ends(x)
        sent = [float(np.float32(end / factor)) for end in numbers]  # subnormal ends may coincide
        parts = [(part, x[part]) for part in self._parts(x.size)]
        payload, bits = self._written(sent if sent[0] == sent[1] else numbers, parts, x.size, key)
        payload[:ENDS_BYTES] = self._head(sent)
        return payload, bits

    def _checked(self, numbers: list[float]) -> list[float]:
        for low, high in zip(numbers[::2], numbers[1::2], strict=True):
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise CorruptMessage(f"the ends must be finite and in order; got {low} and {high}")
        return numbers

    def _values(self, fields: np.ndarray, start: int, numbers: list[float], out: np.ndarray) -> list[tuple[int, int]]:
        """Decode one run of every row; return the smallest and the largest level of each."""
        levels, reached = rows.unpacked(fields, out.shape[1], self.width), []
        for x, given, low, high in zip(out, levels, numbers[::2], numbers[1::2], strict=True):
            step = (high - low) / (self.k - 1)
            reached.append(_values(given, low, step, np.float32(high), np.uint32(self.k - 1), x))
        return reached

    def _check(self, answers: list[list[tuple[int, int]]], numbers: list[float]) -> None:
        for low, high, reached in zip(numbers[::2], numbers[1::2], zip(*answers, strict=True), strict=True):
            first, last = min(reached)[0], max(largest for _, largest in reached)
            if first != 0 or last != (self.k - 1 if high > low else 0):
                raise CorruptMessage(f"both ends must be reached; got levels {first} to {last}")


def ends(x: np.ndarray) -> tuple[float, float]:
    """Return min x and max x, with 0 for a negative zero.

    Parameters
    ----------
    x : ndarray
        Finite float32, shape (d,).
    """

    def work(start: int, stop: int) -> list[tuple[np.float32, np.float32]]:
        runs = (x[begin : min(begin + RUN, stop)] for begin in range(start, stop, RUN))  # in the cache for both
        return [(run.min(), run.max()) for run in runs]

    pairs = [pair for part in shared(x.size, TILE, work) for pair in part]
    return float(min(low for low, _ in pairs)) + 0.0, float(max(high for _, high in pairs)) + 0.0


def omega(k: int, d: int) -> float:
    """Return the sharp constant of k levels at dimension d.

    Let the step be 1, K = k - 1, N = d - 2, the ends -K/2 + s and K/2 + s, exact, with energy K^2/2 + 2 s^2.  Every
    other coordinate has at most the variance of the worst one, so let them all be -y, and let a = ``|s| + |y|`` be the
    distance from the centre of the grid, which for odd K lies between two levels: variance N/4 at s = y = 0 reaches the
    largest possible N/4 at the least possible energy K^2/2.  For even K the centre is a level, the variance N a (1 -
    a), and the least energy at given a is K^2/2 + 2 N a^2/d, at s = N y/2; the ratio is largest at a = 1/(1 + sqrt(1 +
    1/r)), r = K^2 d/(4 N), where it is (d/4) (sqrt(1 + 1/r) - 1).
    """
    n, span = max(0, d - 2), float(k - 1) ** 2
    if k % 2 == 0:
        return n / (2 * span)
    return n / span / (math.sqrt(1 + 4 * n / (d * span)) + 1)


def _odd(k: int, d: int) -> tuple[float, float]:
    """Return (s, y) of the derivation in ``omega``."""
    n = d - 2
    if n == 0:
        return 0.0, 0.0
    a = 1 / (1 + math.sqrt(1 + 4 * n / (d * float(k - 1) ** 2)))
    return n * a / d, 2 * a / d


# Stochastic rounding to k levels after a random rotation.

ROTATION, ROUNDING = 0, 1  # folds of the key
ROUNDS = 1  # the rounding is unbiased whatever the rotation


@dataclass(frozen=True)
class RotatedKLevel(Operator):
    """Rotate x and send the result as ``KLevel`` does: its two ends and one of k levels per coordinate.

    Parameters
    ----------
    x : float tensor, shape (d,)
    k : int, optional
        Levels, 2 .. 65536.

    Raises
    ------
    ValueError
        For a k out of range, or an end beyond binary32.

    Notes
    -----
    Unbiased (each coordinate to 2^-32 of a step), whatever the rotation (algorithm: Suresh et al. 2017).

    d <= 64 : the rotation is Haar-distributed.  With M and m the extremes of d standard normal numbers,
    k = 2 : omega = -E M m - 1 + 2/d for every x, the mean of sum (z_i - m)(M - z_i) on the sphere;
    k > 2 : omega <= (1 - 2/d) E (M - m)^2 / (4 (k-1)^2), as all but two coordinates have at most a quarter of
    the squared step as variance; or KLevel's constant if that is smaller.

    d > 64 : one Hadamard rotation; only KLevel's constant is proved, while most vectors have about that of normal z,
    which grows as ln d and not as d.

    64 bits and ceil(log2 k) a coordinate.
    """

    k: int = 16

    name = "rotated_klevel"
    sources = ("suresh2017",)
    randomness = "shared"
    rate = Rate("k", few=2, many=1 << 16)
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        KLevel(self.k)

    def claim(self, d: int) -> Unbiased:
        """Return the best known constant, exact for two levels and d <= 64."""
        if d == 1 or d > HAAR_LIMIT:
            return Unbiased(omega(self.k, d))
        squared_range, product = extremes(d)
        if self.k == 2:
            return Unbiased(max(0.0, -product - 1 + 2 / d), tight=True)
        return Unbiased(min(omega(self.k, d), (1 - 2 / d) * squared_range / (4 * (self.k - 1) ** 2)))

    def bits(self, d: int) -> Size:
        """Return the bits of KLevel."""
        return KLevel(self.k).bits(d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(2)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        if negligible(x):
            return KLevel(self.k)._encode(np.zeros(x.size, np.float32), key)
        y, factor = prescale(x)
        z = Rotation(x.size, key.fold_in(ROTATION), ROUNDS).forward(y)
        low, high = ends(z)
        nearest(math.sqrt(x.size) * max(high, -low) / factor)  # so that every decoded entry fits binary32
        return KLevel(self.k).round_stochastically(z, factor, key.fold_in(ROUNDING))

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        assert key is not None
        z = KLevel(self.k)._decode(payload, bits, d, None)
        if not z.any():
            return z
        y, factor = prescale(z)
        return unscale(Rotation(d, key.fold_in(ROTATION), ROUNDS).inverse(y), 1 / factor)
