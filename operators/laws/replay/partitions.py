"""Ways to split the random words into equally likely classes on which an output might not depend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, lcm, prod

import numpy as np

from ..randomness.source import ORDER
from .recorded_words import WORD, Controlled

LONGEST_ORDER = 8
MIXED_BASES = 3
BASES = 4  # random words at which bits are flipped


@dataclass(frozen=True)
class Classes:
    """All classes of words, equally likely, each by one member; ``member`` draws another of the same class."""

    words: np.ndarray  # (outcomes, n_words), uint32
    member: Callable[[np.ndarray, np.random.Generator], np.ndarray]


def partitions(run: Controlled, evaluations: int) -> Iterator[Classes]:
    """Return partitions of at most ``evaluations`` classes, the most plausible first."""
    n, d = run.n_words, run.x.size
    listed = _known(run, evaluations)
    if listed is not None:
        yield listed
    cells = {2, 2 * d, lcm(*range(1, d + 1))}
    for per_word in sorted(cells):
        if per_word**n <= evaluations:
            yield _cells(n, per_word)
    if n <= LONGEST_ORDER and factorial(n) <= evaluations:
        yield _orders(n)
    if 64 * n * BASES <= evaluations:  # the search for bits costs at most half of the enumeration
        bits = _influential_bits(run)
        if bits and 1 << len(bits) <= evaluations:
            yield _bit_patterns(n, bits)
    if 1 < n <= LONGEST_ORDER and d <= LONGEST_ORDER:
        counts = _cell_counts(run, d, evaluations)
        if counts and prod(counts) <= evaluations:
            yield _mixed_cells(counts)


def _known(run: Controlled, evaluations: int) -> Classes | None:
    """By draws, where it is known of each that only the cells of its words matter, or only their order."""
    if not run.draws or any(draw.kind is None for draw in run.draws):
        return None
    starts = np.cumsum([0, *run.layout])
    parts, where = [], []
    for draw in run.draws:
        outcomes = factorial(draw.n) if draw.kind == ORDER else draw.kind**draw.n  # type: ignore[operator]
        if outcomes > evaluations or (draw.n > LONGEST_ORDER and draw.kind == ORDER):
            return None
        parts.append(_orders(draw.n) if draw.kind == ORDER else _cells(draw.n, draw.kind))  # type: ignore[arg-type]
        where.append(starts[draw.stream] + draw.start + np.arange(draw.n))
    listed = np.concatenate(where)
    if prod(len(part.words) for part in parts) > evaluations or sorted(listed) != list(range(run.n_words)):
        return None
    rows = [np.concatenate(choice) for choice in product(*(part.words for part in parts))]
    words = np.zeros((len(rows), run.n_words), np.uint32)
    words[:, listed] = rows

    def member(words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        other = words.copy()
        for part, word_places in zip(parts, where, strict=True):
            other[word_places] = part.member(words[word_places], rng)
        return other

    return Classes(words, member)


def _cells(n: int, per_word: int) -> Classes:
    """Return each word in one of ``per_word`` equal intervals."""
    middle = ((np.arange(per_word) + 0.5) * (WORD / per_word)).astype(np.uint64).astype(np.uint32)

    def member(words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        within = rng.uniform(-0.5, 0.5, n) * (WORD / per_word) * (1 - 1e-6)
        return (words + within).astype(np.uint64).astype(np.uint32)

    return Classes(np.array(list(product(middle, repeat=n)), np.uint32), member)


def _cell_counts(run: Controlled, most: int, evaluations: int) -> list[int]:
    """Return each word's least number of equal cells within which it changed nothing at a few random words."""
    bases = [run.random_words() for _ in range(MIXED_BASES)]
    counts = []
    for word in range(run.n_words):
        fitting = (r for r in range(1, most + 1) if all(_constant_within(run, base, word, r) for base in bases))
        counts.append(next(fitting, 0))
        if not counts[-1] or prod(counts) > evaluations:
            return []
    return counts


def _constant_within(run: Controlled, base: np.ndarray, word: int, cells: int) -> bool:
    """Return whether the output is the same at both ends of every cell of a word."""
    for cell in range(cells):
        ends = base.copy(), base.copy()
        ends[0][word] = -(-cell * WORD // cells) + 1
        ends[1][word] = (cell + 1) * WORD // cells - 2
        if not np.array_equal(run(ends[0]), run(ends[1])):
            return False
    return True


def _mixed_cells(counts: list[int]) -> Classes:
    """Return word j in one of counts[j] equal intervals."""
    widths = WORD / np.array(counts, float)
    chosen = np.array(list(product(*map(range, counts))), float)

    def member(words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        cells = np.floor(words / widths)
        return ((cells + 0.5 + rng.uniform(-0.5, 0.5, len(counts)) * (1 - 1e-6)) * widths).astype(np.uint32)

    return Classes(((chosen + 0.5) * widths).astype(np.uint32), member)


def _orders(n: int) -> Classes:
    """Return the order of the words."""
    ladder = ((np.arange(n) + 0.5) * (WORD / n)).astype(np.uint64).astype(np.uint32)

    def member(words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        values = np.sort(rng.integers(0, WORD, n, dtype=np.uint32))
        return values[np.argsort(np.argsort(words))]

    return Classes(np.array([ladder[list(p)] for p in permutations(range(n))], np.uint32), member)


def _influential_bits(run: Controlled) -> list[tuple[int, int]]:
    """Return the (word, bit) pairs that ever change the output when flipped at a few random words."""
    influential: set[tuple[int, int]] = set()
    for _ in range(BASES):
        base = run.random_words()
        reference = run(base)
        for word, bit in product(range(run.n_words), range(32)):
            flipped = base.copy()
            flipped[word] ^= np.uint32(1 << bit)
            if (word, bit) not in influential and not np.array_equal(run(flipped), reference):
                influential.add((word, bit))
    return sorted(influential)


def _bit_patterns(n: int, bits: list[tuple[int, int]]) -> Classes:
    """Return every assignment of the influential bits."""
    mask = np.zeros(n, np.uint32)
    for word, bit in bits:
        mask[word] |= np.uint32(1 << bit)
    patterns = np.zeros((1 << len(bits), n), np.uint32)
    for j, (word, bit) in enumerate(bits):
        on = (np.arange(len(patterns)) >> j) & 1 == 1
        patterns[on, word] |= np.uint32(1 << bit)

    def member(words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return (words & mask) | (rng.integers(0, WORD, n, dtype=np.uint32) & ~mask)

    return Classes(patterns, member)
