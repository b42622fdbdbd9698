"""The starting counts of the code of E8's points, and limits of the message lengths that follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..bits import elias

G = 929 / 12960  # second moment of a coordinate of the error, cell of volume 1
SYMBOLS = 64  # the last one announces an escape
TOTAL = SYMBOLS  # where the sum of a context's counts stands
CLASSES = 8
LAST = 3 * CLASSES  # first context of the last coordinate: before it the sum is even, odd, odd and this is farthest
SINGLES = LAST + CLASSES  # first context after the last full block
COSETS = SINGLES + CLASSES  # first context of the coset decisions
CONTEXTS = COSETS + 16
PRIOR, GAIN, LIMIT = 2048, 32, 1 << 18  # weight of the Gaussian law, of a symbol, and of all a context remembers
ESCAPE_BITS = 48  # most of an escape's code; no |q - u| that an encoder admits needs more
_FINE = 4.0  # low bits are sent raw where cells are at most sigma / 4
SINGLE = math.sqrt(12 * G)  # spacing after the last full block


class Model(NamedTuple):
    """Starting counts, shape (CONTEXTS, SYMBOLS + 1), int64, and the number of raw low bits of a coordinate."""

    counts: np.ndarray
    raw: int


class Family(NamedTuple):
    """Contexts first .. first + 7: candidates ``gap`` apart, in classes of ``step``, with ``low_bits`` raw bits."""

    first: int
    gap: float
    step: float
    low_bits: int


def _sigma(omega: float) -> float:
    """Return root mean square of a coordinate of q - u, for ``|x|^2 = d G/omega`` in units of the lattice."""
    return math.sqrt(G * (1 + 1 / omega))


def _families(raw: int) -> list[Family]:
    full = [Family(first, 1.0, 1 / 16, raw) for first in range(0, LAST, CLASSES)]
    return [*full, Family(LAST, 2.0, 1 / 8, max(0, raw - 1)), Family(SINGLES, SINGLE, SINGLE / 16, raw)]


def _high(symbols: np.ndarray) -> np.ndarray:
    """Return 0, 1, -1, 2, -2, ... of symbols 0, 1, 2, ..."""
    return (symbols + 1) // 2 * np.where(symbols % 2, 1, -1)


@lru_cache(maxsize=32)
def model(omega: float) -> Model:
    """Return the counts from which a message starts."""
    sigma = _sigma(omega)
    raw = max(0, math.floor(math.log2(sigma / _FINE)))
    counts = np.zeros((CONTEXTS, SYMBOLS + 1), np.int64)
    high = _high(np.arange(SYMBOLS - 1))
    for family in _families(raw):
        middle = (high * 2.0**family.low_bits + (2.0**family.low_bits - 1) / 2) * family.gap
        for i in range(CLASSES):
            law = np.exp(-((middle - (i + 0.5) * family.step) ** 2) / (2 * sigma * sigma))
            counts[family.first + i, : SYMBOLS - 1] = 1 + np.rint(PRIOR * law / law.sum())
            counts[family.first + i, SYMBOLS - 1] = 1
    for i in range(CONTEXTS - COSETS):
        second = 1 / (1 + math.exp(-((i + 0.5) / 8 - 1) / (2 * sigma * sigma)))
        counts[COSETS + i, :2] = 1 + np.rint(PRIOR * np.array([1 - second, second]))
    counts[:, TOTAL] = counts[:, :SYMBOLS].sum(axis=1)
    return Model(counts, raw)


@lru_cache(maxsize=32)
def costs(omega: float) -> np.ndarray:
    """Return bits of each symbol under the starting counts, shape (CONTEXTS, SYMBOLS); 0 where there is none."""
    counts = model(omega).counts
    return np.log2(counts[:, TOTAL:] / np.maximum(counts[:, :SYMBOLS], 1)) * (counts[:, :SYMBOLS] > 0)


def _most(omega: float, price: float) -> float:
    """Return the largest of bits - price z^2 over all contexts, dithers and symbols, ``z = |q_i - u_i|``.

    Symbols up to 4095 are tried; beyond, z^2 grows faster than an escape's code.
    """
    table, symbols, best = costs(omega), np.arange(4096), -math.inf
    escape = np.array([elias.length(int(n) - SYMBOLS + 2) if n >= SYMBOLS - 1 else 0 for n in symbols])
    for family in _families(model(omega).raw):
        low = _high(symbols) * 2.0**family.low_bits * family.gap
        high = low + (2.0**family.low_bits - 1) * family.gap
        for i in range(CLASSES):
            z = np.maximum(0, np.maximum(low - (i + 1) * family.step, i * family.step - high))
            bits = table[family.first + i, np.minimum(symbols, SYMBOLS - 1)] + escape + family.low_bits
            best = max(best, float((bits - price * z * z).max()))
    return best


def _most_coset(omega: float, price: float) -> float:
    """Return the largest of bits - price ``|q - u|^2`` over the coset decisions: ``|q - u|^2`` is at least how much
    farther it is.
    """
    table, i = costs(omega)[COSETS:], np.arange(CONTEXTS - COSETS)
    farther = np.stack([np.maximum(0, i / 8 - 1), np.maximum(0, 1 - (i + 1) / 8)], axis=1)
    return float((table[:, :2] - price * farther).max())


@lru_cache(maxsize=32)
def _prices(omega: float) -> tuple[float, float, float]:
    """Return (a, b, c): a coordinate and its share of the coset take at most a + b z^2 bits; the least a +
    b sigma^2.
    """
    square, around = _sigma(omega) ** 2, math.log(1 / (2 * math.log(2)))

    def search(most: Callable[[float, float], float], weight: float) -> tuple[float, float]:
        logs = np.linspace(around - 4, around + 2, 61)
        candidates = [
            (most(omega, math.exp(log) / square) + weight * math.exp(log), math.exp(log) / square) for log in logs
        ]
        value, price = min(candidates)
        return value - weight * price * square, price

    (a, first), (coset, second) = search(_most, 1.0), search(_most_coset, 8.0)
    return a, first + second, coset


def sizes(d: int, omega: float) -> tuple[float, float]:
    """Return (limit of the mean, worst) bits of a stream, for every x.

    With counts that stand still every coordinate takes at most a + b z^2 bits and every coset c more, z = q_i - u_i.  E
    sum z^2 = d G (1 + 1/omega), and ``|q - u|`` is at most ``|x|/step`` and the covering radii, 1 a block and
    SINGLE/2.  Two bits end the stream; one more covers its rounding, a factor that of ``|x|`` in binary32.
    """
    a, b, c = _prices(omega)
    fixed = d * max(a, 0.0) + (d // 8) * max(c, 0.0) + 3
    radius = math.sqrt(d // 8 + d % 8 * SINGLE**2 / 4)
    reach = (1 + 2.0**-22) * d * G / omega
    return fixed + b * (reach + d * G), fixed + b * (math.sqrt(reach) + radius) ** 2


def room(d: int, omega: float) -> int:
    """Return bytes that ``encode`` may need: learnt counts of 1, every coordinate an escape."""
    return int(d * (math.log2(2 * LIMIT) * 9 / 8 + 1 + model(omega).raw + ESCAPE_BITS)) // 8 + 16
