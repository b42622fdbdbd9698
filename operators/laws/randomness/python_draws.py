"""Intercept what Python's ``random`` draws."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .source import Cursor, Source

GLOBAL: random.Random = random._inst
METHODS = ("random", "getrandbits", "_randbelow")
LARGEST_KIND = 64


@contextmanager
def python_draws(source: Source) -> Iterator[None]:
    """Let the functions of ``random`` make their numbers from the source's words inside this context."""
    draws = _Draws(source)
    true = {name: getattr(random, name) for name in METHODS if hasattr(random, name)}
    for name in METHODS:
        setattr(GLOBAL, name, getattr(draws, name.strip("_")))
        if name in true:
            setattr(random, name, getattr(draws, name))
    try:
        yield
    finally:
        for name in METHODS:
            delattr(GLOBAL, name)
            if name in true:
                setattr(random, name, true[name])


class _Draws:
    """The three methods from which ``random.Random`` makes all others."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.cursor = Cursor()

    def random(self) -> float:
        return self._drawn(1, None, lambda w: w[0] * 2.0**-32, lambda: random.Random.random(GLOBAL))

    def getrandbits(self, k: int) -> int:
        return self._drawn(
            -(-k // 32), None, lambda w: _joined(w) >> (-k % 32), lambda: random.Random.getrandbits(GLOBAL, k)
        )

    def randbelow(self, n: int) -> int:
        count = max(1, -(-(n - 1).bit_length() // 32))
        kind = n if n <= LARGEST_KIND else None
        return self._drawn(count, kind, lambda w: _joined(w) * n >> (32 * count), lambda: _below_truly(n))

    def _drawn(self, n: int, kind: int | None, of: Callable[[list[int]], Any], truly: Callable[[], Any]) -> Any:
        root, position = self.cursor.at(_state())
        value = truly()
        words = self.source(root, n, position, kind)
        self.cursor.moved(_state(), root, position + n)
        return value if words is None else of(words.tolist())


def _below_truly(n: int) -> int:
    """As ``random`` itself draws it."""
    k = n.bit_length()
    r = random.Random.getrandbits(GLOBAL, k)
    while r >= n:
        r = random.Random.getrandbits(GLOBAL, k)
    return r


def _joined(words: list[int]) -> int:
    value = 0
    for word in words:
        value = (value << 32) | word
    return value


def _state() -> tuple[str, Any]:
    return "random", GLOBAL.getstate()
