"""What one law says about one subject, and what all laws say together."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import numpy as np

from ..betting.power import Power

OF_FORM = (
    "output-form",
    "zero",
    "no-mutation",
    "kept-output",
    "circumstances",
)  # laws that any function meets, without a claim


SURELY, FOR_FEW = "sure-contraction", "enumeration"
EXACT = (SURELY, "exact-marginals", FOR_FEW)  # laws that judge a claim without statistics


class Outcome(enum.Enum):
    """PASS and FAIL are judgements; NOTE is a remark on a pass; INCONCLUSIVE is one that is owed and could not be
    given: too slow, or too little power; NOT_APPLICABLE says why there is none."""

    PASS = "pass"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_APPLICABLE = "not applicable"
    NOTE = "note"


class About(enum.Enum):
    """What of a claim a finding refutes.

    MEAN is the claimed mean, given the claimed constant: where the constant is wrong, the finding says nothing of the
    mean.  A mean that is refuted without the constant is OTHER.
    """

    OTHER = ""
    CONSTANT = "constant"
    MEAN = "mean, given the constant"


@dataclass(frozen=True, eq=False)
class Verdict:
    """One law's outcome.

    Parameters
    ----------
    law : str
        Its name.
    outcome : Outcome
        Whether the law holds.
    text : str, optional
        The reason, the remark or the violation, in one sentence.
    example : str, optional
        Name of the vector on which it failed.
    x : ndarray or None, optional
        That vector, shrunk, float32, shape (d,).
    power : Power, optional
        What a statistical law would have found.
    domain : str, optional
        The lengths, remainders and circumstances at which vectors were drawn.
    about : About, optional
        What of the claim a violation refutes.
    """

    law: str
    outcome: Outcome
    text: str = ""
    example: str = ""
    x: np.ndarray | None = None
    power: Power = field(default_factory=Power)
    domain: str = ""
    about: About = About.OTHER

    def __str__(self) -> str:
        place = f" [at {self.example}, x = {_short(self.x)}]" if self.x is not None else ""
        return f"{self.outcome.value:>14}  {self.law}" + (f": {self.text}" if self.text else "") + place


@dataclass(frozen=True, eq=False)
class Report:
    """Every law's verdict on one subject.

    Parameters
    ----------
    subject : str
        Its description.
    seed : int
        Replays the whole check.
    verdicts : tuple of Verdict
        One for each law that was tried.
    reproduce : str
        One line of Python doing so.
    accepts : bool, optional
        Whether the caller takes INCONCLUSIVE for an answer.
    claim : str, optional
        The claim that was judged, in words.
    """

    subject: str
    seed: int
    verdicts: tuple[Verdict, ...]
    reproduce: str
    accepts: bool = False
    claim: str = ""

    @property
    def ok(self) -> bool:
        """Whether a claim or a codec was judged, no law failed and none, unless that was accepted, is inconclusive."""
        return not self.failures and (self.accepts or (self.judged and not self.inconclusive))

    @property
    def judged(self) -> bool:
        """Whether any law judged a claim or a codec; a function without a claim has neither."""
        return any(v.outcome is not Outcome.NOT_APPLICABLE for v in self.verdicts if v.law not in OF_FORM)

    @property
    def inconclusive(self) -> tuple[Verdict, ...]:
        """The laws that should have judged and could not."""
        return tuple(v for v in self.verdicts if v.outcome is Outcome.INCONCLUSIVE)

    @property
    def power(self) -> Power:
        """What the statistical laws together would have found with probability 99 %."""
        total = Power()
        for verdict in self.verdicts:
            total = total.joined(verdict.power)
        return total

    @property
    def failures(self) -> tuple[Verdict, ...]:
        """The laws that failed."""
        return tuple(v for v in self.verdicts if v.outcome is Outcome.FAIL)

    def raise_if_failed(self) -> Report:
        """Return the report itself if it is ``ok``, as an assertion in a test of one's own.

        Raises
        ------
        AssertionError
            With the whole report otherwise: the laws, the vector that shows it, the line that replays it.
        """
        if not self.ok:
            raise AssertionError(str(self))
        return self

    def __getitem__(self, law: str) -> Verdict:
        """Return the verdict of one law.

        Raises
        ------
        KeyError
            For a law that was not run.
        """
        for verdict in self.verdicts:
            if verdict.law == law:
                return verdict
        raise KeyError(f"no verdict of {law!r}; laws run: {', '.join(v.law for v in self.verdicts)}")

    @property
    def headline(self) -> str:
        """The subject, its claim, the verdict and how many laws say what."""
        counts = {outcome: sum(v.outcome is outcome for v in self.verdicts) for outcome in Outcome}
        state = "FAILS" if self.failures else "ok" if self.ok else "INCONCLUSIVE" if self.judged else "nothing judged"
        claimed = f", claimed {self.claim}" if self.claim else ""
        counted = ", ".join(f"{n} {outcome.value.lower()}" for outcome, n in counts.items() if n)
        return f"{self.subject}{claimed}: {state} ({counted})"

    @property
    def tried(self) -> str:
        """At which lengths, remainders and circumstances vectors were drawn; empty for none."""
        return "; ".join(v.domain for v in self.verdicts if v.domain)

    @property
    def by_draws_alone(self) -> str:
        """Why no exact law judged a claim; empty where one did, or nothing is claimed.

        Enumeration alone does not count: it judges vectors of a few coordinates.
        """
        exact = [v for v in self.verdicts if v.law in EXACT]
        silent = [v for v in exact if v.outcome is Outcome.NOT_APPLICABLE]
        if not self.claim or any(v not in silent for v in exact if v.law != FOR_FEW):
            return ""
        return "; ".join(f"{v.law}: {v.text}" for v in silent if v.law != SURELY)

    def __str__(self) -> str:
        lines = [self.headline]
        if not self.failures:
            tried = f"tried: {self.tried}" * bool(self.tried)
            power_and_domain = (
                "; ".join(part for part in (str(self.power), tried) if part) or "no statistical law judged"
            )
            lines[0] = f"{self.headline[:-1]}; {power_and_domain})"
        if self.by_draws_alone:
            lines.append(f"not judged exactly, by draws alone: {self.by_draws_alone}")
        shown = [str(v) for v in self.verdicts if _worth_showing(v)]
        return "\n".join([*lines, *shown, *self.not_applicable, f"reproduce: {self.reproduce}"])

    @property
    def not_applicable(self) -> list[str]:
        """Laws that are not applicable, one line a reason."""
        reasons: dict[str, list[str]] = {}
        for verdict in self.verdicts:
            if verdict.outcome is Outcome.NOT_APPLICABLE:
                reasons.setdefault(verdict.text, []).append(verdict.law)
        return [f"not applicable  {', '.join(laws)}: {reason}" for reason, laws in reasons.items()]


def _worth_showing(verdict: Verdict) -> bool:
    return verdict.outcome is not Outcome.NOT_APPLICABLE and (verdict.outcome is not Outcome.PASS or bool(verdict.text))


def _short(x: np.ndarray, limit: int = 8) -> str:
    values = ", ".join(f"{v:.9g}" for v in x[:limit].tolist())
    return f"[{values}]" if x.size <= limit else f"[{values}, ...] (d = {x.size})"
