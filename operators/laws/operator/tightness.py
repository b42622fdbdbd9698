"""Law: a constant that is claimed to be reached is reached (statistical); a loose one is only remarked on."""

from __future__ import annotations

from bounds.claims import StrictlyContractive

from ..betting.budget import Budget
from ..betting.power import Power
from ..betting.size_bets import SizeBets
from ..kit.examples import REACHED, WITNESS, Example
from ..kit.law import Context, second_moment
from ..kit.statistical import ClaimBets, StatisticalLaw, Study, evidence_of
from ..kit.subject import Subject
from ..kit.verdict import About, Outcome, Verdict
from .distortion import SquaredErrors

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

    def silence(self) -> str:
        """Return most claims are upper bounds only."""
        return "the claim is not said to be tight, and the subject declares no witness"

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

    def finding(self) -> str:
        """Return what was claimed and what was seen."""
        vector = self.sizes.ledger.richest()
        return (
            f"E|C(x) - x|^2 = {self.sizes.means[vector]:.6g} |x|^2 is said to be reached; rejected at level "
            f"{self.level:.1e} after {self.sizes.counts.sum()} draws; the mean at this vector is "
            f"{self.sizes.ratio(vector):.4g} of it"
        )

    def power(self) -> Power:
        """Return what would have been found."""
        return Power()
