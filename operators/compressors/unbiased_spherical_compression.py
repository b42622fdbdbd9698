"""The unbiased form of Spherical Compression: the direction, divided by its mean cosine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import Unbiased

from ..bits.bitstream import BitWriter
from ..coding import spherical
from ..compilation import jit
from ..key import Key
from ..operator import Size
from ..pieces import InRuns, Runs
from ..quantisers.scale import TINY, largest, nearest, negligible
from ..random import bits32
from .spherical_compression import full_and_last, mean_bits


@dataclass(frozen=True)
class UnbiasedSphericalCompression(InRuns):
    """Like ``SphericalCompression``, with decoded blocks ``|x| v_N / m``, m the mean cosine on the cap.

    Parameters
    ----------
    x
        float vector, shape (d,).
    alpha : float, optional
        Size of the cap, in (0, 1): that of ``SphericalCompression``.
    block : int, optional
        Coordinates of a block, each with a norm of its own.

    Raises
    ------
    ValueError
        For parameters out of range or a norm/m beyond binary32.

    Notes
    -----
    v_N is uniform on the cap about ``x/|x|``, so its mean is ``m x/|x|``: unbiased with omega = m^-2 - 1 per block, an
    equality for every block of 2 or more coordinates.  The norm is rounded stochastically to binary32, which keeps the
    mean (to 2^-32 of a spacing).  Bits: as SphericalCompression
    (Albasyoni et al. 2020).
    """

    alpha: float = 0.5
    block: int = 8

    name = "unbiased_spherical_compression"
    sources = ("albasyoni2020",)
    randomness = "shared"
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        spherical.check(self.alpha, self.block)

    def claim(self, d: int) -> Unbiased:
        """Return the largest omega over the block lengths, exact if all blocks have one length."""
        sizes = spherical.lengths(d, self.block)
        omega = max(spherical.cap(self.alpha, n)[1] ** -2 - 1 if n > 1 else 0.0 for n in sizes)
        return Unbiased(omega, tight=len(sizes) == 1)

    def bits(self, d: int) -> Size:
        """Return an upper bound on the mean length."""
        return Size(None, mean_bits(self.alpha, self.block, d), None)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(alpha=0.5, block=8), cls(alpha=0.8, block=12)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        return self._string(np.zeros_like(x) if negligible(x) else x, 0, key)

    def _string(self, x: np.ndarray, start: int, key: Key) -> tuple[np.ndarray, int]:
        """Return (bytes, bits) of the blocks of the run that begins at ``start``."""
        numbers, _, norms = full_and_last(x, self.alpha, self.block, key)
        nearest(float(norms.max()) / spherical.cap(self.alpha, self.block)[1])
        scales = _stochastic(norms, key, start // self.block)
        return spherical.encode(x, numbers, scales, self.alpha, self.block)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        return self._rebuilt(d, *spherical.decode(payload, bits, d, self.alpha, self.block), key)

    def _rebuilt(self, d: int, numbers: np.ndarray, scales: np.ndarray, key: Key | None) -> np.ndarray:
        assert key is not None
        first = 0
        for n, count in spherical.lengths(d, self.block).items():
            scales[first : first + count] /= spherical.cap(self.alpha, n)[1] if n > 1 else 1.0
            first += count
        return spherical.rebuild(numbers, scales, d, self.block, key)

    def _unit(self, d: int) -> int:
        return self.block

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        zero, writer = max(float(largest(x)) for _, x in runs()) < TINY, BitWriter()
        for part, x in runs():
            writer.append(*self._string(np.zeros_like(x) if zero else x, part.start, key))
        return writer.finish()

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        runs = spherical.decode_runs(payload, bits, d, self.alpha, self.block, self._runs(d))
        return (self._rebuilt(n, numbers, scales, key) for n, numbers, scales in runs)


def _stochastic(norms: np.ndarray, key: Key, first: int = 0) -> np.ndarray:
    """Round each norm to one of its two binary32 neighbours without bias.

    ``first`` is the number of the first word of the stream.
    """
    rounded = np.empty_like(norms)
    for start in range(0, norms.size, spherical.PIECE):
        part = slice(start, min(start + spherical.PIECE, norms.size))
        _round(norms[part], bits32(key.fold_in(0), part.stop - start, start=first + start), rounded[part])
    return rounded


@jit
def _round(norms, words, rounded):
    """Round each norm >= 0 down, or up if its word is below 2^32 times its fractional part."""
    for i in range(norms.size):
        pattern = np.int32(np.float32(norms[i]).view(np.int32))
        below = np.int32(pattern - np.int32(np.float64(pattern.view(np.float32)) > norms[i]))
        low = np.float64(below.view(np.float32))
        gap = np.float64(np.int32(below + 1).view(np.float32)) - low
        rounded[i] = low + gap if np.float64(words[i]) * 2.0**-32 < (norms[i] - low) / gap else low
