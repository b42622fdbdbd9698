"""The exact laws of an exchange, one function a law: each raises Violation, or NotApplicable if it is silent."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ..kit.law import NotApplicable, Violation, raised
from ..kit.subject import to_numpy
from ..kit.verdict import Outcome, Verdict
from .groups import Group
from .mean_function import MeanFunction

ExactLaw = Callable[[MeanFunction, Group], None]
BROKEN = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


def results(function: MeanFunction, group: Group) -> None:
    """All ranks end with the same bits: finite, of shape (d,)."""
    function.mean(group.vectors)


def zero(function: MeanFunction, group: Group) -> None:
    """The mean of zero vectors is zero, exactly."""
    y = function.mean(np.zeros_like(group.vectors))
    if y.any():
        raise Violation(f"the mean of {group.m} zero vectors has an entry {y[np.abs(y).argmax()]:.6g}")


def no_mutation(function: MeanFunction, group: Group) -> None:
    """The vectors are as they were."""
    given = function.given(group.vectors)
    function.call(given)
    after = np.stack([np.asarray(row) for row in given])
    if after.shape != group.vectors.shape or after.tobytes() != group.vectors.tobytes():
        raise Violation("a worker's vector is not what it was before the call")


def kept_results(function: MeanFunction, group: Group) -> None:
    """A result is not changed by the next step."""
    output = function.call(function.given(group.vectors))
    before = function.rows(output, group.m, group.d)
    function.call(function.given(-group.vectors))
    if function.rows(output, group.m, group.d).tobytes() != before.tobytes():
        raise Violation("the next step changed a result that had been returned")


def not_finite(function: MeanFunction, group: Group) -> None:
    """A number that is not finite is told to all ranks: by an error, or by a result that is not finite."""
    for name, value in BROKEN.items():
        for rank in {0, group.m - 1}:
            vectors = group.vectors.copy()
            vectors[rank, -1] = value
            try:
                rows = function.rows(function.call(function.given(vectors)), group.m, group.d)
            except Violation:
                raise
            except Exception:  # a refusal, in whatever words
                continue
            if np.isfinite(to_numpy(rows)).all():
                raise Violation(f"{name} at rank {rank} of {group.m} gives a finite mean: nobody is told")


def determinism(function: MeanFunction, group: Group) -> None:
    """One key, one result."""
    if not function.takes_key:
        raise NotApplicable("it takes no key")
    given = [function.call(function.given(group.vectors), step=1 << 32) for _ in range(2)]
    first, second = (function.rows(output, group.m, group.d) for output in given)
    if first.tobytes() != second.tobytes():
        raise Violation("the same vectors and key give two results")


EXACT: dict[str, ExactLaw] = {
    "results": results,
    "zero": zero,
    "no-mutation": no_mutation,
    "kept-results": kept_results,
    "not-finite": not_finite,
    "determinism": determinism,
}


def judged_exactly(start: Callable[[], MeanFunction], groups: Iterable[Group]) -> list[Verdict]:
    """Return the verdicts of the exact laws.

    Parameters
    ----------
    start : callable
        Returns the exchange; one with memory starts afresh for every group.
    groups : iterable of Group
        The vectors on which they are tried.
    """
    tried = list(groups)
    return [_verdict(name, law, start, tried) for name, law in EXACT.items()]


def _verdict(name: str, law: ExactLaw, start: Callable[[], MeanFunction], groups: list[Group]) -> Verdict:
    for group in groups:
        try:
            law(start(), group)
        except NotApplicable as reason:
            return Verdict(name, Outcome.NOT_APPLICABLE, str(reason))
        except Violation as violation:
            return Verdict(name, Outcome.FAIL, str(violation), group.name, group.x)
        except Exception as error:  # whatever the subject raises is a finding
            return Verdict(name, Outcome.FAIL, raised(error), group.name, group.x)
    return Verdict(name, Outcome.PASS)
