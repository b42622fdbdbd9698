"""Seconds per local step of periodic averaging: the slowest worker's computing plus a share of one averaging."""

from __future__ import annotations

from dataclasses import dataclass

from .checks import nonnegative, positive_integer
from .communication import Communication
from .law import Law, StepTime


@dataclass(frozen=True)
class RuntimeModel:
    """The runtime of local-update SGD: c(tau) = E max over workers of the mean of tau steps + E[D]/tau.

    step : law of one local step's time (any StepTime).
    delay_s : fixed time of one averaging in seconds, or a Law of it, of which only the mean enters.
    communication : adds the time of moving the message; needs ``bits`` in every question.
    m : number of workers, unless given in the question.
    By renewal a run of T seconds makes about T/c(tau) local steps.  Raises ValueError for a negative delay.
    """

    step: StepTime
    delay_s: float | Law = 0.0
    communication: Communication | None = None
    m: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.delay_s, Law):
            nonnegative("delay_s", self.delay_s)
        if self.m is not None:
            positive_integer("m", self.m)

    def seconds_per_averaging(self, *, m: int | None = None, bits: float | None = None) -> float:
        """Mean time of one averaging, in seconds; bits is the length of one worker's message.

        Raises ValueError if a communication cost is part of the model and bits is missing.
        """
        delay_s = self.delay_s.mean_s if isinstance(self.delay_s, Law) else float(self.delay_s)
        if self.communication is None:
            return delay_s
        if bits is None:
            raise ValueError("this model has a communication cost: give bits, the length of one worker's message")
        return delay_s + self.communication.seconds(m=self._workers(m), bits=bits)

    def seconds_per_iteration(self, *, tau: int, m: int | None = None, bits: float | None = None) -> float:
        """Mean time of one local step, its share of the averaging included, in seconds.

        tau : local steps between averagings.  m : workers (default: the model's).  bits : length of one
        worker's message, needed only with a communication cost.  Raises ValueError for tau < 1 or m < 1.
        """
        tau = positive_integer("tau", tau)
        compute_s = self.step.expected_max(m=self._workers(m), tau=tau)
        return compute_s + self.seconds_per_averaging(m=m, bits=bits) / tau

    def _workers(self, m: int | None) -> int:
        if m is None:
            m = self.m
        if m is None:
            raise ValueError("the number of workers is open: give m here or to RuntimeModel")
        return positive_integer("m", m)
