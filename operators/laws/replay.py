"""Choose the random words of a subject: replay it on any words, and find out what each word decides."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt

import numpy as np

from ..key import Key
from ..random import words_from
from .betting.budget import work_s
from .kit.law import Inconclusive, NotApplicable
from .kit.subject import OutOfTime, Subject, to_numpy
from .randomness.draws import Uninterceptable
from .randomness.intercept import intercepted

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
        try:
            with intercepted(tape, self.subject.draws.generators) as of_torch:
                output = self.subject.raw(self.x, key)
            self.resolution = max(self.resolution, of_torch.resolution)
            return to_numpy(output).reshape(self.x.shape)
        except (LayoutChanged, NotApplicable, OutOfTime):
            raise
        except Uninterceptable as reason:
            raise NotApplicable(str(reason)) from None
        except Exception as error:  # it runs when left alone: constant_roots has tried
            raise NotApplicable(f"it cannot be replayed: {type(error).__name__}: {error}") from None


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


# -- How often a function must be replayed before a finding stands, although it might draw on hidden randomness
# Let r be the error as a function of the intercepted words, e that of a true draw, A the event r != e, of probability
# q. Replaying random words V times with equal results twice shows q <= ln(1/level)/V, except with probability
# ``level``.  As in ``enumeration``, a true claim E e = 0, ``E|e|^2 <= s^2`` leaves ``E[|e|^2``; ``A] <= s^2 - E|r|^2
# + q max|r|^2``, so ``|E r| <= q max|r| + sqrt(q (s^2 - E|r|^2 + q max|r|^2))``; and ``E|r|^2 <= s^2 + q max|r|^2``.
# A finding beyond these bounds stands.
#
# One assumption bounds the work: hidden randomness that changes the output in fewer than one call in ``RARE``
# max(1, s^2) is not reckoned with.  (Some 250 runs have followed the words before, or no finding would be made.)
# A function is put to this test once.

RARE = 200
BATCH = 16
LEAST_REPLAYS = 64  # however long they take


@dataclass(frozen=True)
class Moments:
    """Of the error over ``|x|``: length of its mean, mean and largest square;

    Parameters
    ----------
    s2 : float
        The claimed bound of the mean square.
    """

    bias: float
    square: float
    largest: float
    s2: float

    def stands(self, q: float, *, unbiased: bool) -> bool:
        """Return whether the claim is violated although with probability q the error is another one."""
        rest = max(self.s2 - self.square, 0.0) + q * self.largest
        too_biased = unbiased and self.bias > q * sqrt(self.largest) + sqrt(q * rest)
        return too_biased or self.square - q * self.largest > self.s2


def exclude_rare_dependence(
    run: Controlled, constant: np.ndarray, moments: Moments, level: float, *, unbiased: bool
) -> None:
    """Try random words until the finding stands although coordinates might depend on a word that was not found.

    Parameters
    ----------
    constant : ndarray
        Where no word was found, shape (d,): a selection of one in thousands hardly ever shows that it depends on one.

    Raises
    ------
    NotApplicable
        If such a coordinate changes.
    """
    if not constant.any():
        return
    doubt, value, trials = log(1 / level), run(run.random_words())[constant], 0
    while trials < RARE * max(1.0, moments.s2) and not (
        trials and moments.stands(min(1.0, doubt / trials), unbiased=unbiased)
    ):
        for _ in range(BATCH):
            if not np.array_equal(run(run.random_words())[constant], value, equal_nan=True):
                raise NotApplicable("a coordinate depends on a random word in so few draws that it was not found")
        trials += BATCH


def exclude_hidden(run: Controlled, moments: Moments, level: float, seconds: float, *, unbiased: bool) -> None:
    """Replay random words until the finding stands.

    Parameters
    ----------
    seconds : float
        Of work, as ``clock`` counts it.

    Raises
    ------
    NotApplicable
        If a replay differs, Inconclusive if the function is too slow for the replays.
    """
    if not run.intercepted or run.subject.draws.complete:
        return
    doubt, most = log(1 / level), RARE * max(1.0, moments.s2)
    began = work_s()
    replays = 0
    while replays < most and not (replays and moments.stands(min(1.0, doubt / replays), unbiased=unbiased)):
        if replays >= LEAST_REPLAYS and work_s() - began > seconds:
            raise Inconclusive(
                f"its exact mean or error is off, but it is too slow to exclude hidden randomness: {replays} replays "
                f"in {seconds:g} s"
            )
        for _ in range(BATCH):
            words = run.random_words()
            if not np.array_equal(run(words), run(words), equal_nan=True):
                raise NotApplicable(HIDDEN)
        replays += BATCH
    run.subject.draws.complete = True


# -- The exact distribution of each coordinate of a separable operator, by sweeping its random word ------------
# Every coordinate is a function of one 32-bit word.  A monotone step function is located to the last word by
# bisection between the points of a grid that holds both ends, so its mean is exact.  Any other function is
# integrated by the midpoint rule, whose error is at most (total variation)/(2 n) for n points.

GRID = 33
MIDPOINTS = 512
MAX_JUMPS = 8
CHECKS = 16


@dataclass(frozen=True)
class Marginals:
    """Per coordinate, shape (d,), float64: mean and mean squared error, each with its error bound; largest
    ``|value|``; and whether no random word was found on which it depends.
    """

    mean: np.ndarray
    mean_error: np.ndarray
    square: np.ndarray
    square_error: np.ndarray
    largest: np.ndarray
    constant: np.ndarray


def marginals(controlled: Controlled) -> Marginals:
    """Return the marginals of a separable operator at its vector.

    Raises
    ------
    NotApplicable
        If it is not separable.
    """
    x = controlled.x.astype(np.float64)
    if controlled.n_words == 0:
        value = controlled(np.empty(0, np.uint32))
        zero = np.zeros_like(x)
        return Marginals(value, zero, (value - x) ** 2, zero, np.abs(value), np.zeros(x.size, bool))
    word = separate(controlled)
    grid = np.linspace(0, WORD - 1, GRID).astype(np.uint64).astype(np.uint32)
    values = np.stack([_at(controlled, word, np.full(x.size, u, np.uint32)) for u in grid])
    steps = np.diff(values, axis=0)
    monotone = ((steps >= 0).all(axis=0) | (steps <= 0).all(axis=0)).all()
    if monotone and (np.count_nonzero(steps, axis=0) <= MAX_JUMPS).all():
        return _by_bisection(controlled, word, grid, values)
    return _by_midpoints(controlled, word)


def _at(controlled: Controlled, word: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the output when coordinate i's word is own[i]; unused words are 0."""
    words = np.zeros(controlled.n_words, np.uint32)
    used = word >= 0
    words[word[used]] = own[used]
    return controlled(words)


def _by_bisection(controlled: Controlled, word: np.ndarray, grid: np.ndarray, values: np.ndarray) -> Marginals:
    """Return exact measures: value before and after every jump, with the jump located to one word."""
    d = values.shape[1]
    jumps = [np.flatnonzero(np.diff(values[:, i])).tolist() for i in range(d)]
    cuts: list[list[tuple[int, float]]] = [[] for _ in range(d)]  # (first word after the jump, value there)
    for turn in range(max(map(len, jumps), default=0)):
        active = np.array([turn < len(j) for j in jumps])
        cell = np.array([j[turn] if turn < len(j) else 0 for j in jumps])
        low, high = grid[cell].astype(np.int64), grid[np.minimum(cell + 1, GRID - 1)].astype(np.int64)
        before, after = values[cell, np.arange(d)], values[np.minimum(cell + 1, GRID - 1), np.arange(d)]
        while (active & (high - low > 1)).any():
            middle = (low + high) // 2
            outputs = _at(controlled, word, middle.astype(np.uint32))
            if (active & (outputs != before) & (outputs != after)).any():
                raise NotApplicable("a coordinate takes many values; its marginal is not a step function")
            low, high = np.where(outputs == before, middle, low), np.where(outputs == before, high, middle)
        for i in np.flatnonzero(active):
            cuts[i].append((int(high[i]), float(after[i])))
    first = values[0]
    _verify(controlled, word, first, cuts)
    return _moments(controlled.x.astype(np.float64), first, cuts, word < 0)


def _verify(controlled: Controlled, word: np.ndarray, first: np.ndarray, cuts: list[list[tuple[int, float]]]) -> None:
    """At random words the output is what the located steps say; else the operator is not separable after all."""
    for _ in range(CHECKS):
        words = controlled.random_words()
        predicted = np.array(first)
        for i, steps in enumerate(cuts):
            for position, value in steps:
                if words[word[i]] >= position:
                    predicted[i] = value
        if not np.array_equal(controlled(words), predicted):
            raise NotApplicable("the coordinates are not separate functions of one word each")


def _moments(x: np.ndarray, first: np.ndarray, cuts: list[list[tuple[int, float]]], constant: np.ndarray) -> Marginals:
    mean, square, largest = np.array(first), (first - x) ** 2, np.abs(first)
    for i, steps in enumerate(cuts):
        value = first[i]
        for position, following in steps:
            share = (WORD - position) / WORD
            mean[i] += share * (following - value)
            square[i] += share * ((following - x[i]) ** 2 - (value - x[i]) ** 2)
            largest[i] = max(largest[i], abs(following))
            value = following
    one_word = 1 / WORD
    return Marginals(mean, 4 * one_word * largest, square, 4 * one_word * largest**2, largest, constant)


def _by_midpoints(controlled: Controlled, word: np.ndarray) -> Marginals:
    x = controlled.x.astype(np.float64)
    points = ((np.arange(MIDPOINTS) + 0.5) * (WORD / MIDPOINTS)).astype(np.uint64).astype(np.uint32)
    values = np.stack([_at(controlled, word, np.full(x.size, u, np.uint32)) for u in points])
    squares = (values - x) ** 2
    if (np.count_nonzero(np.diff(values, axis=0), axis=0) < MIDPOINTS // 8).any() and word.min() >= 0:
        raise NotApplicable("a step function that is not monotone; left to enumeration and to the statistical laws")
    return Marginals(
        values.mean(axis=0), _variation(values), squares.mean(axis=0), _variation(squares), np.abs(values).max(axis=0),
        word < 0,
    )  # fmt: skip


def _variation(values: np.ndarray) -> np.ndarray:
    """Return twice the midpoint rule's error bound, with the total variation seen on the points."""
    return np.abs(np.diff(values, axis=0)).sum(axis=0) / len(values)
