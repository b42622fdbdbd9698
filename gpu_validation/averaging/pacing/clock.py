"""Clocks of a run: the wall clock, or a clock that a runtime model advances."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bounds.runtime import Links, PersistentStragglers, RuntimeModel, TwoShot
from bounds.runtime.law import Law, StepTime
from operators import Key
from operators.random import philox_key


@dataclass(frozen=True)
class Event:
    """End of one averaging.

    Parameters
    ----------
    seconds : float, seconds
        Time since the start of the run.
    steps : int
        Local steps of each rank since the start.
    bits : int, bits
        Length of the messages of all ranks in this averaging.
    """

    seconds: float
    steps: int
    bits: int


@dataclass(frozen=True)
class InFlight:
    """Timing of a round whose average was in flight.

    Parameters
    ----------
    steps : int
        Local steps between send and merge.
    seconds : float, seconds
        Duration of the exchange; nan if unknown.
    """

    steps: int
    seconds: float


@dataclass(frozen=True)
class Synchronisation:
    """A finished synchronisation, as clocks see it.

    Parameters
    ----------
    steps : int
        Local steps before it.
    bits : sequence of int, bits
        Lengths of the messages of all ranks.
    participants : sequence of int
        Ranks whose models count.
    mean_bits : sequence of int, bits
        Lengths of the owners' messages in two shots.
    flight : InFlight or None
        Overlap with local steps; None if all ranks waited.
    coding_s : float or None, seconds, optional
        Coding time of every rank; None takes that of the clock's model.
    exchange : str, optional
        "sum", "gather" or "two_shot".
    """

    steps: int
    bits: Sequence[int]
    participants: Sequence[int]
    mean_bits: Sequence[int]
    flight: InFlight | None
    coding_s: float | None = None
    exchange: str = "sum"


class Clock(ABC):
    """Measures seconds since the start and records the averagings in ``events``."""

    max_events: ClassVar[int | None] = None  # the latest averagings that ``events`` keeps; None keeps all

    def __init__(self) -> None:
        self.events: list[Event] = []

    @abstractmethod
    def seconds(self) -> float:
        """Return the seconds since the start of the run."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs, as plain values."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of ``state_dict``.

        Parameters
        ----------
        state : mapping
            Result of ``state_dict``.
        """

    def advance_round(
        self,
        steps: int,
        bits: Sequence[int],
        participants: Sequence[int],
        mean_bits: Sequence[int] = (),
        flight: InFlight | None = None,
        coding_s: float | None = None,
        exchange: str = "sum",
    ) -> None:
        """Record the end of an averaging.

        Parameters
        ----------
        steps : int
            Local steps of the round.
        bits : sequence of int, bits
            Lengths of the messages of all ranks.
        participants : sequence of int
            Ranks whose models count.
        mean_bits : sequence of int, bits, optional
            Lengths of the owners' messages in two shots.
        flight : InFlight or None, optional
            Overlap with local steps; None if all ranks waited.
        coding_s : float or None, seconds, optional
            Time of encoding and decoding for a simulated clock; None takes that of its model.
        exchange : str, optional
            "sum", "gather" or "two_shot".
        """
        before = self.events[-1].steps if self.events else 0
        self._pass(Synchronisation(steps, bits, participants, mean_bits, flight, coding_s, exchange))
        self.events.append(Event(self.seconds(), before + steps, sum(bits) + sum(mean_bits)))
        if self.max_events is not None:
            del self.events[: -self.max_events]

    def _pass(self, sync: Synchronisation) -> None:  # noqa: B027  optional
        """Advance a simulated clock by one round; a real clock advances by itself."""

    def leave_out(self, seconds: float) -> None:  # noqa: B027  optional
        """Exclude the last ``seconds`` from the time of the run; a simulated clock has not advanced.

        Parameters
        ----------
        seconds : float, seconds
            Time to exclude.
        """

    def start_sync(self, steps: int) -> None:  # noqa: B027  optional
        """Mark the end of a round's local steps and the begin of its averaging.

        Parameters
        ----------
        steps : int
            Local steps of the round.
        """

    def end_sync(self) -> None:  # noqa: B027  optional
        """Mark the begin of a round's local steps."""

    def pass_probe(self) -> None:  # noqa: B027  optional
        """Record that every rank has computed one additional gradient."""

    @abstractmethod
    def computed(self, ranks: Sequence[int]) -> list[float]:
        """Return the seconds of the current round's local steps for some ranks; nan if unknown.

        Parameters
        ----------
        ranks : sequence of int
            Ranks to return.
        """

    @abstractmethod
    def averaged(self, ranks: Sequence[int]) -> list[float]:
        """Return the seconds of the last averaging for some ranks, from arrival to departure; nan if unknown.

        Parameters
        ----------
        ranks : sequence of int
            Ranks to return.
        """

    def _record(self) -> list[list[Any]]:
        return [list(astuple(event)) for event in self.events]


class WallClock(Clock):
    """Time of this process.  The local steps of its first round are not timed, because their begin is unknown.

    ``events`` keeps the latest 1024 averagings, so that memory and checkpoints of a long run do not grow.
    """

    max_events: ClassVar[int] = 1024

    def __init__(self) -> None:
        super().__init__()
        self._began = time.monotonic()
        self._left: float | None = None
        self._arrived: float | None = None
        self._computed_s = self._averaged_s = math.nan

    def seconds(self) -> float:
        """Return the seconds since this object was made; a resumed run adds those of its earlier runs."""
        return time.monotonic() - self._began

    def leave_out(self, seconds: float) -> None:
        """Exclude the last ``seconds`` from the run and from its local steps."""
        self._began += seconds
        if self._left is not None:
            self._left += seconds

    def start_sync(self, steps: int) -> None:
        """Stop timing local steps and start timing the averaging."""
        self._arrived = time.monotonic()
        self._computed_s = math.nan if self._left is None else self._arrived - self._left

    def _pass(self, sync: Synchronisation) -> None:
        if sync.flight is not None:
            self._averaged_s = sync.flight.seconds
        elif self._arrived is not None:
            self._averaged_s = time.monotonic() - self._arrived

    def end_sync(self) -> None:
        """Start timing local steps."""
        self._left = time.monotonic()

    def computed(self, ranks: Sequence[int]) -> list[float]:
        """Return this process's seconds, for every rank that it hosts."""
        return [self._computed_s] * len(ranks)

    def averaged(self, ranks: Sequence[int]) -> list[float]:
        """Return this process's seconds, for every rank that it hosts."""
        return [self._averaged_s] * len(ranks)

    def state_dict(self) -> dict[str, Any]:
        """Return the seconds so far and the record."""
        return {"seconds": self.seconds(), "events": self._record()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue counting from a saved state."""
        self._began = time.monotonic() - state["seconds"]
        self._left, self._computed_s, self._averaged_s = None, math.nan, math.nan  # the current round is not timed
        self.events = [Event(*row) for row in state["events"][-self.max_events :]]


class SimulatedClock(Clock):
    """Simulated time: a round takes its slowest participant's local steps plus one averaging.

    Parameters
    ----------
    model : RuntimeModel
        Law of step times, fixed or random delay, communication cost and coding time.
    m : int
        Number of ranks.
    key : Key
        The times of round r depend only on it and on r, so that all ranks' copies agree.

    Raises
    ------
    ValueError
        For a law of step times that cannot be sampled.

    Notes
    -----
    Every step time is drawn independently.  With sampled clients only the participants are waited for.  An average in
    flight starts when the slowest rank has sent.  The next round starts after both the average and all local steps.
    Coding always takes a worker's own time, also for an average in flight.
    """

    def __init__(self, model: RuntimeModel, *, m: int, key: Key) -> None:
        super().__init__()
        if not isinstance(model.step, Law | PersistentStragglers):
            raise ValueError(f"step times must be independent, to be drawn; got {model.step!r}: use one of the laws")
        self.model, self.m, self.key = model, m, key.shared()
        self._now = 0.0
        self._probes = 0
        self._computed_s, self._averaged_s = np.full(m, math.nan), math.nan

    def seconds(self) -> float:
        """Return the simulated seconds."""
        return self._now

    def _pass(self, sync: Synchronisation) -> None:
        steps, mean_bits = sync.steps, sync.mean_bits
        rng, local, probed = self._drawn(steps)
        sent_after = steps if sync.flight is None else max(0, steps - sync.flight.steps)
        waited_for = list(sync.participants)
        before_s, compute_s = (
            float((local[:, :count].sum(axis=1) + probed)[waited_for].max()) for count in (sent_after, steps)
        )
        coding_s = self._coding_s(sync)
        begun = self._now
        self._now += before_s + coding_s
        delay = self.model.delay_s
        self._now += float(delay.sample(rng, ())) if isinstance(delay, Law) else float(delay)
        if (communication := self.model.communication) is not None:
            if isinstance(communication, Links):
                communication = communication.of(sync.exchange)
            if isinstance(communication, TwoShot) and mean_bits:
                communication = replace(communication, result_bits=sum(mean_bits))
            self._now += communication.seconds(m=self.m, bits=list(sync.bits))
        self._averaged_s = self._now - begun - before_s
        self._now = max(self._now, begun + compute_s + coding_s)
        self._probes = 0

    def _coding_s(self, sync: Synchronisation) -> float:
        """Return every rank's coding time of this averaging."""
        if sync.coding_s is not None or self.model.coding is None:
            return sync.coding_s or 0.0
        return self.model.coding.seconds(m=self.m, two_shot=bool(sync.mean_bits))

    def _drawn(self, steps: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
        """Return generator, step times of shape (m, steps) and probe times of shape (m,) of this round, in seconds."""
        k0, k1 = philox_key(self.key.fold_in(len(self.events)))
        rng = np.random.Generator(np.random.Philox(key=k1 << 32 | k0))
        drawn = _step_times(self.model.step, rng, self.m, steps + self._probes)
        return rng, drawn[:, :steps], drawn[:, steps:].sum(axis=1)

    def start_sync(self, steps: int) -> None:
        """Draw the times of the round's local steps."""
        _, local, _ = self._drawn(steps)
        self._computed_s = local.sum(axis=1)

    def pass_probe(self) -> None:
        """Extend the next round by one step on every rank, which does not count as a local step."""
        self._probes += 1

    def computed(self, ranks: Sequence[int]) -> list[float]:
        """Return the drawn times."""
        return [float(self._computed_s[rank]) for rank in ranks]

    def averaged(self, ranks: Sequence[int]) -> list[float]:
        """Return the seconds of the last averaging, without waiting for other ranks."""
        return [self._averaged_s] * len(ranks)

    def state_dict(self) -> dict[str, Any]:
        """Return the simulated seconds, the probes since the last round, and the record."""
        return {"seconds": self._now, "probes": self._probes, "events": self._record()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        self._now, self._probes = state["seconds"], state["probes"]
        self.events = [Event(*row) for row in state["events"]]


def _step_times(step: StepTime, rng: np.random.Generator, m: int, steps: int) -> np.ndarray:
    """Return the seconds of every local step of a round, shape (m, steps)."""
    if not steps:
        return np.zeros((m, 0))
    if isinstance(step, PersistentStragglers):
        if len(step.slowdowns) != m:
            raise ValueError(f"slowdowns must have one factor for each of the m = {m} ranks; got {len(step.slowdowns)}")
        return np.array(step.slowdowns)[:, None] * step.law.sample(rng, (m, steps))
    assert isinstance(step, Law)  # checked at the start
    return step.sample(rng, (m, steps))
