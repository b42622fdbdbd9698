"""Inputs of a schedule before it chooses the next period: none, losses, or measurements (``sensing``).

All three classes have the same methods, so that rounds do not depend on the schedule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..distributed.transport import Transport
from .clock import Clock
from .gradient_probe import Closure
from .period import PeriodController
from .worker import Worker

Row = list[float]


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
