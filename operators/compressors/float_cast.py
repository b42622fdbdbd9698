"""Casts to 16-bit and 8-bit floating point, scaled so that nothing overflows."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, Self

import numpy as np

from bounds.claims import StrictlyContractive, Unbiased

from ..coding.fixed_width import pieces
from ..coding.minifloat import NEAREST, cells, nearest_alpha, round_floats, scale_numbers, stochastic_omega, values
from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Randomness, Size
from ..quantisers.scale import largest
from ..random import bits32

HEAD_BYTES = 2
ZERO_EXPONENT = 150  # the head is 0 for the zero vector, else 150 + exponent of the largest magnitude
HIGHEST = 127  # exponent of the largest magnitude that rounding up cannot move beyond binary32


class Format(NamedTuple):
    """Bits of a number, significant bits with the leading one, exponents of the smallest normal and scaled largest."""

    width: int
    significant: int
    lowest: int
    highest: int


FORMATS = {
    "fp16": Format(16, 11, -14, 14),
    "bf16": Format(16, 8, -126, 126),
    "e4m3": Format(8, 4, -6, 7),
    "e5m2": Format(8, 3, -14, 14),
}


@dataclass(frozen=True)
class FloatCast(Operator):
    """Multiply by a power of two, round to a short floating-point format, and multiply back.

    Parameters
    ----------
    x
        Float tensor, shape (d,), ``max|x| <= 2^127``.
    format : {"fp16", "bf16", "e4m3", "e5m2"}, optional
        "fp16", "bf16", or with 8 bits "e4m3", "e5m2".
    rounding : {"nearest", "stochastic"}, optional
        "nearest", ties to even, or "stochastic" between the two neighbours, linear in the number.

    Raises
    ------
    ValueError
        For a parameter out of range or a larger magnitude.

    Notes
    -----
    The power of two brings ``max|x|`` into [2^E, 2^(E+1)), where 2^(E+1) is still a number of the format, so nothing
    overflows; small numbers end in the format's subnormal ones or in 0.  With h = 2^(1 - significant bits) and 2^-D the
    smallest normal number relative to 2^E (D = 28, 252, 13, 28), q = (d - 1) h^2 4^-D is the part of underflow, and the
    constants are sharp (see ``codes.floats``): nearest is strictly contractive with alpha = (h^2 + q)/((2 + h)^2 + q);
    stochastic is unbiased (each number to 2^-32 of its spacing) with omega = (h^2 + q)/(4 (1 + h)) while that is below
    h/2. 16 bits for the power, then 16 or 8 bits a coordinate; negative zero is sent as zero.
    """

    format: Literal["fp16", "bf16", "e4m3", "e5m2"] = "bf16"
    rounding: Literal["nearest", "stochastic"] = "nearest"

    name = "cast"
    equivariant = frozenset({"permutation", "scale", "sign"})

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {self.format!r}")
        if self.rounding not in ("nearest", "stochastic"):
            raise ValueError(f'rounding must be "nearest" or "stochastic"; got {self.rounding!r}')

    @property
    def _format(self) -> Format:
        return FORMATS[self.format]

    @property
    def randomness(self) -> Randomness:  # type: ignore[override]
        """Private, or none for rounding to nearest."""
        return "private" if self.rounding == "stochastic" else "none"

    def claim(self, d: int) -> Unbiased | StrictlyContractive:
        """Return the sharp constant."""
        _, p, lowest, highest = self._format
        if self.rounding == "nearest":
            return StrictlyContractive(nearest_alpha(p, highest - lowest, d))
        return Unbiased(stochastic_omega(p, highest - lowest, d))

    def witness(self, d: int) -> np.ndarray:
        """Return the largest coordinate where its own error is worst, all others where underflow is.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        _, p, lowest, highest = self._format
        h, claim = 2.0 ** (1 - p), self.claim(d)
        if isinstance(claim, Unbiased):
            first, rest = max(1.0, (2 + h) / (2 * (1 + claim.omega))), 1 / (2 * (1 + claim.omega))
        else:
            first, rest = 1 + h / 2 if claim.alpha <= h / (4 + h) else 1.0, 0.5
        return np.where(np.arange(d) == 0, first, rest * h * 2.0 ** (lowest - highest))

    def claim_at(self, x: np.ndarray) -> Unbiased | StrictlyContractive:
        """Return the exact constant of one non-zero vector.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        wide = np.asarray(x, np.float64)
        _, p, lowest, highest = self._format
        wide = np.ldexp(wide, highest + 1 - int(np.frexp(np.abs(wide).max())[1]))
        rest, spacing = cells(wide, p, lowest)
        energy = float(wide @ wide)
        if self.rounding == "nearest":
            return StrictlyContractive(float((np.minimum(rest, spacing - rest) ** 2).sum()) / energy, tight=True)
        return Unbiased(float(rest @ (spacing - rest)) / energy, tight=True)

    def bits(self, d: int) -> Size:
        """Return the power and the numbers."""
        return Size.fixed(8 * HEAD_BYTES + self._format.width * d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return the four formats, the two roundings."""
        return (
            cls(),
            cls("fp16"),
            cls("e4m3"),
            cls("e5m2"),
            cls("e4m3", "stochastic"),
            cls("fp16", "stochastic"),
            cls("e5m2", "stochastic"),
        )

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        width, p, lowest, highest = self._format
        top = float(largest(x))
        if top > 2.0**HIGHEST:
            raise ValueError(f"max|x| must not exceed 2^{HIGHEST}; got {top:.4g}: rescale x")
        exponent = math.frexp(top)[1] - 1
        payload = np.zeros(HEAD_BYTES + width * x.size // 8, np.uint8)
        if top > 0:
            payload[:HEAD_BYTES] = np.array([exponent + ZERO_EXPONENT], ">u2").view(np.uint8)
            for numbers, filled in pieces(x.size, width):
                n = numbers.stop - numbers.start
                random = bits32(key, n, start=numbers.start) if self.rounding == "stochastic" else NEAREST
                codes = np.empty(n, np.uint8 if width == 8 else np.uint16)
                pattern, sign = x[numbers].view(np.uint32), 1 << (width - 1)
                round_floats(pattern, highest - exponent, p, lowest, sign, random, codes)
                payload[HEAD_BYTES:][filled] = _big_endian(codes).view(np.uint8)
        return payload, 8 * HEAD_BYTES + width * x.size

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        width, _, _, highest = self._format
        if bits != self.bits(d).exact:
            raise CorruptMessage(f"cast to {self.format} sends {self.bits(d).exact} bits at d = {d}; got {bits}")
        head = int(payload[:HEAD_BYTES].view(">u2")[0])
        codes = payload[HEAD_BYTES:].view(np.uint8 if width == 8 else ">u2").astype(np.uint16, copy=False)
        if head == 0:
            if codes.any():
                raise CorruptMessage("a zero vector has no other number")
            return np.zeros(d, np.float32)
        exponent = min(head - ZERO_EXPONENT, HIGHEST + 1)
        numbers, out = _table(self.format), np.empty(d, np.float32)
        factor = math.ldexp(1.0, exponent - highest)
        most, minus_zero = scale_numbers(codes, numbers, factor, 1 << (width - 1), out)
        top = float(numbers[most])
        if exponent > HIGHEST or minus_zero or not 2.0**highest <= top <= 2.0 ** (highest + 1):  # also NaN
            raise CorruptMessage(f"the numbers do not belong to a largest magnitude of exponent {exponent}")
        if exponent == HIGHEST and top > 2.0**highest:
            raise CorruptMessage(f"a decoded number exceeds 2^{HIGHEST}")
        return out


def _big_endian(codes: np.ndarray) -> np.ndarray:
    """Return the codes with the order of bytes on the wire; shifts take half as long as ``byteswap``."""
    return codes if codes.itemsize == 1 or sys.byteorder == "big" else (codes << 8) | (codes >> 8)


@lru_cache(maxsize=4)
def _table(name: str) -> np.ndarray:
    """Return the number of each code, NaN for a code that is never sent: float64."""
    width, p, lowest, highest = FORMATS[name]
    half = values(p, lowest, 1 << (width - 1))
    half[half > 2.0 ** (highest + 1)] = np.nan
    table = np.concatenate([half, -half])
    table[half.size] = np.nan
    return table
