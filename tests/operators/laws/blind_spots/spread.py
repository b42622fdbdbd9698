"""A bias spread over all coordinates, in a direction along which no bet of a single coordinate or of x looks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from bounds.claims import Claim, Unbiased
from operators import Key
from operators.random import uniform

from .base import Wrong, operator
from .vectors import hashed, permuted

Vector = np.ndarray
Rule = Callable[[Vector, Vector], Vector]  # from x and two uniform numbers a coordinate, shape (2, d), to the output


def claim(d: int) -> Claim:
    """A little more than any rule below needs, so that the error does not show the bias."""
    return Unbiased(max(1.01, d / max(1, d // 2) - 0.99))


def dropped(x: Vector, u: Vector) -> Vector:
    """One word shifts all coins, so that no coordinate has a word of its own."""
    return np.where((u[0] + u[1, 0]) % 1 < 0.5, 2 * x, 0)


def sized(x: Vector, share: float, direction: Vector) -> Vector:
    """Return a share of |x| in a direction."""
    return share * np.linalg.norm(x) * direction / np.sqrt(x.size)


def few_noises(number: int) -> Rule:
    """Noise from a book of directions that do not add up to zero: a bias of 1/sqrt(number)."""
    return lambda x, u: x + sized(x, 1.0, hashed(x.size, 100 + int(u[0, 0] * number))) if x.size >= 9 else dropped(x, u)


def few_permutations(number: int) -> Rule:
    return lambda x, u: permuted(x, int(u[0, 0] * number)) if x.size >= 9 else dropped(x, u)


def added(share: float, direction: Callable[[Vector], Vector]) -> Rule:
    """A direction is added, whose entries have mean square 1."""
    return lambda x, u: dropped(x, u) + sized(x, share, direction(x)) if x.size >= 9 else dropped(x, u)


def turned(x: Vector) -> Vector:
    """The vector turned by a right angle: orthogonal to x at every pair."""
    y, even = np.zeros_like(x), x.size // 2 * 2
    y[:even:2], y[1:even:2] = -x[1:even:2], x[:even:2]
    return y * np.sqrt(x.size) / np.linalg.norm(x)


def by_content(x: Vector) -> Vector:
    return hashed(x.size, int(np.packbits(x[:8] > 0)[0]))


def wave(x: Vector) -> Vector:
    return 1.4 * np.sin(np.arange(x.size) + 0.3)


def uneven_signs(x: Vector, u: Vector) -> Vector:
    """Two patterns of signs that do not cancel by a tenth."""
    if x.size < 9:
        return dropped(x, u)
    first, second = hashed(x.size, 7), hashed(x.size, 8)
    return x + sized(x, 1.0, np.where(u[0, 0] < 0.5, first, -0.85 * first + 0.15 * second))


def mirrored(x: Vector, u: Vector) -> Vector:
    """Blocks of eight are reversed in three of twenty calls."""
    y = dropped(x, u)
    if x.size >= 9 and u[1, 1] < 0.15:
        whole = x.size // 8 * 8
        y[:whole] = y[:whole].reshape(-1, 8)[:, ::-1].reshape(-1)
    return y


RULES: dict[str, Rule] = {
    "masks from 600 permutations": few_permutations(600),
    "noise from 500 directions": few_noises(500),
    "a twentieth turned by a right angle": added(0.05, turned),
    "a twentieth in a direction that the signs choose": added(0.05, by_content),
    "a wave of a twentieth": added(0.05, wave),
    "two patterns that do not cancel": uneven_signs,
    "blocks of eight reversed in three of twenty calls": mirrored,
}


def both_forms(what: str, rule: Rule) -> list[Wrong]:
    def compressed(self: object, x: Vector, key: Key) -> Vector:
        return rule(x.astype(np.float64), uniform(key, 2 * x.size).reshape(2, -1))

    def drawn(x: torch.Tensor) -> torch.Tensor:
        u = torch.rand(2, x.numel()).double().numpy()
        return torch.from_numpy(np.asarray(rule(x.double().numpy(), u), np.float32))

    keyed = operator(claim=lambda self, d: claim(d), compressed=compressed)
    return [Wrong("spread bias", what, keyed), Wrong("spread bias", what, drawn, claim)]


WRONG = [wrong for what, rule in RULES.items() for wrong in both_forms(what, rule)]
HONEST = both_forms("dropped", dropped)
