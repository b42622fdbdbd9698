"""TurboQuant: rotate and round to levels; for inner products, also send the signs of a sketch of the residual."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np

from bounds.claims import Contractive, NoClaim, Unbiased
from bounds.special.lloyd_max import MAX_BITS
from bounds.special.sphere_quantiser import lloyd_max_moments, lloyd_max_sphere_distortion

from ..coding.fixed_width import pack_fixed, unpack_fixed
from ..key import Key
from ..message import CorruptMessage
from ..quantisers.lloyd_max import lloyd_max_grid, unpack_levels
from ..quantisers.rotation import QUANTISER_LIMIT, Rotation, require_bits_per_coordinate
from ..quantisers.scale import energy, nearest
from ..random import normal
from ..rate import Rate
from ..streamed import Rotated
from .eden import pack_levels


def sketch(r: np.ndarray, key: Key) -> np.ndarray:
    """Return which random projections are positive: bool, shape (d,) (QJL: Zandieh et al. 2024).

    Up to ``QUANTISER_LIMIT`` coordinates the projections are the d rows of a matrix S of independent standard normal
    numbers. Of one row, <q, s> sign(<s, r>) has the mean sqrt(2/pi) ``<q, r>/|r|``, so sqrt(pi/2)/d S^T sign(S r) has
    the ``mean r/|r|``. Above, S is sqrt(d) times a Hadamard rotation: about right on most vectors, exact on none.

    Parameters
    ----------
    r : float32, shape (d,)
    """
    d = r.size
    if d > QUANTISER_LIMIT:
        return Rotation(d, key).forward(r) > 0
    return np.asarray(_matrix(d, key) @ r.astype(np.float64) > 0)


def from_sketch(sigma: np.ndarray, key: Key) -> np.ndarray:
    """Return sqrt(pi/2)/d S^T sigma, whose mean is ``r/|r|`` for sigma = sign(S r): float32, shape (d,).

    Parameters
    ----------
    sigma : float32, shape (d,)
        Times any factor, and so is the result; overwritten.
    """
    d, unit = sigma.size, math.sqrt(math.pi / 2)
    if d > QUANTISER_LIMIT:
        return Rotation(d, key).inverse(np.multiply(sigma, np.float32(math.sqrt(math.pi / 2 / d)), out=sigma))
    return (unit / d * (sigma.astype(np.float64) @ _matrix(d, key))).astype(np.float32)


def sketch_norm(positive: np.ndarray, key: Key) -> float:
    """Return the norm of ``from_sketch`` for the signs +1 where positive, else -1; sqrt(pi/2) for a rotation."""
    if positive.size > QUANTISER_LIMIT:
        return math.sqrt(math.pi / 2)
    return math.sqrt(energy(from_sketch(np.where(positive, np.float32(1), np.float32(-1)), key)))


def _matrix(d: int, key: Key) -> np.ndarray:
    return normal(key, d * d).reshape(d, d)


Form = Literal["prod", "mse"]
PIECE = 1 << 16  # coordinates, a multiple of 8
ROTATION, SKETCH = 0, 1  # folds of the key, for independent streams
ROUNDING = 1e-4  # exceeds the rounding error of the rotations


@dataclass(frozen=True)
class TurboQuant(Rotated):
    """Send ``|x|`` and the level Q(v_i) nearest to every v_i, v = sqrt(d) times the rotated ``x/|x|``.

    Parameters
    ----------
    x
        Float tensor, shape (d,).
    bits_per_coordinate : int, optional
        b, 1 <= b <= 8.
    form : Form, optional
        "prod" (unbiased, for inner products) or "mse" (smaller error, biased).

    Raises
    ------
    ValueError
        Unless 1 <= b <= 8 and form is known, or if a decoded norm could exceed binary32.

    Notes
    -----
    Q has the normal law's Lloyd-Max levels.  For d <= 256 the rotation is Haar-distributed and everything below is
    exact for every x, v being one coordinate.

    "mse": b bits per coordinate; alpha = E(v - Q(v))^2 and E C(x) = E[v Q(v)] x.

    "prod": b - 1 bits per coordinate as above; of the remainder r its length, and the signs of S r, S with d^2
    independent standard normal entries.  Decoded is ``sqrt(pi/2)/d |r| S^T sign(S r)`` more.  Unbiased, omega =
    (pi/2 - 1/d) times the alpha of b - 1 bits (1 for none); d E<q, C(x) - x>^2 <= pi/2 times it for every query,
    ``|q| = |x| = 1``.

    d > 256: four Hadamard rotations in place of either matrix.  They are not uniform and nothing is claimed.

    mse: b d + 32 bits.  prod: b d + 64, and d + 32 at b = 1, where the remainder is x (Zandieh et al. 2025).
    """

    bits_per_coordinate: int = 2
    form: Form = "prod"

    name = "turboquant"
    head_name = "norm"
    sources = ("zandieh2025",)
    randomness = "shared"
    rate = Rate("bits_per_coordinate", few=1, many=MAX_BITS)
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        require_bits_per_coordinate(self.bits_per_coordinate, MAX_BITS)
        if self.form not in get_args(Form):
            raise ValueError(f"form must be one of {', '.join(get_args(Form))}; got {self.form!r}")

    @property
    def level_bits(self) -> int:
        """Bits per level."""
        return self.bits_per_coordinate - (self.form == "prod")

    @property
    def norms(self) -> int:
        """Number of transmitted norms, ``|x|`` and, where it exists and is not 1, ``|r|/|x|``."""
        return 2 if self.form == "prod" and self.level_bits else 1

    def claim(self, d: int) -> Unbiased | Contractive | NoClaim:
        """Return the exact constant for d <= 256; see the class."""
        if d > QUANTISER_LIMIT:
            return NoClaim(
                f"Hadamard rotations of d = {d} > {QUANTISER_LIMIT} coordinates are not uniform: some x stay biased"
            )
        left = max(0.0, lloyd_max_sphere_distortion(self.level_bits, d))
        if self.form == "prod":
            return Unbiased((math.pi / 2 - 1 / d) * left, tight=True)
        return Contractive(left, tight=True)

    def mean_at(self, x: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Return the mean E[v Q(v)] x and the variance E Q(v)^2 - (E v Q(v))^2 of the form "mse" for d <= 256.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        if self.form == "prod" or x.size > QUANTISER_LIMIT:
            return None
        along, square = lloyd_max_moments(self.level_bits, x.size)
        return along * x.astype(np.float64), max(0.0, square - along**2)

    def ceiling(self, d: int) -> float:
        """Return a bound on ``|C(x) - x|^2/|x|^2`` of a single draw: ``|r| <= 2|x|``, and a normal entry stays below 7.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return 4 * (1 + 7 * math.sqrt(math.pi / 2 * d)) ** 2

    def _count(self, d: int) -> int:
        return self.norms

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(1), cls(2), cls(4), cls(2, "mse")

    def _write(self, y: np.ndarray, factor: float, key: Key, fields: np.ndarray) -> list[float]:
        norm = math.sqrt(energy(y))
        if self.form == "mse":
            norms, unit = [norm / factor], self._pack_levels(y, norm, key, fields)
        else:
            left, unit = self._pack_sketched(y, norm, key, fields)
            norms = [norm / factor, left][: self.norms]
        nearest(norm * max(1.0, unit) / factor * (1 + ROUNDING))  # so that it can be decoded
        return norms

    def _pack_levels(self, y: np.ndarray, norm: float, key: Key, out: np.ndarray) -> float:
        """Write the nearest levels of the rotated y; return the norm of the levels over sqrt(d)."""
        square = pack_levels(self._rotation(y.size, key).forward(y), norm, self.level_bits, out)[1]
        return math.sqrt(square / y.size)

    def _pack_sketched(self, y: np.ndarray, norm: float, key: Key, out: np.ndarray) -> tuple[float, float]:
        """Write levels and signs; return the residual's norm and an upper bound on the decoded norm."""
        d, b, left, unit_norm = y.size, self.level_bits, 1.0, 0.0
        packed = np.empty((b * d + 7) // 8, np.uint8)
        if b:
            unit_norm = self._pack_levels(y, norm, key, packed)
            r = self._from_levels(packed, self._levels(d), d, key)
            np.subtract(y * np.float32(1 / norm), r, out=r)
            left = float(np.float32(math.sqrt(energy(r))))
        else:
            r = y * np.float32(1 / norm)
        positive = sketch(r, key.fold_in(SKETCH))
        _interleave(packed, b, positive, out)
        return left, unit_norm + left * sketch_norm(positive, key.fold_in(SKETCH))

    def _read(self, fields: np.ndarray, d: int, numbers: list[float], key: Key) -> np.ndarray:
        b, levels = self.bits_per_coordinate, self._levels(d)
        if self.form == "mse":
            return self._from_levels(fields, levels, d, key)
        unit = np.empty(d, np.float32)
        unpack_levels(fields, b, np.array([-1, 1] * levels.size, np.float32), unit)
        unit = from_sketch(unit, key.fold_in(SKETCH))
        if self.level_bits:
            q, left = self._from_levels(fields, np.repeat(levels, 2), d, key), numbers[1]
            if left > (1 + ROUNDING) * (1 + math.sqrt(energy(q))):
                raise CorruptMessage(f"the residual of a unit vector must be at most 1 + |Q|; got {left}")
            np.add(q, np.multiply(unit, np.float32(left), out=unit), out=unit)
        return unit

    def _levels(self, d: int) -> np.ndarray:
        """Return the levels over sqrt(d), float32, shape (2^level_bits,); one 0 without bits."""
        if not self.level_bits:
            return np.zeros(1, np.float32)
        return lloyd_max_grid(self.level_bits).levels / np.float32(math.sqrt(d))

    def _from_levels(self, fields: np.ndarray, levels: np.ndarray, d: int, key: Key) -> np.ndarray:
        """Return the rotated-back levels of the fields: float32, shape (d,)."""
        unit = np.empty(d, np.float32)
        unpack_levels(fields, levels.size.bit_length() - 1, levels, unit)
        return self._rotation(d, key).inverse(unit)

    def _rotation(self, d: int, key: Key) -> Rotation:
        return Rotation(d, key.fold_in(ROTATION), haar_limit=QUANTISER_LIMIT)


def _interleave(packed: np.ndarray, width: int, positive: np.ndarray, out: np.ndarray) -> None:
    """Write each field of ``width`` bits, which may be 0, followed by one sign bit, run by run."""
    for start in range(0, positive.size, PIECE):
        fields = positive[start : start + PIECE].astype(np.uint32)
        if width:
            fields += unpack_fixed(packed[width * start // 8 :], width, fields.size) << np.uint32(1)
        stop = ((width + 1) * (start + fields.size) + 7) // 8
        out[(width + 1) * start // 8 : stop] = pack_fixed(fields, width + 1)
