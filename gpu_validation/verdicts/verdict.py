"""The verdict that follows from an interval and a bound, one function a side."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..records.storage import plain, write_atomically
from .intervals import NO_LARGEST, Interval

MARGIN = 0.10  # of the bound: an interval that reaches no further shows an equality


def upper_verdict(interval: Interval, bound: float, slack: float = 0.0) -> Verdict:
    """Judge whether the quantity stays below the bound.

    Parameters
    ----------
    interval : Interval
        The interval of the measured number.
    bound : float
        What the theorem says, in the unit of the interval.
    slack : float, optional
        How far rounding may carry the number beyond.
    """
    if interval[0] > bound + slack:
        return Verdict.VIOLATED
    return Verdict.HOLDS if interval[1] <= bound + slack else Verdict.INCONCLUSIVE


def lower_verdict(interval: Interval, bound_at_ends: Interval) -> Verdict:
    """Judge whether the quantity stays above a bound that itself lies in an interval.

    Parameters
    ----------
    interval : Interval
        The interval of the measured number.
    bound_at_ends : Interval
        The interval in which the bound lies.
    """
    if interval[1] < bound_at_ends[0]:
        return Verdict.VIOLATED
    return Verdict.HOLDS if interval[0] >= bound_at_ends[1] else Verdict.INCONCLUSIVE


def tight_verdict(interval: Interval, bound: float, margin: float) -> Verdict:
    """Judge whether the quantity equals the bound, up to ``margin``.  A wider interval shows neither.

    Parameters
    ----------
    interval : Interval
        The interval of the measured number.
    bound : float
        What the theorem says, in the unit of the interval.
    margin : float
        What still counts as equal.
    """
    if not interval[0] <= bound <= interval[1]:
        return Verdict.VIOLATED
    return Verdict.HOLDS if bound - margin <= interval[0] and interval[1] <= bound + margin else Verdict.INCONCLUSIVE


def wide(margin: float) -> str:
    """Say why an equality is INCONCLUSIVE.

    Parameters
    ----------
    margin : float
        What still counts as equal.
    """
    return f"not contradicted, not shown: the interval reaches further than {margin:.3g} from the value"


def open_above(interval: Interval, verdict: Verdict) -> str:
    """Return why an upper bound is INCONCLUSIVE whose interval has no upper end; empty for other rows.

    Parameters
    ----------
    interval : Interval
        The interval of the measured number.
    verdict : Verdict
        What the row says.
    """
    return NO_LARGEST if verdict is Verdict.INCONCLUSIVE and interval[1] == math.inf else ""


def exact_verdict(holds: bool) -> Verdict:
    """Return exact comparisons know only two answers.

    Parameters
    ----------
    holds : bool
        Whether the statement is true.
    """
    return Verdict.HOLDS if holds else Verdict.VIOLATED


class Verdict(enum.StrEnum):
    """What a comparison says.  The last two never count as HOLDS."""

    HOLDS = "HOLDS"
    VIOLATED = "VIOLATED"
    INCONCLUSIVE = "INCONCLUSIVE"
    OUT_OF_SCOPE = "OUT_OF_SCOPE"


class Evidence(enum.StrEnum):
    """What a verdict is worth.

    INFORMATIVE: a bound wrong by a factor of two would have been noticed.  POWERLESS: it would not.
    STRUCTURAL: measured and bound come from the same code, so that they agree by construction; or both are 0.
    """

    INFORMATIVE = "informative"
    STRUCTURAL = "structural"
    POWERLESS = "without power"


@dataclass(frozen=True)
class Comparison:
    """One measured number against one bound.

    Parameters
    ----------
    operator : str
        The compressor that ran.
    quantity : str
        What was measured.
    measured : float
        Point estimate, in the unit of the row.
    interval : tuple of float
        Ends around the measurement, or the number twice if exact.  The end that would accuse (the lower one of an upper
        bound, the upper one of a lower bound, both of an equality) misses with the run's level for this row, the other
        one with 5 %.
    bound : float or None
        What the theorem says, in the same unit; None where nothing is claimed.
    side : str
        "upper", "lower" or "tight".
    verdict : Verdict
        What interval and bound together show.
    reason : str, optional
        Why the row decides nothing, if so.
    theorem : str, optional
        The bound's name.
    workload : str, optional
        The problem that ran.
    tau : int or None, optional
        The local steps that ran.
    n : int, optional
        How often.
    decides : bool, optional
        Whether a VIOLATED counts.
    unit : str, optional
        Its unit.
    structural : bool, optional
        Whether both numbers come from the same code.
    accuses_at : float or None, optional
        The value of a lower bound at the end of its own interval that can accuse; None if it is ``bound``.
    slack : float, optional
        Factor that the interval may lie beyond the bound before the row is VIOLATED; inf if it never is.
    facts : dict of str to float, optional
        Numbers that the row is about, such as the target or the tau of a baseline, for pages and analyses.

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

    @property
    def noticed(self) -> tuple[float, float] | None:
        """Two factors; times one under the first or over the second, the bound would have been VIOLATED.

        None where there is no verdict, or no factor changes the bound; (0, inf) where no factor would have been
        noticed.
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
        """What the verdict is worth, None where there is none."""
        if self.verdict is Verdict.OUT_OF_SCOPE:
            return None
        if self.structural or (self.bound == 0 and self.interval == (0.0, 0.0)):
            return Evidence.STRUCTURAL
        if self.noticed is None:  # a bound of 0, or a fact: whatever differs is noticed
            return Evidence.INFORMATIVE if self.interval[0] == self.interval[1] else Evidence.POWERLESS
        below, above = self.noticed
        return Evidence.INFORMATIVE if below >= 0.5 or above <= 2 else Evidence.POWERLESS

    def line(self) -> dict[str, Any]:
        """Return the fields and what follows from them, as a file keeps them."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return fields | {"looseness": self.looseness, "noticed": self.noticed, "evidence": self.evidence}

    @property
    def looseness(self) -> float | None:
        """How far the bound is from the measurement; 1 is tight, None if undefined."""
        if self.bound is None or not self.measured or not self.bound:
            return None
        return self.bound / self.measured if self.side == "upper" else self.measured / self.bound


def write_comparisons(path: Path, comparisons: Iterable[Comparison]) -> None:
    """Write one line a comparison, with what follows from it; the file is there whole or not at all.

    Parameters
    ----------
    path : Path
        Where the lines go; replaced whole.
    comparisons : iterable of Comparison
        What is written.
    """
    lines = (json.dumps(plain(comparison.line()), allow_nan=False) for comparison in comparisons)
    write_atomically(path, "".join(line + "\n" for line in lines))


def violation(c: Comparison) -> str:
    """Return one VIOLATED row in words: the operator, the claim and the measurement.

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
