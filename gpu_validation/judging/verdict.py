"""Verdicts from an interval and a bound: one function per side."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..records.storage import plain, revive, write_atomically
from .intervals import NO_LARGEST, Interval

MARGIN = 0.10  # relative to the bound: an interval within it confirms an equality


def upper_verdict(interval: Interval, bound: float, slack: float = 0.0) -> Verdict:
    """Return the verdict on the claim that a quantity is at most ``bound``.

    Parameters
    ----------
    interval : Interval
        Interval of the measured number.
    bound : float
        Upper bound, in the unit of the interval.
    slack : float, optional
        Rounding error to allow, >= 0.
    """
    if interval[0] > bound + slack:
        return Verdict.VIOLATED
    return Verdict.HOLDS if interval[1] <= bound + slack else Verdict.INCONCLUSIVE


def lower_verdict(interval: Interval, bound_at_ends: Interval) -> Verdict:
    """Return the verdict on the claim that a quantity is at least a bound that itself lies in an interval.

    Parameters
    ----------
    interval : Interval
        Interval of the measured number.
    bound_at_ends : Interval
        Interval of the bound.
    """
    if interval[1] < bound_at_ends[0]:
        return Verdict.VIOLATED
    return Verdict.HOLDS if interval[0] >= bound_at_ends[1] else Verdict.INCONCLUSIVE


def tight_verdict(interval: Interval, bound: float, margin: float) -> Verdict:
    """Return the verdict on the claim that a quantity equals ``bound`` up to ``margin``.

    An interval that extends further is INCONCLUSIVE.

    Parameters
    ----------
    interval : Interval
        Interval of the measured number.
    bound : float
        Predicted value, in the unit of the interval.
    margin : float
        Largest difference that counts as equal.
    """
    if not interval[0] <= bound <= interval[1]:
        return Verdict.VIOLATED
    return Verdict.HOLDS if bound - margin <= interval[0] and interval[1] <= bound + margin else Verdict.INCONCLUSIVE


def wide(margin: float) -> str:
    """Return the reason of an INCONCLUSIVE equality.

    Parameters
    ----------
    margin : float
        Largest difference that counts as equal.
    """
    return f"not contradicted, not shown: the interval extends more than {margin:.3g} from the value"


def open_above(interval: Interval, verdict: Verdict) -> str:
    """Return the reason of an INCONCLUSIVE upper bound whose interval has no upper end; empty for other rows.

    Parameters
    ----------
    interval : Interval
        Interval of the measured number.
    verdict : Verdict
        Verdict of the row.
    """
    return NO_LARGEST if verdict is Verdict.INCONCLUSIVE and interval[1] == math.inf else ""


def exact_verdict(holds: bool) -> Verdict:
    """Return the verdict of an exact comparison: HOLDS or VIOLATED.

    Parameters
    ----------
    holds : bool
        Whether the claim is true.
    """
    return Verdict.HOLDS if holds else Verdict.VIOLATED


class Verdict(enum.StrEnum):
    """Result of a comparison; the last two never count as HOLDS."""

    HOLDS = "HOLDS"
    VIOLATED = "VIOLATED"
    INCONCLUSIVE = "INCONCLUSIVE"
    OUT_OF_SCOPE = "OUT_OF_SCOPE"


class Evidence(enum.StrEnum):
    """Power of a verdict, in the words of ``Outcome``.

    INFORMATIVE: the row would be VIOLATED at half or twice the bound.  POWERLESS: it would not.
    STRUCTURAL: measured number and bound come from the same code and agree by construction, or both are 0.
    """

    INFORMATIVE = "evidence"
    STRUCTURAL = "same code"
    POWERLESS = "no power"


class Outcome(enum.StrEnum):
    """Verdict and evidence of a comparison in one word, in the order in which tables and pictures show them."""

    EVIDENCE = "evidence"
    SAME_CODE = "same code"
    NO_POWER = "no power"
    INCONCLUSIVE = "inconclusive"
    NOT_COVERED = "not covered"
    VIOLATED = "VIOLATED"


HELD = {
    Evidence.INFORMATIVE: Outcome.EVIDENCE,
    Evidence.STRUCTURAL: Outcome.SAME_CODE,
    Evidence.POWERLESS: Outcome.NO_POWER,
}


@dataclass(frozen=True)
class Comparison:
    """One measured number and one bound.

    Parameters
    ----------
    operator : str
        The compressor.
    quantity : str
        The measured quantity.
    measured : float
        Point estimate, in the unit of the row.
    interval : tuple of float
        Ends around the measurement, or the number twice if exact.  The end that can reject the bound misses with the
        run's level for this row: the lower end for an upper bound, the upper end for a lower bound, both for an
        equality.  The other end misses with 5 %.
    bound : float or None
        Predicted number, in the same unit; None without a claim.
    side : str
        "upper", "lower" or "tight".
    verdict : Verdict
        Result for this interval and bound.
    reason : str, optional
        Reason of a row without HOLDS or VIOLATED.
    theorem : str, optional
        Name of the bound.
    workload : str, optional
        The problem.
    tau : int or None, optional
        Local steps per round.
    n : int, optional
        Number of draws.
    decides : bool, optional
        Whether a VIOLATED counts.
    unit : str, optional
        Unit of the numbers.
    structural : bool, optional
        Whether both numbers come from the same code.
    accuses_at : float or None, optional
        Value of a lower bound at the end of its own interval that can reject; None if it is ``bound``.
    slack : float, optional
        Factor by which the interval may exceed the bound before the row is VIOLATED; inf if it never is.
    facts : dict of str to float, optional
        Further numbers, such as the target or the tau of a baseline, for pages and analyses.
    unmeasured : bool, optional
        Whether the row stands for a number that the records do not give.

    Attributes
    ----------
    looseness : float or None
        Bound / measured (upper) or measured / bound (lower).
    """

    operator: str
    quantity: str
    measured: float
    interval: tuple[float, float]
    bound: float | None
    side: str
    verdict: Verdict
    reason: str = ""
    theorem: str = ""
    workload: str = ""
    tau: int | None = None
    n: int = 1
    decides: bool = True
    unit: str = ""
    structural: bool = False
    accuses_at: float | None = None
    slack: float = 1.0
    facts: dict[str, float] = field(default_factory=dict, hash=False)
    unmeasured: bool = False

    @property
    def noticed(self) -> tuple[float, float] | None:
        """Two factors; below the first or above the second times the bound, the row would be VIOLATED.

        None without a verdict, or if no factor changes the bound; (0, inf) if no factor would be noticed.
        """
        if self.bound is None or not self.bound > 0 or self.verdict is Verdict.OUT_OF_SCOPE:
            return None
        bound = self.bound if self.accuses_at is None else self.accuses_at
        if not bound > 0:
            return 0.0, math.inf
        below = max(0.0, self.interval[0] / bound / self.slack) if self.side != "lower" else 0.0
        above = max(0.0, self.interval[1] / bound * self.slack) if self.side != "upper" else math.inf
        return below, above

    @property
    def evidence(self) -> Evidence | None:
        """Power of the verdict; None without one."""
        if self.verdict is Verdict.OUT_OF_SCOPE:
            return None
        if self.structural or (self.bound == 0 and self.interval == (0.0, 0.0)):
            return Evidence.STRUCTURAL
        if self.noticed is None:  # a bound of 0, or a fact: any difference is noticed
            return Evidence.INFORMATIVE if self.interval[0] == self.interval[1] else Evidence.POWERLESS
        below, above = self.noticed
        return Evidence.INFORMATIVE if below >= 0.5 or above <= 2 else Evidence.POWERLESS

    @property
    def outcome(self) -> Outcome:
        """Verdict and evidence in one word; a HOLDS counts as evidence only if the row is informative."""
        if self.verdict is Verdict.HOLDS:
            return Outcome.NO_POWER if self.evidence is None else HELD[self.evidence]
        if self.verdict is Verdict.VIOLATED:
            return Outcome.VIOLATED
        return Outcome.INCONCLUSIVE if self.verdict is Verdict.INCONCLUSIVE else Outcome.NOT_COVERED

    def line(self) -> dict[str, Any]:
        """Return the fields and derived numbers as a record."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return fields | {"looseness": self.looseness, "noticed": self.noticed, "evidence": self.evidence}

    @property
    def looseness(self) -> float | None:
        """Factor between bound and measurement; 1 is tight, None if undefined."""
        if self.bound is None or not self.measured or not self.bound:
            return None
        return self.bound / self.measured if self.side == "upper" else self.measured / self.bound


def write_comparisons(path: Path, comparisons: Iterable[Comparison]) -> None:
    """Write one line per comparison atomically.

    Parameters
    ----------
    path : Path
        File to replace.
    comparisons : iterable of Comparison
        Rows to write.
    """
    lines = (json.dumps(plain(comparison.line()), allow_nan=False) for comparison in comparisons)
    write_atomically(path, "".join(line + "\n" for line in lines))


def read_comparisons(path: Path) -> list[Comparison]:
    """Return the comparisons of a file that ``write_comparisons`` wrote; lines without a verdict are skipped.

    Parameters
    ----------
    path : Path
        One JSON object per line.
    """
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [revive(Comparison, line) for line in lines if "verdict" in line]
    return [replace(row, verdict=Verdict(row.verdict)) for row in rows]


def violation(c: Comparison) -> str:
    """Describe a VIOLATED row: operator, claim and measurement.

    Parameters
    ----------
    c : Comparison
        A row that is VIOLATED.
    """
    where = (f" on {c.workload}" if c.workload else "") + ("" if c.tau is None else f", tau = {c.tau}")
    bound = math.nan if c.bound is None else c.bound
    return (
        f"{c.operator}{where} violates its {c.theorem or 'bound'}: {c.quantity} measured {c.measured:.6g} "
        f"[{c.interval[0]:.6g}, {c.interval[1]:.6g}], bound {bound:.6g}"
    )
