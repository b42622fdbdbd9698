"""Spherical Compression in blocks: the index of the first shared random direction within the cap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import StrictlyContractive

from ..bits.bitstream import BitWriter
from ..coding import spherical
from ..coding.spherical import Golomb
from ..key import Key
from ..operator import Size
from ..pieces import InRuns, Runs
from ..quantisers.scale import TINY, largest, nearest, negligible


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


@dataclass(frozen=True)
class SphericalCompression(InRuns):
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
    sources = ("albasyoni2020",)
    randomness = "shared"
    projects = True
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        spherical.check(self.alpha, self.block)

    def claim(self, d: int) -> StrictlyContractive:
        """Return the parameter alpha."""
        return StrictlyContractive(self.alpha)

    def bits(self, d: int) -> Size:
        """Return an upper bound on the mean length."""
        return Size(None, mean_bits(self.alpha, self.block, d), None)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(alpha=0.5, block=8), cls(alpha=0.8, block=12)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        if negligible(x):
            x = np.zeros_like(x)
        numbers, along, norms = full_and_last(x, self.alpha, self.block, key)
        nearest(float(norms.max()))
        return spherical.encode(x, numbers, along, self.alpha, self.block)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        assert key is not None
        numbers, scales = spherical.decode(payload, bits, d, self.alpha, self.block)
        return spherical.rebuild(numbers, scales, d, self.block, key)

    def _unit(self, d: int) -> int:
        return self.block

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        zero, writer = max(float(largest(x)) for _, x in runs()) < TINY, BitWriter()
        for _, x in runs():
            part = np.zeros_like(x) if zero else x
            numbers, along, norms = full_and_last(part, self.alpha, self.block, key)
            nearest(float(norms.max()))
            writer.append(*spherical.encode(part, numbers, along, self.alpha, self.block))
        return writer.finish()

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        assert key is not None
        runs = spherical.decode_runs(payload, bits, d, self.alpha, self.block, self._runs(d))
        return (spherical.rebuild(numbers, scales, n, self.block, key) for n, numbers, scales in runs)
