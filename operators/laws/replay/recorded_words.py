"""Choose the random words of a subject: replay it on any words, and find out what each word decides."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...key import Key
from ...random import words_from
from ..kit.law import NotApplicable
from ..kit.subject import OutOfTime, Subject, to_numpy
from ..randomness.intercept import Facts, intercepted
from ..randomness.source import Uninterceptable

WORD = 1 << 32
PAIRS = ((0, WORD - 1), (1 << 30, 5 << 29))
ENDS = (0, WORD - 1)  # of all words alike: rare outcomes show there
RANDOM_MIXTURES, END_MIXTURES = 6, 16
OTHER_KEYS = (Key(1), Key(2, step=3, rank=4), Key(3, layer=7))
KEYED = "its output depends on more than the words of operators.random.bits32"
HIDDEN = "its output varies although every random number that can be intercepted is fixed"


class LayoutChanged(Exception):  # noqa: N818  caught inside the kit
    """The subject asked for words that it had not asked for before."""


@dataclass(frozen=True)
class DrawnWords:
    """One draw: its words in the concatenation of all streams, and what is known of their use (see ``Source``)."""

    stream: int
    start: int
    n: int
    kind: int | None


class _Tape:
    """Words served by stream, streams numbered in the order of their first use; a Source."""

    def __init__(
        self,
        words: np.ndarray | None,
        layout: list[int],
        rng: np.random.Generator,
        pinned: frozenset[Hashable] = frozenset(),
    ) -> None:
        self.frozen = words is not None
        ends = np.cumsum([0, *layout])
        parts = [] if words is None else [words[a:b] for a, b in pairwise(ends)]
        self.streams: list[np.ndarray] = parts
        self.number: dict[Hashable, int] = {}
        self.rng = rng
        self.pinned = pinned
        self.draws: list[DrawnWords] = []
        self.read: dict[int, int] = {}  # lent words that were read

    @property
    def recorded(self) -> list[np.ndarray]:
        """The words that were used, by stream."""
        return [words[: self.read.get(number, words.size)] for number, words in enumerate(self.streams)]

    def __call__(self, root: Hashable, n: int, start: int, kind: int | None = None) -> np.ndarray | None:
        if root in self.pinned:
            return None
        number = self.number.setdefault(root, len(self.number))
        if number >= len(self.streams) or self.streams[number].size < start + n:
            if self.frozen and n:
                raise LayoutChanged
            self._grow(number, start + n)
        self.draws.append(DrawnWords(number, start, n, kind))
        return self.streams[number][start : start + n].astype(np.uint32)

    def lend(self, root: Hashable, capacity: int) -> np.ndarray | None:
        """Return all words of a stream; while recording, as many as allowed."""
        if root in self.pinned:
            return None
        number = self.number.setdefault(root, len(self.number))
        if self.frozen:
            return self.streams[number] if number < len(self.streams) else np.empty(0, np.uint32)
        self._grow(number, capacity)
        return self.streams[number]

    def returned(self, root: Hashable, used: int) -> None:
        """Keep the words that were read."""
        number = self.number[root]
        if not self.frozen:
            self.read[number] = max(used, self.read.get(number, 0))
            self.draws.append(DrawnWords(number, 0, used, None))
        elif used > (self.streams[number].size if number < len(self.streams) else 0):
            raise LayoutChanged

    def _grow(self, number: int, size: int) -> None:
        while len(self.streams) <= number:
            self.streams.append(np.empty(0, np.uint32))
        more = self.rng.integers(0, WORD, max(0, size - self.streams[number].size), dtype=np.uint32)
        self.streams[number] = np.concatenate([self.streams[number], more])


class Controlled:
    """A subject at one vector as a function of its random words.

    Attributes
    ----------
    n_words
        How many there are.
    draws
        The draws that they belong to.
    resolution
        The coarsest spacing of the uniform numbers made of them.
    intercepted
        Whether other randomness is possible, but was not seen (a function).

    Raises
    ------
    NotApplicable
        If the output depends on anything else, such as the key or hidden randomness, or if the number of words varies.
    """

    def __init__(self, subject: Subject, x: np.ndarray, rng: np.random.Generator) -> None:
        self.subject, self.x, self.rng = subject, x, rng
        self.intercepted = not subject.is_operator
        self.resolution = 0.0
        self._pinned: frozenset[Hashable] = frozenset()
        if self.intercepted:
            self._pinned = subject.draws.constant_roots(lambda key: subject.draw(x, key))
        again = self._record()
        if not again and self.intercepted and subject.draws.search(lambda key: subject.draw(x, key)):
            again = self._record()
        if not again:
            raise NotApplicable(HIDDEN if self.intercepted else KEYED)

    def _record(self) -> bool:
        """Find the layout at new words; whether replays give the output again."""
        tape = _Tape(None, [], self.rng, self._pinned)
        first = self._on(tape, Key(0))
        self.layout = [stream.size for stream in tape.recorded]
        self.draws = tape.draws
        self.n_words = sum(self.layout)
        words = np.concatenate([np.empty(0, np.uint32), *tape.recorded])
        return all(np.array_equal(self._run(words, key), first, equal_nan=True) for key in OTHER_KEYS)

    def __call__(self, words: np.ndarray) -> np.ndarray:
        """Return the output for the given words, shape (n_words,), uint32: float64, shape (d,)."""
        return self._run(words, Key(0))

    def random_words(self) -> np.ndarray:
        """Return words drawn uniformly: shape (n_words,), uint32."""
        return self.rng.integers(0, WORD, self.n_words, dtype=np.uint32)

    def _run(self, words: np.ndarray, key: Key) -> np.ndarray:
        try:
            return self._on(_Tape(words, self.layout, self.rng, self._pinned), key)
        except LayoutChanged:
            raise NotApplicable("the number of random words varies from draw to draw") from None

    def _on(self, tape: _Tape, key: Key) -> np.ndarray:
        """Return the output on a tape."""
        if not self.intercepted:
            with words_from(tape):  # type: ignore[arg-type]  # None is for pinned streams only
                return self.subject.draw(self.x, key)
        facts = Facts()
        try:
            with intercepted(tape, self.subject.draws.generators) as facts:
                output = self.subject.raw(self.x, key)
            return to_numpy(output).reshape(self.x.shape)
        except (LayoutChanged, NotApplicable, OutOfTime):
            raise
        except Uninterceptable as reason:
            raise NotApplicable(str(reason)) from None
        except Exception as error:  # it runs when left alone: constant_roots has tried
            raise NotApplicable(f"it cannot be replayed: {type(error).__name__}: {error}") from None
        finally:
            self.resolution = max(self.resolution, facts.resolution)


def separate(controlled: Controlled) -> np.ndarray:
    """Return the word that decides each coordinate, shape (d,), or -1 where none does.

    Words are set to one of two values by the binary digits of their index, so that a coordinate spells out the index of
    its word; two pairs of values are tried.  Random mixtures then confirm it.

    Raises
    ------
    NotApplicable
        Unless every word decides at most one coordinate and every coordinate has at most one word.
    """
    n, d = controlled.n_words, controlled.x.size
    word = np.full(d, -1)
    for low, high in PAIRS:
        at_low, at_high = (controlled(np.full(n, value, np.uint32)) for value in (low, high))
        address = np.zeros(d, int)
        for digit in range((n - 1).bit_length()):
            out = controlled(np.where(np.arange(n) >> digit & 1, high, low).astype(np.uint32))
            address |= (out == at_high).astype(int) << digit
        new = (at_low != at_high) & (word < 0)
        word[new] = address[new]
    used = word[word >= 0]
    if used.size and (used.max() >= n or np.unique(used).size < used.size):
        raise NotApplicable("the coordinates are not separate functions of one random word each")
    _confirm(controlled, word)
    return word


def _confirm(controlled: Controlled, word: np.ndarray) -> None:
    """Exchanging the words of some coordinates changes nothing at the others, and the words of none nothing at all."""
    owned = word[word >= 0]
    if owned.size < controlled.n_words:
        for value in (None,) * RANDOM_MIXTURES + ENDS * END_MIXTURES:
            words = controlled.random_words()
            if value is not None:
                words[owned] = value
            again = controlled.random_words()
            again[owned] = words[owned]
            if not np.array_equal(controlled(words), controlled(again)):
                raise NotApplicable("a coordinate depends on more than one random word")
    ends = [np.full(controlled.n_words, value, np.uint32) for value in ENDS]
    at_ends = [controlled(words) for words in ends]
    for turn in range(RANDOM_MIXTURES + END_MIXTURES):
        first = controlled.random_words()
        at_first = controlled(first)
        at_random = turn < RANDOM_MIXTURES
        seconds = [controlled.random_words()] if at_random else ends
        for second, at_second in zip(seconds, map(controlled, seconds) if at_random else at_ends, strict=True):
            side = controlled.rng.random(word.size) < 0.5
            mixed = second.copy()
            mixed[word[side & (word >= 0)]] = first[word[side & (word >= 0)]]
            if not np.array_equal(controlled(mixed), np.where(side, at_first, at_second)):
                raise NotApplicable("the coordinates are not separate functions of one random word each")
