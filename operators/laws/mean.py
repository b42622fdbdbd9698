"""Is somebody's all-reduce what it claims to be: one result for all ranks, the mean on average, no larger error?"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import numpy as np

from bounds.claims import ConservedMean, Unbiased, UnbiasedMean

from ..functions.global_streams import seeded
from .adapt import Library, _name
from .betting.budget import Budget, spelled, work_s
from .exchange.bets import MeanBias, MeanErrors, MeanShortfall, StepErrors, claimed, conserved
from .exchange.edges import judged_exactly, lengths
from .exchange.groups import Group, MeanFunction, MeanSource, groups, sizes_for
from .kit.law import raised
from .kit.statistical import ClaimBets, collect
from .kit.subject import claim_spelled
from .kit.verdict import Outcome, Report, Verdict

Joint = UnbiasedMean | Unbiased
JointClaim = Joint | Callable[[int, int], Joint] | ConservedMean
STATISTICAL = 4  # laws that share the false-alarm budget
PACE_CALLS = 3
ASSUMED = {  # law -> what its bets assume of the claim: the law that refutes it, and what to do
    "unbiasedness": {"error": "the constant alone is refuted by the law of the error: claim a true one first"},
    "steps": {
        "unbiasedness": "the errors have a mean, which alone makes them look correlated: correct the mean first",
        "error": "the constant alone is refuted by the law of the error: claim a true one first",
    },
}
NO_CEILING = "not judged: a mean can be shown to be too small only if no draw exceeds a known ceiling; pass ceiling="


def check_mean(
    function: Callable[..., Any],
    *,
    m: int,
    claim: JointClaim,
    sizes: tuple[int, ...] | None = None,
    library: Library = "torch",
    alone: bool = True,
    budget: Budget | None = None,
    seed: int | None = None,
    accept_inconclusive: bool = False,
    ceiling: float | None = None,
) -> Report:
    """Judge an exchange: a function from the vectors of m workers to their mean, on one machine.

    Parameters
    ----------
    function : callable
        From a list of m tensors of shape (d,), or an array of shape (m, d), to m results, or to one; every call is a
        step.  If it takes ``key``, it gets a ``Key`` of its own in every step, and must draw from it alone.  For a
        ``ConservedMean``: a function without arguments that returns such a function with an empty memory.
    m : int
        Number of workers, >= 2.
    claim : JointClaim
        ``UnbiasedMean(a, b)``: E y = xbar and ``E|y - xbar|^2 <= a S + b M``, with S the mean of ``|x_i|^2`` and M =
        ``|xbar|^2``; ``Unbiased(omega)`` stands for a = omega, b = 0, exact for omega = 0; a function of (d, m) that
        returns one of these; or ``ConservedMean``.
    sizes : tuple of int or None, optional
        Dimensions to try; by default 1, below m, m, not divisible by m, and larger ones.
    library : Library, optional
        "torch" or "numpy", what the function receives, float32.
    alone : bool, optional
        Whether the function takes the vector of a single worker too, which is then tried.
    budget : Budget or None, optional
        How many draws, as for ``check``.
    seed : int or None, optional
        Replays a verdict, as for ``check``.
    accept_inconclusive : bool, optional
        Whether an inconclusive verdict passes, as for ``check``.
    ceiling : float or None, optional
        The largest ``|y - xbar|^2`` of a step over the claimed a S + b M, >= 1; without it tight=True is not judged.

    Returns
    -------
    Report
        One whose ``ok`` is false with probability at most ``budget.false_alarm`` if the claim is true.

    Raises
    ------
    TypeError
        For what is no function, and for another claim.
    ValueError
        For m < 2, and for a wrong size or library.
    """
    if m != int(m) or m < 2:
        raise ValueError(f"m must be an integer with m >= 2; got m = {m}: for one vector use check")
    budget = Budget() if budget is None else budget
    seed = secrets.randbits(32) if seed is None else seed
    sizes = sizes_for(m) if sizes is None else sizes
    if not sizes or min(sizes) < 1:
        raise ValueError(f"sizes must be integers >= 1, at least one; got sizes = {sizes}")
    rng = np.random.default_rng([seed, m])
    tried = list(groups(m, sizes, rng))
    single = list(groups(1, sizes[:3], rng)) if alone else []
    with seeded(seed, "exchange"):
        if isinstance(claim, ConservedMean):
            name, verdicts = _with_memory(function, tried, single, claim, library, seed, budget)
        else:
            subject = MeanFunction(function, library, seed)
            name, verdicts = subject.name, _without_memory(subject, tried, single, claim, budget, ceiling)
            if not any(v.outcome is Outcome.FAIL for v in verdicts):
                level = budget.false_alarm / STATISTICAL / 2
                stated = partial(_claimed, claim)
                verdicts.append(lengths(subject, m, stated, budget, level, rng, any_m=callable(claim)))
    given = [_name(function), f"m={m}", f"claim={claim_spelled(claim)}", f"sizes={tuple(sizes)!r}", f"seed={seed}"]
    given += [f'library="{library}"'] * (library != "torch") + ["alone=False"] * (not alone)
    given += [f"ceiling={ceiling!r}"] * (ceiling is not None) + [spelled(budget)]
    reproduce = f"operators.laws.check_mean({', '.join(filter(None, given))})"
    return Report(f"{name}, m = {m}", seed, tuple(verdicts), reproduce, accept_inconclusive)


def _with_memory(
    function: Callable[..., Any],
    tried: list[Group],
    single: list[Group],
    claim: ConservedMean,
    library: Library,
    seed: int,
    budget: Budget,
) -> tuple[str, list[Verdict]]:
    """Return name and verdicts of a function that makes an exchange with memory."""

    def start() -> MeanFunction:
        return MeanFunction(function(), library, seed)

    verdicts = judged_exactly(start, _exact_groups(tried, single))
    return start().name, [*verdicts, conserved(start, _longest(tried), claim, budget)]


def _without_memory(
    subject: MeanFunction,
    tried: list[Group],
    single: list[Group],
    claim: JointClaim,
    budget: Budget,
    ceiling: float | None,
) -> list[Verdict]:
    """Return the verdicts on a joint claim."""
    verdicts = judged_exactly(lambda: subject, _exact_groups(tried, single))
    judged = [*tried, *(single if callable(claim) else [])]
    claims = [_at(claim, group) for group in judged]
    moments = [claimed(group, c) for group, c in zip(judged, claims, strict=True)]
    level = budget.false_alarm / STATISTICAL
    bets: dict[str, ClaimBets] = {
        "error": MeanErrors(judged, moments, level),
        "unbiasedness": MeanBias(judged, moments, level, budget.bias),
        "steps": StepErrors(moments, level),
    }
    tight = all(c.tight for c in claims)
    if tight and ceiling is not None:
        bets["constant-reached"] = MeanShortfall(judged, moments, ceiling, level / 2)  # lengths have the other half
    try:
        budget = _hurried(budget, subject, tried[-1])
        draws = collect(MeanSource(subject), list(judged), list(bets.values()), budget)
    except Exception as error:  # whatever the subject raises is a finding
        return [*verdicts, Verdict("error", Outcome.FAIL, raised(error))]
    if tight and ceiling is None:
        verdicts.append(Verdict("constant-reached", Outcome.INCONCLUSIVE, NO_CEILING))
    refuted = {law for law, b in bets.items() if b.rejected()}
    return [*verdicts, *(_explained(_verdict(law, b, judged, draws, budget), refuted) for law, b in bets.items())]


def _explained(verdict: Verdict, refuted: set[str]) -> Verdict:
    """Return INCONCLUSIVE where a bet rests on what another law refutes: the constant, or the mean."""
    rests_on = [law for law in ASSUMED.get(verdict.law, {}) if law in refuted]
    if verdict.outcome is not Outcome.FAIL or not rests_on:
        return verdict
    text = f"{verdict.text}; but {ASSUMED[verdict.law][rests_on[0]]}"
    return Verdict(verdict.law, Outcome.INCONCLUSIVE, f"not judged: {text}", verdict.example, verdict.x)


def _exact_groups(tried: list[Group], single: list[Group]) -> list[Group]:
    """Return one group a size, of one worker too."""
    return [g for g in (*tried, *single) if g.name.startswith("independent" if g.m > 1 else "equal Gaussian")]


def _longest(tried: list[Group]) -> list[Group]:
    """Return equal and independent vectors of the largest size."""
    d = max(group.d for group in tried)
    names = ("equal Gaussian", "independent Gaussian vectors,")
    return [g for g in tried if g.d == d and g.name.startswith(names)]


def _at(claim: JointClaim, group: Group) -> UnbiasedMean:
    return _claimed(claim, group.d, group.m)


def _claimed(claim: JointClaim, d: int, m: int) -> UnbiasedMean:
    stated = claim(d, m) if callable(claim) else claim
    if isinstance(stated, Unbiased):
        return UnbiasedMean(stated.omega, tight=stated.tight)
    if not isinstance(stated, UnbiasedMean):
        raise TypeError(
            f"claim must be an UnbiasedMean, Unbiased or ConservedMean, or a function of d and m that returns one of "
            f"the first two; got {stated!r}"
        )
    return stated


def _hurried(budget: Budget, subject: MeanFunction, group: Group) -> Budget:
    """Return the budget with as few sure draws as a slow exchange has time for."""
    began = work_s()
    for _ in range(PACE_CALLS):
        subject.mean(group.vectors)
    pace_s = (work_s() - began) / PACE_CALLS
    affordable = 2 * budget.most_seconds / pace_s if pace_s > 0 else inf
    least = budget.least_draws if affordable > budget.least_draws else max(1, int(affordable))
    return replace(budget, least_draws=least)


def _verdict(law: str, bets: ClaimBets, judged: list[Group], made: int, budget: Budget) -> Verdict:
    vector = bets.richest()
    if bets.rejected():
        group = judged[vector if vector is not None else 0]
        return Verdict(law, Outcome.FAIL, bets.finding(), group.name, group.x)
    power = bets.power()
    text = f"{made} draws; {power}" if str(power) else ""
    if isinstance(bets, MeanBias) and not bets.enough():
        text = f"{text}; asked for: {budget.bias:g} |xbar| along xbar"
        return Verdict(law, Outcome.INCONCLUSIVE, text, power=power)
    if isinstance(bets, MeanErrors) and not bets.enough():
        text = f"{text}; asked for: an excess of 40 %"
        return Verdict(law, Outcome.INCONCLUSIVE, text, power=power)
    return Verdict(law, Outcome.PASS, text, power=power)
