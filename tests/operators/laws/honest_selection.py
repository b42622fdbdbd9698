"""Honest operators that select coordinates or average signs; see ``honest``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bounds.claims import Claim, Contractive, StrictlyContractive, Unbiased
from operators import CorruptMessage, Key, Size
from operators.random import uniform

from .text_operator import Reader, TextOperator, float32, unsigned


@dataclass(frozen=True)
class RandomK(TextOperator):
    """Half of the coordinates, drawn without replacement from the shared key, scaled by d/k."""

    name = "honest_random_k"
    randomness = "shared"
    equivariant = frozenset({"scale", "sign"})

    def k(self, d: int) -> int:
        return max(1, d // 2)

    def claim(self, d: int) -> Claim:
        return Unbiased(d / self.k(d) - 1, tight=True)

    def ceiling(self, d: int) -> float:
        return max(1.0, (d / self.k(d) - 1) ** 2)

    def bits(self, d: int) -> Size:
        return Size.fixed(32 * self.k(d))

    def chosen(self, d: int, key: Key) -> list[int]:
        u = uniform(key, self.k(d))
        order = list(range(d))
        for i in range(self.k(d)):
            j = i + int(u[i] * (d - i))
            order[i], order[j] = order[j], order[i]
        return order[: self.k(d)]

    def factor(self, d: int) -> float:
        return d / self.k(d)

    def write(self, x: np.ndarray, key: Key) -> str:
        return "".join(float32(x[i]) for i in self.chosen(x.size, key))

    def read(self, reader: Reader, d: int, key: Key | None) -> np.ndarray:
        x = np.zeros(d)
        for i in self.chosen(d, key):
            x[i] = self.factor(d) * reader.float32()
        return x


@dataclass(frozen=True)
class MaskedK(RandomK):
    """The same coordinates unscaled: contractive on average only."""

    name = "honest_masked_k"

    def claim(self, d: int) -> Claim:
        return Contractive(1 - self.k(d) / d, tight=True)

    def factor(self, d: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Largest(TextOperator):
    """The k largest magnitudes; gaps in Rice code with 5 low bits, values in binary32."""

    name = "honest_largest"
    randomness = "none"
    low: int = 5
    equivariant = frozenset({"scale", "sign"})

    def k(self, d: int) -> int:
        return max(1, d // 4)

    def claim(self, d: int) -> Claim:
        return StrictlyContractive(1 - self.k(d) / d)

    def bits(self, d: int) -> Size:
        k = self.k(d)
        return Size(worst_case=k * (33 + self.low) + d / 2**self.low)

    def chosen(self, x: np.ndarray) -> list[int]:
        order = sorted(range(x.size), key=lambda i: (-abs(float(x[i])), i))
        return sorted(order[: self.k(x.size)])

    def low_text(self, gap: int) -> str:
        return unsigned(gap % 2**self.low, self.low)

    def write(self, x: np.ndarray, key: Key) -> str:
        text, previous = [], -1
        for i in self.chosen(x):
            gap = i - previous - 1
            text.append("1" * (gap >> self.low) + "0" + self.low_text(gap) + float32(x[i]))
            previous = i
        return "".join(text)

    def index(self, previous: int, gap: int) -> int:
        return previous + 1 + gap

    def read(self, reader: Reader, d: int, key: Key | None) -> np.ndarray:
        x, previous = np.zeros(d), -1
        for _ in range(self.k(d)):
            gap = (reader.unary(d) << self.low) + reader.unsigned(self.low)
            previous = self.index(previous, gap)
            if previous >= d:
                raise CorruptMessage("an index is beyond d")
            x[previous] = reader.float32()
        return x


@dataclass(frozen=True)
class MeanSign(TextOperator):
    """Signs times the mean magnitude."""

    name = "honest_mean_sign"
    randomness = "none"
    equivariant = frozenset({"scale"})

    def claim(self, d: int) -> Claim:
        return StrictlyContractive(1 - 1 / d)

    def bits(self, d: int) -> Size:
        return Size.fixed(32 + d)

    def scale(self, x: np.ndarray) -> float:
        return float(np.abs(x.astype(np.float64)).mean())

    def sign(self, v: float) -> str:
        return "1" if v < 0 else "0"

    def value(self, bit: str) -> float:
        return -1.0 if bit == "1" else 1.0

    def write(self, x: np.ndarray, key: Key) -> str:
        return float32(self.scale(x)) + "".join(map(self.sign, x.tolist()))

    def read(self, reader: Reader, d: int, key: Key | None) -> np.ndarray:
        scale = reader.float32()
        return scale * np.array([self.value(reader.take(1)) for _ in range(d)])


@dataclass(frozen=True)
class TwoMeans(TextOperator):
    """1-bit SGD: the mean of the entries >= 0 and the mean of the negative ones."""

    name = "honest_two_means"
    randomness = "none"
    equivariant = frozenset({"scale", "permutation"})

    def claim(self, d: int) -> Claim:
        return StrictlyContractive(1 - 1 / d)

    def bits(self, d: int) -> Size:
        return Size.fixed(64 + d)

    def mean(self, entries: np.ndarray) -> float:
        return float(entries.astype(np.float64).mean()) if entries.size else 0.0

    def write(self, x: np.ndarray, key: Key) -> str:
        means = float32(self.mean(x[x >= 0])) + float32(self.mean(x[x < 0]))
        return means + "".join("1" if v < 0 else "0" for v in x.tolist())

    def read(self, reader: Reader, d: int, key: Key | None) -> np.ndarray:
        above, below = reader.float32(), reader.float32()
        return np.array([below if reader.take(1) == "1" else above for _ in range(d)])
