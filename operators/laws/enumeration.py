"""Law: where the randomness is finite, the mean and the error over all outcomes match the claim.

The random words are split into classes on which the output should not depend: equal cells of each word (an index
drawn by scaling, a sign in the top bit), the order of the words (a sort), or the words' influential bits (signs
packed into words).  That it indeed does not depend on anything else is tried on random words; if it never
changed in V trials, then except with probability ``level`` it changes with probability at most
q = ln(1/level)/V.  Let r be the error of a class's representative, e that of a draw, A the event r != e.  Then
E r = E e + E[r; A] - E[e; A], so a true claim E e = 0, E|e|^2 <= s^2 gives |E r| <= q max|r| + s sqrt(q)
(Cauchy-Schwarz: an outcome that was never seen may be large), and E|r|^2 <= s^2 + q max|r|^2.
V may depend on the clock: whatever it is at the end, the first ln(1/level)/q trials must have changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, lcm, log
from time import monotonic

import numpy as np

from bounds.claims import Unbiased

from .examples import Example, drawn, structured
from .law import Context, Law, Undecided, Violation, second_moment
from .subject import Subject
from .tape import WORD, Controlled

SIZES = (2, 3, 4, 5, 8)
PARTITIONS = 5  # at most, tried at one example
FIRST_TRIALS = 12  # before the outcomes are listed
LEAST_TRIALS = 512  # made at every example, however long they take
BASES = 4  # random words at which bits are flipped


@dataclass(frozen=True)
class Classes:
    """All classes of words, equally likely, each by one member; ``member`` draws another of the same class."""

    words: np.ndarray  # (outcomes, n_words), uint32
    member: Callable[[np.ndarray, np.random.Generator], np.ndarray]


class Enumeration(Law):
    """Mean and mean squared error over every outcome of a finite randomness."""

    name = "enumeration"
    statistical = True  # only that no other randomness is read
    needs = "operator"

    def applies(self, subject: Subject) -> str | None:
        """Needs a randomised operator with a claim."""
        reason = super().applies(subject)
        if reason is None and subject.randomness == "none":
            return "there is no randomness"
        if reason is None and all(second_moment(subject.claim(d)) is None for d in SIZES):
            return "nothing is claimed"
        return reason

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """A few vectors of 2 to 8 coordinates."""
        rng = context.rng(self.name)
        for d in SIZES:
            yield from (e for e in structured(d) if e.name.startswith(("pair (1, 1/2", "alternating", "one-hot, last")))
            yield from drawn(d, 1, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Find the classes, verify them, and compare the averages over them with the claim."""
        claim, x = subject.claim(example.d), example.x.astype(np.float64)
        s2 = second_moment(claim)
        if s2 is None:
            raise Undecided("nothing is claimed")
        rng = context.rng(f"{self.name} {example.name} {x.sum()}")
        run = Controlled(subject, example.x, rng)
        if run.n_words == 0:
            raise Undecided("it reads no random word at this vector")
        share_s = context.budget.seconds / (4 * len(SIZES))
        outputs, trials = _outcomes(run, context.budget.evaluations, share_s, rng)
        doubt = log(1 / context.level(4 * len(SIZES) * PARTITIONS)) / trials
        norm = float(np.linalg.norm(x))
        errors = (outputs - x) / norm
        squares = (errors**2).sum(axis=1)
        bias, largest = float(np.linalg.norm(errors.mean(axis=0))), float(np.sqrt(squares.max()))
        if isinstance(claim, Unbiased) and bias > doubt * largest + np.sqrt(doubt * s2) + 1e-6:
            raise Violation(f"|E C(x) - x| = {bias:.6g} |x| over all {len(outputs)} outcomes; claimed unbiased")
        if squares.mean() > s2 * (1 + 1e-6) + doubt * squares.max() + 1e-6:
            raise Violation(f"E|C(x) - x|^2 = {squares.mean():.6g} |x|^2 over all outcomes; claimed {s2:.6g}")


def _outcomes(run: Controlled, evaluations: int, share_s: float, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """The output of every class of the first partition that survives its trials, shape (outcomes, d); their number."""
    for classes in _partitions(run, evaluations):
        if not all(_same(run, classes, rng) for _ in range(FIRST_TRIALS)):
            continue
        outputs = np.stack([run(words) for words in classes.words])
        trials = _trials(run, classes, outputs, evaluations, share_s, rng)
        if trials:
            return outputs, trials
    raise Undecided("no finite set of outcomes was found")


def _trials(
    run: Controlled, classes: Classes, outputs: np.ndarray, most: int, share_s: float, rng: np.random.Generator
) -> int:
    """How often the output depended on the class alone, ``most`` times or until the time is over; 0 if not always."""
    end = monotonic() + share_s
    for made in range(most):
        if made >= LEAST_TRIALS and monotonic() > end:
            return made
        if not _as_listed(run, classes, outputs, rng):
            return 0
    return most


def _same(run: Controlled, classes: Classes, rng: np.random.Generator) -> bool:
    words = classes.words[rng.integers(len(classes.words))]
    return np.array_equal(run(words), run(classes.member(words, rng)))


def _as_listed(run: Controlled, classes: Classes, outputs: np.ndarray, rng: np.random.Generator) -> bool:
    at = int(rng.integers(len(classes.words)))
    return np.array_equal(run(classes.member(classes.words[at], rng)), outputs[at])


def _partitions(run: Controlled, evaluations: int) -> Iterator[Classes]:
    n, d = run.n_words, run.x.size
    cells = {2, 2 * d, lcm(*range(1, d + 1))}
    for per_word in sorted(cells):
        if per_word**n <= evaluations:
            yield _cells(n, per_word)
    if n <= 8 and factorial(n) <= evaluations:
        yield _orders(n)
    if 64 * n * BASES <= evaluations:  # the search for bits costs at most half of the enumeration
        bits = _influential_bits(run)
        if bits and 1 << len(bits) <= evaluations:
            yield _bit_patterns(n, bits)


def _cells(n: int, per_word: int) -> Classes:
    """Each word in one of ``per_word`` equal intervals."""
    middle = ((np.arange(per_word) + 0.5) * (WORD / per_word)).astype(np.uint64).astype(np.uint32)

    def member(words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        within = rng.uniform(-0.5, 0.5, n) * (WORD / per_word) * (1 - 1e-6)
        return (words + within).astype(np.uint64).astype(np.uint32)

    return Classes(np.array(list(product(middle, repeat=n)), np.uint32), member)


def _orders(n: int) -> Classes:
    """The order of the words."""
    ladder = ((np.arange(n) + 0.5) * (WORD / n)).astype(np.uint64).astype(np.uint32)

    def member(words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        values = np.sort(rng.integers(0, WORD, n, dtype=np.uint32))
        return values[np.argsort(np.argsort(words))]

    return Classes(np.array([ladder[list(p)] for p in permutations(range(n))], np.uint32), member)


def _influential_bits(run: Controlled) -> list[tuple[int, int]]:
    """The (word, bit) pairs that ever change the output when flipped at a few random words."""
    found: set[tuple[int, int]] = set()
    for _ in range(BASES):
        base = run.random_words()
        reference = run(base)
        for word, bit in product(range(run.n_words), range(32)):
            flipped = base.copy()
            flipped[word] ^= np.uint32(1 << bit)
            if (word, bit) not in found and not np.array_equal(run(flipped), reference):
                found.add((word, bit))
    return sorted(found)


def _bit_patterns(n: int, bits: list[tuple[int, int]]) -> Classes:
    """Every assignment of the influential bits."""
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
