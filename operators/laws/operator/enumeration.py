"""Ways to split the random words into equally likely classes on which an output might not depend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, permutations, product
from math import factorial, inf, lcm, log, prod

import numpy as np

from bounds.claims import Unbiased

from ..betting.budget import work_s
from ..kit.examples import Example, drawn, in_time, in_turn, structured
from ..kit.law import Context, Inconclusive, Law, NotApplicable, Violation, claimed_moment, second_moment
from ..kit.subject import Subject
from ..kit.verdict import About
from ..randomness.draws import ORDER
from ..replay import WORD, Controlled

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


# -- Law: where the randomness is finite, the mean and the error over all outcomes match the claim -------------
# The random words are split into classes on which the output should not depend: equal cells of each word (an index
# drawn by scaling, a sign in the top bit; as many for each word as it has), the order of the words (a sort), or the
# words' influential bits (signs packed into words).  That it indeed does not depend on anything else is tried on
# random words; if it never changed in V trials, then except with probability ``level`` it changes with probability at
# most q = ln(1/level)/V.  Let r be the error of a class's representative, e that of a draw, A the event r != e.  Then
# E r = E e + E[r; A] - E[e; A].  Of a true claim E e = 0, ``E|e|^2 <= s^2`` the part ``E[|e|^2``; ``A] <= s^2 -
# E|r|^2 + q max|r|^2`` is left for A, so (Cauchy-Schwarz: an outcome that was never seen may be large) ``|E r| <= q
# max|r| + sqrt(q (s^2 - E|r|^2 + q max|r|^2))``, and ``E|r|^2 <= s^2 + q max|r|^2``.  V may depend on the clock:
# whatever it is at the end, the first ln(1/level)/q trials must have changed nothing.

SIZES = (2, 3, 4, 5, 8)
PARTITIONS = 7  # at most, tried at one example
FIRST_TRIALS = 12  # before the outcomes are listed
LEAST_TRIALS = 512  # made at every example, however long they take
TRIALS_OF_A_FUNCTION = 64, 512  # least and most: it may be slow; fewer leave more doubt
CHECK = 64  # trials of a function after which it is asked whether more would convict
SUSPICION, SUSPICION_SHARE = 40, 2.0
FUNCTION_SIZES = (3, 5, 2, 4)
OF_FUNCTIONS, OF_OPERATORS = 0.5, 0.8  # of the seconds, after which no vector is begun
ROUNDING = 1e-6


class Enumeration(Law):
    """Mean and mean squared error over every outcome of a finite randomness."""

    name = "enumeration"
    statistical = True  # only that no other randomness is read
    needs = "words"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs a claim, and randomness."""
        reason = super().applies(subject)
        if reason is None and subject.randomness == "none":
            return "there is no randomness"
        if reason is None and all(second_moment(subject.claim(d)) is None for d in SIZES):
            return "nothing is claimed"
        return reason

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return a few vectors of 2 to 8 coordinates."""
        rng = context.rng(self.name)
        if not subject.is_operator:
            vectors = (e for d in FUNCTION_SIZES for e in drawn(d, 1, rng))
            yield from in_time(vectors, 0.0 if context.accused else OF_FUNCTIONS * context.budget.seconds)
            return
        few = ("pair (1, 1/2", "alternating", "one-hot, last")
        of_each = [chain(drawn(d, 1, rng), (e for e in structured(d) if e.name.startswith(few))) for d in SIZES]
        yield from in_time(in_turn(*of_each), OF_OPERATORS * context.budget.seconds, inf)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Find the classes, verify them, and compare the averages over them with the claim."""
        claim, x = subject.claim(example.d), example.x.astype(np.float64)
        s2 = claimed_moment(subject, example.d)
        rng = context.rng(f"{self.name} {example.name} {x.sum()}")
        run = Controlled(subject, example.x, rng)
        if run.n_words == 0:
            raise NotApplicable("it reads no random word at this vector")
        logarithm = log(1 / context.level(4 * len(SIZES) * PARTITIONS))
        claimed = Claimed(x, s2, isinstance(claim, Unbiased), logarithm, run.resolution)
        claimed.compare(*_outcomes(run, context, claimed, rng))


@dataclass(frozen=True)
class Claimed:
    """What is claimed at x, and how a list of outcomes is compared with it after a number of trials."""

    x: np.ndarray
    s2: float
    unbiased: bool
    logarithm: float  # ln(1/level)
    resolution: float

    def compare(self, outputs: np.ndarray, trials: int) -> None:
        """Raise Violation if the claim cannot hold."""
        doubt = min(1.0, self.logarithm / trials) if trials else 0.0
        errors = (outputs - self.x) / np.linalg.norm(self.x)
        squares = (errors**2).sum(axis=1)
        bias, largest = float(np.linalg.norm(errors.mean(axis=0))), float(squares.max())
        rest = max(self.s2 - float(squares.mean()), 0.0) + doubt * largest
        allowed = doubt * np.sqrt(largest) + np.sqrt(doubt * rest) + ROUNDING + self.resolution * np.sqrt(largest)
        if self.unbiased and bias > allowed:
            raise Violation(f"|E C(x) - x| = {bias:.6g} |x| over all {len(outputs)} outcomes; claimed unbiased")
        if squares.mean() > self.s2 * (1 + ROUNDING) + doubt * largest + ROUNDING:
            text = f"E|C(x) - x|^2 = {squares.mean():.6g} |x|^2 over all outcomes; claimed {self.s2:.6g}"
            raise Violation(text, About.CONSTANT)

    def suspects(self, outputs: np.ndarray, trials: int) -> bool:
        """Return whether the claim would be violated without the doubt that so few trials leave."""
        return self.violated(outputs, 0) and not self.violated(outputs, trials)

    def violated(self, outputs: np.ndarray, trials: int) -> bool:
        """Return whether the claim cannot hold."""
        try:
            self.compare(outputs, trials)
        except Violation:
            return True
        return False


def _outcomes(run: Controlled, context: Context, claimed: Claimed, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return the output of every class of the first partition that survives its trials, shape (outcomes, d); their
    number.
    """
    for classes in partitions(run, context.budget.evaluations):
        if not all(_same(run, classes, rng) for _ in range(FIRST_TRIALS)):
            continue
        outputs = np.stack([run(words) for words in classes.words])
        trials = _trials(run, classes, outputs, context, claimed, rng)
        if trials:
            return outputs, trials
    raise NotApplicable("no finite set of outcomes was found")


def _trials(
    run: Controlled, classes: Classes, outputs: np.ndarray, context: Context, claimed: Claimed, rng: np.random.Generator
) -> int:
    """Return how often the output depended on the class alone: 0 if not always.

    ``budget.evaluations`` times or until the time is over; for a function SUSPICION times as often, and until the law
    has run for SUSPICION_SHARE of ``budget.seconds``, where the outcomes contradict the claim but for the doubt that is
    left.

    Raises
    ------
    Inconclusive
        Where that time is over.
    """
    ends, trials, longer = work_s() + context.budget.seconds / (4 * len(SIZES)), 0, 1
    least, most = (LEAST_TRIALS, context.budget.evaluations) if run.subject.is_operator else TRIALS_OF_A_FUNCTION
    while trials < longer * most:
        if trials >= least and longer > 1 and not context.spare(SUSPICION_SHARE):
            raise Inconclusive(
                f"its outcomes contradict the claim, but it is too slow to confirm them: {trials} trials"
            )
        if trials >= least and longer == 1 and work_s() > ends:
            break
        if not _as_listed(run, classes, outputs, rng):
            return 0
        trials += 1
        if trials % CHECK == 0 and run.intercepted:
            longer = SUSPICION if not context.accused and claimed.suspects(outputs, trials) else 1
    return trials


def _same(run: Controlled, classes: Classes, rng: np.random.Generator) -> bool:
    words = classes.words[rng.integers(len(classes.words))]
    return np.array_equal(run(words), run(classes.member(words, rng)))


def _as_listed(run: Controlled, classes: Classes, outputs: np.ndarray, rng: np.random.Generator) -> bool:
    number = int(rng.integers(len(classes.words)))
    return np.array_equal(run(classes.member(classes.words[number], rng)), outputs[number])
