"""Keep random coordinates and enlarge them: unbiased."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import Unbiased

from ..coding.fixed_width import PIECE
from ..compilation import jit
from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Size
from ..random import bits32
from ..rate import Rate
from .top_k import check_fraction, kept

_LARGEST = float(np.finfo(np.float32).max)


@jit
def _floyd(words, first, bits):
    """Set a bit for each pair of words: for j = first, first + 1, .. a uniform t <= j, or j if t is taken."""
    half, bit = np.uint64(32), np.uint8(1)
    for i in range(words.size // 2):
        m = np.uint64(first + i + 1)
        low = (np.uint64(words[2 * i]) * m) >> half
        t = (np.uint64(words[2 * i + 1]) * m + low) >> half
        taken = np.uint64((bits[t >> np.uint64(3)] >> np.uint8(t & np.uint64(7))) & bit)
        t ^= (t ^ (m - np.uint64(1))) & (np.uint64(0) - taken)  # a branch would be guessed wrong
        bits[t >> np.uint64(3)] |= bit << np.uint8(t & np.uint64(7))


def random_bits(key: Key, k: int, d: int) -> np.ndarray:
    """Return d < 2^32 bits, uint8 of shape (ceil(d/8),), lowest first, k of them set, every subset equally likely to
    2^-32 relative (Floyd).
    """
    bits = np.zeros(-(-d // 8), np.uint8)
    for start in range(0, k, PIECE):
        _floyd(bits32(key, 2 * min(PIECE, k - start), start=2 * start), d - k + start, bits)
    return bits


def random_support(key: Key, k: int, d: int) -> np.ndarray:
    """Return the k increasing positions of the set ones of ``random_bits``."""
    bits, support, filled = random_bits(key, k, d), np.empty(k, np.int64), 0
    for start in range(0, bits.size, PIECE):
        places = np.flatnonzero(np.unpackbits(bits[start : start + PIECE], bitorder="little"))
        support[filled : filled + places.size] = places + 8 * start
        filled += places.size
    return support


def pack_values(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Return (payload, bits) of binary32 numbers, big-endian."""
    return values.astype(">f4").view(np.uint8), 32 * values.size


def unpack_values(payload: np.ndarray, bits: int, k: int) -> np.ndarray:
    """Return k finite binary32 numbers.

    Raises
    ------
    CorruptMessage
        For another length, NaN or infinity.
    """
    if bits != 32 * k:
        raise CorruptMessage(f"{k} values take {32 * k} bits; got {bits}")
    values = payload.view(">f4").astype(np.float32)
    if not np.isfinite(values).all():
        raise CorruptMessage("a value is NaN or infinite")
    return values


@dataclass(frozen=True)
class RandomK(Operator):
    """Keep k coordinates chosen at random without replacement, times d/k.

    Parameters
    ----------
    x : float tensor, shape (d,), k <= d < 2^32
    fraction : float or None, optional
        Share of the coordinates that are sent: k = max(1, ceil(fraction d)).
    k : int or None, optional
        Number of coordinates that are sent; exactly one of the two is given.

    Raises
    ------
    ValueError
        If k > d or an enlarged value exceeds binary32.

    Notes
    -----
    Unbiased with omega = d/k - 1, an equality for every x.  Both ends draw the support from the key, so only the k
    values are sent: 32 k bits.  A key that all workers share gives them one support, whose variance does not average
    down.
    """

    fraction: float | None = None
    k: int | None = None

    name = "randomk"
    randomness = "shared"
    rate = Rate("fraction", few=2.0**-30, many=1.0)
    equivariant = frozenset({"scale", "sign"})

    def __post_init__(self) -> None:
        check_fraction(self.fraction, self.k)

    def claim(self, d: int) -> Unbiased:
        """Return omega = d/k - 1."""
        return Unbiased(d / kept(self.fraction, self.k, d) - 1, tight=True)

    def bits(self, d: int) -> Size:
        """Return k values in binary32."""
        return Size.fixed(32 * kept(self.fraction, self.k, d))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return a tenth, one coordinate, all of them."""
        return cls(fraction=0.1), cls(k=1), cls(fraction=1.0)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        k = kept(self.fraction, self.k, x.size)
        values = x[random_support(key, k, x.size)]
        largest = float(np.abs(values).max()) * x.size / k
        if largest > _LARGEST:
            raise ValueError(f"x times d/k must fit binary32 (<= {_LARGEST:.4g}); got {largest:.4g}: rescale x")
        return pack_values(values)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        assert key is not None
        k = kept(self.fraction, self.k, d)
        values = unpack_values(payload, bits, k).astype(np.float64) * (d / k)
        if float(np.abs(values).max()) > _LARGEST * (1 + math.ulp(1)):
            raise CorruptMessage("an enlarged value exceeds binary32")
        out = np.zeros(d, np.float32)
        out[random_support(key, k, d)] = values
        return out
