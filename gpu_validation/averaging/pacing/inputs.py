"""Period of a schedule, and the inputs from which it chooses the next one: none, losses, or measurements (``probing``).

All classes of inputs have the same methods, so that rounds do not depend on the schedule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bounds.schedules import Fixed, Measured, Observation, Schedule

from ...processes.learning_rates import require_rates
from ...processes.transport import Transport
from ..worker import Worker
from .clock import Clock


class PeriodController:
    """Decides after which steps averagings come: tau, 2 tau, ...; a new tau begins with a new round.

    Parameters
    ----------
    schedule : int or Schedule
        Local steps per round, or a rule.
    steps : int or None, optional
        Local steps of the whole run, if known.

    Attributes
    ----------
    tau
        Local steps of the current round; 0 before an adaptive rule has made its first decision.

    Raises
    ------
    ValueError
        For a tau < 1.
    """

    def __init__(self, schedule: int | Schedule, steps: int | None = None) -> None:
        self.schedule = Fixed(schedule) if isinstance(schedule, int) else schedule
        self.steps = steps
        self.rule = self.schedule.init()
        self.tau = int(self.schedule.tau) if isinstance(self.schedule, Fixed) else 0
        self.rounds = self.local_steps = self.total_steps = 0

    @property
    def adapts(self) -> bool:
        """Whether tau is decided again in every round."""
        return not isinstance(self.schedule, Fixed)

    def count(self) -> bool:
        """Count one local step; return whether the round ends."""
        self.total_steps += 1
        self.local_steps += 1
        return self.local_steps >= self.tau

    def catch_up(self, local_steps: int) -> None:
        """Set the number of local steps of this round to that of the other ranks."""
        self.total_steps += local_steps - self.local_steps
        self.local_steps = local_steps

    def end_round(self) -> None:
        """Count one averaging."""
        self.rounds += 1
        self.local_steps = 0

    @staticmethod
    def row(losses: Sequence[float], time_s: float, eta: float) -> list[float]:
        """Return one rank's row for the decision: mean loss of the round, clock, learning rate.

        The mean loss is nan without losses, and inf if one of them is not finite.
        """
        mean = sum(losses) / len(losses) if losses else math.nan
        return [mean if math.isfinite(mean) or not losses else math.inf, time_s, eta]

    def decide_by(self, *, time_s: float, eta: float | None, measured: Measured) -> None:
        """Choose tau from measurements and from rank 0's clock and learning rate."""
        observation = Observation(time_s, self.total_steps, eta, steps_left=self._left(), measured=measured)
        self.rule, self.tau = self.schedule(self.rule, observation)

    def decide(self, rows: Sequence[Sequence[float]], members: Sequence[int]) -> None:
        """Choose tau from the members' mean loss and from rank 0's clock and learning rate.

        Raises
        ------
        ValueError
            On all ranks, if a member's loss is not finite, or a learning rate is negative or not a number.

        Notes
        -----
        The decision is a pure function of shared inputs, so all ranks agree.  The loss is used only if every member has
        one.
        """
        time_s, eta = rows[0][1], require_rates([row[2] for row in rows])[0]
        common: dict[str, Any] = {"time_s": time_s, "step": self.total_steps, "eta": eta, "steps_left": self._left()}
        losses = [rows[rank][0] for rank in members]
        diverged = [rank for rank in members if math.isinf(rows[rank][0])]
        if diverged:
            who = f"rank {diverged[0]}" if len(diverged) < len(members) else "the ranks"
            raise ValueError(
                f"the loss of {who} was not finite within the {self.total_steps} local steps so far, and the schedule "
                "decides by it: lower the learning rate, or clip the gradients"
            )
        observation = Observation(**common) if any(map(math.isnan, losses)) else Observation.shared(losses, **common)
        self.rule, self.tau = self.schedule(self.rule, observation)

    def _left(self) -> int | None:
        return None if self.steps is None else max(0, self.steps - self.total_steps)

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs, as plain values."""
        return {
            "rule": self.rule.to_dict(),
            "counters": [self.tau, self.rounds, self.local_steps, self.total_steps],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of ``state_dict``, also within a round."""
        self.rule = self.schedule.restore(state["rule"])
        self.tau, self.rounds, self.local_steps, self.total_steps = state["counters"]


Row = list[float]
Closure = Callable[[], Any]


class NoInputs:
    """Inputs of a fixed period: nothing is recorded, sent or decided."""

    looks = False  # whether the schedule has inputs at synchronisations
    numbers = 0  # length of the row sent with every synchronisation
    times_synchronisations = False  # whether synchronisations are timed, so that a warm-up must precede the first

    def record_step(
        self,
        losses: Sequence[Any],
        closures: Sequence[Closure | None] | None,
        participants: Sequence[int],
        clock: Clock,
    ) -> None:
        """Record losses and closures of one local step of every worker."""

    def step_counted(self) -> None:
        """Record that a local step was counted and the round continues."""

    def start_sync(self, clock: Clock) -> list[Row]:
        """Record the end of the round's local steps, and return ``rows``."""
        return []

    def rows(self, clock: Clock) -> list[Row]:
        """Return the rows to send with this synchronisation, one per worker; none if ``numbers`` is 0."""
        return []

    def drop_probe(self) -> None:
        """Drop the probe, because the model's parameters have changed in this synchronisation."""

    def end_sync(self, arrived: Sequence[Row], members: Sequence[int], clock: Clock) -> None:
        """Choose the next period from the members' rows, which are equal on all ranks, and end the synchronisation."""

    def state_dict(self) -> dict[str, Any] | None:
        """Return inputs that are not sent yet, as plain values; None if there are none."""
        return None

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        """Restore a state of ``state_dict``."""


class LossInputs(NoInputs):
    """Inputs of rules that use loss, clock and learning rate.

    With ``piggyback`` they travel with the models, by the clock at the start of the synchronisation.  Otherwise they
    need a collective of their own after it.
    """

    looks = True

    def __init__(
        self, workers: Sequence[Worker], periods: PeriodController, transport: Transport, *, piggyback: bool
    ) -> None:
        self.workers, self.periods, self.transport = workers, periods, transport
        self.numbers = 3 if piggyback else 0

    def record_step(
        self,
        losses: Sequence[Any],
        closures: Sequence[Closure | None] | None,
        participants: Sequence[int],
        clock: Clock,
    ) -> None:
        """Store the losses; before the first round all ranks decide immediately."""
        for worker, loss in zip(self.workers, losses, strict=True):
            if loss is not None:
                worker.record_loss(loss)
        if not self.periods.tau:
            self._decide([], participants, clock)

    def start_sync(self, clock: Clock) -> list[Row]:
        """Return ``rows`` without timing anything."""
        return self.rows(clock)

    def rows(self, clock: Clock) -> list[Row]:
        """Return mean loss, clock and learning rate of every worker, with ``piggyback``."""
        return self._rows(clock) if self.numbers else []

    def end_sync(self, arrived: Sequence[Row], members: Sequence[int], clock: Clock) -> None:
        """Choose the next period and clear the losses of the round."""
        self._decide(arrived, members, clock)
        for worker in self.workers:
            worker.losses = []

    def _decide(self, arrived: Sequence[Row], members: Sequence[int], clock: Clock) -> None:
        """Choose the next period by all ranks' rows; exchange them now unless they have arrived."""
        self.periods.decide(arrived or self.transport.all_gather_floats(self._rows(clock)), members)

    def _rows(self, clock: Clock) -> list[Row]:
        now = clock.seconds()
        return [self.periods.row(worker.round_losses(), now, worker.eta()) for worker in self.workers]
