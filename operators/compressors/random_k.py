"""Random coordinates, unbiased and scaled to a contraction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import Contractive, Unbiased

from .. import rows
from ..coding.fixed_width import PIECE
from ..compilation import jit
from ..key import Key
from ..message import CorruptMessage, Messages
from ..operator import Size
from ..pieces import InRuns, Runs
from ..random import bits32, bits32_of_rows
from ..rate import Rate
from .top_k import check_fraction, kept

Scattered = tuple[slice, np.ndarray, np.ndarray]  # a run, its mask, values
_LARGEST = float(np.finfo(np.float32).max)


@jit
def _floyd(words, first, bits):
    """Set one bit per pair of words: for j = first, first + 1, .. a uniform t <= j, or j if t is set."""
    half, bit = np.uint64(32), np.uint8(1)
    for i in range(words.size // 2):
        m = np.uint64(first + i + 1)
        low = (np.uint64(words[2 * i]) * m) >> half
        t = (np.uint64(words[2 * i + 1]) * m + low) >> half
        taken = np.uint64((bits[t >> np.uint64(3)] >> np.uint8(t & np.uint64(7))) & bit)
        t ^= (t ^ (m - np.uint64(1))) & (np.uint64(0) - taken)  # a branch would often be mispredicted
        bits[t >> np.uint64(3)] |= bit << np.uint8(t & np.uint64(7))


def random_bits(key: Key, k: int, d: int) -> np.ndarray:
    """Return d < 2^32 bits, k of them set, with every subset equally likely to 2^-32 relative (Floyd).

    The array is uint8, shape (ceil(d/8),), lowest bit first.
    """
    bits = np.zeros(-(-d // 8), np.uint8)
    for start in range(0, k, PIECE):
        _floyd(bits32(key, 2 * min(PIECE, k - start), start=2 * start), d - k + start, bits)
    return bits


@jit
def _floyd_rows(words, first, bits):
    for row in range(words.shape[0]):
        _floyd(words[row], first, bits[row])


def random_masks(keys: Sequence[Key], k: int, d: int) -> np.ndarray:
    """Return the masks of ``random_support`` for many streams: bool, shape (m, d)."""
    bits = np.zeros((len(keys), -(-d // 8)), np.uint8)
    _floyd_rows(bits32_of_rows(keys, 2 * k), d - k, bits)
    return np.unpackbits(bits, axis=1, count=d, bitorder="little").view(np.bool_)


def random_support(key: Key, k: int, d: int) -> np.ndarray:
    """Return the k increasing positions of the set bits of ``random_bits``."""
    bits, support, filled = random_bits(key, k, d), np.empty(k, np.int64), 0
    for start in range(0, bits.size, PIECE):
        places = np.flatnonzero(np.unpackbits(bits[start : start + PIECE], bitorder="little"))
        support[filled : filled + places.size] = places + 8 * start
        filled += places.size
    return support


def pack_values(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Return (payload, bits) of binary32 numbers, big-endian."""
    return values.astype(">f4").view(np.uint8), 32 * values.size


def check_length(bits: int, k: int) -> None:
    """Raise CorruptMessage unless ``bits`` is the length of k values."""
    if bits != 32 * k:
        raise CorruptMessage(f"{k} values take {32 * k} bits; got {bits}")


def unpack_values(payload: np.ndarray, bits: int, k: int) -> np.ndarray:
    """Return k finite binary32 numbers.

    Raises
    ------
    CorruptMessage
        For another length, NaN or infinity.
    """
    check_length(bits, k)
    values = payload.view(">f4").astype(np.float32)
    if not np.isfinite(values).all():
        raise CorruptMessage("values must be finite; got NaN or infinity")
    return values


def _within(bits: np.ndarray, run: slice) -> np.ndarray:
    """Return the mask of a byte-aligned run: bool."""
    part = bits[run.start // 8 : -(-run.stop // 8)]
    return np.unpackbits(part, count=run.stop - run.start, bitorder="little").view(np.bool_)


def gather(runs: Runs, key: Key, k: int, d: int) -> np.ndarray:
    """Return the k chosen values of a vector that is read once, run by run."""
    values, filled, bits = np.empty(k, np.float32), 0, random_bits(key, k, d)
    for part, x in runs():
        chosen = x[_within(bits, part)]
        values[filled : filled + chosen.size] = chosen
        filled += chosen.size
    return values


def scatter(payload: np.ndarray, bits: int, k: int, key: Key, d: int, runs: Iterator[slice]) -> Iterator[Scattered]:
    """Yield every run, its mask and the chosen values; raise CorruptMessage as ``unpack_values``."""
    check_length(bits, k)
    used, support = 0, random_bits(key, k, d)
    for run in runs:
        mask = _within(support, run)
        chosen = int(np.count_nonzero(mask))
        values = payload[4 * used : 4 * (used + chosen)]
        used += chosen
        yield run, mask, unpack_values(values, 8 * values.size, chosen)


class _RandomCoordinates(InRuns):
    """k random coordinates as binary32 numbers; both ends draw their places from the key."""

    fraction: float | None
    k: int | None

    randomness = "shared"
    rate = Rate("fraction", few=2.0**-30, many=1.0)
    equivariant = frozenset({"scale", "sign"})

    def __post_init__(self) -> None:
        check_fraction(self.fraction, self.k)

    def bits(self, d: int) -> Size:
        """Return 32 k bits."""
        return Size.fixed(32 * kept(self.fraction, self.k, d))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(fraction=0.1), cls(k=1), cls(fraction=1.0)  # type: ignore[call-arg]

    def _check(self, values: np.ndarray, d: int) -> None:
        """Raise ValueError if the chosen values cannot be decoded."""

    def _decoded(self, values: np.ndarray, k: int, d: int) -> np.ndarray:
        """Return the coordinates of these values."""
        return values

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        return self._encode_runs(lambda: ((run, x[run]) for run in self._runs(x.size)), x.size, key)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        assert key is not None
        k, out = kept(self.fraction, self.k, d), np.zeros(d, np.float32)
        for run, mask, values in scatter(payload, bits, k, key, d, self._runs(d)):
            out[run][mask] = self._decoded(values, k, d)
        return out

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages:
        m, d = x.shape
        k = kept(self.fraction, self.k, d)
        values = x[random_masks(keys, k, d)].reshape(m, k)
        self._check(values, d)
        return rows.joined(32 * k, rows.floats(values))

    def _decode_rows(self, messages: Messages, d: int, keys: Sequence[Key]) -> np.ndarray:
        k, m = kept(self.fraction, self.k, d), len(messages)
        payload, out = messages.rows(32 * k), np.zeros((m, d), np.float32)
        values = unpack_values(payload.reshape(-1), 8 * payload.size, k * m)
        out[random_masks(keys, k, d)] = self._decoded(values, k, d)
        return out

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        values = gather(runs, key, kept(self.fraction, self.k, d), d)
        self._check(values, d)
        return pack_values(values)

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        assert key is not None
        k = kept(self.fraction, self.k, d)
        for run, mask, values in scatter(payload, bits, k, key, d, self._runs(d)):
            out = np.zeros(run.stop - run.start, np.float32)
            out[mask] = self._decoded(values, k, d)
            yield out


@dataclass(frozen=True)
class RandomK(_RandomCoordinates):
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
        If k > d or the values times d/k must fit binary32.

    Notes
    -----
    Unbiased with omega = d/k - 1, an equality for every x (Konecny & Richtarik 2018).  Both ends draw the support from
    the key, so only the k values are sent: 32 k bits.  A key that all workers share gives them one support, whose
    variance does not average down.
    """

    fraction: float | None = None
    k: int | None = None

    name = "randomk"
    sources = ("konecny2018",)

    def claim(self, d: int) -> Unbiased:
        """Return omega = d/k - 1."""
        return Unbiased(d / kept(self.fraction, self.k, d) - 1, tight=True)

    def _check(self, values: np.ndarray, d: int) -> None:
        largest = max(float(values.max()), -float(values.min())) * d / values.shape[-1]
        if largest > _LARGEST:
            raise ValueError(f"x times d/k must fit binary32 (<= {_LARGEST:.4g}); got {largest:.4g}: rescale x")

    def _decoded(self, values: np.ndarray, k: int, d: int) -> np.ndarray:
        enlarged = values.astype(np.float64) * (d / k)
        if float(np.abs(enlarged).max(initial=0.0)) > _LARGEST * (1 + math.ulp(1)):
            raise CorruptMessage("the values times d/k must fit binary32")
        return enlarged


@dataclass(frozen=True)
class ScaledRandomK(_RandomCoordinates):
    """RandomK divided by 1 + omega = d/k: k random coordinates are sent unchanged, the others become 0.

    Parameters
    ----------
    x
        float vector, shape (d,), as for ``RandomK``.
    fraction : float or None, optional
        Share of the coordinates that are kept, in (0, 1].  Give either fraction or k.
    k : int or None, optional
        Number of coordinates that are kept, 1 <= k <= d.

    Notes
    -----
    Contractive with alpha = 1 - k/d, an equality for every x in expectation (Stich et al. 2018); not
    surely, so it needs error feedback.  Bits: as RandomK.
    """

    fraction: float | None = None
    k: int | None = None

    name = "scaled_randomk"
    sources = ("stich2018",)
    projects = True

    def claim(self, d: int) -> Contractive:
        """Return alpha = 1 - k/d."""
        return Contractive(1 - kept(self.fraction, self.k, d) / d, tight=True)
