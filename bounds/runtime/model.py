"""Seconds per local step of periodic averaging: the slowest worker's computing plus a share of one averaging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .checks import nonnegative, positive_integer
from .communication import Coding, Communication, TwoShot
from .law import Law, StepTime

Bits = float | Sequence[float] | None  # of one worker's message, or of every worker's if they differ


@dataclass(frozen=True)
class RuntimeModel:
    """The runtime of local-update SGD: c(tau) = E max over workers of the mean of tau steps + E[D]/tau.

    Parameters
    ----------
    step : StepTime
        Law of one local step's time (any StepTime).
    delay_s : float or Law, seconds, optional
        Fixed time of one averaging in seconds, or a Law of it, of which only the mean enters.
    communication : Communication or None, optional
        Adds the time of moving the message; needs ``bits`` in every question.
    m : int or None, optional
        Number of workers, unless given in the question.
    coding : Coding or None, optional
        Adds the time of encoding and decoding the messages, in two shots where ``communication`` is.

    Raises
    ------
    ValueError
        For a negative delay.
    TypeError
        For a step that is no StepTime.

    Notes
    -----
    A long run of T seconds makes about T/c(tau) local steps; ``rounds_by`` encloses how many rounds end.
    """

    step: StepTime
    delay_s: float | Law = 0.0
    communication: Communication | None = None
    m: int | None = None
    coding: Coding | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.step, StepTime):
            raise TypeError(f"step must be a law of step times; got {self.step!r}: write Constant({self.step!r})")
        if not isinstance(self.delay_s, Law):
            nonnegative("delay_s", self.delay_s)
        if self.m is not None:
            positive_integer("m", self.m)

    def seconds_per_averaging(self, *, m: int | None = None, bits: Bits = None) -> float:
        """Return mean time of one averaging, in seconds; bits is the length of one worker's message, or a list of all
        m.

        Parameters
        ----------
        m : int or None, optional
            Number of workers, unless the model has it.
        bits : Bits, bits, optional
            Length of one message; needed where communication has a cost.

        Raises
        ------
        ValueError
            If a communication cost is part of the model and bits is missing.
        """
        delay_s = self.delay_s.mean_s if isinstance(self.delay_s, Law) else float(self.delay_s)
        if self.coding is not None:
            delay_s += self.coding_s(m=m)
        if self.communication is None:
            return delay_s
        if bits is None:
            raise ValueError("this model has a communication cost: give bits, the length of one worker's message")
        return delay_s + self.communication.seconds(m=self.workers(m), bits=bits)

    def coding_s(self, *, m: int | None = None) -> float:
        """Return seconds that every worker computes for the messages of one averaging.

        Parameters
        ----------
        m : int or None, optional
            Number of workers, unless the model has it.
        """
        if self.coding is None:
            return 0.0
        return self.coding.seconds(m=self.workers(m), two_shot=isinstance(self.communication, TwoShot))

    def seconds_per_iteration(self, *, tau: int, m: int | None = None, bits: Bits = None) -> float:
        """Return mean time of one local step, its share of the averaging included, in seconds.

        Parameters
        ----------
        tau : int
            Local steps between averagings.
        m : int or None, optional
            Workers (default: the model's).
        bits : Bits, bits, optional
            Length of one worker's message, needed only with a communication cost.

        Raises
        ------
        ValueError
            For tau < 1 or m < 1.
        """
        tau = positive_integer("tau", tau)
        compute_s = self.step.expected_max(m=self.workers(m), tau=tau)
        return compute_s + self.seconds_per_averaging(m=m, bits=bits) / tau

    def seconds_per_overlapped_step(
        self, *, backward_fraction: float, m: int | None = None, bits: Bits = None
    ) -> float:
        """Return mean time of one fully synchronous step that communicates during the backward pass, in seconds.

        Parameters
        ----------
        backward_fraction : float
            Share phi of a step spent in the backward pass, 0 < phi <= 1.
        m : int or None, optional
            Number of workers, unless the model has it.
        bits : Bits, bits, optional
            Length of one worker's gradient message.  With M the slowest worker's step time and D the mean communication
            time this is E[(1 - phi) M + max(phi M, D)]: communication starts when the slowest worker begins its
            backward pass.  Coding is hidden by nothing.
        """
        if not 0 < backward_fraction <= 1:
            raise ValueError(f"backward_fraction must satisfy 0 < phi <= 1; got {backward_fraction}")
        workers = self.workers(m)
        coding_s = self.coding_s(m=workers)
        communication_s = self.seconds_per_averaging(m=workers, bits=bits) - coding_s
        longer_s = self.step.expected_max_above(communication_s / backward_fraction, m=workers)
        return (1 - backward_fraction) * self.step.expected_max(m=workers) + backward_fraction * longer_s + coding_s

    def speed_up(self, *, tau: int, m: int | None = None, bits: Bits = None) -> float:
        """Return c(1)/c(tau): how many times faster a local step is than a fully synchronous one without overlap.

        Parameters
        ----------
        tau : int
            Local steps between two averagings.
        m : int or None, optional
            Number of workers, unless the model has it.
        bits : Bits, bits, optional
            Length of one message; needed where communication has a cost.
        """
        synchronous_s = self.seconds_per_iteration(tau=1, m=m, bits=bits)
        return synchronous_s / self.seconds_per_iteration(tau=tau, m=m, bits=bits)

    def speed_up_over_overlap(
        self,
        *,
        tau: int,
        backward_fraction: float,
        m: int | None = None,
        bits: Bits = None,
        gradient_bits: Bits = None,
    ) -> float:
        """Return the same against synchronous steps that hide communication behind the backward pass: never larger.

        Parameters
        ----------
        tau : int
            Local steps between two averagings.
        backward_fraction : float
            Share of a step that the backward pass takes, which communication may overlap.
        m : int or None, optional
            Number of workers, unless the model has it.
        bits : Bits, bits, optional
            Of the averaged model's message.
        gradient_bits : Bits, bits, optional
            Of the gradient's (default: the same).
        """
        gradient_bits = bits if gradient_bits is None else gradient_bits
        baseline_s = self.seconds_per_overlapped_step(backward_fraction=backward_fraction, m=m, bits=gradient_bits)
        return baseline_s / self.seconds_per_iteration(tau=tau, m=m, bits=bits)

    def workers(self, m: int | None = None) -> int:
        """Return the number of workers: m, or else the model's.

        Parameters
        ----------
        m : int or None, optional
            Number of workers, unless the model has it.

        Raises
        ------
        ValueError
            If neither is given.
        """
        if m is None:
            m = self.m
        if m is None:
            raise ValueError("the number of workers is open: give m here or to RuntimeModel")
        return positive_integer("m", m)
