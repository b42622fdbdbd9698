"""Choose the random words of an operator: replay it on any words, and find out what each word decides."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..key import Key
from ..random import words_from
from .law import Undecided
from .subject import Subject

WORD = 1 << 32
OTHER_KEYS = (Key(1), Key(2, step=3, rank=4), Key(3, layer=7))


class LayoutChanged(Exception):  # noqa: N818  caught inside the kit
    """The operator asked for words that it had not asked for before."""


class _Tape:
    """Words served by stream, streams numbered in the order of their first use."""

    def __init__(self, words: np.ndarray | None, layout: list[int], rng: np.random.Generator) -> None:
        self.layout = list(layout)
        self.frozen = words is not None
        ends = np.cumsum([0, *layout])
        parts = [] if words is None else [words[a:b] for a, b in pairwise(ends)]
        self.streams: list[np.ndarray] = parts
        self.number: dict[Key, int] = {}
        self.rng = rng

    def __call__(self, key: Key, n: int, start: int) -> np.ndarray:
        at = self.number.setdefault(key, len(self.number))
        if at >= len(self.streams) or self.streams[at].size < start + n:
            if self.frozen:
                raise LayoutChanged
            self._grow(at, start + n)
        return self.streams[at][start : start + n].astype(np.uint32)

    def _grow(self, at: int, size: int) -> None:
        while len(self.streams) <= at:
            self.streams.append(np.empty(0, np.uint32))
        more = self.rng.integers(0, WORD, size - self.streams[at].size, dtype=np.uint32)
        self.streams[at] = np.concatenate([self.streams[at], more])


class Controlled:
    """A subject at one vector as a function of its random words.

    Raises Undecided if its output depends on anything else, such as the key or hidden randomness, or if the
    number of words varies.
    """

    def __init__(self, subject: Subject, x: np.ndarray, rng: np.random.Generator) -> None:
        self.subject, self.x, self.rng = subject, x, rng
        tape = _Tape(None, [], rng)
        with words_from(tape):
            first = subject.draw(x, Key(0))
        self.layout = [stream.size for stream in tape.streams]
        self.n_words = sum(self.layout)
        words = np.concatenate([np.empty(0, np.uint32), *tape.streams])
        for key in OTHER_KEYS:
            if not np.array_equal(self._run(words, key), first):
                raise Undecided("its output depends on more than the words of operators.random.bits32")

    def __call__(self, words: np.ndarray) -> np.ndarray:
        """The output for the given words, shape (n_words,), uint32: float64, shape (d,)."""
        return self._run(words, Key(0))

    def random_words(self) -> np.ndarray:
        """Words drawn uniformly: shape (n_words,), uint32."""
        return self.rng.integers(0, WORD, self.n_words, dtype=np.uint32)

    def _run(self, words: np.ndarray, key: Key) -> np.ndarray:
        try:
            with words_from(_Tape(words, self.layout, self.rng)):
                return self.subject.draw(self.x, key)
        except LayoutChanged:
            raise Undecided("the number of random words varies from draw to draw") from None


@dataclass(frozen=True)
class Separation:
    """word[i] is the word that decides coordinate i, or -1 where none does."""

    word: np.ndarray


def separate(controlled: Controlled, most: int = 256) -> Separation:
    """Find each coordinate's word by changing one word at a time.

    Raises Undecided unless every word decides at most one coordinate and every coordinate has at most one word.
    """
    d, n = controlled.x.size, controlled.n_words
    if n > most:
        raise Undecided(f"it draws {n} words; separation is tried up to {most}")
    word = np.full(d, -1)
    for _ in range(2):
        base = controlled.random_words()
        reference = controlled(base)
        for j in range(n):
            changed = np.zeros(d, bool)
            for value in (0, WORD - 1, int(controlled.rng.integers(WORD))):
                words = base.copy()
                words[j] = value
                changed |= controlled(words) != reference
            at = np.flatnonzero(changed)
            if at.size > 1:
                raise Undecided("one random word decides several coordinates")
            if at.size and word[at[0]] not in (-1, j):
                raise Undecided("a coordinate depends on several random words")
            word[at] = j
    return Separation(word)
