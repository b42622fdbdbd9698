"""Honest operators with shared dither or a shared rotation; see ``honest``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bounds.claims import Claim, Unbiased
from operators import CorruptMessage, Key, Size
from operators.random import uniform

from .text_operator import Reader, TextOperator, float32, unsigned


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
    z[:p] = hadamard(z[:p] * signs(key.fold_in(0), p))
    if p < x.size:
        z[-p:] = hadamard(z[-p:] * signs(key.fold_in(1), p))
    return z


def unrotate(z: np.ndarray, key: Key) -> np.ndarray:
    p, x = 1 << (z.size.bit_length() - 1), np.array(z, np.float64)
    if p < z.size:
        x[-p:] = hadamard(x[-p:]) * signs(key.fold_in(1), p)
    x[:p] = hadamard(x[:p]) * signs(key.fold_in(0), p)
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
        return key.fold_in(0)

    def words(self, key: Key, d: int) -> np.ndarray:
        return uniform(key.fold_in(1), d)

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
