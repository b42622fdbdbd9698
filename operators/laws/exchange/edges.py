"""The exact laws of an exchange, one function a law, and the law of lengths, which bets on draws at many of them.

An exact law raises Violation, or NotApplicable if it is silent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import log2, sqrt

import numpy as np

from bounds.claims import UnbiasedMean

from ..betting.budget import Budget, work_s
from ..betting.eprocess import SLACK
from ..betting.swarm_bets import SwarmBets, Winning
from ..kit.law import NotApplicable, Violation, fail_if, raised
from ..kit.subject import to_numpy
from ..kit.verdict import About, Outcome, Verdict
from ..operator.lengths import PLACES, vector
from .groups import LEAST_MEAN, Group, MeanFunction

ExactLaw = Callable[[MeanFunction, Group], None]
BROKEN = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


def results(function: MeanFunction, group: Group) -> None:
    """All ranks end with the same bits: finite, of shape (d,)."""
    function.mean(group.vectors)


def zero(function: MeanFunction, group: Group) -> None:
    """The mean of zero vectors is zero, exactly."""
    y = function.mean(np.zeros_like(group.vectors))
    fail_if(y.any(), f"the mean of {group.m} zero vectors has an entry {y[np.abs(y).argmax()]:.6g}")


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
    """A number that is not finite is reported to all ranks: by an error, or by a result that is not finite."""
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
                raise Violation(f"{name} at rank {rank} of {group.m} gives a finite mean: no rank reports it")


def determinism(function: MeanFunction, group: Group) -> None:
    """One key, one result."""
    if not function.takes_key:
        raise NotApplicable("it takes no key")
    given = [function.call(function.given(group.vectors), step=1 << 32) for _ in range(2)]
    first, second = (function.rows(output, group.m, group.d) for output in given)
    fail_if(first.tobytes() != second.tobytes(), "the same vectors and key give two results")


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
        except Exception as error:  # whatever the subject raises is a finding
            return Verdict(name, Outcome.FAIL, raised(error), group.name, group.x)
    return Verdict(name, Outcome.PASS)


LONGEST, OTHERS = 1 << 16, (3, 5)
BANDS = (1, 64, 1024, 1 << 13)
REST = "in the rest of d divided by m"
KINDS = ("equal vectors", "independent vectors", "opposed vectors")
OPPOSED = 0.75  # in place of every second vector, the first one times -OPPOSED
RESTS = ("m divides d", "1 is left", "m - 1 are left", "some are left")
FOLLOWED = 0.6  # share of the labels that follow the evidence, in three of four draws
LEAST, USUAL, PATIENT = 80, 160, 3  # vectors however long they take, usual ones, times as many with suspicion
EACH, SUSPICION = 3, 2.0  # draws at each vector; log-capital


def lengths(
    function: MeanFunction,
    m: int,
    claim: Callable[[int, int], UnbiasedMean],
    budget: Budget,
    level: float,
    rng: np.random.Generator,
    *,
    any_m: bool,
) -> Verdict:
    """Bet on the mean and its error at lengths up to 2^16 with drawn remainders modulo m, each with vectors of its own.

    Parameters
    ----------
    function : MeanFunction
        The exchange.
    m : int
        Number of workers.
    claim : callable
        From d and m to the claim.
    budget : Budget
        Seconds.
    level : float
        Of this law.
    rng : Generator
        Draws lengths and vectors.
    any_m : bool
        Whether the claim is about other numbers of workers too; 3 and 5 are then tried.
    """
    name, began = "lengths", work_s()
    bands = [f"{a} to {b - 1}" for a, b in zip(BANDS, (*BANDS[1:], LONGEST + 1), strict=True)]
    numbers = list(dict.fromkeys([m, *(OTHERS if any_m else ())]))
    families = [bands, [*PLACES, REST], list(KINDS), [f"m = {n}" for n in numbers], list(RESTS)]
    bets = SwarmBets(families)
    pool, longest, draws = rng.standard_normal(LONGEST + 1, np.float32), 0, 0
    while draws < USUAL * PATIENT:
        suspicious = bets.peak() > SUSPICION
        if draws >= LEAST and work_s() - began > budget.seconds * (4 if suspicious else 2):
            break
        if draws >= USUAL and not suspicious:
            break
        followed = draws >= LEAST // 3 and draws % 4
        drawn = [str(rng.choice(family)) for family in families]
        if followed:
            drawn = [
                bets.telling(family, label) if rng.random() < FOLLOWED else label
                for family, label in zip(families, drawn, strict=True)
            ]
        place, kind, n = drawn[1], drawn[2], int(drawn[3].removeprefix("m = "))
        band = bands.index(drawn[0])
        d = int(2 ** rng.uniform(log2(BANDS[band]), log2((*BANDS, LONGEST)[band + 1])))
        d = max(1, d // n * n + (0, 1, n - 1, int(rng.integers(n)))[RESTS.index(drawn[4])])
        first = _massed(rng, d, place, pool, n)
        others = [first if kind == KINDS[0] else _massed(rng, d, place, pool, n) for _ in range(n - 1)]
        vectors = np.stack([first, *others])
        if kind == KINDS[2]:
            vectors[1::2] = -OPPOSED * first
        wide = vectors.astype(np.float64)
        mean, square = wide.mean(axis=0), float((wide**2).sum()) / n
        name_of = f"{kind}, mass {place}, m = {n}, d = {d}"
        draws, longest = draws + 1, max(longest, d)
        try:
            errors = np.stack([function.mean(vectors) for _ in range(EACH)]) - mean
        except Exception as error:
            if n != m and not isinstance(error, Violation):
                continue  # it may refuse another number of workers
            return Verdict(name, Outcome.FAIL, raised(error), name_of, first)
        stated, norm2 = claim(d, n), float(mean @ mean)
        scale2 = norm2 if norm2 >= LEAST_MEAN * square / n else square
        direction = mean if scale2 == norm2 else wide[0]
        s2 = (sqrt((stated.of_squares * square + stated.of_mean * norm2) / scale2) + (sqrt(n) + 1) * SLACK) ** 2
        unit = direction / sqrt(scale2 * float(direction @ direction))
        wins = Winning(s2)
        for off in errors:
            a, q = float(off @ unit), float(off @ off) / scale2
            bets.update(drawn, place, a, q, s2, unbiased=True)
            wins.pay(a, q)
        while wins.goes_on() and work_s() - began < budget.seconds * 4:
            try:
                off = function.mean(vectors) - mean
            except Exception as reason:
                return Verdict(name, Outcome.FAIL, raised(reason), name_of, first)
            wins.pay(float(off @ unit), float(off @ off) / scale2)
            if wins.capital() >= wins.needed(level / 2, USUAL * PATIENT):
                text = (
                    f"E y = xbar, given the claimed error, rejected at level {level:.1e} by {wins.n} draws at one group"
                )
                return Verdict(name, Outcome.FAIL, text, name_of, first, about=About.MEAN)
        if bets.rejects(level / 2):
            about = About.CONSTANT if bets.refutes_constant(level / 2) else About.MEAN
            what = "the claimed error" if about is About.CONSTANT else "E y = xbar, given the claimed error,"
            text = f"{what} rejected at level {level:.1e} after {EACH * draws} draws at lengths up to {longest}"
            where = ", ".join(bets.richest(family) for family in families)
            return Verdict(name, Outcome.FAIL, f"{text}; most was won at: {where}", name_of, first, about=about)
    tried = f"lengths up to {longest}, m = {', '.join(map(str, numbers))}, all remainders modulo m"
    return Verdict(name, Outcome.PASS, f"{EACH * draws} draws at {tried}", domain=tried)


def _massed(rng: np.random.Generator, d: int, place: str, pool: np.ndarray, m: int) -> np.ndarray:
    """Return a vector with its mass at a place, float32, shape (d,)."""
    if place != REST:
        return vector(rng, d, place, pool)
    x = np.zeros(d, np.float32)
    rest = d % m or 1
    x[d - rest :] = rng.standard_normal(rest)
    return x
