"""Watch what a function draws when it is left alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

import numpy as np

from ...key import Key
from ...random import bits32, words_from
from .draws import Generator, Source, TorchDraws, global_generator, live_generators, numpy_draws, python_draws, state_of

NATURAL_CALLS = 2


class Watching:
    """A Source that leaves every generator alone and notes the state in which it is first used."""

    def __init__(self) -> None:
        self.roots: set[Hashable] = set()

    def __call__(self, root: Hashable, n: int, start: int, kind: int | None = None) -> np.ndarray | None:
        """Note the stream."""
        if n:
            self.roots.add(root)
        return None

    def lend(self, root: Hashable, capacity: int) -> np.ndarray | None:
        """Note the stream."""
        self.roots.add(root)
        return None

    def returned(self, root: Hashable, used: int) -> None:
        """Nothing was lent."""


class Draws:
    """What is known of a function's randomness.

    Attributes
    ----------
    generators
        Those of numpy that it draws from, found by watching their state.
    complete
        Whether many replays have shown that nothing else decides its output.
    """

    def __init__(self) -> None:
        self.generators: list[Generator] = []
        self.complete = False
        self._searched = False

    def constant_roots(self, call: Callable[[Key], object]) -> frozenset[Hashable]:
        """Return the streams that are the same in every call: a generator that the function seeds with a constant."""
        runs = []
        for turn in range(NATURAL_CALLS):
            before = state_of(global_generator())
            watching = Watching()
            with intercepted(watching, []):
                call(Key(turn, step=turn))
            runs.append(watching.roots)
            if state_of(global_generator()) != before:
                self._add(global_generator())
        return frozenset(set.intersection(*runs))

    def search(self, call: Callable[[Key], object]) -> bool:
        """Look among all generators of numpy in memory for those that a call moves; whether new ones were found."""
        if self._searched:
            return False
        self._searched = True
        candidates = [(g, state_of(g)) for g in live_generators()]
        call(Key(0))
        moved = [g for g, before in candidates if state_of(g) != before]
        new = [g for g in moved if self._add(g)]
        return bool(new)

    def _add(self, generator: Generator) -> bool:
        if any(g is generator for g in self.generators):
            return False
        self.generators.append(generator)
        return True


# -- Intercept everything that can be: torch, numpy, Python's random and the words of ``operators.random`` -----


@contextmanager
def intercepted(source: Source, generators: list[Generator]) -> Iterator[TorchDraws]:
    """Make all draws from the source's words inside this context; ``generators`` are those of numpy to take
    along.

    Yields the draws of torch, which know the coarsest spacing of the uniform numbers drawn (``resolution``).
    """

    def of_key(key: Key, n: int, start: int) -> np.ndarray:
        words = source(("key", key), n, start)
        if words is not None:
            return words
        with words_from(None):
            return bits32(key, n, start=start)

    torch_draws = TorchDraws(source)
    with numpy_draws(source, generators), python_draws(source), words_from(of_key), torch_draws:
        yield torch_draws
