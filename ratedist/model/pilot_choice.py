"""One choice of a plan from a pilot, with what the pilot foretells of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from bounds.estimate import Estimate

from ..records import plain
from .ranked import way_text
from .rhythm import Rhythm

ESTIMATES = ("seconds_per_step", "progress_per_step", "time_ratio")


@dataclass(frozen=True)
class PilotChoice:
    """What a pilot foretells of one choice, or why it foretells nothing.

    Parameters
    ----------
    operator : str
        Its specification; "binary32" without compression.
    exchange : str
        "sum", "gather", "two_shot", "node_gather" or "node_two_shot".
    tau : int
        Local steps between two averages.
    overlap : bool
        Whether averages travel while the workers go on.
    feasible : bool
        Whether there is a prediction.
    reason : str
        In words: what limits it, or why there is none.
    seconds_per_step : Estimate or None, optional
        Of one local step with its share of an averaging, seconds.
    progress_per_step : Estimate or None, optional
        Expected fall of the loss over that of a synchronous uncompressed step.
    time_ratio : Estimate or None, optional
        Seconds to the same fall of the loss over those of synchronous uncompressed training; below 1 is faster.
    limits : str, optional
        What takes most of a step.
    relative_cost : float, optional
        Its ``ranked_by`` over the best choice's.
    distinct : bool, optional
        Whether its interval lies above the best choice's, so that it is told apart from it.
    parts : int, optional
        Fragments of the model, sent one after the other.
    in_flight : int, optional
        Steps made while a message travels.
    buckets : int, optional
        Messages of a gradient, all but the last sent during the backward pass.
    fed_back : bool, optional
        Whether messages carry error feedback.
    """

    operator: str
    exchange: str
    tau: int
    overlap: bool
    feasible: bool
    reason: str
    seconds_per_step: Estimate | None = None
    progress_per_step: Estimate | None = None
    time_ratio: Estimate | None = None
    limits: str = ""
    relative_cost: float = math.inf
    distinct: bool = False
    parts: int = 1
    in_flight: int = 0
    buckets: int = 1
    fed_back: bool = False

    @property
    def name(self) -> str:
        """Operator, exchange, local steps, fragments and overlap in words."""
        return self.way + self.rhythm.in_words()

    @property
    def rhythm(self) -> Rhythm:
        """When the workers average."""
        return Rhythm(self.tau, self.in_flight, self.parts, self.buckets)

    @property
    def way(self) -> str:
        """Operator and exchange in words."""
        return way_text(self.operator, self.exchange, self.operator)

    @property
    def ranked_by(self) -> float:
        """The number by which choices are ranked, ``ranking_number`` of the time ratio."""
        return ranking_number(self.time_ratio, fed_back=self.fed_back)

    @property
    def ratio(self) -> float:
        """The predicted time over synchronous training's; infinite where there is no prediction."""
        return math.inf if self.time_ratio is None else self.time_ratio.value

    @property
    def ratio_ends(self) -> tuple[float, float]:
        """The ends of its interval."""
        if self.time_ratio is None:
            return 0.0, math.inf
        return float(self.time_ratio.interval.lo), float(self.time_ratio.interval.hi)

    def row(self) -> dict[str, Any]:
        """Return the fields by their names, of estimates value and ends."""
        row = dict(vars(self))
        for name in ESTIMATES:
            estimate = row.pop(name)
            ends = (None, None, None) if estimate is None else _value_and_ends(estimate)
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
        return row

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {name: plain(value) for name, value in vars(self).items()}


def _value_and_ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, float(estimate.interval.lo), float(estimate.interval.hi)


def ranking_number(time_ratio: Estimate | None, *, fed_back: bool) -> float:
    """Return the value of a prediction; with error feedback its upper end.

    Parameters
    ----------
    time_ratio : Estimate or None
        Predicted time; None without a prediction, which is infinite.
    fed_back : bool
        Whether messages carry error feedback: a short trial does not show whether residuals arrive in time.
    """
    if time_ratio is None:
        return math.inf
    return float(time_ratio.interval.hi) if fed_back else time_ratio.value
