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


class Outcome(enum.Enum):
    """PASS and FAIL are judgements; NOTE is a remark on a pass; INCONCLUSIVE is one that is owed and could not be
    given: too slow, or too little power; NOT_APPLICABLE says why there is none."""

    PASS = "pass"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_APPLICABLE = "not applicable"
    NOTE = "note"


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
    """

    law: str
    outcome: Outcome
    text: str = ""
    example: str = ""
    x: np.ndarray | None = None
    power: Power = field(default_factory=Power)
    domain: str = ""

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
    """

    subject: str
    seed: int
    verdicts: tuple[Verdict, ...]
    reproduce: str
    accepts: bool = False

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

    def __str__(self) -> str:
        counts = {outcome: sum(v.outcome is outcome for v in self.verdicts) for outcome in Outcome}
        state = "FAILS" if self.failures else "ok" if self.ok else "INCONCLUSIVE" if self.judged else "nothing judged"
        parts = [", ".join(f"{n} {outcome.value.lower()}" for outcome, n in counts.items() if n)]
        if not self.failures:
            tried = [f"tried: {v.domain}" for v in self.verdicts if v.domain]
            parts += [str(self.power)] if str(self.power) else [] if tried else ["no statistical law judged"]
            parts += tried
        head = f"{self.subject}: {state} ({'; '.join(parts)}"
        shown = [str(v) for v in self.verdicts if _worth_showing(v)]
        return "\n".join([head + ")", *shown, *self._silent(), f"reproduce: {self.reproduce}"])

    def _silent(self) -> list[str]:
        """Return the laws that have nothing to say, one line a reason."""
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
