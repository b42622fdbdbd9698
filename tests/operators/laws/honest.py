"""Small, slow, obviously right operators, cut so that overriding one method makes exactly one mistake.

They share no code with the package beyond the contract, the random words and the key.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bounds.claims import Claim, Unbiased
from operators import CorruptMessage, Key, Size
from operators.random import uniform

from .honest_rotation import Rotated, Subtractive
from .honest_selection import Largest, MaskedK, MeanSign, RandomK, TwoMeans
from .text_operator import TINY, Reader, TextOperator, float32, unsigned


@dataclass(frozen=True)
class Dithering(TextOperator):
    """Stochastic rounding of levels |x|/|x|_2 to {0, ..., s}/s; flag, sign, level in fixed width."""

    s: int = 2
    name = "honest_dithering"
    randomness = "private"
    equivariant = frozenset({"scale", "sign"})

    def claim(self, d: int) -> Claim:
        return Unbiased(math.sqrt(d) / self.s - 1 if 2 * self.s <= math.sqrt(d) else d / (4 * self.s**2))

    def witness(self, d: int) -> np.ndarray | None:
        """Equal magnitudes reach the first of the two constants."""
        return np.ones(d) if 2 * self.s <= math.sqrt(d) else None

    def bits(self, d: int) -> Size:
        return Size(worst_case=32 + d * (2 + self.width))

    @property
    def width(self) -> int:
        return self.s.bit_length()

    def scale(self, x: np.ndarray) -> float:
        norm = np.float32(np.linalg.norm(x.astype(np.float64)))
        return float(np.nextafter(norm, np.float32(np.inf)))

    def level(self, a: float, u: float) -> int:
        return math.floor(a) + (u < a - math.floor(a))

    def value(self, scale: float, level: int) -> float:
        return scale * level / self.s

    def sign(self, v: float) -> str:
        return "1" if v < 0 else "0"

    def read_sign(self, bit: str) -> float:
        return -1.0 if bit == "1" else 1.0

    def uniform(self, key: Key, d: int) -> np.ndarray:
        return uniform(key, d)

    def level_text(self, level: int) -> str:
        return unsigned(level, self.width)

    def write(self, x: np.ndarray, key: Key) -> str:
        scale = self.scale(x) if np.abs(x).max() >= TINY else 0.0
        if scale == 0:
            return float32(0)
        text = [float32(scale)]
        for v, u in zip(x.tolist(), self.uniform(key, x.size).tolist(), strict=True):
            level = self.level(self.s * abs(v) / scale, u)
            text.append("1" + self.sign(v) + self.level_text(level) if level else "0")
        return "".join(text)

    def read(self, reader: Reader, d: int, key: Key | None) -> np.ndarray:
        scale = reader.float32()
        if scale == 0:
            return np.zeros(d)
        x = np.zeros(d)
        for i in range(d):
            if reader.take(1) == "1":
                sign = self.read_sign(reader.take(1))
                x[i] = sign * self.value(scale, reader.unsigned(self.width))
        return x


@dataclass(frozen=True)
class Ternary(Dithering):
    """TernGrad: one level, largest magnitude as the scale."""

    s: int = 1
    name = "honest_ternary"

    def claim(self, d: int) -> Claim:
        return Unbiased(0.5 * (math.sqrt(d) - 1))

    def witness(self, d: int) -> np.ndarray:
        return np.where(np.arange(d) == 0, 1.0, 1 / (1 + math.sqrt(d)))

    def scale(self, x: np.ndarray) -> float:
        return float(np.abs(x).max())


@dataclass(frozen=True)
class Natural(TextOperator):
    """Round stochastically to a neighbouring power of two; sign and exponent in 9 bits, 0 its own code."""

    name = "honest_natural"
    randomness = "private"
    equivariant = frozenset({"scale", "sign"})

    def claim(self, d: int) -> Claim:
        return Unbiased(1 / 8)

    def witness(self, d: int) -> np.ndarray:
        return np.full(d, 4 / 3)

    def bits(self, d: int) -> Size:
        return Size.fixed(10 * d)

    def code(self, exponent: int) -> int:
        return exponent + 150  # 2^-149 is 1, zero is 0

    def up(self, fraction: float, u: float) -> bool:
        return u < fraction

    def write(self, x: np.ndarray, key: Key) -> str:
        text = []
        for v, u in zip(x.tolist(), uniform(key, x.size), strict=True):
            if v == 0:
                text.append("0" * 10)
                continue
            exponent = math.frexp(abs(v))[1] - 1
            exponent += self.up(abs(v) / 2.0**exponent - 1, u)
            text.append(("1" if v < 0 else "0") + unsigned(self.code(exponent), 9))
        return "".join(text)

    def read(self, reader: Reader, d: int, key: Key | None) -> np.ndarray:
        x = np.zeros(d)
        for i in range(d):
            sign, code = -1.0 if reader.take(1) == "1" else 1.0, reader.unsigned(9)
            if code > 150 + 127:
                raise CorruptMessage("the exponent is out of range")
            x[i] = sign * 2.0 ** (code - 150) if code else 0.0
        return x


HONEST = (
    Dithering(s=2), Dithering(s=1), Ternary(), Natural(), RandomK(), MaskedK(), Largest(), MeanSign(), TwoMeans(),
    Subtractive(), Rotated(),
)  # fmt: skip
JUDGED_BY_ALL_LAWS = [op for op in HONEST if not isinstance(op, Subtractive)]  # in the fast suite, by test_check.py
