"""EDEN and DRIVE: rotate, round to the Lloyd-Max levels of the normal law, rotate back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np

from bounds.claims import Contractive, NoClaim, StrictlyContractive, Unbiased
from bounds.special.lloyd_max import MAX_BITS
from bounds.special.sphere_quantiser import lloyd_max_moments

from ..key import Key
from ..quantisers.lloyd_max import lloyd_max_grid, pack_nearest, pack_positive, unpack_levels
from ..quantisers.rotation import HAAR_LIMIT, Rotation, require_bits_per_coordinate
from ..quantisers.scale import energy, nearest
from ..rate import Rate
from ..streamed import Rotated

# EDEN: rotate, round to the Lloyd-Max levels of the normal law, rotate back.

Scale = Literal["unbiased", "mse"]
ROUNDING = 1e-4  # more than the rotations' rounding


def pack_levels(z: np.ndarray, norm: float, bits: int, out: np.ndarray) -> tuple[float, float]:
    """Write the nearest levels of z sqrt(d)/norm; return (<z, q>, ``|q|^2``)."""
    grid = lloyd_max_grid(bits)
    if bits == 1:
        level = float(grid.levels[1])
        return level * pack_positive(z, out), level * level * z.size
    search = grid.levels, grid.start, grid.per_unit, grid.below, grid.inside
    return pack_nearest(z, np.float32(math.sqrt(z.size) / norm), bits, *search, out)


class _LloydMax(Rotated):
    """What EDEN and DRIVE share: nearest levels of the rotated vector, and a scale."""

    scale: Scale

    randomness = "shared"
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        require_bits_per_coordinate(self.bits_per_coordinate, MAX_BITS)
        if self.scale not in get_args(Scale):
            raise ValueError(f"scale must be one of {', '.join(get_args(Scale))}; got {self.scale!r}")

    def claim(self, d: int) -> Unbiased | Contractive | NoClaim:
        """Return the exact constant for d <= 64; see the class."""
        b = self.bits_per_coordinate
        if d > HAAR_LIMIT:
            if self.scale == "mse" and b == 1:
                return StrictlyContractive(1 - 1 / d)
            return NoClaim(
                f"Hadamard rotations of d = {d} > {HAAR_LIMIT} coordinates are not uniform: some x stay biased"
            )
        along, square = lloyd_max_moments(b, d)
        if self.scale == "unbiased":
            return Unbiased(max(0.0, square / along**2 - 1), tight=True)
        if b == 1:
            return Contractive((1 - 1 / d) * (1 - 2 / math.pi), tight=True)
        return Contractive(max(0.0, 1 - along**2 / square))

    def _write(self, y: np.ndarray, factor: float, key: Key, fields: np.ndarray) -> list[float]:
        d, b, norm = y.size, self.bits_per_coordinate, math.sqrt(energy(y))
        along, square = pack_levels(Rotation(d, key).forward(y), norm, b, fields)
        if self.scale == "mse":
            f = along / square
        elif d <= HAAR_LIMIT:
            f = norm / (math.sqrt(d) * lloyd_max_moments(b, d)[0])
        else:
            f = norm * norm / along
        nearest(f * math.sqrt(square) / factor * (1 + ROUNDING))  # the decoded norm, so that it fits binary32
        return [nearest(f * math.sqrt(d) / factor)]  # near |x|: a small f could underflow

    def _read(self, fields: np.ndarray, d: int, numbers: list[float], key: Key) -> np.ndarray:
        levels, q = lloyd_max_grid(self.bits_per_coordinate).levels / np.float32(math.sqrt(d)), np.empty(d, np.float32)
        unpack_levels(fields, self.bits_per_coordinate, levels, q)
        return Rotation(d, key).inverse(q)


@dataclass(frozen=True)
class EDEN(_LloydMax):
    """Send the nearest levels q_i of ``z_i sqrt(d)/|x|``, z the rotated x, and a scale f; decode f q rotated back.

    Parameters
    ----------
    x
        Float tensor, shape (d,).  The rotation is Haar-distributed for d <= 64, so that ``z/|x|`` is uniform on the
        sphere for every x; with v one of its coordinates times sqrt(d) and Q the quantiser:
    bits_per_coordinate : int, optional
        b, 1 <= b <= 8.
    scale : Scale, optional
        "unbiased" or "mse" (smaller error, biased).

    Raises
    ------
    ValueError
        Unless 1 <= b <= 8 and scale is known, or if the scale exceeds binary32.

    Notes
    -----
    unbiased, d <= 64 : ``f = |x| / (sqrt(d) E v Q(v))``; omega = E Q(v)^2 / (E v Q(v))^2 - 1 for every x, because E q
    rotated back points along x by symmetry.  At 1 bit omega = pi^2/8 - 1 at d = 2.

    mse, d <= 64 : f = ``<z, q>/|q|^2``, the best for this q, hence no worse than the best constant: alpha <= 1 - (E v
    Q(v))^2 / E Q(v)^2; at 1 bit exactly (1 - 1/d)(1 - 2/pi) for every x.

    d > 64 : four Hadamard rotations.  They are not uniform and nothing is claimed, except at 1 bit that the error of
    the mse scale never exceeds 1 - 1/d, whatever the rotation.  The unbiased scale is the paper's ``f = |x|^2/<z, q>``,
    which is right along x always.  On most vectors the errors are those of the limit d -> infinity: D/(1 - D) and D, D
    the quantiser's distortion on the normal law.

    b d + 32 bits (Vargaftik et al. 2022).
    """

    bits_per_coordinate: int = 1
    scale: Scale = "unbiased"

    name = "eden"
    sources = ("vargaftik2022",)
    rate = Rate("bits_per_coordinate", few=1, many=MAX_BITS)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(1, "mse"), cls(2), cls(4, "mse")


# DRIVE: the signs of the rotated vector and a scale; EDEN at one bit.


@dataclass(frozen=True)
class DRIVE(_LloydMax):
    """Send the signs of the rotated x and a scale; decode the scaled signs, rotated back.

    Parameters
    ----------
    x
        Float tensor, shape (d,).  The messages equal those of ``EDEN(1, scale)`` (Vargaftik et
        al. 2021).  d + 32 bits.
    scale : Scale, optional
        "unbiased" or "mse" (smaller error, biased).

    Raises
    ------
    ValueError
        For an unknown scale, or if it exceeds binary32.
    """

    scale: Scale = "unbiased"

    name = "drive"
    sources = ("vargaftik2021",)
    bits_per_coordinate = 1

    @property
    def eden(self) -> EDEN:
        """Equivalent ``EDEN`` operator."""
        return EDEN(1, self.scale)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls("mse")
