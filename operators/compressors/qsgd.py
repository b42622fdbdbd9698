"""Stochastic rounding to uniform levels below a norm, with Elias codes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Self

import numba
import numpy as np

from bounds.claims import Unbiased

from ..bitstream import words
from ..codes import elias
from ..codes import levels as coder
from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Size
from ..random import bits32
from ..rounding import stochastic_levels
from ..scale import energy, largest, negligible, upward_all


@numba.njit(cache=True, nogil=True)
def _norms(x, step, euclidean, norms):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for b in range(norms.size):
        part = x[b * step : min((b + 1) * step, x.size)]
        norms[b] = np.sqrt(energy(part)) if euclidean else np.float64(largest(part))


@numba.njit(cache=True, nogil=True)
def _levels(x, step, s, norms, random, levels):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for b in range(norms.size):
        if norms[b] > 0:
            start, stop = b * step, min((b + 1) * step, x.size)
            stochastic_levels(x[start:stop], s, norms[b], random[start:stop], levels[start:stop])


@dataclass(frozen=True)
class QSGD(Operator):
    """Round s |x_i| / N stochastically to an integer level and send N, signs and levels in Elias omega code.

    levels : s, 1 .. 32768.
    norm : N is the Euclidean norm ("l2", rounded up to binary32) or the largest magnitude ("max").
    bucket : treat each run of this many coordinates as a vector of its own; None for one bucket.
    code : per coordinate omega(level + 1) and a sign if it is not 0 ("dense"); a non-zero flag, sign and
        omega(level) ("flag"); or per non-zero omega(gap), sign, omega(level), ended by the gap to the end
        ("sparse").  A bucket of norm 0 sends its norm only.
    x : float tensor, shape (d,).
    Unbiased (each coordinate to 2^-32 N/s).  With d the bucket's length, for the Euclidean norm
    omega = sqrt(d)/s - 1 if s <= sqrt(d)/2, else d/(4 s^2); for the largest magnitude
    omega = (sqrt(1 + (d-1)/s^2) - 1)/2: concave majorants of the rounding variance
    (algorithm: Alistarh et al. 2017).
    Raises ValueError for a parameter out of range or a norm beyond binary32.
    """

    levels: int = 16
    norm: Literal["l2", "max"] = "l2"
    bucket: int | None = None
    code: Literal["dense", "sparse", "flag"] = "sparse"

    name = "qsgd"
    randomness = "private"
    equivariant = frozenset({"scale", "sign"})

    def __post_init__(self) -> None:
        if not 1 <= self.levels <= coder.MOST_LEVELS:
            raise ValueError(f"levels must satisfy 1 <= levels <= {coder.MOST_LEVELS}; got levels = {self.levels}")
        if self.norm not in ("l2", "max"):
            raise ValueError(f'norm must be "l2" or "max"; got {self.norm!r}')
        if self.bucket is not None and self.bucket < 1:
            raise ValueError(f"bucket must be at least 1, or None; got bucket = {self.bucket}")
        if self.code not in coder.CODES:
            raise ValueError(f"code must be one of {', '.join(coder.CODES)}; got {self.code!r}")

    def claim(self, d: int) -> Unbiased:
        """The sharp omega of the longest bucket."""
        s, length = self.levels, min(d, self.bucket or d)
        if self.norm == "max":
            return Unbiased((math.sqrt(1 + (length - 1) / s**2) - 1) / 2)
        if 4 * s * s <= length:
            return Unbiased(math.sqrt(length) / s - 1)
        return Unbiased(length / (4 * s * s))

    def witness(self, d: int) -> np.ndarray | None:
        """A vector that reaches omega, all in the first bucket; none is known for s > sqrt(d)/2 and the L2 norm."""
        s, length = self.levels, min(d, self.bucket or d)
        if self.norm == "l2" and 4 * s * s > length:
            return None
        rest = 1.0 if self.norm == "l2" else 1 / (s + math.sqrt(s * s + length - 1))
        return np.where(np.arange(d) == 0, 1.0, np.where(np.arange(d) < length, rest, 0.0))

    def claim_at(self, x: np.ndarray) -> Unbiased:
        """The exact relative variance of one non-zero vector (norm not rounded)."""
        wide = np.asarray(x, np.float64)
        variance = 0.0
        for start, stop in self._buckets(wide.size):
            part = np.abs(wide[start:stop])
            scale = float(np.linalg.norm(part) if self.norm == "l2" else part.max())
            if scale:
                rest = np.mod(part * self.levels / scale, 1)
                variance += float((rest * (1 - rest)).sum()) * (scale / self.levels) ** 2
        return Unbiased(variance / float(wide @ wide), tight=True)

    def bits(self, d: int) -> Size:
        """Limits of the mean and the worst length under the energy budget of the levels."""
        length = min(d, self.bucket or d)
        whole, rest = divmod(d, length)
        mean, worst = coder.bucket_bits(self.levels, self.norm, self.code, length)
        if rest:
            last = coder.bucket_bits(self.levels, self.norm, self.code, rest)
            return Size(None, whole * mean + last[0], whole * worst + last[1])
        return Size(None, whole * mean, whole * worst)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Both norms, the three codes, with and without buckets."""
        return (
            cls(levels=16),
            cls(levels=1),
            cls(levels=4, norm="max", bucket=64, code="dense"),
            cls(levels=127, bucket=512, code="flag"),
        )

    def _buckets(self, d: int) -> Iterator[tuple[int, int]]:
        step = self.bucket or d
        return ((start, min(start + step, d)) for start in range(0, d, step))

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        if negligible(x):
            x = np.zeros_like(x)
        random, code = bits32(key, x.size), coder.CODES[self.code]
        step = self.bucket or x.size
        norms = np.empty(-(-x.size // step))
        _norms(x, step, self.norm == "l2", norms)
        norms = upward_all(norms)
        levels = np.zeros(x.size, np.int32)
        _levels(x, step, float(self.levels), norms, random, levels)
        patterns = norms.astype(np.float32).view(np.uint32)
        codes, lengths = coder.tables(self.levels)
        bits = int(coder.count_bits(levels, patterns, step, code, lengths))
        out = np.zeros((bits + 7) // 8, np.uint8)
        coder.write(levels, patterns, step, code, codes, lengths, out)
        return out, bits

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        out, full = np.zeros(d, np.float32), self.norm == "max"
        bad = coder.read(
            words(payload),
            bits,
            coder.CODES[self.code],
            self.bucket or d,
            self.levels,
            full,
            elias.prefixes(),
            out,
        )
        if bad > d:
            raise CorruptMessage("bits are left over after the last coordinate")
        if bad:
            raise CorruptMessage(f"the bucket at coordinate {bad - 1} has no norm or no levels of 0 .. {self.levels}")
        return out
