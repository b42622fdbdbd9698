"""What time it is in a run: the wall clock, or one that a runtime model advances."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

from bounds.runtime import Links, PersistentStragglers, RuntimeModel, TwoShot
from bounds.runtime.law import Law, StepTime
from operators import Key
from operators.random import philox_key


@dataclass(frozen=True)
class Event:
    """The end of one averaging.

    Parameters
    ----------
    seconds : float
        Since the start of the run.
    steps : int
        Local steps of each rank since then.
    bits : int, bits
        Of the messages of all ranks in this averaging.
    """

    seconds: float
    steps: int
    bits: int


@dataclass(frozen=True)
class InFlight:
    """What a round whose average was in flight has not waited for.

    Parameters
    ----------
    steps : int
        Local steps between the send and the merge.
    seconds : float, seconds
        Between the beginning and the end of the exchange; nan if unknown.
    """

    steps: int
    seconds: float


@dataclass(frozen=True)
class Synchronisation:
    """What a clock is told of a synchronisation that has ended.

    Parameters
    ----------
    steps : int
        Local steps before it.
    bits : sequence of int, bits
        Lengths of the messages of all ranks.
    participants : sequence of int
        The ranks whose models count.
    mean_bits : sequence of int, bits
        Lengths of the owners' messages in two shots.
    flight : InFlight or None
        What it was hidden by; None if all have waited for it.
    coding_s : float or None, seconds, optional
        That every rank computed for the messages; None where the clock knows.
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
    """Tells the seconds since the start and keeps a record of the averagings in ``events``."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    @abstractmethod
    def seconds(self) -> float:
        """Return now, since the start of the run."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs, in plain values."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken.

        Parameters
        ----------
        state : mapping
            What ``state_dict`` gave.
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
        """An averaging has ended: after ``steps`` local steps of the participants, with messages of these lengths.

        Parameters
        ----------
        steps : int
            Local steps.
        bits : sequence of int, bits
            Lengths of the messages of all ranks.
        participants : sequence of int
            The ranks whose models count.
        mean_bits : sequence of int, bits, optional
            Lengths of the owners' messages in two shots.
        flight : InFlight or None, optional
            What the averaging was hidden by; None if all have waited for it.
        coding_s : float or None, seconds, optional
            What a simulated clock takes for encoding and decoding; by default what its model says.
        exchange : str, optional
            How the averaging was made: "sum", "gather" or "two_shot".
        """
        before = self.events[-1].steps if self.events else 0
        self._pass(Synchronisation(steps, bits, participants, mean_bits, flight, coding_s, exchange))
        self.events.append(Event(self.seconds(), before + steps, sum(bits) + sum(mean_bits)))

    def _pass(self, sync: Synchronisation) -> None:  # noqa: B027  optional
        """Let the round's time go by; a real clock needs no telling."""

    def leave_out(self, seconds: float) -> None:  # noqa: B027  optional
        """So many seconds have just gone by that do not count; a simulated clock has not moved.

        Parameters
        ----------
        seconds : float
            How many seconds.
        """

    def start_sync(self, steps: int) -> None:  # noqa: B027  optional
        """The local steps of a round are done, and its averaging begins.

        Parameters
        ----------
        steps : int
            Local steps.
        """

    def end_sync(self) -> None:  # noqa: B027  optional
        """The local steps of a round begin."""

    def pass_probe(self) -> None:  # noqa: B027  optional
        """Every rank has computed one gradient more."""

    @abstractmethod
    def computed(self, ranks: Sequence[int]) -> list[float]:
        """Return seconds of the local steps of the round that has arrived, of some ranks; nan if unknown.

        Parameters
        ----------
        ranks : sequence of int
            Numbers of the ranks.
        """

    @abstractmethod
    def averaged(self, ranks: Sequence[int]) -> list[float]:
        """Return seconds of the last averaging, from a rank's arrival to its departure; nan if unknown.

        Parameters
        ----------
        ranks : sequence of int
            Numbers of the ranks.
        """

    def _record(self) -> list[list[Any]]:
        return [list(astuple(event)) for event in self.events]


class WallClock(Clock):
    """The time of this process.  Local steps are not timed in its first round: nobody knows when they began."""

    def __init__(self) -> None:
        super().__init__()
        self._began = time.monotonic()
        self._left: float | None = None
        self._arrived: float | None = None
        self._computed_s = self._averaged_s = math.nan

    def seconds(self) -> float:
        """Return seconds since this object was made; a resumed run adds those of the runs before."""
        return time.monotonic() - self._began

    def leave_out(self, seconds: float) -> None:
        """Neither the run nor its local steps have taken them."""
        self._began += seconds
        if self._left is not None:
            self._left += seconds

    def start_sync(self, steps: int) -> None:
        """Stop timing local steps, start timing the averaging."""
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
        """Return this process's, for every rank that it hosts."""
        return [self._computed_s] * len(ranks)

    def averaged(self, ranks: Sequence[int]) -> list[float]:
        """Return this process's, for every rank that it hosts."""
        return [self._averaged_s] * len(ranks)

    def state_dict(self) -> dict[str, Any]:
        """Return seconds so far, and the record."""
        return {"seconds": self.seconds(), "events": self._record()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on counting."""
        self._began = time.monotonic() - state["seconds"]
        self._left, self._computed_s, self._averaged_s = None, math.nan, math.nan  # what began before is not timed
        self.events = [Event(*row) for row in state["events"]]


class SimulatedClock(Clock):
    """A round takes its slowest participant's local steps, then one averaging of the messages.

    Parameters
    ----------
    model : RuntimeModel
        Law of a local step's time, fixed or random delay, communication cost, coding seconds.
    m : int
        Number of ranks.
    key : Key
        The times of round r depend on it and on r alone, so that every rank's copy shows the same time.

    Raises
    ------
    ValueError
        For a law of step times that cannot be sampled.

    Notes
    -----
    A worker's own pace is drawn anew for every step; with sampled clients only the participants are waited for.  An
    average in flight leaves when the slowest has sent, and nobody begins the next round before it and all local steps
    are done.  Coding takes every worker's own time, also where the average is in flight.
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
        """Return simulated seconds."""
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
        """Return what every rank computes for this averaging's messages."""
        if sync.coding_s is not None or self.model.coding is None:
            return sync.coding_s or 0.0
        return self.model.coding.seconds(m=self.m, two_shot=bool(sync.mean_bits))

    def _drawn(self, steps: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
        """Return (what further times are drawn from, seconds of every local step, shape (m, steps), seconds of the
        probes before them) of this round.
        """
        k0, k1 = philox_key(self.key.fold_in(len(self.events)))
        rng = np.random.Generator(np.random.Philox(key=k1 << 32 | k0))
        drawn = _step_times(self.model.step, rng, self.m, steps + self._probes)
        return rng, drawn[:, :steps], drawn[:, steps:].sum(axis=1)

    def start_sync(self, steps: int) -> None:
        """Draw the times of the round's local steps."""
        _, local, _ = self._drawn(steps)
        self._computed_s = local.sum(axis=1)

    def pass_probe(self) -> None:
        """The next round takes every rank one step longer, which is not counted as local."""
        self._probes += 1

    def computed(self, ranks: Sequence[int]) -> list[float]:
        """Return the drawn times."""
        return [float(self._computed_s[rank]) for rank in ranks]

    def averaged(self, ranks: Sequence[int]) -> list[float]:
        """Return without the wait for others."""
        return [self._averaged_s] * len(ranks)

    def state_dict(self) -> dict[str, Any]:
        """Return simulated seconds so far, probes since the last round, and the record."""
        return {"seconds": self._now, "probes": self._probes, "events": self._record()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._now, self._probes = state["seconds"], state["probes"]
        self.events = [Event(*row) for row in state["events"]]


def _step_times(step: StepTime, rng: np.random.Generator, m: int, steps: int) -> np.ndarray:
    """Return seconds of every local step of a round, shape (m, steps)."""
    if not steps:
        return np.zeros((m, 0))
    if isinstance(step, PersistentStragglers):
        if len(step.slowdowns) != m:
            raise ValueError(f"slowdowns must have one factor for each of the m = {m} ranks; got {len(step.slowdowns)}")
        return np.array(step.slowdowns)[:, None] * step.law.sample(rng, (m, steps))
    assert isinstance(step, Law)  # checked at the start
    return step.sample(rng, (m, steps))
