"""A second attack, by kind: wrong in ways that the laws were not written for."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from bounds.claims import UnbiasedMean
from operators import Key
from operators.laws import adapt
from operators.random import uniform

from .base import ONE, Change, Half, Wrong, both, half, operator
from .exchanges import WrongExchange, changed, joint
from .hooks import gathered, hook, mean
from .spread import added, both_forms, dropped, few_noises
from .streams import Calls, mixed
from .vectors import hashed, where
from .wrappers import keeping, merging, voting

Vector = np.ndarray


# -- lengths and remainders ----------------------------------------------------------------------------------------
def at(lengths: Callable[[int], bool], change: Callable[[Vector], Vector]) -> Change:
    """Change the output at lengths that satisfy a condition."""
    return lambda y, x: change(y) if lengths(y.size) else y


def with_part(part: Callable[[int], Any], factor: float) -> Callable[[Vector], Vector]:
    """Scale a part of the output, a slice or indices that depend on the length."""

    def change(y: Vector) -> Vector:
        y[part(y.size)] *= np.float32(factor)
        return y

    return change


def truncated(y: Vector) -> Vector:
    """Keep two bits of the mantissa, cut off."""
    mantissa, exponent = np.frexp(y)
    return np.ldexp(np.trunc(mantissa * 4) / 4, exponent).astype(np.float32)


def rest_reversed(y: Vector) -> Vector:
    rest = y.size % 2048
    y[-rest:] = y[-rest:][::-1].copy()
    return y


def pairs_averaged(y: Vector) -> Vector:
    whole = y.size // 2 * 2
    y[:whole] = np.repeat(y[:whole].reshape(-1, 2).mean(axis=1), 2)
    return y


LENGTHS = {
    "every fourth entry negated from 3000 on": at(lambda d: d >= 3000, with_part(lambda d: slice(0, d, 4), -1)),
    "reversed beyond 2^17": at(lambda d: d > 1 << 17, lambda y: y[::-1].copy()),
    "the middle third lost between 700 and 1000": at(
        lambda d: 700 <= d < 1000, with_part(lambda d: slice(d // 3, 2 * d // 3), 0)
    ),
    "two bits of the mantissa beyond 2^15": at(lambda d: d > 1 << 15, truncated),
    "multiples of 4096 lost": at(lambda d: d > 4096, with_part(lambda d: slice(4096, d, 4096), 0)),
    "shrunk by a fifth at powers of two from 2^10 on": at(lambda d: d >= 1024 and d & (d - 1) == 0, lambda y: 0.8 * y),
    "pairs averaged at even lengths beyond 2000": at(lambda d: d > 2000 and d % 2 == 0, pairs_averaged),
    "stretched by a fifth between 66 and 126": at(lambda d: 66 <= d <= 126, lambda y: 1.2 * y),
}
REMAINDERS = {
    "shrunk by 30 % where 1 of 3 is left": at(lambda d: d % 3 == 1 and d > 9, lambda y: 0.7 * y),
    "last seven lost at multiples of 7": at(lambda d: d % 7 == 0 and d >= 70, with_part(lambda d: slice(d - 7, d), 0)),
    "the middle one lost at odd lengths": at(lambda d: d % 2 == 1 and d > 70, with_part(lambda d: d // 2, 0)),
    "the last whole block of 64 halved where more than half a block is left": at(
        lambda d: d % 64 > 32 and d > 64, with_part(lambda d: slice(d // 64 * 64 - 64, d // 64 * 64), 0.5)
    ),
    "as many first entries as are left of 8 stretched by half": at(
        lambda d: d % 8 == 7, with_part(lambda d: slice(0, 7), 1.5)
    ),
    "the rest of 2048 in reverse": at(
        lambda d: d % 2048 > 1024 and d > 2048,
        lambda y: np.concatenate([y[: -(y.size % 2048)], y[: -(y.size % 2048) - 1 : -1]]),
    ),
    "shrunk by 15 % at multiples of 5 beyond 1000": at(lambda d: d % 5 == 0 and d > 1000, lambda y: 0.85 * y),
}


# -- values ----------------------------------------------------------------------------------------------------------
def largest_entry(factor: float, place: int = -1, *, negative: bool = False) -> Change:
    """Scale the entry of that rank in magnitude."""

    def change(y: Vector, x: Vector) -> Vector:
        i = int(np.argsort(np.abs(x), kind="stable")[place]) if x.size >= -place else 0
        if not negative or x[i] < 0:
            y[i] *= np.float32(factor)
        return y

    return change


VALUES = {
    "exact halves of the largest lost": where(lambda a, x: a == 0.5, 0.0),
    "between 0.200 and 0.206 of the largest lost": where(lambda a, x: (a > 0.2) & (a < 0.206), 0.0),
    "a negative largest entry stretched by a tenth": largest_entry(1.1, negative=True),
    "the largest entry clipped by a tenth": largest_entry(0.9),
    "the second largest entry lost": largest_entry(0.0, -2),
    "whole numbers beyond 1 halved": where(lambda a, x: (x == np.round(x)) & (np.abs(x) > 1), 0.5),
    "clipped at 1000": lambda y, x: np.clip(y, -1000, 1000),
    "below a millionth lost": where(lambda a, x: np.abs(x) < 1e-6, 0.0),
}


# -- a bias spread over all coordinates ------------------------------------------------------------------------------
def descending(x: Vector) -> Vector:
    y = np.arange(x.size, 0, -1.0)
    return y * np.sqrt(x.size) / np.linalg.norm(y)


def of_the_largest(x: Vector) -> Vector:
    y = np.zeros(x.size)
    y[np.abs(x).argmax()] = np.sqrt(x.size)
    return y


def uneven_groups(x: Vector, u: Vector) -> Vector:
    """Entries of even places are raised, the others lowered by a twentieth."""
    y = dropped(x, u)
    return y * np.where(np.arange(x.size) % 2, 0.93, 1.07) if x.size >= 9 else y


def leaking(x: Vector, u: Vector) -> Vector:
    y = dropped(x, u)
    return y + 0.07 * np.roll(y, 3) if x.size >= 9 else y


def exchanged_at_times(x: Vector, u: Vector) -> Vector:
    """Halves of the vector are exchanged in one of ten calls."""
    y = dropped(x, u)
    return np.roll(y, x.size // 2) if x.size >= 9 and u[1, 1] < 0.1 else y


SPREAD = {
    "0.07 |x| along signs of its own": added(0.07, lambda x: np.where(x < 0, -1, 1) * hashed(x.size, 3)),
    "noise from 250 directions": few_noises(250),
    "0.06 |x| that declines": added(0.06, descending),
    "even places raised, odd ones lowered": uneven_groups,
    "0.06 |x| at all coordinates": added(0.06, lambda x: np.ones(x.size)),
    "a fourteenth leaks three places on": leaking,
    "0.06 |x| at the largest entry": added(0.06, of_the_largest),
    "halves exchanged in one of ten calls": exchanged_at_times,
}


# -- streams ---------------------------------------------------------------------------------------------------------
def antithetic(field: str) -> Callable[[object, Key, int], Vector]:
    """Keys that differ in the lowest bit of a field have opposite words."""

    def coins(self: object, key: Key, d: int) -> Vector:
        value = getattr(key, field)
        change: dict[str, Any] = {field: value // 2}
        u = uniform(replace(key, **change), d)
        return (1 - u if value % 2 else u) % 1

    return coins


def shared_by_ranks(self: object, key: Key, d: int) -> Vector:
    """Every second word is that of rank 0."""
    return np.where(np.arange(d) % 2, uniform(key, d), uniform(replace(key, rank=0), d))


def turned_by_step(self: object, key: Key, d: int) -> Vector:
    return np.roll(uniform(replace(key, step=0), d), key.step % d)


KEYED = {
    "a step modulo 97": mixed(lambda k: replace(k, step=k.step % 97)),
    "a rank modulo 50": mixed(lambda k: replace(k, rank=k.rank % 50)),
    "a step modulo 1009": mixed(lambda k: replace(k, step=k.step % 1009)),
    "the lower 32 bits of a seed": mixed(lambda k: replace(k, seed=k.seed % (1 << 32))),
    "antithetic layers": antithetic("layer"),
    "antithetic ranks": antithetic("rank"),
    "every second word is that of rank 0": shared_by_ranks,
    "words turned by the step": turned_by_step,
}


def period(number: int) -> Callable[[Calls, int], torch.Tensor]:
    """The numbers repeat after so many calls."""
    return lambda calls, d: torch.from_numpy(np.random.default_rng([calls.n % number, d]).random(d))


def from_a_tape(calls: Calls, d: int) -> torch.Tensor:
    """A tape of 5000 numbers is read again and again."""
    start = getattr(calls, "start", 0)
    calls.start = (start + d) % 5000  # type: ignore[attr-defined]
    tape = np.random.default_rng(5).random(5000)
    return torch.from_numpy(np.resize(np.roll(tape, -start), d))


def of_the_first(calls: Calls, d: int) -> torch.Tensor:
    """Every third call repeats the first one."""
    first = calls.__dict__.setdefault("first", {}).setdefault(d, torch.rand(d))
    return first if calls.n % 3 == 0 else torch.rand(d)


def correlated(calls: Calls, d: int) -> torch.Tensor:
    """A normal variable remembers two fifths of the one before."""
    before = calls.__dict__.setdefault("normal", {})
    z = torch.randn(d)
    before[d] = z if d not in before else 0.4 * before[d] + (1 - 0.16) ** 0.5 * z
    return torch.special.ndtr(before[d])


def two_thirds(calls: Calls, d: int) -> torch.Tensor:
    u, before = torch.rand(d), calls.before(d)
    if before is not None and len(calls.past[d]) % 2:
        u[: 2 * d // 3] = 1 - before[: 2 * d // 3]
    return u


CALLED = {
    "a period of 40 calls": period(40),
    "a period of 128 calls": period(128),
    "a tape of 5000 numbers": from_a_tape,
    "every third call repeats the first": of_the_first,
    "a memory of two fifths": correlated,
    "two thirds antithetic": two_thirds,
}


# -- circumstances ---------------------------------------------------------------------------------------------------
SALTS: dict[str, Callable[[], int]] = {
    "other coins with deterministic algorithms": lambda: int(torch.are_deterministic_algorithms_enabled()),
    "other coins with another number of threads": lambda: torch.get_num_threads(),
    "other coins where numpy raises": lambda: int(np.geterr()["over"] == "raise"),
    "other coins in anomaly mode": lambda: int(torch.is_anomaly_enabled()),
    "other coins without denormal numbers": lambda: int(float(torch.tensor(1e-40) * torch.tensor(1.0)) == 0),
}


def salted(what: str, salt: Callable[[], int]) -> list[Wrong]:
    first = salt()

    def coins(self: object, key: Key, d: int) -> Vector:
        return uniform(key.fold_in(int(salt() != first)), d)

    def drawn(x: torch.Tensor) -> torch.Tensor:
        u = torch.rand(1 + (salt() != first), x.numel())[-1].reshape(x.shape)
        return 2 * x * (u < 0.5)

    return [Wrong("circumstances", what, operator(coins=coins)), Wrong("circumstances", what, drawn, ONE)]


class Copied(Half):
    """A deep copy draws other coins."""

    def coins(self, key: Key, d: int) -> Vector:
        return uniform(key.fold_in(int(getattr(self, "is_copy", 0))), d)

    def __deepcopy__(self, memo: dict[int, Any]) -> Copied:
        result = copy.copy(self)
        object.__setattr__(result, "is_copy", 1)
        return result


class Counting(Half):
    """Every hundredth call draws other coins."""

    calls = 0

    def coins(self, key: Key, d: int) -> Vector:
        type(self).calls += 1
        return uniform(key.fold_in(int(self.calls % 100 == 0)), d)


def as_parameter(self: Any, x: Any, *, key: Key) -> Any:
    return Half.encode(self, x, key=key.fold_in(int(isinstance(x, torch.nn.Parameter))))


def by_gradient(self: Any, x: Any, *, key: Key) -> Any:
    return Half.encode(self, x, key=key.fold_in(int(isinstance(x, torch.Tensor) and x.requires_grad)))


def by_shape(self: Any, x: Any, *, key: Key) -> Any:
    return Half.encode(self, x, key=key.fold_in(len(x.shape)))


CIRCUMSTANCES = [
    *(wrong for what, salt in SALTS.items() for wrong in salted(what, salt)),
    Wrong("circumstances", "a deep copy draws other coins", Copied()),
    Wrong("circumstances", "every hundredth call draws other coins", Counting()),
    Wrong("circumstances", "a parameter has other coins", operator(encode=as_parameter)),
    Wrong("circumstances", "a tensor with gradient has other coins", operator(encode=by_gradient)),
    Wrong("circumstances", "coins by the number of axes", operator(encode=by_shape)),
]


# -- feedback --------------------------------------------------------------------------------------------------------
MEMORY = {
    "the memory is negated every 100 messages": keeping(lambda m, x, t: -m if t % 100 == 99 else m),
    "the memory is turned by one place at message 37": keeping(lambda m, x, t: m.roll(1) if t == 37 else m),
    "the memory is rounded to thousandths": keeping(lambda m, x, t: (m * 1000).round() / 1000),
    "the memory grows by a thousandth a message": keeping(lambda m, x, t: 1.001 * m),
    "the first message is not remembered": keeping(lambda m, x, t: 0 * m if t == 0 else m),
    "the largest entry of the memory is lost every 20 messages": keeping(
        lambda m, x, t: torch.where(m.abs() == m.abs().max(), 0, m) if t % 20 == 19 else m
    ),
    "the memory is lost where the gradient is zero": keeping(lambda m, x, t: m * (x != 0)),
    "the memory is kept in float16": keeping(lambda m, x, t: m.half().float()),
}

# -- aggregates ------------------------------------------------------------------------------------------------------
VOTES = {
    "counts modulo 64": lambda v: (v.sum(axis=0) + 32) % 64 - 32,
    "worker 64 is left out": lambda v: np.delete(v, 64, axis=0).sum(axis=0) if len(v) > 64 else v.sum(axis=0),
    "every seventh worker is left out": lambda v: v[np.arange(len(v)) % 7 != 6].sum(axis=0),
    "a vote that is one ahead counts as a tie for the last": lambda v: np.where(
        np.abs(v.sum(axis=0)) <= 1, v[-1], v.sum(axis=0)
    ),
}
MEANS = {
    "largest and smallest dropped from ten on": lambda v: (
        v.mean(axis=0) if len(v) < 10 else np.sort(v, axis=0)[1:-1].mean(axis=0)
    ),
    "divided by n + 1 from 20 on": lambda v: v.sum(axis=0) / (len(v) + (len(v) >= 20)),
    "the median of means of four from 40 on": lambda v: (
        v.mean(axis=0) if len(v) < 40 else np.median([p.mean(axis=0) for p in np.array_split(v, 4)], axis=0)
    ),
    "weights that decline from 40 on": lambda v: (
        v.mean(axis=0) if len(v) < 40 else np.average(v, axis=0, weights=np.linspace(1.5, 0.5, len(v)))
    ),
    "worker 33 counts twice": lambda v: (v.sum(axis=0) + (v[33] if len(v) > 33 else 0)) / len(v),
    "the last of an odd number is left out from 7 on": lambda v: v[: len(v) - (len(v) > 6 and len(v) % 2)].mean(axis=0),
}
AGGREGATES = [
    *(Wrong("aggregates", what, voting(count)) for what, count in VOTES.items()),
    *(Wrong("aggregates", what, merging(rule)) for what, rule in MEANS.items()),
]


# -- hooks -----------------------------------------------------------------------------------------------------------
def of_two(y: torch.Tensor) -> torch.Tensor:
    """Always divided by two."""
    parts = gathered(y)
    return sum(parts) / max(1, min(2, len(parts)))  # type: ignore[return-value]


def first_two(y: torch.Tensor) -> torch.Tensor:
    return torch.stack(gathered(y)[:2]).mean(dim=0)


def own_twice(y: torch.Tensor) -> torch.Tensor:
    return (sum(gathered(y)) + y) / (dist.get_world_size() + 1)


def compressed_again(y: torch.Tensor) -> torch.Tensor:
    return half(mean(y))


def median(y: torch.Tensor) -> torch.Tensor:
    return torch.stack(gathered(y)).median(dim=0).values


def signs_of_the_sum(y: torch.Tensor) -> torch.Tensor:
    stack = torch.stack(gathered(y))
    return stack.sum(dim=0).sign() * stack.abs().mean(dim=0)


def second_half_own(y: torch.Tensor) -> torch.Tensor:
    """The second half of the bucket is that of rank 0."""
    parts = gathered(y)
    whole = torch.stack(parts).mean(dim=0)
    whole[y.numel() // 2 :] = parts[0][y.numel() // 2 :]
    return whole


class Late:
    """Each rank's result is that of the step before, but for the first."""

    def __init__(self) -> None:
        self.before: dict[tuple[int, int], torch.Tensor] = {}

    def __call__(self, y: torch.Tensor) -> torch.Tensor:
        result = mean(y.clone())
        if dist.get_world_size() == 1:
            return result
        place = (dist.get_rank(), y.numel())
        before, self.before[place] = self.before.get(place, result), result
        return 0.5 * before


COMBINED = {
    "always divided by two": of_two,
    "only two ranks count": first_two,
    "every rank counts itself twice": own_twice,
    "the mean is compressed again by each rank": compressed_again,
    "the median": median,
    "signs of the sum": signs_of_the_sum,
    "the second half is that of rank 0": second_half_own,
    "half of the step before": Late(),
}
HOOKS = [Wrong("hooks", what, adapt(hook(combined), claim=ONE)) for what, combined in COMBINED.items()]


# -- exchanges -------------------------------------------------------------------------------------------------------
def scaled_part(part: Callable[[int, int], Any], factor: float, when: Callable[[int, int], bool]):
    def change(y: torch.Tensor, m: int) -> torch.Tensor:
        if when(y.numel(), m):
            y[part(y.numel(), m)] *= factor
        return y

    return change


EXCHANGES = [
    WrongExchange(what, changed(change), claim)
    for what, change, claim in (
        ("half of it at m = 3", lambda y, m: 0.5 * y if m == 3 else y, joint),
        ("the first shard twice from 300 on", scaled_part(lambda d, m: slice(0, d // m), 2.0, lambda d, m: d >= 300),
         UnbiasedMean(0.0, 1.0)),
        ("shards moved on by one where m does not divide d",
         lambda y, m: y.roll(y.numel() // m) if y.numel() % m and y.numel() > 4 * m else y, UnbiasedMean(0.0, 1.0)),
        ("borders of shards lost", scaled_part(lambda d, m: slice(d // m - 1, d, d // m), 0.0, lambda d, m: d >= 4 * m),
         UnbiasedMean(0.0, 1.0)),
        ("below 2 m stretched by half", lambda y, m: 1.5 * y if m < y.numel() < 2 * m else y, UnbiasedMean(0.0, 1.0)),
        ("shrunk by 30 % where 1 of m is left", lambda y, m: 0.7 * y if y.numel() % m == 1 and y.numel() > 40 else y,
         UnbiasedMean(0.0, 1.0)),
        ("the last 4096 lost beyond 2^14", scaled_part(lambda d, m: slice(d - 4096, d), 0.0, lambda d, m: d > 1 << 14),
         UnbiasedMean(0.0, 1.0)),
    )
]  # fmt: skip

WRONG = [
    *both("lengths", LENGTHS),
    *both("remainders", REMAINDERS),
    *both("values", VALUES),
    *(wrong for what, rule in SPREAD.items() for wrong in both_forms(what, rule)),
    *(Wrong("streams", what, operator(coins=coins)) for what, coins in KEYED.items()),
    *(Wrong("streams", what, Calls(rule), ONE) for what, rule in CALLED.items()),
    *CIRCUMSTANCES,
    *(Wrong("feedback", what, wrapper) for what, wrapper in MEMORY.items()),
    *AGGREGATES,
    *HOOKS,
]
