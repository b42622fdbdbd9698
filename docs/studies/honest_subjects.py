"""Honest compressors of many kinds, each as a function and as a codec with keys: rare, large, tiny and tied errors.

A rule maps a vector and uniform numbers of shape (3, d) to its output.  Its claim is true, and ``tight`` where the
error is an equality at every vector; then ``ceiling`` bounds the error of a single draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import torch
from scipy.special import ndtri

from bounds.claims import Claim, Contractive, StrictlyContractive, Unbiased
from operators import Key
from operators.random import uniform

Rule = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Honest:
    """A rule, what is claimed of it, and the largest ``|C(x) - x|^2/|x|^2`` of a draw where the claim is tight."""

    rule: Rule
    claim: Claim | Callable[[int], Claim]
    ceiling: float | None = None


@dataclass(frozen=True)
class Codec:
    """A rule with the random numbers of a key; the message is the output."""

    name: str
    rule: Rule

    def encode(self, x: torch.Tensor, *, key: Key) -> np.ndarray:
        """Apply the rule."""
        wide = x.detach().cpu().double().numpy()
        return self.rule(wide, uniform(key, 3 * wide.size).reshape(3, -1).astype(np.float64)).astype(np.float32)

    def decode(self, message: np.ndarray) -> np.ndarray:
        """Return the output."""
        return message


def function(rule: Rule) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the rule as a function with torch's global stream."""

    def compress(x: torch.Tensor) -> torch.Tensor:
        wide, u = x.double().numpy(), torch.rand(3, x.numel(), dtype=torch.float64).numpy()
        return torch.from_numpy(rule(wide, u).astype(np.float32))

    return compress


def kept(p: float, of: int = 1) -> Honest:
    """Runs of coordinates survive with probability p."""

    def rule(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.where(np.repeat(u[0, ::of], of)[: x.size] < p, x / p, 0.0)

    return Honest(rule, Unbiased(1 / p - 1, tight=True), max(1.0, (1 / p - 1) ** 2))


def all_or_nothing(p: float) -> Honest:
    """The whole vector survives with probability p: every error lies along x."""
    return Honest(lambda x, u: x / p * (u[0, 0] < p), Unbiased(1 / p - 1, tight=True), max(1.0, (1 / p - 1) ** 2))


def noise(size: float, draw: Callable[[np.ndarray], np.ndarray], ceiling: float | None = None) -> Honest:
    """Noise of unit variance times size at every coordinate."""
    tight = ceiling is not None
    return Honest(
        lambda x, u: x + size * np.linalg.norm(x) / sqrt(x.size) * draw(u), Unbiased(size**2, tight=tight), ceiling
    )


def signs(u: np.ndarray) -> np.ndarray:
    """Fair signs."""
    return np.where(u[0] < 0.5, -1.0, 1.0)


def rare(q: float) -> Callable[[np.ndarray], np.ndarray]:
    """Signs at a share q of the coordinates, else nothing."""
    return lambda u: np.where(u[1] < q, signs(u) / sqrt(q), 0.0)


def along(size: float) -> Honest:
    """The vector is stretched or shrunk by the same share."""
    return Honest(lambda x, u: x * (1 + size * signs(u)[0]), Unbiased(size**2, tight=True), size**2)


def in_a_direction(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """An error as long as the vector in a direction drawn from all."""
    z = ndtri(np.clip(u[0], 1e-9, 1 - 1e-9))
    return x + np.linalg.norm(x) * z / np.linalg.norm(z)


def comb(k: int) -> Honest:
    """One of k combs of coordinates is kept."""

    def rule(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.where(np.arange(x.size) % k == int(k * u[0, 0]), k * x, 0.0)

    return Honest(rule, Unbiased(k - 1.0, tight=True), float(k - 1) ** 2)


def antithetic(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Neighbours have opposite coins."""
    v = np.repeat(u[0, ::2], 2)[: x.size]
    return 2 * x * (np.where(np.arange(x.size) % 2, 1 - v, v) < 0.5)


def chosen(share: float) -> Honest:
    """Exactly k coordinates are kept."""

    def k_of(d: int) -> int:
        return max(1, int(share * d))

    def rule(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        y, i = np.zeros(x.size), np.argsort(u[0])[: k_of(x.size)]
        y[i] = x[i] * x.size / k_of(x.size)
        return y

    return Honest(rule, lambda d: Unbiased(d / k_of(d) - 1, tight=True), None)


def rounded(x: np.ndarray, u: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Round to a multiple of the step at random."""
    safe = np.where(step > 0, step, 1.0)
    return np.where(step > 0, np.floor(x / safe + u[0]) * safe, x)


def levels(s: int, bucket: int = 1 << 30) -> Honest:
    """Levels of the largest magnitude of each bucket."""

    def rule(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        starts = np.arange(0, x.size, bucket)
        largest = np.maximum.reduceat(np.abs(x), starts)
        return rounded(x, u, np.repeat(largest, bucket if starts.size > 1 else x.size)[: x.size] / s)

    return Honest(rule, lambda d: Unbiased(min(d, bucket) / (4 * s * s)))


def of_the_norm(s: int) -> Honest:
    """Levels of the length, as in QSGD."""

    def rule(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        return rounded(x, u, np.full(x.size, np.linalg.norm(x) / s))

    return Honest(rule, lambda d: Unbiased(min(d / s**2, sqrt(d) / s)))


def powers_of_two(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """One of the two powers of two around each magnitude."""
    mantissa, exponent = np.frexp(x)
    low = np.ldexp(np.sign(x), exponent - 1)
    return np.where(u[0] < 2 * np.abs(mantissa) - 1, 2 * low, low)


def ternary(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The largest magnitude or nothing."""
    largest = np.abs(x).max()
    return np.sign(x) * largest * (u[0] * largest < np.abs(x))


def largest(share: float) -> Honest:
    """The largest entries are kept."""

    def k_of(d: int) -> int:
        return max(1, int(share * d))

    def rule(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        y, i = np.zeros(x.size), np.argsort(-np.abs(x), kind="stable")[: k_of(x.size)]
        y[i] = x[i]
        return y

    return Honest(rule, lambda d: StrictlyContractive(1 - k_of(d) / d))


def masked(p: float) -> Honest:
    """Coordinates survive as they are."""
    return Honest(lambda x, u: x * (u[0] < p), Contractive(1 - p, tight=True), 1.0)


RULES = {
    "nine of ten kept": kept(0.9),
    "half kept": kept(0.5),
    "a tenth kept": kept(0.1),
    "a hundredth kept": kept(0.01),
    "half of pairs kept": kept(0.5, 2),
    "half of runs of 64 kept": kept(0.5, 64),
    "all or nothing, half": all_or_nothing(0.5),
    "all or nothing, a tenth": all_or_nothing(0.1),
    "all or nothing, a hundredth": all_or_nothing(0.01),
    "signs of unit size": noise(1.0, signs, 1.0),
    "signs of a thousandth": noise(1e-3, signs, 1e-6),
    "Gaussian noise": noise(1.0, lambda u: ndtri(np.clip(u[0], 1e-9, 1 - 1e-9))),
    "rare errors, one in ten": noise(1.0, rare(0.1)),
    "rare errors, one in a thousand": noise(1.0, rare(1e-3)),
    "stretched or shrunk by a half": along(0.5),
    "stretched or shrunk threefold": along(3.0),
    "in a drawn direction": Honest(in_a_direction, Unbiased(1.0, tight=True), 1.0),
    "one of two combs": comb(2),
    "one of seven combs": comb(7),
    "opposite coins of neighbours": Honest(antithetic, Unbiased(1.0, tight=True), 1.0),
    "exactly half": chosen(0.5),
    "exactly a twentieth": chosen(0.05),
    "one level": levels(1),
    "127 levels": levels(127),
    "four levels in buckets of 100": levels(4, 100),
    "one level of the length": of_the_norm(1),
    "sixteen levels of the length": of_the_norm(16),
    "powers of two": Honest(powers_of_two, Unbiased(1 / 8)),
    "ternary": Honest(ternary, lambda d: Unbiased((sqrt(d) - 1) / 2)),
    "the largest tenth": largest(0.1),
    "masked, three quarters": masked(0.75),
    "nothing lost": Honest(lambda x, u: x, Unbiased(0.0, tight=True), 0.0),
    "shrunk by a tenth": Honest(lambda x, u: 0.9 * x, StrictlyContractive(0.01)),
}


def subjects() -> dict[str, tuple[Any, Honest]]:
    """Every rule in both forms."""
    return {
        f"{name}, {form}": (made(name, honest.rule), honest)
        for name, honest in RULES.items()
        for form, made in (("function", lambda _, rule: function(rule)), ("codec", Codec))
    }
