"""Make a failing input simpler while it still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .clock import work_s
from .examples import Example
from .subject import Subject
from .verdict import About, Outcome, Verdict

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
    """Return what kind of failure it is: the exception's name or a violation, and what it is about."""
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
