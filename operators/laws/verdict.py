"""What one law says about one subject, and what all laws say together."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np


class Outcome(enum.Enum):
    """PASS and FAIL are judgements; NOT_APPLICABLE says why there is none; NOTE is a remark on a pass."""

    PASS = "pass"
    FAIL = "FAIL"
    NOT_APPLICABLE = "not applicable"
    NOTE = "note"


@dataclass(frozen=True, eq=False)
class Verdict:
    """One law's outcome.

    law : its name.  text : the reason, the remark or the violation, in one sentence.
    example : name of the vector on which it failed; x : that vector, shrunk, float32, shape (d,).
    """

    law: str
    outcome: Outcome
    text: str = ""
    example: str = ""
    x: np.ndarray | None = None

    def __str__(self) -> str:
        at = f" [at {self.example}, x = {_short(self.x)}]" if self.x is not None else ""
        return f"{self.outcome.value:>14}  {self.law}" + (f": {self.text}" if self.text else "") + at


@dataclass(frozen=True, eq=False)
class Report:
    """Every law's verdict on one subject.

    subject : its description.  seed : replays the whole check.  reproduce : one line of Python doing so.
    verdicts : one for each law that was tried.
    """

    subject: str
    seed: int
    verdicts: tuple[Verdict, ...]
    reproduce: str

    @property
    def ok(self) -> bool:
        """Whether no law failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Verdict, ...]:
        """The laws that failed."""
        return tuple(v for v in self.verdicts if v.outcome is Outcome.FAIL)

    def __getitem__(self, law: str) -> Verdict:
        """The verdict of one law.  Raises KeyError for a law that was not run."""
        for verdict in self.verdicts:
            if verdict.law == law:
                return verdict
        raise KeyError(f"no verdict of {law!r}; laws run: {', '.join(v.law for v in self.verdicts)}")

    def __str__(self) -> str:
        counts = {outcome: sum(v.outcome is outcome for v in self.verdicts) for outcome in Outcome}
        head = f"{self.subject}: {'ok' if self.ok else 'FAILS'} (" + ", ".join(
            f"{n} {outcome.value.lower()}" for outcome, n in counts.items() if n
        )
        shown = [str(v) for v in self.verdicts if v.outcome is not Outcome.PASS or v.text]
        return "\n".join([head + ")", *shown, f"reproduce: {self.reproduce}"])


def _short(x: np.ndarray, limit: int = 8) -> str:
    values = ", ".join(f"{v:.9g}" for v in x[:limit].tolist())
    return f"[{values}]" if x.size <= limit else f"[{values}, ...] (d = {x.size})"
