"""One line from a compressor to a verdict: the laws in the order in which they are tried, and ``check``."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import replace
from math import inf

import numpy as np

from ..functions.global_streams import seeded
from ..functions.own import Own
from . import aggregate_laws, feedback_laws
from .betting.budget import Budget, spelled, work_s
from .betting.eprocess import ExcessBets, inflated
from .kit.examples import Example
from .kit.law import OF_FUNCTIONS, Context, Law, NotApplicable, claimed_moment, fresh_key
from .kit.statistical import LONG
from .kit.subject import Array, ClaimSource, OutOfTime, Subject, Target, claim_spelled
from .kit.verdict import About, Outcome, Report, Verdict
from .operator import circumstances, codec, contract, draws, enumeration, exact, streams
from .operator.draws import NO_CEILING
from .operator.every_coordinate import EveryCoordinate
from .operator.lengths import Lengths, compared

OF_FORM = (contract.output_form, contract.zero, contract.no_mutation, contract.kept_output)
OF_CODECS = (codec.declared_size, codec.round_trip, codec.own_message, codec.payload_alone, codec.corruption)
OF_KEYS = (streams.determinism, streams.KeySeparation(), streams.private_randomness, streams.random_state)
OF_INPUTS = (
    contract.input_contract,
    contract.negative_zero,
    contract.extremes,
    circumstances.Circumstances(),
    Lengths(),
)
OF_SYMMETRY = (contract.scale, contract.sign, contract.permutation)
ADVERSARIAL, MARGINALS, FINITE = exact.Adversarial(), exact.ExactMarginals(), enumeration.Enumeration()
EXACT = (exact.sure_contraction, ADVERSARIAL, contract.projection, MARGINALS, FINITE)
BY_DRAWS = (draws.Distortion(), draws.ExpectedSize(), draws.Unbiasedness(), draws.Tightness())
OF_PLACES = (EveryCoordinate(), streams.IndependentStreams(), aggregate_laws.HookMean())
LAWS: tuple[Law, ...] = (  # first what a few calls show, so that a wrong compressor is accused early
    *(*OF_FORM, *OF_CODECS, *OF_KEYS, *OF_INPUTS, *OF_SYMMETRY, *EXACT, *BY_DRAWS, *OF_PLACES),
    *(*feedback_laws.LAWS, *aggregate_laws.LAWS),
)


def laws_for(subject: Subject) -> tuple[Law, ...]:
    """Return the laws about this kind of subject, whether or not they apply to it."""
    return tuple(law for law in LAWS if law.judges(subject))


def statistical_laws() -> int:
    """Return among how many laws the false-alarm budget is split."""
    return sum(law.statistical for law in LAWS)


CONFIRMING = 1000  # draws that judge the constant alone where a mean is refuted
STRUCTURAL = {Lengths.name, EveryCoordinate.name}
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
    share = OF_FUNCTIONS if subject.kind == "compressor" and not subject.is_codec else 1.0
    context = Context(budget, seed, parts=statistical_laws(), laws=chosen, share=share)
    with subject.session():
        context.hurry(subject.pace())
        verdicts = reconciled(tuple(_verdict(law, subject, context) for law in chosen), subject, context)
    line = reproduction(subject, claim, budget, seed, laws)
    return Report(subject.name, seed, verdicts, line, accept_inconclusive, subject.claimed())


def reconciled(verdicts: tuple[Verdict, ...], subject: Subject, context: Context) -> tuple[Verdict, ...]:
    """Return the verdicts, corrected where one law rests on what another one says.

    A tight claim that exact moments judged needs no draws.  Where the claimed constant alone is refuted, a mean that
    was refuted together with it is not judged, nor is whether one length or coordinate is worse than others.
    """
    exactly_judged = any(v.law == exact.ExactMarginals.name and v.outcome is Outcome.PASS for v in verdicts)
    exactly = Verdict(draws.Tightness.name, Outcome.NOT_APPLICABLE, f"judged exactly by {exact.ExactMarginals.name}")
    verdicts = tuple(exactly if exactly_judged and v.text == NO_CEILING else v for v in verdicts)
    given = [v for v in verdicts if v.outcome is Outcome.FAIL and v.about is About.MEAN]
    refuted = [v for v in verdicts if v.outcome is Outcome.FAIL and v.about is About.CONSTANT]
    if given and not refuted:
        refuted = [_without_the_mean(given[0], subject, context)]
        verdicts = tuple(refuted[0] if v is given[0] else v for v in verdicts)
    refuted.sort(key=lambda v: v.law in STRUCTURAL)
    if not refuted or refuted[0].about is not About.CONSTANT:
        return verdicts
    by = refuted[0].law
    text = f"not judged: the claimed constant is refuted (see {by}); claim a true one first"
    resting = {About.MEAN: {v.law for v in verdicts}, About.CONSTANT: set() if by in STRUCTURAL else STRUCTURAL}
    return tuple(
        Verdict(v.law, Outcome.INCONCLUSIVE, text)
        if v.outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE) and v.law in resting.get(v.about, ())
        else v
        for v in verdicts
    )


def _without_the_mean(verdict: Verdict, subject: Subject, context: Context) -> Verdict:
    """Bet on the claimed constant alone where a mean was refuted, there and at a flat vector; return what is refuted.

    At a flat vector many coordinates err alike, so that a few draws show a constant that is a little too small.
    """
    if verdict.x is None:
        return verdict
    level, rng = context.level(1), context.rng(f"{verdict.law} constant")
    subject.deadline = work_s() + context.budget.seconds
    flat = Example(f"flat, d = {LONG}", np.ones(LONG, np.float32))
    try:
        for example in subject.domain.of([Example(verdict.example, verdict.x), flat]):
            s2 = claimed_moment(subject, example.d)
            bets = ExcessBets(inflated(s2))
            for n in range(1, CONFIRMING + 1):
                y = subject.draw(example.x, fresh_key(rng))
                bets.update(np.array([compared(example.x, y)[0]]))
                if bets.wealth.rejects(level):
                    text = f"E|C(x) - x|^2 <= {s2:.6g} |x|^2 rejected at level {level:.1e} after {n} draws here"
                    return replace(verdict, text=text, example=example.name, x=example.x, about=About.CONSTANT)
    except (OutOfTime, NotApplicable):
        pass
    return verdict


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
