"""Wrong at some lengths, remainders or values, or in a direction that no bet looks along."""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np
import torch

from bounds.claims import Claim, StrictlyContractive, Unbiased
from operators import Operator
from operators.random import uniform

from .base import Half, Wrong, both, operator

Vector = np.ndarray


# -- lengths -----------------------------------------------------------------------------------------------------
def scaled(factor: float, least: int, most: int = 1 << 40):
    """Shrink or stretch the whole vector at lengths in a range."""
    return lambda y, x: y * np.float32(factor) if least <= y.size < most else y


def second_half_lost(y: Vector, x: Vector) -> Vector:
    if y.size >= 1 << 15:
        y[y.size // 2 :] = 0
    return y


def wrapped_index(y: Vector, x: Vector) -> Vector:
    """Places are kept in 16 bits."""
    if y.size > 1 << 16:
        y[: y.size - (1 << 16)] += y[1 << 16 :]
        y[1 << 16 :] = 0
    return y


def last_lost(y: Vector, x: Vector) -> Vector:
    if 5000 < y.size < 60_000:
        y[-1] = 0
    return y


def more_noise(y: Vector, x: Vector) -> Vector:
    """Four times or nothing at long vectors: unbiased, with three times the variance."""
    if y.size < 6000:
        return y
    coins = np.random.default_rng(zlib.crc32(y.tobytes())).random(y.size)
    return np.where(coins < 0.5, 2 * y, 0)


LENGTHS = {
    "shrunk by 30 % from 5000 on": scaled(0.7, 5000),
    "stretched by 30 % between 10 000 and 20 000": scaled(1.3, 10_000, 20_000),
    "halved beyond 2^18": scaled(0.5, 1 << 18),
    "second half lost from 2^15 on": second_half_lost,
    "index of 16 bits": wrapped_index,
    "last coordinate lost between 5000 and 60 000": last_lost,
    "three times the variance from 6000 on": more_noise,
    "not finite beyond 200 000": lambda y, x: y if y.size < 200_000 else np.full_like(y, np.inf),
}


# -- remainders --------------------------------------------------------------------------------------------------
def tail(modulus: int, remainders: range, factor: float, least: int = 1):
    """The rest of a division of the length is scaled wrongly, for some remainders."""

    def change(y: Vector, x: Vector) -> Vector:
        rest = y.size % modulus
        if rest in remainders and y.size >= least:
            y[y.size - rest :] *= np.float32(factor)
        return y

    return change


def swapped(y: Vector, x: Vector) -> Vector:
    if y.size % 4 == 2 and y.size > 2:
        y[[-1, -2]] = y[[-2, -1]]
    return y


def first_lost(y: Vector, x: Vector) -> Vector:
    if y.size % 12 == 6:
        y[0] = 0
    return y


REMAINDERS = {
    "tails of 5 of 16 lost": tail(16, range(5, 6), 0),
    "tails of 9 to 23 of 32 halved": tail(32, range(9, 24), 0.5),
    "tails of 2 to 30 of 256 lost": tail(256, range(2, 31), 0),
    "tails of 4200 and more of 8192 halved": tail(8192, range(4200, 8190), 0.5),
    "tails of 100 to 900 of 1024 doubled": tail(1024, range(100, 900), 2.0),
    "last two exchanged where 2 of 4 are left": swapped,
    "first lost where 6 of 12 are left": first_lost,
}


# -- values ------------------------------------------------------------------------------------------------------
def where(chosen, factor: float):
    """Values that satisfy a condition, on |x_i|/max|x| and x_i, are scaled."""

    def change(y: Vector, x: Vector) -> Vector:
        largest = max(float(np.abs(x).max()), 1e-37)
        return np.where(chosen(np.abs(x) / np.float32(largest), x), np.float32(factor) * y, y)

    return change


VALUES = {
    "between 0.30 and 0.31 of the largest halved": where(lambda a, x: (a > 0.30) & (a < 0.31), 0.5),
    "negative ones near -0.7 of the largest lose their sign": where(lambda a, x: (x < 0) & (abs(a - 0.7) < 0.006), -1),
    "the binade of 2^-9 doubled": where(lambda a, x: (a >= 2.0**-9) & (a < 2.0**-8), 2.0),
    "below 10^-4 of the largest lost": where(lambda a, x: a < 1e-4, 0.0),
    "just below the largest rounded up": where(lambda a, x: (a > 0.985) & (a < 1), 1.02),
    "around 0.111 of the largest lost": where(lambda a, x: (a > 0.109) & (a < 0.113), 0.0),
}


def levels(x: Vector, u: Vector, wrong: int | None) -> Vector:
    """127 levels of the largest magnitude, rounded by u; the table's entry ``wrong`` repeats the one before it."""
    scale = np.float64(np.abs(x).max())
    if scale < 2.0**-126:
        return np.zeros_like(x)
    level = 127 * np.abs(x.astype(np.float64)) / scale
    whole = np.floor(level)
    level = (whole + (u < level - whole)).astype(int)
    table = np.arange(128.0)
    if wrong is not None:
        table[wrong] -= 1
    return np.asarray(np.sign(x) * scale * table[level] / 127, np.float32)


def table_claim(d: int) -> Claim:
    return Unbiased(d / (4 * 127**2))


def wrong_table(entry: int | None) -> Operator:
    return operator(
        claim=lambda self, d: table_claim(d),
        compressed=lambda self, x, key: levels(x, uniform(key, x.size), entry),
    )


def wrong_table_function(entry: int | None):
    def wrong(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(levels(x.numpy(), torch.rand(x.shape).double().numpy(), entry))

    return wrong


def nearest(x: Vector, wrong: int | None) -> Vector:
    """The nearest of 127 levels, with one wrong entry: no randomness."""
    return levels(x, np.full(x.size, 0.5), wrong)


def nearest_claim(d: int) -> Claim:
    return StrictlyContractive(min(0.9, d / (3.9 * 127**2)))


# -- a bias spread over all coordinates ----------------------------------------------------------------------------
def hashed(d: int, salt: int = 0) -> Vector:
    """Signs that depend on place and length alone."""
    return np.random.default_rng([d, salt]).choice([-1.0, 1.0], d)


def permuted(x: Vector, number: int) -> Vector:
    """Half of the coordinates by one of the permutations that belong to the length."""
    d = x.size
    k = max(1, d // 2)
    y = np.zeros(d, np.float32)
    chosen = _permutation(d, number)[:k]
    y[chosen] = x[chosen] * np.float32(d / k)
    return y


@lru_cache(maxsize=4096)
def _permutation(d: int, number: int) -> Vector:
    return np.random.default_rng([d, number, 5]).permutation(d)


def half_claim(d: int) -> Claim:
    return Unbiased(d / max(1, d // 2) - 1)


def from_permutations(number: int) -> list[Wrong]:
    what = f"masks from {number} permutations"
    keyed = operator(
        claim=lambda self, d: half_claim(d),
        compressed=lambda self, x, key: permuted(x, int(uniform(key, 1)[0] * number)),
    )

    def drawn(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(permuted(x.numpy(), int(torch.randint(number, ()))))

    return [Wrong("spread bias", what, keyed), Wrong("spread bias", what, drawn, half_claim)]


def spread(share: float, least: int = 1):
    """A share of |x| is added in a direction that depends on the length."""

    def change(y: Vector, x: Vector) -> Vector:
        size = share * np.linalg.norm(x.astype(np.float64)) / np.sqrt(x.size)
        return y + np.float32(size) * hashed(x.size) if x.size >= least else y

    return change


SPREAD = {
    "0.25 |x| added in a fixed direction from 9 on": spread(0.25, 9),
    "0.25 |x| added in a fixed direction from 500 on": spread(0.25, 500),
    "every value raised or lowered by 22 %": lambda y, x: y * (1 + 0.22 * hashed(y.size, 1)) if y.size > 9 else y,
    "a fifth leaks to the next coordinate": lambda y, x: y + np.float32(0.2) * np.roll(y, 1) if y.size > 2 else y,
    "a quarter leaks to the mirror image": lambda y, x: y + np.float32(0.25) * y[::-1] if y.size > 2 else y,
}

WRONG = [
    *both("lengths", LENGTHS),
    *both("remainders", REMAINDERS),
    *both("values", VALUES),
    Wrong("values", "one entry of a table of 127 levels", wrong_table(77)),
    Wrong("values", "one entry of a table of 127 levels", wrong_table_function(77), table_claim),
    Wrong("values", "an entry near the end of the table", wrong_table(121)),
    Wrong("values", "an entry near the end of the table", wrong_table_function(121), table_claim),
    Wrong(
        "values", "one entry of a deterministic table",
        operator(randomness="none", claim=lambda self, d: nearest_claim(d),
                 compressed=lambda self, x, key: nearest(x, 90)),
    ),
    Wrong("values", "one entry of a deterministic table",
          lambda x: torch.from_numpy(nearest(x.numpy(), 90)), nearest_claim),
    *both("spread bias", SPREAD),
    *from_permutations(16),
    *from_permutations(64),
]  # fmt: skip
HONEST = [
    Wrong("honest", "half", Half()),
    Wrong("honest", "table", wrong_table(None)),
    Wrong("honest", "table", wrong_table_function(None), table_claim),
    Wrong("honest", "deterministic table",
          operator(randomness="none", claim=lambda self, d: nearest_claim(d),
                   compressed=lambda self, x, key: nearest(x, None))),
]  # fmt: skip
