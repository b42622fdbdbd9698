"""What was sent, what is foretold of one choice, and the prediction that a user gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bounds.estimate import Estimate
from bounds.frame import frame

from ..records import Answer, Answered, plain
from .codec import Codec
from .constants import LEFT_OUT
from .planned_run import PlannedRun
from .rhythm import Rhythm

if TYPE_CHECKING:
    from pandas import DataFrame

QUANTITIES = ("seconds_per_step", "progress_per_step", "time_ratio")


def rhythm_fields(rhythm: Rhythm) -> dict[str, Any]:
    """Return what records of a choice say of when it averages.

    Parameters
    ----------
    rhythm : Rhythm
        Of the choice.
    """
    return vars(rhythm) | {"overlap": rhythm.in_flight > 0}


@dataclass(frozen=True)
class Sent:
    """One operator, as a pilot has measured it.

    Parameters
    ----------
    operator : str
        Its specification.
    omega : Estimate
        Relative squared error of a message.
    bits : float, bits
        A coordinate.
    residual : float or None
        Largest norm of error feedback's residual over that of a gradient; None where it was not tried.
    codec : Codec
        Seconds a coordinate.
    """

    operator: str
    omega: Estimate
    bits: float
    residual: float | None
    codec: Codec


@dataclass(frozen=True)
class Prediction(Answered):
    """Seconds and progress of a step, and the time to a loss over that of synchronous uncompressed training.

    Parameters
    ----------
    seconds_per_step : Estimate
        Of one local step with its share of an averaging, seconds.
    progress_per_step : Estimate or None
        Expected fall of the loss over that of a synchronous uncompressed step; None where noise hides it.
    time_ratio : Estimate or None
        Seconds to the same fall of the loss over those of synchronous uncompressed training; below 1 is faster.
    limits : {"compute", "stragglers", "coding", "latency", "bandwidth", "noise"}
        What takes most of a step; "noise" where most of what a gradient would gain is lost to noise and errors.
    unknown : tuple of str
        What the pilot does not tell, in sentences; an interval holds what is in none of them.
    operator : str
        Its specification; "" without compression.
    exchange : str
        How messages travel.
    tau : int
        Local steps between two averages.
    overlap : bool
        Whether averages travel while the workers go on.
    parts : int
        Fragments of the model, sent one after the other.
    in_flight : int
        Steps made while a message travels.
    buckets : int
        Messages of a gradient, all but the last sent during the backward pass.
    certified_time_ratio : float or None
        The worst case beside the prediction: the same ratio as a theorem guarantees it for strongly convex problems of
        condition number 100; None where there is none.
    certified : str
        The theorem and its setting in a sentence, or why there is none.
    assumed : tuple of str, optional
        What the caller did not state, with the values that were taken.
    """

    seconds_per_step: Estimate
    progress_per_step: Estimate | None
    time_ratio: Estimate | None
    limits: str
    unknown: tuple[str, ...]
    operator: str
    exchange: str
    tau: int
    overlap: bool
    parts: int
    in_flight: int
    buckets: int
    certified_time_ratio: float | None
    certified: str
    assumed: tuple[str, ...] = ()

    def answer(self) -> Answer:
        """Return the predicted time to a loss against synchronous uncompressed training."""
        rhythm = Rhythm(self.tau, self.in_flight, self.parts, self.buckets).in_words().removeprefix(", ")
        way = f"{self.operator or 'binary32'}, {self.exchange}, {rhythm or 'averaging every step'}"
        ratio = self.time_ratio
        if ratio is None:
            verdict = "Time unknown: the noise of the pilot hides the progress; take more moments."
        else:
            faster = f"{1 / ratio.value:.3g} x faster" if ratio.value <= 1 else f"{ratio.value:.3g} x slower"
            verdict = f"{faster} than synchronous uncompressed training ({_ends(ratio)})."
        worst = "" if self.certified_time_ratio is None else f"{self.certified_time_ratio:.3g} x the time, proved"
        facts = {
            "training": way,
            "a step": f"{self.seconds_per_step.value:.4g} s ({_ends(self.seconds_per_step)}), most of it {self.limits}",
            "progress": "unknown"
            if self.progress_per_step is None
            else (f"{self.progress_per_step.value:.4g} of a synchronous step's ({_ends(self.progress_per_step)})"),
            "worst case": worst or "no theorem covers this choice",
        }
        evidence = {
            "status": "predicted from one pilot, not proved",
            "worst case": self.certified,
            "not known": self.unknown,
        }
        return Answer(verdict, facts, left_out=LEFT_OUT, assumed=self.assumed, evidence=evidence)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}

    def to_frame(self) -> DataFrame:
        """Return one row a quantity: value, ends of its interval, level."""
        return frame(
            [
                {
                    "quantity": name,
                    "value": None if estimate is None else estimate.value,
                    "low": None if estimate is None else float(estimate.interval.lo),
                    "high": None if estimate is None else float(estimate.interval.hi),
                    "level": None if estimate is None else estimate.level,
                }
                for name in QUANTITIES
                for estimate in (getattr(self, name),)
            ]
        )


def _ends(estimate: Estimate) -> str:
    low, high = float(estimate.interval.lo), float(estimate.interval.hi)
    return f"{estimate.level:.0%}: {low:.4g} to {high:.4g}"


@dataclass(frozen=True)
class Foretold:
    """What is foretold of one choice; the theorems' worst case is not looked at.

    Parameters
    ----------
    seconds : Estimate
        Of one local step with its share of an averaging, seconds.
    progress : Estimate or None
        Over that of a synchronous uncompressed step; None where noise hides it.
    time_ratio : Estimate or None
        Over synchronous uncompressed training.
    limits : str
        What takes most of a step.
    unknown : tuple of str
        What the pilot does not tell.
    run : PlannedRun
        Seconds of one round, as a function of the cluster.
    """

    seconds: Estimate
    progress: Estimate | None
    time_ratio: Estimate | None
    limits: str
    unknown: tuple[str, ...]
    run: PlannedRun
