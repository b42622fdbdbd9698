"""Stochastic rounding to a norm times powers of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self

import numpy as np
import torch

from bounds.claims import Unbiased

from .. import rows
from ..compilation import jit
from ..kernels import kernels_for
from ..key import Key
from ..message import CorruptMessage
from ..quantisers.lloyd_max import unpack_levels
from ..quantisers.scale import TINY, largest, round_up_to_float32
from ..random import bits32_of_rows
from ..rate import Rate
from ..streamed import Streamed

UNIT = 2.0**-32  # a random word times UNIT is uniform on [0, 1)
MOST_LEVELS = 127
DIGITS = 6  # base-4 digits of A that are enumerated


@jit
def _indices(x, scale, levels, negative, words, out):
    """Round to index 0 for zero or i for 2^(i - levels), and add ``negative`` where x < 0 and the index is not 0."""
    least = 2.0 ** (1 - levels)
    for i in range(x.size):
        t = np.float64(abs(x[i])) / scale
        if t < least:
            index, share = np.int64(0), t / least
        else:
            pattern = np.float64(t).view(np.int64)
            index = (pattern >> 52) - 1023 + levels
            share = np.float64(pattern & 0xFFFFFFFFFFFFF) * 2.0**-52
        index += np.float64(words[i]) * UNIT < share
        out[i] = index + negative if index > 0 and x[i] < 0 else index


@dataclass(frozen=True)
class NaturalDithering(Streamed):
    """Round ``|x_i| / N`` stochastically to a neighbour among 0, 2^(1-s), ..., 1/2, 1; send N, signs and indices.

    Parameters
    ----------
    x : float tensor, shape (d,)
    levels : int, optional
        s, 1 .. 127.
    norm : {"l2", "max"}, optional
        N is the Euclidean norm ("l2", rounded up to binary32) or the largest magnitude ("max").

    Raises
    ------
    ValueError
        For a parameter out of range or a norm beyond binary32.

    Notes
    -----
    Unbiased (each coordinate to 2^-32 of its cell), the probability linear between the levels; omega is sharp: see
    ``omega_max`` and ``omega_l2`` (algorithm: Horvath et al. 2019, who give 1/8 + q min(1, q), q = sqrt(d) 2^(1-s), for
    the Euclidean norm). 32 bits and 1 + ceil(log2(s + 1)) a coordinate.
    """

    levels: int = 7
    norm: Literal["l2", "max"] = "l2"

    name = "natural_dithering"
    head_name = "norm"
    sources = ("horvath2019natural",)
    randomness = "private"
    rate = Rate("levels", few=1, many=MOST_LEVELS)
    equivariant = frozenset({"scale", "sign"})

    def __post_init__(self) -> None:
        if not 1 <= self.levels <= MOST_LEVELS:
            raise ValueError(f"levels must satisfy 1 <= levels <= {MOST_LEVELS}; got levels = {self.levels}")
        if self.norm not in ("l2", "max"):
            raise ValueError(f'norm must be "l2" or "max"; got {self.norm!r}')

    def claim(self, d: int) -> Unbiased:
        """Return the sharp omega."""
        return Unbiased(omega_max(self.levels, d) if self.norm == "max" else omega_l2(self.levels, d))

    def witness(self, d: int) -> np.ndarray:
        """Return a vector that reaches omega.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        s = self.levels
        if self.norm == "max":
            omega, least = omega_max(s, d), 2.0 ** (1 - s)
            fine = (math.sqrt(1 + (d - 1) * least**2) - 1) / 2 >= omega
            return np.where(np.arange(d) == 0, 1.0, (least if fine else 1.5) / (2 * (1 + omega)))
        return _witness_l2(s, d)

    def claim_at(self, x: np.ndarray) -> Unbiased:
        """Return the exact relative variance at one non-zero vector, without the rounding of the norm.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        wide = np.abs(np.asarray(x, np.float64))
        t = wide / (wide.max() if self.norm == "max" else np.linalg.norm(wide))
        below = np.exp2(np.floor(np.log2(np.maximum(t, 2.0**-200))))
        coarse = t >= 2.0 ** (1 - self.levels)
        variance = np.where(coarse, (t - below) * (2 * below - t), t * (2.0 ** (1 - self.levels) - t))
        return Unbiased(max(0.0, float(variance.sum() / (t @ t))), tight=True)

    @property
    def width(self) -> int:  # type: ignore[override]
        """Bits per coordinate."""
        return 1 + self.levels.bit_length()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(levels=3), cls(levels=1), cls(levels=7, norm="max")

    def _statistics(self, x: torch.Tensor, step: int) -> np.ndarray:
        vector, norms = x.view(-1), kernels_for(x).norms
        return np.stack([norms.largest(vector, step).double().numpy(), norms.energy(vector, step).numpy()], axis=1)

    def _number(self, top: float, total: float, d: int) -> float:
        if top < TINY:
            return 0.0
        return round_up_to_float32(math.sqrt(total)) if self.norm == "l2" else top

    def _fields(self, x: np.ndarray, start: int, numbers: list[float], keys: Sequence[Key]) -> np.ndarray:
        codes, words = np.zeros(x.shape, np.uint32), bits32_of_rows(keys, x.shape[1], start=start)
        for row, norm in enumerate(numbers):
            if norm > 0:
                _indices(x[row], norm, self.levels, 1 << (self.width - 1), words[row], codes[row])
        return rows.packed(codes, self.width)

    def _values(self, fields: np.ndarray, start: int, numbers: list[float], out: np.ndarray) -> list[float]:
        """Decode one run; return its largest magnitude."""
        tops = []
        for row, norm in enumerate(numbers):
            levels = (norm * _table(self.levels, self.width)).astype(np.float32)
            unpack_levels(fields[row], self.width, levels, out[row])
            tops.append(float(largest(out[row])))
            if math.isnan(tops[-1]):
                raise CorruptMessage(f"indices must be at most {self.levels}, and a zero unsigned")
            if norm == 0 and fields[row].any():
                raise CorruptMessage("every index of a zero vector must be 0")
        return tops

    def _check(self, answers: list[list[float]], numbers: list[float]) -> None:
        if self.norm == "max" and [max(tops) for tops in zip(*answers, strict=True)] != numbers:
            raise CorruptMessage("the largest magnitude must equal the norm")


@lru_cache(maxsize=8)
def _table(levels: int, width: int) -> np.ndarray:
    """Return the level of each code, NaN for an invalid code: float64, shape (2^width,)."""
    half = np.full(1 << (width - 1), np.nan)
    half[: levels + 1] = np.exp2(np.arange(levels + 1.0) - levels)
    half[0] = 0
    table = np.concatenate([half, -half])
    table[half.size] = np.nan
    return table


def omega_max(levels: int, d: int) -> float:
    """Return the sharp omega for the largest magnitude.

    That coordinate is exact.  The others maximise g(t) - omega t^2 with g the variance of a cell, all at one t:
    t = h/(2 (1 + omega)) below the smallest level h = 2^(1-s), which gives (sqrt(1 + (d-1) h^2) - 1)/2, or
    t = 3/(4 (1 + omega)) between 1/2 and 1, which gives 16 omega^2 + (8 d + 8) omega = d - 1.
    """
    fine = (math.sqrt(1 + (d - 1) * 4.0 ** (1 - levels)) - 1) / 2
    coarse = (d - 1) / (4 * (d + 1) + math.sqrt(16 * (d + 1) ** 2 + 16 * (d - 1))) if levels > 1 else 0.0
    return max(fine, coarse)


@lru_cache(maxsize=1024)
def omega_l2(levels: int, d: int) -> float:
    """Return the sharp omega for the Euclidean norm: exact for s <= 7, else an upper limit less than 10^-6 above.

    Maximise sum g(b_i) over sum b_i = 1, b = t^2.  g is 3 l sqrt(b) - b - 2 l^2 between the levels l and 2 l, and
    h sqrt(b) - b below the smallest, h = 2^(1-s): concave in pieces with convex kinks, so at a maximum no b_i is
    at a kink and coordinates in one piece are equal, t = 3 l c or h c with one c.  With n coordinates above h, A
    the sum of their l^2 and E = 9 A + (d - n) h^2, sum b_i = 1 means c = 1/sqrt(E), and ::

        sum g = sqrt(E) - 1 - 2 A,    9/4 <= E <= 9 if n > 0, E >= 1 if n = 0.

    Given A, the fewest coordinates are best: n is the sum of the base-4 digits of A (the first may exceed 3 only
    at A = 1, where the variance is 0).  Beyond six digits the sum is replaced by its maximum over the interval
    between two prefixes, with at least one more coordinate.  Relaxed to real A this is 1/8 + 2 (d - n) h^2/9.
    """
    prefix, _, n = _prefixes(levels)
    best = float(_sum_g(prefix, prefix, n, levels, d).max())
    if levels - 1 > DIGITS:  # between two prefixes: at least one more coordinate
        best = max(best, float(_sum_g(prefix, prefix + 4.0**-DIGITS, n + 1, levels, d).max()))
    return max(0.0, best)


def _prefixes(levels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return every A of at most 6 base-4 digits, its digits and their sum."""
    kept = min(levels - 1, DIGITS)
    digits = np.arange(4**kept)[:, None] // 4 ** np.arange(kept - 1, -1, -1) % 4
    return np.arange(4**kept) / 4**kept, digits, digits.sum(axis=1)


def _sum_g(start: np.ndarray, stop: np.ndarray, n: np.ndarray, levels: int, d: int) -> np.ndarray:
    """Return the largest sum of g for A in [start, stop] and n coordinates above h, or -inf if none is possible."""
    fine = np.maximum(d - n, 0) * 4.0 ** (1 - levels)
    low = np.maximum(start, np.where(n > 0, 9 / 4 - fine, 1 - fine) / 9)
    high = np.minimum(stop, (9 - fine) / 9)
    high = np.where(n > 0, high, stop)
    a = np.clip((81 / 16 - fine) / 9, low, np.maximum(low, high))
    return np.where((low <= high) & (n <= d), np.sqrt(9 * a + fine) - 1 - 2 * a, -np.inf)


def _witness_l2(levels: int, d: int) -> np.ndarray:
    prefix, digits, n = _prefixes(levels)
    most = int(_sum_g(prefix, prefix, n, levels, d).argmax())
    counts = digits[most]
    coarse = np.repeat(np.exp2(-1.0 - np.arange(counts.size)), counts)
    c = 1 / math.sqrt(9 * prefix[most] + (d - coarse.size) * 4.0 ** (1 - levels))
    return np.concatenate([3 * c * coarse, np.full(d - coarse.size, c * 2.0 ** (1 - levels))])
