"""One line from a compressor to a verdict."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from math import inf

from ..functions.global_streams import seeded
from ..functions.own import Own
from .betting.budget import Budget, spelled
from .kit.clock import work_s
from .kit.law import Context, Law
from .kit.subject import Array, ClaimSource, Subject, Target, claim_spelled
from .kit.verdict import Outcome, Report, Verdict
from .operator.exact_marginals import ExactMarginals
from .operator.tightness import NO_CEILING, Tightness
from .suite import LAWS, laws_for, statistical_laws

NOT_TRIED = "not tried: another law fails, and a subject that is accused is not judged for long; mend it, check again"


def check(
    op: Target | Subject,
    *,
    claim: ClaimSource = None,
    budget: Budget | None = None,
    array: Array = "torch",
    seed: int | None = None,
    laws: Collection[str] | None = None,
    accept_inconclusive: bool = False,
    ceiling: float | None = None,
) -> Report:
    """Judge a compressor by every law that applies to it.

    Parameters
    ----------
    op
        An Operator; an object with ``encode(x, [key=])`` and ``decode(message, [d=], [key=])``; or a function ``x ->
        x_hat`` with its own randomness, which receives a 1-d float32 torch tensor (``array="numpy"``: an array), or
        that function as ``operators.own`` takes it; or a subject made by ``adapt``, which brings its claim.
    claim : ClaimSource, optional
        One of ``bounds.claims``, or a function of d; the default is ``op.claim``.  A claim without d is taken to hold
        at every d tried (among them 1, sizes above 64 and sizes that are no power of two).
    budget : Budget or None, optional
        What may be spent (``Budget.quick()``, ``Budget()``, ``Budget.deep()``).
    array : Array, optional
        What the subject takes: "numpy" or "torch".
    seed : int or None, optional
        Replays a report; without it every call draws afresh.
    laws : collection of str or None, optional
        Names of the laws to run, all by default.
    accept_inconclusive : bool, optional
        ``ok`` also where a law could not judge, or judged with less power than ``budget.bias`` asks.
    ceiling : float or None, optional
        The largest ``|C(x) - x|^2/|x|^2`` of a single draw, > 0.  Draws judge ``tight=True`` only with it, or with a
        method ``ceiling(d)`` of ``op``.

    Raises
    ------
    TypeError
        For what is no compressor.
    ValueError
        For an unknown law, a negative seed or a ceiling that is not positive.

    Notes
    -----
    Returns a Report whose ``ok`` is false with probability at most ``budget.false_alarm`` if the claim is true.
    """
    budget = Budget() if budget is None else budget
    if seed is not None and seed < 0:
        raise ValueError(
            f"seed must satisfy seed >= 0; got seed = {seed}: give a natural number, or none to draw afresh"
        )
    if ceiling is not None and not 0 < ceiling < inf:
        raise ValueError(f"ceiling must be finite and > 0; got {ceiling}: give the largest |C(x) - x|^2/|x|^2")
    seed = secrets.randbits(32) if seed is None else seed
    names = {law.name for law in LAWS}
    unknown = set(laws or ()) - names
    if unknown:
        raise ValueError(f"unknown law {sorted(unknown)[0]!r}; known: {', '.join(sorted(names))}")
    if isinstance(op, Own):
        claim, array, op = claim if claim is not None else op.stated_claim, op.array, op.plain()
    subject = op if isinstance(op, Subject) else Subject(op, claim, array)
    if ceiling is not None:
        subject.ceiling = ceiling
    chosen = tuple(law for law in laws_for(subject) if laws is None or law.name in laws)
    context = Context(budget, seed, parts=statistical_laws(), laws=chosen)
    with subject.session():
        context.hurry(subject.pace())
        verdicts = exactly_judged(tuple(_verdict(law, subject, context) for law in chosen))
    return Report(subject.name, seed, verdicts, reproduction(subject, claim, budget, seed, laws), accept_inconclusive)


def exactly_judged(verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
    """Return the verdicts without that on draws where a tight claim was judged by exact moments."""
    exact = any(v.law == ExactMarginals.name and v.outcome is Outcome.PASS for v in verdicts)
    exactly = Verdict(Tightness.name, Outcome.NOT_APPLICABLE, f"judged exactly by {ExactMarginals.name}")
    return tuple(exactly if exact and v.text == NO_CEILING else v for v in verdicts)


def _verdict(law: Law, subject: Subject, context: Context) -> Verdict:
    """Return one law's verdict, with a clock of its own."""
    context.began = work_s()
    if context.accused and context.began > context.ends:
        return Verdict(law.name, Outcome.INCONCLUSIVE, NOT_TRIED)
    subject.deadline = min(context.ends, context.began + context.law_seconds)
    with seeded(context.seed, law.name):
        verdict = law.run(subject, context)
    if verdict.outcome is Outcome.FAIL:
        context.accuse()
    return verdict


def reproduction(subject: Subject, claim: ClaimSource, budget: Budget, seed: int, laws: Collection[str] | None) -> str:
    """Return one line of Python that repeats a check draw by draw (where no time limit was met)."""
    arguments = [subject.spelled or subject.name, f"seed={seed}", spelled(budget)]
    if claim is not None:
        arguments.append(f"claim={claim_spelled(claim)}")
    if subject.ceiling is not None:
        arguments.append(f"ceiling={subject.ceiling!r}")
    if subject.array != "torch" and not subject.spelled:
        arguments.append(f'array="{subject.array}"')
    if laws is not None:
        arguments.append(f"laws={sorted(laws)!r}")
    return f"operators.laws.check({', '.join(filter(None, arguments))})"
