"""Spherical Compression, biased and unbiased."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import StrictlyContractive, Unbiased

from ..bits.bitstream import BitWriter
from ..coding import spherical
from ..coding.spherical import Golomb
from ..compilation import jit
from ..key import Key
from ..operator import Size
from ..pieces import InRuns, Runs
from ..quantisers.scale import TINY, largest, nearest, negligible
from ..random import bits32


def mean_bits(alpha: float, block: int, d: int) -> float:
    """Return the mean message length when no block is zero; zero blocks only shorten it."""
    total = 0.0
    for n, count in spherical.lengths(d, block).items():
        p = spherical.cap(alpha, n)[0] if n > 1 else 1.0
        index = Golomb.optimal(p).mean_bits(p) if n > 1 else 1.0
        total += count * (spherical.NORM_BITS + index)
    return total


def full_and_last(x: np.ndarray, alpha: float, block: int, key: Key) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (N, <x, v_N>, ``|x|``) of every block; for one coordinate the last two are its magnitude."""
    whole = x.size - x.size % block
    numbers, along, norms = [], [], []
    for part, n in ((x[:whole], block), (x[whole:], x.size - whole)):
        if not part.size:
            continue
        rows = part.reshape(-1, n)
        norms.append(spherical.lengths_of(rows))
        nearest = spherical.search(rows, norms[-1], alpha, key) if n > 1 else (np.ones(1, np.int64), norms[-1])
        numbers.append(nearest[0])
        along.append(nearest[1])
    return np.concatenate(numbers), np.concatenate(along), np.concatenate(norms)


class _Spherical(InRuns):
    """The index of the first shared random direction within a cap about each block, and a scale."""

    alpha: float
    block: int

    sources = ("albasyoni2020",)
    randomness = "shared"
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        spherical.check(self.alpha, self.block)

    def bits(self, d: int) -> Size:
        """Return an upper bound on the mean length."""
        return Size(None, mean_bits(self.alpha, self.block, d), None)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(alpha=0.5, block=8), cls(alpha=0.8, block=12)  # type: ignore[call-arg]

    @abstractmethod
    def _string(self, x: np.ndarray, start: int, key: Key) -> tuple[np.ndarray, int]:
        """Return (bytes, bits) of the blocks of the run that begins at ``start``."""

    def _scales(self, scales: np.ndarray, d: int) -> np.ndarray:
        """Return the lengths of the decoded blocks of a run of d coordinates."""
        return scales

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        return self._string(np.zeros_like(x) if negligible(x) else x, 0, key)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        return self._rebuilt(d, *spherical.decode(payload, bits, d, self.alpha, self.block), key)

    def _rebuilt(self, d: int, numbers: np.ndarray, scales: np.ndarray, key: Key | None) -> np.ndarray:
        assert key is not None
        return spherical.rebuild(numbers, self._scales(scales, d), d, self.block, key)

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


@dataclass(frozen=True)
class SphericalCompression(_Spherical):
    """Cut x into blocks; per block send N, the first direction with cosine >= sqrt(1 - alpha), and ``|x|`` cos.

    Parameters
    ----------
    x : float tensor, shape (d,)
    alpha : float, optional
        0 < alpha < 1.
    block : int, optional
        Length of a block, >= 2, short enough that 1/P <= 2^16 draws suffice on average, P being the cap's share of the
        sphere; the last block may be shorter.

    Raises
    ------
    ValueError
        For parameters out of range or a scale beyond binary32.

    Notes
    -----
    Strictly contractive with alpha: the relative error of a block is sin^2 <= alpha (Albasyoni et al. 2020; they send
    ``|x| sqrt(1 - alpha)``, which is no better for any x).  A block of one coordinate is exact.  Both ends draw the
    directions from the key.  Bits per block: 31 for the scale, Golomb code of N, whose mean is below -log2 P + 1.4755;
    unbounded in the worst case.  A zero block sends its scale only.
    """

    alpha: float = 0.5
    block: int = 8

    name = "spherical_compression"
    projects = True

    def claim(self, d: int) -> StrictlyContractive:
        """Return the parameter alpha."""
        return StrictlyContractive(self.alpha)

    def _string(self, x: np.ndarray, start: int, key: Key) -> tuple[np.ndarray, int]:
        numbers, along, norms = full_and_last(x, self.alpha, self.block, key)
        nearest(float(norms.max()))
        return spherical.encode(x, numbers, along, self.alpha, self.block)


@dataclass(frozen=True)
class UnbiasedSphericalCompression(_Spherical):
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

    def claim(self, d: int) -> Unbiased:
        """Return the largest omega over the block lengths, exact if all blocks have one length."""
        sizes = spherical.lengths(d, self.block)
        omega = max(spherical.cap(self.alpha, n)[1] ** -2 - 1 if n > 1 else 0.0 for n in sizes)
        return Unbiased(omega, tight=len(sizes) == 1)

    def _string(self, x: np.ndarray, start: int, key: Key) -> tuple[np.ndarray, int]:
        numbers, _, norms = full_and_last(x, self.alpha, self.block, key)
        nearest(float(norms.max()) / spherical.cap(self.alpha, self.block)[1])
        scales = _stochastic(norms, key, start // self.block)
        return spherical.encode(x, numbers, scales, self.alpha, self.block)

    def _scales(self, scales: np.ndarray, d: int) -> np.ndarray:
        first = 0
        for n, count in spherical.lengths(d, self.block).items():
            scales[first : first + count] /= spherical.cap(self.alpha, n)[1] if n > 1 else 1.0
            first += count
        return scales


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
