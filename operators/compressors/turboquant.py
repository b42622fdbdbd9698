"""TurboQuant: rotate, keep the nearest level of every coordinate; for inner products, the signs of what is left too."""

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
from ..operator import Operator, Size
from ..quantisers.bits_per_coordinate import require_bits_per_coordinate
from ..quantisers.lloyd_max import lloyd_max_grid
from ..quantisers.rotation import QUANTISER_LIMIT, Rotation, prescale, unscale
from ..quantisers.scale import energy, nearest, negligible
from ..quantisers.sign_sketch import from_sketch, sketch
from ..rate import Rate
from .eden import pack_levels

Form = Literal["prod", "mse"]
NORM_BYTES = 4
ROTATION, SKETCH = 0, 1  # folds of the key: the two must be independent
ROUNDING = 1e-4  # more than the rotations' rounding


@dataclass(frozen=True)
class TurboQuant(Operator):
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
        Unless 1 <= b <= 8 and form is known, or if a decoded norm would exceed binary32.

    Notes
    -----
    Q has the normal law's Lloyd-Max levels.  For d <= 256 the rotation is Haar-distributed and everything below is
    exact for every x, v being one coordinate.

    "mse": b bits a coordinate; alpha = E(v - Q(v))^2 and E C(x) = E[v Q(v)] x.

    "prod": b - 1 bits a coordinate as above; of the remainder r its length, and the signs of S r, S with d^2
    independent standard normal entries.  Decoded is ``sqrt(pi/2)/d |r| S^T sign(S r)`` more.  Unbiased, omega =
    (pi/2 - 1/d) times the alpha of b - 1 bits (1 for none); d E<q, C(x) - x>^2 <= pi/2 times it for every query,
    ``|q| = |x| = 1``.

    d > 256: four Hadamard rotations in place of either matrix.  They are not uniform and nothing is promised.

    mse: b d + 32 bits.  prod: b d + 64, and d + 32 at b = 1, where the remainder is x (Zandieh et al. 2025).
    """

    bits_per_coordinate: int = 2
    form: Form = "prod"

    name = "turboquant"
    randomness = "shared"
    rate = Rate("bits_per_coordinate", few=1, many=MAX_BITS)
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        require_bits_per_coordinate(self.bits_per_coordinate, MAX_BITS)
        if self.form not in get_args(Form):
            raise ValueError(f"form must be one of {', '.join(get_args(Form))}; got {self.form!r}")

    @property
    def level_bits(self) -> int:
        """Bits of the level of one coordinate."""
        return self.bits_per_coordinate - (self.form == "prod")

    @property
    def norms(self) -> int:
        """Two are sent, ``|x|`` and ``|r|/|x|``, unless the second does not exist or is 1."""
        return 2 if self.form == "prod" and self.level_bits else 1

    def claim(self, d: int) -> Unbiased | Contractive | NoClaim:
        """Return exact for d <= 256; see the class."""
        if d > QUANTISER_LIMIT:
            return NoClaim(
                f"Hadamard rotations of d = {d} > {QUANTISER_LIMIT} coordinates are not uniform: some x stay biased"
            )
        left = max(0.0, lloyd_max_sphere_distortion(self.level_bits, d))
        if self.form == "prod":
            return Unbiased((math.pi / 2 - 1 / d) * left, tight=True)
        return Contractive(left, tight=True)

    def mean_at(self, x: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Return E v Q(v) times x, and the variance E Q(v)^2 - (E v Q(v))^2, of the form mse for d <= 256.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        if self.form == "prod" or x.size > QUANTISER_LIMIT:
            return None
        along, square = lloyd_max_moments(self.level_bits, x.size)
        return along * x.astype(np.float64), max(0.0, square - along**2)

    def bits(self, d: int) -> Size:
        """Return one or two norms in binary32 and b bits a coordinate."""
        return Size.fixed(8 * NORM_BYTES * self.norms + self.bits_per_coordinate * d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return inner products at one, two and four bits, squared error at two."""
        return cls(1), cls(2), cls(4), cls(2, "mse")

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        d = x.size
        fields, norms = np.zeros(d, np.uint32), np.zeros(self.norms)
        if not negligible(x):
            y, factor = prescale(x)
            norm, left = math.sqrt(energy(y)), 1.0
            fields = self._nearest_levels(y, norm, key)
            unit = self._from_levels(fields, key)
            if self.form == "prod":
                r = y * np.float32(1 / norm) - unit
                left = float(np.float32(math.sqrt(energy(r)))) if self.level_bits else 1.0
                positive = sketch(r, key.fold_in(SKETCH))
                fields = 2 * fields + positive
                unit = unit + np.float32(left) * from_sketch(positive, key.fold_in(SKETCH))
            nearest(norm * max(1.0, math.sqrt(energy(unit))) / factor * (1 + ROUNDING))  # so that it can be decoded
            norms = np.array([norm / factor, left])[: self.norms]
        head = norms.astype(">f4").view(np.uint8)
        packed = pack_fixed(fields.astype(np.uint32), self.bits_per_coordinate)
        return np.concatenate([head, packed]), 8 * head.size + self.bits_per_coordinate * d

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        assert key is not None
        if bits != self.bits(d).exact:
            raise CorruptMessage(f"{self.name} sends {self.bits(d).exact} bits at d = {d}; got {bits}")
        norms = np.array(payload[: NORM_BYTES * self.norms].view(">f4").tolist())
        if not np.isfinite(norms).all() or np.signbit(norms).any():
            raise CorruptMessage(f"norms must be finite and not negative; got {norms.tolist()}")
        if norms[0] == 0:
            if payload.any():
                raise CorruptMessage("the message of a zero vector is all zeros")
            return np.zeros(d, np.float32)
        fields = unpack_fixed(payload[NORM_BYTES * self.norms :], self.bits_per_coordinate, d)
        if self.form == "mse":
            return unscale(self._from_levels(fields, key), float(norms[0]))
        unit, left = self._from_levels(fields >> 1, key), float(norms[-1]) if self.level_bits else 1.0
        if left > (1 + ROUNDING) * (1 + math.sqrt(energy(unit))):
            raise CorruptMessage(f"what is left of a unit vector is at most 1 + |Q|; got {left}")
        return unscale(unit + np.float32(left) * from_sketch(fields & 1, key.fold_in(SKETCH)), float(norms[0]))

    def _nearest_levels(self, y: np.ndarray, norm: float, key: Key) -> np.ndarray:
        """Return numbers of the levels: uint32, shape (d,); all 0 where there is one."""
        b = self.level_bits
        if not b:
            return np.zeros(y.size, np.uint32)
        packed = np.empty((b * y.size + 7) // 8, np.uint8)
        pack_levels(self._rotation(y.size, key).forward(y), norm, b, packed)
        return unpack_fixed(packed, b, y.size)

    def _from_levels(self, codes: np.ndarray, key: Key) -> np.ndarray:
        """Return the levels over sqrt(d), rotated back: float32, shape (d,)."""
        if not self.level_bits:
            return np.zeros(codes.size, np.float32)
        levels = lloyd_max_grid(self.level_bits).levels / np.float32(math.sqrt(codes.size))
        return self._rotation(codes.size, key).inverse(levels[codes])

    def _rotation(self, d: int, key: Key) -> Rotation:
        return Rotation(d, key.fold_in(ROTATION), haar_limit=QUANTISER_LIMIT)
