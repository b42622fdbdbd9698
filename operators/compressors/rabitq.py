"""RaBitQ: rotate, keep the nearest direction of a grid, scaled so that the error is orthogonal to x."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import NoClaim, Unbiased

from ..key import Key
from ..quantisers.lloyd_max import unpack_levels
from ..quantisers.rotation import QUANTISER_LIMIT, Rotation, require_bits_per_coordinate
from ..quantisers.scale import energy, nearest
from ..quantisers.sphere_grid import MAX_BITS, mean_square_tangent, pack_direction
from ..rate import Rate
from ..streamed import Rotated

ROUNDING = 1e-4  # exceeds the rounding error of the rotations


@dataclass(frozen=True)
class RaBitQ(Rotated):
    """Send the grid point c of {+-1/2, +-3/2, ..}^d nearest in direction to the rotated x, and ``|x|/cos``.

    cos is the cosine of the angle between c and z, the rotated x.

    Parameters
    ----------
    x
        Float tensor, shape (d,).  Decoded is ``|x|^2/<z, c>`` times c rotated back: ``<C(x), x> = |x|^2`` on every
        draw.
    bits_per_coordinate : int, optional
        b, 1 <= b <= 8; 2^b values per coordinate.

    Raises
    ------
    ValueError
        Unless 1 <= b <= 8, or if ``|x|/cos`` exceeds binary32.

    Notes
    -----
    d <= 256 : the rotation is Haar-distributed.  Unbiased, because the rest of the error is symmetric about x, and
    omega = E tan^2 of the angle: for one bit exactly ``d E|u|_1^-2 - 1``, u a uniform direction; above, a proved bound
    of about pi/2 times the error of a uniform quantiser.  No query has more than ``omega |q|^2 |x|^2/(d - 1)``.

    d > 256 : four Hadamard rotations.  They are not uniform and nothing is claimed.

    b d + 32 bits (Gao and Long 2024; Gao et al. 2025).
    """

    bits_per_coordinate: int = 1

    name = "rabitq"
    sources = ("gao2024", "gao2025")
    randomness = "shared"
    rate = Rate("bits_per_coordinate", few=1, many=MAX_BITS)
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        require_bits_per_coordinate(self.bits_per_coordinate, MAX_BITS)

    def claim(self, d: int) -> Unbiased | NoClaim:
        """Return a bound for d <= 256, an equality at one bit; see the class."""
        if d > QUANTISER_LIMIT:
            return NoClaim(
                f"Hadamard rotations of d = {d} > {QUANTISER_LIMIT} coordinates are not uniform: some x stay biased"
            )
        b = self.bits_per_coordinate
        return Unbiased(mean_square_tangent(b, d), tight=b == 1 or d == 1)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(2), cls(4)

    def _write(self, y: np.ndarray, factor: float, key: Key, fields: np.ndarray) -> list[float]:
        along, square = pack_direction(self._rotation(y.size, key).forward(y), self.bits_per_coordinate, fields)
        sent = energy(y) / along * math.sqrt(square) / factor  # |x|/cos
        nearest(sent * (1 + ROUNDING))
        return [sent]

    def _read(self, fields: np.ndarray, d: int, numbers: list[float], key: Key) -> np.ndarray:
        b, c = self.bits_per_coordinate, np.empty(d, np.float32)
        grid = np.arange(1 << b) - ((1 << b) - 1) / 2
        square = d / 4
        if b > 1:
            unpack_levels(fields, b, grid.astype(np.float32), c)
            square = energy(c)
        unpack_levels(fields, b, (grid / math.sqrt(square)).astype(np.float32), c)
        return self._rotation(d, key).inverse(c)

    def _rotation(self, d: int, key: Key) -> Rotation:
        return Rotation(d, key, haar_limit=QUANTISER_LIMIT)
