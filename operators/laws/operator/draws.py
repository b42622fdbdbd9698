"""Law: the mean squared error is not above the claim (statistical, anytime-valid)."""

from __future__ import annotations

from math import isfinite

import numpy as np

from bounds.claims import StrictlyContractive, Unbiased

from ..betting.budget import Budget
from ..betting.eprocess import SizeBets, inflated
from ..betting.mean_bets import MeanBets
from ..kit.examples import REACHED, WITNESS, Example
from ..kit.law import Context, fail_if, second_moment
from ..kit.statistical import (
    ClaimBets,
    Draws,
    HasMean,
    MeanClaim,
    OnMeans,
    OnSizes,
    StatisticalLaw,
    Study,
    evidence_of,
    mean_claim,
)
from ..kit.subject import Subject
from ..kit.verdict import About, Outcome, Verdict


class Distortion(StatisticalLaw):
    """``E|C(x) - x|^2 <= omega |x|^2``, or ``alpha |x|^2``."""

    name = "distortion"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs any claim with a constant."""
        if all(second_moment(subject.claim(d)) is None for d in (1, 2, 65)):
            return "nothing is claimed"
        return super().applies(subject)

    def bets(self, subject: Subject, examples: list[Example], level: float, budget: Budget) -> ClaimBets | None:
        """Return bets that the error is larger than claimed, at every vector with a constant."""
        constants = {j: second_moment(subject.claim(e.d)) for j, e in enumerate(examples)}
        stated = {j: inflated(s2) for j, s2 in constants.items() if s2 is not None}
        return SquaredErrors(SizeBets(list(stated.values()), [examples[j].d for j in stated]), stated, level)


class SquaredErrors(OnSizes):
    """Bets on ``|e|^2`` at the vectors in ``stated``, whose claimed constants it holds."""

    about = About.CONSTANT

    def __init__(self, sizes: SizeBets, stated: dict[int, float], level: float, factor: float = 1.0) -> None:
        super().__init__(sizes, stated, level)
        self.factor = factor

    def update(self, vector: int, draws: Draws) -> None:
        """Bet on a batch where something is claimed."""
        if vector in self.number:
            self.sizes.update(self.number[vector], self.quantity(draws))

    def quantity(self, draws: Draws) -> np.ndarray:
        """Return what the bets are about."""
        return self.factor * (draws.errors**2).sum(axis=1)

    def finding(self) -> str:
        """Return what was claimed and what was seen."""
        vector = self.sizes.ledger.richest()
        return (
            f"E|C(x) - x|^2 <= {self.sizes.means[vector]:.6g} |x|^2 rejected at level {self.level:.1e} after "
            f"{self.sizes.counts.sum()} draws; the mean at this vector is {self.sizes.ratio(vector):.4g} of it, "
            f"over all vectors {self.sizes.overall_ratio():.4g}"
        )


# -- Law: no bet on the direction of the error wins (statistical, anytime-valid) -------------------------------
# The bets take the claimed constant at its word: what they refute is E C(x) = x together with it.  No test of a mean
# does without some bound on the error, so where the constant alone is refuted the mean is not judged (``reconciled``).


class Unbiasedness(StatisticalLaw):
    """E C(x) = x, or ``mean_at(x)`` where a biased operator declares it, along x, coordinates and the mean so far."""

    name = "unbiasedness"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs a claim about the mean."""
        if not _claims_a_mean(subject) and not isinstance(subject.target, HasMean):
            return "no mean is claimed"
        return super().applies(subject)

    silence = "no mean is claimed at the sizes tried"

    def bets(self, subject: Subject, examples: list[Example], level: float, budget: Budget) -> ClaimBets | None:
        """Return bets on the mean at every vector with a claim."""
        claims = {j: mean_claim(subject, example.x) for j, example in enumerate(examples)}
        stated = {j: claim for j, claim in claims.items() if claim is not None}
        about = About.MEAN if _claims_a_mean(subject) else About.OTHER
        return _Mean(examples, stated, level, budget.bias, about) if stated else None

    def passed(self, bets: ClaimBets, study: Study, context: Context) -> Verdict:
        """Return INCONCLUSIVE where the power that was asked for is missed."""
        verdict = super().passed(bets, study, context)
        along = verdict.power.along_x
        if along is None or along <= context.budget.bias:
            return verdict
        text = f"{verdict.text}; asked for: {context.budget.bias:g} |x| along x"
        return Verdict(self.name, Outcome.INCONCLUSIVE, text, power=verdict.power, about=bets.about)


def _claims_a_mean(subject: Subject) -> bool:
    return any(isinstance(subject.claim(d), Unbiased) for d in (1, 2, 65))


class _Mean(OnMeans):
    """Bets on C(x) minus the claimed mean."""

    def __init__(
        self, examples: list[Example], claims: dict[int, MeanClaim], level: float, bias: float, about: About
    ) -> None:
        self.about = about
        wide = [examples[j].x.astype(np.float64) for j in claims]
        norms = [float(np.linalg.norm(x)) for x in wide]
        self.offsets = [(claim.mean - x) / n for claim, x, n in zip(claims.values(), wide, norms, strict=True)]
        directions = [x / n for x, n in zip(wide, norms, strict=True)]
        mean = MeanBets(directions, [claim.second_moment for claim in claims.values()])
        super().__init__(mean, claims, level, bias)

    def update(self, vector: int, draws: Draws) -> None:
        """Bet on a batch where something is claimed."""
        if vector in self.number:
            number = self.number[vector]
            self.mean.update(number, draws.errors - self.offsets[number])

    def finding(self) -> str:
        """Return what was claimed and what was seen."""
        vector = self.mean.ledger.richest()
        moments = self.mean.moments[vector]
        length = float(np.linalg.norm(moments.error)) / max(1, moments.n)
        return (
            f"E C(x) = x rejected, given E|C(x) - x|^2 <= {self.mean.s2[vector]:.6g} |x|^2, at level {self.level:.1e} "
            f"after {sum(m.n for m in self.mean.moments)} draws; the mean error so far is "
            f"{self.mean.mean_error():+.3g} |x| along x over all vectors, {length:.3g} |x| at this one"
        )


# -- Law: a constant that is claimed to be reached is reached (statistical); a loose one is only remarked on ---

LOOSE = 0.5
NO_CEILING = (
    "tight=True is not judged: draws show that a mean error is too small only if no draw exceeds a known ceiling; pass "
    "ceiling= (the largest |C(x) - x|^2/|x|^2), give the operator ceiling(d), or claim StrictlyContractive"
)
_ROUNDING = 1e-4  # binary32 rounding of a small error


class Tightness(StatisticalLaw):
    """tight=True: ``E|C(x) - x|^2`` is not below the claim, for every x; ``witness(d)``: not below 95 % of it there.

    Needs a ceiling on the squared error of single draws: without one no finite number of them can show that a mean is
    too small.  ``StrictlyContractive`` declares one, so do ``ceiling`` of ``check`` and a method ``ceiling(d)`` of the
    target.  Without a ceiling the law is INCONCLUSIVE, unless the exact marginals have judged the claim.  At a
    witness of a claim that is not tight, an operator declares the ceiling (16 + 4 d) times its claim.
    """

    name = "constant-reached"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs a claim with a positive constant."""
        if all(not second_moment(subject.claim(d)) for d in (1, 2, 65)):
            return "no positive constant is claimed"
        return super().applies(subject)

    silence = "the claim is not said to be tight, and the subject declares no witness"

    def bets(self, subject: Subject, examples: list[Example], level: float, budget: Budget) -> ClaimBets | None:
        """Return bets that the error is smaller than claimed, where the constant is claimed to be reached."""
        stated: dict[int, float] = {}
        for j, example in enumerate(examples):
            claim = subject.claim(example.d)
            s2 = second_moment(claim)
            if s2 and (claim.tight or example.name.startswith(WITNESS)):  # type: ignore[union-attr]
                stated[j] = s2 * (1.0 if claim.tight else REACHED)  # type: ignore[union-attr]
        if not stated:
            return None
        sizes = [examples[j].d for j in stated]
        ceilings = [_ceiling(subject, d, s2) for d, s2 in zip(sizes, stated.values(), strict=True)]
        return _Shortfall(SizeBets(list(stated.values()), sizes, ceilings), stated, level, 1 + _ROUNDING)

    def run(self, subject: Subject, context: Context) -> Verdict:
        """As the other statistical laws; a remark where nothing was found and the claim is loose."""
        reason = self.applies(subject)
        if reason is None and _needs_ceiling(subject):
            return Verdict(self.name, Outcome.INCONCLUSIVE, NO_CEILING)
        verdict = super().run(subject, context)
        if verdict.outcome is Outcome.FAIL or reason is not None:
            return verdict
        best = _largest_share(evidence_of(subject, context))
        if best is None or best >= LOOSE:
            return verdict
        text = f"the claim is loose here: the largest mean error seen is {best:.2f} of it"
        return Verdict(self.name, Outcome.NOTE, text)


def _needs_ceiling(subject: Subject) -> bool:
    """Return whether a mean error is claimed to be reached, and nothing bounds the error of a single draw."""
    tight = [c for c in map(subject.claim, (1, 2, 8, 65)) if second_moment(c) and getattr(c, "tight", False)]
    return subject.ceiling_at(1) is None and any(not isinstance(c, StrictlyContractive) for c in tight)


def _ceiling(subject: Subject, d: int, s2: float) -> float:
    """Return the largest squared error of a single draw, over |x|^2."""
    ceiling = subject.ceiling_at(d)
    if ceiling is not None:
        return max(ceiling, s2) * (1 + _ROUNDING)
    if isinstance(subject.claim(d), StrictlyContractive):
        return s2 * (1 + _ROUNDING)
    return (16 + 4 * d) * s2  # at a declared witness of a claim that is not tight


def _largest_share(study: Study) -> float | None:
    """Return the largest mean of ``|e|^2`` at any vector over its claim, if the law of the error has judged."""
    bets = study.bets.get("distortion")
    if not isinstance(bets, SquaredErrors):
        return None
    return max(bets.sizes.ratio(j) for j in range(len(bets.vectors)) if bets.sizes.counts[j])


class _Shortfall(SquaredErrors):
    """Bets that the squared errors are smaller than claimed."""

    about = About.OTHER
    states_power = False

    def finding(self) -> str:
        """Return what was claimed and what was seen."""
        vector = self.sizes.ledger.richest()
        return (
            f"E|C(x) - x|^2 = {self.sizes.means[vector]:.6g} |x|^2 is said to be reached; rejected at level "
            f"{self.level:.1e} after {self.sizes.counts.sum()} draws; the mean at this vector is "
            f"{self.sizes.ratio(vector):.4g} of it"
        )


# -- Law: the mean message length is not above the declared one (statistical, anytime-valid) -------------------


class ExpectedSize(StatisticalLaw):
    """``bits(d).expected_upper``: no vector's mean length exceeds it."""

    name = "expected-size"
    needs = "operator"

    silence = "the length is exact, or no mean length is declared"

    def bets(self, subject: Subject, examples: list[Example], level: float, budget: Budget) -> ClaimBets | None:
        """Return bets that messages are longer than declared."""
        stated: dict[int, float] = {}
        for j, example in enumerate(examples):
            size = subject.target.bits(example.d)
            upper = size.expected_upper
            if size.exact is None and upper is not None:
                fail_if(not (isfinite(upper) and upper > 0), f"expected_upper must be finite and positive; got {upper}")
                stated[j] = upper
        if not stated:
            return None
        return _Lengths(SizeBets(list(stated.values()), [examples[j].d for j in stated]), stated, level)


class _Lengths(SquaredErrors):
    """Bets on the lengths of messages."""

    states_power = False

    def quantity(self, draws: Draws) -> np.ndarray:
        """Return what the bets are about."""
        return draws.bits

    def finding(self) -> str:
        """Return what was claimed and what was seen."""
        vector = self.sizes.ledger.richest()
        return (
            f"the mean length is declared as at most {self.sizes.means[vector]:.6g} bits; rejected at level "
            f"{self.level:.1e} after {self.sizes.counts.sum()} messages with a mean of "
            f"{self.sizes.ratio(vector):.4g} of it"
        )
