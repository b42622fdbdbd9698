"""One wrong thing, where it is put in, and which rows of a run read VIOLATED because of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from gpu_validation.judging.judge import NOT_MEASURED
from gpu_validation.judging.verdict import Comparison, Verdict
from tests.gpu_validation.mutations.bench import Bench

Where = Literal["record", "claim", "theory", "operator", "run", "study", "transport"]


@dataclass(frozen=True)
class Mutation:
    """A wrong claim, bound, record, operator or run.

    Parameters
    ----------
    name : str
        What is wrong, and by how much.
    where : Where
        Into what it is put.
    rows : callable
        The rows of a run with it.
    factor : float or None, optional
        By which a number is wrong, None where it is no factor.
    of : tuple of str, optional
        Quantities or theorems of the rows that could notice it; the number is their bound, or what they measure if
        ``measured``.
    survives : str, optional
        Why no row notices it; empty if one must.
    costly : bool, optional
        Takes more than a few seconds.
    """

    name: str
    where: Where
    rows: Callable[[Bench], Iterable[Comparison]]
    factor: float | None = None
    of: tuple[str, ...] = ()
    measured: bool = False
    survives: str = ""
    costly: bool = False


@dataclass(frozen=True)
class Finding:
    """What became of one mutation.

    Parameters
    ----------
    caught_by : tuple of str
        Quantities of the rows that are VIOLATED; without any, of those that are not measured.
    decides : bool
        Whether one of them decides the exit status.
    least : float or None
        The smallest factor of the same number, on the same side of 1, that some row would have noticed; None where no
        factor is known.
    reason : str
        Why it survives.
    """

    name: str
    where: Where
    caught_by: tuple[str, ...]
    decides: bool
    least: float | None
    reason: str


def find(mutation: Mutation, bench: Bench, honest: Sequence[Comparison]) -> Finding:
    """Put it in and judge: a row that is VIOLATED notices it, or one that is no longer measured.

    Parameters
    ----------
    honest : sequence of Comparison
        The rows without it.
    """
    rows = list(mutation.rows(bench))
    violated = [row for row in rows if row.verdict is Verdict.VIOLATED]
    lost = [row for row in rows if row.unmeasured]
    names = {row.quantity for row in violated} or {f"{NOT_MEASURED}: {row.quantity}" for row in lost}
    return Finding(
        name=mutation.name,
        where=mutation.where,
        caught_by=tuple(sorted(names)),
        decides=any(row.decides for row in violated),
        least=least_noticed(mutation, honest),
        reason=mutation.survives,
    )


def least_noticed(mutation: Mutation, honest: Sequence[Comparison]) -> float | None:
    """Return the factor closest to 1 that the honest rows would have noticed of the number that is wrong."""
    if mutation.factor is None or not mutation.of:
        return None
    ends = [row.noticed for row in honest if {row.quantity, row.theorem} & set(mutation.of) and row.noticed]
    if not ends:
        return None
    below, above = max(low for low, _ in ends), min(high for _, high in ends)
    if mutation.measured:
        below, above = 1 / above if above else math.inf, 1 / below if below else math.inf
    return below if mutation.factor < 1 else above
