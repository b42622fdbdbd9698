"""Random numbers that depend on each other: keys that collide, words that are used twice, calls that are not fresh."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from operators import Key
from operators.random import uniform

from .base import ONE, Half, Wrong, half, operator

Vector = np.ndarray


# -- of a key ----------------------------------------------------------------------------------------------------
def mixed(change: Callable[[Key], Key]) -> Callable[[object, Key, int], Vector]:
    return lambda self, key, d: uniform(change(key), d)


def half_of_the_step_before(self: object, key: Key, d: int) -> Vector:
    before = replace(key, step=max(0, key.step - 1))
    return np.concatenate([uniform(key, d)[: d - d // 2], uniform(before, d)[: d // 2]])


def sliding(self: object, key: Key, d: int) -> Vector:
    """The words of a step begin seven places after those of the step before."""
    start = key.step % 64 * 7
    return uniform(replace(key, step=key.step // 64), start + d)[start:]


def antithetic(self: object, key: Key, d: int) -> Vector:
    u = uniform(replace(key, step=key.step // 2), d)
    return (1 - u if key.step % 2 else u) % 1


def next_layer_shifted(self: object, key: Key, d: int) -> Vector:
    """A layer's words are those of the layer before, turned by three places, but for eight."""
    words = np.roll(uniform(replace(key, layer=0), d), 3 * key.layer)
    words[:8] = uniform(key, d)[:8]
    return words


KEYED = {
    "a mask serves two steps": mixed(lambda k: replace(k, step=k.step // 2)),
    "16 step + rank": mixed(lambda k: replace(k, step=16 * k.step % (1 << 64) + k.rank, rank=0)),
    "step xor rank": mixed(lambda k: replace(k, step=k.step ^ k.rank, rank=0)),
    "3 seed + step": mixed(lambda k: replace(k, seed=(3 * k.seed + k.step) % (1 << 64), step=0)),
    "31 layer + rank": mixed(lambda k: replace(k, layer=31 * k.layer + k.rank, rank=0)),
    "ranks in pairs": mixed(lambda k: replace(k, rank=k.rank // 2)),
    "half of the words of the step before": half_of_the_step_before,
    "words that slide by seven a step": sliding,
    "antithetic steps": antithetic,
    "layers turned by three": next_layer_shifted,
}


# -- of calls ----------------------------------------------------------------------------------------------------
class Calls:
    """A function with a memory of the uniform numbers of earlier calls at the same length."""

    def __init__(self, rule: Callable[[Calls, int], torch.Tensor]) -> None:
        self.rule, self.n = rule, 0
        self.past: dict[int, list[torch.Tensor]] = {}

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        d = x.numel()
        u = self.rule(self, d)
        self.past[d] = [*self.past.get(d, [])[-20:], u]
        self.n += 1
        return 2 * x * (u.reshape(x.shape) < 0.5)

    def before(self, d: int, calls: int = 1) -> torch.Tensor | None:
        past = self.past.get(d, [])
        return past[-calls] if len(past) >= calls else None


def every_second(changed: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Calls, int], torch.Tensor]:
    """Every second call uses the numbers of the one before, changed."""

    def rule(calls: Calls, d: int) -> torch.Tensor:
        before = calls.before(d)
        return changed(before) if before is not None and len(calls.past[d]) % 2 else torch.rand(d)

    return rule


def ago(number: int, share: float, changed: Callable[[torch.Tensor], torch.Tensor] = lambda u: u):
    """A share of the numbers are those of some calls ago, changed."""

    def rule(calls: Calls, d: int) -> torch.Tensor:
        fresh, before = torch.rand(d), calls.before(d, number)
        if before is not None and len(calls.past[d]) // number % 2:
            fresh[: int(share * d)] = changed(before)[: int(share * d)]
        return fresh

    return rule


def stratified(calls: Calls, d: int) -> torch.Tensor:
    """Four calls divide the unit interval among themselves."""
    before = calls.before(d)
    return (before + 0.25) % 1 if before is not None and len(calls.past[d]) % 4 else torch.rand(d)


def sliding_calls(calls: Calls, d: int) -> torch.Tensor:
    before = calls.before(d)
    return torch.rand(d) if before is None else torch.cat([before[5:], torch.rand(min(d, 5))])[-d:]


CALLED = {
    "a mask serves two calls": every_second(lambda u: u),
    "every second call is antithetic": every_second(lambda u: 1 - u),
    "every second call is antithetic and turned": every_second(lambda u: torch.roll(1 - u, 1)),
    "half antithetic to the call before": ago(1, 0.5, lambda u: 1 - u),
    "antithetic to three calls ago": ago(3, 1.0, lambda u: 1 - u),
    "antithetic to 16 calls ago": ago(16, 1.0, lambda u: 1 - u),
    "four calls share the unit interval": stratified,
    "numbers that slide by five a call": sliding_calls,
    "a third of the numbers of 16 calls ago": ago(16, 1 / 3),
}
WRONG = [
    *(Wrong("streams", what, operator(coins=coins)) for what, coins in KEYED.items()),
    *(Wrong("streams", what, Calls(rule), ONE) for what, rule in CALLED.items()),
]
HONEST = [Wrong("honest", "half", Half()), Wrong("honest", "half", half, ONE)]
