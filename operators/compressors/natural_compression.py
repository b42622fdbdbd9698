"""Natural compression: every coordinate becomes a power of two."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self

import numpy as np

from bounds.claims import StrictlyContractive, Unbiased

from ..coding.fixed_width import pack_fixed, pieces, unpack_fixed
from ..coding.minifloat import NEAREST, cells, round_floats, values
from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Randomness, Size
from ..quantisers.scale import largest
from ..random import bits32

WIDTH = 9
NEGATIVE = 1 << 8
LOWEST, HIGHEST = -149, 105  # exponents of codes 1 and 255


@dataclass(frozen=True)
class NaturalCompression(Operator):
    """Round each magnitude to a neighbouring power of two; send its sign and exponent.

    Parameters
    ----------
    x
        Float tensor, shape (d,), ``max|x| <= 2^105``.
    rounding : {"stochastic", "nearest"}, optional
        "stochastic", up from 2^e m (1 <= m < 2) with probability m - 1; or "nearest", ties up.

    Raises
    ------
    ValueError
        For another rounding, or for a larger magnitude.

    Notes
    -----
    Stochastic: unbiased, exactly, with omega = 1/8, reached at m = 4/3 (Horvath et al. 2019).  Nearest: strictly
    contractive with alpha = 1/9, reached at m = 3/2.  The probability is linear in m, not in log m. 9 bits a
    coordinate: the sign, and 0 for zero or 150 + exponent, so that subnormal numbers keep theirs.
    """

    rounding: Literal["stochastic", "nearest"] = "stochastic"

    name = "natural"
    equivariant = frozenset({"permutation", "scale", "sign"})

    def __post_init__(self) -> None:
        if self.rounding not in ("stochastic", "nearest"):
            raise ValueError(f'rounding must be "stochastic" or "nearest"; got {self.rounding!r}')

    @property
    def randomness(self) -> Randomness:  # type: ignore[override]
        """Private, or none for the nearest power."""
        return "private" if self.rounding == "stochastic" else "none"

    def claim(self, d: int) -> Unbiased | StrictlyContractive:
        """Return omega = 1/8 or alpha = 1/9."""
        return Unbiased(1 / 8) if self.rounding == "stochastic" else StrictlyContractive(1 / 9)

    def witness(self, d: int) -> np.ndarray:
        """Return a flat vector that reaches the constant.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return np.full(d, 4 / 3 if self.rounding == "stochastic" else 1.5)

    def claim_at(self, x: np.ndarray) -> Unbiased | StrictlyContractive:
        """Return the exact constant of one non-zero vector.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        wide = np.asarray(x, np.float64)
        rest, spacing = cells(wide, 1, LOWEST)
        energy = float(wide @ wide)
        if self.rounding == "stochastic":
            return Unbiased(float(rest @ (spacing - rest)) / energy, tight=True)
        return StrictlyContractive(float((np.minimum(rest, spacing - rest) ** 2).sum()) / energy, tight=True)

    def bits(self, d: int) -> Size:
        """Sign and exponent of every coordinate."""
        return Size.fixed(WIDTH * d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return both roundings."""
        return cls(), cls("nearest")

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        top = float(largest(x))
        if top > 2.0**HIGHEST:
            raise ValueError(f"max|x| must not exceed 2^{HIGHEST}; got {top:.4g}: rescale x")
        payload = np.empty((WIDTH * x.size + 7) // 8, np.uint8)
        for numbers, filled in pieces(x.size, WIDTH):
            n = numbers.stop - numbers.start
            random = bits32(key, n, start=numbers.start) if self.rounding == "stochastic" else NEAREST
            codes = np.empty(n, np.uint32)
            round_floats(x[numbers].view(np.uint32), 0, 1, LOWEST, NEGATIVE, random, codes)
            payload[filled] = pack_fixed(codes, WIDTH)
        return payload, WIDTH * x.size

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        if bits != WIDTH * d:
            raise CorruptMessage(f"natural sends 9 d = {WIDTH * d} bits; got {bits}")
        out = np.empty(d, np.float32)
        for numbers, filled in pieces(d, WIDTH):
            codes = unpack_fixed(payload[filled], WIDTH, numbers.stop - numbers.start)
            if (codes == NEGATIVE).any():
                raise CorruptMessage("a zero has no sign")
            _table().take(codes, out=out[numbers], mode="clip")
        return out


@lru_cache(maxsize=1)
def _table() -> np.ndarray:
    """Return the float32 number of each code."""
    magnitudes = values(1, LOWEST, NEGATIVE).astype(np.float32)
    return np.concatenate([magnitudes, -magnitudes])
