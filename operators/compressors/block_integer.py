"""Small integers with a scale for each block of coordinates: int8 and int4."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self

import numba
import numpy as np

from bounds.claims import StrictlyContractive, Unbiased

from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Randomness, Size
from ..random import bits32
from ..scale import largest

SCALE_BYTES = 4
UNIT = 2.0**-32  # a random word times UNIT is uniform on [0, 1)
ABOVE = 1 + 2.0**-50  # covers the rounding of a reciprocal, so that the largest coordinate is never rounded down
_HALF = np.array([1 << 31], np.uint32)  # the word with which stochastic rounding is rounding to nearest


@numba.njit(cache=True, nogil=True)
def _quantise(x, block, most, words, stride, scales, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Integers -most .. most, int8; words[i * stride] decides coordinate i."""
    for b in range(scales.size):
        start, stop = b * block, min((b + 1) * block, x.size)
        scale = largest(x[start:stop])
        scales[b] = scale
        if scale == 0:
            out[start:stop] = 0
            continue
        per_unit = ABOVE * most / np.float64(scale)
        for i in range(start, stop):
            level = np.int32(np.float64(abs(x[i])) * per_unit + np.float64(words[i * stride]) * UNIT)
            out[i] = np.int8(-level if x[i] < 0 else level)


@numba.njit(cache=True, nogil=True)
def _dequantise(levels, block, most, scales, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Fill ``out``; returns the number of blocks before the first one that no encoder sends."""
    for b in range(scales.size):
        start, stop = b * block, min((b + 1) * block, out.size)
        step = np.float64(scales[b]) / most
        top = np.int64(0)
        for i in range(start, stop):
            level = np.int64(levels[i])
            top = max(top, abs(level))
            out[i] = np.float32(step * level)
        if top != (most if scales[b] > 0 else 0) or not 0 <= scales[b] < np.inf:
            return b
    return scales.size


@dataclass(frozen=True)
class BlockInteger(Operator):
    """Send m = max|x| of each block and each L x_i / m as an integer from -L to L, L = 2^(width-1) - 1.

    width : bits of an integer, 8 (L = 127) or 4 (L = 7); the pattern of -L - 1 is never sent.
    block : coordinates that share a scale; the last block may be shorter.
    rounding : "nearest", halves away from zero, or "stochastic".
    x : float tensor, shape (d,).  With n = min(block, d):
    nearest is strictly contractive with alpha = (n-1)/(4 L^2 + n-1), reached at (1, 1/(2L), ..., 1/(2L));
    stochastic is unbiased (each coordinate to 2^-32 m/L) with omega = (sqrt(1 + (n-1)/L^2) - 1)/2, reached at
    (1, t, ..., t), t = 1/(L + sqrt(L^2 + n-1)).  The largest coordinate of a block is exact; another one at
    y = L|x_i|/m has a squared error of at most min(y, 1/2)^2, or on average rest (1 - rest).
    32 bits a block, then ``width`` bits a coordinate, two's complement.
    Raises ValueError for a parameter out of range.
    """

    width: Literal[4, 8] = 8
    block: int = 64
    rounding: Literal["nearest", "stochastic"] = "nearest"

    name = "block_integer"
    equivariant = frozenset({"scale", "sign"})

    def __post_init__(self) -> None:
        if self.width not in (4, 8):
            raise ValueError(f"width must be 4 or 8; got width = {self.width}")
        if self.block < 1:
            raise ValueError(f"block must be at least 1; got block = {self.block}")
        if self.rounding not in ("nearest", "stochastic"):
            raise ValueError(f'rounding must be "nearest" or "stochastic"; got {self.rounding!r}')

    @property
    def most(self) -> int:
        """L, the largest integer."""
        return (1 << (self.width - 1)) - 1

    @property
    def randomness(self) -> Randomness:  # type: ignore[override]
        """Private, or none for rounding to nearest."""
        return "private" if self.rounding == "stochastic" else "none"

    def claim(self, d: int) -> Unbiased | StrictlyContractive:
        """The sharp constant of the longest block."""
        others, square = min(d, self.block) - 1, self.most**2
        if self.rounding == "nearest":
            return StrictlyContractive(others / (4 * square + others))
        return Unbiased((math.sqrt(1 + others / square) - 1) / 2)

    def witness(self, d: int) -> np.ndarray:
        """A vector that reaches the constant, all in the first block."""
        most, n = self.most, min(d, self.block)
        rest = 1 / (2 * most) if self.rounding == "nearest" else 1 / (most + math.sqrt(most**2 + n - 1))
        return np.where(np.arange(d) == 0, 1.0, np.where(np.arange(d) < n, rest, 0.0))

    def claim_at(self, x: np.ndarray) -> Unbiased | StrictlyContractive:
        """The exact constant of one non-zero vector."""
        wide = np.abs(np.asarray(x, np.float64))
        starts = np.arange(0, wide.size, self.block)
        steps = np.repeat(np.maximum.reduceat(wide, starts) / self.most, np.diff(np.append(starts, wide.size)))
        rest = np.mod(np.divide(wide, steps, out=np.zeros_like(wide), where=steps > 0), 1)
        if self.rounding == "nearest":
            error = float(((np.minimum(rest, 1 - rest) * steps) ** 2).sum())
            return StrictlyContractive(error / float(wide @ wide), tight=True)
        return Unbiased(float((rest * (1 - rest) * steps**2).sum()) / float(wide @ wide), tight=True)

    def bits(self, d: int) -> Size:
        """The scales and the integers."""
        return Size.fixed(8 * SCALE_BYTES * self._blocks(d) + self.width * d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Both widths, both roundings."""
        return cls(), cls(width=4), cls(width=4, rounding="stochastic"), cls(block=100, rounding="stochastic")

    def _blocks(self, d: int) -> int:
        return -(-d // self.block)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        stochastic = self.rounding == "stochastic"
        random = bits32(key, x.size) if stochastic else _HALF
        scales, levels = np.empty(self._blocks(x.size), np.float32), np.empty(x.size, np.int8)
        _quantise(x, self.block, self.most, random, int(stochastic), scales, levels)
        head = scales.astype(">f4").view(np.uint8)
        body = levels.view(np.uint8) if self.width == 8 else _pair(levels)
        return np.concatenate([head, body]), 8 * head.size + self.width * x.size

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        if bits != self.bits(d).exact:
            raise CorruptMessage(f"block_integer sends {self.bits(d).exact} bits at d = {d}; got {bits}")
        head = SCALE_BYTES * self._blocks(d)
        scales = payload[:head].view(">f4").astype(np.float32)
        if np.signbit(scales).any():
            raise CorruptMessage("a scale is negative")
        levels = payload[head:].view(np.int8) if self.width == 8 else _split(payload[head:], d)
        out = np.empty(d, np.float32)
        good = _dequantise(levels, self.block, self.most, scales, out)
        if good < scales.size:
            raise CorruptMessage(f"block {good} has no finite scale, or its largest integer is not {self.most}")
        return out


def _pair(levels: np.ndarray) -> np.ndarray:
    """Two int8 numbers of 4 bits in each byte, the first one in its upper half; the last byte may be half zero."""
    out = levels[0::2].view(np.uint8) << 4
    out[: levels.size // 2] |= levels[1::2].view(np.uint8) & 15
    return out


def _split(packed: np.ndarray, n: int) -> np.ndarray:
    """The inverse of ``_pair``."""
    out = np.empty(2 * packed.size, np.int8)
    out[0::2] = packed.view(np.int8) >> 4
    out[1::2] = (packed << 4).view(np.int8) >> 4
    return out[:n]
