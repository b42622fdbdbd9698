"""What a law is: something that every honest subject satisfies on every example."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from math import inf, isinf
from typing import Any

import numpy as np

from bounds.claims import Contractive, Unbiased

from ...key import Key
from ..betting.budget import Budget, work_s
from .examples import Example, drawn, structured
from .subject import OutOfTime, Subject
from .verdict import About, Outcome, Verdict

_ANY = Key(0)
SLOW_S = 0.002  # a call: the slowest operator of the catalogue takes a quarter of it at two coordinates
SHRINKING_S, LATER_SHRINKING_S = 1.5, 0.5  # the second where an earlier law has shown a simple vector already
OF_FUNCTIONS = 0.5  # of the patience, for a whole check
ACCUSED_SHARE = 0.75  # of that, for a subject that a law has accused
SLOW_SHARE, SLOW_LAWS = 0.375, 0.025  # of the patience, for a check and for a law of a slow codec


class Violation(AssertionError):  # noqa: N818  it is the finding, not an error of the kit
    """The law does not hold; the message says what was seen and what was promised.

    Parameters
    ----------
    text : str
        The message.
    about : About, optional
        What of the claim is refuted.
    """

    def __init__(self, text: str, about: About = About.OTHER) -> None:
        super().__init__(text)
        self.about = about


def fail_if(broken: object, text: str) -> None:
    """Raise Violation if something is true that must not be."""
    if broken:
        raise Violation(text)


class NotApplicable(Exception):  # noqa: N818
    """The law has nothing to say at this example, so that no judgement is owed; the message says why."""


class Inconclusive(Exception):  # noqa: N818
    """A judgement is owed and cannot be given: a violation is suspected, not confirmed; the message says why."""


class Context:
    """What the laws of one check share: budget, seed, clock and the random draws already made.

    Parameters
    ----------
    parts : int, optional
        Statistical laws among which the false-alarm budget is split.
    laws : tuple of Law, optional
        Those of this check.
    share : float, optional
        Of the patience.

    Attributes
    ----------
    began
        When the present law began, by ``clock.work_s``.
    law_seconds
        How long it may call.
    started
        When the check began.
    ends
        When it ends: after it no law begins, and none tries another vector.
    accused
        Whether a law has failed already.
    study
        See ``statistical.evidence_of``, which makes it.
    """

    def __init__(
        self, budget: Budget, seed: int, *, parts: int = 1, laws: tuple[Law, ...] = (), share: float = 1.0
    ) -> None:
        self.budget = budget
        self.seed = seed
        self.parts = parts
        self.laws = laws
        self.study: Any = None
        self.began = self.started = work_s()
        self.patience = share * budget.patience
        self.ends = self.started + self.patience
        self.law_seconds = inf
        self.accused = False

    def hurry(self, pace_s: float) -> None:
        """Give a codec whose calls take so many seconds less time, and every law a little of it, if it is slow."""
        if pace_s > SLOW_S:
            self.ends = self.started + SLOW_SHARE * self.patience
            self.law_seconds = SLOW_LAWS * self.patience

    def accuse(self) -> None:
        """Note that a law has failed: the other laws get what is left of a part of the patience."""
        self.accused = True
        self.ends = min(self.ends, self.started + ACCUSED_SHARE * self.patience)

    def spare(self, share: float = 1.0) -> bool:
        """Return whether the present law has run for less than this share of ``budget.seconds``."""
        return work_s() < self.began + share * self.budget.seconds

    def rng(self, label: str) -> np.random.Generator:
        """Return a generator that depends on the seed and the label alone."""
        return np.random.default_rng([self.seed, zlib.crc32(label.encode())])

    def key(self, label: str) -> Key:
        """Return a key that depends on the seed and the label alone."""
        return fresh_key(self.rng(label))

    def level(self, examples: int) -> float:
        """Return the false-alarm probability of a statistical law, shared among so many tests that each pay for
        themselves.
        """
        return self.budget.false_alarm / (self.parts * examples)


def fresh_key(rng: np.random.Generator) -> Key:
    """Return a key with every field drawn."""
    seed, step, rank, layer = rng.integers(0, 1 << 62, 4).tolist()
    return _ANY._with(seed=seed, step=step >> 22, rank=rank >> 52, layer=layer >> 54)


def keys(subject: Subject, rng: np.random.Generator) -> Callable[[], Key]:
    """Return what gives a fresh key for every call; a function, which takes none, gets always the same."""
    return partial(fresh_key, rng) if subject.is_codec else lambda: _ANY


class Law(ABC):
    """One law, one file.

    Attributes
    ----------
    name : str
        Its identifier in reports and test ids.
    statistical : bool
        Whether it spends false-alarm budget.
    needs : str
        The least that a subject must have: "claim" (anything that maps vectors), "codec", "key", "messages" (bits can
        be counted), "words" (its random numbers can be chosen: operators, and what torch, numpy and ``random`` draw for
        others) or "operator"; or else a "feedback" or an "aggregate".
    shrinks : bool
        Whether the law makes sense at any vector.
    """

    name: str
    statistical: bool = False
    needs: str = "claim"
    shrinks: bool = True

    def judges(self, subject: Subject) -> bool:
        """Return whether the law is about this kind of thing: a compressor, a feedback wrapper or an aggregate."""
        return subject.kind == (self.needs if self.needs in ("feedback", "aggregate") else "compressor")

    def applies(self, subject: Subject) -> str | None:
        """Return why the law has nothing to say about a subject, or None if it has."""
        if self.needs not in ("claim", "words", "feedback", "aggregate") and not subject.is_codec:
            return "a plain function has no codec, no key and no declared contract"
        if self.needs == "key" and not subject.takes_key:
            return "encode takes no key"
        if self.needs == "messages" and not subject.has_messages:
            return "encode returns no Message, so bits cannot be counted"
        if self.needs == "operator" and not subject.is_operator:
            return "only an Operator promises the input contract"
        return None

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return the vectors on which it is tried: structured and drawn ones at every size of the budget."""
        return usual(subject, context, self.name)

    @abstractmethod
    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Raise Violation if it does not hold, NotApplicable if it is silent here, Inconclusive if it only suspects."""

    def run(self, subject: Subject, context: Context) -> Verdict:
        """Try every example; on a violation, shrink it."""
        reason = self.applies(subject)
        if reason is not None:
            return Verdict(self.name, Outcome.NOT_APPLICABLE, reason)
        decided, unsaid = 0, ""
        for tried, example in enumerate(subject.domain.of(self.examples(subject, context))):
            if work_s() > context.ends:
                return Verdict(self.name, Outcome.INCONCLUSIVE, f"too slow: the time was over after {tried} vectors")
            verdict = self.judge(subject, example, context)
            if verdict.outcome is Outcome.FAIL and self.shrinks:
                return self.simplest(subject, example, verdict, context)
            if verdict.outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE):
                return verdict
            decided += verdict.outcome is Outcome.PASS
            unsaid = verdict.text or unsaid
        if not decided:
            return Verdict(self.name, Outcome.NOT_APPLICABLE, unsaid or "there is no vector to try it on")
        return Verdict(self.name, Outcome.PASS)

    def simplest(self, subject: Subject, example: Example, verdict: Verdict, context: Context) -> Verdict:
        """Shrink a vector where the law fails; return the verdict at the simplest one found."""
        seconds = LATER_SHRINKING_S if context.accused else SHRINKING_S
        if context.budget.seconds < seconds or isinf(context.budget.seconds):  # untimed: by attempts alone
            seconds = context.budget.seconds
        attempts = context.budget.shrinking
        judge = partial(self.judge, subject, context=context)
        return shrink(judge, subject, example, verdict, seconds=seconds, attempts=attempts)

    def judge(self, subject: Subject, example: Example, context: Context) -> Verdict:
        """Return PASS, FAIL, INCONCLUSIVE or NOT_APPLICABLE at one example, with the reason; a subject that raises
        fails.
        """
        try:
            self.holds(subject, example, context)
        except Inconclusive as reason:
            return Verdict(self.name, Outcome.INCONCLUSIVE, str(reason))
        except OutOfTime:
            return Verdict(self.name, Outcome.INCONCLUSIVE, f"too slow: the time was over at {example.name}")
        except NotApplicable as reason:
            return Verdict(self.name, Outcome.NOT_APPLICABLE, str(reason))
        except Exception as error:  # whatever the subject raises is a finding
            return self.failed(error, example)
        return Verdict(self.name, Outcome.PASS)

    def failed(self, error: Exception, example: Example) -> Verdict:
        """Return FAIL at a vector, by a violation or by what the subject raised there."""
        about = getattr(error, "about", About.OTHER)
        return Verdict(self.name, Outcome.FAIL, raised(error), example.name, example.x, about=about)


def raised(error: Exception) -> str:
    """Return a violation, or what a subject raised: the kind and the first line of a message, before a traceback."""
    if isinstance(error, Violation):
        return str(error)
    return f"raised {type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def claimed_moment(subject: Subject, d: int) -> float:
    """Return the claimed bound of the squared error; raise NotApplicable where there is none."""
    s2 = second_moment(subject.claim(d))
    if s2 is None:
        raise NotApplicable("nothing is claimed")
    return s2


def second_moment(claim: object) -> float | None:
    """Return the claimed bound of ``E|C(x) - x|^2 / |x|^2``, or None if nothing is claimed."""
    if isinstance(claim, Unbiased):
        return float(claim.omega)
    if isinstance(claim, Contractive):
        return float(claim.alpha)
    return None


Vectors = Callable[[Subject, Context, str], Iterator[Example]]
Holds = Callable[[Subject, Example, Key, Context], None]
Unless = Callable[[Subject], str | None]


def usual(subject: Subject, context: Context, name: str) -> Iterator[Example]:
    """Return structured vectors and drawn ones at every size of the budget."""
    rng = context.rng(name)
    for d in context.budget.sizes:
        yield from structured(d)
        yield from drawn(d, context.budget.drawn, rng)


def one_vector(subject: Subject, context: Context, name: str) -> Iterator[Example]:
    """Return a drawn vector of every size of the budget."""
    rng = context.rng(name)
    for d in context.budget.sizes:
        yield from drawn(d, 1, rng)


class OfOneFunction(Law):
    """A law that is one function of subject, example, a key of its own and the context (see ``law``)."""

    def __init__(self, function: Holds, name: str, needs: str, shrinks: bool, vectors: Vectors, unless: Unless) -> None:
        self.function, self.name, self.needs, self.shrinks = function, name, needs, shrinks
        self.vectors, self.unless = vectors, unless

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None."""
        return super().applies(subject) or self.unless(subject)

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return the vectors on which it is tried."""
        return self.vectors(subject, context, self.name)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Call the function."""
        self.function(subject, example, context.key(f"{self.name} {example.name}"), context)


def law(
    name: str, *, needs: str = "claim", shrinks: bool = True, vectors: Vectors = usual, unless: Unless = lambda _: None
) -> Callable[[Holds], Law]:
    """Make a law of the function below, which raises Violation where it does not hold.

    Parameters
    ----------
    name, needs, shrinks
        As in ``Law``.
    vectors : callable, optional
        From subject, context and name to the vectors on which it is tried.
    unless : callable, optional
        Return why the law has nothing to say about a subject, or None.
    """
    return lambda function: OfOneFunction(function, name, needs, shrinks, vectors, unless)


# -- Make a failing input simpler while it still fails ---------------------------------------------------------

Judge = Callable[[Example], Verdict]


def shrink(
    judge: Judge, subject: Subject, example: Example, verdict: Verdict, *, seconds: float, attempts: int
) -> Verdict:
    """Find the simplest vector that fails in the same way; return the verdict there.

    Shorter first, then more zeros, then rounder values.  Each attempt of a statistical law uses fresh draws.

    Parameters
    ----------
    judge : callable
        The law at one vector.
    subject : Subject
        What is judged; its deadline is brought forward meanwhile.
    example : Example
        Where it failed.
    verdict : Verdict
        How it failed.
    seconds : float
        Time for all attempts.
    attempts : int
        Most vectors that are tried.
    """
    allowed, deadline = subject.deadline, work_s() + seconds
    subject.deadline = min(allowed, deadline)  # an attempt may take many draws
    try:
        return _simplest(judge, subject, example, verdict, deadline, attempts)
    finally:
        subject.deadline = allowed


def _simplest(
    judge: Judge, subject: Subject, example: Example, verdict: Verdict, deadline: float, attempts: int
) -> Verdict:
    improved = True
    while improved:
        improved = False
        for x in map(subject.domain.fit, simpler(example.x)):
            attempts -= 1
            if attempts < 0 or work_s() > deadline:
                return verdict
            if x is None or x.size > example.d or np.array_equal(x, example.x):
                continue
            candidate = Example(f"shrunk from {example.name.removeprefix('shrunk from ')}", x)
            attempted = judge(candidate)
            if attempted.outcome is Outcome.FAIL and _finding(attempted) == _finding(verdict):
                example, verdict, improved = candidate, attempted, True
                break
    return verdict


def _finding(verdict: Verdict) -> tuple[str, About]:
    """Return the kind of a failure: the exception's name or a violation, and its subject."""
    return verdict.text.split(":")[0] if verdict.text.startswith("raised ") else "violation", verdict.about


def simpler(x: np.ndarray) -> Iterator[np.ndarray]:
    """Return vectors simpler than x, the boldest first; never empty, never all zero unless x is."""
    tried = {x.tobytes()}
    for candidate in _candidates(x):
        if candidate.size and (candidate.any() or not x.any()) and candidate.tobytes() not in tried:
            tried.add(candidate.tobytes())
            yield candidate


def _candidates(x: np.ndarray) -> Iterator[np.ndarray]:
    d = x.size
    for length in (1, 2, 3, d // 8, d // 2, d - 1):
        if 0 < length < d:
            yield x[:length].copy()
            yield x[-length:].copy()
    largest = float(np.abs(x).max(initial=0.0))
    if largest and largest != 1:
        yield (x / np.float32(largest)).astype(np.float32)
    for i in range(min(d, 16)):
        if x[i]:
            yield np.where(np.arange(d) == i, np.float32(0), x)
    for i in range(min(d, 16)):
        if x[i] and abs(x[i]) != 1:
            yield np.where(np.arange(d) == i, np.sign(x[i]), x).astype(np.float32)
            with np.errstate(over="ignore"):
                rounded = np.float32(f"{x[i]:.1g}")
            if np.isfinite(rounded):
                yield np.where(np.arange(d) == i, rounded, x).astype(np.float32)
