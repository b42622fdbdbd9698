"""Small, slow, obviously right operators, cut so that overriding one method makes exactly one mistake.

They share no code with the package beyond the contract, the random words and the key.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np

from bounds.claims import Claim, Contractive, StrictlyContractive, Unbiased
from operators import CorruptMessage, Key, Operator, Size
from operators.random import uniform

TINY = 2.0**-126


class Reader:
    """Takes fields off a string of "0" and "1"."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def take(self, n: int) -> str:
        if self.at + n > len(self.text):
            raise CorruptMessage("the message is too short")
        self.at += n
        return self.text[self.at - n : self.at]

    def unsigned(self, n: int) -> int:
        return int(self.take(n) or "0", 2)

    def float32(self) -> float:
        value = struct.unpack(">f", self.unsigned(32).to_bytes(4, "big"))[0]
        if not math.isfinite(value):
            raise CorruptMessage("a value is not finite")
        return value

    def unary(self, most: int) -> int:
        n = 0
        while self.take(1) == "1":
            n += 1
            if n > most:
                raise CorruptMessage("a unary field is too long")
        return n

    def finish(self) -> None:
        if self.at != len(self.text):
            raise CorruptMessage("bits are left over")


def float32(value: float) -> str:
    return f"{int.from_bytes(struct.pack('>f', np.float32(value)), 'big'):032b}"


def unsigned(value: int, width: int) -> str:
    return f"{value:0{width}b}" if width else ""


class TextOperator(Operator):
    """An operator whose message is written and read as text."""

    def write(self, x: np.ndarray, key: Key) -> str:
        raise NotImplementedError

    def read(self, reader: Reader, d: int, key: Key | None) -> np.ndarray:
        raise NotImplementedError

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        text = self.write(x, key)
        return np.packbits(np.array([c == "1" for c in text], np.uint8)), len(text)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        reader = Reader("".join(map(str, np.unpackbits(payload)[:bits].tolist())))
        value = np.asarray(self.read(reader, d, key), np.float64)
        reader.finish()
        if np.abs(value).max() > np.finfo(np.float32).max:
            raise CorruptMessage("a value is beyond binary32")
        return value.astype(np.float32)

    @classmethod
    def examples(cls) -> tuple[Operator, ...]:
        return (cls(),)


@dataclass(frozen=True)
class Dithering(TextOperator):
    """Stochastic rounding of levels |x|/|x|_2 to {0, ..., s}/s; flag, sign, level in fixed width."""

    s: int = 2
    name = "honest_dithering"
    randomness = "private"
    equivariant = frozenset({"scale", "sign"})

    def claim(self, d: int) -> Claim:
        return Unbiased(math.sqrt(d) / self.s - 1 if 2 * self.s <= math.sqrt(d) else d / (4 * self.s**2))

    def witness(self, d: int) -> np.ndarray:
        """Where the constant is reached: equal magnitudes, or, below 4 s^2 coordinates, all levels at one half."""
        if 2 * self.s <= math.sqrt(d):
            return np.ones(d)
        halves = (2 * self.s) ** 2 / d
        n = min(d, round(4 * self.s**2 / 9)) if halves > 4 else 0
        return np.where(np.arange(d) < max(n, 1), 1.0, 0.0) if n else np.ones(d)

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
        for v, u in zip(x.tolist(), self.uniform(key, x.size), strict=True):
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


@dataclass(frozen=True)
class Subtractive(TextOperator):
    """Round x/step + u, subtract u again: the error is uniform whatever x is."""

    omega: float = 0.5
    name = "honest_subtractive"
    randomness = "shared"

    def claim(self, d: int) -> Claim:
        return Unbiased(self.omega, tight=True)

    def bits(self, d: int) -> Size:
        return Size(worst_case=32 + 40 * d)

    def step(self, scale: float, d: int) -> float:
        return scale * math.sqrt(12 * self.omega / d)

    def dither(self, key: Key, d: int) -> np.ndarray:
        return uniform(key, d) + 2.0**-33

    def undo(self, n: np.ndarray, key: Key) -> np.ndarray:
        return n - self.dither(key, n.size)

    def write(self, x: np.ndarray, key: Key) -> str:
        scale = np.float32(np.linalg.norm(x.astype(np.float64)))
        if scale == 0:
            return float32(0)
        n = np.rint(x.astype(np.float64) / self.step(float(scale), x.size) + self.dither(key, x.size))
        return float32(scale) + "".join(unsigned(int(v) + 2**39, 40) for v in n)

    def read(self, reader: Reader, d: int, key: Key | None) -> np.ndarray:
        scale = reader.float32()
        if scale == 0:
            return np.zeros(d)
        n = np.array([float(reader.unsigned(40) - 2**39) for _ in range(d)])
        return self.undo(n, key) * self.step(scale, d)


def hadamard(x: np.ndarray) -> np.ndarray:
    """Orthonormal Walsh-Hadamard transform; the length is a power of two."""
    n = 1
    while n < x.size:
        pairs = x.reshape(-1, 2, n)
        x = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        n *= 2
    return x / math.sqrt(x.size)


def signs(key: Key, n: int) -> np.ndarray:
    return np.where(uniform(key, n) < 0.5, 1.0, -1.0)


def rotate(x: np.ndarray, key: Key) -> np.ndarray:
    """Random signs and a Hadamard transform of the first and then of the last 2^n coordinates."""
    p, z = 1 << (x.size.bit_length() - 1), x.astype(np.float64)
    z[:p] = hadamard(z[:p] * signs(key.fold(0), p))
    if p < x.size:
        z[-p:] = hadamard(z[-p:] * signs(key.fold(1), p))
    return z


def unrotate(z: np.ndarray, key: Key) -> np.ndarray:
    p, x = 1 << (z.size.bit_length() - 1), np.array(z, np.float64)
    if p < z.size:
        x[-p:] = hadamard(x[-p:]) * signs(key.fold(1), p)
    x[:p] = hadamard(x[:p]) * signs(key.fold(0), p)
    return x


@dataclass(frozen=True)
class Rotated(TextOperator):
    """Rotate with the shared key, round to {-m, 0, m} with private words, rotate back."""

    name = "honest_rotated"
    randomness = "shared"

    def claim(self, d: int) -> Claim:
        return Unbiased(0.5 * (math.sqrt(d) - 1))

    def bits(self, d: int) -> Size:
        return Size.fixed(32 + 2 * d)

    def rotation(self, key: Key) -> Key:
        return key.fold(0)

    def words(self, key: Key, d: int) -> np.ndarray:
        return uniform(key.fold(1), d)

    def forth(self, x: np.ndarray, key: Key) -> np.ndarray:
        return rotate(x, self.rotation(key))

    def back(self, z: np.ndarray, key: Key) -> np.ndarray:
        return unrotate(z, self.rotation(key))

    def write(self, x: np.ndarray, key: Key) -> str:
        z = self.forth(x, key)
        largest = float(np.abs(z).max())
        m = float(np.float32(largest) if np.float32(largest) >= largest else np.nextafter(np.float32(largest), np.inf))
        code = {0: "00", 1: "01", -1: "11"}
        u = self.words(key, x.size)
        trits = [int(math.copysign(u[i] * m < abs(v), v)) if v else 0 for i, v in enumerate(z.tolist())]
        return float32(m) + "".join(code[t] for t in trits)

    def read(self, reader: Reader, d: int, key: Key | None) -> np.ndarray:
        m = reader.float32()
        value = {"00": 0.0, "01": m, "11": -m}
        z = np.zeros(d)
        for i in range(d):
            code = reader.take(2)
            if code not in value:
                raise CorruptMessage("10 is no trit")
            z[i] = value[code]
        return self.back(z, key)


@dataclass(frozen=True)
class MaskedK(RandomK):
    """The same coordinates unscaled: contractive on average only."""

    name = "honest_masked_k"

    def claim(self, d: int) -> Claim:
        return Contractive(1 - self.k(d) / d, tight=True)

    def factor(self, d: int) -> float:
        return 1.0


HONEST = (
    Dithering(s=2), Dithering(s=1), Ternary(), Natural(), RandomK(), MaskedK(), Largest(), MeanSign(), TwoMeans(),
    Subtractive(), Rotated(),
)  # fmt: skip
