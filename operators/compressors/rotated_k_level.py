"""Stochastic rounding to k levels after a random rotation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import Unbiased

from ..key import Key
from ..operator import Operator, Size
from ..quantisers.rotation import HAAR_LIMIT, Rotation, prescale, unscale
from ..quantisers.scale import nearest, negligible
from ..quantisers.sphere_moments import extremes
from ..rate import Rate
from .k_level import KLevel, ends, omega

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
            return KLevel(self.k).pack(0.0, 0.0, np.zeros(x.size, np.uint32))
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
